//! Rings of ticks: tiers, explicit gaps, growth, bounded memory. Between the sources and the view.

mod chart;
mod devices;
mod rows;
mod stack;
mod tier;
mod track;
mod weight;
mod xids;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::quick::{Map, Set};
use crate::ids::{GpuUuid, Pid, ProcId, Stamp};
use crate::sample::{
    Gap, GpuSample, GpuTick, HostFacts, HostMemory, KillMark, ProcSample, ProcTick, Reading,
    ScanReport, Tick,
};
use crate::units::Bytes;

pub use chart::{BusyPoint, ChartPoint};
pub use devices::{gpu_of, gpu_of_device};
pub use stack::StackPoint;
pub use tier::{Cell, Series, TIERS};
pub use track::{GpuTrack, HolderTrack, ProcTrack, UseTrack, slim, to_bytes};

/// GPUs and MIG instances that are remembered: 16 GPUs of 7 instances each, and room.
const MAX_GPUS: usize = 160;
/// Rows that are remembered while they are listed. More are shown, and have no past.
const MAX_LIVE: usize = 8_192;
/// Rows that are remembered after they left the lists.
const MAX_DEAD: usize = 1_024;
/// Runs of all holders together: 8 bytes each.
const MAX_RUNS: usize = 1_500_000;
/// Processes that are remembered.
const MAX_PROCS: usize = 20_000;
/// Gaps that are remembered.
const MAX_GAPS: usize = 256;
/// Signals of this program that are remembered.
const MAX_KILLS: usize = 1_024;
/// A row that comes back within this time goes on where it ended.
const REOPEN_MS: u64 = 10_000;
/// Without a tick for longer than this, and than three intervals, nothing is known.
const GAP_MS: u64 = 10_000;

/// The newest look at the processes.
#[derive(Debug, Clone)]
pub struct Look {
    /// When it began.
    pub at: Stamp,
    /// What it covered.
    pub scan: ScanReport,
    /// The machine.
    pub host: HostFacts,
    /// What it found.
    pub procs: Map<Pid, Arc<ProcSample>>,
}

/// What was seen so far, thinned out with age, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct History {
    latest: Option<Stamp>,
    gpu_tick: Option<GpuTick>,
    look: Option<Look>,
    intervals_ms: [u64; 2],
    gap_pending: bool,
    gaps: VecDeque<Gap>,
    kills: VecDeque<KillMark>,
    kills_taken: u64,
    gpus: Map<GpuUuid, GpuTrack>,
    /// Rows that are listed now, by GPU, and how many.
    live: Map<GpuUuid, Map<Pid, HolderTrack>>,
    live_rows: usize,
    dead: VecDeque<HolderTrack>,
    listed: Set<Pid>,
    procs: Map<ProcId, ProcTrack>,
    /// Memory of the machine in use, KiB, while a GPU shares it.
    host_used: Series,
    runs: usize,
    xids: xids::Xids,
}

impl History {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a copy of a tick.
    pub fn push(&mut self, tick: &Tick) {
        self.take(tick.clone());
    }

    /// Takes a tick.
    pub fn take(&mut self, tick: Tick) {
        match tick {
            Tick::Gpus(tick) => self.take_gpus(tick),
            Tick::Procs(tick) => self.take_procs(tick),
            Tick::Gap(gap) => self.take_gap(gap),
            Tick::Kill(mark) => self.take_kill(mark),
        }
    }

    fn take_gap(&mut self, gap: Gap) {
        self.gap_pending = true;
        self.latest = self.latest.max(Some(gap.to));
        self.gaps.push_back(gap);
        if self.gaps.len() > MAX_GAPS {
            self.gaps.pop_front();
        }
    }

    /// Of a signal nothing is seen: it begins and ends no stretch of time.
    fn take_kill(&mut self, mark: KillMark) {
        self.kills.push_back(mark);
        self.kills_taken += 1;
        if self.kills.len() > MAX_KILLS {
            self.kills.pop_front();
        }
    }

