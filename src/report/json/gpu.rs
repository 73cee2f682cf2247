//! The part about GPUs.

use serde::Serialize;

use crate::analyze::xid::{Blame, XidSeen, Xids};
use crate::analyze::{Cause, Counts, GpuView, Ledger, View};
use crate::report::clean::clean;
use crate::report::json::{
    FreshnessJson, GrowthJson, bytes, freshness, growth, or_not_yet, percent,
};
use crate::sample::{GpuSample, Memory, MemoryApi, Reading, Seldom, Why};

/// One GPU or MIG instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gpu {
    /// The driver's number, as `nvidia-smi` has it. A MIG instance has its GPU's.
    pub index: u32,
    /// `GPU-…` or `MIG-…`: what stays the same over reboots.
    pub uuid: String,
    /// The product.
    pub name: Reading<String>,
    /// For a MIG instance, of what; `null` for a whole GPU.
    pub mig: Option<MigJson>,
    /// The N of `/dev/nvidiaN`.
    pub minor: Reading<u32>,
    /// On the PCI bus.
    pub pci_bus_id: Reading<String>,
    /// How current.
    pub freshness: FreshnessJson,
    /// Memory as the driver tells it.
    pub memory: MemoryJson,
    /// Where every byte is.
    pub ledger: LedgerJson,
    /// Likely causes of unaccounted memory, the likeliest first.
    pub unaccounted_causes: Vec<CauseJson>,
    /// Holders, and what could be freed.
    pub counts: CountsJson,
    /// How used memory moves.
    pub growth: GrowthJson,
    /// Processes in the driver's lists, as far as those could be read.
    pub listed_processes: Reading<usize>,
    /// Whether the list of graphics processes was read; whoever stands only in one that was not is
    /// missing.
    pub graphics_listed: Reading<bool>,
    /// Whether that of MPS clients was.
    pub mps_listed: Reading<bool>,
    /// How old it is, in milliseconds, that the lists of graphics and MPS processes were found empty:
    /// such a list is asked again when memory moves for which no compute process accounts, and at
    /// every fourth look. Rows are as old as the memory beside them.
    pub lists_age_ms: Reading<u64>,
    /// How busy.
    pub utilization: UtilizationJson,
    /// Of the chip.
    pub temperature_celsius: Reading<i32>,
    /// Drawn now.
    pub power_milliwatts: Reading<u64>,
    /// The limit in force.
    pub power_limit_milliwatts: Reading<u64>,
    /// Of the multiprocessors.
    pub sm_clock_megahertz: Reading<u32>,
    /// Of the memory.
    pub memory_clock_megahertz: Reading<u32>,
    /// Why clocks are held down: the driver's bits, `nvmlClocksThrottleReasons`.
    pub throttle_bits: Reading<u64>,
    /// 0 is the fastest.
    pub performance_state: Reading<u32>,
    /// Traffic on the bus.
    pub pcie: PcieJson,
    /// In per cent of the fan's range.
    pub fan_percent: Reading<f64>,
    /// How old `memory_clock_megahertz`, `performance_state` and `fan_percent` are, the oldest of
    /// them, in milliseconds: they are read in turns, at every fourth look.
    pub details_age_ms: Reading<u64>,
    /// Whether MIG mode is on.
    pub mig_enabled: Reading<bool>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Reading<bool>,
    /// How old `power_limit_milliwatts`, `mig_enabled` and `persistence` are, in milliseconds: they
    /// are read every ten seconds.
    pub settings_age_ms: Reading<u64>,
    /// Faults that the driver reported while it was watched.
    pub xid: XidJson,
}

/// Faults that the driver reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct XidJson {
    /// Whether faults are watched, or why not. A command that looks once does not: `not_asked`.
    pub watched: Reading<bool>,
    /// The last ones, the newest first; 16 at the most.
    pub recent: Vec<XidEventJson>,
    /// How many since the start, by number.
    pub counts: Vec<XidCountJson>,
}

/// How often a fault came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct XidCountJson {
    /// NVIDIA's number.
    pub code: u64,
    /// So often.
    pub count: u64,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct XidEventJson {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// NVIDIA's number.
    pub code: u64,
    /// What happened, in words.
    pub meaning: &'static str,
    /// `program`, `gpu`, `nobody`.
    pub blame: Blame,
    /// What to do, in words.
    pub advice: &'static str,
    /// In which GPU instance of MIG; `null` for the whole GPU.
    pub gpu_instance: Option<u32>,
    /// In which compute instance, likewise.
    pub compute_instance: Option<u32>,
}

/// Of what a MIG instance is a slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MigJson {
    /// The GPU.
    pub parent_uuid: String,
    /// GPU instance id.
    pub gpu_instance: Reading<u32>,
    /// Compute instance id.
    pub compute_instance: Reading<u32>,
}

