//! PyTorch's caching allocator, 1.0 to 2.15, on CUDA, `ROCm`, XPU, MPS and the CPU.

use super::{Signature, row};

/// Up to 2.0 the figures stand in parentheses; since 2.1 they are sentences, with the processes of
/// the device in the driver's order. `cached` (to 1.3) means what was reserved and not allocated,
/// `reserved` (from 1.4) all that was reserved.
macro_rules! caching_allocator {
    ($head:literal) => {
        concat!(
            $head,
            " out of memory. Tried to allocate <req:size>",
            "⟦(GPU <dev:int>;⟧⟦<total:size> total capacity;⟧⟦<alloc:size> already allocated;⟧",
            "⟦<free:size> free;⟧⟦<allowed:size> allowed;⟧",
            "⟦<reserved:size> reserved in total by PyTorch)⟧⟦<unalloc:size> cached)⟧",
            "⟦. GPU⟧⟦<dev:int> has a total⟧⟦capacty⟧⟦capacity⟧⟦of <total:size>⟧",
            "⟦of which <free:size> is free.⟧",
            "⟦Process <pid:int> has <pidbytes:size> memory in use.⟧*",
            "⟦Including non-PyTorch memory, this process has <this:size> memory in use.⟧",
            "⟦Process <pid:int> has <pidbytes:size> memory in use.⟧*",
            "⟦<allowed:size> allowed;⟧⟦Of the allocated memory⟧",
            "⟦<alloc:size> is allocated by PyTorch,⟧",
            "⟦with <priv:size> allocated in private pools⟧⟦(e.g., CUDA Graphs)⟧⟦(e.g., HIP Graphs)⟧⟦,⟧",
            "⟦and <unalloc:size> is reserved by PyTorch but unallocated.⟧",
        )
    };
}

pub(super) static TABLE: &[Signature] = &[
    row!(
        "torch.cuda",
        "pytorch",
        Gpu,
        Unknown,
        [
            "Tried to allocate",
            "out of memory",
            "OutOfMemoryError",
            "total capac",
            "memory in use",
            "allocated by PyTorch",
            "reserved by PyTorch",
            "already allocated",
            "in total by PyTorch"
        ],
        caching_allocator!("CUDA"),
        "PyTorch's caching allocator could not get memory from the device"
    ),
    row!(
        "torch.hip",
        "pytorch-rocm",
        Gpu,
        Unknown,
        ["Tried to allocate", "HIP out of memory"],
        caching_allocator!("HIP"),
        "PyTorch's caching allocator could not get memory from the AMD device"
    ),
    row!(
        "torch.xpu",
        "pytorch-xpu",
        Gpu,
        Unknown,
        ["Tried to allocate", "XPU out of memory"],
        caching_allocator!("XPU"),
        "PyTorch's caching allocator could not get memory from the Intel device"
    ),
    row!(
        "torch.mps",
        "pytorch-mps",
        Gpu,
        Unknown,
        ["MPS backend out of memory", "MPS allocated", "other allocations", "max allowed"],
        "MPS backend out of memory ⟦(MPS allocated: <alloc:size>,⟧⟦other allocations: <other:size>,⟧\
         ⟦max allowed: <allowed:size>)⟧⟦. Tried to allocate <req:size>⟧",
        "the limit that PyTorch keeps for itself in Apple's unified memory was reached"
    ),
    row!(
        "torch.fraction",
        "pytorch",
        Gpu,
        Unknown,
        ["would exceed per_process_memory_fraction", "preemptively rejected"],
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed \
         per_process_memory_fraction limit.⟦ Requested size: <req:size>⟧",
        "the process reached the share of the device that it was given"
    ),
    row!(
        "torch.reserve",
        "pytorch",
        Detail,
        Unknown,
        ["expandable-segment reserve of", "expandable_segments_reserve"],
        "exceeds the expandable-segment reserve of <reserve:size>",
        "one allocation was larger than the address space reserved for a segment"
    ),
    row!(
        "torch.mapping",
        "pytorch",
        Detail,
        Unknown,
        ["memory mapping failed with OOM"],
        "expandable_segments: memory mapping failed with OOM on device",
        "a segment could not grow"
    ),
    row!(
        "torch.nvml",
        "pytorch",
        Driver,
        Unknown,
        ["INTERNAL ASSERT FAILED", "NVML_SUCCESS"],
        "NVML_SUCCESS == … INTERNAL ASSERT FAILED at … CUDACachingAllocator",
        "PyTorch 2.1 to 2.13 fails like this while it writes an out-of-memory message and NVML cannot \
         list processes (MIG, Jetson, some containers)"
    ),
    row!(
        "torch.bare",
        "pytorch",
        Bare,
        Unknown,
        ["CUDA out of memory"],
        "CUDA out of memory",
        "an out-of-memory error whose text is not here"
    ),
    row!(
        "torch.bare_class",
        "pytorch",
        Bare,
        Unknown,
        ["OutOfMemoryError"],
        "OutOfMemoryError:",
        "an out-of-memory error whose text is not here"
    ),
    row!(
        "torch.retries",
        "pytorch",
        Detail,
        Unknown,
        ["cudaMalloc retries"],
        "cudaMalloc retries⟦ so far⟧⟦:⟧ <retries:int>",
        "the allocator had to free its cache and try again"
    ),
    row!(
        "torch.report",
        "pytorch",
        Detail,
        Unknown,
        ["reserved by torch"],
        "reserved by torch <reserved:size>⟦, allocated <alloc:size>⟧⟦, device free <free:size>⟧",
        "the log says what the allocator holds"
    ),
    row!(
        "torch.parameters",
        "any",
        Detail,
        Unknown,
        ["Number of trainable parameters"],
        "Number of trainable parameters⟦ =⟧⟦:⟧ <params:int>",
        "the log says how many parameters are trained"
    ),
];
