//! How much a history keeps, and of when.

use super::{GpuTrack, History, HolderTrack, ProcTrack};
use crate::ids::ProcId;
use crate::ids::quick::Map;

/// What a run of a series takes.
const RUN_BYTES: usize = 8;

impl History {
    /// Runs kept for all holders together, 8 bytes each, and rows: for the self-check.
    pub fn weight(&self) -> (usize, usize) {
        (self.runs, self.live_rows + self.dead.len())
    }

    /// Whether anything is known of a moment (milliseconds since boot): no in a gap, and before the
    /// beginning.
    pub fn knows(&self, at_ms: u64) -> bool {
        let now_ms = self.latest.map_or(at_ms, |latest| latest.boot_ms);
        self.gpus.values().any(|track| track.used.at(at_ms, now_ms).is_some())
    }

    /// Runs of all series and what is remembered of processes: what a copy of it takes, counted in
    /// runs of 8 bytes.
    pub fn runs(&self) -> usize {
        let of_gpu = |track: &GpuTrack| {
            let series = [&track.used, &track.allocated, &track.sm];
            let rest = [&track.memory_busy, &track.temperature, &track.power];
            series.into_iter().chain(rest).map(super::Series::weight).sum::<usize>()
        };
        let rows = self.live.values().flat_map(Map::values).chain(&self.dead);
        let of_row = |row: &HolderTrack| row.bytes.weight() + size_of::<HolderTrack>() / RUN_BYTES;
        // The processes themselves are shared between copies.
        let of_procs = self.procs.len() * (size_of::<(ProcId, ProcTrack)>() / RUN_BYTES);
        let of_gpus: usize = self.gpus.values().map(of_gpu).sum();
        of_gpus + rows.map(of_row).sum::<usize>() + of_procs + self.host_used.weight()
    }
}
