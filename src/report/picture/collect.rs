//! What a picture of a recording needs, gathered tick by tick in bounded memory.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::analyze::select;
use crate::analyze::timeline::Timeline;
use crate::history::History;
use crate::ids::{GpuUuid, Pid, Stamp};
use crate::sample::{GpuSample, GpuTick, Tick};
use crate::units::Bytes;

/// Samples of a GPU that are kept. Beyond that pairs become one: the one with more used.
const MOST: usize = 4_096;
/// Holders of a sample that are kept apart, the largest.
const HOLDERS: usize = 32;
/// Without a sample for longer than this, and than three intervals, nothing is known.
const SILENCE_MS: u64 = 10_000;
/// Names that are kept.
const NAMES: usize = 20_000;

/// What one GPU held at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// From when.
    pub from_ms: u64,
    /// Until when it held, as far as is known.
    pub until_ms: u64,
    /// As the driver says.
    pub used: Bytes,
    /// Kept by the driver itself, where it tells that apart.
    pub reserved: Bytes,
    /// The largest holders, the largest first.
    pub holders: Vec<(Pid, Bytes)>,
    /// All others together.
    pub others: Bytes,
}

/// One GPU over the time of the recording.
#[derive(Debug, Clone)]
pub struct GpuPast {
    /// Which.
    pub uuid: GpuUuid,
    /// As the driver numbers it; an instance of MIG says so. Hostile text.
    pub label: String,
    /// The most that it was said to have.
    pub total: Bytes,
    /// In the order of time.
    pub held: Vec<Held>,
}

/// Gathers ticks.
#[derive(Debug)]
pub struct Collector {
    wanted: Vec<String>,
    range_ms: (u64, u64),
    usual_ms: u64,
    history: History,
    /// What happened.
    pub line: Timeline,
    /// What was held, in the driver's order.
    pub gpus: Vec<GpuPast>,
    /// What processes are called. Hostile text.
    pub names: HashMap<Pid, String>,
    /// The first and the last moment.
    pub span: Option<(Stamp, Stamp)>,
    /// The machine's name, as the ticks have it. Hostile text.
    pub host: Option<String>,
    /// The driver's version. Hostile text.
    pub driver: Option<String>,
    last_ms: Option<u64>,
    gap_from_ms: Option<u64>,
}

impl Collector {
    /// Of the GPUs that `wanted` names, or of all, between two moments in milliseconds since boot.
    /// `usual_ms` is the time from one sample to the next, where only one comes.
    pub fn new(wanted: &[String], range_ms: (u64, u64), usual_ms: u64) -> Self {
        Self {
            wanted: wanted.to_vec(),
            range_ms,
            usual_ms: usual_ms.clamp(100, 3_600_000),
            history: History::new(),
            line: Timeline::new(),
            gpus: Vec::new(),
            names: HashMap::new(),
            span: None,
            host: None,
            driver: None,
            last_ms: None,
            gap_from_ms: None,
        }
    }

    /// Takes the next tick; no once the range is over.
    pub fn push(&mut self, tick: &Tick) -> bool {
        let at = tick.at();
        if at.boot_ms > self.range_ms.1 {
            return false;
        }
        self.history.push(tick);
        self.line.follow(&self.history);
        let first = match tick {
            Tick::Gap(gap) => gap.from,
            _ => at,
        };
        if at.boot_ms >= self.range_ms.0 {
            let from = self.span.map_or(first, |span| span.0.min(first));
            self.span = Some((from, self.span.map_or(at, |span| span.1.max(at))));
        }
        match tick {
            Tick::Gpus(tick) => self.gpus(tick),
            Tick::Gap(gap) => {
                self.gap_from_ms.get_or_insert(gap.from.boot_ms);
            }
            Tick::Kill(_) => {}
            Tick::Procs(tick) => {
                if let Some(name) = tick.host.hostname.value() {
                    self.host = Some(name.clone());
                }
                for process in &tick.procs {
                    let known = self.names.len() < NAMES;
                    if known || self.names.contains_key(&process.id.pid) {
                        self.names.insert(process.id.pid, process.short_name());
                    }
                }
            }
        }
        true
    }

