//! GPU facts and the process facts of the same moment. They are drawn together, so the loop sleeps
//! until the second of them is there; the thread that asks the driver has the processes looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Live;
use super::feed::Feed;
use crate::ids::Stamp;
use crate::runtime::inspector::Inspector;
use crate::runtime::{clock, gather};
use crate::sample::Tick;
use crate::source::{Source, SourceError, Wants};

/// How often processes are looked at while an earlier moment is shown, in milliseconds.
const PAUSED_LOOK_MS: u64 = 4_500;

/// A source that has the processes of what it gives looked at.
pub(super) struct Asking<S> {
    source: S,
    inspector: Inspector,
    /// Whether an earlier moment is shown.
    paused: Arc<AtomicBool>,
    /// When they were looked at last, milliseconds since boot.
    looked_ms: u64,
}

impl<S> Asking<S> {
    pub fn new(source: S, inspector: Inspector, paused: Arc<AtomicBool>) -> Self {
        Self { source, inspector, paused, looked_ms: 0 }
    }
}

impl<S: Source> Source for Asking<S> {
    fn next(&mut self, now: Stamp, wants: Wants) -> Result<Option<Tick>, SourceError> {
        let tick = self.source.next(now, wants)?;
        if let Some(tick @ Tick::Gpus(gpus)) = &tick {
            let rest_ms = if self.paused.load(Ordering::Relaxed) { PAUSED_LOOK_MS } else { 0 };
            if gpus.at.boot_ms.saturating_sub(self.looked_ms) >= rest_ms {
                self.looked_ms = gpus.at.boot_ms;
                self.inspector.ask(gather::listed_pids(tick));
            }
        }
        Ok(tick)
    }
}

/// Until when GPU facts need not wake the loop: the process facts will.
#[derive(Debug, Default)]
pub struct Pair {
    until: Option<Instant>,
    /// GPU facts have come since the last process facts.
    fresh: bool,
}

impl Pair {
    /// Until then they need not; `None` where each wakes it.
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// From here on each wakes it, until the next process facts.
    pub const fn end(&mut self) {
        self.until = None;
    }

    pub(super) const fn gpus(&mut self) {
        self.fresh = true;
    }
}

impl Live {
    /// Tells the thread that asks whether an earlier moment is shown. What a kill gave back is proven
    /// against the processes of now all the same.
    pub fn tell_paused(&self) {
        if let Feed::Driver { paused, .. } = &self.feed {
            let rests = self.is_paused() && self.killing.is_none();
            paused.store(rests, Ordering::Relaxed);
        }
    }

    /// Process facts have come: the next GPU facts can wait for theirs, `join` after they are due at
    /// the latest.
    pub fn pair_up(&mut self, join: Duration) {
        let fresh = std::mem::take(&mut self.pair.fresh);
        let follows = matches!(self.feed, Feed::Driver { .. })
            && fresh
            && !self.is_paused()
            && self.killing.is_none();
        let interval_ms = self.options.interval_ms.max(self.rhythm.least_ms());
        self.pair.until = self.answered_ms().filter(|_| follows).map(|answered_ms| {
            let due_ms = (answered_ms + interval_ms).saturating_sub(clock::now().boot_ms);
            Instant::now() + Duration::from_millis(due_ms) + join
        });
    }

    /// For how long the newest GPU facts wait for the process facts of their moment, of `join` at the
    /// most from the driver's answer on.
    pub fn joins(&self, join: Duration) -> Duration {
        let looked_at = self.history.look().map(|look| look.at);
        if self.history.gpu_tick().map(|tick| tick.at) <= looked_at {
            return Duration::ZERO;
        }
        let answered_ms = self.answered_ms().unwrap_or_default();
        join.saturating_sub(Duration::from_millis(clock::now().boot_ms.saturating_sub(answered_ms)))
    }

    /// When the driver gave its newest answer, in milliseconds since boot.
    fn answered_ms(&self) -> Option<u64> {
        self.history.gpu_tick().map(|tick| tick.at.boot_ms + u64::from(tick.took_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::inspector::{Listed, Look};
    use crate::sample::{
        DriverInfo, GpuTick, HostFacts, Nonsense, ProcTick, Reading, ScanReport, Why, XidReport,
    };

    /// A second later each time, without a GPU.
    struct Seconds(u64);

    impl Source for Seconds {
        fn next(&mut self, _: Stamp, _: Wants) -> Result<Option<Tick>, SourceError> {
            self.0 += 1;
            let unknown = || Reading::Absent(Why::NotYet);
            Ok(Some(Tick::Gpus(GpuTick {
                seq: self.0,
                at: Stamp { boot_ms: 50_000 + self.0 * 1_000, wall_ms: 0 },
                took_ms: 0,
                driver_calls: 0,
                driver: DriverInfo { version: unknown(), cuda: unknown(), nvml: unknown() },
                gpus: Vec::new(),
                nonsense: Nonsense::default(),
                xid: XidReport::default(),
            })))
        }
    }

    struct Nothing;

    impl Look for Nothing {
        fn look(&mut self, at: Stamp, _: &[Listed]) -> ProcTick {
            let host = HostFacts {
                hostname: Reading::Absent(Why::NotYet),
                host_pid_namespace: Reading::Value(true),
                container: None,
                euid: 0,
                hidepid: Reading::Value(false),
                ptrace_scope: Reading::Value(1),
                wsl: false,
                memory: None,
            };
            let scan = ScanReport::default();
            ProcTick { at, took_ms: 0, procs: Vec::new(), scan, host }
        }
    }

    #[test]
    fn processes_are_looked_at_with_each_answer_and_seldom_while_the_past_is_shown() {
        let (inspector, mut looks) = Inspector::spawn(|| Nothing).unwrap();
        let paused = Arc::new(AtomicBool::new(false));
        let mut source = Asking::new(Seconds(0), inspector, Arc::clone(&paused));
        let mut next = || source.next(clock::now(), Wants::default()).unwrap().unwrap();
        for _ in 0..3 {
            next();
            assert!(looks.blocking_recv().is_some());
        }
        paused.store(true, Ordering::Relaxed);
        for _ in 0..4 {
            next();
        }
        assert!(looks.try_recv().is_err(), "four seconds are too soon");
        next();
        assert!(looks.blocking_recv().is_some());
    }
}