/// Memory as the driver tells it: `total = used + reserved + free`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryJson {
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// Held; without `reserved_bytes` where that is known.
    pub used_bytes: Reading<u64>,
    /// Kept by driver and firmware. Absent before R510, which counts it as used.
    pub reserved_bytes: Reading<u64>,
    /// Not held.
    pub free_bytes: Reading<u64>,
    /// Which of the driver's calls answered: 1 or 2.
    pub api: Reading<u32>,
}

/// Where every byte is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerJson {
    /// All of it.
    pub total_bytes: Reading<u64>,
    /// Used, as the driver says.
    pub used_bytes: Reading<u64>,
    /// Held by living processes.
    pub processes_bytes: Reading<u64>,
    /// Listed under dead pids, kept alive by processes that inherited the device.
    pub survivors_bytes: Reading<u64>,
    /// Used, and nobody's.
    pub unaccounted_bytes: Reading<u64>,
    /// Kept by driver and firmware.
    pub reserved_bytes: Reading<u64>,
    /// Not held.
    pub free_bytes: Reading<u64>,
    /// Listed more than once (CUDA IPC).
    pub shared_bytes: Reading<u64>,
    /// Whether the GPU has no memory of its own: the total is the machine's.
    pub unified: Reading<bool>,
    /// Of unified memory: used, and not held through the GPU. Absent for any other.
    pub host_bytes: Reading<u64>,
    /// Of `processes_bytes`: cached by allocators and not used, as far as those could be read;
    /// absent where none could.
    pub cached_bytes: Reading<u64>,
    /// Processes whose bytes the driver does not tell.
    pub processes_without_bytes: Reading<u32>,
}

/// A likely cause of unaccounted memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CauseJson {
    /// `survivors`, `hidden_holders`, `managed_memory`, `display`, `unreadable`,
    /// `other_namespace`, `driver`, `windows`, `list_unreadable`, `list_incomplete`.
    pub key: &'static str,
    /// Whom it concerns.
    pub pids: Vec<u32>,
    /// In words.
    pub text: String,
}

/// Holders, counted; absent where the driver's list could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountsJson {
    /// All.
    pub holders: Reading<u32>,
    /// Those that may be ended with one key.
    pub zombies: Reading<u32>,
    /// What that would free, as listed.
    pub zombie_bytes: Reading<u64>,
}

/// Shares of the last sample period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UtilizationJson {
    /// Time in which a kernel ran.
    pub sm_percent: Reading<f64>,
    /// Time in which memory was read or written. Not how full it is.
    pub memory_percent: Reading<f64>,
}

/// Traffic on the bus. Slow to read, so mostly `not_asked`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PcieJson {
    /// To the GPU.
    pub rx_bytes_per_second: Reading<u64>,
    /// From the GPU.
    pub tx_bytes_per_second: Reading<u64>,
    /// How old both are, in milliseconds: they are read at every fourth look.
    pub age_ms: Reading<u64>,
}

pub(super) fn gpu(whole: &View, view: &GpuView) -> Gpu {
    let sample = &view.sample;
    let age = |what| {
        sample.read_earlier(what).and_then(|read_ms| {
            let earlier = read_ms.map(|read_ms| whole.at.boot_ms.saturating_sub(read_ms));
            or_not_yet(earlier.or(whole.gpus_age_ms))
        })
    };
    let text = |reading: &Reading<String>| reading.as_ref().map(|text| clean(text));
    Gpu {
        index: sample.index.0,
        uuid: clean(&sample.uuid.0),
        name: text(&sample.name),
        mig: sample.mig.as_ref().map(|mig| MigJson {
            parent_uuid: clean(&mig.parent.0),
            gpu_instance: mig.gpu_instance,
            compute_instance: mig.compute_instance,
        }),
        minor: sample.minor,
        pci_bus_id: text(&sample.pci_bus_id),
        freshness: freshness(&view.freshness),
        memory: memory(sample.memory),
        ledger: ledger(view.ledger, sample.unlisted()),
        unaccounted_causes: view.unaccounted_causes.iter().map(cause).collect(),
        counts: counts(view.counts, sample.unlisted()),
        growth: growth(&view.growth),
        listed_processes: sample.processes.as_ref().map(Vec::len),
        graphics_listed: listed(sample, sample.unread_lists.graphics),
        mps_listed: listed(sample, sample.unread_lists.mps),
        lists_age_ms: age(Seldom::Lists),
        utilization: UtilizationJson {
            sm_percent: percent(sample.utilization.map(|both| both.sm)),
            memory_percent: percent(sample.utilization.map(|both| both.memory)),
        },
        temperature_celsius: sample.temperature.map(|celsius| celsius.0),
        power_milliwatts: sample.power.map(|power| power.0),
        power_limit_milliwatts: sample.power_limit.map(|power| power.0),
        sm_clock_megahertz: sample.sm_clock.map(|clock| clock.0),
        memory_clock_megahertz: sample.memory_clock.map(|clock| clock.0),
        throttle_bits: sample.throttle.map(|throttle| throttle.0),
        performance_state: sample.performance_state,
        pcie: PcieJson {
            rx_bytes_per_second: sample.pcie.map(|pcie| pcie.rx.0),
            tx_bytes_per_second: sample.pcie.map(|pcie| pcie.tx.0),
            age_ms: age(Seldom::Pcie),
        },
        fan_percent: percent(sample.fan),
        details_age_ms: age(Seldom::Details),
        mig_enabled: sample.mig_enabled,
        persistence: sample.persistence,
        settings_age_ms: age(Seldom::Settings),
        xid: xid(&view.xids),
    }
}

