//! The view: everything that a screen, a report or a metric shows, computed once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::ledger::Ledger;
use super::workload::Workload;
use super::xid::Xids;
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId, Stamp};
use crate::model::ModelFacts;
use crate::sample::{
    AllocatorSample, DriverInfo, GpuSample, HostFacts, ProcKinds, ProcSample, Reading, ScanReport,
    ServerSample,
};
use crate::units::{Bytes, BytesPerMinute, Percent};

/// The state of the machine as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The moment that is shown: now, or one in the past.
    pub at: Stamp,
    /// The driver; absent before its first answer.
    pub driver: Option<DriverInfo>,
    /// The machine; absent before the first scan.
    pub host: Option<HostFacts>,
    /// Every GPU and MIG instance, in the driver's order.
    pub gpus: Vec<GpuView>,
    /// Every holder of every GPU: what the driver lists, and who it does not list.
    pub holders: Vec<Holder>,
    /// Who has a GPU's devices open while the driver has told of no GPU at all: what they hold nobody
    /// can say. Empty as soon as it has.
    pub device_users: Vec<Arc<ProcSample>>,
    /// Processes that hold nothing and were looked at for the sake of a holder: launchers, parents,
    /// leaders of groups.
    pub relatives: Vec<Arc<ProcSample>>,
    /// What the scan could see.
    pub scan: Option<ScanReport>,
    /// Age of the GPU facts, in milliseconds.
    pub gpus_age_ms: Option<u64>,
    /// Age of the host facts, in milliseconds.
    pub procs_age_ms: Option<u64>,
    /// How current it is.
    pub freshness: Freshness,
    /// Ticks lost on the way, since the start.
    pub dropped_ticks: u64,
    /// What the last tick cost: milliseconds in the driver, and calls.
    pub driver_cost: Option<DriverCost>,
    /// The headers of the models that run, by path as [`Holder::model_path`] names them. Empty as
    /// built: reading a file is not the view's work, so whoever builds it puts them in.
    pub models: BTreeMap<String, Reading<ModelFacts>>,
}

/// What asking the driver cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DriverCost {
    /// Milliseconds.
    pub took_ms: u32,
    /// Calls.
    pub calls: u32,
}

/// How current a figure is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// Within two intervals.
    Live,
    /// The driver does not answer.
    Stalled {
        /// The call that hangs, where it is known.
        call: Option<String>,
        /// On which GPU.
        gpu: Option<GpuIndex>,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// A moment of a recording.
    Replay,
    /// A moment in the past of a live session.
    Past,
    /// The device is gone.
    Lost,
    /// Nothing has arrived yet.
    Starting,
}

/// One GPU or MIG instance.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuView {
    /// The driver's answers.
    pub sample: GpuSample,
    /// Where every byte is; absent where the driver cannot tell (unified memory, lost).
    pub ledger: Reading<Ledger>,
    /// How current.
    pub freshness: Freshness,
    /// How its used memory moves.
    pub growth: Growth,
    /// How the memory moves that allocators say is in use, where they could be read.
    pub allocated_growth: Growth,
    /// Holders on it, and how many of them may go with one key.
    pub counts: Counts,
    /// Ranked likely causes of unaccounted memory.
    pub unaccounted_causes: Vec<Cause>,
    /// Faults that the driver reported.
    pub xids: Xids,
}

/// Holders of a GPU, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// All.
    pub holders: u32,
    /// Those that may be ended with one key.
    pub zombies: u32,
    /// What ending them would free, as listed.
    pub zombie_bytes: Bytes,
}

/// How memory moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Growth {
    /// Too few samples for a statement.
    NotYet,
    /// Neither grows nor shrinks beyond noise.
    Steady,
    /// It moves, and not steadily.
    Changing {
        /// The difference to what it was a minute before.
        per_minute: BytesPerMinute,
    },
    /// It moves steadily.
    Trend {
        /// The slope.
        per_minute: BytesPerMinute,
        /// The slope's standard error.
        error: BytesPerMinute,
        /// When the GPU is full at that slope, in milliseconds from now: earliest, likely, latest.
        full_in_ms: Option<[u64; 3]>,
    },
}

