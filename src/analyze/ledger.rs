//! Where every byte of a GPU is. The sum holds for any input, however wrong.

use serde::Serialize;

use crate::sample::{HostMemory, Memory, MemoryApi, Reading};
use crate::units::Bytes;

/// Where every byte of a GPU is. Always
/// `total + shared = processes + survivors + unaccounted + host + reserved + free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// All of it.
    pub total: Bytes,
    /// Used, as the driver says, without `reserved` where the driver tells it apart.
    pub used: Bytes,
    /// Held by living processes.
    pub processes: Bytes,
    /// Listed under dead pids: kept alive by processes that inherited the device.
    pub survivors: Bytes,
    /// Used, and nobody's.
    pub unaccounted: Bytes,
    /// Kept by driver and firmware; zero with `reserved_known` false where it is part of `used`.
    pub reserved: Bytes,
    /// Whether the driver tells reserved memory apart.
    pub reserved_known: bool,
    /// Not held.
    pub free: Bytes,
    /// Listed more than once (CUDA IPC): the lists exceed `used` by this much.
    pub shared: Bytes,
    /// Whether the GPU has no memory of its own: `total` is the machine's, `free` is what the kernel
    /// says is available to anybody, and nothing is unaccounted.
    pub unified: bool,
    /// Of unified memory: used, and held by no process through the GPU. Programs on the processor,
    /// the kernel, and what the GPU's processes hold without the driver's list naming it.
    pub host: Bytes,
    /// Of `processes`: cached by allocators and not used, as far as those could be read. Absent
    /// where none of them could.
    pub cached: Reading<Bytes>,
    /// Processes whose bytes the driver does not tell; they are in `unaccounted`.
    pub processes_without_bytes: u32,
}

/// What one row of the driver's list adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// As listed.
    pub bytes: Reading<Bytes>,
    /// Listed under a dead pid.
    pub of_dead: bool,
    /// Of `bytes`: cached by its allocator and not used.
    pub cached: Reading<Bytes>,
}

impl Ledger {
    /// Adds up a GPU. `exact` says that all figures are of one moment; otherwise (the highest of a
    /// stretch of time each) rows that exceed `used` are cut instead of counted as shared.
    pub fn add_up(memory: &Memory, entries: &[Entry], exact: bool) -> Self {
        let total = memory.total;
        let used = memory.used.min(total);
        // The old call counts reserved memory as used: it cannot be told apart there.
        let told_apart = memory.reserved.get().filter(|_| memory.api == MemoryApi::V2);
        let reserved = told_apart.unwrap_or(Bytes::ZERO).min(total - used);
        let sum = |of_dead: bool| -> Bytes {
            let rows = entries.iter().filter(|entry| entry.of_dead == of_dead);
            rows.filter_map(|entry| entry.bytes.get()).sum()
        };
        let (mut processes, mut survivors) = (sum(false), sum(true));
        if !exact {
            processes = processes.min(used);
            survivors = survivors.min(used - processes);
        }
        survivors = survivors.min(Bytes(u64::MAX) - processes);
        let listed = processes + survivors;
        let cached = cached(entries).map(|cached| cached.min(processes));
        let without = entries.iter().filter(|entry| entry.bytes.value().is_none()).count();
        Self {
            total,
            used,
            processes,
            survivors,
            unaccounted: used - listed,
            reserved,
            reserved_known: told_apart.is_some(),
            free: total - used - reserved,
            shared: listed - used,
            unified: false,
            host: Bytes::ZERO,
            cached,
            processes_without_bytes: u32::try_from(without).unwrap_or(u32::MAX),
        }
    }

    /// Adds up a GPU that has no memory of its own, from the kernel's figures of the machine's.
    ///
    /// The driver of a GB10, an Orin or a Thor answers its memory calls with *not supported*; its
    /// list of processes has their bytes. `MemAvailable` counts caches of files that can be dropped
    /// as available, which the device's own figure of free memory does not. A GH200 is no such
    /// machine: it has memory of its own, and the driver tells of it as of any other.
    /// <https://docs.nvidia.com/dgx/dgx-spark/known-issues.html>
    pub fn unified(memory: &HostMemory, entries: &[Entry]) -> Self {
        let free = memory.available.min(memory.total);
        let whole = Memory {
            total: memory.total,
            used: memory.total - free,
            reserved: Reading::Value(Bytes::ZERO),
            free,
            api: MemoryApi::V2,
        };
        let all = Self::add_up(&whole, entries, true);
        Self { unified: true, host: all.unaccounted, unaccounted: Bytes::ZERO, ..all }
    }

    /// Whether more is used and nobody's than contexts and rounding explain: above 64 MiB and 1 %.
    /// Without `reserved` told apart, up to 1 GiB of the driver's own is in there.
    pub fn is_unattributed(&self) -> bool {
        let noise = if self.reserved_known { Bytes::mib(64) } else { Bytes::gib(1) };
        self.unaccounted > noise.max(Bytes(self.total.0 / 100))
    }
}

/// What is known to be cached: nothing where nobody is listed, the first reason where nobody's
/// allocator could be read.
fn cached(entries: &[Entry]) -> Reading<Bytes> {
    let alive = || entries.iter().filter(|entry| !entry.of_dead).map(|entry| entry.cached);
    match alive().find_map(|cached| cached.why()) {
        Some(why) if alive().all(|cached| cached.value().is_none()) => Reading::Absent(why),
        _ => Reading::Value(alive().filter_map(|cached| cached.get()).sum()),
    }
}
