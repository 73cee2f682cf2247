//! What a kill gave back where the driver does not tell all of it, or not in time: then it is not
//! known, and neither 0 nor all of it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod verdict_support;

use verdict_support::table::{job, shell, with};
use verdict_support::{
    GIB, T0, cuda, gpu, host, init, memory, moment, process, row, stamp, watched, with_rows,
};
use vramlens::analyze::{KillPlan, KillProof, OrderEnd, View, kill_proof, plan, proven};
use vramlens::ids::{Pid, ProcId};
use vramlens::runtime::kill::shown;
use vramlens::sample::{GpuProc, GpuSample, KillPreset, ProcSample, Reading, UnreadLists, Why};
use vramlens::units::Bytes;

const DENIED: UnreadLists = UnreadLists { graphics: Some(Why::NoPermission), mps: None };

fn id(pid: u32) -> ProcId {
    ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 }
}

/// A GPU with so many GiB used, and these rows.
fn used(gib: u64, rows: Vec<GpuProc>) -> GpuSample {
    let mut gpu = with_rows(gpu(0), rows);
    gpu.memory = Reading::Value(memory(80 * GIB, gib * GIB, GIB));
    gpu
}

fn holds(pid: u32, gib: u64) -> GpuProc {
    row(pid, gib * GIB)
}

fn untold(pid: u32) -> GpuProc {
    GpuProc { used: Reading::Absent(Why::NotSupported), ..holds(pid, 0) }
}

fn view(gpus: &[GpuSample], procs: &[ProcSample]) -> View {
    watched(5, gpus, &host(), &[&[init(), shell()], procs].concat()).1
}

/// The job 500 on GPU 0 and whoever else is there.
fn before(gpu: GpuSample, others: &[ProcSample]) -> (View, KillPlan) {
    let view = view(&[gpu], &[&[job()], others].concat());
    let plan = plan(&view, &[id(500)], None);
    assert_eq!(plan.order.targets.len(), 1);
    (view, plan)
}

fn other(pid: u32) -> ProcSample {
    with(cuda(process(pid, "trainer"), &[0]), |p| p.parent = Pid(400))
}

fn proof(before: &View, after: &View, plan: &KillPlan) -> KillProof {
    kill_proof(before, after, plan, &[id(500)])
}

/// It is neither a success nor a failure, and says why.
fn assert_open(proof: &KillProof, why: Why, words: &str) {
    assert!(!proof.complete() && proof.is_open(), "{proof:#?}");
    assert_eq!(proof.freed_total(), Reading::Absent(why));
    assert_eq!(proof.sentence, words);
    let shown = shown(proof);
    assert!(shown.unknown && !shown.complete);
    assert_eq!(shown.remaining, ["vramlens doctor"]);
}

#[test]
fn who_stood_in_a_list_that_failed_is_no_memory_that_came_back() {
    // 510 draws with 5 GiB, and the list that says so was not read before.
    let hidden = GpuSample { unread_lists: DENIED, ..used(10, vec![holds(500, 5)]) };
    let (before, plan) = before(hidden, &[other(510)]);
    let after = view(&[used(10, vec![holds(510, 5)])], &[other(510)]);
    let words = "what came back of 5.0 GiB on GPU 0 is not known: the list of graphics processes \
                 could not be read (no permission)";
    assert_open(&proof(&before, &after, &plan), Why::NoPermission, words);
    // The same where it fails afterwards.
    let (before, plan) = self::before(used(10, vec![holds(500, 5), holds(510, 5)]), &[other(510)]);
    let after = GpuSample { unread_lists: DENIED, ..used(10, vec![]) };
    assert_open(&proof(&before, &view(&[after], &[other(510)]), &plan), Why::NoPermission, words);
}

#[test]
fn a_share_that_is_told_only_before_or_after_makes_no_figure() {
    let words = "what came back of 5.0 GiB on GPU 0 is not known: what 510 holds could not be read \
                 (not supported here)";
    for (first, last) in [(untold(510), holds(510, 5)), (holds(510, 5), untold(510))] {
        let (before, plan) = before(used(10, vec![holds(500, 5), first]), &[other(510)]);
        let after = view(&[used(10, vec![last])], &[other(510)]);
        assert_open(&proof(&before, &after, &plan), Why::NotSupported, words);
    }
    // It has begun or ended meanwhile, and what it holds or held was not told.
    let (before, plan) = before(used(10, vec![holds(500, 5), untold(510)]), &[other(510)]);
    assert_open(&proof(&before, &view(&[used(5, vec![])], &[]), &plan), Why::NotSupported, words);
    let (before, plan) = self::before(used(10, vec![holds(500, 5)]), &[]);
    let after = view(&[used(10, vec![untold(510)])], &[other(510)]);
    assert_open(&proof(&before, &after, &plan), Why::NotSupported, words);
}

