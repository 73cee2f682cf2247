//! Machines whose GPU has no memory of its own: what the rules make of the host's.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::verdict_support::{T0, gpu_tick, host, init, moment, proc_tick};
use crate::{Case, case};
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::sample::*;

pub fn cases() -> Vec<Case> {
    let mut all = growth();
    all.extend(offload());
    all.extend(preallocated());
    all
}

/// The driver of a GB10: no memory, and the bytes of its processes.
fn gb10(tenths: u64) -> GpuSample {
    untold(on(tenths))
}

/// The machine of 80 GiB, after so many seconds in which each look shows this: what 500 holds and what
/// is available, in tenths of a GiB. Nothing is available to a look that cannot read it.
fn watched(seconds: u64, process: &ProcSample, at: impl Fn(u64) -> (u64, Option<u64>)) -> View {
    let mut history = History::new();
    for second in 0..=seconds {
        let ((held, available), now) = (at(second), T0 + second * 1_000);
        let memory = available.map(|tenths| HostMemory { total: g(800), available: g(tenths) });
        let host = HostFacts { memory, ..host() };
        history.push(&gpu_tick(now, vec![gb10(held)]));
        history.push(&proc_tick(now + 100, host, vec![init(), process.clone()]));
    }
    View::build(&history, &moment(T0 + seconds * 1_000 + 200))
}

fn held(process: &ProcSample, tenths: u64, available: u64) -> View {
    watched(3, process, |_| (tenths, Some(available)))
}

/// The kernel's word is missing.
fn unread(process: &ProcSample, tenths: u64) -> View {
    watched(3, process, |_| (tenths, None))
}

fn growth() -> Vec<Case> {
    const RULE: &str = "growth";
    vec![
        case(
            RULE,
            "a process that takes of the host's memory",
            || {
                let process = runs("python train.py --lr 1");
                watched(120, &process, |second| (200 + second, Some(630 - second)))
            },
            Hit("500 grows 6.0 GiB a minute: full in 8m", "", [0, 0]),
        ),
        case(
            RULE,
            "programs on the processor that take of it",
            || {
                let process = runs("python train.py --lr 1");
                watched(120, &process, |second| (200, Some(630 - second)))
            },
            Hit("host memory fills by 6.0 GiB a minute: full in 8m", "", [0, 0]),
        ),
        case(
            RULE,
            "shared memory that nobody takes of",
            || watched(120, &runs("python train.py --lr 1"), |_| (200, Some(500))),
            Clear,
        ),
        case(
            RULE,
            "shared memory that was not watched for long",
            || held(&runs("python train.py --lr 1"), 200, 500),
            NotYet("watched for long"),
        ),
        case(
            RULE,
            "shared memory of which the kernel does not tell",
            || steady(watched(120, &runs("python train.py --lr 1"), |_| (200, None))),
            Clear,
        ),
        case(
            RULE,
            "a process that grows while the kernel does not tell what is left",
            || watched(120, &runs("python train.py --lr 1"), |second| (200 + second, None)),
            CannotTell("what is free there is not known"),
        ),
    ]
}

fn offload() -> Vec<Case> {
    const RULE: &str = "offload";
    const FILE: &str = "/models/m.gguf";
    vec![
        case(
            RULE,
            "layers on the processor although there is room",
            || {
                let process = runs("llama-server -m /models/m.gguf -c 8192 -ngl 20");
                knows(held(&process, 100, 600), FILE, model("8B"))
            },
            Hit("500 has room for 13 layers more", "-ngl 33", [0, 0]),
        ),
        case(
            RULE,
            "shared memory that is full: what moves to the processor stays in it",
            || {
                let process = runs("llama-server -m /models/m.gguf -c 32768");
                knows(held(&process, 200, 2), FILE, model("8B"))
            },
            Clear,
        ),
        case(
            RULE,
            "a pipeline in shared memory that is full",
            || {
                let command = "python make.py --pretrained_vae_model_name_or_path m/x";
                held(&runs(command), 200, 2)
            },
            Clear,
        ),
        case(
            RULE,
            "layers in shared memory of which the kernel does not tell",
            || {
                let process = runs("llama-server -m /models/m.gguf -c 8192 -ngl 20");
                knows(unread(&process, 100), FILE, model("8B"))
            },
            CannotTell("the memory of GPU 0 is not known"),
        ),
    ]
}

fn preallocated() -> Vec<Case> {
    const RULE: &str = "preallocated";
    const JAX: &str = "python -m maxtext.train run";
    vec![
        case(
            RULE,
            "three quarters of the host's memory",
            || held(&runs(JAX), 600, 150),
            Hit("500 holds 60.0 GiB by design: JAX", "XLA_PYTHON_CLIENT_PREALLOCATE=false", [0, 0]),
        ),
        case(RULE, "little of the host's memory", || held(&runs(JAX), 20, 700), Clear),
        case(
            RULE,
            "a share of memory of which the kernel does not tell",
            || unread(&runs(JAX), 600),
            CannotTell("the memory of GPU 0 is not known"),
        ),
    ]
}
