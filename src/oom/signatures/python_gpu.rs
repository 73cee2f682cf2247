//! `CuPy`, Numba, RMM and RAPIDS, Triton kernels, `CTranslate2`, Warp.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "cupy",
        "cupy",
        Gpu,
        Unknown,
        ["Out of memory allocating", "allocated so far"],
        "Out of memory allocating <req:int> bytes ⟦(allocated so far: <alloc:int> bytes⟦, limit set to: <allowed:int> bytes⟧).⟧",
        "CuPy's pool could not get memory from the device"
    ),
    row!(
        "numba.call",
        "numba",
        Driver,
        Unknown,
        ["Call to cuMemAlloc", "results in CUDA_ERROR_OUT_OF_MEMORY"],
        "Call to cuMemAlloc⟦Async⟧⟦Managed⟧⟦_v2⟧ results in ⟦CUDA_ERROR_OUT_OF_MEMORY⟧",
        "Numba asked the driver for memory and got none; the message has no figure"
    ),
    row!(
        "numba.any",
        "numba",
        Driver,
        Unknown,
        ["CudaAPIError", "OUT_OF_MEMORY"],
        "CudaAPIError: … OUT_OF_MEMORY",
        "Numba asked the driver for memory and got none; the message has no figure"
    ),
    row!(
        "rmm.bytes",
        "rapids-rmm",
        Gpu,
        Unknown,
        ["failed to allocate", "std::bad_alloc"],
        "CUDA error (failed to allocate <req:size>) at: … cudaErrorMemoryAllocation",
        "RMM asked the driver for memory and got none"
    ),
    row!(
        "rmm.bad_alloc",
        "rapids-rmm",
        Driver,
        Unknown,
        ["std::bad_alloc: out_of_memory"],
        "std::bad_alloc: out_of_memory: CUDA error at: … cudaErrorMemoryAllocation",
        "RMM asked the driver for memory and got none"
    ),
    row!(
        "rmm.pool",
        "rapids-rmm",
        Engine,
        Unknown,
        ["Maximum pool size exceeded", "RMM failure at"],
        "RMM failure at: … Maximum pool size exceeded ⟦(failed to allocate <req:size>)⟧",
        "RMM's pool reached its maximum size"
    ),
    row!(
        "rmm.limit",
        "rapids-rmm",
        Engine,
        Unknown,
        ["Exceeded memory limit"],
        "Exceeded memory limit ⟦(failed to allocate <req:size>)⟧",
        "RMM's limiting adaptor reached its limit"
    ),
    row!(
        "rmm.pool_size",
        "any",
        Detail,
        Unknown,
        ["rmm pool"],
        "rmm pool: initial <kv:size>, maximum <pool:size>",
        "the log says how large RMM's pool may become"
    ),
    row!(
        "triton.resources",
        "triton",
        Other,
        Unknown,
        ["out of resource:", "OutOfResources"],
        "out of resource: … Hardware limit",
        "a Triton kernel wants more on-chip memory per block than the GPU has; VRAM has nothing to do with it"
    ),
    row!(
        "triton.cuda",
        "triton",
        Driver,
        Unknown,
        ["Triton Error [CUDA]: out of memory"],
        "Triton Error [CUDA]: out of memory",
        "loading a Triton kernel needed device memory and got none"
    ),
    row!(
        "ctranslate2",
        "ctranslate2",
        Driver,
        Unknown,
        ["CUDA failed with error out of memory"],
        "CUDA failed with error out of memory",
        "CTranslate2 could not get memory from the device; the message has no figure"
    ),
    row!(
        "warp",
        "warp",
        Driver,
        Unknown,
        ["Warp CUDA error 2"],
        "Warp CUDA error 2: out of memory",
        "Warp could not get memory from the device"
    ),
    row!(
        "warp.alloc",
        "warp",
        Gpu,
        Unknown,
        ["Failed to allocate", "bytes on device"],
        "Failed to allocate <req:int> bytes on device 'cuda:⟦<dev:int>⟧",
        "Warp could not get memory from the device"
    ),
];
