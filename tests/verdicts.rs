//! The table of verdicts: every class, and every trap in three ways.
mod verdict_support;

use std::collections::HashSet;

use verdict_support::table::{self, Case, Shows};
use verdict_support::{T0, classes, gpu_tick, moment, proc_tick, stamp, traps};
use vramlens::analyze::{Class, Effect, TRAPS, View, Weight};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::record::{Form, Header, Reader, Redaction, Writer};
use vramlens::sample::{ProcSample, Why, redact};

fn cases() -> Vec<Case> {
    let parts = [
        classes::activity(),
        classes::kernel_states(),
        classes::leftovers(),
        classes::strays(),
        classes::ghosts(),
        classes::strangers(),
        traps::services(),
        traps::shells(),
        traps::containers(),
        traps::schedulers(),
        traps::work(),
        traps::protected(),
        traps::moments(),
        traps::exceptions(),
        traps::folded(),
    ];
    parts.into_iter().flatten().collect()
}

#[test]
fn every_case_gets_its_class() {
    let mut wrong = Vec::new();
    for case in cases() {
        let view = case.view();
        let name = format!("{} ({:?})", case.name, case.shows);
        let Some(holder) = view.holders.iter().find(|h| h.pid == Pid(case.pid)) else {
            wrong.push(format!("{name}: not shown"));
            continue;
        };
        let verdict = &holder.verdict;
        if (verdict.class, verdict.zombie) != (case.class, case.zombie) {
            wrong.push(format!(
                "{name}: {:?} zombie {}, expected {:?} {}; {:#?}",
                verdict.class, verdict.zombie, case.class, case.zombie, verdict.evidence
            ));
        }
        let named = verdict.evidence.iter().find(|fact| fact.key == case.key);
        let fits = match case.shows {
            Shows::Class | Shows::Hit => named.is_some(),
            Shows::Clear => named.is_none(),
            Shows::CannotTell => named.is_some_and(|fact| fact.weight == Weight::Neutral),
        };
        if !fits {
            wrong.push(format!("{name}: {} in {:#?}", case.key, verdict.evidence));
        }
        if holder.verdict.zombie && holder.id.is_none() {
            wrong.push(format!("{name}: a zombie without an identity"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A recording without names is there to show a fault to others: it leads to the same verdicts.
#[test]
fn what_a_recording_leaves_out_changes_no_verdict() {
    let mut wrong = Vec::new();
    for case in cases() {
        let header = Header::new(stamp(T0), 1_000);
        let redaction = Redaction::identities(redact);
        let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
        for tick in case.ticks() {
            writer.push(&tick).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let ticks = Reader::new(bytes.as_slice()).unwrap().map(Result::unwrap);
        let view = case.view_of(ticks);
        let holder = view.holders.iter().find(|holder| holder.pid == Pid(case.pid));
        let found = holder.map(|holder| (holder.verdict.class, holder.verdict.zombie));
        if found != Some((case.class, case.zombie)) {
            let evidence = holder.map(|holder| &holder.verdict.evidence);
            wrong.push(format!(
                "{} ({:?}): {found:?}, expected {:?} {}: {evidence:#?}",
                case.name, case.shows, case.class, case.zombie
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_covers_every_class_and_every_trap() {
    let cases = cases();
    let classes: HashSet<Class> = cases.iter().map(|case| case.class).collect();
    let all = [
        Class::Active,
        Class::Idle,
        Class::Unknown,
        Class::Suspended,
        Class::Debugged,
        Class::Frozen,
        Class::Orphan,
        Class::Ghost,
        Class::Survivor,
        Class::Hidden,
        Class::Defunct,
        Class::Stuck,
        Class::Unkillable,
        Class::OtherNamespace,
        Class::OtherUser,
        Class::Exiting,
        Class::IdleServer,
        Class::BusyCpu,
        Class::Reused,
        Class::Protected,
    ];
    for class in all {
        assert!(classes.contains(&class), "no case for {class:?}");
    }
    for trap in &TRAPS {
        for shows in [Shows::Hit, Shows::Clear, Shows::CannotTell] {
            assert!(
                cases.iter().any(|case| case.trap == trap.key && case.shows == shows),
                "no case for {} {shows:?}",
                trap.key
            );
        }
        assert!(!trap.rule.is_empty());
    }
    assert_eq!(TRAPS.len(), 19);
    assert!(TRAPS.iter().any(|trap| trap.effect == Effect::Protects));
}

#[test]
fn what_only_looks_like_a_leftover_or_cannot_be_told_is_never_a_zombie() {
    let safe = [Shows::Hit, Shows::CannotTell];
    for case in cases().iter().filter(|case| safe.contains(&case.shows)) {
        let view = case.view();
        let zombies = view.holders.iter().filter(|holder| holder.verdict.zombie).count();
        assert_eq!(zombies, 0, "{}", case.name);
        assert!(view.gpus.iter().all(|gpu| gpu.counts.zombies == 0));
    }
}

#[test]
fn folded_and_harmless_processes_have_no_row() {
    for case in traps::folded().iter().filter(|case| case.name.contains("not shown")) {
        assert_eq!(case.view().holders.len(), 1, "{}", case.name);
    }
}

#[test]
fn a_ghosts_bytes_count_as_freed_by_its_survivors() {
    let case = classes::ghosts().into_iter().next().unwrap();
    let view = case.view();
    let counts = view.gpus[0].counts;
    assert_eq!((counts.zombies, counts.zombie_bytes), (1, vramlens::units::Bytes::gib(5)));
}

/// What a report of two looks can say: ghosts and lone workers at once, use of the GPU not yet.
#[test]
fn two_looks_are_enough_for_what_they_can_show() {
    let two_looks = |procs: Vec<ProcSample>| {
        let world = table::world(procs);
        let mut history = History::new();
        for now in [T0, T0 + 4_000] {
            history.push(&gpu_tick(now, world.gpus.clone()));
            history.push(&proc_tick(now + 50, world.host.clone(), world.procs.clone()));
        }
        View::build(&history, &moment(T0 + 4_100))
    };
    let of = |view: &View, pid: u32| {
        let found = view.holders.iter().find(|holder| holder.pid == Pid(pid));
        found.map(|holder| (holder.verdict.class, holder.verdict.zombie))
    };
    let ghost = two_looks(vec![table::survivor()]);
    assert_eq!(of(&ghost, 500), Some((Class::Ghost, false)));
    assert_eq!(of(&ghost, 600), Some((Class::Survivor, true)));
    let adopted =
        two_looks(vec![table::with(table::survivor(), |p| p.group = Pid(400)), table::shell()]);
    assert_eq!(of(&adopted, 600), Some((Class::Survivor, true)));
    assert_eq!(of(&two_looks(vec![table::engine()]), 500), Some((Class::Orphan, true)));
    assert_eq!(of(&two_looks(vec![table::orphan()]), 500), Some((Class::Orphan, false)));
    let job = two_looks(vec![table::shell(), table::job()]);
    assert_eq!(of(&job, 500), Some((Class::Unknown, false)));
    let waits = table::with(table::job(), |p| {
        p.threads_in_d = 1;
        p.wait_channel = Some("nvidia_ioctl".to_owned());
    });
    assert_eq!(of(&two_looks(vec![waits]), 500), Some((Class::Stuck, false)));
    // Threads that could not be looked at do not hang for certain, and not for certain not.
    let unread = table::with(table::job(), |p| p.threads_unread = Some(Why::Failed(24)));
    let view = two_looks(vec![unread]);
    assert_eq!(of(&view, 500), Some((Class::Unknown, false)));
    let told = |view: &View| {
        view.holders.iter().flat_map(|h| &h.verdict.evidence).any(|e| e.key == "threads_unread")
    };
    assert!(told(&view) && !told(&job));
    assert_eq!(ghost.zombies(), (1, vramlens::units::Bytes::gib(5)));
}
