//! Which of the processes that the driver lists belong to a command: its descendants, also those
//! whose parents are gone, as long as they were seen before or are in the command's session.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::Pid;
use crate::runtime::run_job::Root;
use crate::sample::ProcSample;

/// Ancestors that are followed.
const DEPTH: usize = 64;
/// Processes that are remembered.
const MOST: usize = 8_192;

/// A command and what came of it.
pub struct Tree {
    root: Pid,
    session: Option<Pid>,
    /// By number: when it started, in clock ticks since boot.
    members: HashMap<Pid, u64>,
}

/// What the kernel says of a process's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    parent: Pid,
    session: Pid,
    start_ticks: u64,
}

impl Tree {
    /// Of this command.
    pub fn new(root: Root) -> Self {
        Self { root: Pid(root.pid), session: root.session.map(Pid), members: HashMap::new() }
    }

    /// Those of `listed` that belong to it; asks the kernel.
    pub fn among(&mut self, listed: &[Pid]) -> Vec<Pid> {
        listed.iter().copied().filter(|pid| self.is_member(*pid, &place)).collect()
    }

    /// Learns from a look at the processes.
    pub fn learn(&mut self, procs: &[Arc<ProcSample>]) {
        let places: HashMap<Pid, Place> = procs
            .iter()
            .map(|process| {
                let (parent, session) = (process.parent, process.session);
                (process.id.pid, Place { parent, session, start_ticks: process.id.start_ticks })
            })
            .collect();
        for process in procs {
            self.is_member(process.id.pid, &|pid| places.get(&pid).copied());
        }
    }

    /// Whether it belongs to the command, as far as is known.
    pub fn contains(&self, pid: Pid) -> bool {
        pid == self.root || self.members.contains_key(&pid)
    }

    fn is_member(&mut self, pid: Pid, place: &dyn Fn(Pid) -> Option<Place>) -> bool {
        if pid == self.root {
            return true;
        }
        let Some(first) = place(pid) else {
            // Dead: what was a member is still one in the driver's list.
            return self.members.contains_key(&pid);
        };
        if let Some(start) = self.members.get(&pid)
            && *start == first.start_ticks
        {
            return true;
        }
        self.members.remove(&pid);
        let found = self.descends(first, place);
        if found && self.members.len() < MOST {
            self.members.insert(pid, first.start_ticks);
        }
        found
    }

    fn descends(&self, mut at: Place, place: &dyn Fn(Pid) -> Option<Place>) -> bool {
        for _ in 0..DEPTH {
            if Some(at.session) == self.session || at.parent == self.root {
                return true;
            }
            let Some(parent) = place(at.parent).filter(|_| at.parent.0 > 1) else { return false };
            if self.members.get(&at.parent) == Some(&parent.start_ticks) {
                return true;
            }
            at = parent;
        }
        false
    }
}

/// `/proc/PID/stat`: the name in it may hold anything, blanks and brackets included.
fn place(pid: Pid) -> Option<Place> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Place> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let pid = |at: usize| Some(Pid(u32::try_from(number(at)?).ok()?));
    // Behind the name: state, parent, group, session; the start is field 22 of all.
    Some(Place { parent: pid(1)?, session: pid(3)?, start_ticks: number(19)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(parent: u32, session: u32) -> Place {
        Place { parent: Pid(parent), session: Pid(session), start_ticks: u64::from(parent) + 7 }
    }

    #[test]
    fn descendants_are_found_and_remembered() {
        let mut tree = Tree::new(Root { pid: 100, session: Some(99) });
        let family: HashMap<u32, Place> =
            [(100, at(99, 99)), (101, at(100, 50)), (102, at(101, 50)), (200, at(1, 200))].into();
        let all = |pid: Pid| family.get(&pid.0).copied();
        assert!(tree.is_member(Pid(102), &all));
        assert!(!tree.is_member(Pid(200), &all));
        // Its parent is gone; it was seen before.
        assert!(tree.is_member(Pid(102), &|pid| {
            (pid.0 == 102).then(|| Place { parent: Pid(1), ..at(101, 50) })
        }));
        // Dead, and still listed.
        assert!(tree.is_member(Pid(102), &|_| None));
        // Another process by the same number.
        let other = |pid: Pid| (pid.0 == 102).then(|| Place { start_ticks: 9_999, ..at(1, 1) });
        assert!(!tree.is_member(Pid(102), &other));
        // Its parents were never seen: the session tells.
        assert!(tree.is_member(Pid(103), &|pid| (pid.0 == 103).then(|| at(1, 99))));
        assert!(!tree.contains(Pid(102)) && tree.contains(Pid(103)));
    }

    #[test]
    fn a_name_can_hold_anything() {
        let stat = "7 (a) b (c) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 4242 0 0";
        let place = parse(stat).unwrap();
        assert_eq!(place, Place { parent: Pid(3), session: Pid(5), start_ticks: 4242 });
        assert_eq!(parse("7 (x"), None);
    }

    #[test]
    fn a_real_child_belongs_to_this_process() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut tree = Tree::new(Root { pid: std::process::id(), session: None });
        assert_eq!(tree.among(&[Pid(1), Pid(child.id())]), [Pid(child.id())]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
