//! Orders carried out on real processes.

#[path = "support/real.rs"]
mod real;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use real::{DEADLINE, Device, Holder, id, lives, now, state, until};
use vramlens::host::{KillContext, Patience, signals};
use vramlens::ids::{Pid, ProcId};
use vramlens::sample::{KillOrder, KillPreset, KillStep, KillTarget, Reading, Why};

const INT: i32 = 2;
const KILL: i32 = 9;
const TERM: i32 = 15;
const CONT: i32 = 18;

fn target(id: ProcId) -> KillTarget {
    KillTarget {
        id,
        uid: Reading::Value(nix::unistd::getuid().as_raw()),
        comm: "holder".to_owned(),
        must_hold_device: true,
    }
}

fn context(device: &Device) -> KillContext {
    let mut context = KillContext::new(&device.stand_ins());
    context.in_container = false;
    context.patience = Patience {
        interrupt: DEADLINE,
        terminate: DEADLINE,
        saving: DEADLINE,
        leftover: DEADLINE,
        root_first: DEADLINE,
        kill: DEADLINE,
    };
    context
}

fn carry_out(
    targets: &[KillTarget],
    preset: KillPreset,
    context: &KillContext,
) -> Vec<(Option<ProcId>, KillStep)> {
    let order = KillOrder { targets: targets.to_vec(), preset };
    let mut events = Vec::new();
    let cancel = AtomicBool::new(false);
    let mut take = |event: vramlens::sample::KillEvent| events.push((event.id, event.what));
    signals::execute(&order, context, &now, &mut take, &cancel);
    assert_eq!(events.pop(), Some((None, KillStep::Finished)));
    events
}

fn steps(events: Vec<(Option<ProcId>, KillStep)>) -> Vec<KillStep> {
    events.into_iter().map(|(_, step)| step).collect()
}

#[test]
fn term_ends_a_process() {
    let device = Device::new();
    let mut holder = Holder::start(&["open", device.path()], 1);
    let events = carry_out(&[target(holder.id())], KillPreset::Zombie, &context(&device));
    assert_eq!(steps(events), [KillStep::Sent(TERM), KillStep::Gone]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&holder.status()), Some(TERM));
}

#[test]
fn who_ignores_term_is_killed() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "ignore", "TERM"], 1);
    let mut context = context(&device);
    context.patience.leftover = Duration::from_millis(50);
    let events = carry_out(&[target(holder.id())], KillPreset::Zombie, &context);
    assert_eq!(steps(events), [KillStep::Sent(TERM), KillStep::Sent(KILL), KillStep::Gone]);
}

#[test]
fn gentle_interrupts_first_and_never_kills() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path()], 1);
    let events = carry_out(&[target(holder.id())], KillPreset::Gentle, &context(&device));
    assert_eq!(steps(events), [KillStep::Sent(INT), KillStep::Gone]);
    // Who ignores INT, as jobs in the background of a script do, gets TERM at once.
    let holder = Holder::start(&["open", device.path(), "ignore", "INT"], 1);
    let events = carry_out(&[target(holder.id())], KillPreset::Gentle, &context(&device));
    assert_eq!(steps(events), [KillStep::Sent(TERM), KillStep::Gone]);
    let words = ["open", device.path(), "ignore", "INT", "ignore", "TERM"];
    let holder = Holder::start(&words, 1);
    let mut hasty = context(&device);
    hasty.patience.terminate = Duration::from_millis(50);
    let events = steps(carry_out(&[target(holder.id())], KillPreset::Gentle, &hasty));
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0], KillStep::Sent(TERM));
    assert!(matches!(events[1], KillStep::StillThere(_)));
    assert!(lives(holder.pid()));
}

#[test]
fn a_stopped_process_is_continued_to_act_on_term() {
    let device = Device::new();
    let mut holder = Holder::start(&["open", device.path(), "catch", "TERM", "stop"], 1);
    until("stopped", || state(holder.pid()) == Some('T'));
    let events = carry_out(&[target(holder.id())], KillPreset::Zombie, &context(&device));
    assert_eq!(steps(events), [KillStep::Sent(TERM), KillStep::Sent(CONT), KillStep::Gone]);
    assert_eq!(holder.status().code(), Some(7), "its handler ran");
}

