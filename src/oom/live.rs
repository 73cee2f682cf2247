//! What this machine adds to an answer: who the processes of the message are, and what of them is
//! left over.

use serde::Serialize;

use super::explanation::Explanation;
use super::lines::visible;
use crate::analyze::{Class, Holder, View};
use crate::ids::{GpuIndex, Pid};

/// The machine now, matched with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    /// The GPU that the message is about, where it can be told.
    pub gpu: Option<GpuIndex>,
    /// Free there now, in bytes.
    pub free_bytes: Option<u64>,
    /// Its holders, the largest first.
    pub holders: Vec<LiveHolder>,
    /// What may be ended with one key, in bytes.
    pub reclaimable_bytes: u64,
}

/// A holder now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveHolder {
    /// Its number.
    pub pid: Pid,
    /// What it holds, in bytes.
    pub bytes: Option<u64>,
    /// Its command, cleaned.
    pub command: String,
    /// What it is.
    pub class: Class,
    /// It may be ended with one key.
    pub leftover: bool,
    /// The message names it.
    pub named: bool,
}

/// Holders shown; the rest is in the live view.
const HOLDERS_MAX: usize = 12;
/// Capacities printed with two decimals differ by this much at the most, in bytes.
const ROUNDING: u64 = 16 << 20;

impl Explanation {
    /// The GPU on which the processes of the message are. One may be on several: the one on which
    /// most of them hold what the message says, and then the one of the message's number.
    fn by_process(&self, view: &View) -> Option<GpuIndex> {
        let score = |index: GpuIndex| {
            let here = view.holders.iter().filter(|holder| holder.index == index);
            let named = here.filter_map(|holder| {
                let other = self.other_processes.iter().find(|o| o.pid == holder.pid.0)?;
                let same = |bytes: u64| holder.bytes.get().map(|b| b.0.abs_diff(bytes) <= ROUNDING);
                Some(other.bytes.and_then(same) == Some(true))
            });
            let named: Vec<bool> = named.collect();
            let same = named.iter().filter(|same| **same).count();
            let number = self.device == Some(u64::from(index.0));
            (!named.is_empty()).then_some((same, named.len(), number))
        };
        let scored = view.gpus.iter().rev().map(|gpu| gpu.sample.index);
        let scored = scored.filter_map(|index| Some((score(index)?, index)));
        scored.max_by_key(|(score, _)| *score).map(|(_, index)| index)
    }

    /// Adds what the machine shows, where it has the GPU or a process of the message.
    pub fn join(&mut self, view: &View) {
        let named = |holder: &Holder| self.other_processes.iter().any(|o| o.pid == holder.pid.0);
        let by_process = self.by_process(view);
        let by_capacity = || {
            let total = self.total_bytes?;
            let mut same = view.gpus.iter().filter(|gpu| {
                gpu.ledger.value().is_some_and(|ledger| ledger.total.0.abs_diff(total) <= ROUNDING)
            });
            let first = same.next()?.sample.index;
            // Two cards of one size: the program's number need not be the driver's.
            same.next().is_none().then_some(first)
        };
        let Some(index) = by_process.or_else(by_capacity) else { return };
        let mut holders: Vec<LiveHolder> = view
            .holders
            .iter()
            .filter(|holder| holder.index == index)
            .map(|holder| LiveHolder {
                pid: holder.pid,
                bytes: holder.bytes.value().map(|bytes| bytes.0),
                command: visible(holder.command_without_secrets().as_bytes()),
                class: holder.verdict.class,
                leftover: holder.verdict.zombie,
                named: named(holder),
            })
            .collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
        holders.truncate(HOLDERS_MAX);
        // With what a dead process's survivors keep, which stands under the dead one.
        let here = view.gpus.iter().filter(|gpu| gpu.sample.index == index);
        let reclaimable_bytes = here.map(|gpu| gpu.counts.zombie_bytes.0).sum();
        let ledger = view
            .gpus
            .iter()
            .find(|gpu| gpu.sample.index == index)
            .and_then(|gpu| gpu.ledger.value());
        self.live = Some(Live {
            gpu: Some(index),
            free_bytes: ledger.map(|ledger| ledger.free.0),
            holders,
            reclaimable_bytes,
        });
    }
}