    fn take_gpus(&mut self, tick: GpuTick) {
        let at_ms = tick.at.boot_ms;
        let before_ms = self.gpu_tick.as_ref().map_or(0, |before| before.at.boot_ms);
        let gap = self.is_gap(at_ms);
        for sample in tick.gpus.iter().take(MAX_GPUS) {
            if !self.gpus.contains_key(&sample.uuid) && !self.make_room_for_gpu(at_ms) {
                continue;
            }
            let track =
                self.gpus.entry(sample.uuid.clone()).or_insert_with(|| GpuTrack::new(sample));
            // One that was away has a gap of its own.
            track.push(at_ms, sample, gap || track.last_ms < before_ms);
        }
        let rows = tick.gpus.iter().filter_map(|gpu| gpu.processes.value());
        self.listed.clear();
        self.listed.extend(rows.flatten().map(|row| row.pid));
        for sample in &tick.gpus {
            self.push_rows(at_ms, sample, gap);
        }
        self.close_rows(at_ms, &tick, gap);
        self.gap_pending = false;
        self.xids.push(&tick.xid);
        self.latest = self.latest.max(Some(tick.at));
        self.gpu_tick = Some(tick);
        self.bound();
    }

    /// Whether nothing is known between the tick before and this one.
    fn is_gap(&mut self, at_ms: u64) -> bool {
        let Some(before) = &self.gpu_tick else { return true };
        let passed = at_ms.saturating_sub(before.at.boot_ms);
        let usual = self.intervals_ms[0].min(self.intervals_ms[1]);
        self.intervals_ms = [self.intervals_ms[1], passed];
        self.gap_pending || passed > GAP_MS.max(usual.saturating_mul(3))
    }

    fn make_room_for_gpu(&mut self, at_ms: u64) -> bool {
        if self.gpus.len() < MAX_GPUS {
            return true;
        }
        let gone = self.gpus.iter().filter(|(_, track)| track.last_ms < at_ms);
        let Some(oldest) = gone.min_by_key(|(_, track)| track.last_ms).map(|(id, _)| id.clone())
        else {
            return false;
        };
        self.gpus.remove(&oldest);
        true
    }

    fn take_procs(&mut self, tick: ProcTick) {
        let at_ms = tick.at.boot_ms;
        let mut before = self.look.take().map(|look| look.procs).unwrap_or_default();
        let mut procs = Map::default();
        procs.reserve(tick.procs.len().min(MAX_PROCS));
        for process in tick.procs.into_iter().take(MAX_PROCS) {
            let listed = self.listed.contains(&process.id.pid) || self.may_be_listed(&process);
            self.procs
                .entry(process.id)
                .or_insert_with(|| ProcTrack::new(at_ms, &process))
                .push(at_ms, &process, listed);
            // Most processes have not changed since the last look: those are kept once. A live look
            // gives the same again; one that was recorded or sent gives an equal one.
            let kept = before.remove(&process.id.pid);
            let kept = kept.filter(|kept| Arc::ptr_eq(kept, &process) || **kept == *process);
            procs.insert(process.id.pid, kept.unwrap_or(process));
        }
        self.procs.retain(|id, _| procs.get(&id.pid).is_some_and(|process| process.id == *id));
        for track in self.live.values_mut().flat_map(Map::values_mut) {
            track.look(at_ms, procs.get(&track.pid));
        }
        let look = Look { at: tick.at, scan: tick.scan, host: tick.host, procs };
        self.push_host_used(at_ms, look.host.memory);
        self.push_allocated(at_ms, &look);
        self.look = Some(look);
        self.latest = self.latest.max(Some(tick.at));
    }

    fn push_host_used(&mut self, at_ms: u64, memory: Option<HostMemory>) {
        let mut gpus = self.gpu_tick.iter().flat_map(|tick| &tick.gpus);
        if gpus.any(GpuSample::has_no_memory) {
            let used = memory.map(|memory| memory.total - memory.available);
            self.host_used.push(at_ms, used.map_or(tier::NONE, track::to_cell), false);
        }
    }

    /// How much of the machine's memory was in use, where a GPU shares it; else empty.
    pub const fn host_used(&self) -> &Series {
        &self.host_used
    }

    fn push_allocated(&mut self, at_ms: u64, look: &Look) {
        let Some(tick) = &self.gpu_tick else { return };
        let mut sums: Map<GpuUuid, Bytes> = Map::default();
        for process in look.procs.values() {
            let Some(Reading::Value(allocator)) = &process.allocator else { continue };
            let listed = listed_on(tick, process.id.pid);
            for device in &allocator.devices {
                let count = allocator.devices.len();
                let gpu = gpu_of_device(device, process, &tick.gpus, &listed, count);
                if let Some(gpu) = gpu {
                    *sums.entry(gpu).or_default() += device.allocated;
                }
            }
        }
        for (uuid, track) in &mut self.gpus {
            let cell = sums.get(uuid).map_or(tier::NONE, |sum| track::to_cell(*sum));
            if cell != tier::NONE || track.allocated.last().is_some() {
                track.allocated.push(at_ms, cell, false);
            }
        }
    }

