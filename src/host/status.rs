//! `/proc/PID/status`.

use crate::host::root::{self, Root};
use crate::ids::Pid;
use crate::sample::{Signals, Why};

const LIMIT: usize = 16 << 10;

/// The fields that are of use. The kernel escapes newlines of the name in this file, so every line
/// is what it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Status {
    /// The process to which the number belongs: a thread's number has a directory, too.
    pub group_leader: Option<Pid>,
    pub real_uid: Option<u32>,
    pub tracer: Pid0,
    pub namespace_pids: Vec<Pid>,
    pub signals: Signals,
}

/// A pid, or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pid0(pub Pid);

impl Default for Pid0 {
    fn default() -> Self {
        Self(Pid(0))
    }
}

/// `proc/PID/status`.
pub(super) fn read(root: &Root, pid: Pid) -> Result<Status, Why> {
    let mut buffer = [0; LIMIT];
    let text = root::record(&root.of(pid, "status"), &mut buffer)?;
    Ok(parse(&String::from_utf8_lossy(text)))
}

pub(super) fn parse(text: &str) -> Status {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let mut words = value.split_ascii_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let mask = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        match name {
            "Tgid" => status.group_leader = word().parse().ok().map(Pid),
            "Uid" => status.real_uid = word().parse().ok(),
            "TracerPid" => status.tracer = Pid0(Pid(word().parse().unwrap_or(0))),
            "NSpid" => {
                let pids = value.split_ascii_whitespace().take(32);
                status.namespace_pids = pids.filter_map(|pid| pid.parse().ok().map(Pid)).collect();
            }
            "SigPnd" | "ShdPnd" => status.signals.pending |= mask(word()),
            "SigIgn" => status.signals.ignored = mask(word()),
            "SigCgt" => status.signals.caught = mask(word()),
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let status = parse(
            "Name:\todd\\nUid:\t7\nTgid:\t604\nTracerPid:\t9\nUid:\t1000\t0\t0\t0\nNSpid:\t604\t1\n\
             SigPnd:\t0000000000000100\nShdPnd:\t0000000000004000\nSigIgn:\t0000000000000002\n\
             SigCgt:\t0000000000004002\n",
        );
        assert_eq!(status.group_leader, Some(Pid(604)));
        assert_eq!(status.real_uid, Some(1000));
        assert_eq!(status.tracer.0, Pid(9));
        assert_eq!(status.namespace_pids, [Pid(604), Pid(1)]);
        assert_eq!(status.signals, Signals { pending: 0x4100, ignored: 2, caught: 0x4002 });
        assert_eq!(parse("no colon\n\nUid:\n"), Status::default());
    }

    #[test]
    fn the_kernel_s_own_file_is_read() {
        let status = read(&Root::machine(), Pid(std::process::id())).unwrap();
        assert_eq!(status.group_leader, Some(Pid(std::process::id())));
        assert_eq!(status.real_uid, Some(nix::unistd::getuid().as_raw()));
    }
}
