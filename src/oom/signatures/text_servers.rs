//! TGI, TensorRT-LLM and the Triton server.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "tgi.prefill",
        "tgi",
        Engine,
        Warmup,
        ["prefill tokens"],
        "Not enough memory to handle <tokneed:int> prefill tokens",
        "the trial run with the largest prefill did not fit"
    ),
    row!(
        "trtllm.alloc",
        "tensorrt-llm",
        Engine,
        Kv,
        ["CUDA runtime error in"],
        "CUDA runtime error in ::cudaMalloc⟦Async⟧(… out of memory",
        "TensorRT-LLM could not get memory from the device"
    ),
    row!(
        "trtllm.any",
        "tensorrt-llm",
        Engine,
        Kv,
        ["[TensorRT-LLM][ERROR]"],
        "[TensorRT-LLM][ERROR] CUDA runtime error in … out of memory",
        "TensorRT-LLM could not get memory from the device"
    ),
    row!(
        "trtllm.kv",
        "tensorrt-llm",
        Detail,
        Kv,
        ["Max tokens in paged KV cache"],
        "Max tokens in paged KV cache: <tokhave:int>. Allocating <req:int> bytes",
        "the cache that was to be made"
    ),
    row!(
        "trtllm.engine",
        "tensorrt-llm",
        Detail,
        Unknown,
        ["Loaded engine size"],
        "Loaded engine size: <weights:size>",
        "weights on the device"
    ),
    row!(
        "trtllm.context",
        "tensorrt-llm",
        Detail,
        Unknown,
        ["for execution context memory"],
        "Allocated <compute:size> for execution context memory",
        "activations on the device"
    ),
    row!(
        "tgi.crash",
        "tgi",
        Wrapper,
        Unknown,
        ["Webserver Crashed"],
        "Webserver Crashed",
        "the cause stands above"
    ),
];