    /// Keeps within the limits: the longest dead go first, then the oldest cells of all.
    fn bound(&mut self) {
        while self.dead.len() > MAX_DEAD || (self.runs > MAX_RUNS && !self.dead.is_empty()) {
            if let Some(track) = self.dead.pop_front() {
                self.runs = self.runs.saturating_sub(track.bytes.weight());
            }
        }
        if self.runs > MAX_RUNS {
            let share = (MAX_RUNS * 3 / 4 / self.live_rows.max(1)).max(3);
            self.runs = 0;
            for track in self.live.values_mut().flat_map(Map::values_mut) {
                track.bytes.thin(share);
                self.runs += track.bytes.weight();
            }
        }
    }

    /// The moment of the newest tick.
    pub const fn latest(&self) -> Option<Stamp> {
        self.latest
    }

    /// The moment of the oldest tick that a view can still be built for.
    pub fn oldest(&self) -> Option<Stamp> {
        let latest = self.latest?;
        let boot_ms = self.gpus.values().filter_map(|track| track.used.oldest_ms()).min()?;
        let back = latest.boot_ms.saturating_sub(boot_ms);
        Some(Stamp { boot_ms, wall_ms: latest.wall_ms.saturating_sub(back) })
    }

    /// The newest look at the GPUs.
    pub const fn gpu_tick(&self) -> Option<&GpuTick> {
        self.gpu_tick.as_ref()
    }

    /// The newest look at the processes.
    pub const fn look(&self) -> Option<&Look> {
        self.look.as_ref()
    }

    /// Whether the newest tick was a gap: nothing has arrived since.
    pub const fn in_gap(&self) -> bool {
        self.gap_pending
    }

    /// Stretches without data, oldest first.
    pub fn gaps(&self) -> impl DoubleEndedIterator<Item = &Gap> {
        self.gaps.iter()
    }

    /// How many signals and outcomes were told of, those among them that are forgotten.
    pub const fn kills_taken(&self) -> u64 {
        self.kills_taken
    }

    /// Those behind the first `known` of them, as far as they are remembered.
    pub fn kills_since(&self, known: u64) -> impl Iterator<Item = &KillMark> {
        let new = self.kills_taken.saturating_sub(known);
        let new = usize::try_from(new).unwrap_or(usize::MAX).min(self.kills.len());
        self.kills.range(self.kills.len() - new..)
    }

    /// A GPU's past.
    pub fn gpu(&self, uuid: &GpuUuid) -> Option<&GpuTrack> {
        self.gpus.get(uuid)
    }

    /// Every GPU that is remembered, in no order.
    pub fn gpus(&self) -> impl Iterator<Item = &GpuTrack> {
        self.gpus.values()
    }

    /// The past of a row that is listed now.
    pub fn holder(&self, gpu: &GpuUuid, pid: Pid) -> Option<&HolderTrack> {
        self.live.get(gpu)?.get(&pid)
    }

    /// The past of all rows that are listed now on one GPU.
    pub fn listed_on(&self, gpu: &GpuUuid) -> Option<&Map<Pid, HolderTrack>> {
        self.live.get(gpu)
    }

    /// Every row that is remembered: listed now, and not any more, in no order.
    pub fn holders(&self) -> impl Iterator<Item = &HolderTrack> {
        self.live.values().flat_map(Map::values).chain(&self.dead)
    }

    /// Rows that left the lists, the longest gone first.
    pub fn gone(&self) -> impl DoubleEndedIterator<Item = &HolderTrack> {
        self.dead.iter()
    }

    /// What looks at a process have shown over time.
    pub fn process(&self, id: ProcId) -> Option<&ProcTrack> {
        self.procs.get(&id)
    }

    /// Whether the driver lists the pid on any GPU.
    pub fn is_listed(&self, pid: Pid) -> bool {
        self.listed.contains(&pid)
    }
}

/// The GPUs on which the driver lists a process.
pub fn listed_on(tick: &GpuTick, pid: Pid) -> Vec<&GpuUuid> {
    let on = |gpu: &&GpuSample| {
        gpu.processes.value().is_some_and(|rows| rows.iter().any(|row| row.pid == pid))
    };
    tick.gpus.iter().filter(on).map(|gpu| &gpu.uuid).collect()
}
