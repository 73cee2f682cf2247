//! PyTorch on the driver's own pool (`backend:cudaMallocAsync`), the default of `ComfyUI`. Its labels
//! are padded, and the device number is printed as a character.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[row!(
    "torch.async",
    "pytorch",
    Gpu,
    Unknown,
    [
        "Allocation on device",
        "would exceed allowed memory",
        "Currently allocated",
        "Free (according to CUDA)",
        "Device limit"
    ],
    "Allocation on device ⟦<dev:int>⟧⟦would exceed allowed memory. (out of memory)⟧\
     ⟦Currently allocated : <alloc:size>⟧⟦Requested : <req:size>⟧⟦Device limit : <total:size>⟧\
     ⟦Free (according to CUDA): <free:size>⟧\
     ⟦PyTorch limit (set by user-supplied memory fraction) : <allowed:size>⟧",
    "the driver's asynchronous pool could not get memory from the device"
)];
