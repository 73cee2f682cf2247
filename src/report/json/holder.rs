//! The part about holders.

use serde::Serialize;

use crate::analyze::{Class, Evidence, Fragmentation, Holder, Verdict, View, Weight};
use crate::report::RedactCommand;
use crate::report::clean::clean;
use crate::report::json::server::{self, ServerJson};
use crate::report::json::{GrowthJson, ProcessRef, bytes, growth, or_not_yet, percent};
use crate::sample::{
    AllocatorBasis, AllocatorDevice, AllocatorSample, ProcSample, ProcState, Reading, Why,
};
use crate::units::Bytes;

/// One process on one GPU, or what is left of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HolderJson {
    /// The driver's number of the GPU.
    pub gpu: u32,
    /// The GPU or MIG instance.
    pub gpu_uuid: String,
    /// The pid that the driver lists, or that has the device open. It may be dead: act only on
    /// `pid` with `start`.
    pub pid: u32,
    /// When it started, in clock ticks since boot. Absent where no such process can be seen.
    pub start: Reading<u64>,
    /// Its owner's name.
    pub user: Reading<String>,
    /// Its owner.
    pub uid: Reading<u32>,
    /// Which of the driver's lists name it: `C`, `G`, `C+G`, `M`; empty for one that none names.
    pub kind: String,
    /// Whether the driver lists it.
    pub listed: bool,
    /// What it holds on this GPU.
    pub bytes: Reading<u64>,
    /// The most that it was seen to hold.
    pub peak_bytes: Reading<u64>,
    /// How it moves.
    pub growth: GrowthJson,
    /// Its share of the multiprocessors.
    pub sm_percent: Reading<f64>,
    /// Its CPU use; above 100 with several cores.
    pub cpu_percent: Reading<f64>,
    /// Its resident host memory.
    pub rss_bytes: Reading<u64>,
    /// Its command line, secrets taken out; the short name where arguments cannot be read.
    pub command: Reading<String>,
    /// The kernel's state of its first thread.
    pub state: Reading<ProcState>,
    /// How long it has been running, in milliseconds.
    pub age_ms: Reading<u64>,
    /// How old its state, CPU use and resident memory are, in milliseconds: one that does nothing is
    /// left alone for some seconds.
    pub facts_age_ms: Reading<u64>,
    /// Its parent.
    pub parent_pid: Reading<u32>,
    /// The systemd unit; `null` where there is none.
    pub unit: Option<String>,
    /// The container; `null` where there is none.
    pub container: Option<ContainerJson>,
    /// What it is, and why.
    pub verdict: VerdictJson,
    /// Of a dead pid: the living processes that keep its memory.
    pub survivors: Vec<ProcessRef>,
    /// Its caching allocator.
    pub allocator: AllocatorJson,
    /// What of its cache is of use.
    pub fragmentation: FragmentationJson,
    /// What an inference server says of itself; `null` where the process is none that is known.
    pub server: Option<ServerJson>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerJson {
    /// `docker`, `podman`, `kubepods`, …
    pub runtime: String,
    /// Its id, where it is known.
    pub id: Option<String>,
}

/// What a holder is, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictJson {
    /// `active`, `idle`, `orphan`, `ghost`, … See the schema file for all.
    pub class: Class,
    /// Whether the evidence allows to end it without a question about each.
    pub zombie: bool,
    /// Since when, in milliseconds before the moment of the snapshot.
    pub since_ms: Reading<u64>,
    /// What speaks for and against.
    pub evidence: Vec<EvidenceJson>,
    /// Who manages it, with the command to end it properly; `null` where nobody does.
    pub manager: Option<ManagerJson>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceJson {
    /// Stable key.
    pub key: &'static str,
    /// `for` a leftover, `against`, `neutral`.
    pub weight: Weight,
    /// In words.
    pub text: String,
}

/// Who would restart a process that is simply killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManagerJson {
    /// `systemd`, `docker`, `kubernetes`, `slurm`, `ollama`, `ray`, `mps`, `jupyter`.
    pub kind: &'static str,
    /// The unit, container or job.
    pub name: String,
    /// The line to type.
    pub command: String,
}

