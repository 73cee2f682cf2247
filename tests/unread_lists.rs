//! Lists of graphics and of MPS processes that could not be read: who may stand in them is not blamed,
//! and no other GPU is taken for theirs.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod verdict_support;

use jiff::tz::TimeZone;
use serde_json::Value;
use verdict_support::{
    GIB, T0, gpu, gpu_tick, host, init, memory, moment, proc_tick, process, row, watched, with_rows,
};
use vramlens::analyze::{Class, Holder, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::report::json::Snapshot;
use vramlens::report::{Style, triage};
use vramlens::rules::{Outcome, outcomes};
use vramlens::sample::{
    GpuSample, NvidiaFds, ProcKinds, ProcSample, Reading, Tick, UnreadLists, Why, redact,
};

const GRAPHICS: UnreadLists = UnreadLists { graphics: Some(Why::NoPermission), mps: None };

/// A program that draws, and has these GPUs open.
fn drawing(pid: u32, minors: &[u32], drm: bool) -> ProcSample {
    let count = minors.len() as u32 + 1;
    let minors = minors.to_vec();
    let devices = NvidiaFds { drm, minors, count, control: true, uvm: !drm, via_thread: false };
    ProcSample { devices: Reading::Value(devices), ..process(pid, "blender") }
}

/// The GPU with so many GiB in use that are nobody's.
fn used(mut gpu: GpuSample, gib: u64, unread: UnreadLists) -> GpuSample {
    gpu.memory = Reading::Value(memory(80 * GIB, gib * GIB, GIB));
    GpuSample { unread_lists: unread, ..gpu }
}

fn view(gpus: &[GpuSample], procs: &[ProcSample]) -> View {
    watched(3, gpus, &host(), &[&[init()], procs].concat()).1
}

fn causes(view: &View, gpu: usize) -> Vec<&'static str> {
    view.gpus[gpu].unaccounted_causes.iter().map(|cause| cause.key).collect()
}

fn on(view: &View, gpu: usize) -> &Holder {
    view.holders.iter().find(|holder| holder.gpu == view.gpus[gpu].sample.uuid).unwrap()
}

fn evidence(holder: &Holder) -> Vec<&'static str> {
    holder.verdict.evidence.iter().map(|fact| fact.key).collect()
}

#[test]
fn who_may_stand_in_a_list_that_failed_is_not_hidden() {
    let read = view(&[used(gpu(0), 5, UnreadLists::default())], &[drawing(600, &[0], true)]);
    assert_eq!(on(&read, 0).verdict.class, Class::Hidden);
    assert!(causes(&read, 0).contains(&"hidden_holders"));

    let unread = view(&[used(gpu(0), 5, GRAPHICS)], &[drawing(600, &[0], true)]);
    let holder = on(&unread, 0);
    assert_eq!(holder.verdict.class, Class::Unknown);
    assert!(evidence(holder).contains(&"list_incomplete"), "{:?}", holder.verdict);
    assert_eq!(causes(&unread, 0)[0], "list_incomplete");
    let cause = &unread.gpus[0].unaccounted_causes[0];
    assert_eq!(cause.pids, [Pid(600)]);
    let text =
        "graphics processes, whose list could not be read (no permission); perhaps 600 (blender)";
    assert_eq!(cause.text, text);
    assert!(!causes(&unread, 0).contains(&"hidden_holders"));
}

#[test]
fn a_list_that_failed_is_that_of_its_gpu_alone() {
    // The first is read and the second is not; a program has only the first open.
    let gpus = [used(gpu(0), 5, UnreadLists::default()), used(gpu(1), 5, GRAPHICS)];
    let apart = view(&gpus, &[drawing(600, &[0], false)]);
    assert_eq!(on(&apart, 0).verdict.class, Class::Hidden);
    assert!(!causes(&apart, 0).contains(&"list_incomplete"));
    assert!(causes(&apart, 1).contains(&"list_incomplete"));
    // With both open it may be listed on the second: it is hidden on neither.
    for drm in [false, true] {
        let both = view(&gpus, &[drawing(600, &[0, 1], drm)]);
        let holder = on(&both, 0);
        assert_eq!(holder.verdict.class, Class::Unknown);
        let said = |text: &str| holder.verdict.evidence.iter().any(|fact| fact.text.contains(text));
        assert!(said("the driver's list for GPU 1 of graphics processes"), "{:?}", holder.verdict);
        assert!(!causes(&both, 0).contains(&"hidden_holders"));
    }
    // The same holds where the second tells no list at all.
    let mut silent = gpus[1].clone();
    (silent.unread_lists, silent.processes) =
        (UnreadLists::default(), Reading::Absent(Why::NoPermission));
    let both = view(&[gpus[0].clone(), silent], &[drawing(600, &[0, 1], false)]);
    assert_eq!(on(&both, 0).verdict.class, Class::Unknown);
    assert!(evidence(on(&both, 0)).contains(&"list_unreadable"));
}

