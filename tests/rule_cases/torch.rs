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
    ]
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
            "full only in two days",
            || growing(view(on(505), trainer()), 1, Some(2880)),
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