/// A caching allocator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllocatorJson {
    /// `blocks`, `statistics`, `message`, `reported`: where the figures come from.
    pub basis: Reading<AllocatorBasis>,
    /// In tensors that live, over its devices.
    pub allocated_bytes: Reading<u64>,
    /// Taken from the driver, over its devices.
    pub reserved_bytes: Reading<u64>,
    /// Each device.
    pub devices: Vec<AllocatorDeviceJson>,
}

/// One device of a caching allocator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllocatorDeviceJson {
    /// As the process numbers it.
    pub ordinal: u32,
    /// In tensors that live.
    pub allocated_bytes: u64,
    /// Taken from the driver.
    pub reserved_bytes: u64,
    /// Allocated, or freed and still awaited by a stream.
    pub active_bytes: Reading<u64>,
    /// Free pieces of split segments.
    pub inactive_split_bytes: Reading<u64>,
    /// What was asked for, before rounding; it belongs to `active_bytes`, and so may lie above
    /// `allocated_bytes` while a stream still uses what was freed.
    pub requested_bytes: Reading<u64>,
    /// Peak of `allocated_bytes`.
    pub peak_allocated_bytes: Reading<u64>,
    /// Peak of `reserved_bytes`.
    pub peak_reserved_bytes: Reading<u64>,
    /// Held by private pools (CUDA graphs).
    pub private_pools_bytes: Reading<u64>,
    /// The largest free block.
    pub largest_free_block_bytes: Reading<u64>,
    /// Free blocks.
    pub free_blocks: Reading<u64>,
    /// Segments held from the driver.
    pub segments: Reading<u64>,
    /// Times that the cache was emptied to retry.
    pub retries: Reading<u64>,
    /// Out-of-memory errors thrown.
    pub ooms: Reading<u64>,
    /// Whether expandable segments are in use.
    pub expandable_segments: Reading<bool>,
}

/// What of a cache is of use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FragmentationJson {
    /// `none` (no basis, no number), `totals` (only `cached_bytes` is known), `blocks`.
    pub basis: &'static str,
    /// Reserved and not allocated.
    pub cached_bytes: Reading<u64>,
    /// Of that, in free blocks large enough for `request_bytes`.
    pub reusable_bytes: Reading<u64>,
    /// Of that, in smaller ones.
    pub fragmented_bytes: Reading<u64>,
    /// The size that was asked about.
    pub request_bytes: Reading<u64>,
    /// The largest request that would succeed without a new segment.
    pub largest_request_bytes: Reading<u64>,
}

pub(super) fn holder(view: &View, holder: &Holder, redact: RedactCommand) -> HolderJson {
    let process = match &holder.process {
        Some(process) => Reading::Value(process),
        None => Reading::Absent(why_unseen(view, holder)),
    };
    let at_work = process.and_then(|process| process.at_work());
    HolderJson {
        gpu: holder.index.0,
        gpu_uuid: clean(&holder.gpu.0),
        pid: holder.pid.0,
        start: holder.id.map_or_else(
            || process.map(|process| process.id.start_ticks),
            |id| Reading::Value(id.start_ticks),
        ),
        user: process.and_then(|process| process.user.as_ref()).map(|user| clean(user)),
        uid: process.and_then(|process| process.uid),
        kind: holder.kinds.letters(),
        listed: holder.listed,
        bytes: bytes(holder.bytes),
        peak_bytes: bytes(holder.peak),
        growth: growth(&holder.growth),
        sm_percent: percent(holder.sm),
        cpu_percent: percent(process.and_then(|process| process.cpu)),
        rss_bytes: bytes(process.and_then(|process| process.rss)),
        command: process.map(|process| command(process, redact)),
        state: at_work.map(|process| process.state),
        age_ms: holder.age_ms,
        facts_age_ms: at_work.and_then(|process| {
            let read = process.read_boot_ms.map(|read| view.at.boot_ms.saturating_sub(read));
            or_not_yet(read.or(view.procs_age_ms))
        }),
        parent_pid: at_work.map(|process| process.parent.0),
        unit: process.value().and_then(|process| process.unit.as_deref()).map(clean),
        container: process.value().and_then(|process| process.container.as_ref()).map(|from| {
            ContainerJson { runtime: clean(&from.runtime), id: from.id.as_deref().map(clean) }
        }),
        verdict: verdict(&holder.verdict),
        survivors: holder.survivors.iter().map(|id| ProcessRef::from(*id)).collect(),
        allocator: allocator(holder.allocator.as_ref()),
        fragmentation: fragmentation(holder.fragmentation, holder.allocator.as_ref()),
        server: holder.server.as_ref().map(server::server),
    }
}

