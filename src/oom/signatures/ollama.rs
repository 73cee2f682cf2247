//! Ollama, old and new engine.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "ollama.host",
        "ollama",
        Host,
        Unknown,
        ["requires more system memory"],
        "model requires more system memory (<hostreq:size>) than is available (<hostfree:size>)",
        "the part of the model that does not go to the GPU needs more RAM and swap than is free"
    ),
    row!(
        "ollama.host_log",
        "ollama",
        Host,
        Unknown,
        ["model request too large for system"],
        "model request too large for system ⟦\" requested=\"<hostreq:size>\"⟧⟦available=\"<hostfree:size>\"⟧",
        "the part of the model that does not go to the GPU needs more RAM and swap than is free"
    ),
    row!(
        "ollama.layout",
        "ollama",
        Engine,
        Weights,
        ["memory layout cannot be allocated"],
        "memory layout cannot be allocated ⟦with num_gpu = <layers:int>⟧",
        "the layers that were forced onto the GPU do not fit"
    ),
    row!(
        "ollama.insufficient",
        "ollama",
        Engine,
        Weights,
        ["insufficient memory - required allocations"],
        "insufficient memory - required allocations",
        "the layers do not fit"
    ),
    row!(
        "ollama.predicted",
        "ollama",
        Engine,
        Weights,
        ["predicted usage exceeds VRAM"],
        "predicted usage exceeds VRAM",
        "the estimate before loading exceeds the device"
    ),
    row!(
        "ollama.runner",
        "ollama",
        Detail,
        Unknown,
        ["runner process"],
        "llama runner process ⟦has terminated⟧⟦no longer running⟧",
        "the process below Ollama ended"
    ),
    row!(
        "ollama.server",
        "ollama",
        Detail,
        Unknown,
        ["llama-server process"],
        "llama-server process ⟦has terminated⟧⟦no longer running⟧",
        "the process below Ollama ended"
    ),
    row!(
        "ollama.gpu",
        "ollama",
        Detail,
        Unknown,
        ["msg=\"gpu memory\""],
        "msg=\"gpu memory\" … free=\"<free:size>\"",
        "what was free when Ollama looked"
    ),
    row!(
        "ollama.total",
        "ollama",
        Detail,
        Unknown,
        ["updated VRAM based on existing"],
        "updated VRAM based on existing loaded models\" … total=\"<total:size>\"",
        "the device as Ollama sees it"
    ),
    row!(
        "ollama.compute",
        "ollama",
        Detail,
        Unknown,
        ["inference compute"],
        "inference compute\" … total=\"<total:size>\"⟦available=\"<free:size>\"⟧",
        "the device as Ollama sees it"
    ),
    row!(
        "ollama.weights",
        "ollama",
        Detail,
        Unknown,
        ["msg=\"model weights\""],
        "msg=\"model weights\" device=CUDA0 size=\"<weights:size>\"",
        "weights on the device"
    ),
    row!(
        "ollama.kv",
        "ollama",
        Detail,
        Unknown,
        ["msg=\"kv cache\""],
        "msg=\"kv cache\" device=CUDA0 size=\"<kv:size>\"",
        "keys and values on the device"
    ),
    row!(
        "ollama.graph",
        "ollama",
        Detail,
        Unknown,
        ["msg=\"compute graph\""],
        "msg=\"compute graph\" device=CUDA0 size=\"<compute:size>\"",
        "the graph's buffer on the device"
    ),
    row!(
        "ollama.sum",
        "ollama",
        Detail,
        Unknown,
        ["msg=\"total memory\""],
        "msg=\"total memory\" size=\"<req:size>\"",
        "what the model would take"
    ),
    row!(
        "ollama.offload",
        "ollama",
        Detail,
        Unknown,
        ["memory.required.full"],
        "memory.available=\"[<free:size> … memory.required.full=\"<req:size>\"",
        "what the model would take"
    ),
];
