//! When each part of a process is read again. What moves is read at its own pace; what has not moved
//! for a while is left alone for half as long again, up to a limit, since reading `/proc` is most of what a
//! look costs. A process that rests is still known to live: its pidfd is asked at every look.

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::process::{PidfdFlags, Resource, getrlimit, pidfd_open};

use crate::ids::Pid;

/// A process that does nothing is left alone for no longer than this.
const LONGEST_MS: u64 = 32_000;
/// Arguments and maps change only by work of the process; without any they are read again after this.
const LONGEST_SLOW_MS: u64 = 512_000;
/// Without a sign of work for so long, not even the state is read at every look.
const QUIET_MS: u64 = 6_000;
/// But every so often.
const REST_MS: u64 = 4_000;
/// Process handles that are kept open at the most, and which share of the allowed files. Files that
/// stay open are half as many.
const MOST_HANDLES: u64 = 2_048;
const SHARE_OF_FILES: u64 = 4;

/// A part of what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// `stat`.
    Stat,
    /// Owner, signals, cgroup.
    Status,
    /// Open files.
    Files,
    /// States of its threads.
    Threads,
    /// Bytes written.
    Written,
    /// Arguments, environment, mapped files.
    Slow,
}

/// When each part was read last.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name")]
pub(super) struct Schedule {
    /// Milliseconds since boot; `None` is "at once".
    read_ms: [Option<u64>; 6],
    /// When the process was last seen to do anything.
    moved_ms: u64,
    /// What can hang is not asked again before this.
    held_ms: u64,
}

impl Schedule {
    pub const fn new(now_ms: u64) -> Self {
        Self { read_ms: [None; 6], moved_ms: now_ms, held_ms: 0 }
    }

    /// The process did something.
    pub const fn moved(&mut self, now_ms: u64) {
        self.moved_ms = now_ms;
    }

    /// A part has been read.
    pub const fn done(&mut self, what: What, now_ms: u64) {
        self.read_ms[what as usize] = Some(now_ms);
    }

    /// When a part was read last.
    pub fn read_ms(&self, what: What) -> Option<u64> {
        self.read_ms[what as usize]
    }

    /// A part is to be read at once.
    pub const fn expire(&mut self, what: What) {
        self.read_ms[what as usize] = None;
    }

    /// Everything is.
    pub const fn expire_all(&mut self) {
        self.read_ms = [None; 6];
    }

    /// What can hang did: it is left alone until then.
    pub const fn hold(&mut self, until_ms: u64) {
        self.held_ms = until_ms;
    }

    /// Whether it has done nothing since a part was read.
    pub fn still_since(&self, what: What) -> bool {
        self.read_ms(what).is_some_and(|read_ms| self.moved_ms <= read_ms)
    }

    /// Whether a part that is read every `usual_ms` is due.
    pub fn is_due(&self, what: What, usual_ms: u64, now_ms: u64) -> bool {
        let hangs = matches!(what, What::Slow | What::Written);
        if hangs && now_ms < self.held_ms {
            return false;
        }
        let Some(read_ms) = self.read_ms[what as usize] else { return true };
        let quiet_ms = now_ms.saturating_sub(self.moved_ms);
        let wait_ms = match what {
            What::Slow if self.moved_ms <= read_ms => usual_ms.max(LONGEST_SLOW_MS),
            What::Slow => usual_ms,
            _ => usual_ms.max((quiet_ms / 2).min(LONGEST_MS)),
        };
        now_ms.saturating_sub(read_ms) >= wait_ms
    }

    /// Whether its state need not be read in this look, where its end would be noticed.
    pub fn rests(&self, pid: Pid, now_ms: u64) -> bool {
        // Spread by pid, so that they do not all come in one look.
        let quiet_ms = QUIET_MS + u64::from(pid.0 % 4) * 1_000;
        self.read_ms[What::Stat as usize].is_some_and(|read_ms| {
            now_ms.saturating_sub(self.moved_ms) >= quiet_ms
                && now_ms.saturating_sub(read_ms) + 100 < REST_MS
        })
    }
}

/// Handles of processes, by which their end is noticed, and files that stay open.
#[derive(Debug)]
pub(super) struct Handles {
    left: u64,
    files_left: u64,
    open: usize,
    /// Tells which have ended; without it there are no handles.
    poll: Option<OwnedFd>,
}

/// Handles that end in one look are seldom more.
const USUAL_ENDS: usize = 16;

impl Handles {
    /// With `own` false, pids of this `/proc` are not those of the kernel: there are no handles.
    pub fn new(own: bool) -> Self {
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = if own { (allowed / SHARE_OF_FILES).min(MOST_HANDLES) } else { 0 };
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
        Self { left: share, files_left: share / 2, open: 0, poll }
    }

    /// A handle of a process, where one is to be had. Taken before its identity is read, so that it
    /// cannot be somebody else's who came after.
    pub fn open(&mut self, pid: Pid) -> Option<OwnedFd> {
        if self.left == 0 {
            return None;
        }
        let number = rustix::process::Pid::from_raw(i32::try_from(pid.0).ok()?)?;
        let handle = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let data = epoll::EventData::new_u64(u64::from(pid.0));
        epoll::add(self.poll.as_ref()?, &handle, data, epoll::EventFlags::IN).ok()?;
        self.left -= 1;
        self.open += 1;
        Some(handle)
    }

