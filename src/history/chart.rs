//! Series as columns of a chart.

use super::tier::{Series, TIERS};
use super::track::to_bytes;
use super::{History, HolderTrack};
use crate::ids::{GpuUuid, Pid};
use crate::units::Bytes;

/// One column of a chart: the highest figure of its stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartPoint {
    /// Used by anybody; of a holder: its listed bytes.
    pub used: Bytes,
    /// Allocated by the allocators that could be read; of a holder: its listed bytes.
    pub allocated: Option<Bytes>,
}

/// How busy a GPU was in one column of a chart, in per cent of its time, where that was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusyPoint {
    /// Some kernel was running on its multiprocessors.
    pub sm: Option<u8>,
    /// Its memory was being read or written.
    pub memory: Option<u8>,
}

/// More columns than any terminal has.
const MAX_COLUMNS: usize = 4_096;

impl History {
    /// Used memory of a GPU from `from_ms` to `to_ms` (milliseconds since boot), oldest first, in
    /// `columns` equal stretches; `None` where nothing is known.
    pub fn gpu_chart(
        &self,
        gpu: &GpuUuid,
        from_ms: u64,
        to_ms: u64,
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        let track = self.gpu(gpu);
        Self::columns(from_ms, to_ms, columns, |from, to| {
            let track = track?;
            Some(ChartPoint {
                used: self.highest(&track.used, from, to)?,
                allocated: self.highest(&track.allocated, from, to),
            })
        })
    }

    /// How busy a GPU was before `to_ms` (milliseconds since boot), oldest first: the means of `columns`
    /// equal stretches that together are at least `span_ms`. They begin at multiples of their length,
    /// so that a new figure changes the newest of them only. `None` where the finest figures do not
    /// reach back so far: the others are the highest of their stretch, of which no mean is one.
    pub fn busy_chart(
        &self,
        gpu: &GpuUuid,
        to_ms: u64,
        span_ms: u64,
        columns: usize,
    ) -> Option<Vec<BusyPoint>> {
        let (step_ms, kept) = TIERS[0];
        let columns = columns.min(MAX_COLUMNS);
        let length = span_ms.div_ceil(columns.max(1) as u64).next_multiple_of(step_ms);
        let (newest, count) = (to_ms / length, columns as u64);
        let from_ms = (newest + 1).saturating_sub(count) * length;
        let now_ms = self.latest?.boot_ms;
        if columns == 0 || now_ms.saturating_sub(from_ms) > step_ms * kept {
            return None;
        }
        let track = self.gpu(gpu)?;
        let means = |series: &Series| {
            let mut sums = vec![(0_u64, 0_u64); columns];
            for (at_ms, cell) in series.cells(0, from_ms, to_ms) {
                // The machine may have run for less than all of them.
                let column = (at_ms / length + count).checked_sub(newest + 1);
                let column = column.and_then(|column| usize::try_from(column).ok());
                if let Some(sum) = column.and_then(|column| sums.get_mut(column)) {
                    *sum = (sum.0 + u64::from(cell), sum.1 + 1);
                }
            }
            let mean = |(sum, count): (u64, u64)| {
                let mean = (sum + count / 2).checked_div(count)?;
                Some(u8::try_from(mean).unwrap_or(u8::MAX))
            };
            sums.into_iter().map(mean).collect::<Vec<_>>()
        };
        let pairs = means(&track.sm).into_iter().zip(means(&track.memory_busy));
        Some(pairs.map(|(sm, memory)| BusyPoint { sm, memory }).collect())
    }

    /// The same of one holder. A pid that came back is one line with a hole.
    pub fn holder_chart(
        &self,
        gpu: &GpuUuid,
        pid: Pid,
        from_ms: u64,
        to_ms: u64,
        columns: usize,
    ) -> Vec<Option<ChartPoint>> {
        let fits = |track: &&HolderTrack| track.pid == pid && track.gpu == *gpu;
        let mut tracks: Vec<_> = self.gone().filter(fits).collect();
        tracks.extend(self.holder(gpu, pid));
        Self::columns(from_ms, to_ms, columns, |from, to| {
            let of = |track: &&HolderTrack| self.highest(&track.bytes, from, to);
            let used = tracks.iter().filter_map(of).max()?;
            Some(ChartPoint { used, allocated: Some(used) })
        })
    }

    fn columns(
        from_ms: u64,
        to_ms: u64,
        columns: usize,
        point: impl Fn(u64, u64) -> Option<ChartPoint>,
    ) -> Vec<Option<ChartPoint>> {
        let columns = columns.min(MAX_COLUMNS);
        let span = u128::from(to_ms.saturating_sub(from_ms));
        let edge = |n: usize| from_ms + (span * n as u128 / columns.max(1) as u128) as u64;
        (0..columns).map(|n| point(edge(n), edge(n + 1).max(edge(n) + 1))).collect()
    }

    fn highest(&self, series: &Series, from_ms: u64, to_ms: u64) -> Option<Bytes> {
        let now_ms = self.latest?.boot_ms;
        let found = series.highest(from_ms, to_ms, now_ms).map(to_bytes);
        if found.is_some() || self.in_gap() {
            return found;
        }
        // The cells after the newest figure are empty until the next one is due.
        let (last_ms, last) = series.last()?;
        let due = last_ms + TIERS[0].0.max(self.intervals_ms[1]).saturating_mul(2);
        (from_ms > last_ms && from_ms <= due).then(|| to_bytes(last))
    }
}
