//! Rule 3: hits, clear, not yet, cannot tell.
mod verdict_support;

use verdict_support::table::{engine, job, orphan, shell, state, survivor, with};
use verdict_support::*;
use vramlens::analyze::{Class, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::rules::{Outcome, Provenance, RULES, Severity, outcomes, run, would_it_fit};
use vramlens::sample::{GpuSample, MigInfo, ProcSample, ProcState, Reading, Why};
use vramlens::units::Bytes;

fn check(view: &View) -> Outcome {
    let leftovers = |outcome: &(&str, Outcome)| outcome.0 == "leftovers";
    let found = outcomes(view).into_iter().find(leftovers);
    found.map_or(Outcome::CannotTell(String::new()), |outcome| outcome.1)
}

fn view(seconds: u64, gpu: GpuSample, procs: &[ProcSample]) -> View {
    let mut all = procs.to_vec();
    all.push(init());
    watched(seconds, &[gpu], &host(), &all).1
}

fn on(pid: u32, gib: u64) -> GpuSample {
    with_rows(gpu(0), vec![row(pid, gib * GIB)])
}

#[test]
fn hit_a_zombie_with_its_bytes_and_the_line() {
    let view = view(5, on(500, 22), &[engine()]);
    let findings = run(&view);
    let first = &findings[0];
    assert_eq!(
        first.headline,
        "zombie holds 22.0 GiB on GPU 0: VLLM::EngineCore, pid 500, user ana"
    );
    assert_eq!((first.rule, first.fix_number, first.severity), ("leftovers", 3, Severity::Warning));
    assert!(first.evidence.iter().any(|fact| fact.contains("without a vLLM server")));
    let fix = &first.fixes[0];
    assert_eq!(fix.line.as_deref(), Some("vramlens kill 500"));
    assert_eq!(fix.ends, [engine().id]);
    let saving = fix.saves.unwrap();
    assert_eq!((saving.bytes, saving.provenance), (Bytes::gib(22), Provenance::Measured));
}

#[test]
fn hit_survivors_with_the_dead_ones_bytes() {
    let view = view(5, on(500, 5), &[survivor()]);
    let finding = &run(&view)[0];
    assert!(finding.headline.starts_with("zombie holds 5.0 GiB on GPU 0"), "{}", finding.headline);
    assert_eq!(finding.pid, Some(Pid(600)));
}

#[test]
fn hit_another_users_zombie_needs_sudo_and_no_key() {
    let theirs = with(engine(), |p| p.uid = Reading::Value(1001));
    let findings = run(&view(5, on(500, 22), &[theirs]));
    assert_eq!(findings[0].fixes[0].line.as_deref(), Some("sudo vramlens kill 500"));
    assert!(findings[0].fixes[0].ends.is_empty());
    assert_eq!(findings[0].fixes[0].saves.unwrap().bytes, Bytes::gib(22));
}

#[test]
fn hit_one_leftover_of_many_processes_is_one_finding() {
    let many: Vec<_> = (600..700)
        .map(|pid| {
            let mut worker = survivor();
            worker.id = process(pid, "x").id;
            worker
        })
        .collect();
    let findings = run(&view(5, on(500, 5), &many));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].headline.contains("600, 601, 602, 603 and 96 more"));
}

#[test]
fn hit_what_cannot_end_comes_first() {
    let stuck = with(state(job(), ProcState::Uninterruptible), |p| {
        p.wait_channel = Some("nvidia_ioctl".to_owned());
    });
    let findings = run(&view(5, on(500, 5), &[stuck]));
    assert_eq!(findings[0].severity, Severity::Critical);
    assert!(findings[0].fixes[0].title.contains("reboot"));
}

#[test]
fn hit_memory_that_is_nobodys_and_idle_holders_are_notices() {
    let mut gpu = on(500, 5);
    gpu.memory = Reading::Value(memory(80 * GIB, 9 * GIB, GIB));
    let findings = run(&view(700, gpu, &[shell(), job()]));
    assert_eq!(findings.len(), 2);
    assert!(findings.iter().all(|finding| finding.severity == Severity::Notice));
    assert!(findings.iter().any(|f| f.headline.contains("likely managed memory of 500 (python)")));
    assert!(findings.iter().any(|f| f.headline.contains("500 python is idle for 11m")));
}

#[test]
fn hit_a_ghost_whose_keeper_was_not_found() {
    let findings = run(&view(5, on(500, 5), &[]));
    assert!(findings[0].headline.contains("listed under 500, which is dead"));
}

#[test]
fn clear_while_everything_is_wanted() {
    let busy = with_rows(gpu(0), vec![busy(row(500, 5 * GIB))]);
    assert_eq!(check(&view(20, busy, &[shell(), job()])), Outcome::Clear);
    assert_eq!(check(&view(5, gpu(0), &[])), Outcome::Clear);
}