/// Why there are no facts of the kernel about a holder.
fn why_unseen(view: &View, holder: &Holder) -> Why {
    match holder.verdict.class {
        _ if view.scan.is_none() => Why::NotYet,
        Class::OtherUser => Why::NoPermission,
        Class::OtherNamespace => Why::NotSupported,
        _ => Why::Gone,
    }
}

/// A command line that may be shown.
pub(in crate::report) fn command(process: &ProcSample, redact: RedactCommand) -> String {
    match process.cmdline.value().map(|arguments| redact(arguments)) {
        Some(arguments) if !arguments.is_empty() => clean(&arguments.join(" ")),
        _ => clean(&process.comm),
    }
}

fn verdict(verdict: &Verdict) -> VerdictJson {
    let evidence =
        |one: &Evidence| EvidenceJson { key: one.key, weight: one.weight, text: clean(&one.text) };
    VerdictJson {
        class: verdict.class,
        zombie: verdict.zombie,
        since_ms: or_not_yet(verdict.since_ms),
        evidence: verdict.evidence.iter().map(evidence).collect(),
        manager: verdict.manager.as_ref().map(|manager| ManagerJson {
            kind: manager.kind,
            name: clean(&manager.name),
            command: clean(&manager.command),
        }),
    }
}

fn allocator(sample: Option<&Reading<AllocatorSample>>) -> AllocatorJson {
    let sample = sample.map_or(Reading::Absent(Why::NotAsked), Reading::as_ref);
    let sum = |pick: fn(&AllocatorDevice) -> Bytes| {
        sample.map(|sample| sample.devices.iter().map(pick).sum::<Bytes>().0)
    };
    AllocatorJson {
        basis: sample.map(|sample| sample.basis),
        allocated_bytes: sum(|device| device.allocated),
        reserved_bytes: sum(|device| device.reserved),
        devices: sample
            .value()
            .map(|sample| sample.devices.iter().map(device).collect())
            .unwrap_or_default(),
    }
}

fn device(device: &AllocatorDevice) -> AllocatorDeviceJson {
    AllocatorDeviceJson {
        ordinal: device.ordinal.0,
        allocated_bytes: device.allocated.0,
        reserved_bytes: device.reserved.0,
        active_bytes: bytes(device.active),
        inactive_split_bytes: bytes(device.inactive_split),
        requested_bytes: bytes(device.requested),
        peak_allocated_bytes: bytes(device.peak_allocated),
        peak_reserved_bytes: bytes(device.peak_reserved),
        private_pools_bytes: bytes(device.private_pools),
        largest_free_block_bytes: device.free.as_ref().map(|free| free.largest.0),
        free_blocks: device.free.as_ref().map(|free| free.count),
        segments: device.segments,
        retries: device.retries,
        ooms: device.ooms,
        expandable_segments: device.expandable_segments,
    }
}

fn fragmentation(
    of: Fragmentation,
    sample: Option<&Reading<AllocatorSample>>,
) -> FragmentationJson {
    let why = match sample {
        Some(Reading::Absent(why)) => Some(*why),
        // Its totals are known, its blocks are not.
        Some(Reading::Value(sample)) => sample.devices.iter().find_map(|one| one.free.why()),
        None => None,
    };
    let none = Reading::Absent(why.unwrap_or(Why::NotAsked));
    let unknown = FragmentationJson {
        basis: "none",
        cached_bytes: none,
        reusable_bytes: none,
        fragmented_bytes: none,
        request_bytes: none,
        largest_request_bytes: none,
    };
    match of {
        Fragmentation::None => unknown,
        Fragmentation::CachedOnly { cached } => {
            FragmentationJson { basis: "totals", cached_bytes: Reading::Value(cached.0), ..unknown }
        }
        Fragmentation::Blocks { cached, reusable, fragmented, request, largest_request } => {
            FragmentationJson {
                basis: "blocks",
                cached_bytes: Reading::Value(cached.0),
                reusable_bytes: Reading::Value(reusable.0),
                fragmented_bytes: Reading::Value(fragmented.0),
                request_bytes: Reading::Value(request.0),
                largest_request_bytes: Reading::Value(largest_request.0),
            }
        }
    }
}