#[test]
fn others_may_begin_and_end_meanwhile() {
    let all = "freed 5.0 of 5.0 GiB on GPU 0";
    let gone = |first: GpuSample, others: &[ProcSample], last: GpuSample, there: &[ProcSample]| {
        let (before, plan) = before(first, others);
        let proof = proof(&before, &view(&[last], there), &plan);
        assert!(proof.complete(), "{proof:#?}");
        assert_eq!((proof.sentence.as_str(), &proof.unlisted[..]), (all, &[id(500)][..]));
        assert_eq!(proof.freed_total(), Reading::Value(Bytes::gib(5)));
        assert_eq!(proof.next(), None);
    };
    let alone = || used(5, vec![holds(500, 5)]);
    let both = || used(35, vec![holds(500, 5), holds(510, 30)]);
    gone(alone(), &[], used(30, vec![holds(510, 30)]), &[other(510)]);
    gone(both(), &[other(510)], used(0, vec![]), &[]);
    // In the place of 510 another process has its pid.
    let again = with(other(510), |p| p.id.start_ticks = 9_000);
    gone(both(), &[other(510)], used(8, vec![holds(510, 8)]), &[again]);
    // What neither view tells is not known to have changed.
    let quiet = |rows| used(8, rows);
    let first = GpuSample { memory: alone().memory, ..quiet(vec![holds(500, 5), untold(510)]) };
    gone(first, &[other(510)], used(0, vec![untold(510)]), &[other(510)]);
    // A child of the job has the devices open, is in no list, and ends with it.
    let child = with(other(511), |p| p.parent = Pid(400));
    gone(alone(), &[child], used(0, vec![]), &[]);
}

#[test]
fn without_the_list_of_processes_nothing_is_said_of_failure_or_of_who_is_listed() {
    let (before, plan) = before(used(36, vec![holds(500, 5), holds(510, 30)]), &[other(510)]);
    let mut after = used(31, vec![]);
    after.processes = Reading::Absent(Why::Failed(999));
    let proof = proof(&before, &view(&[after], &[other(510)]), &plan);
    let words = "what came back of 5.0 GiB on GPU 0 is not known: the list of processes could not be \
                 read (failed with code 999)";
    assert_open(&proof, Why::Failed(999), words);
    assert_eq!(proof.unlisted, [], "nobody read the list");
}

#[test]
fn memory_that_cannot_be_told_is_not_0() {
    let (before, plan) = before(used(5, vec![holds(500, 5)]), &[]);
    let mut lost = used(0, vec![]);
    lost.memory = Reading::Absent(Why::GpuLost);
    let words = "what came back of 5.0 GiB on GPU 0 is not known: the GPU's memory could not be read \
                 (the GPU is lost)";
    assert_open(&proof(&before, &view(&[lost], &[]), &plan), Why::GpuLost, words);
    let words = "what came back of 5.0 GiB on GPU 0 is not known: the GPU could not be read (the GPU \
                 is lost)";
    assert_open(&proof(&before, &view(&[gpu(1)], &[]), &plan), Why::GpuLost, words);
}

#[test]
fn a_target_whose_share_nobody_tells_leaves_it_open_what_should_come_back() {
    let (before, plan) = before(used(5, vec![untold(500)]), &[]);
    assert_eq!(plan.expected_total(), Bytes::ZERO);
    let proof = proof(&before, &view(&[used(0, vec![])], &[]), &plan);
    let words = "what came back is not known: what 500 held could not be read (not supported here)";
    assert_open(&proof, Why::NotSupported, words);
}

#[test]
fn of_two_gpus_the_one_that_tells_has_its_figure() {
    let two = |first: GpuSample, last: GpuSample| {
        [first, GpuSample { uuid: gpu(1).uuid, index: gpu(1).index, minor: gpu(1).minor, ..last }]
    };
    let job = || with(job(), |p| *p = cuda(p.clone(), &[0, 1]));
    let held = || used(5, vec![holds(500, 5)]);
    let before = view(&two(held(), held()), &[job()]);
    let plan = plan(&before, &[id(500)], Some(KillPreset::Now));
    let mut silent = used(0, vec![]);
    silent.memory = Reading::Absent(Why::Failed(15));
    let silent = || silent.clone();
    let proof = |first| proof(&before, &view(&two(first, silent()), &[]), &plan);
    let some = proof(used(0, vec![]));
    let words = "freed 5.0 of 5.0 GiB on GPU 0; what came back of 5.0 GiB on GPU 1 is not known: the \
                 GPU's memory could not be read (failed with code 15)";
    assert_open(&some, Why::Failed(15), words);
    // What is known to be missing is a failure all the same.
    let less = proof(used(5, vec![]));
    assert!(!less.complete() && !less.is_open(), "{less:#?}");
    assert!(less.remaining[0].reason.starts_with("5.0 GiB on GPU 0 did not come back yet"));
}