#[test]
fn an_older_recording_that_only_counts_blames_nobody() {
    let ticks = [used(gpu(0), 5, UnreadLists::default()), used(gpu(1), 5, UnreadLists::default())];
    let Tick::Gpus(mut tick) = gpu_tick(T0, ticks.to_vec()) else { unreachable!() };
    tick.nonsense.failed_lists = 1;
    let text = serde_json::to_string(&Tick::Gpus(tick.clone())).unwrap();
    assert!(!text.contains("unread_lists"), "{text}");
    assert_eq!(serde_json::from_str::<Tick>(&text).unwrap(), Tick::Gpus(tick.clone()));
    let mut history = History::new();
    history.push(&Tick::Gpus(tick));
    history.push(&proc_tick(T0 + 100, host(), vec![init(), drawing(600, &[0], false)]));
    let view = View::build(&history, &moment(T0 + 200));
    assert_eq!(on(&view, 0).verdict.class, Class::Unknown);
    for gpu in [0, 1] {
        assert!(causes(&view, gpu).contains(&"list_incomplete"), "GPU {gpu}");
    }
    assert!(view.gpus[0].unaccounted_causes[0].text.contains("(failed)"));
}

#[test]
fn what_failed_is_recorded_and_read_again() {
    let tick = gpu_tick(T0, vec![used(gpu(0), 5, GRAPHICS)]);
    let text = serde_json::to_string(&tick).unwrap();
    assert!(text.contains(r#""unread_lists":{"graphics":"no_permission"}"#), "{text}");
    assert_eq!(serde_json::from_str::<Tick>(&text).unwrap(), tick);
}

#[test]
fn reports_and_rules_say_which_list_is_missing() {
    let view = view(&[used(gpu(0), 5, UnreadLists::default()), used(gpu(1), 0, GRAPHICS)], &[]);
    let json = serde_json::to_value(Snapshot::new(&view, redact)).unwrap();
    assert_eq!(json["gpus"][0]["graphics_listed"], true);
    assert_eq!(json["gpus"][1]["graphics_listed"]["absent"], "no_permission");
    assert_eq!(json["gpus"][1]["mps_listed"], true);
    let style = Style { width: 100, ascii: true, time_zone: TimeZone::UTC, redact, whole: false };
    let report = triage::text(&view, &[], &style);
    assert!(report.contains("graphics processes not told: no permission"), "{report}");
    let consumers = outcomes(&view).into_iter().find(|outcome| outcome.0 == "consumers").unwrap().1;
    let said = Outcome::CannotTell("which graphics processes are on GPU 1: no permission".into());
    assert_eq!(consumers, said);
}

#[test]
fn where_no_list_is_told_nothing_is_counted() {
    let mut silent = used(gpu(1), 5, UnreadLists::default());
    silent.processes = Reading::Absent(Why::NoPermission);
    let view = view(&[gpu(0), silent], &[]);
    let json = serde_json::to_value(Snapshot::new(&view, redact)).unwrap();
    let counts = |gpu: usize, name: &str| json["gpus"][gpu]["counts"][name].clone();
    for name in ["holders", "zombies", "zombie_bytes"] {
        assert_eq!(counts(0, name), 0);
        assert_eq!(counts(1, name)["absent"], "no_permission", "{name}");
        assert_eq!(json["gpus"][1]["mps_listed"]["absent"], Value::from("no_permission"));
    }
}

#[test]
fn a_row_of_a_list_that_failed_keeps_its_past() {
    let kinds = ProcKinds { graphics: true, ..ProcKinds::default() };
    let drawn = |gib: u64| {
        let mut row = row(600, gib * GIB);
        row.kinds = kinds;
        with_rows(gpu(0), vec![row])
    };
    let failed = GpuSample { unread_lists: GRAPHICS, ..gpu(0) };
    let mut history = History::new();
    let looks = [drawn(9), failed.clone(), failed, drawn(3)];
    for (n, gpu) in looks.into_iter().enumerate() {
        let at = T0 + n as u64 * 30_000;
        history.push(&gpu_tick(at, vec![gpu]));
        history.push(&proc_tick(at + 100, host(), vec![init(), drawing(600, &[0], true)]));
    }
    let view = View::build(&history, &moment(T0 + 90_200));
    // A new row would have no peak but its own.
    assert_eq!(view.holders[0].peak.get().unwrap().0, 9 * GIB);
    // Meanwhile it was not in no list: nobody knew.
    let track = history.process(view.holders[0].id.unwrap()).unwrap();
    assert_eq!(track.unlisted_since_ms, None);
}
