//! Moments of a recording, made again from its ticks: the history as it was then. A thread of its own
//! does it, since it reads the file.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};

use crate::history::History;
use crate::record::Recording;
use crate::runtime::desk::Desk;
use crate::sample::{GapCause, Tick};

/// Ticks between two checkpoints, as long as there is room for all of them.
const EVERY: u64 = 64;
/// Checkpoints that are kept of the whole recording.
const MOST: usize = 48;
/// And around the moment that was shown last, where those are far apart.
const NEAR: usize = 8;
/// Runs of all series of all checkpoints together, 8 bytes each.
const MAX_RUNS: usize = 6_000_000;
/// Of them so many are for those around the moment that was shown last.
const ROOM_NEAR: usize = MAX_RUNS / 3;

/// A history, and how many ticks it was made of.
#[derive(Debug, Clone)]
struct Checkpoint {
    ticks: u64,
    /// The latest of them, milliseconds since boot.
    highest_ms: u64,
    history: History,
}

impl Checkpoint {
    fn empty() -> Self {
        Self { ticks: 0, highest_ms: 0, history: History::new() }
    }

    fn take(&mut self, tick: Tick) {
        self.highest_ms = self.highest_ms.max(tick.at().boot_ms);
        self.ticks += 1;
        self.history.take(tick);
    }
}

/// Goes to moments of a recording, each from the checkpoint before it.
#[derive(Debug)]
pub struct Rewind {
    recording: Recording,
    every: u64,
    kept: Vec<Checkpoint>,
    near: Vec<Checkpoint>,
}

impl Rewind {
    /// In a recording.
    pub const fn new(recording: Recording) -> Self {
        Self { recording, every: EVERY, kept: Vec::new(), near: Vec::new() }
    }

    /// The history of a moment (milliseconds since boot): what the ticks up to it have told, as if
    /// they had been played. `None` where the recording cannot be read any more.
    pub fn to(&mut self, at_ms: u64) -> Option<History> {
        match self.to_unless(at_ms, |_| false) {
            ControlFlow::Continue(history) => history,
            ControlFlow::Break(()) => None,
        }
    }

