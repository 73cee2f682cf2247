//! Kills while pids are reused as fast as the machine can: nothing but the targets gets a signal.
//!
//! The test runs itself again in a PID namespace of its own, where it says which pid comes next.
//! Targets die by themselves while an order against them is under way, and a bystander that opens
//! the same device takes the pid over at once. It has a handler for every signal.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[path = "support/real.rs"]
mod real;

use real::{Device, id, now};
use vramlens::host::{KillContext, Patience, signals};
use vramlens::ids::ProcId;
use vramlens::sample::{KillEvent, KillOrder, KillPreset, KillStep, KillTarget, Reading};

const INSIDE: &str = "VRAMLENS_TEST_PID_REUSE";
const REUSES: u32 = 10_000;
/// Processes that take part at once; each has a pid of its own that is used again and again.
const LANES: u32 = 20;
const FIRST: u32 = 1000;
/// It ends with what was done by then; the count says how far it came.
const WITHIN: Duration = Duration::from_secs(75);

#[test]
fn ten_thousand_reused_pids_and_no_stray_signal() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let unshared =
        Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    if !unshared.is_ok_and(|output| output.status.success()) {
        assert!(
            !(nix::unistd::geteuid().is_root() && std::env::var_os("CI").is_some()),
            "root in CI must be able to make a PID namespace"
        );
        eprintln!("skipped: no PID namespace is to be had here");
        return;
    }
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "ten_thousand_reused_pids_and_no_stray_signal", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{trouble}");
    let told = said.lines().find_map(|line| line.split_once("pids reused: ")).expect("a count");
    let count: u32 = told.1.split(',').next().unwrap().parse().unwrap();
    eprintln!("pids reused: {}", told.1);
    assert!(count >= REUSES, "{}", told.1);
}

/// A process on a pid of the caller's choice, with the device open.
struct Lane {
    child: Child,
    said: BufReader<ChildStdout>,
}

/// Ends at a line, and at every signal.
const TARGET: &str = "exec 3<>\"$0\"; echo ready; read line";
/// Says whether a signal came, once it is asked.
const BYSTANDER: &str = "exec 3<>\"$0\"; \
    for name in HUP INT QUIT TERM USR1 USR2 CONT TSTP ALRM; do trap 'echo hit' $name; done; \
    echo ready; read line; echo unhurt; read line";

impl Lane {
    fn start(pid: u32, device: &str, script: &str) -> Self {
        loop {
            // A thread that starts in between takes the number: then once more.
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            let mut child = Command::new("sh")
                .args(["-c", script, device])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(child.stdout.take().unwrap());
            let mut lane = Self { child, said };
            assert_eq!(lane.line(), "ready");
            if lane.child.id() == pid {
                return lane;
            }
            lane.end();
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn target(id: ProcId) -> KillTarget {
    KillTarget {
        id,
        uid: Reading::Value(nix::unistd::getuid().as_raw()),
        comm: "sh".to_owned(),
        must_hold_device: true,
    }
}

fn context(device: &Device) -> KillContext {
    let mut context = KillContext::new(&device.stand_ins());
    context.in_container = false;
    let short = Duration::from_millis(20);
    context.patience = Patience {
        interrupt: short,
        terminate: short,
        saving: short,
        leftover: short,
        root_first: Duration::ZERO,
        kill: Duration::from_secs(5),
    };
    context
}

/// A process that is older than this cannot be mistaken for one that starts now: the kernel counts
/// starts in hundredths of a second.
const TICKS: Duration = Duration::from_millis(25);

/// Orders against targets that end meanwhile, each replaced by a bystander with its pid.
fn inside() {
    let device = Device::new();
    let context = context(&device);
    let start = |n: u32, script| Lane::start(FIRST + n, device.path(), script);
    let mut count = Count::default();
    let begun = Instant::now();
    let mut targets: Vec<Lane> = (0..LANES).map(|n| start(n, TARGET)).collect();
    while count.reused < REUSES && begun.elapsed() < WITHIN {
        let aged = Instant::now() + TICKS;
        let ids: Vec<ProcId> = (0..LANES).map(|n| id(FIRST + n)).collect();
        while Instant::now() < aged {
            std::thread::yield_now();
        }
        let presets = [KillPreset::Zombie, KillPreset::Now, KillPreset::Gentle];
        let order = KillOrder {
            targets: ids.iter().map(|id| target(*id)).collect(),
            preset: presets[count.orders as usize % presets.len()],
        };
        let carry_out = || {
            let mut events: Vec<KillEvent> = Vec::new();
            let cancel = AtomicBool::new(false);
            signals::execute(&order, &context, &now, &mut |event| events.push(event), &cancel);
            events
        };
        // In the middle of the change, and after it.
        let (bystanders, events) = std::thread::scope(|scope| {
            let early = (count.orders % 4 != 3).then(|| scope.spawn(carry_out));
            let mut bystanders = Vec::new();
            for (n, old) in targets.into_iter().enumerate() {
                old.end();
                bystanders.push(start(n as u32, BYSTANDER));
            }
            let events = early.map_or_else(carry_out, |order| order.join().unwrap());
            (bystanders, events)
        });
        count.orders += 1;
        count.take(&events, &ids);
        targets = Vec::new();
        for (n, mut bystander) in bystanders.into_iter().enumerate() {
            // It may be gone: then there is nobody to take the line, and no answer.
            let _ = bystander.child.stdin.as_mut().unwrap().write_all(b"\n");
            let answer = bystander.line();
            assert_eq!(answer, "unhurt", "the bystander of pid {}: {events:?}", FIRST + n as u32);
            bystander.end();
            targets.push(start(n as u32, TARGET));
            count.reused += 2;
        }
    }
    targets.into_iter().for_each(Lane::end);
    println!("pids reused: {}, in {:?}: {count:?}", count.reused, begun.elapsed());
}

#[derive(Debug, Default)]
struct Count {
    reused: u32,
    orders: u32,
    sent: u32,
    reuse_seen: u32,
    refused: u32,
    gone: u32,
}

impl Count {
    fn take(&mut self, events: &[KillEvent], targets: &[ProcId]) {
        for event in events {
            match event.what {
                KillStep::Sent(_) => {
                    assert!(event.id.is_some_and(|id| targets.contains(&id)), "{event:?}");
                    self.sent += 1;
                }
                KillStep::Reused => self.reuse_seen += 1,
                KillStep::Refused(_) => self.refused += 1,
                KillStep::Gone | KillStep::AlreadyGone => self.gone += 1,
                _ => {}
            }
        }
    }
}