    /// A file that may stay open; `None` where there are enough.
    pub fn keep(&mut self, file: OwnedFd) -> Option<OwnedFd> {
        let file = (self.files_left > 0).then_some(file)?;
        self.files_left -= 1;
        Some(file)
    }

    /// It need not stay open any longer.
    pub fn let_go(&mut self, file: Option<OwnedFd>) {
        if let Some(file) = file {
            drop(file);
            self.files_left += 1;
        }
    }

    /// Gives one back.
    pub fn close(&mut self, handle: Option<OwnedFd>) {
        if let Some(handle) = handle {
            // A child that is just being begun has a copy of it, by which it would stay watched.
            if let Some(poll) = &self.poll {
                let _ = epoll::delete(poll, &handle);
            }
            drop(handle);
            self.left += 1;
            self.open -= 1;
        }
    }

    /// Those that have ended, dead or zombies: one system call, however many handles there are.
    pub fn ended(&self) -> Vec<Pid> {
        let Some(poll) = self.poll.as_ref().filter(|_| self.open > 0) else { return Vec::new() };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = Vec::with_capacity(USUAL_ENDS);
        let room = rustix::buffer::spare_capacity(&mut events);
        if epoll::wait(poll, room, Some(&at_once)).is_ok_and(|count| count == USUAL_ENDS) {
            events = Vec::with_capacity(self.open);
            let room = rustix::buffer::spare_capacity(&mut events);
            // Without an answer they are seen in the next look.
            let _ = epoll::wait(poll, room, Some(&at_once));
        }
        let pid = |event: &epoll::Event| u32::try_from(event.data.u64()).ok().map(Pid);
        events.iter().filter_map(pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn what_moves_is_read_at_its_own_pace_and_what_rests_ever_less_often() {
        let mut schedule = Schedule::new(0);
        let mut reads = 0;
        for now_ms in (0..120_000).step_by(1_000) {
            if schedule.is_due(What::Status, 4_000, now_ms) {
                schedule.done(What::Status, now_ms);
                reads += 1;
            }
        }
        assert!((6..=9).contains(&reads), "{reads} reads in two quiet minutes");
        // At the first move the usual pace is back.
        schedule.moved(120_000);
        assert!(schedule.is_due(What::Status, 4_000, 120_000));
        schedule.done(What::Status, 120_000);
        assert!(!schedule.is_due(What::Status, 4_000, 123_000));
        assert!(schedule.is_due(What::Status, 4_000, 124_000));
    }

    #[test]
    fn arguments_are_read_again_only_after_work() {
        let mut schedule = Schedule::new(0);
        schedule.done(What::Slow, 1_000);
        assert!(!schedule.is_due(What::Slow, 4_000, 100_000));
        assert!(schedule.is_due(What::Slow, 4_000, 600_000));
        schedule.moved(2_000);
        assert!(schedule.is_due(What::Slow, 4_000, 5_000));
        schedule.hold(60_000);
        assert!(!schedule.is_due(What::Slow, 4_000, 5_000));
        schedule.expire(What::Slow);
        assert!(schedule.is_due(What::Slow, 4_000, 60_000));
    }

    #[test]
    fn a_quiet_process_is_left_alone_for_a_few_looks_and_no_longer() {
        let mut schedule = Schedule::new(0);
        schedule.done(What::Stat, 20_000);
        assert!(schedule.rests(Pid(4), 21_000) && schedule.rests(Pid(4), 23_000));
        assert!(!schedule.rests(Pid(4), 24_000));
        schedule.moved(20_500);
        assert!(!schedule.rests(Pid(4), 21_000));
        schedule.expire(What::Stat);
        assert!(!schedule.rests(Pid(4), 60_000));
    }

    #[test]
    fn all_that_end_at_once_are_noticed_at_once() {
        let mut handles = Handles::new(true);
        let sleep = |_| std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut children: Vec<std::process::Child> = (0..USUAL_ENDS + 3).map(sleep).collect();
        let pids: Vec<Pid> = children.iter().map(|child| Pid(child.id())).collect();
        let open: Vec<_> = pids.iter().map(|pid| handles.open(*pid)).collect();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut ended = handles.ended();
        ended.sort_unstable();
        let mut pids = pids;
        pids.sort_unstable();
        assert_eq!(ended, pids);
        drop(open);
    }

    #[test]
    fn the_end_of_a_process_shows_at_its_handle() {
        let mut handles = Handles::new(true);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = handles.open(Pid(std::process::id()));
        let other = handles.open(Pid(child.id()));
        assert!(own.is_some() && other.is_some());
        assert_eq!(handles.ended(), []);
        child.kill().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut found = Vec::new();
        while found.is_empty() && Instant::now() < deadline {
            found = handles.ended();
        }
        // Not yet reaped: a zombie has ended too.
        assert_eq!(found, [Pid(child.id())]);
        child.wait().unwrap();
        assert_eq!(handles.ended(), [Pid(child.id())]);
        // One that is closed is asked no more.
        handles.close(other);
        assert_eq!(handles.ended(), []);
        assert!(Handles::new(false).open(Pid(std::process::id())).is_none());
    }
}
