//! Cases of servers that tell of their own cache, and of faults that the driver reports.

use vramlens::analyze::View;
use vramlens::analyze::xid::Xids;
use vramlens::history::History;
use vramlens::sample::*;
use vramlens::units::Percent;

use crate::Expect::{CannotTell, Clear, Hit, NotYet};
use crate::build::*;
use crate::verdict_support::{
    T0, cuda, gpu, gpu_tick, host, init, moment, process, stamp, watched,
};
use crate::{Case, case};

pub fn cases() -> Vec<Case> {
    let mut all = shares();
    all.extend(contexts());
    all.extend(full());
    all.extend(faults());
    all
}

const FOLDER: &str = "/models/llama";
const VLLM: &str = "vllm serve /models/llama --gpu-memory-utilization 0.85";
/// 128 KiB a token: 48 GiB of cache.
const TOKENS: u64 = 393_216;

fn says(software: ServerSoftware, tokens: Option<u64>, used: Option<f32>) -> ServerSample {
    ServerSample {
        at: stamp(1),
        software,
        port: 8000,
        kv_used: used.map(Percent),
        kv_tokens: tokens,
        running: Some(3),
        waiting: Some(0),
        slots: None,
        models: Vec::new(),
        devices: Vec::new(),
    }
}

fn serves(mut process: ProcSample, said: ServerSample) -> ProcSample {
    process.server = Some(Reading::Value(said));
    process
}

fn vllm(command: &str, used: f32, waiting: u64) -> View {
    let mut said = says(ServerSoftware::Vllm, Some(TOKENS), Some(used));
    said.waiting = Some(waiting);
    knows(view(on(680), serves(runs(command), said)), FOLDER, model("8B"))
}

fn shares() -> Vec<Case> {
    const RULE: &str = "preallocated";
    const DESIGN: &str = "500 holds 68.0 GiB by design: vLLM";
    vec![
        // Twice 12 % of 393216 tokens are 94372; the 8B model takes 131072 in one request.
        case(
            RULE,
            "a cache of which 12 % is in use, as far as the longest request lets it shrink",
            || vllm(VLLM, 12.0, 0),
            Hit(DESIGN, "--gpu-memory-utilization 0.4", [290, 325]),
        ),
        case(
            RULE,
            "the same with short requests",
            || vllm(&format!("{VLLM} --max-model-len 8192"), 12.0, 0),
            Hit(DESIGN, "--gpu-memory-utilization 0.4", [350, 370]),
        ),
        case(
            RULE,
            "a cache of which 80 % is in use: nothing to give",
            || vllm(VLLM, 80.0, 0),
            Hit(DESIGN, "", [0, 0]),
        ),
        case(
            RULE,
            "a cache that is hardly used while requests wait",
            || vllm(VLLM, 12.0, 4),
            Hit(DESIGN, "", [0, 0]),
        ),
    ]
}

fn llama(said: Option<Reading<ServerSample>>) -> View {
    let mut process = runs("llama-server -m /models/m.gguf");
    process.server = said;
    knows(view(on(200), process), "/models/m.gguf", model("8B"))
}

fn contexts() -> Vec<Case> {
    const RULE: &str = "context";
    vec![
        case(
            RULE,
            "a context that only the server tells",
            || {
                let said = says(ServerSoftware::LlamaCpp, Some(32_768), None);
                llama(Some(Reading::Value(said)))
            },
            Hit("500 keeps 4.0 GiB for 32768 tokens", "-c 16384", [19, 22]),
        ),
        case(
            RULE,
            "a context of which 5 % is in use",
            || {
                let said = says(ServerSoftware::LlamaCpp, Some(32_768), Some(5.0));
                llama(Some(Reading::Value(said)))
            },
            Hit("500 keeps 4.0 GiB for 32768 tokens", "-c 4096", [33, 37]),
        ),
        case(
            RULE,
            "a server that has not answered yet",
            || llama(Some(Reading::Absent(Why::NotYet))),
            NotYet("has not told its context yet"),
        ),
        case(
            RULE,
            "a server that does not answer",
            || llama(Some(Reading::Absent(Why::TimedOut))),
            CannotTell("without a context"),
        ),
    ]
}

fn full() -> Vec<Case> {
    const RULE: &str = "growth";
    vec![
        case(
            RULE,
            "a cache that is full while requests wait",
            || steady(vllm(VLLM, 97.0, 12)),
            Hit("500's cache is 97% full and 12 requests wait", "--kv-cache-dtype fp8", [0, 0]),
        ),
        case(RULE, "a full cache that nobody waits for", || steady(vllm(VLLM, 97.0, 0)), Clear),
    ]
}

