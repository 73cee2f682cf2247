//! From a number that somebody typed to a process.

use crate::host::root::Root;
use crate::host::{stat, status};
use crate::ids::{Pid, ProcId};
use crate::sample::{Reading, Why};

/// The process that has this number now. A thread's number is nobody's: the kernel has a
/// directory for it, and a signal to it would reach a process that was not named.
pub fn identify(root: &Root, pid: Pid) -> Reading<ProcId> {
    let stat = match stat::read(root, pid) {
        Ok(stat) => stat,
        Err(why) => return Reading::Absent(why),
    };
    let leader = status::read(root, pid).ok().and_then(|status| status.group_leader);
    if leader.is_some_and(|leader| leader != pid) || stat.pid != pid {
        return Reading::Absent(Why::Gone);
    }
    Reading::Value(stat.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_and_a_thread_is_not() {
        let root = Root::machine();
        let own = Pid(std::process::id());
        assert_eq!(identify(&root, own).value().unwrap().pid, own);
        // The test's own thread is not the first one of the process.
        let own_thread = u32::try_from(nix::unistd::gettid().as_raw()).unwrap();
        assert_ne!(own_thread, own.0);
        assert_eq!(identify(&root, Pid(own_thread)), Reading::Absent(Why::Gone));
        assert_eq!(identify(&root, Pid(u32::MAX >> 1)), Reading::Absent(Why::Gone));
    }
}
