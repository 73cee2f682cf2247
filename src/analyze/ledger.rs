//! Where every byte of a GPU is. The sum holds for any input, however wrong.

use super::Ledger;
use crate::sample::{Memory, MemoryApi, Reading};
use crate::units::Bytes;

/// What one row of the driver's list adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// As listed.
    pub bytes: Reading<Bytes>,
    /// Listed under a dead pid.
    pub of_dead: bool,
    /// Of `bytes`: cached by its allocator and not used.
    pub cached: Bytes,
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
        let cached: Bytes = entries.iter().filter(|e| !e.of_dead).map(|entry| entry.cached).sum();
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
            cached: cached.min(processes),
            processes_without_bytes: u32::try_from(without).unwrap_or(u32::MAX),
        }
    }

    /// Whether more is used and nobody's than contexts and rounding explain: above 64 MiB and 1 %.
    /// Without `reserved` told apart, up to 1 GiB of the driver's own is in there.
    pub fn is_unattributed(&self) -> bool {
        let noise = if self.reserved_known { Bytes::mib(64) } else { Bytes::gib(1) };
        self.unaccounted > noise.max(Bytes(self.total.0 / 100))
    }
}
