//! vLLM, 0.2 to now.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "vllm.no_blocks",
        "vllm",
        Engine,
        Weights,
        ["No available memory for the cache blocks"],
        "No available memory for the cache blocks",
        "weights and activations leave nothing of the budget for the cache"
    ),
    row!(
        "vllm.max_len_v0",
        "vllm",
        Engine,
        Kv,
        ["max seq len", "stored in KV cache"],
        "The model's max seq len (<ctx:int>) is larger than the maximum number of tokens that can be stored in KV cache (<tokhave:int>)",
        "one request of the longest context does not fit into the cache"
    ),
    row!(
        "vllm.kv_needed",
        "vllm",
        Engine,
        Kv,
        ["To serve at least one request", "KV cache is needed", "available KV cache memory"],
        "To serve at least one request with the ⟦models's⟧⟦model's⟧ max seq len (<ctx:int>), ⟦(⟧<kvneed:size> KV cache is needed, which is larger than the available KV cache memory (<kvhave:size>).⟦ Based on the available memory, the estimated maximum model length is <maxlen:int>⟧",
        "one request of the longest context does not fit into the cache"
    ),
    row!(
        "vllm.free_on_startup",
        "vllm",
        Engine,
        Startup,
        ["on startup is less than desired", "Free memory on device"],
        "Free memory on device ⟦cuda:<dev:int>⟧(⟦<free:size>⟧⟦<free:gib>⟧/<total:size>) on startup is less than desired GPU memory utilization (<util:num>, <req:size>)",
        "somebody else holds part of what vLLM was told to take"
    ),
    row!(
        "vllm.external_weights",
        "vllm",
        Engine,
        Startup,
        ["Externally held weights on device"],
        "Externally held weights on device",
        "memory that another process holds exceeds the budget"
    ),
    row!(
        "vllm.external_budget",
        "vllm",
        Engine,
        Startup,
        ["engine's budget after excluding"],
        "is less than the engine's budget after excluding external process's weights",
        "memory that another process holds exceeds the budget"
    ),
    row!(
        "vllm.warmup",
        "vllm",
        Engine,
        Warmup,
        ["occurred when warming up"],
        "CUDA out of memory occurred when warming up … with … dummy requests",
        "the trial run at the largest batch did not fit beside the cache"
    ),
    row!(
        "vllm.weights",
        "vllm",
        Engine,
        Weights,
        ["Failed to load model - not enough GPU memory"],
        "Failed to load model - not enough GPU memory",
        "the weights did not fit"
    ),
    row!(
        "vllm.auto_fit",
        "vllm",
        Engine,
        Weights,
        ["Cannot auto-fit max_model_len"],
        "Cannot auto-fit max_model_len: not enough GPU memory",
        "the weights leave no room for a single token"
    ),
    row!(
        "vllm.profiling",
        "vllm",
        Other,
        Unknown,
        ["Error in memory profiling", "Initial free memory"],
        "Error in memory profiling. Initial free memory ⟦<freebefore:size>⟧⟦<freebefore:int>⟧, current free memory ⟦<free:size>⟧⟦<free:int>⟧",
        "another process gave memory back while vLLM measured; start it again"
    ),
    row!(
        "vllm.preempted",
        "vllm",
        Recovered,
        Unknown,
        ["there is not enough KV cache space"],
        "is preempted by … because there is not enough KV cache space",
        "a request waits for room in the cache; nothing failed"
    ),
    row!(
        "vllm.prompt",
        "vllm",
        Other,
        Unknown,
        ["longer than the maximum model length"],
        "is longer than the maximum model length of",
        "the prompt is longer than the context; no memory was asked for"
    ),
    row!(
        "vllm.engine",
        "vllm",
        Wrapper,
        Unknown,
        ["Engine core initialization failed"],
        "Engine core initialization failed",
        "the cause stands above"
    ),
    row!(
        "vllm.capture",
        "vllm",
        Detail,
        Capture,
        ["Capturing CUDA graph"],
        "Capturing CUDA graph",
        "vLLM was recording CUDA graphs"
    ),
    row!(
        "vllm.model",
        "vllm",
        Detail,
        Unknown,
        ["Model loading took"],
        "Model loading took <weights:size>",
        "weights on the device"
    ),
    row!(
        "vllm.available",
        "vllm",
        Detail,
        Unknown,
        ["Available KV cache memory"],
        "Available KV cache memory: <kvhave:size>",
        "what is left for the cache"
    ),
    row!(
        "vllm.budget",
        "vllm",
        Detail,
        Unknown,
        ["model weights take"],
        "model weights take <weights:size>",
        "weights on the device"
    ),
    row!(
        "vllm.tokens",
        "vllm",
        Detail,
        Unknown,
        ["GPU KV cache size"],
        "GPU KV cache size: <tokhave:int> tokens",
        "tokens that fit into the cache"
    ),
];
