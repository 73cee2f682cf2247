//! Julia, MATLAB, `XGBoost`, `OpenMM`, candle, and programs for pictures and film.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "julia",
        "cuda.jl",
        Gpu,
        Unknown,
        ["Out of GPU memory trying"],
        "Out of GPU memory trying to allocate <req:size>⟦ Effective GPU memory usage: … (…/<total:size>)⟧",
        "CUDA.jl could not get memory from the device"
    ),
    row!(
        "julia.short",
        "cuda.jl",
        Bare,
        Unknown,
        ["Out of GPU memory"],
        "Out of GPU memory",
        "CUDA.jl could not get memory from the device"
    ),
    row!(
        "matlab",
        "matlab",
        Gpu,
        Unknown,
        ["Out of memory on device"],
        "Out of memory on device",
        "a gpuArray did not fit"
    ),
    row!(
        "xgboost",
        "xgboost",
        Engine,
        Unknown,
        ["Memory allocation error on worker"],
        "Memory allocation error on worker",
        "XGBoost could not get memory from the device"
    ),
    row!(
        "xgboost.bytes",
        "xgboost",
        Detail,
        Unknown,
        ["- Requested memory"],
        "- Requested memory: <req:size>",
        "what XGBoost asked for"
    ),
    row!(
        "xgboost.free",
        "xgboost",
        Detail,
        Unknown,
        ["- Free memory"],
        "- Free memory: <free:size>",
        "what was free"
    ),
    row!(
        "resolve",
        "davinci-resolve",
        Engine,
        Unknown,
        ["GPU memory is full"],
        "GPU memory is full",
        "a timeline or an effect does not fit into the device"
    ),
    row!(
        "ncnn",
        "ncnn",
        Gpu,
        Unknown,
        ["vkAllocateMemory failed"],
        "vkAllocateMemory failed -2",
        "Vulkan had no device memory to give"
    ),
    row!(
        "openmm",
        "openmm",
        Driver,
        Unknown,
        ["Error allocating array"],
        "Error allocating array … CUDA_ERROR_OUT_OF_MEMORY",
        "OpenMM could not get memory from the device"
    ),
    row!(
        "candle",
        "candle",
        Driver,
        Unknown,
        ["DriverError(CUDA_ERROR_OUT_OF_MEMORY"],
        "DriverError(CUDA_ERROR_OUT_OF_MEMORY",
        "a Rust program could not get memory from the device"
    ),
    row!(
        "thrust.bad",
        "any",
        Driver,
        Unknown,
        ["bad allocation: cudaErrorMemoryAllocation"],
        "bad allocation: cudaErrorMemoryAllocation",
        "Thrust had no device memory to give"
    ),
];

/// A message that no row knows, but whose words say it.
pub(in crate::oom) static GENERAL: Signature = row!(
    "general",
    "any",
    Gpu,
    Unknown,
    ["out of memory"],
    "out of memory",
    "its words say that memory of a GPU ran out; this wording is not known, and no figure was read"
);
