//! Cases of memory that grows.

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::{Case, case};
use vramlens::analyze::Growth;
use vramlens::sample::{Reading, Why};

const RULE: &str = "growth";

pub fn cases() -> Vec<Case> {
    let mut all = growth();
    all.extend(growth_without_a_line());
    all.extend(growth_not_yet());
    all.extend(growth_untold());
    all
}

fn growth() -> Vec<Case> {
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
                view.gpus[0].allocated_growth = Growth::Steady;
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
    ]
}

fn growth_without_a_line() -> Vec<Case> {
    vec![
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
            "what grows is not known: no line that would be a guess",
            || {
                let mut view = growing(
                    view(on(505), allocator(trainer(), torch(480, 500, 490))),
                    10,
                    Some(30),
                );
                view.gpus[0].allocated_growth = Growth::NotYet;
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
    ]
}

fn growth_not_yet() -> Vec<Case> {
    vec![
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
            "a process that is steady on a GPU that was not watched for long",
            || {
                let mut view = steady(view(on(505), trainer()));
                view.gpus[0].growth = Growth::NotYet;
                view
            },
            NotYet("GPU 0 has not been watched for long"),
        ),
    ]
}

fn growth_untold() -> Vec<Case> {
    vec![
        case(
            RULE,
            "a steady process on a GPU that does not tell its memory",
            || {
                let mut view = steady(view(untold(on(505)), trainer()));
                view.gpus[0].growth = Growth::NotYet;
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
