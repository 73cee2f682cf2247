//! Cases of the desktop, of shares taken in advance, of slices and quotas, of no caching.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::verdict_support::{
    GIB, cuda, gpu, host, init, memory, process, row, watched, with_rows,
};
use crate::{Case, case};
use vramlens::analyze::View;
use vramlens::ids::GpuUuid;
use vramlens::sample::*;

pub fn cases() -> Vec<Case> {
    let mut all = consumers();
    all.extend(preallocated());
    all.extend(preallocated_untold());
    all.extend(slices());
    all.extend(caching());
    all
}

/// A desktop: the display server, a browser, a chat program.
fn desktop(known: bool) -> View {
    let programs = [(600, "Xorg", 3), (601, "firefox", 8), (602, "Discord", 4)];
    let rows = programs.iter().map(|(pid, _, tenths)| {
        let mut row = row(*pid, g(*tenths).0);
        row.kinds = ProcKinds { graphics: true, ..ProcKinds::default() };
        if !known {
            row.used = Reading::Absent(Why::NotSupported);
        }
        row
    });
    let gpu = with_rows(gpu(0), rows.collect());
    let mut procs: Vec<_> =
        programs.iter().map(|(pid, name, _)| cuda(process(*pid, name), &[0])).collect();
    procs.push(init());
    watched(3, &[gpu], &host(), &procs).1
}

fn consumers() -> Vec<Case> {
    const RULE: &str = "consumers";
    vec![
        case(
            RULE,
            "a desktop: the display server stays",
            || desktop(true),
            Hit("3 desktop programs hold 1.5 GiB on GPU 0", "close browsers", [11, 13]),
        ),
        case(RULE, "a server", || view(on(100), runs("python train.py --lr 1")), Clear),
        case(RULE, "no driver yet", nothing, NotYet("the driver has not answered")),
        case(RULE, "bytes that are not told", || desktop(false), CannotTell("does not tell")),
        case(
            RULE,
            "one whose bytes are told, and little",
            || {
                let mut view = desktop(false);
                view.holders[0].bytes = Reading::Value(g(1));
                view
            },
            CannotTell("does not tell what the desktop's programs hold on GPU 0"),
        ),
        case(
            RULE,
            "another GPU does not say who is on it",
            || beside_blind(on(100), runs("python train.py --lr 1")),
            CannotTell("who is on GPU 1"),
        ),
    ]
}

const JAX: &str = "python -m maxtext.train run";

const PREALLOCATED: &str = "preallocated";
const FOLDER: &str = "/models/llama";

fn preallocated() -> Vec<Case> {
    vec![
        case(
            PREALLOCATED,
            "JAX with three quarters",
            || view(on(600), runs(JAX)),
            Hit("500 holds 60.0 GiB by design: JAX", "XLA_PYTHON_CLIENT_PREALLOCATE=false", [0, 0]),
        ),
        case(
            PREALLOCATED,
            "vLLM whose weights are known",
            || {
                let command = "vllm serve /models/llama --gpu-memory-utilization 0.85";
                knows(view(on(680), runs(command)), FOLDER, model("8B"))
            },
            Hit("500 holds 68.0 GiB by design: vLLM", "--gpu-memory-utilization 0.5", [240, 270]),
        ),
        case(
            PREALLOCATED,
            "vLLM whose weights are not known",
            || view(on(700), runs("vllm serve meta/x")),
            Hit("500 holds 70.0 GiB by design: vLLM", "--gpu-memory-utilization 0.50", [0, 0]),
        ),
        case(
            PREALLOCATED,
            "JAX that was told not to",
            || {
                let off = [("XLA_PYTHON_CLIENT_PREALLOCATE", "false")];
                view(on(600), with_env(runs(JAX), &off))
            },
            Clear,
        ),
        case(PREALLOCATED, "JAX that holds little", || view(on(20), runs(JAX)), Clear),
    ]
}

fn preallocated_untold() -> Vec<Case> {
    vec![
        case(
            PREALLOCATED,
            "a server that is still loading",
            || {
                let mut view = view(on(700), runs("vllm serve meta/x"));
                view.holders[0].age_ms = Reading::Value(5_000);
                view
            },
            NotYet("still loading"),
        ),
        case(
            PREALLOCATED,
            "a GPU that does not tell its memory",
            || view(untold(on(600)), runs(JAX)),
            CannotTell("the memory of GPU 0 is not known"),
        ),
        case(
            PREALLOCATED,
            "arguments that may not be read",
            || view(on(600), mute()),
            CannotTell("the command line of 500: no permission"),
        ),
        case(
            PREALLOCATED,
            "an environment that was not read",
            || {
                let mut process = runs(JAX);
                process.environment = Some(Reading::Absent(Why::NoPermission));
                view(on(600), process)
            },
            CannotTell("environment of 500 was not read"),
        ),
    ]
}

