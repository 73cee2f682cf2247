//! Cases of what one step takes: the batch, and activations.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::{Case, case};
use vramlens::analyze::View;
use vramlens::sample::{Reading, Why};

const BATCH: &str = "batch";
const AGAIN: &str = "checkpointing";

pub fn cases() -> Vec<Case> {
    let mut all = batch();
    all.extend(batch_untold());
    all.extend(checkpointing());
    all
}

/// Up and down by 40 GiB.
fn swings() -> View {
    view(on(705), allocator(trainer(), torch(200, 700, 600)))
}

fn batch() -> Vec<Case> {
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
    ]
}

fn batch_untold() -> Vec<Case> {
    vec![
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
    ]
}

fn checkpointing() -> Vec<Case> {
    vec![
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
