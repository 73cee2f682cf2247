//! A view that keeps what has not changed is the view that is built from nothing.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "bench/machine.rs"]
mod machine;

use std::sync::Arc;

use machine::{Machine, moment};
use proptest::prelude::*;
use vramlens::analyze::xid::{self, XidSeen};
use vramlens::analyze::{Kept, Ledger, View};
use vramlens::history::History;
use vramlens::ids::{Pid, Stamp};
use vramlens::rules;
use vramlens::sample::*;
use vramlens::units::{Bytes, Percent};

const PROCESSES: usize = 6;

/// What happens to a process from one second to the next.
#[derive(Debug, Clone)]
enum Change {
    Nothing,
    Works,
    Runs(usize),
    IsRenamed(&'static str),
    OpensModel(bool),
    HasVariable(bool),
    HasParent(usize),
    AllocatorRead(bool),
    IsReplaced,
    IsAway,
}

const COMMANDS: [&[&str]; 5] = [
    &["python3", "train.py", "--learning_rate", "2e-5"],
    &["vllm", "serve", "/models/a"],
    &["/usr/bin/llama-server", "-m", "/models/b.gguf", "-c", "4096"],
    &["VLLM::EngineCore"],
    &[],
];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Nothing),
        2 => Just(Change::Works),
        2 => (0..COMMANDS.len()).prop_map(Change::Runs),
        1 => prop_oneof![Just("python3"), Just("VLLM::EngineCor"), Just("ollama")]
            .prop_map(Change::IsRenamed),
        1 => any::<bool>().prop_map(Change::OpensModel),
        1 => any::<bool>().prop_map(Change::HasVariable),
        1 => (0..PROCESSES).prop_map(Change::HasParent),
        1 => any::<bool>().prop_map(Change::AllocatorRead),
        1 => Just(Change::IsReplaced),
        1 => Just(Change::IsAway),
    ]
}

fn apply(process: &mut ProcSample, change: &Change) {
    let first = 1_000_u32;
    match change {
        Change::Nothing | Change::IsAway => {}
        Change::Works => process.cpu_ticks += 7,
        Change::Runs(n) => {
            let words = COMMANDS[*n].iter().map(|&word| word.to_owned()).collect();
            process.cmdline = Reading::Value(words);
        }
        Change::IsRenamed(name) => (*name).clone_into(&mut process.comm),
        Change::OpensModel(open) => {
            let file = "/models/ollama/blobs/c.gguf".to_owned();
            process.model_files = if *open { vec![file] } else { Vec::new() };
        }
        Change::HasVariable(has) => {
            let variable = EnvVar { name: "VLLM_PORT".to_owned(), value: "8000".to_owned() };
            let variables = if *has { vec![variable] } else { Vec::new() };
            process.environment = Some(Reading::Value(variables));
        }
        Change::HasParent(n) => process.parent = Pid(first + *n as u32),
        Change::AllocatorRead(read) => {
            process.allocator = Some(Reading::Absent(Why::NotYet));
            if *read {
                process.allocator = Some(Reading::Value(allocator()));
            }
        }
        Change::IsReplaced => process.id.start_ticks += 1,
    }
}