/// A likely cause of unaccounted memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Stable key: `survivors`, `hidden_holders`, `managed_memory`, `display`, `unreadable`,
    /// `other_namespace`, `driver`, `windows`, `list_unreadable`,
    /// `list_incomplete`.
    pub key: &'static str,
    /// Whom it concerns.
    pub pids: Vec<Pid>,
    /// In words.
    pub text: String,
}

impl Cause {
    /// Whether it says that nothing can be told: then nothing is likely.
    pub fn is_certain(&self) -> bool {
        ["windows", "list_unreadable"].contains(&self.key)
    }
}

/// One process on one GPU, or what is left of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// Which GPU.
    pub gpu: GpuUuid,
    /// Its number.
    pub index: GpuIndex,
    /// The pid that the driver lists, or that has the device open.
    pub pid: Pid,
    /// Its identity, where the process exists and could be read. Only this is ever acted on.
    pub id: Option<ProcId>,
    /// Which lists name it.
    pub kinds: ProcKinds,
    /// Whether the driver lists it at all.
    pub listed: bool,
    /// What it holds; absent for hidden holders, whose share nobody tells.
    pub bytes: Reading<Bytes>,
    /// The most that it was seen to hold.
    pub peak: Reading<Bytes>,
    /// How it moves.
    pub growth: Growth,
    /// Its share of the multiprocessors.
    pub sm: Reading<Percent>,
    /// The kernel's facts.
    pub process: Option<Arc<ProcSample>>,
    /// How long it has been running, in milliseconds.
    pub age_ms: Reading<u64>,
    /// What it is.
    pub verdict: Verdict,
    /// For a ghost: who keeps its memory. For a survivor: empty.
    pub survivors: Vec<ProcId>,
    /// Its allocator's figures for this GPU.
    pub allocator: Option<Reading<AllocatorSample>>,
    /// What of its cache is of use.
    pub fragmentation: Fragmentation,
    /// What it runs and how it was started, where its arguments tell.
    pub workload: Option<Arc<Workload>>,
    /// What its server says of itself, be it this process or the one above it that listens; `None`
    /// where neither is a server that is known.
    pub server: Option<Reading<ServerSample>>,
}

impl Holder {
    /// Whether it is on this GPU or instance.
    pub fn is_on(&self, gpu: &GpuSample) -> bool {
        // The number tells most apart, and is quicker to compare.
        self.index == gpu.index && self.gpu == gpu.uuid
    }

    /// The command as one line of unescaped, hostile text; the short name where arguments could
    /// not be read.
    pub fn command(&self) -> String {
        let Some(process) = &self.process else { return String::new() };
        match process.cmdline.value() {
            Some(arguments) if !arguments.is_empty() => arguments.join(" "),
            _ => process.comm.clone(),
        }
    }

    /// As [`Holder::command`], without the secrets in it: for what leaves this screen.
    pub fn command_without_secrets(&self) -> String {
        let arguments = self.process.as_ref().and_then(|process| process.cmdline.value());
        match arguments {
            Some(arguments) if !arguments.is_empty() => crate::sample::redact(arguments).join(" "),
            _ => self.command(),
        }
    }

    /// The file or folder of the model that it runs, where one is named with its whole path. An
    /// open file says more than an argument, which may be relative or a name on a hub.
    pub fn model_path(&self) -> Option<&str> {
        let named = self.workload.as_deref().and_then(Workload::model);
        let open = self.process.as_ref().and_then(|process| process.model_files.first());
        let whole = |path: &&str| path.starts_with('/');
        // A folder of shards is named; any one of its files is only a part.
        let folder = named.filter(whole).filter(|path| {
            open.is_none_or(|open| open.starts_with(path) && open.ends_with(".safetensors"))
        });
        // One of several parts stands for the folder that has them all.
        let part = |file: &str| file.ends_with(".safetensors") && file.contains("-of-");
        let file = open.map(String::as_str).filter(whole).map(|file| match file.rsplit_once('/') {
            Some((folder, name)) if part(name) && !folder.is_empty() => folder,
            _ => file,
        });
        folder.or(file).or_else(|| named.filter(whole))
    }
}