#[test]
fn a_reused_pid_gets_no_signal() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path()], 1);
    let mut other = holder.id();
    other.start_ticks -= 1;
    let events = carry_out(&[target(other)], KillPreset::Now, &context(&device));
    assert_eq!(steps(events), [KillStep::Reused]);
    assert!(lives(holder.pid()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path()], 1);
    let without = Holder::start(&[], 1);
    let context = context(&device);
    let refused = |target: KillTarget| {
        let events = steps(carry_out(&[target], KillPreset::Now, &context));
        match events.as_slice() {
            [KillStep::Refused(reason)] => reason.clone(),
            other => panic!("{other:?}"),
        }
    };
    let mut others = target(holder.id());
    others.uid = Reading::Value(12_345);
    assert!(refused(others).contains("belongs to user"));
    assert!(refused(target(without.id())).contains("no NVIDIA device"));
    let first = target(id(1));
    assert!(refused(KillTarget { must_hold_device: false, ..first }).contains("first process"));
    let own = target(id(std::process::id()));
    assert!(refused(own).contains("this program"));
    let parent = u32::try_from(nix::unistd::getppid().as_raw()).unwrap();
    assert!(refused(target(id(parent))).contains("below it"));
    assert!(lives(holder.pid()) && lives(without.pid()));
}

#[test]
fn kernel_threads_are_refused() {
    let kernel = (3..200).find_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        (stat.rsplit_once(')')?.1.split_whitespace().nth(1)? == "2").then_some(pid)
    });
    let Some(pid) = kernel else {
        eprintln!("skipped: no kernel thread is to be seen here");
        return;
    };
    let device = Device::new();
    let target = KillTarget {
        must_hold_device: false,
        uid: Reading::Absent(Why::NotAsked),
        ..target(id(pid))
    };
    let events = steps(carry_out(&[target], KillPreset::Signal(CONT), &context(&device)));
    assert!(matches!(&events[..], [KillStep::Refused(_)]), "{events:?}");
}

#[test]
fn a_launcher_needs_no_device_except_in_a_container() {
    let device = Device::new();
    let without = Holder::start(&[], 1);
    let launcher = KillTarget { must_hold_device: false, ..target(without.id()) };
    let mut context = context(&device);
    context.in_container = true;
    let events = steps(carry_out(std::slice::from_ref(&launcher), KillPreset::Now, &context));
    assert!(matches!(&events[..], [KillStep::Refused(_)]), "{events:?}");
    context.in_container = false;
    let events = steps(carry_out(&[launcher], KillPreset::Now, &context));
    assert_eq!(events, [KillStep::Sent(KILL), KillStep::Gone]);
}

#[test]
fn who_has_ended_is_already_gone() {
    let device = Device::new();
    let mut holder = Holder::start(&["open", device.path()], 1);
    let target = target(holder.id());
    // First as a zombie that nobody has reaped, then not at all.
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(holder.pid()).unwrap()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    until("a zombie", || state(holder.pid()) == Some('Z'));
    let events = carry_out(std::slice::from_ref(&target), KillPreset::Now, &context(&device));
    assert_eq!(steps(events), [KillStep::AlreadyGone]);
    holder.status();
    let events = carry_out(&[target], KillPreset::Now, &context(&device));
    assert_eq!(steps(events), [KillStep::AlreadyGone]);
}

#[test]
fn the_root_of_a_job_comes_first() {
    let device = Device::new();
    // The child outlives its parent and has to be ended as well.
    let holder = Holder::start(&["open", device.path(), "fork"], 2);
    let (root, child) = (holder.id(), id(holder.child()));
    let mut context = context(&device);
    context.patience.root_first = Duration::from_millis(50);
    let targets = [target(child), target(root)];
    let events = carry_out(&targets, KillPreset::Zombie, &context);
    let sent: Vec<_> = events
        .iter()
        .filter(|(_, step)| *step == KillStep::Sent(TERM))
        .filter_map(|(id, _)| *id)
        .collect();
    assert_eq!(sent, [root, child]);
    until("both gone", || !lives(holder.pid()) && !lives(holder.child()));
}

