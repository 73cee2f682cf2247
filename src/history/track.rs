//! What is remembered of each GPU, holder and process, beyond the newest look.

use std::sync::Arc;

use super::tier::{Cell, NONE, Series};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::sample::{GpuProc, GpuSample, ProcKinds, ProcSample, ProcState, Reading, Why};
use crate::units::Bytes;

/// Former parents kept per process.
const FORMER_PARENTS: usize = 4;
/// Without a sample of use for this long, watching begins anew.
const USE_INTERRUPTED_MS: u64 = 60_000;
/// CPU use above which a process counts as working, in per cent of a core.
const CPU_BUSY_PERCENT: f32 = 5.0;

/// Bytes as a cell: whole KiB, rounded up.
pub fn to_cell(bytes: Bytes) -> Cell {
    Cell::try_from(bytes.0.div_ceil(1024)).unwrap_or(NONE - 1).min(NONE - 1)
}

/// And back.
pub const fn to_bytes(cell: Cell) -> Bytes {
    Bytes(cell as u64 * 1024)
}

/// A GPU's past.
#[derive(Debug, Clone)]
pub struct GpuTrack {
    /// The newest answers, without the process list.
    pub facts: GpuSample,
    /// Used memory, KiB.
    pub used: Series,
    /// Allocated by the allocators that could be read, KiB.
    pub allocated: Series,
    /// Use of the multiprocessors, per cent.
    pub sm: Series,
    /// Time in which its memory was read or written, per cent.
    pub memory_busy: Series,
    /// Degrees Celsius.
    pub temperature: Series,
    /// Milliwatts.
    pub power: Series,
    /// The newest look that had it.
    pub last_ms: u64,
}

impl GpuTrack {
    pub(super) fn new(sample: &GpuSample) -> Self {
        Self {
            facts: without_list(sample),
            used: Series::default(),
            allocated: Series::default(),
            sm: Series::default(),
            memory_busy: Series::default(),
            temperature: Series::default(),
            power: Series::default(),
            last_ms: 0,
        }
    }

    pub(super) fn push(&mut self, at_ms: u64, sample: &GpuSample, gap: bool) {
        let memory = sample.memory.value();
        let percent = |p: f32| p.clamp(0.0, 100.0).round() as Cell;
        self.used.push(at_ms, memory.map_or(NONE, |m| to_cell(m.used)), gap);
        let sm = sample.utilization.value().map_or(NONE, |u| percent(u.sm.0));
        self.sm.push(at_ms, sm, gap);
        let busy = sample.utilization.value().map_or(NONE, |u| percent(u.memory.0));
        self.memory_busy.push(at_ms, busy, gap);
        let temperature = sample.temperature.value().and_then(|c| Cell::try_from(c.0).ok());
        self.temperature.push(at_ms, temperature.unwrap_or(NONE), gap);
        let power = sample.power.value().and_then(|p| Cell::try_from(p.0).ok());
        self.power.push(at_ms, power.unwrap_or(NONE), gap);
        // The last memory that was known still says how large a lost GPU was.
        let lost = sample.memory.value().is_none();
        let known = self.facts.memory;
        self.facts = without_list(sample);
        if lost && known.value().is_some() {
            self.facts.memory = known;
        }
        self.last_ms = at_ms;
    }
}

fn without_list(sample: &GpuSample) -> GpuSample {
    GpuSample {
        processes: Reading::Absent(Why::NotAsked),
        mig: sample.mig.clone(),
        uuid: sample.uuid.clone(),
        name: sample.name.clone(),
        pci_bus_id: sample.pci_bus_id.clone(),
        ..*sample
    }
}

/// How a process used the multiprocessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UseTrack {
    /// Watched without interruption since then, milliseconds since boot.
    pub since_ms: Option<u64>,
    /// When it was last seen at work.
    pub busy_ms: Option<u64>,
    /// Samples of zero since then.
    pub zeros: u32,
    last_ms: u64,
}

impl UseTrack {
    fn push(&mut self, at_ms: u64, sm: Option<f32>) {
        let Some(sm) = sm else { return };
        if self.since_ms.is_some() && at_ms.saturating_sub(self.last_ms) > USE_INTERRUPTED_MS {
            *self = Self { busy_ms: self.busy_ms, ..Self::default() };
        }
        self.since_ms.get_or_insert(at_ms);
        self.last_ms = at_ms;
        if sm > 0.0 {
            self.busy_ms = Some(at_ms);
            self.zeros = 0;
        } else {
            self.zeros = self.zeros.saturating_add(1);
        }
    }

