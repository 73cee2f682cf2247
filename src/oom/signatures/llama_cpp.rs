//! llama.cpp and ggml, alone and inside others.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "llama.cpu_buffer",
        "llama.cpp",
        Host,
        Weights,
        ["alloc_tensor_range"],
        "alloc_tensor_range: failed to allocate CPU buffer of size <hostreq:int>",
        "the part of the model that stays in host memory did not fit there"
    ),
    row!(
        "llama.pinned_buffer",
        "llama.cpp",
        Host,
        Weights,
        ["alloc_tensor_range"],
        "alloc_tensor_range: failed to allocate CUDA_Host buffer of size <hostreq:int>",
        "the part of the model that stays in host memory did not fit there"
    ),
    row!(
        "llama.cpu_weights",
        "llama.cpp",
        Host,
        Weights,
        ["unable to allocate"],
        "unable to allocate CPU buffer",
        "the part of the model that stays in host memory did not fit there"
    ),
    row!(
        "llama.host_weights",
        "llama.cpp",
        Host,
        Weights,
        ["unable to allocate"],
        "unable to allocate CUDA_Host buffer",
        "the part of the model that stays in host memory did not fit there"
    ),
    row!(
        "ggml.cuda",
        "llama.cpp",
        Gpu,
        Unknown,
        ["cudaMalloc failed: out of memory", "MiB on device"],
        "allocating <req:size> on device <dev:int>: ⟦cudaMalloc⟧⟦hipMalloc⟧ failed: out of memory",
        "ggml asked for one buffer and the device had no room for it"
    ),
    row!(
        "ggml.tensor_range",
        "llama.cpp",
        Gpu,
        Unknown,
        ["alloc_tensor_range"],
        "alloc_tensor_range: failed to allocate … buffer of size <req:int>",
        "a buffer for tensors did not fit"
    ),
    row!(
        "ggml.reserve",
        "llama.cpp",
        Engine,
        Compute,
        ["ggml_gallocr_reserve_n"],
        "ggml_gallocr_reserve_n⟦_impl⟧: failed to allocate … buffer of size <req:int>",
        "the buffer of the compute graph did not fit"
    ),
    row!(
        "llama.weights",
        "llama.cpp",
        Engine,
        Weights,
        ["unable to allocate"],
        "unable to allocate ⟦CUDA⟧⟦ROCm⟧⟦Vulkan⟧⟦MTL⟧⟦SYCL⟧⟦Metal⟧⟦backend⟧⟦<x:int>⟧ buffer",
        "the weights did not fit"
    ),
    row!(
        "llama.kv",
        "llama.cpp",
        Engine,
        Kv,
        ["failed to allocate buffer for kv cache"],
        "failed to allocate buffer for kv cache",
        "the cache of keys and values did not fit"
    ),
    row!(
        "llama.rs",
        "llama.cpp",
        Engine,
        Kv,
        ["failed to allocate buffer for rs cache"],
        "failed to allocate buffer for rs cache",
        "the recurrent state did not fit"
    ),
    row!(
        "llama.kv_init",
        "llama.cpp",
        Engine,
        Kv,
        ["llama_kv_cache_init() failed for self-attention cache"],
        "llama_kv_cache_init() failed for self-attention cache",
        "the cache of keys and values did not fit"
    ),
    row!(
        "llama.compute",
        "llama.cpp",
        Engine,
        Compute,
        ["failed to allocate compute"],
        "failed to allocate compute ⟦pp⟧⟦tg⟧ buffers",
        "the buffer of the compute graph did not fit"
    ),
    row!(
        "llama.old",
        "llama.cpp",
        Driver,
        Unknown,
        ["CUDA error 2 at"],
        "CUDA error 2 at … out of memory ⟦current device: <dev:int>⟧",
        "a CUDA call of an old llama.cpp found no memory"
    ),
    row!(
        "llama.runtime",
        "llama.cpp",
        Driver,
        Compute,
        ["current device:"],
        "CUDA error: out of memory current device: <dev:int>⟦, in function⟧",
        "the pool of llama.cpp could not grow at run time"
    ),
    row!(
        "ggml.vulkan",
        "llama.cpp",
        Gpu,
        Unknown,
        ["ggml_vulkan: Device memory allocation"],
        "ggml_vulkan: Device memory allocation of size <chunk:int> failed",
        "Vulkan had no room for a buffer"
    ),
    row!(
        "ggml.vulkan_limit",
        "llama.cpp",
        Gpu,
        Unknown,
        ["Requested buffer size exceeds"],
        "Requested buffer size exceeds ⟦device buffer size limit⟧⟦device memory allocation limit⟧",
        "a single buffer is larger than this Vulkan device allows"
    ),
    row!(
        "ggml.metal",
        "llama.cpp",
        Gpu,
        Unknown,
        ["failed to allocate buffer, size"],
        "failed to allocate buffer, size = <req:size>",
        "Metal had no room for a buffer"
    ),
    row!(
        "ggml.metal_bytes",
        "llama.cpp",
        Gpu,
        Unknown,
        ["Metal buffer of"],
        "Metal buffer of <req:int> bytes (out of memory)",
        "Metal had no room for a buffer"
    ),
    row!(
        "ggml.buffer",
        "llama.cpp",
        Gpu,
        Unknown,
        ["failed to allocate"],
        "ggml_backend_alloc_ctx_tensors_from_buft: failed to allocate",
        "a buffer for tensors did not fit"
    ),
    row!(
        "llama.fit",
        "llama.cpp",
        Recovered,
        Unknown,
        ["failed to fit params to free device memory"],
        "failed to fit params to free device memory",
        "a warning: the automatic fit gave up because a value was set by hand"
    ),
    row!(
        "llama.retry",
        "llama.cpp",
        Recovered,
        Unknown,
        ["retrying without pipeline parallelism"],
        "compute buffer allocation failed, retrying without pipeline parallelism",
        "llama.cpp went on without pipeline parallelism"
    ),
    row!(
        "llama.arena",
        "llama.cpp",
        Other,
        Unknown,
        ["not enough space in the context's memory pool"],
        "not enough space in the context's memory pool",
        "an internal arena of ggml was made too small; VRAM has nothing to do with it"
    ),
    row!(
        "llama.arena_buffer",
        "llama.cpp",
        Other,
        Unknown,
        ["not enough space in the buffer"],
        "not enough space in the buffer",
        "an internal arena of ggml was made too small; VRAM has nothing to do with it"
    ),
    row!(
        "llama.slot",
        "llama.cpp",
        Other,
        Unknown,
        ["failed to find a memory slot"],
        "failed to find a memory slot for batch of size",
        "the context is full of tokens; no memory was asked for"
    ),
    row!(
        "llama.context",
        "llama.cpp",
        Other,
        Unknown,
        ["exceeds the available context size"],
        "exceeds the available context size",
        "the request is longer than the context; no memory was asked for"
    ),
    row!(
        "llama.pinned",
        "llama.cpp",
        Recovered,
        Unknown,
        ["of pinned memory"],
        "failed to allocate … of pinned memory",
        "a warning: pinned host memory was not given, llama.cpp goes on without it"
    ),
    row!(
        "llama.mlock",
        "llama.cpp",
        Recovered,
        Unknown,
        ["failed to mlock"],
        "failed to mlock",
        "a warning: host memory could not be locked"
    ),
    row!(
        "llama.kv_host",
        "llama.cpp",
        Host,
        Unknown,
        ["failed to allocate memory for kv cache"],
        "failed to allocate memory for kv cache",
        "an old llama.cpp could not get host memory for its cache"
    ),
    row!(
        "llama.device",
        "any",
        Detail,
        Unknown,
        ["using device"],
        "using device ⟦CUDA⟧⟦ROCm⟧⟦Vulkan⟧⟦<x:int>⟧ (…) - <free:mib> MiB free",
        "what was free when the program started"
    ),
    row!(
        "llama.file_size",
        "any",
        Detail,
        Unknown,
        ["file size"],
        "print_info: file size = <weights:size>",
        "the size of the model file"
    ),
    row!(
        "llama.model_buffer",
        "any",
        Detail,
        Unknown,
        ["model buffer size"],
        "CUDA0 model buffer size = <weights:size>",
        "weights on the device"
    ),
    row!(
        "llama.kv_buffer",
        "any",
        Detail,
        Unknown,
        ["KV buffer size"],
        "CUDA0 KV buffer size = <kv:size>",
        "keys and values on the device"
    ),
    row!(
        "llama.n_ctx",
        "any",
        Detail,
        Unknown,
        ["n_ctx "],
        "llama_context: n_ctx = <ctx:int>",
        "the context that was asked for"
    ),
    row!(
        "llama.n_ctx_old",
        "any",
        Detail,
        Unknown,
        ["n_ctx "],
        "llama_new_context_with_model: n_ctx = <ctx:int>",
        "the context that was asked for"
    ),
    row!(
        "llama.n_ubatch",
        "any",
        Detail,
        Unknown,
        ["n_ubatch"],
        "n_ubatch = <ubatch:int>",
        "tokens per physical step"
    ),
    row!(
        "llama.offloaded",
        "any",
        Detail,
        Unknown,
        ["layers to GPU"],
        "offloaded <layers:int>/<layersall:int> layers to GPU",
        "layers on the GPU"
    ),
];
