//! Whether a process still is what was shown when somebody decided to end it. Signals nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::host::devices::DeviceTable;
use crate::host::fds::{self, Depth};
use crate::host::root::{self, Root};
use crate::host::slow::{Answer, Job, Outcome, Slow, Want};
use crate::host::{stat, status};
use crate::ids::{Pid, ProcId};
use crate::sample::{KillTarget, ProcState, Reading, Why};
use crate::units::Bytes;

/// How long a read may take that can hang.
const PATIENCE: Duration = Duration::from_millis(250);

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    Fits,
    Gone,
    Reused,
    Refused(String),
}

/// Processes that are never signalled, whatever the order says.
#[derive(Debug)]
pub(super) struct Shield {
    own: Pid,
    ancestors: BTreeSet<Pid>,
    /// Whether the numbers in `/proc` are those that signals go by.
    proc_is_ours: bool,
}

impl Shield {
    pub fn raise(root: &Root) -> Self {
        let own = Pid(std::process::id());
        let mut ancestors = BTreeSet::new();
        let mut pid = own;
        while let Ok(stat) = stat::read(root, pid)
            && stat.parent.0 != 0
            && ancestors.insert(stat.parent)
        {
            pid = stat.parent;
        }
        Self { own, ancestors, proc_is_ours: root.own_pid() == Some(own) }
    }

    /// Why this pid is never a target.
    pub fn covers(&self, pid: Pid) -> Option<&'static str> {
        match pid.0 {
            0 => Some("0 is no process"),
            1 => Some("pid 1 is the system's first process"),
            2 => Some("pid 2 is the kernel's"),
            _ if pid == self.own => Some("it is this program"),
            _ if self.ancestors.contains(&pid) => Some("this program runs below it"),
            _ if !self.proc_is_ours => {
                Some("/proc shows another PID namespace: the number may be somebody else's")
            }
            _ => None,
        }
    }
}

/// Compares a target with what its number stands for now. Called with the pidfd open: what is found
/// here is true of the process that the pidfd holds, or that process has ended.
pub(super) fn check(
    root: &Root,
    table: &mut DeviceTable,
    target: &KillTarget,
    must_hold_device: bool,
) -> Check {
    let pid = target.id.pid;
    let stat = match stat::read(root, pid) {
        Ok(stat) => stat,
        Err(Why::Gone) => return Check::Gone,
        Err(why) => return Check::Refused(format!("its state cannot be read: {}", why.words())),
    };
    if stat.id() != target.id {
        return Check::Reused;
    }
    if stat.kernel_thread() {
        return Check::Refused("it is a thread of the kernel".to_owned());
    }
    if stat.defunct() {
        return Check::Gone;
    }
    match status::read(root, pid) {
        Ok(status) => {
            if status.group_leader.is_some_and(|leader| leader != pid) {
                return Check::Refused("the number is a thread's".to_owned());
            }
            if let (Reading::Value(was), Some(is)) = (target.uid, status.real_uid)
                && was != is
            {
                return Check::Refused(format!("it belongs to user {is} now, not {was}"));
            }
        }
        Err(Why::Gone) => return Check::Gone,
        Err(why) => return Check::Refused(format!("its owner cannot be read: {}", why.words())),
    }
    if must_hold_device { check_device(root, table, pid, stat.state) } else { Check::Fits }
}

fn check_device(root: &Root, table: &mut DeviceTable, pid: Pid, state: ProcState) -> Check {
    let of_threads = state == ProcState::Zombie;
    match fds::scan(root, pid, table, Depth::Devices, of_threads) {
        Ok(open) if open.devices.any() => Check::Fits,
        Ok(_) if mapped_devices(root, pid) > 0 => Check::Fits,
        Ok(_) => Check::Refused("it has no NVIDIA device open".to_owned()),
        Err(Why::Gone) => Check::Gone,
        Err(why) => Check::Refused(format!("its open files cannot be read: {}", why.words())),
    }
}

