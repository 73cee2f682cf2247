//! Cases of rules about PyTorch's allocator, steps, and growth.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::{Case, case};
use vramlens::sample::{AllocatorBackend, ProcSample, Reading, Why};
use vramlens::units::Bytes;

pub fn cases() -> Vec<Case> {
    let mut all = fragmentation();
    all.extend(steps());
    all.extend(growth());
    all
}

const SCRIPT: &str = "python train.py --lr 1e-4 --batch_size 16 --gradient_accumulation_steps 2";

fn trainer() -> ProcSample {
    runs(SCRIPT)
}

/// 70 GiB reserved, 48 allocated.
fn cached() -> vramlens::sample::AllocatorDevice {
    torch(480, 700, 480)
}

fn fragmentation() -> Vec<Case> {
    const RULE: &str = "fragmentation";
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
fn unsure(size: Bytes) -> vramlens::sample::AllocatorDevice {
    let mut device = blocks(cached(), size, 0);
    if let Reading::Value(free) = &mut device.free {
        free.releasable = None;
    }
    device
}

fn steps() -> Vec<Case> {
    const BATCH: &str = "batch";
    const AGAIN: &str = "checkpointing";
    let swings = || view(on(705), allocator(trainer(), torch(200, 700, 600)));
    vec![
        case(
            BATCH,
            "a training run that swings by 40 GiB",
            swings,
            Hit(
                "500 takes up to 40.0 GiB for one step",
                "per_device_train_batch_size=8, gradient_accumulation_steps=4",
                [190, 210],
            ),
        ),
        case(
            BATCH,
            "one sample: only a shorter one helps",
            || {
                let process = runs("python train.py --lr 1e-4 --batch_size 1");
                view(on(705), allocator(process, torch(200, 700, 600)))
            },
            Hit("500 takes up to 40.0 GiB for one step", "halve the batch", [190, 210]),
        ),
        case(
            BATCH,
            "diffusion",
            || {
                let process = runs("python /opt/ComfyUI/main.py --preview-method auto");
                view(on(705), allocator(process, torch(200, 700, 600)))
            },
            Hit("500 takes up to 40.0 GiB for one step", "VAE Decode (Tiled)", [190, 210]),
        ),
        case(
            BATCH,
            "a server of texts",
            || {
                let process = runs("vllm serve meta/x");
                view(on(705), allocator(process, torch(200, 700, 600)))
            },
            Clear,
        ),
        case(
            BATCH,
            "weights, not activations",
            || view(on(705), allocator(trainer(), torch(600, 700, 650))),
            Clear,
        ),
        case(
            BATCH,
            "nothing allocated so far",
            || view(on(5), allocator(trainer(), torch(0, 1, 0))),
            NotYet("has allocated nothing yet"),
        ),
        case(
            BATCH,
            "no right to read it",
            || view(on(705), no_allocator(trainer(), Why::NoPermission)),
            CannotTell("no permission"),
        ),
        case(
            BATCH,
            "arguments that may not be read",
            || view(on(705), mute()),
            CannotTell("the command line of 500: no permission"),
        ),
        case(
            BATCH,
            "PyTorch by its name, and arguments that may not be read",
            || {
                let mut process = allocator(mute(), torch(200, 700, 600));
                "pt_main_thread".clone_into(&mut process.comm);
                process.model_files = vec!["/models/x/model.safetensors".to_owned()];
                view(on(705), process)
            },
            CannotTell("no permission"),
        ),
        case(
            AGAIN,
            "arguments that may not be read",
            || view(on(705), mute()),
            CannotTell("whether 500 trains: no permission"),
        ),
        case(
            AGAIN,
            "a training run that swings by 40 GiB",
            swings,
            Hit(
                "500 trains, activations about 40.0 GiB",
                "gradient_checkpointing=True",
                [270, 290],
            ),
        ),
        case(
            AGAIN,
            "it is on already",
            || {
                let process = runs("python train.py --lr 1 --gradient_checkpointing");
                view(on(705), allocator(process, torch(200, 700, 600)))
            },
            Clear,
        ),
        case(
            AGAIN,
            "inference",
            || {
                let process = runs("python generate.py --model_id m/x");
                view(on(705), allocator(process, torch(200, 700, 600)))
            },
            Clear,
        ),
        case(AGAIN, "not read yet", || view(on(705), trainer()), NotYet("not been read yet")),
        case(
            AGAIN,
            "no peak",
            || {
                let mut device = torch(200, 700, 600);
                device.peak_allocated = Reading::Absent(Why::UnknownLayout);
                view(on(705), allocator(trainer(), device))
            },
            CannotTell("does not tell its peak"),
        ),
    ]
}

fn growth() -> Vec<Case> {
    const RULE: &str = "growth";
    vec![
        case(
            RULE,
            "a leak that fills the GPU in half an hour",
            || growing(view(on(505), allocator(trainer(), torch(480, 500, 490))), 10, Some(30)),
            Hit("500 grows 1.0 GiB a minute: full in 30m", "keep numbers, not tensors", [0, 0]),
        ),
        case(
            RULE,
            "the cache grows, what is allocated does not",
            || {
                let device = torch(200, 500, 490);
                let mut view = growing(view(on(505), allocator(trainer(), device)), 10, Some(30));
                view.gpus[0].allocated_growth = vramlens::analyze::Growth::Steady;
                view
            },
            Hit("500 grows 1.0 GiB a minute: full in 30m", "PYTORCH_CUDA_ALLOC_CONF", [0, 0]),
        ),
        case(
            RULE,
            "a generation whose cache grows",
            || {
                let process =
                    allocator(runs("python chat.py --model_id m/x"), torch(480, 500, 490));
                growing(view(on(505), process), 10, Some(5))
            },
            Hit("500 grows 1.0 GiB a minute: full in 5m", "model.generate(", [0, 0]),
        ),
        case(
            RULE,
            "a server with a fixed pool",
            || growing(view(on(505), runs("vllm serve m/x")), 10, Some(30)),
            Hit("500 grows 1.0 GiB a minute: full in 30m", "", [0, 0]),
        ),
        case(
            RULE,
            "a GPU that fills, and no process that does",
            || {
                let mut view = steady(growing(view(on(505), trainer()), 10, Some(30)));
                view.gpus[0].growth = view.gpus[0].allocated_growth;
                view
            },
            Hit("GPU 0 fills by 1.0 GiB a minute: full in 30m", "", [0, 0]),
        ),
        case(RULE, "steady", || steady(view(on(505), trainer())), Clear),
        case(
            RULE,
            "a process that is steady on a GPU that was not watched for long",
            || {
                let mut view = steady(view(on(505), trainer()));
                view.gpus[0].growth = vramlens::analyze::Growth::NotYet;
                view
            },
            NotYet("GPU 0 has not been watched for long"),
        ),
        case(
            RULE,
            "the same on a GPU that does not tell its memory",
            || {
                let mut view = steady(view(untold(on(505)), trainer()));
                view.gpus[0].growth = vramlens::analyze::Growth::NotYet;
                view
            },
            CannotTell("the memory of GPU 0 is not known"),
        ),
        case(
            RULE,
            "a steady server that does not answer: its cache may be full",
            || {
                let mut process = runs("vllm serve m/x");
                process.server = Some(Reading::Absent(Why::NoPermission));
                steady(view(on(505), process))
            },
            CannotTell("whether 500's cache is full: no permission"),
        ),
        case(
            RULE,
            "what grows is not known: no line that would be a guess",
            || {
                let mut view = growing(
                    view(on(505), allocator(trainer(), torch(480, 500, 490))),
                    10,
                    Some(30),
                );
                view.gpus[0].allocated_growth = vramlens::analyze::Growth::NotYet;
                view
            },
            Hit("500 grows 1.0 GiB a minute: full in 30m", "", [0, 0]),
        ),
        case(
            RULE,
            "full only in two days",
            || {
                let mut view = growing(view(on(505), trainer()), 1, Some(2880));
                view.gpus[0].growth = view.gpus[0].allocated_growth;
                view
            },
            Clear,
        ),
        case(RULE, "too few samples", || view(on(505), trainer()), NotYet("watched for long")),
        case(
            RULE,
            "it has only just started",
            || {
                let mut view = growing(view(on(505), trainer()), 100, Some(5));
                view.holders[0].age_ms = Reading::Value(60_000);
                view
            },
            NotYet("only just started"),
        ),
        case(
            RULE,
            "bytes that the driver does not tell",
            || {
                let mut view = view(on(505), trainer());
                view.holders[0].bytes = Reading::Absent(Why::NotSupported);
                view
            },
            CannotTell("does not tell what 500 holds"),
        ),
        case(
            RULE,
            "free memory that is not known",
            || growing(view(on(505), trainer()), 10, None),
            CannotTell("what is free there is not known"),
        ),
    ]
}
