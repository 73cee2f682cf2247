//! Other faults that are taken for a shortage of memory.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "other.assert",
        "pytorch",
        Cause,
        Unknown,
        ["device-side assert triggered"],
        "device-side assert triggered",
        "an index or a label is out of range in a kernel"
    ),
    row!(
        "other.assertion",
        "pytorch",
        Cause,
        Unknown,
        ["Assertion `"],
        "Assertion ` … ` failed",
        "an index or a label is out of range in a kernel"
    ),
    row!(
        "other.illegal",
        "pytorch",
        Cause,
        Unknown,
        ["illegal memory access"],
        "an illegal memory access was encountered",
        "a kernel read or wrote outside its memory; that is a fault of a program"
    ),
    row!(
        "other.misaligned",
        "pytorch",
        Cause,
        Unknown,
        ["misaligned address"],
        "misaligned address",
        "a kernel read a misaligned address; that is a fault of a program"
    ),
    row!(
        "other.launch",
        "pytorch",
        Cause,
        Unknown,
        ["unspecified launch failure"],
        "unspecified launch failure",
        "a kernel failed; that is a fault of a program or of the hardware"
    ),
    row!(
        "other.image",
        "pytorch",
        Other,
        Unknown,
        ["no kernel image is available"],
        "no kernel image is available",
        "the program was not built for this GPU"
    ),
    row!(
        "other.registers",
        "any",
        Other,
        Unknown,
        ["too many resources requested for launch"],
        "too many resources requested for launch",
        "a kernel wants more registers or on-chip memory than the GPU has"
    ),
    row!(
        "other.busy",
        "any",
        Other,
        Unknown,
        ["busy or unavailable"],
        "CUDA-capable device(s) is/are busy or unavailable",
        "the device is in exclusive mode and in use, or faulty"
    ),
    row!(
        "other.driver_old",
        "any",
        Cause,
        Unknown,
        ["driver version is insufficient"],
        "CUDA driver version is insufficient",
        "the driver is older than the program needs"
    ),
    row!(
        "other.driver_too_old",
        "any",
        Cause,
        Unknown,
        ["driver on your system is too old"],
        "driver on your system is too old",
        "the driver is older than the program needs"
    ),
    row!(
        "other.library",
        "any",
        Cause,
        Unknown,
        ["Could not load library lib"],
        "Could not load library lib",
        "a library of CUDA is missing or does not match"
    ),
    row!(
        "other.shared_object",
        "any",
        Cause,
        Unknown,
        ["cannot open shared object file"],
        "cannot open shared object file",
        "a library is missing"
    ),
    row!(
        "other.tls",
        "any",
        Other,
        Unknown,
        ["in static TLS block"],
        "cannot allocate memory in static TLS block",
        "the loader has no room for thread-local data; loading the library first helps"
    ),
    row!(
        "other.nvenc",
        "ffmpeg",
        Other,
        Unknown,
        ["OpenEncodeSessionEx failed"],
        "OpenEncodeSessionEx failed: out of memory",
        "the driver allows no more encoding sessions; VRAM has nothing to do with it"
    ),
    row!(
        "other.cl",
        "any",
        Other,
        Unknown,
        ["CL_OUT_OF_RESOURCES"],
        "CL_OUT_OF_RESOURCES",
        "OpenCL gave up on a kernel: often a time limit, or too many registers"
    ),
    row!(
        "other.address_space",
        "pytorch",
        Other,
        Unknown,
        ["[ExpandableSegmentVA]"],
        "[ExpandableSegmentVA] Failed to reserve",
        "address space could not be reserved; VRAM has nothing to do with it"
    ),
    row!(
        "other.exabyte",
        "pytorch",
        Other,
        Unknown,
        ["more than 1EB memory"],
        "CUDA out of memory. Tried to allocate more than 1EB memory",
        "the size of a tensor overflowed: a fault of the program"
    ),
    row!(
        "other.disk",
        "any",
        Other,
        Unknown,
        ["No space left on device"],
        "No space left on device",
        "a disk is full"
    ),
    row!(
        "other.ecc",
        "any",
        Other,
        Unknown,
        ["uncorrectable ECC error"],
        "uncorrectable ECC error",
        "the memory of the GPU is faulty"
    ),
    row!(
        "other.xid",
        "any",
        Other,
        Unknown,
        ["NVRM: Xid"],
        "NVRM: Xid (",
        "the driver reports a fault of the GPU or of a program"
    ),
    row!(
        "other.fallen_off",
        "any",
        Other,
        Unknown,
        ["fallen off the bus"],
        "fallen off the bus",
        "the driver lost the GPU"
    ),
    row!(
        "other.hami",
        "any",
        Detail,
        Unknown,
        ["allocator.c:"],
        "allocator.c: … Device <x:int> OOM <x:int> / <allowed:int>",
        "a limit that the container was given"
    ),
    row!(
        "other.map_count",
        "any",
        Detail,
        Unknown,
        ["vm.max_map_count"],
        "vm.max_map_count=<x:int>",
        "the limit of memory maps of the host"
    ),
];