fn allocator() -> AllocatorSample {
    AllocatorSample {
        at: Stamp { boot_ms: 1, wall_ms: 1 },
        basis: AllocatorBasis::Statistics,
        devices: Vec::new(),
        backend: AllocatorBackend::Native,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_view_that_keeps_is_the_view_from_nothing(
        seconds in prop::collection::vec(prop::collection::vec(change(), PROCESSES), 1..25),
    ) {
        let machine = Machine::of("2x6");
        let (mut history, mut kept) = (History::new(), Kept::default());
        let mut state: Vec<Arc<ProcSample>> = Vec::new();
        for (second, changes) in seconds.iter().enumerate() {
            let [gpus, procs] = machine.ticks(second as u64);
            let Tick::Procs(mut procs) = procs else { unreachable!() };
            if state.is_empty() {
                state = procs.procs.split_off(2);
            } else {
                procs.procs.truncate(2);
            }
            for (process, change) in state.iter_mut().zip(changes) {
                apply(Arc::make_mut(process), change);
                if !matches!(change, Change::IsAway) {
                    procs.procs.push(process.clone());
                }
            }
            history.push(&gpus);
            history.take(Tick::Procs(procs));
            let moment = moment(second as u64);
            let next = View::build_next(&history, &moment, &mut kept);
            prop_assert_eq!(&next, &View::build(&history, &moment));
        }
    }
}

/// The rules' grounds change with what the rules look at.
#[test]
fn what_the_rules_look_at_changes_their_grounds() {
    let history = Machine::of("2x6").history();
    let view = View::build(&history, &moment(machine::NOW));
    let grounds = rules::grounds(&view);
    let changes: [fn(&mut View); 13] = [
        |view| view.holders[0].bytes = Reading::Value(Bytes::gib(9)),
        |view| view.holders[0].verdict.zombie = true,
        |view| view.holders[0].workload = None,
        |view| drop(view.holders.pop()),
        |view| view.holders[1].listed = false,
        |view| view.gpus[0].sample.memory = Reading::Absent(Why::GpuLost),
        |view| view.procs_age_ms = None,
        |view| drop(view.models.insert("/m".to_owned(), Reading::Absent(Why::NotYet))),
        |view| view.gpus[0].sample.unread_lists.mps = Some(Why::TimedOut),
        |view| view.gpus[0].ledger = Reading::Value(shared(Bytes::gib(30))),
        |view| view.gpus[0].xids.recent.push(fault(31)),
        |view| view.holders[0].server = Some(Reading::Absent(Why::NotYet)),
        |view| view.holders[0].server = Some(Reading::Value(said(12.0, view.at))),
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut other = view.clone();
        change(&mut other);
        assert_ne!(rules::grounds(&other), grounds, "change {n}");
    }
    let mut later = view.clone();
    later.at.boot_ms += 1_000;
    assert_eq!(rules::grounds(&later), grounds);
    // What they look at now, and then something that they do not.
    let mut view = view;
    view.gpus[0].ledger = Reading::Value(shared(Bytes::gib(30)));
    view.gpus[0].xids.recent.push(fault(31));
    view.holders[0].server = Some(Reading::Value(said(12.0, view.at)));
    let grounds = rules::grounds(&view);
    let mut same = view.clone();
    same.at.boot_ms += 1_000;
    same.gpus[0].xids.recent[0].age_ms += 1_000;
    same.gpus[0].ledger = Reading::Value(shared(Bytes::gib(30) + Bytes::mib(9)));
    same.holders[0].server = Some(Reading::Value(said(12.0, same.at)));
    assert_eq!(rules::grounds(&same), grounds);
    let others: [fn(&mut View); 3] = [
        |view| view.gpus[0].ledger = Reading::Value(shared(Bytes::gib(3))),
        |view| view.gpus[0].xids.recent.insert(0, fault(79)),
        |view| view.holders[0].server = Some(Reading::Value(said(97.0, view.at))),
    ];
    for (n, change) in others.iter().enumerate() {
        let mut other = view.clone();
        change(&mut other);
        assert_ne!(rules::grounds(&other), grounds, "change {n}");
    }
}

/// Memory that a GPU shares with the host, with so much available.
fn shared(available: Bytes) -> Ledger {
    Ledger::unified(&HostMemory { total: Bytes::gib(120), available }, &[])
}

fn fault(code: u64) -> XidSeen {
    let at = Stamp { boot_ms: machine::NOW + code, wall_ms: 0 };
    XidSeen { at, age_ms: 2_000, xid: xid::meaning(code), instance: (None, None) }
}

fn said(used: f32, at: Stamp) -> ServerSample {
    ServerSample {
        at,
        software: ServerSoftware::Vllm,
        port: 8000,
        kv_used: Some(Percent(used)),
        kv_tokens: None,
        running: Some(1),
        waiting: Some(0),
        slots: None,
        models: Vec::new(),
        devices: Vec::new(),
    }
}
