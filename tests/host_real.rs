//! A probe on the machine's own `/proc`, with real processes.

#[path = "support/procs.rs"]
mod procs;
#[path = "support/real.rs"]
mod real;

use std::process::Command;
use std::sync::Arc;

use procs::{of, pids};
use real::{DEADLINE, Device, Holder, now, program, state, until};
use vramlens::host::{Options, Probe};
use vramlens::ids::Pid;
use vramlens::sample::{NvidiaFds, ProcState, ProcTick, Reading};

fn probe(device: &Device) -> Probe {
    // A busy machine must not make a test fail.
    let patient = DEADLINE.as_secs() * 1000;
    Probe::new("/", Options { slow_read_ms: patient, slow_look_ms: patient, ..device.options() })
}

fn look(device: &Device) -> ProcTick {
    probe(device).look(now(), &[])
}

#[test]
fn a_holder_is_found_with_all_its_facts() {
    let device = Device::new();
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("tiny.gguf");
    std::fs::write(&model, [0; 4096]).unwrap();
    let model = model.to_str().unwrap();
    let words = ["rename", "a) b", "open", device.path(), "listen", "map", model, "ignore", "INT"];
    let holder = Holder::start(&words, 1);
    let mut probe = probe(&device);
    let tick = probe.look(now(), &[]);
    let sample = of(&tick, holder.pid()).unwrap();
    assert_eq!(sample.id, holder.id());
    assert_eq!(sample.comm, "a) b");
    assert_eq!(sample.parent, Pid(std::process::id()));
    let arguments = sample.cmdline.value().unwrap();
    assert_eq!(arguments.get(1..), Some(words.map(ToOwned::to_owned).as_slice()));
    assert_eq!(sample.uid, Reading::Value(nix::unistd::getuid().as_raw()));
    let devices = sample.devices.value().unwrap();
    assert!(devices.uvm);
    assert_eq!(devices.count, 1);
    assert_eq!(sample.listens.len(), 1);
    assert_eq!(sample.model_files, [model]);
    assert_eq!(sample.signals.unwrap().ignored & 2, 2);
    assert!(sample.rss.value().unwrap().0 > 0);
    assert!(sample.written.is_some());
    assert!(!sample.stdio_deleted);
    let age = now().boot_ms.abs_diff(sample.started_boot_ms);
    assert!(age < 2 * u64::try_from(DEADLINE.as_millis()).unwrap(), "started {age} ms ago");
    // The test itself is its parent and has no device open.
    let parent = of(&tick, std::process::id()).unwrap();
    assert_eq!(parent.devices.value().map(NvidiaFds::any), Some(false));
    assert!(of(&tick, 1).is_some(), "ancestors up to the first process");
    let second = probe.look(now(), &[]);
    assert!(of(&second, holder.pid()).is_some());
}

#[test]
fn survivors_of_a_dead_parent_are_found() {
    let device = Device::new();
    let mut holder = Holder::start(&["setpgid", "open", device.path(), "fork"], 2);
    let (dead, child) = (holder.pid(), holder.child());
    holder.kill_first();
    let tick = look(&device);
    assert!(of(&tick, dead).is_none());
    let survivor = of(&tick, child).unwrap();
    assert!(survivor.devices.value().unwrap().uvm);
    assert_eq!(survivor.group, Pid(dead), "it keeps the group of its dead leader");
    assert_ne!(survivor.parent, Pid(dead));
}

#[test]
fn an_unreaped_zombie_holds_nothing_and_its_child_does() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "fork"], 2);
    let dead = nix::unistd::Pid::from_raw(i32::try_from(holder.pid()).unwrap());
    nix::sys::signal::kill(dead, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("a zombie", || state(holder.pid()) == Some('Z'));
    let tick = probe(&device).look(now(), &[Pid(holder.pid())]);
    let zombie = of(&tick, holder.pid()).unwrap();
    assert_eq!(zombie.state, ProcState::Zombie);
    assert_eq!(zombie.devices.value().map(NvidiaFds::any), Some(false));
    assert!(of(&tick, holder.child()).unwrap().devices.value().unwrap().any());
}

#[test]
fn threads_that_outlive_the_first_one_are_seen() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "leader-exits"], 1);
    let tick = look(&device);
    let sample = of(&tick, holder.pid()).unwrap();
    assert_eq!(sample.state, ProcState::Zombie);
    assert!(sample.threads > 1);
    let devices = sample.devices.value().unwrap();
    assert!(devices.uvm && devices.via_thread);
}

#[test]
fn a_stopped_process_is_seen_as_stopped() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path(), "setsid", "stop"], 1);
    until("stopped", || state(holder.pid()) == Some('T'));
    let tick = look(&device);
    let sample = of(&tick, holder.pid()).unwrap();
    assert_eq!(sample.state, ProcState::Stopped);
    assert_eq!((sample.session, sample.group), (sample.id.pid, sample.id.pid));
    assert_eq!(sample.tracer, Pid(0));
}

