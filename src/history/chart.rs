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
