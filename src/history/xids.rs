//! Faults that the driver reported, for as long as the session lasts.

use std::collections::{BTreeMap, VecDeque};

use super::History;
use crate::ids::GpuUuid;
use crate::sample::{XidEvent, XidReport};

/// Events that are remembered one by one.
const MAX_EVENTS: usize = 512;
/// Pairs of GPU and number that are counted.
const MAX_COUNTS: usize = 4_096;

/// The events, and how many there were.
#[derive(Debug, Clone, Default)]
pub(super) struct Xids {
    events: VecDeque<XidEvent>,
    counts: BTreeMap<(GpuUuid, u64), u64>,
}

impl Xids {
    pub(super) fn push(&mut self, report: &XidReport) {
        for event in &report.events {
            let key = (event.gpu.clone(), event.code);
            if self.counts.len() < MAX_COUNTS || self.counts.contains_key(&key) {
                *self.counts.entry(key).or_default() += 1;
            }
            self.events.push_back(event.clone());
            if self.events.len() > MAX_EVENTS {
                self.events.pop_front();
            }
        }
    }
}

impl History {
    /// XID events, the oldest first.
    pub fn xids(&self) -> impl DoubleEndedIterator<Item = &XidEvent> {
        self.xids.events.iter()
    }

    /// How many of each number a GPU had since the start.
    pub fn xid_counts(&self, gpu: &GpuUuid) -> impl Iterator<Item = (u64, u64)> {
        let mine = self.xids.counts.iter().filter(move |(key, _)| key.0 == *gpu);
        mine.map(|(key, count)| (key.1, *count))
    }
}
