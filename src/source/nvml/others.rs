//! When the lists of graphics and of MPS processes are asked: on a machine that only computes both
//! stay empty for weeks, and asking them costs as much as the list of compute processes.
//!
//! A list that had a row is asked at every look, so that a row is never older than the figures beside
//! it: one that stays could be of a process that has ended and whose memory another one took, and
//! that of a process in two lists could be the larger, older figure. What is kept is only that a list
//! was empty, and that until one of these happens:
//!
//! - Memory that the compute list does not explain (`used` less its rows) has changed, or is not
//!   known. Who appears with memory of its own changes it: it is in `used` and in no compute row.
//! - The processes of the compute list are others than before.
//! - Its turn has come, at every fourth look or after four seconds.
//!
//! So a process can be missing from these lists for three looks when it has no memory yet, when as
//! many bytes, exactly, were let go by others between the same two looks, or when one of the compute
//! list begins to draw without memory for it. `Earlier::lists_boot_ms` tells that age.

use super::fault::Fault;
use super::pace::{Pace, Turn};
use super::raw::{List, RawProcess};
use crate::sample::{Memory, Reading};

/// What is known of the two lists of one device.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// When each was found to be empty, in milliseconds since boot; `None` to ask.
    empty_ms: [Option<u64>; 2],
    /// At the last look: bytes in use without those of compute rows.
    unexplained: Option<u64>,
    /// At the last look.
    pids: Vec<u32>,
}

impl Others {
    /// Looks for what has changed since the last look.
    pub(super) fn compare(&mut self, memory: Reading<Memory>, compute: &[RawProcess]) {
        // Only whether it changes matters: a figure that is no figure does no harm.
        let listed = compute.iter().fold(0_u64, |sum, row| sum.wrapping_add(row.bytes));
        let unexplained = memory.get().map(|memory| memory.used.0.wrapping_sub(listed));
        let pids = compute.iter().map(|row| row.pid);
        let same = unexplained.is_some() && self.unexplained == unexplained;
        if same && pids.clone().eq(self.pids.iter().copied()) {
            return;
        }
        self.unexplained = unexplained;
        self.pids.clear();
        self.pids.extend(pids);
        self.empty_ms = [None; 2];
    }

    /// Whether a list is to be asked at this look.
    pub(super) fn is_due(&self, list: List, pace: Pace) -> bool {
        let empty_ms = place(list).and_then(|place| self.empty_ms[place]);
        empty_ms.is_none_or(|empty_ms| pace.is_due(Turn::Lists, empty_ms))
    }

    /// What came of it.
    pub(super) fn keep(&mut self, list: List, answer: &Result<Vec<RawProcess>, Fault>, pace: Pace) {
        if let Some(place) = place(list) {
            let empty = answer.as_ref().is_ok_and(Vec::is_empty);
            self.empty_ms[place] = empty.then_some(pace.at_ms());
        }
    }

    /// The oldest finding, where that was before this look.
    pub(super) fn earlier(&self, pace: Pace) -> Option<u64> {
        let known = self.empty_ms.into_iter().flatten();
        known.filter(|empty_ms| *empty_ms != pace.at_ms()).min()
    }
}

const fn place(list: List) -> Option<usize> {
    match list {
        List::Compute => None,
        List::Graphics => Some(0),
        List::Mps => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{MemoryApi, Why};
    use crate::units::Bytes;

    const BOTH: [List; 2] = [List::Graphics, List::Mps];

    fn used(bytes: u64) -> Reading<Memory> {
        let (total, free, used) = (Bytes(1_000), Bytes(1_000 - bytes), Bytes(bytes));
        let reserved = Reading::Value(Bytes::ZERO);
        Reading::Value(Memory { total, used, reserved, free, api: MemoryApi::V2 })
    }

    fn rows(rows: &[(u32, u64)]) -> Vec<RawProcess> {
        let none = u32::MAX;
        let row = |(pid, bytes): &(u32, u64)| RawProcess {
            pid: *pid,
            bytes: *bytes,
            gpu_instance: none,
            compute_instance: none,
        };
        rows.iter().map(row).collect()
    }

    /// A look at which no turn is due.
    fn quiet(look: u64) -> Pace {
        Pace::new(look * 4, 1_000 + look, false)
    }

    /// Which lists are asked after a first look at which both were empty.
    fn asked(
        first: (Reading<Memory>, &[(u32, u64)]),
        then: (Reading<Memory>, &[(u32, u64)]),
    ) -> [bool; 2] {
        let mut others = Others::default();
        others.compare(first.0, &rows(first.1));
        for list in BOTH {
            assert!(others.is_due(list, quiet(1)), "nothing is known yet");
            others.keep(list, &Ok(Vec::new()), quiet(1));
        }
        others.compare(then.0, &rows(then.1));
        BOTH.map(|list| others.is_due(list, quiet(2)))
    }

    #[test]
    fn empty_lists_are_left_alone_while_the_compute_list_explains_the_memory() {
        assert_eq!(asked((used(50), &[(7, 40)]), (used(50), &[(7, 40)])), [false; 2]);
        assert_eq!(asked((used(50), &[(7, 40)]), (used(70), &[(7, 60)])), [false; 2]);
        assert_eq!(asked((used(50), &[(7, u64::MAX)]), (used(50), &[(7, u64::MAX)])), [false; 2]);
    }

    #[test]
    fn what_the_compute_list_does_not_explain_asks_them() {
        assert_eq!(asked((used(50), &[(7, 40)]), (used(51), &[(7, 40)])), [true; 2]);
        assert_eq!(asked((used(50), &[(7, 40)]), (used(50), &[(7, 39)])), [true; 2]);
        assert_eq!(asked((used(50), &[(7, 40)]), (used(50), &[(8, 40)])), [true; 2]);
        assert_eq!(asked((used(50), &[(7, 40)]), (used(10), &[])), [true; 2]);
        let absent = Reading::Absent(Why::NotSupported);
        assert_eq!(asked((absent, &[(7, 40)]), (absent, &[(7, 40)])), [true; 2]);
        assert_eq!(asked((used(50), &[(7, 40)]), (absent, &[(7, 40)])), [true; 2]);
    }

    #[test]
    fn a_list_with_rows_or_a_fault_is_asked_at_every_look() {
        let mut others = Others::default();
        others.compare(used(50), &[]);
        others.keep(List::Graphics, &Ok(rows(&[(9, 0)])), quiet(1));
        others.keep(List::Mps, &Err(Fault::Code(999)), quiet(1));
        others.compare(used(50), &[]);
        assert_eq!(BOTH.map(|list| others.is_due(list, quiet(2))), [true; 2]);
        others.keep(List::Graphics, &Ok(Vec::new()), quiet(2));
        others.compare(used(50), &[]);
        assert_eq!(BOTH.map(|list| others.is_due(list, quiet(3))), [false, true]);
        assert_eq!(others.earlier(quiet(3)), Some(1_002));
        // Its turn.
        assert!(others.is_due(List::Graphics, Pace::new(13, 1_003, false)));
        assert!(others.is_due(List::Graphics, Pace::new(12, 5_002, false)));
    }
}