/// 500 in a slice of 20 GiB of which so many tenths are free.
fn slice(free: u64) -> View {
    let mut card = gpu(1);
    card.mig_enabled = Reading::Value(true);
    let mut mig = with_rows(gpu(0), vec![row(PID, g(200 - free).0)]);
    mig.uuid = GpuUuid::new("MIG-1");
    mig.memory = Reading::Value(memory(20 * GIB, g(200 - free).0, 0));
    mig.mig = Some(MigInfo {
        parent: card.uuid.clone(),
        gpu_instance: Reading::Value(1),
        compute_instance: Reading::Value(0),
    });
    watched(3, &[card, mig], &host(), &[init(), runs("python train.py --lr 1")]).1
}

fn client(environment: Option<Reading<Vec<EnvVar>>>) -> View {
    let mut gpu = on(95);
    if let Reading::Value(rows) = &mut gpu.processes {
        rows[0].kinds.mps = true;
    }
    let mut process = runs("./simulate");
    process.environment = environment;
    view(gpu, process)
}

fn quota(value: &str) -> View {
    let name = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT".to_owned();
    client(Some(Reading::Value(vec![EnvVar { name, value: value.to_owned() }])))
}

fn slices() -> Vec<Case> {
    const RULE: &str = "mig_limit";
    vec![
        case(
            RULE,
            "a full slice",
            || slice(1),
            Hit("500 fills its slice of 20.0 GiB, not the card", "nvidia-smi mig -lgip", [0, 0]),
        ),
        case(
            RULE,
            "a quota of MPS",
            || quota("0=10G"),
            Hit(
                "500 holds 9.5 GiB of its quota of 10.0 GiB",
                "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M",
                [0, 0],
            ),
        ),
        case(RULE, "a slice with room", || slice(100), Clear),
        case(
            RULE,
            "a slice that does not tell its memory",
            || {
                let mut view = slice(1);
                view.gpus[1].sample.memory = Reading::Absent(Why::NotSupported);
                view
            },
            CannotTell("the memory of GPU 0:1 is not known"),
        ),
        case(
            RULE,
            "a full slice that does not tell what 500 holds",
            || bytes_untold(slice(1)),
            CannotTell("does not tell what 500 holds"),
        ),
        case(RULE, "a quota that is far", || quota("0=40G"), Clear),
        case(RULE, "a client whose environment is not read", || client(None), NotYet("yet")),
        case(RULE, "a quota that is no size", || quota("lots"), CannotTell("cannot be read")),
        case(
            RULE,
            "no right to read the environment",
            || client(Some(Reading::Absent(Why::NoPermission))),
            CannotTell("may set a quota"),
        ),
    ]
}

fn caching() -> Vec<Case> {
    const RULE: &str = "no_caching";
    const NAME: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";
    vec![
        case(
            RULE,
            "left on",
            || view(on(100), with_env(runs("python train.py --lr 1"), &[(NAME, "1")])),
            Hit("500 runs without the caching allocator", "unset PYTORCH_NO_CUDA", [0, 0]),
        ),
        case(RULE, "not set", || view(on(100), runs("python train.py --lr 1")), Clear),
        case(RULE, "not PyTorch", || view(on(100), runs("./simulate")), Clear),
        case(
            RULE,
            "no name of Python, and arguments that may not be read",
            || {
                let mut process = mute();
                "worker".clone_into(&mut process.comm);
                view(on(100), process)
            },
            CannotTell("the command line of 500: no permission"),
        ),
        case(
            RULE,
            "not read yet",
            || {
                let mut process = runs("python train.py --lr 1");
                process.environment = None;
                view(on(100), process)
            },
            NotYet("has not been read yet"),
        ),
        case(
            RULE,
            "no right to read it",
            || {
                let mut process = runs("python train.py --lr 1");
                process.environment = Some(Reading::Absent(Why::NoPermission));
                view(on(100), process)
            },
            CannotTell("no permission"),
        ),
        case(
            RULE,
            "set to 0",
            || view(on(100), with_env(runs("python train.py --lr 1"), &[(NAME, "0")])),
            Hit("500 runs without the caching allocator", "unset PYTORCH_NO_CUDA", [0, 0]),
        ),
    ]
}

#[test]
fn programs_whose_bytes_are_not_told_are_counted_in_a_whole_sentence() {
    let told = |told: usize| -> Vec<String> {
        let mut view = desktop(true);
        for holder in view.holders.iter_mut().skip(told) {
            holder.bytes = Reading::Absent(Why::NotSupported);
        }
        let found = vramlens::rules::run(&view);
        found.into_iter().find(|finding| finding.rule == "consumers").unwrap().evidence
    };
    let firefox = "601 firefox 819 MiB";
    assert_eq!(told(3).len(), 3);
    let one = "1 more holds an amount that the driver does not tell";
    assert_eq!(told(2), [firefox, "600 Xorg 307 MiB", one]);
    let two = "2 more hold amounts that the driver does not tell";
    assert_eq!(told(1), ["600 Xorg 307 MiB", two]);
}