    /// For how long it was watched and did nothing, in milliseconds.
    pub fn idle_ms(&self, now_ms: u64) -> Option<u64> {
        let since = self.since_ms?.max(self.busy_ms.unwrap_or(0));
        (self.zeros > 0).then(|| now_ms.saturating_sub(since))
    }
}

/// The past of one row of the driver's lists.
#[derive(Debug, Clone)]
pub struct HolderTrack {
    /// On which GPU.
    pub gpu: GpuUuid,
    /// Its number.
    pub index: GpuIndex,
    /// As listed.
    pub pid: Pid,
    /// Its identity, once a look found it.
    pub id: Option<ProcId>,
    /// Somebody else who has the pid now, while the driver still lists the old owner.
    pub reused_by: Option<ProcId>,
    /// Which lists named it last.
    pub kinds: ProcKinds,
    /// Its memory, KiB.
    pub bytes: Series,
    /// The highest figure seen.
    pub peak: Option<Bytes>,
    /// First listed, milliseconds since boot.
    pub first_ms: u64,
    /// Last listed.
    pub last_ms: u64,
    /// The last look at the processes that found it.
    pub alive_ms: Option<u64>,
    /// Looks in a row, since it is listed, that did not find its pid.
    pub missing_looks: u32,
    /// Looks in a row that found its pid without any NVIDIA device.
    pub deviceless_looks: u32,
    /// The last known facts of the process.
    pub facts: Option<Arc<ProcSample>>,
    /// How it used the multiprocessors.
    pub usage: UseTrack,
}

impl HolderTrack {
    pub(super) fn new(gpu: &GpuSample, pid: Pid, at_ms: u64) -> Self {
        Self {
            gpu: gpu.uuid.clone(),
            index: gpu.index,
            pid,
            id: None,
            reused_by: None,
            kinds: ProcKinds::default(),
            bytes: Series::default(),
            peak: None,
            first_ms: at_ms,
            last_ms: at_ms,
            alive_ms: None,
            missing_looks: 0,
            deviceless_looks: 0,
            facts: None,
            usage: UseTrack::default(),
        }
    }

    pub(super) fn push(&mut self, at_ms: u64, row: &GpuProc, gap: bool) {
        self.kinds = row.kinds;
        self.last_ms = at_ms;
        self.bytes.push(at_ms, row.used.get().map_or(NONE, to_cell), gap);
        if let Some(bytes) = row.used.get() {
            self.peak = Some(self.peak.map_or(bytes, |peak| peak.max(bytes)));
        }
        self.usage.push(at_ms, row.sm.get().map(|sm| sm.0));
    }

    /// What a look at the processes says of it; `None` where its pid does not exist.
    pub(super) fn look(&mut self, at_ms: u64, found: Option<&Arc<ProcSample>>) {
        let Some(process) = found else {
            // A look that began before it was listed says nothing. One of the same millisecond does:
            // from a process's start to its first memory takes far longer.
            if at_ms >= self.first_ms {
                self.missing_looks = self.missing_looks.saturating_add(1);
                self.ended();
            }
            return;
        };
        let holds = process.devices.value().is_none_or(crate::sample::NvidiaFds::any);
        match self.id {
            Some(id) if id != process.id && !holds => {
                self.reused_by = Some(process.id);
                self.deviceless_looks = self.deviceless_looks.saturating_add(1);
                self.ended();
                return;
            }
            _ => {}
        }
        self.id = Some(process.id);
        self.missing_looks = 0;
        self.alive_ms = Some(at_ms);
        self.facts = Some(Arc::clone(process));
        if holds {
            self.deviceless_looks = 0;
            self.reused_by = None;
        } else if at_ms > self.first_ms {
            self.deviceless_looks = self.deviceless_looks.saturating_add(1);
        }
    }

    /// Its process is not there any more: who it was stays known, what it used is nothing now.
    fn ended(&mut self) {
        let Some(facts) = self.facts.as_mut() else { return };
        if [facts.cpu.why(), facts.rss.why()] != [Some(Why::Gone); 2] {
            let facts = Arc::make_mut(facts);
            facts.cpu = Reading::Absent(Why::Gone);
            facts.rss = Reading::Absent(Why::Gone);
        }
    }

    /// It left the lists: keeps what a look into the past needs, and no more.
    pub(super) fn close(&mut self, at_ms: u64, gap: bool) {
        self.bytes.push(at_ms, NONE, gap);
        self.bytes.shrink();
        self.facts = self.facts.take().map(|facts| Arc::new(slim(Arc::unwrap_or_clone(facts))));
    }

    /// Takes up again what was closed.
    pub(super) fn reopen(&mut self) {
        self.missing_looks = 0;
        self.deviceless_looks = 0;
    }
}

