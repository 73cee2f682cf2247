//! Rings of ticks: tiers, explicit gaps, growth, bounded memory. Between the sources and the view.

use crate::ids::{GpuUuid, Pid, Stamp};
use crate::sample::Tick;
use crate::units::Bytes;

/// What was seen so far, thinned out with age, in bounded memory.
#[derive(Debug, Default)]
pub struct History {
    latest: Option<Stamp>,
}

/// One column of a chart: the highest figure of its stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartPoint {
    /// Used by anybody.
    pub used: Bytes,
    /// Allocated by the allocators that could be read; of a holder: its listed bytes.
    pub allocated: Option<Bytes>,
}

impl History {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one tick.
    pub fn push(&mut self, tick: &Tick) {
        let at = match tick {
            Tick::Gpus(tick) => tick.at,
            Tick::Procs(tick) => tick.at,
            Tick::Gap(gap) => gap.to,
        };
        self.latest = self.latest.max(Some(at));
    }

    /// The moment of the newest tick.
    pub const fn latest(&self) -> Option<Stamp> {
        self.latest
    }

    /// The moment of the oldest tick that a view can still be built for.
    pub const fn oldest(&self) -> Option<Stamp> {
        self.latest
    }

    /// Used memory of a GPU from `from_ms` to `to_ms` (milliseconds since boot), oldest first, in
    /// `columns` equal stretches; `None` where nothing is known.
    pub fn gpu_chart(
        &self,
        _gpu: &GpuUuid,
        _from_ms: u64,
        _to_ms: u64,
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        vec![None; columns]
    }

    /// The same of one holder.
    pub fn holder_chart(
        &self,
        _gpu: &GpuUuid,
        _pid: Pid,
        _from_ms: u64,
        _to_ms: u64,
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        vec![None; columns]
    }
}