fn xid(seen: &Xids) -> XidJson {
    let event = |seen: &XidSeen| XidEventJson {
        unix_ms: seen.at.wall_ms,
        code: seen.xid.code,
        meaning: seen.xid.meaning,
        blame: seen.xid.blame,
        advice: seen.xid.advice,
        gpu_instance: seen.instance.0,
        compute_instance: seen.instance.1,
    };
    let count = |(&code, &count): (&u64, &u64)| XidCountJson { code, count };
    XidJson {
        watched: seen.watched.map(|()| true),
        recent: seen.recent.iter().map(event).collect(),
        counts: seen.counts.iter().map(count).collect(),
    }
}

fn memory(memory: Reading<Memory>) -> MemoryJson {
    MemoryJson {
        total_bytes: bytes(memory.map(|memory| memory.total)),
        used_bytes: bytes(memory.map(|memory| memory.used)),
        reserved_bytes: bytes(memory.and_then(|memory| memory.reserved)),
        free_bytes: bytes(memory.map(|memory| memory.free)),
        api: memory.map(|memory| match memory.api {
            MemoryApi::V1 => 1,
            MemoryApi::V2 => 2,
        }),
    }
}

/// Without a list nobody's share is known, and so not what is nobody's either.
fn ledger(ledger: Reading<Ledger>, unlisted: Option<Why>) -> LedgerJson {
    let part = |pick: fn(Ledger) -> u64| ledger.map(pick);
    let owned = |pick: fn(Ledger) -> u64| unlisted.map_or_else(|| part(pick), Reading::Absent);
    LedgerJson {
        total_bytes: part(|ledger| ledger.total.0),
        used_bytes: part(|ledger| ledger.used.0),
        processes_bytes: owned(|ledger| ledger.processes.0),
        survivors_bytes: owned(|ledger| ledger.survivors.0),
        unaccounted_bytes: owned(|ledger| ledger.unaccounted.0),
        reserved_bytes: ledger.and_then(|ledger| {
            if ledger.reserved_known {
                Reading::Value(ledger.reserved.0)
            } else {
                Reading::Absent(Why::OldDriver)
            }
        }),
        free_bytes: part(|ledger| ledger.free.0),
        shared_bytes: owned(|ledger| ledger.shared.0),
        unified: ledger.map(|ledger| ledger.unified),
        host_bytes: ledger.and_then(|ledger| match unlisted {
            _ if !ledger.unified => Reading::Absent(Why::NotSupported),
            Some(why) => Reading::Absent(why),
            None => Reading::Value(ledger.host.0),
        }),
        cached_bytes: match unlisted {
            Some(why) => Reading::Absent(why),
            None => ledger.and_then(|ledger| ledger.cached).map(|cached| cached.0),
        },
        processes_without_bytes: match unlisted {
            Some(why) => Reading::Absent(why),
            None => ledger.map(|ledger| ledger.processes_without_bytes),
        },
    }
}

fn cause(cause: &Cause) -> CauseJson {
    let pids = cause.pids.iter().map(|pid| pid.0).collect();
    CauseJson { key: cause.key, pids, text: clean(&cause.text) }
}

fn counts(counts: Counts, unlisted: Option<Why>) -> CountsJson {
    let told = unlisted.map_or(Reading::Value(counts), Reading::Absent);
    CountsJson {
        holders: told.map(|counts| counts.holders),
        zombies: told.map(|counts| counts.zombies),
        zombie_bytes: told.map(|counts| counts.zombie_bytes.0),
    }
}

/// Whether one of the lists was read.
fn listed(sample: &GpuSample, unread: Option<Why>) -> Reading<bool> {
    let why = sample.processes.why().or(unread);
    why.map_or(Reading::Value(true), Reading::Absent)
}