/// A class, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What it is.
    pub class: Class,
    /// Whether it may be ended with one key.
    pub zombie: bool,
    /// Since when, in milliseconds before the moment shown; where that is known.
    pub since_ms: Option<u64>,
    /// What speaks for and against.
    pub evidence: Vec<Evidence>,
    /// Who manages it and would restart it, with the command to end it properly.
    pub manager: Option<Manager>,
}

/// The classes of holders, see `vramlens explain`'s words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It used the GPU within the last minute.
    Active,
    /// It has not for a while that was watched.
    Idle,
    /// Nobody can tell, or not yet.
    Unknown,
    /// Stopped by a signal.
    Suspended,
    /// Under a debugger.
    Debugged,
    /// Its cgroup is frozen.
    Frozen,
    /// Its launcher is gone.
    Orphan,
    /// Listed by the driver, unknown to the kernel.
    Ghost,
    /// Keeps a dead holder's memory.
    Survivor,
    /// Has the device open and is in no list.
    Hidden,
    /// Dead, not reaped, holds nothing.
    Defunct,
    /// Waits in the kernel.
    Stuck,
    /// Does not die of a KILL.
    Unkillable,
    /// In another PID namespace.
    OtherNamespace,
    /// Of another user, and hidden.
    OtherUser,
    /// On its way out.
    Exiting,
    /// A server without work at present.
    IdleServer,
    /// Computes on the CPU at present.
    BusyCpu,
    /// The pid is used by somebody else now.
    Reused,
    /// Shows the screen, or is needed by others: never a target without a typed confirmation.
    Protected,
}

/// One fact, and what it speaks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Stable key.
    pub key: &'static str,
    /// Whether it speaks for the leftover, against it, or only informs.
    pub weight: Weight,
    /// In words; may hold hostile text.
    pub text: String,
}

/// What a fact speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It is a leftover.
    For,
    /// Somebody wants it.
    Against,
    /// Neither.
    Neutral,
}

/// Who would restart a process that is simply killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manager {
    /// `systemd`, `docker`, `kubernetes`, `slurm`, `ollama`, `ray`, `mps`, `jupyter`.
    pub kind: &'static str,
    /// The unit, container or job.
    pub name: String,
    /// The line to type.
    pub command: String,
}

/// How much of a cache is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Fragmentation {
    /// No basis: no number.
    None,
    /// Only totals are known: cached, not how it is cut.
    CachedOnly {
        /// Reserved and not allocated.
        cached: Bytes,
    },
    /// From the blocks.
    Blocks {
        /// Reserved and not allocated.
        cached: Bytes,
        /// Of that, in free blocks large enough for `request`.
        reusable: Bytes,
        /// Of that, in smaller ones.
        fragmented: Bytes,
        /// The size that was asked about.
        request: Bytes,
        /// The largest request that would succeed without a new segment.
        largest_request: Bytes,
    },
}

/// What a view is built for.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Now.
    pub now: Stamp,
    /// The moment to show, in milliseconds since boot; `None` for the newest.
    pub at_boot_ms: Option<u64>,
    /// Whether the ticks come from a recording.
    pub replay: bool,
    /// The refresh interval, in milliseconds: facts older than two of them are stale.
    pub interval_ms: u64,
    /// The driver call that is under way, on which GPU, since when (milliseconds since boot).
    pub in_flight: Option<(String, Option<GpuIndex>, u64)>,
    /// Ticks lost so far.
    pub dropped_ticks: u64,
    /// Without use for this long a process counts as idle, in milliseconds.
    pub idle_after_ms: u64,
    /// The request that fragmentation is judged by; `None` for a tenth of what is reserved.
    pub request: Option<Bytes>,
}
