//! JAX and XLA.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "jax.allocate",
        "jax",
        Gpu,
        Unknown,
        ["Out of memory while trying to allocate"],
        "Out of memory while trying to allocate <req:size>⟦with allocator GPU_…_bfc⟧⟦on device <dev:int>⟧",
        "the buffers of a compiled program do not fit into XLA's pool"
    ),
    row!(
        "jax.request",
        "jax",
        Gpu,
        Unknown,
        ["Failed to allocate request for"],
        "Failed to allocate request for <req:size>⟦(<req:int>B)⟧⟦ on device ordinal <dev:int>⟧",
        "XLA's pool has no block of that size"
    ),
    row!(
        "jax.graph",
        "jax",
        Driver,
        Capture,
        ["trying to instantiate command buffer", "ran out of memory trying to instantiate"],
        "ran out of memory trying to instantiate command buffer",
        "XLA's pool left the driver no room for CUDA graphs"
    ),
    row!(
        "jax.cuda_graph",
        "jax",
        Driver,
        Capture,
        ["trying to instantiate CUDA graph"],
        "ran out of memory trying to instantiate CUDA graph",
        "XLA's pool left the driver no room for CUDA graphs"
    ),
    row!(
        "jax.nccl",
        "jax",
        Driver,
        Collective,
        ["NCCL operation"],
        "NCCL operation … out of memory",
        "XLA's pool left NCCL no room for its own buffers"
    ),
    row!(
        "jax.exhausted",
        "jax",
        Bare,
        Unknown,
        ["RESOURCE_EXHAUSTED", "Resource exhausted"],
        "RESOURCE_EXHAUSTED: ",
        "XLA ran out of a resource"
    ),
    row!(
        "jax.remat",
        "jax",
        Recovered,
        Unknown,
        ["Can't reduce memory use below"],
        "Can't reduce memory use below",
        "a warning of the compiler: recomputing did not save enough"
    ),
    row!(
        "jax.cpu",
        "jax",
        Host,
        Unknown,
        ["RESOURCE_EXHAUSTED: Out of memory allocating"],
        "RESOURCE_EXHAUSTED: Out of memory allocating <hostreq:int> bytes",
        "JAX on the CPU could not get host memory"
    ),
];