#[test]
fn processes_that_vanish_during_looks_do_no_harm() {
    let device = Device::new();
    let mut probe = probe(&device);
    for _ in 0..20 {
        let holders: Vec<_> = (0..4).map(|_| Holder::start(&["open", device.path()], 1)).collect();
        let alive: Vec<Pid> = holders.iter().map(|holder| Pid(holder.pid())).collect();
        let ending = std::thread::spawn(move || drop(holders));
        let tick = probe.look(now(), &alive);
        ending.join().unwrap();
        drop(tick);
        let after = pids(&probe.look(now(), &alive));
        assert!(alive.iter().all(|pid| !after.contains(&pid.0)), "{alive:?} in {after:?}");
    }
}

#[test]
fn an_old_process_that_opens_a_device_is_found_in_rotation() {
    let device = Device::new();
    let mut holder = Holder::start(&["await", "open", device.path()], 1);
    let mut probe = probe(&device);
    // On a clock that runs ahead, it is an old process at the first look.
    let mut clock = now();
    let pid = holder.pid();
    let mut found = |probe: &mut Probe| {
        clock.boot_ms += 120_000;
        let tick = probe.look(clock, &[]);
        // It may be there as somebody's relative.
        of(&tick, pid).is_some_and(|sample| sample.devices.value().is_some_and(NvidiaFds::any))
    };
    assert!(!found(&mut probe));
    assert!(!found(&mut probe));
    holder.go_on();
    assert!(holder.line().starts_with("ready"));
    // The budget of a look covers a part of a busy machine only.
    let looks = (0..2000).find(|_| found(&mut probe));
    assert!(looks.is_some());
}

#[test]
fn another_user_s_files_are_counted_as_unreadable() {
    let words: &[&str] = if nix::unistd::geteuid().is_root() { &["nobody"] } else { &[] };
    let pid = "1";
    let output = Command::new(program()).args(words).args(["look", pid]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Absent(NoPermission)"), "{text}");
    assert!(!text.contains("unreadable 0 "), "{text}");
}

#[test]
fn inside_a_pid_namespace_the_numbers_are_known_to_be_others() {
    let program = program();
    let script = format!("{} look 1", program.display());
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", &script])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("first namespace Value(false)"), "{text}");
        }
        other => eprintln!("skipped: no PID namespace is to be had here: {other:?}"),
    }
}

#[test]
fn from_outside_a_process_in_a_namespace_shows_both_numbers() {
    let device = Device::new();
    let mut child = match Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork"])
        .arg(program())
        .args(["open", device.path()])
        .stdout(std::process::Stdio::piped())
        .spawn()
    {
        Ok(child) => child,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    if line.trim() != "ready 1" {
        let _ = child.wait();
        return eprintln!("skipped: no PID namespace is to be had here: {line}");
    }
    let tick = look(&device);
    let inside: Vec<_> = tick
        .procs
        .iter()
        .filter(|sample| sample.namespace_pids.len() == 2 && sample.comm == "holder")
        .collect();
    assert_eq!(inside.len(), 1, "{:?}", pids(&tick));
    assert_eq!(inside[0].namespace_pids, [inside[0].id.pid, Pid(1)]);
    // Ending the first process of the namespace ends it all.
    let outer = nix::unistd::Pid::from_raw(i32::try_from(inside[0].id.pid.0).unwrap());
    nix::sys::signal::kill(outer, nix::sys::signal::Signal::SIGKILL).unwrap();
    child.wait().unwrap();
}

/// A process that does nothing is read at every look no more, and its end is noticed all the same.
#[test]
fn the_end_of_a_process_that_rests_shows_in_the_next_look() {
    let device = Device::new();
    let holder = Holder::start(&["open", device.path()], 1);
    let pid = holder.pid();
    let mut probe = probe(&device);
    let mut at = now();
    let (mut rested, mut same) = (false, 0);
    let mut before = None;
    for _ in 0..40 {
        let tick = probe.look(at, &[]);
        let sample = tick.procs.iter().find(|sample| sample.id.pid.0 == pid).unwrap();
        // What is left alone says how old it is.
        let read = sample.read_boot_ms;
        assert!(read.is_none_or(|read| (0..=4_000).contains(&(at.boot_ms - read))));
        rested |= read.is_some_and(|read| read < at.boot_ms);
        // And where nothing has changed, it is the one of the look before, not a copy.
        let unchanged = before.as_ref().is_some_and(|before| before == sample);
        assert_eq!(before.is_some_and(|before| Arc::ptr_eq(&before, sample)), unchanged);
        same += u32::from(unchanged);
        before = Some(Arc::clone(sample));
        at.boot_ms += 1_000;
    }
    assert!(rested);
    assert!(same > 15, "{same} of 40 looks gave the same");
    let raw = nix::unistd::Pid::from_raw(pid.cast_signed());
    assert_eq!(nix::sys::signal::kill(raw, nix::sys::signal::Signal::SIGSTOP), Ok(()));
    until("it is stopped", || state(pid) == Some('T'));
    // Its state is read every few looks.
    let seen = (0..5).any(|_| {
        at.boot_ms += 1_000;
        of(&probe.look(at, &[]), pid).is_some_and(|sample| sample.state == ProcState::Stopped)
    });
    assert!(seen);
    drop(holder);
    at.boot_ms += 1_000;
    assert!(of(&probe.look(at, &[]), pid).is_none());
}
