//! Messages in the driver's words: no figure, and often not the allocation that was too large.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "driver.cuda_error",
        "pytorch",
        Driver,
        Unknown,
        ["CUDA error: out of memory"],
        "CUDA error: out of memory",
        "a CUDA call outside PyTorch's allocator failed, or caching is off; the message has no figure"
    ),
    row!(
        "driver.hip_error",
        "pytorch-rocm",
        Driver,
        Unknown,
        ["HIP error: out of memory"],
        "HIP error: out of memory",
        "a HIP call outside PyTorch's allocator failed; the message has no figure"
    ),
    row!(
        "driver.cuda_driver",
        "pytorch",
        Driver,
        Unknown,
        ["CUDA driver error: out of memory"],
        "CUDA driver error: out of memory",
        "a virtual-memory call of expandable segments failed; the message has no figure"
    ),
    row!(
        "driver.runtime_1x",
        "pytorch",
        Driver,
        Unknown,
        ["cuda runtime error (2)"],
        "cuda runtime error (2) : out of memory",
        "a CUDA call failed in an old PyTorch; the message has no figure"
    ),
    row!(
        "driver.enum_cuda",
        "any",
        Driver,
        Unknown,
        ["CUDA_ERROR_OUT_OF_MEMORY"],
        "CUDA_ERROR_OUT_OF_MEMORY",
        "the CUDA driver had no memory to give"
    ),
    row!(
        "driver.enum_runtime",
        "any",
        Driver,
        Unknown,
        ["cudaErrorMemoryAllocation"],
        "cudaErrorMemoryAllocation",
        "the CUDA runtime had no memory to give"
    ),
    row!(
        "driver.enum_hip",
        "any",
        Driver,
        Unknown,
        ["hipErrorOutOfMemory"],
        "hipErrorOutOfMemory",
        "the HIP runtime had no memory to give"
    ),
    row!(
        "driver.vulkan",
        "any",
        Driver,
        Unknown,
        ["VK_ERROR_OUT_OF_DEVICE_MEMORY", "ErrorOutOfDeviceMemory"],
        "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        "Vulkan had no device memory to give"
    ),
    row!(
        "driver.opencl",
        "any",
        Driver,
        Unknown,
        ["CL_MEM_OBJECT_ALLOCATION_FAILURE"],
        "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        "OpenCL had no device memory to give"
    ),
    row!(
        "driver.thrust",
        "any",
        Driver,
        Unknown,
        ["thrust::system::detail::bad_alloc"],
        "thrust::system::detail::bad_alloc",
        "Thrust had no device memory to give"
    ),
    row!(
        "driver.cuda_failed",
        "any",
        Driver,
        Unknown,
        ["cudaMalloc failed: out of memory"],
        "cudaMalloc failed: out of memory",
        "the CUDA runtime had no memory to give"
    ),
    row!(
        "driver.nvmap",
        "any",
        Driver,
        Unknown,
        ["NvMapMemAllocInternalTagged"],
        "NvMapMemAllocInternalTagged:",
        "the unified memory of a Jetson is full or fragmented"
    ),
    row!(
        "driver.cuvid",
        "ffmpeg",
        Driver,
        Unknown,
        ["cuvidCreateDecoder"],
        "cuvidCreateDecoder … CUDA_ERROR_OUT_OF_MEMORY",
        "the video decoder had no room for its surfaces"
    ),
];