    /// As [`Rewind::to`], and asks every few ticks, by their number so far, whether to leave instead:
    /// what was read is not read again, as far as there is room for checkpoints.
    pub fn to_unless(
        &mut self,
        at_ms: u64,
        leave: impl Fn(u64) -> bool,
    ) -> ControlFlow<(), Option<History>> {
        let before = self.kept.iter().chain(&self.near).filter(|kept| kept.highest_ms <= at_ms);
        let mut now =
            before.max_by_key(|kept| kept.ticks).cloned().unwrap_or_else(Checkpoint::empty);
        // Behind damage ticks cannot be counted from the signposts of the file.
        let mut whole = true;
        let Ok(ticks) = self.recording.ticks_after(now.ticks) else {
            return ControlFlow::Continue(None);
        };
        for tick in ticks {
            if tick.at().boot_ms > at_ms {
                break;
            }
            whole &= !matches!(&tick, Tick::Gap(gap) if gap.cause == GapCause::Damaged);
            now.take(tick);
            if now.ticks.is_multiple_of(EVERY) {
                if whole {
                    self.keep(&now);
                }
                if leave(now.ticks) {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(Some(now.history))
    }

    fn keep(&mut self, now: &Checkpoint) {
        let known = |kept: &[Checkpoint]| kept.iter().any(|one| one.ticks == now.ticks);
        if known(&self.kept) || known(&self.near) {
            return;
        }
        if now.ticks.is_multiple_of(self.every) {
            self.kept.push(now.clone());
        } else {
            self.near.push(now.clone());
        }
        // Those of the whole recording leave room for the step back.
        while self.kept.len() > MOST
            || (self.kept.len() > 1 && runs(&self.kept) > MAX_RUNS - ROOM_NEAR)
        {
            self.every *= 2;
            let every = self.every;
            self.kept.retain(|kept| kept.ticks.is_multiple_of(every));
        }
        let too_many = self.near.len().saturating_sub(NEAR);
        self.near.drain(..too_many);
        while !self.near.is_empty() && runs(&self.kept) + runs(&self.near) > MAX_RUNS {
            self.near.remove(0);
        }
    }

    /// Checkpoints that are kept, and the runs of their series: for the self-check.
    pub fn weight(&self) -> (usize, usize) {
        (self.kept.len() + self.near.len(), runs(&self.kept) + runs(&self.near))
    }
}

fn runs(kept: &[Checkpoint]) -> usize {
    kept.iter().map(|one| one.history.runs()).sum()
}

#[derive(Debug, Default)]
struct Wish {
    to: Option<u64>,
    closed: bool,
}

impl Desk<Wish> {
    /// Whether nobody waits for the moment any more: another is wanted, or none.
    fn has_left(&self, at_ms: u64) -> bool {
        let wish = self.lock();
        wish.closed || wish.to.is_some_and(|to| to != at_ms)
    }

    /// Waits for the next wish; `None` where nobody has any more.
    fn next(&self) -> Option<u64> {
        let mut wish = self.lock();
        loop {
            if wish.closed {
                return None;
            }
            if let Some(to) = wish.to.take() {
                return Some(to);
            }
            wish = self.changed.wait(wish).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Asks the thread that goes to moments. Dropped, it ends.
#[derive(Debug, Default)]
pub struct Rewinder {
    desk: Arc<Desk<Wish>>,
}

impl Rewinder {
    /// Starts the thread. `open` runs on it, and only once a moment is asked for; `tell` gets each
    /// moment with its history, `None` where the recording cannot be read.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn(
        open: impl FnOnce() -> Option<Recording> + Send + 'static,
        tell: impl Fn(u64, Option<History>) + Send + 'static,
    ) -> io::Result<Self> {
        let new = Self::default();
        let desk = Arc::clone(&new.desk);
        std::thread::Builder::new().name("rewind".to_owned()).stack_size(1 << 20).spawn(
            move || {
                let Some(mut to) = desk.next() else { return };
                let mut rewind = open().map(Rewind::new);
                loop {
                    let leave = |_| desk.has_left(to);
                    let found = match &mut rewind {
                        Some(rewind) => rewind.to_unless(to, leave),
                        None => ControlFlow::Continue(None),
                    };
                    if let ControlFlow::Continue(history) = found {
                        tell(to, history);
                    }
                    match desk.next() {
                        Some(next) => to = next,
                        None => return,
                    }
                }
            },
        )?;
        Ok(new)
    }

    /// Asks for a moment. The newest wish counts.
    pub fn ask(&self, at_ms: u64) {
        self.desk.leave(|wish| wish.to = Some(at_ms));
    }
}

impl Drop for Rewinder {
    fn drop(&mut self) {
        self.desk.leave(|wish| wish.closed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;
    use crate::record::Reader;
    use crate::runtime::live::DEMO;
    use crate::sample::{GpuProc, Reading};
    use crate::units::Bytes;

    /// Many rows that move each second.
    fn heavy() -> History {
        let mut ticks = Reader::new(DEMO).unwrap().map(Result::unwrap);
        let of_row = |tick: &Tick| match tick {
            Tick::Gpus(tick) => {
                tick.gpus[0].processes.value()?.first().map(|row| (tick.clone(), row.clone()))
            }
            _ => None,
        };
        let (mut tick, row) = ticks.find_map(|tick| of_row(&tick)).unwrap();
        let mut history = History::new();
        for n in 0..900_u64 {
            let moved = |k: u64| GpuProc {
                pid: Pid(1_000 + k as u32),
                used: Reading::Value(Bytes::mib(1 + (n * 7 + k) % 90)),
                ..row.clone()
            };
            tick.gpus[0].processes = Reading::Value((0..700).map(moved).collect());
            tick.at.boot_ms = 1_000_000 + n * 1_000;
            history.take(Tick::Gpus(tick.clone()));
        }
        history
    }

    #[test]
    fn checkpoints_around_a_moment_count_against_the_bound() {
        let history = heavy();
        assert!(history.runs() > MAX_RUNS / 10, "{}", history.runs());
        let mut rewind = Rewind::new(Recording::built_in(DEMO).unwrap());
        for n in 1..=40 {
            let ticks = n * EVERY;
            rewind.keep(&Checkpoint { ticks, highest_ms: ticks, history: history.clone() });
            let (kept, runs) = rewind.weight();
            assert!(kept > 0 && runs <= MAX_RUNS, "{kept} checkpoints of {runs} runs");
        }
        let newest = rewind.near.last().map(|near| near.ticks);
        assert_eq!(newest, Some(39 * EVERY), "there is room for the step back");
    }
}