/// What a look into the past needs of a process: who it was. What it did and had open is not kept.
pub fn slim(mut facts: ProcSample) -> ProcSample {
    facts.environment = None;
    (facts.allocator, facts.server) = (None, None);
    facts.model_files = Vec::new();
    facts.listens = Vec::new();
    (facts.written, facts.signals, facts.wait_channel) = (None, None, None);
    facts.read_boot_ms = None;
    (facts.threads_in_d, facts.threads_unread) = (0, Some(Why::NotKept));
    facts.cmdline = facts.cmdline.map(shortened);
    facts
}

fn shortened(arguments: Vec<String>) -> Vec<String> {
    let mut left = 256_usize;
    let mut kept = Vec::new();
    for argument in arguments {
        if argument.len() > left {
            kept.push(argument.chars().take(left).collect());
            break;
        }
        left -= argument.len();
        kept.push(argument);
    }
    kept.shrink_to_fit();
    kept
}

/// What looks at one process have shown over time.
#[derive(Debug, Clone)]
pub struct ProcTrack {
    /// First seen, milliseconds since boot.
    pub first_ms: u64,
    /// Looks that found it.
    pub looks: u32,
    /// Looks in a row with a thread in state D, and since when.
    pub d_looks: u32,
    /// Since when.
    pub d_since_ms: u64,
    /// Whether all of them that could be read named the same place to wait.
    pub d_same_channel: bool,
    /// Looks in a row with a KILL pending.
    pub kill_looks: u32,
    /// Since when.
    pub kill_since_ms: u64,
    /// Its state, and since when it was seen in it.
    pub state: ProcState,
    /// Since when.
    pub state_since_ms: u64,
    /// Its parent now.
    pub parent: Pid,
    /// Those that it had before, the newest last.
    pub former_parents: Vec<Pid>,
    /// When it was last seen to work on the CPU or to write.
    pub cpu_busy_ms: Option<u64>,
    /// Since when it has had a CUDA device open and was for certain in no list.
    pub unlisted_since_ms: Option<u64>,
    channel: Option<Box<str>>,
    written: Option<Bytes>,
}

/// The bit of KILL in a signal mask.
const KILL_BIT: u64 = 1 << 8;

impl ProcTrack {
    pub(super) fn new(at_ms: u64, process: &ProcSample) -> Self {
        Self {
            first_ms: at_ms,
            looks: 0,
            d_looks: 0,
            d_since_ms: at_ms,
            d_same_channel: true,
            kill_looks: 0,
            kill_since_ms: at_ms,
            state: process.state,
            state_since_ms: at_ms,
            parent: process.parent,
            former_parents: Vec::new(),
            cpu_busy_ms: None,
            unlisted_since_ms: None,
            channel: None,
            written: process.written,
        }
    }

    pub(super) fn push(&mut self, at_ms: u64, process: &ProcSample, listed: bool) {
        self.looks = self.looks.saturating_add(1);
        self.push_waits(at_ms, process);
        if process.state != self.state {
            self.state = process.state;
            self.state_since_ms = at_ms;
        }
        if process.parent != self.parent {
            self.former_parents.push(self.parent);
            let surplus = self.former_parents.len().saturating_sub(FORMER_PARENTS);
            self.former_parents.drain(..surplus);
            self.parent = process.parent;
        }
        let wrote = matches!((self.written, process.written), (Some(a), Some(b)) if b > a);
        if wrote || process.cpu.value().is_some_and(|cpu| cpu.0 > CPU_BUSY_PERCENT) {
            self.cpu_busy_ms = Some(at_ms);
        }
        self.written = process.written;
        let opened = process.devices.value().is_some_and(|fds| fds.uvm || fds.drm);
        self.unlisted_since_ms =
            if opened && !listed { self.unlisted_since_ms.or(Some(at_ms)) } else { None };
    }

    fn push_waits(&mut self, at_ms: u64, process: &ProcSample) {
        // A look that could not tell ends the row too: nothing is said of a state that was not seen.
        if process.in_d().get().is_some_and(|count| count > 0)
            || process.state == ProcState::Uninterruptible
        {
            if self.d_looks == 0 {
                self.d_since_ms = at_ms;
                self.d_same_channel = true;
                self.channel = process.wait_channel.as_deref().map(Into::into);
            } else if self.channel.as_deref() != process.wait_channel.as_deref() {
                self.d_same_channel = false;
            }
            self.d_looks = self.d_looks.saturating_add(1);
        } else {
            self.d_looks = 0;
        }
        if process.signals.is_some_and(|signals| signals.pending & KILL_BIT != 0) {
            if self.kill_looks == 0 {
                self.kill_since_ms = at_ms;
            }
            self.kill_looks = self.kill_looks.saturating_add(1);
        } else {
            self.kill_looks = 0;
        }
    }
}