/// A GPU with these faults, so many seconds ago each, looked at through the history.
fn faulty(watched: Reading<()>, faults: &[(u64, u64)]) -> View {
    let card = gpu(0);
    let mut history = History::new();
    for second in 0..=100_u64 {
        let at = T0 + second * 1_000;
        let Tick::Gpus(mut tick) = gpu_tick(at, vec![card.clone()]) else { unreachable!() };
        let due = faults.iter().filter(|fault| 100 - fault.1 == second);
        tick.xid = XidReport {
            watched: vec![WatchedGpu { gpu: card.uuid.clone(), state: watched }],
            events: due
                .map(|fault| XidEvent {
                    at: stamp(at),
                    gpu: card.uuid.clone(),
                    code: fault.0,
                    gpu_instance: None,
                    compute_instance: None,
                })
                .collect(),
            lost: 0,
        };
        history.push(&Tick::Gpus(tick));
    }
    View::build(&history, &moment(T0 + 100_000))
}

fn faults() -> Vec<Case> {
    const RULE: &str = "faults";
    const FINE: Reading<()> = Reading::Value(());
    vec![
        case(
            RULE,
            "a program touched what is not its own",
            || faulty(FINE, &[(31, 12)]),
            Hit("XID 31: a program touched memory that is not its own", "", [0, 0]),
        ),
        case(
            RULE,
            "the gravest comes first, not the newest",
            || faulty(FINE, &[(48, 60), (45, 2)]),
            Hit("XID 48: an ECC error in memory that was not corrected", "", [0, 0]),
        ),
        case(RULE, "watched, and nothing came", || faulty(FINE, &[]), Clear),
        case(
            RULE,
            "the watch has not begun",
            || faulty(Reading::Absent(Why::NotYet), &[]),
            NotYet("not watched yet"),
        ),
        case(
            RULE,
            "a driver without events",
            || faulty(Reading::Absent(Why::NotSupported), &[]),
            CannotTell("not supported"),
        ),
        case(
            RULE,
            "a GPU that is lost, by a look at it",
            || {
                let mut gpu = gpu(0);
                gpu.name = Reading::Absent(Why::GpuLost);
                gpu.memory = Reading::Absent(Why::GpuLost);
                gpu.processes = Reading::Absent(Why::GpuLost);
                view(gpu, runs("python x.py"))
            },
            Hit("GPU 0 is lost: the driver cannot reach it", "", [0, 0]),
        ),
        case(
            RULE,
            "a command that looks once",
            || view(on(10), runs("python x.py")),
            CannotTell("nobody watched"),
        ),
    ]
}

#[test]
fn a_worker_is_told_what_its_server_says() {
    let said = says(ServerSoftware::Vllm, Some(TOKENS), Some(12.0));
    let mut above = serves(process(400, "vllm"), said);
    above = crate::verdict_support::args(above, &VLLM.split(' ').collect::<Vec<_>>());
    let mut worker = cuda(process(PID, "VLLM::EngineCor"), &[0]);
    worker = crate::verdict_support::args(worker, &["VLLM::EngineCore"]);
    worker.parent = above.id.pid;
    let view = watched(3, &[on(680)], &host(), &[init(), above, worker]).1;
    let view = knows(view, FOLDER, model("8B"));
    assert_eq!(view.holders.len(), 1);
    let found = vramlens::rules::run(&view);
    let share = found.iter().find(|finding| finding.rule == "preallocated").unwrap();
    assert!(share.evidence.iter().any(|text| text.contains("12% in use now")), "{share:?}");
    assert_eq!(share.fixes[0].saves.unwrap().provenance, vramlens::rules::Provenance::Reported);
}

#[test]
fn events_of_a_recording_stand_in_the_view_and_are_counted() {
    let view = faulty(Reading::Value(()), &[(31, 40), (13, 30), (31, 20)]);
    let Xids { watched, recent, counts } = &view.gpus[0].xids;
    assert_eq!(*watched, Reading::Value(()));
    let codes: Vec<_> = recent.iter().map(|seen| (seen.xid.code, seen.age_ms)).collect();
    assert_eq!(codes, [(31, 20_000), (13, 30_000), (31, 40_000)]);
    assert_eq!(counts.clone().into_iter().collect::<Vec<_>>(), [(13, 1), (31, 2)]);
}
