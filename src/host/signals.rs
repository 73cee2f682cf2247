//! Ending processes: the only file that signals.
//!
//! A pidfd is opened first and the identity checked after that, so that a pid that is given to
//! somebody else in between cannot be hit: the pidfd holds the process that was checked, or one
//! that has ended. It stays open through the whole escalation. Where there are no pidfds (Linux
//! before 5.3, a sandbox) nothing is signalled: between a check and a signal by number the number
//! can become somebody else's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{
    Pid as KernelPid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process,
};

use crate::host::devices::DeviceTable;
use crate::host::preset::{KillContext, Step, ends, steps};
use crate::host::root::Root;
use crate::host::slow::Slow;
use crate::host::target::{self, Check, Shield};
use crate::ids::{Pid, ProcId, Stamp};
use crate::sample::{KillEvent, KillOrder, KillStep, KillTarget};
use crate::units::Bytes;

const TICK: Duration = Duration::from_millis(200);
/// Progress on disk counts as saving for this long.
const SAVING: Duration = Duration::from_secs(5);

/// Carries out an order and reports each step. Blocks until all have ended or the preset allows
/// nothing more; belongs on a thread of its own. `cancel` stops it between two steps. The last
/// event is always `Finished`.
pub fn execute(
    order: &KillOrder,
    context: &KillContext,
    clock: &dyn Fn() -> Stamp,
    on_event: &mut dyn FnMut(KillEvent),
    cancel: &AtomicBool,
) {
    let began = clock();
    let mut devices = context.devices.clone();
    let mut run = Run { context, clock, began, on_event, cancel, open: Vec::new() };
    run.open_all(&order.targets, &mut devices);
    run.find_roots();
    let steps = steps(order.preset, &context.patience);
    for step in &steps {
        run.step(step);
    }
    if steps.last().is_some_and(|step| ends(step.signal)) {
        run.name_the_living();
    }
    run.say(None, KillStep::Finished);
}

struct Open {
    id: ProcId,
    pidfd: OwnedFd,
    /// Whether no ancestor of it is a target.
    root: bool,
}

struct Run<'a> {
    context: &'a KillContext,
    clock: &'a dyn Fn() -> Stamp,
    began: Stamp,
    on_event: &'a mut dyn FnMut(KillEvent),
    cancel: &'a AtomicBool,
    /// Targets that were checked and have not ended.
    open: Vec<Open>,
}