/// A process can close the file and keep the mapping.
fn mapped_devices(root: &Root, pid: Pid) -> u32 {
    let want = Want { maps: true, ..Want::default() };
    let mut count = 0;
    Slow::new(root, PATIENCE).ask(vec![Job::Process(pid, want)], PATIENCE, |outcome| {
        if let Outcome::Answered(Answer::Process(_, facts)) = outcome
            && let Some(Reading::Value(mapped)) = facts.mapped
        {
            count = mapped.devices;
        }
    });
    count
}

/// Whether it is stopped by a signal, so that it acts on others only once it continues.
pub(super) fn stopped(root: &Root, id: ProcId) -> bool {
    stat::read(root, id.pid).is_ok_and(|stat| stat.id() == id && stat.state == ProcState::Stopped)
}

/// Whether it ignores a signal.
pub(super) fn ignores(root: &Root, pid: Pid, signal: i32) -> bool {
    let bit = u32::try_from(signal - 1).ok().and_then(|shift| 1_u64.checked_shl(shift));
    status::read(root, pid)
        .is_ok_and(|status| bit.is_some_and(|bit| status.signals.ignored & bit != 0))
}

/// Its parent now.
pub(super) fn parent(root: &Root, pid: Pid) -> Option<Pid> {
    stat::read(root, pid).ok().map(|stat| stat.parent)
}

/// Bytes written to disk so far by each of these, as far as that can be read.
pub(super) fn written(slow: &mut Slow, pids: &[Pid]) -> Bytes {
    let want = Want { written: true, ..Want::default() };
    let jobs: Vec<Job> = pids.iter().map(|pid| Job::Process(*pid, want)).collect();
    let mut sum = Bytes::ZERO;
    slow.ask(jobs, PATIENCE, |outcome| {
        if let Outcome::Answered(Answer::Process(_, facts)) = outcome
            && let Some(Reading::Value(bytes)) = facts.written
        {
            sum += bytes;
        }
    });
    sum
}

/// The helper for [`written`].
pub(super) fn slow(root: &Root) -> Slow {
    Slow::new(root, PATIENCE)
}

/// What a process waits in: one of its threads in D, else its first thread. Absent where its threads
/// could not be looked at: what the first waits in need not be what keeps the process.
pub(super) fn waits_in(root: &Root, pid: Pid) -> Result<Option<String>, Why> {
    let tid = stat::waiting_threads(root, pid)?.one.unwrap_or(pid.0);
    Ok(wait_channel(root, pid, &format!("task/{tid}/wchan")))
}

/// A `wchan` file. The kernel writes 0 where it may not or cannot say.
pub(super) fn wait_channel(root: &Root, pid: Pid, file: &str) -> Option<String> {
    let text = root::text(&root.of(pid, file), 128).ok()?;
    let text = text.trim();
    (text != "0" && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_waits_in_is_not_told_without_its_threads() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let write = |file: &str, text: &str| {
            let path = dir.path().join("proc/7").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let stat = |state: char| {
            format!("7 (x) {state} 1 7 7 0 -1 0 9 0 0 0 120 30 0 0 20 0 2 0 98765 1000 25 1 1")
        };
        write("wchan", "futex_wait");
        assert_eq!(waits_in(&root, Pid(7)), Err(Why::Gone), "no list of threads");
        write("task/7/stat", &stat('S'));
        write("task/7/wchan", "futex_wait");
        assert_eq!(waits_in(&root, Pid(7)), Ok(Some("futex_wait".to_owned())));
        write("task/8/stat", &stat('D'));
        write("task/8/wchan", "nvidia_ioctl");
        assert_eq!(waits_in(&root, Pid(7)), Ok(Some("nvidia_ioctl".to_owned())));
        write("task/8/stat", "broken");
        assert_eq!(waits_in(&root, Pid(7)), Err(Why::Nonsense));
    }
}