#[test]
fn not_yet_before_the_evidence_is_there() {
    let starting = View::build(&History::new(), &moment(T0));
    assert!(matches!(check(&starting), Outcome::NotYet(_)));
    let mut history = History::new();
    history.push(&gpu_tick(T0, vec![on(500, 5)]));
    assert!(matches!(check(&View::build(&history, &moment(T0 + 10))), Outcome::NotYet(_)));
    let busy = with_rows(gpu(0), vec![busy(row(500, 5 * GIB))]);
    assert!(matches!(check(&view(20, busy, &[orphan()])), Outcome::NotYet(_)));
}

#[test]
fn cannot_tell_without_the_drivers_lists() {
    let mut blind = gpu(0);
    blind.processes = Reading::Absent(Why::NotSupported);
    assert!(matches!(check(&view(5, blind, &[])), Outcome::CannotTell(_)));
}

#[test]
fn cannot_tell_what_one_gpu_or_one_process_keeps_back() {
    let why = |view: &View| match check(view) {
        Outcome::CannotTell(why) => why,
        other => panic!("{other:?}"),
    };
    let busy = || with_rows(gpu(0), vec![busy(row(500, 5 * GIB))]);
    let mut blind = gpu(1);
    blind.processes = Reading::Absent(Why::NotSupported);
    let procs = [init(), shell(), job()];
    let (_, beside) = watched(20, &[busy(), blind], &host(), &procs);
    assert!(why(&beside).contains("who is on GPU 1"), "{}", why(&beside));

    let mut no_memory = busy();
    no_memory.memory = Reading::Absent(Why::NotSupported);
    let view = view(20, no_memory, &[shell(), job()]);
    assert_eq!(why(&view), "where the memory of GPU 0 is: not supported here");

    // Idle, and the driver does not say of how much.
    let mut idle = self::view(700, on(500, 5), &[shell(), job()]);
    idle.holders[0].bytes = Reading::Absent(Why::NotSupported);
    assert_eq!(why(&idle), "what 500 holds while it is idle is not told");

    // Nobody can sample what it does.
    let mut unsampled = on(500, 5);
    unsampled.process_utilization = Reading::Absent(Why::NotSupported);
    if let Reading::Value(rows) = &mut unsampled.processes {
        rows[0].sm = Reading::Absent(Why::NotSupported);
    }
    let view = self::view(20, unsampled, &[shell(), job()]);
    assert_eq!(why(&view), "whether 500 is at work: not supported here");
}

/// One card with a slice, on which `rows` are listed.
fn sliced(rows: Vec<vramlens::sample::GpuProc>) -> [GpuSample; 2] {
    let mut parent = with_rows(gpu(0), rows.clone());
    parent.mig_enabled = Reading::Value(true);
    let mut slice = with_rows(gpu(0), rows);
    slice.uuid = uuid(7);
    slice.mig = Some(MigInfo {
        parent: uuid(0),
        gpu_instance: Reading::Value(1),
        compute_instance: Reading::Value(0),
    });
    [parent, slice]
}

#[test]
fn an_instance_is_called_as_everywhere_else() {
    let seen = |seconds, procs: &[ProcSample]| {
        let procs = [procs, &[init()]].concat();
        watched(seconds, &sliced(vec![row(500, 5 * GIB)]), &host(), &procs).1
    };
    for (view, words) in [
        (seen(5, &[]), "5.00 GiB on GPU 0:1 are listed under 500"),
        (seen(5, &[engine()]), "zombie holds 5.00 GiB on GPU 0:1: "),
        (
            seen(5, &[shell(), with(job(), |p| p.state = ProcState::Stopped)]),
            "and holds 5.00 GiB on GPU 0:1",
        ),
    ] {
        let all: Vec<String> = run(&view).into_iter().map(|found| found.headline).collect();
        let said = words.replace("5.00", "5.0");
        assert!(all.iter().any(|line| line.contains(&said)), "{said}: {all:?}");
        assert!(!all.iter().any(|line| line.contains("GPU 0 ")), "{all:?}");
    }
    let view = seen(5, &[]);
    let fit = would_it_fit(&view, Bytes::gib(70), &run(&view));
    assert!(fit.starts_with("70.0 GiB fit on GPU 0:1 now"), "{fit}");
}

#[test]
fn a_number_that_another_process_has_is_not_called_dead() {
    let mut found = view(5, on(500, 5), &[]);
    found.holders[0].verdict.class = Class::Reused;
    let headline = &run(&found)[0].headline;
    assert!(headline.contains("under 500, whose number another process has now"), "{headline}");
    assert!(!headline.contains("dead"), "{headline}");
}

#[test]
fn every_rule_has_its_own_key_and_number() {
    let mut keys: Vec<_> = RULES.iter().map(|rule| (rule.key(), rule.number())).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), RULES.len());
}