impl Run<'_> {
    fn say(&mut self, id: Option<ProcId>, what: KillStep) {
        let after_ms = (self.clock)().since(self.began);
        (self.on_event)(KillEvent { after_ms, id, what });
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Opens and checks every target before the first signal.
    fn open_all(&mut self, targets: &[KillTarget], devices: &mut DeviceTable) {
        let shield = Shield::raise(&self.context.root);
        for target in targets {
            let id = target.id;
            if self.open.iter().any(|open| open.id == id) {
                continue;
            }
            if let Some(reason) = shield.covers(id.pid) {
                self.say(Some(id), KillStep::Refused(reason.to_owned()));
                continue;
            }
            let pidfd = match open_pidfd(id) {
                Ok(pidfd) => pidfd,
                Err(step) => {
                    self.say(Some(id), step);
                    continue;
                }
            };
            let must_hold = target.must_hold_device || self.context.in_container;
            match target::check(&self.context.root, devices, target, must_hold) {
                Check::Fits => self.open.push(Open { id, pidfd, root: true }),
                Check::Gone => self.say(Some(id), KillStep::AlreadyGone),
                Check::Reused => self.say(Some(id), KillStep::Reused),
                Check::Refused(reason) => self.say(Some(id), KillStep::Refused(reason)),
            }
        }
    }

    /// Parents are asked now: once the first has ended, its children belong to somebody else.
    fn find_roots(&mut self) {
        let pids: Vec<Pid> = self.open.iter().map(|open| open.id.pid).collect();
        let root = &self.context.root;
        for open in &mut self.open {
            let mut pid = open.id.pid;
            for _ in 0..64 {
                let Some(parent) = target::parent(root, pid) else { break };
                if pids.contains(&parent) {
                    open.root = false;
                }
                if parent.0 <= 1 {
                    break;
                }
                pid = parent;
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let ignored = |run: &Self, open: &Open| {
            step.signal == Signal::INT.as_raw()
                && target::ignores(&run.context.root, open.id.pid, step.signal)
        };
        let mut sent = Vec::new();
        let mut later = Vec::new();
        for index in 0..self.open.len() {
            if self.cancelled() {
                return;
            }
            let Some(open) = self.open.get(index) else { continue };
            let id = open.id;
            if ignored(self, open) {
                continue;
            }
            // KILL goes to the root first and to the others at once: nobody may start new ones.
            if open.root || step.root_first.is_zero() {
                self.send(id, step);
                sent.push(id);
            } else {
                later.push(id);
            }
        }
        if !later.is_empty() {
            if !sent.is_empty() {
                self.wait(step.root_first, Duration::ZERO, &[]);
            }
            for id in later {
                if self.cancelled() {
                    return;
                }
                self.send(id, step);
                sent.push(id);
            }
        }
        if !sent.is_empty() {
            self.wait(step.wait, step.saving, &sent);
        }
    }

    /// Sends one signal, and CONT after it where the process is stopped.
    fn send(&mut self, id: ProcId, step: &Step) {
        let Some(index) = self.open.iter().position(|open| open.id == id) else { return };
        let Some(signal) = Signal::from_named_raw(step.signal) else {
            self.open.remove(index);
            self.say(Some(id), KillStep::Refused(format!("{} is no signal", step.signal)));
            return;
        };
        match self.signal(index, signal) {
            Ok(()) => self.say(Some(id), KillStep::Sent(step.signal)),
            Err(end) => {
                self.open.retain(|open| open.id != id);
                self.say(Some(id), end);
                return;
            }
        }
        // Until it continues, a stopped process acts on nothing but KILL.
        if step.continues
            && target::stopped(&self.context.root, id)
            && let Some(index) = self.open.iter().position(|open| open.id == id)
            && self.signal(index, Signal::CONT).is_ok()
        {
            self.say(Some(id), KillStep::Sent(Signal::CONT.as_raw()));
        }
    }

    fn signal(&mut self, index: usize, signal: Signal) -> Result<(), KillStep> {
        let Some(open) = self.open.get(index) else { return Err(KillStep::Gone) };
        match pidfd_send_signal(&open.pidfd, signal) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(KillStep::Gone),
            // A sandbox may let pidfds be opened and not used; where a plain signal would be
            // allowed, that is the reason. Signal 0 asks and sends nothing.
            Err(errno @ (Errno::NOSYS | Errno::PERM))
                if kernel_pid(open.id.pid).is_some_and(|pid| test_kill_process(pid).is_ok()) =>
            {
                Err(without_pidfd("pidfd_send_signal", open.id, errno))
            }
            Err(Errno::PERM) => Err(KillStep::Denied),
            Err(errno) => Err(KillStep::Refused(format!("pidfd_send_signal: {errno}"))),
        }
    }

    /// Waits until all have ended, or all of `only` where it is not empty, or the time is over.
    fn wait(&mut self, wait: Duration, saving: Duration, only: &[ProcId]) {
        let mut end = Instant::now() + wait;
        let mut disk = Disk::new(&self.context.root, end + saving);
        loop {
            self.reap();
            let left = self.open.iter().any(|open| only.is_empty() || only.contains(&open.id));
            let now = Instant::now();
            if !left || self.cancelled() {
                return;
            }
            if !saving.is_zero() {
                end = disk.extend(end, &self.open);
            }
            if now >= end {
                return;
            }
            self.sleep((end - now).min(TICK));
        }
    }

    /// Sleeps until somebody ends or the time is over.
    fn sleep(&self, time: Duration) {
        let mut fds: Vec<PollFd<'_>> =
            self.open.iter().map(|open| PollFd::new(&open.pidfd, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        // An interrupted or failed poll only means to look again.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Reports and forgets those that have ended. A pidfd is readable once the last thread has.
    fn reap(&mut self) {
        let gone: Vec<ProcId> =
            self.open.iter().filter(|open| ended(open)).map(|open| open.id).collect();
        for id in gone {
            self.open.retain(|open| open.id != id);
            self.say(Some(id), KillStep::Gone);
        }
    }

    fn name_the_living(&mut self) {
        self.reap();
        if self.cancelled() {
            return;
        }
        let living: Vec<ProcId> = self.open.iter().map(|open| open.id).collect();
        for id in living {
            let channel = target::waits_in(&self.context.root, id.pid);
            self.say(Some(id), KillStep::StillThere(channel.into()));
        }
    }
}

fn ended(open: &Open) -> bool {
    let mut fds = [PollFd::new(&open.pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn open_pidfd(id: ProcId) -> Result<OwnedFd, KillStep> {
    let Some(pid) = kernel_pid(id.pid) else {
        return Err(KillStep::Refused("it is no process number".to_owned()));
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(fd),
        Err(Errno::SRCH) => Err(KillStep::AlreadyGone),
        // Opening needs no right: a refusal is a sandbox's, or an old kernel's.
        Err(errno @ (Errno::NOSYS | Errno::PERM)) => Err(without_pidfd("pidfd_open", id, errno)),
        Err(Errno::INVAL | Errno::NOENT) => {
            Err(KillStep::Refused("the number is a thread's".to_owned()))
        }
        Err(errno) => Err(KillStep::Refused(format!("pidfd_open: {errno}"))),
    }
}

fn without_pidfd(call: &str, id: ProcId, errno: Errno) -> KillStep {
    KillStep::Refused(format!(
        "{call} is refused here ({errno}), and without it the signal could hit another process: \
         by hand it is `kill {}`",
        id.pid
    ))
}

fn kernel_pid(pid: Pid) -> Option<KernelPid> {
    i32::try_from(pid.0).ok().and_then(KernelPid::from_raw)
}

/// Watches whether targets write to disk: somebody who saves gets more time.
struct Disk {
    slow: Slow,
    written: Option<Bytes>,
    asked: Instant,
    latest: Instant,
}

impl Disk {
    fn new(root: &Root, latest: Instant) -> Self {
        Self { slow: target::slow(root), written: None, asked: Instant::now(), latest }
    }

    fn extend(&mut self, end: Instant, open: &[Open]) -> Instant {
        let now = Instant::now();
        if self.written.is_some() && now.duration_since(self.asked) < TICK * 5 && now < end {
            return end;
        }
        self.asked = now;
        let pids: Vec<Pid> = open.iter().map(|open| open.id.pid).collect();
        let written = target::written(&mut self.slow, &pids);
        let before = self.written.replace(written);
        if before.is_some_and(|before| written > before) {
            end.max(now + SAVING).min(self.latest)
        } else {
            end
        }
    }
}
