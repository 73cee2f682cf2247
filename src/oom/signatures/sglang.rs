//! SGLang: its pool is counted in tokens, and its GB are GiB.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "sglang.not_enough",
        "sglang",
        Engine,
        Weights,
        ["increase --mem-fraction-static"],
        "Not enough memory. Please try to increase --mem-fraction-static.⟦ Current value: mem_fraction_static=<util:num>⟧",
        "the weights exceed the share of the device that the server was given"
    ),
    row!(
        "sglang.prefill",
        "sglang",
        Engine,
        TokenPool,
        ["Prefill out of memory", "Available tokens"],
        "Prefill out of memory. Try to lower your batch size.⟦ Try to allocate <tokneed:int> tokens.⟧⟦ Available tokens: <tokhave:int>⟧",
        "the token pool is full"
    ),
    row!(
        "sglang.decode",
        "sglang",
        Engine,
        TokenPool,
        ["Decode out of memory"],
        "Decode out of memory. Try to lower your batch size.⟦ Try to allocate <tokneed:int> tokens.⟧⟦ Available tokens: <tokhave:int>⟧",
        "the token pool is full"
    ),
    row!(
        "sglang.pool",
        "sglang",
        Engine,
        TokenPool,
        ["Out of memory. Try to lower"],
        "Out of memory. Try to lower",
        "the token pool is full"
    ),
    row!(
        "sglang.slots",
        "sglang",
        Engine,
        TokenPool,
        ["alloc_req_slots runs out of memory"],
        "alloc_req_slots runs out of memory",
        "there is no slot for another request"
    ),
    row!(
        "sglang.retracted",
        "sglang",
        Engine,
        TokenPool,
        ["even after retracting all other requests"],
        "Out of memory even after retracting all other requests",
        "one request alone is larger than the token pool"
    ),
    row!(
        "sglang.capture",
        "sglang",
        Engine,
        Capture,
        ["Capture cuda graph failed"],
        "Capture cuda graph failed",
        "the pool left no room for recording CUDA graphs"
    ),
    row!(
        "sglang.unbalanced",
        "sglang",
        Engine,
        Startup,
        ["memory capacity is unbalanced"],
        "The memory capacity is unbalanced",
        "another process holds memory on one of the devices"
    ),
    row!(
        "sglang.sigquit",
        "sglang",
        Wrapper,
        Unknown,
        ["Received sigquit from a child"],
        "Received sigquit from a child",
        "the cause stands above"
    ),
    row!(
        "sglang.loaded",
        "sglang",
        Detail,
        Unknown,
        ["Load weight end"],
        "Load weight end. … avail mem=<free:size>⟦, mem usage=<weights:size>⟧",
        "what was free after loading"
    ),
    row!(
        "sglang.begin",
        "sglang",
        Detail,
        Unknown,
        ["Load weight begin"],
        "Load weight begin. avail mem=<freebefore:size>",
        "what was free before loading"
    ),
    row!(
        "sglang.fraction",
        "sglang",
        Detail,
        Unknown,
        ["mem_fraction_static="],
        "mem_fraction_static=<util:num>",
        "the share that the server was given"
    ),
];
