//! Cases of a cache in pieces, and of one that can be given back.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::{Case, case};
use vramlens::sample::{AllocatorBackend, AllocatorDevice, Reading, Why};
use vramlens::units::Bytes;

const RULE: &str = "fragmentation";

pub fn cases() -> Vec<Case> {
    let mut all = fragmentation();
    all.extend(fragmentation_by_room());
    all.extend(fragmentation_clear());
    all.extend(fragmentation_untold());
    all
}

/// 70 GiB reserved, 48 allocated.
fn cached() -> AllocatorDevice {
    torch(480, 700, 480)
}

fn fragmentation() -> Vec<Case> {
    vec![
        case(
            RULE,
            "a cache in small blocks",
            || view(on(705), allocator(trainer(), pieces(cached(), 0))),
            Hit(
                "500 caches 22.0 GiB, largest free block 64 MiB",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                [219, 221],
            ),
        ),
        case(
            RULE,
            "expandable segments are on: no bytes are promised",
            || {
                let mut device = pieces(cached(), 0);
                device.expandable_segments = Reading::Value(true);
                view(on(705), allocator(trainer(), device))
            },
            Hit("500 caches 22.0 GiB, largest free block 64 MiB", "sort or bucket", [0, 0]),
        ),
        case(
            RULE,
            "they are set in the environment",
            || {
                let conf = "garbage_collection_threshold:0.8,expandable_segments:True";
                let conf = [("PYTORCH_CUDA_ALLOC_CONF", conf)];
                let process = with_env(trainer(), &conf);
                view(on(705), allocator(process, pieces(cached(), 0)))
            },
            Hit("500 caches 22.0 GiB, largest free block 64 MiB", "sort or bucket", [0, 0]),
        ),
        case(
            RULE,
            "whether expandable segments are on is not known: no bytes are promised",
            || {
                let mut device = pieces(cached(), 0);
                device.expandable_segments = Reading::Absent(Why::UnknownLayout);
                let mut process = allocator(trainer(), device);
                process.environment = None;
                view(on(705), process)
            },
            Hit(
                "500 caches 22.0 GiB, largest free block 64 MiB",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                [0, 0],
            ),
        ),
    ]
}

fn fragmentation_by_room() -> Vec<Case> {
    vec![
        case(
            RULE,
            "only a cache, on a full GPU",
            || view(tight(705, 10), allocator(trainer(), blocks(cached(), Bytes::gib(11), 220))),
            Hit("500 only caches 22.0 GiB while the GPU is full", "gc.collect()", [219, 221]),
        ),
        case(
            RULE,
            "a cache in large blocks, on a GPU with room",
            || view(on(705), allocator(trainer(), blocks(cached(), Bytes::gib(11), 220))),
            Clear,
        ),
        case(
            RULE,
            "a full GPU, and how much can be given back is not known",
            || view(tight(705, 10), allocator(trainer(), unsure(Bytes::gib(11)))),
            CannotTell("500 caches 22.0 GiB; how much of it can be given back is not known"),
        ),
        case(
            RULE,
            "the same on a GPU with room",
            || view(on(705), allocator(trainer(), unsure(Bytes::gib(11)))),
            Clear,
        ),
        case(
            RULE,
            "the same in small blocks: what comes back is not promised at the least",
            || view(tight(705, 10), allocator(trainer(), unsure(Bytes::mib(64)))),
            Hit(
                "500 caches 22.0 GiB, largest free block 64 MiB",
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                [219, 221],
            ),
        ),
    ]
}

fn fragmentation_clear() -> Vec<Case> {
    vec![
        case(
            RULE,
            "a small cache",
            || view(on(705), allocator(trainer(), pieces(torch(680, 700, 690), 0))),
            Clear,
        ),
        case(
            RULE,
            "another allocator",
            || {
                let mut process = allocator(trainer(), cached());
                if let Some(Reading::Value(sample)) = &mut process.allocator {
                    sample.backend = AllocatorBackend::CudaMallocAsync;
                }
                view(on(705), process)
            },
            Clear,
        ),
    ]
}

fn fragmentation_untold() -> Vec<Case> {
    vec![
        case(RULE, "not read yet", || view(on(705), trainer()), NotYet("has not been read yet")),
        case(
            RULE,
            "no right to read it",
            || view(on(705), no_allocator(trainer(), Why::NoPermission)),
            CannotTell("no permission"),
        ),
        case(
            RULE,
            "only totals are known",
            || view(on(705), allocator(trainer(), cached())),
            CannotTell("how it is cut is not known"),
        ),
        case(RULE, "no driver yet", nothing, NotYet("the driver has not answered")),
        case(
            RULE,
            "a GPU that does not tell its memory",
            || {
                let device = blocks(cached(), Bytes::gib(11), 220);
                view(untold(on(705)), allocator(trainer(), device))
            },
            CannotTell("the memory of GPU 0 is not known"),
        ),
        case(
            RULE,
            "pools of CUDA graphs that are not told",
            || {
                let mut device = pieces(cached(), 0);
                if let Reading::Value(free) = &mut device.free {
                    free.private_bytes = None;
                }
                view(on(705), allocator(trainer(), device))
            },
            CannotTell("in pools of CUDA graphs is not known"),
        ),
        case(
            RULE,
            "an allocator that has no device yet",
            || {
                let mut process = allocator(trainer(), cached());
                if let Some(Reading::Value(sample)) = &mut process.allocator {
                    sample.devices.clear();
                }
                view(on(705), process)
            },
            NotYet("has no device yet"),
        ),
        case(
            RULE,
            "another GPU does not say who is on it",
            || beside_blind(on(705), allocator(trainer(), pieces(torch(680, 700, 690), 0))),
            CannotTell("who is on GPU 1: not supported"),
        ),
    ]
}

/// All that is cached lies in blocks of this size; which are whole segments is not known.
fn unsure(size: Bytes) -> AllocatorDevice {
    let mut device = blocks(cached(), size, 0);
    if let Reading::Value(free) = &mut device.free {
        free.releasable = None;
    }
    device
}