/// The GPUs are looked at at T0 + 5 s, the processes 100 ms later.
fn end(at_ms: u64, gone: &[u32]) -> OrderEnd {
    OrderEnd { at: stamp(T0 + at_ms), gone: gone.iter().map(|pid| id(*pid)).collect() }
}

#[test]
fn what_was_seen_before_the_end_of_an_order_proves_nothing() {
    let (before, plan) = before(used(5, vec![holds(500, 5)]), &[]);
    let back = view(&[used(0, vec![])], &[]);
    let told = |after: &View, end: &OrderEnd, now_ms| {
        proven(&before, after, &plan, end, stamp(T0 + now_ms)).map(|proof| proof.sentence)
    };
    let all = Some("freed 5.0 of 5.0 GiB on GPU 0".to_owned());
    let silent = Some("the driver does not answer: what came back is not known".to_owned());
    assert_eq!(told(&back, &end(4_999, &[500]), 5_200), all);
    for (at_ms, after) in [(5_000, &back), (5_050, &back), (5_200, &before)] {
        // Also where it looks as if all had come back, and as if nothing had.
        let end = end(at_ms, &[500]);
        assert_eq!(told(after, &end, at_ms + 14_999), None, "{at_ms}");
        assert_eq!(told(after, &end, at_ms + 15_000), silent, "{at_ms}");
    }
    // Nothing was ever seen.
    let nothing = View::build(&vramlens::history::History::new(), &moment(T0 + 5_200));
    assert_eq!(told(&nothing, &end(1_000, &[]), 11_000), None);
    assert_eq!(told(&nothing, &end(1_000, &[]), 16_000), silent);
    // The driver answers, and nobody looks at the processes.
    let late = View { procs_age_ms: Some(4_000), ..back };
    let words = "the processes could not be looked at: what came back is not known";
    assert_eq!(told(&late, &end(4_000, &[500]), 19_000), Some(words.to_owned()));
}

#[test]
fn what_is_not_known_names_nobody_as_left_or_as_gone_from_a_list() {
    let (before, plan) = before(used(5, vec![holds(500, 5)]), &[]);
    let end = end(6_000, &[500]);
    let proof = proven(&before, &before, &plan, &end, stamp(T0 + 21_000)).unwrap();
    assert!(proof.is_open() && !proof.complete());
    assert_eq!((proof.unlisted.len(), proof.remaining.len()), (0, 0));
    assert_eq!(proof.freed_total(), Reading::Absent(Why::TimedOut));
    assert_eq!(proof.freed.iter().map(|freed| freed.expected).sum::<Bytes>(), Bytes::gib(5));
    assert_eq!(shown(&proof).remaining, ["vramlens triage"]);
}

#[test]
fn less_than_all_is_told_of_a_look_after_memory_has_settled() {
    let (before, plan) = before(used(5, vec![holds(500, 5)]), &[]);
    let kept = view(&[used(5, vec![])], &[]);
    let at = |age_ms| View { at: stamp(T0 + 20_000), ..aged(&kept, age_ms) };
    let told = |after: &View, now_ms| {
        let end = end(5_000, &[500]);
        proven(&before, after, &plan, &end, stamp(T0 + now_ms)).map(|proof| proof.sentence)
    };
    // Looked at 1 s after the end, and never again.
    assert_eq!(told(&at(14_000), 15_500), None);
    let silent = "the driver does not answer: what came back is not known";
    assert_eq!(told(&at(14_000), 20_000), Some(silent.to_owned()));
    assert_eq!(told(&at(4_900), 15_200), Some("freed 0.0 of 5.0 GiB on GPU 0".to_owned()));
}

fn aged(view: &View, age_ms: u64) -> View {
    View { gpus_age_ms: Some(age_ms), procs_age_ms: Some(age_ms), ..view.clone() }
}

#[test]
fn an_end_that_was_seen_outweighs_an_older_row() {
    let (before, plan) = before(used(5, vec![holds(500, 5)]), &[]);
    // Its memory is back; its process was last read while it lived.
    let after = view(&[used(0, vec![])], &[job()]);
    let seen = proof(&before, &after, &plan);
    assert!(seen.complete(), "{seen:#?}");
    let unseen = kill_proof(&before, &after, &plan, &[]);
    assert_eq!(unseen.remaining[0].pid, Pid(500));
    // The driver still lists it: nobody says that it has not ended.
    let listed = proof(&before, &before, &plan);
    assert_eq!(listed.remaining[0].reason, "it ended; the driver is still taking it down");
    assert_eq!(listed.unlisted, []);
}