    fn gpus(&mut self, tick: &GpuTick) {
        let at_ms = tick.at.boot_ms;
        if let Some(version) = tick.driver.version.value() {
            self.driver = Some(version.clone());
        }
        let before = self.last_ms.replace(at_ms);
        let passed = before.map_or(0, |before| at_ms.saturating_sub(before));
        let silent = passed > SILENCE_MS.max(self.usual_ms.saturating_mul(3));
        let gap = self.gap_from_ms.take();
        if passed > 0 && !silent && gap.is_none() {
            self.usual_ms = passed;
        }
        // What was seen last held on until now, or for as long as is usual.
        let until_ms = match (gap, before) {
            (Some(from), Some(before)) => from.max(before),
            (None, Some(before)) if silent => before + self.usual_ms,
            _ => at_ms,
        };
        if at_ms < self.range_ms.0 {
            return;
        }
        for gpu in &tick.gpus {
            let parent = gpu.mig.as_ref().map(|mig| &mig.parent);
            if select::names(&self.wanted, gpu.index, &gpu.uuid, parent) {
                self.sample(gpu, (at_ms, until_ms));
            }
        }
    }

    fn sample(&mut self, gpu: &GpuSample, (at_ms, until_ms): (u64, u64)) {
        let place = self.gpus.iter().position(|past| past.uuid == gpu.uuid);
        let place = place.unwrap_or_else(|| {
            self.gpus.push(GpuPast {
                uuid: gpu.uuid.clone(),
                label: label(gpu),
                total: Bytes::ZERO,
                held: Vec::new(),
            });
            self.gpus.len() - 1
        });
        let past = &mut self.gpus[place];
        if let Some(last) = past.held.last_mut() {
            last.until_ms = last.until_ms.min(until_ms);
        }
        let Some(memory) = gpu.memory.value() else { return };
        past.total = past.total.max(memory.total);
        let rows = gpu.processes.value().into_iter().flatten();
        let mut holders: Vec<(Pid, Bytes)> =
            rows.filter_map(|row| Some((row.pid, row.used.get()?))).collect();
        holders.sort_by_key(|&(pid, bytes)| (Reverse(bytes), pid));
        let others = holders.iter().skip(HOLDERS).map(|holder| holder.1).sum();
        holders.truncate(HOLDERS);
        past.held.push(Held {
            from_ms: at_ms,
            until_ms: u64::MAX,
            used: memory.used,
            reserved: memory.reserved.get().unwrap_or_default(),
            holders,
            others,
        });
        if past.held.len() >= MOST {
            thin(&mut past.held);
        }
    }

    /// The last samples end as the recording does: after as long as is usual.
    pub fn finish(&mut self) {
        let usual_ms = self.usual_ms;
        for past in &mut self.gpus {
            if let Some(last) = past.held.last_mut() {
                last.until_ms = last.until_ms.min(last.from_ms.saturating_add(usual_ms));
            }
        }
    }
}

/// Neighbours become one with the higher figures; a hole between two of them stays.
fn thin(held: &mut Vec<Held>) {
    let mut kept: Vec<Held> = Vec::with_capacity(held.len());
    let mut whole = true;
    for next in held.drain(..) {
        match kept.last_mut() {
            Some(last) if whole && last.until_ms == next.from_ms => {
                let (from_ms, until_ms) = (last.from_ms, next.until_ms);
                if next.used > last.used {
                    *last = next;
                }
                (last.from_ms, last.until_ms) = (from_ms, until_ms);
                whole = false;
            }
            _ => {
                kept.push(next);
                whole = true;
            }
        }
    }
    // Nothing but holes: every second one is left out, as another hole.
    if kept.len() >= MOST * 3 / 4 {
        let mut n = 0;
        kept.retain(|_| {
            n += 1;
            n % 2 == 1
        });
    }
    *held = kept;
}

fn label(gpu: &GpuSample) -> String {
    let name = gpu.name.value().map_or("", String::as_str);
    let number = crate::fields::gpu_label(gpu);
    let kind = if gpu.mig.is_some() { "MIG" } else { "GPU" };
    format!("{kind} {number}  {name}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(from_ms: u64, until_ms: u64, used: u64) -> Held {
        Held {
            from_ms,
            until_ms,
            used: Bytes(used),
            reserved: Bytes::ZERO,
            holders: Vec::new(),
            others: Bytes::ZERO,
        }
    }

    #[test]
    fn thinning_keeps_peaks_and_holes() {
        let mut all: Vec<Held> =
            (0..MOST as u64).map(|n| held(n, n + 1, if n == 77 { 9 } else { 1 })).collect();
        all[99].until_ms = 99;
        thin(&mut all);
        assert!(all.len() <= MOST / 2 + 1, "{}", all.len());
        assert_eq!(all.iter().map(|held| held.used.0).max(), Some(9));
        let holes = all.windows(2).filter(|pair| pair[0].until_ms != pair[1].from_ms).count();
        assert_eq!(holes, 1);
        let mut holes: Vec<Held> = (0..MOST as u64).map(|n| held(10 * n, 10 * n + 1, 1)).collect();
        thin(&mut holes);
        assert_eq!(holes.len(), MOST / 2);
    }
}
