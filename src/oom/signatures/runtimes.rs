//! ONNX Runtime, `TensorRT`, Paddle, `MXNet`, `OpenCV`.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "ort.available",
        "onnxruntime",
        Engine,
        Arena,
        ["smaller than requested bytes", "Available memory of"],
        "Available memory of <free:int> is smaller than requested bytes of <req:int>",
        "the arena reached its limit; it never gives memory back"
    ),
    row!(
        "ort.buffer",
        "onnxruntime",
        Gpu,
        Unknown,
        ["for requested buffer of size", "BFCArena"],
        "Failed to allocate memory for requested buffer of size <req:int>",
        "ONNX Runtime's arena could not grow"
    ),
    row!(
        "ort.cuda",
        "onnxruntime",
        Driver,
        Unknown,
        ["CUDA failure 2"],
        "CUDA failure 2: out of memory ⟦; GPU=<dev:int>⟧",
        "a CUDA call of ONNX Runtime found no memory"
    ),
    row!(
        "ort.error",
        "any",
        Detail,
        Unknown,
        ["[ONNXRuntimeError]"],
        "[ONNXRuntimeError]",
        "an error of ONNX Runtime"
    ),
    row!(
        "trt.request",
        "tensorrt",
        Gpu,
        Compute,
        ["Requested amount of GPU memory"],
        "Requested amount of GPU memory (<req:int> bytes) could not be allocated",
        "TensorRT could not get its execution memory"
    ),
    row!(
        "trt.oom",
        "tensorrt",
        Gpu,
        Compute,
        ["Error Code 2: OutOfMemory"],
        "Error Code 2: OutOfMemory ⟦(Requested size was <req:int> bytes.)⟧",
        "TensorRT could not get its execution memory"
    ),
    row!(
        "trt.runtime",
        "tensorrt",
        Driver,
        Compute,
        ["Cuda Runtime (out of memory)"],
        "Cuda Runtime (out of memory)",
        "TensorRT could not get memory from the device"
    ),
    row!(
        "trt.tactic",
        "tensorrt",
        Recovered,
        Unknown,
        ["Device memory is insufficient to use tactic"],
        "Device memory is insufficient to use tactic",
        "the builder passed over a tactic for which the memory was too little"
    ),
    row!(
        "trt.skip",
        "tensorrt",
        Recovered,
        Unknown,
        ["Skipping tactic"],
        "Skipping tactic … memory on requested size",
        "the builder passed over a tactic for which the memory was too little"
    ),
    row!(
        "paddle",
        "paddle",
        Gpu,
        Unknown,
        ["Out of memory error on GPU", "Cannot allocate"],
        "Out of memory error on GPU <dev:int>. Cannot allocate <req:size> memory on GPU ⟦<dev:int>⟧⟦, <alloc:size> memory has been allocated⟧⟦(actual using allocated memory <weights:size>)⟧⟦and available memory is only <free:size>⟧",
        "Paddle could not get memory from the device"
    ),
    row!(
        "paddle.share",
        "paddle",
        Gpu,
        Unknown,
        ["Cannot allocate"],
        "Cannot allocate <req:size> memory on GPU <dev:int>",
        "Paddle could not get memory from the device"
    ),
    row!(
        "mxnet.retry",
        "mxnet",
        Driver,
        Unknown,
        ["cudaMalloc retry failed"],
        "cudaMalloc retry failed: out of memory",
        "MXNet's pool could not get memory from the device"
    ),
    row!(
        "mxnet.storage",
        "mxnet",
        Driver,
        Unknown,
        ["pooled_storage_manager.h"],
        "pooled_storage_manager.h … cudaMalloc … failed: out of memory",
        "MXNet's pool could not get memory from the device"
    ),
    row!(
        "opencv",
        "opencv",
        Driver,
        Unknown,
        ["Gpu API call) out of memory"],
        "(-217:Gpu API call) out of memory",
        "OpenCV could not get memory from the device"
    ),
    row!(
        "opencv.host",
        "opencv",
        Host,
        Unknown,
        ["cuda_host_mem.cpp"],
        "cuda_host_mem.cpp … out of memory",
        "OpenCV could not get pinned host memory"
    ),
];