#[test]
fn a_zombie_with_live_threads_can_be_ended() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "leader-exits"], 1);
    assert_eq!(state(holder.pid()), Some('Z'));
    let events = carry_out(&[target(holder.id())], KillPreset::Now, &context(&device));
    assert_eq!(steps(events), [KillStep::Sent(KILL), KillStep::Gone]);
}

#[test]
fn a_single_signal_is_sent_once() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "stop"], 1);
    until("stopped", || state(holder.pid()) == Some('T'));
    let context = context(&device);
    let events = carry_out(&[target(holder.id())], KillPreset::Signal(CONT), &context);
    assert_eq!(steps(events), [KillStep::Sent(CONT)]);
    until("running again", || state(holder.pid()) == Some('S'));
    let events = steps(carry_out(&[target(holder.id())], KillPreset::Signal(4000), &context));
    assert!(matches!(&events[..], [KillStep::Refused(_)]), "{events:?}");
}

#[test]
fn who_saves_gets_more_time() {
    let device = Device::new();
    // Must lie on a disk: a file in memory counts as nothing written.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("checkpoint");
    let words =
        ["open", device.path(), "write", file.to_str().unwrap(), "ignore", "INT", "ignore", "TERM"];
    let holder = Holder::start(&words, 1);
    let written = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", holder.pid())).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse::<u64>().ok())
    };
    if written().is_none() {
        eprintln!("skipped: this kernel does not count bytes written");
        return;
    }
    until("it writes", || written() > Some(0));
    let mut context = context(&device);
    context.patience.terminate = Duration::from_millis(1500);
    let order = KillOrder { targets: vec![target(holder.id())], preset: KillPreset::Gentle };
    let (cancel, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let order = &order;
        let run = scope.spawn(|| {
            let mut take = |event: vramlens::sample::KillEvent| seen.lock().unwrap().push(event);
            signals::execute(order, &context, &now, &mut take, &cancel);
        });
        // Past its time it still waits, because the file grows; until it is told to stop.
        let begun = std::time::Instant::now();
        until("past the time", || run.is_finished() || begun.elapsed() > Duration::from_secs(3));
        assert!(!run.is_finished(), "{:?}", seen.lock().unwrap());
        cancel.store(true, Ordering::Relaxed);
        run.join().unwrap();
    });
    let steps: Vec<_> = seen.into_inner().unwrap().into_iter().map(|event| event.what).collect();
    assert_eq!(steps, [KillStep::Sent(TERM), KillStep::Finished]);
}

#[test]
fn a_process_of_another_user_is_denied() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let holder = Holder::start(&[], 1);
    let (pid, start) = (holder.pid().to_string(), holder.id().start_ticks.to_string());
    let output = std::process::Command::new(real::program())
        .args(["nobody", "kill", &pid, &start, "15"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Denied\nFinished\n");
    assert!(lives(holder.pid()));
}

#[test]
fn a_cancelled_order_sends_nothing_more() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path()], 1);
    let order = KillOrder { targets: vec![target(holder.id())], preset: KillPreset::Zombie };
    let mut seen = Vec::new();
    let mut take = |event: vramlens::sample::KillEvent| seen.push(event.what);
    let cancel = AtomicBool::new(true);
    signals::execute(&order, &context(&device), &now, &mut take, &cancel);
    assert_eq!(seen, [KillStep::Finished]);
    assert!(lives(holder.pid()));
}

#[test]
fn no_process_is_nobody() {
    let device = Device::new();
    for pid in [0, 2, u32::MAX, u32::MAX >> 1] {
        let nobody = ProcId { pid: Pid(pid), start_ticks: 5 };
        let events = steps(carry_out(&[target(nobody)], KillPreset::Now, &context(&device)));
        assert_eq!(events.len(), 1, "{pid}: {events:?}");
        assert!(!matches!(events[0], KillStep::Sent(_)));
    }
}
