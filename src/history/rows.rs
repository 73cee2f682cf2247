//! Rows of the driver's lists, as they come and go.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::tier::NONE;
use super::track::HolderTrack;
use super::{History, MAX_LIVE, REOPEN_MS};
use crate::ids::Pid;
use crate::sample::{GpuSample, GpuTick, ProcKinds, ProcSample};

impl History {
    pub(super) fn push_rows(&mut self, at_ms: u64, gpu: &GpuSample, gap: bool) {
        let Some(rows) = gpu.processes.value() else { return };
        let mut tracks = self.live.remove(&gpu.uuid).unwrap_or_default();
        for row in rows {
            let track = match tracks.entry(row.pid) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if self.live_rows >= MAX_LIVE => continue,
                Entry::Vacant(new) => {
                    self.live_rows += 1;
                    new.insert(self.taken_up(gpu, row.pid, at_ms))
                }
            };
            let before = track.bytes.weight();
            track.push(at_ms, row, gap);
            self.runs = (self.runs + track.bytes.weight()).saturating_sub(before);
        }
        if !tracks.is_empty() {
            self.live.insert(gpu.uuid.clone(), tracks);
        }
    }

    /// The row's own past where it was away only for a moment; else a new one.
    fn taken_up(&mut self, gpu: &GpuSample, pid: Pid, at_ms: u64) -> HolderTrack {
        let found = self.look.as_ref().and_then(|look| look.procs.get(&pid));
        let same = |track: &HolderTrack| {
            let id = found.map(|process| process.id);
            track.pid == pid
                && track.gpu == gpu.uuid
                && at_ms.saturating_sub(track.last_ms) <= REOPEN_MS
                && (track.id == id || id.is_none() || track.id.is_none())
        };
        if let Some(n) = self.dead.iter().rposition(same)
            && let Some(mut track) = self.dead.remove(n)
        {
            track.reopen();
            return track;
        }
        let mut track = HolderTrack::new(gpu, pid, at_ms);
        if let (Some(process), Some(look)) = (found, &self.look) {
            // The look is older than the row: it names the process, and proves nothing against it.
            track.id = Some(process.id);
            track.facts = Some(Arc::clone(process));
            track.alive_ms = Some(look.at.boot_ms);
        }
        track
    }

    /// Rows that a list no longer names. A list that could not be read closes nothing, and of whom it
    /// may name nothing is known.
    pub(super) fn close_rows(&mut self, at_ms: u64, tick: &GpuTick, gap: bool) {
        let mut gone = Vec::new();
        let (mut before, mut after) = (0, 0);
        for (uuid, tracks) in &mut self.live {
            let gpu = tick.gpus.iter().find(|gpu| gpu.uuid == *uuid);
            let unread = gpu.map(|gpu| tick.unread_lists(gpu)).unwrap_or_default();
            let stands_there = |kinds: ProcKinds| {
                kinds.graphics && unread.graphics.is_some() || kinds.mps && unread.mps.is_some()
            };
            if gpu.is_none_or(|gpu| gpu.processes.value().is_some()) {
                let ended = tracks
                    .extract_if(|_, track| track.last_ms < at_ms && !stands_there(track.kinds));
                gone.extend(ended.map(|(_, track)| track));
            }
            for track in tracks.values_mut().filter(|track| track.last_ms < at_ms) {
                before += track.bytes.weight();
                track.bytes.push(at_ms, NONE, gap);
                after += track.bytes.weight();
            }
        }
        self.runs = (self.runs + after).saturating_sub(before);
        self.live.retain(|_, tracks| !tracks.is_empty());
        self.live_rows -= gone.len();
        // As the driver lists them, not as the tables happen to hold them.
        gone.sort_by_key(|track| (track.index, track.pid));
        for mut track in gone {
            let before = track.bytes.weight();
            track.close(at_ms, gap);
            self.runs = (self.runs + track.bytes.weight()).saturating_sub(before);
            self.dead.push_back(track);
        }
    }

    /// Whether it may stand in a list that could not be read.
    pub(super) fn may_be_listed(&self, process: &ProcSample) -> bool {
        let open = process.devices.value().filter(|fds| fds.uvm || fds.drm);
        open.is_some_and(|fds| self.gpu_tick.as_ref().is_some_and(|t| t.may_list(fds).is_some()))
    }
}
