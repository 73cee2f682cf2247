//! Who held a GPU's memory, as columns of a chart.

use super::tier::TIERS;
use super::track::to_bytes;
use super::{History, HolderTrack};
use crate::ids::{GpuUuid, Pid};
use crate::units::Bytes;

/// One column: the moment of its stretch of time at which most was used. The parts sum to what was
/// used then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackPoint {
    /// What each of the named holders held.
    pub named: Vec<Bytes>,
    /// All other holders.
    pub others: Bytes,
    /// Used, and nobody's.
    pub unaccounted: Bytes,
}

impl StackPoint {
    /// All that was used.
    pub fn used(&self) -> Bytes {
        self.named.iter().copied().sum::<Bytes>() + self.others + self.unaccounted
    }
}

/// More columns than any terminal has.
const MAX_COLUMNS: usize = 4_096;
/// Moments of a column that are looked at.
const LOOKS: u64 = 32;

impl History {
    /// Who held the memory of a GPU from `from_ms` to `to_ms` (milliseconds since boot), oldest
    /// first, in `columns` equal stretches; `None` where nothing is known.
    pub fn gpu_stack(
        &self,
        gpu: &GpuUuid,
        (from_ms, to_ms): (u64, u64),
        columns: usize,
        named: &[Pid],
    ) -> Vec<Option<StackPoint>> {
        let columns = columns.min(MAX_COLUMNS);
        let span = u128::from(to_ms.saturating_sub(from_ms));
        let edge = |n: usize| from_ms + (span * n as u128 / columns.max(1) as u128) as u64;
        let lists = |track: &&HolderTrack| {
            track.gpu == *gpu && track.last_ms >= from_ms && track.first_ms <= to_ms
        };
        let tracks: Vec<&HolderTrack> = self.holders().filter(lists).collect();
        let column = |n| {
            let (from, to) = (edge(n), edge(n + 1).max(edge(n) + 1));
            self.stack_at(gpu, (from, to), &tracks, named)
        };
        (0..columns).map(column).collect()
    }

    fn stack_at(
        &self,
        gpu: &GpuUuid,
        (from, to): (u64, u64),
        tracks: &[&HolderTrack],
        named: &[Pid],
    ) -> Option<StackPoint> {
        let used = &self.gpu(gpu)?.used;
        let now_ms = self.latest()?.boot_ms;
        // The newest figure holds until the next one is due.
        let due = TIERS[0].0.max(self.intervals_ms[1]).saturating_mul(2);
        let last = used.last().map(|last| last.0);
        let held = last.filter(|last| from > *last && from <= last + due && !self.in_gap());
        let step = ((to - from) / LOOKS).max(TIERS[0].0);
        let looks = (from..to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        let looks = held.into_iter().chain(looks.filter(|_| held.is_none()));
        let at = |at_ms| used.at(at_ms, now_ms).map(|cell| (cell.0, at_ms));
        // Of equal ones the first.
        let (most, at_ms) = looks.filter_map(at).reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let mut left = to_bytes(most);
        let mut take = |bytes: Bytes| {
            let taken = bytes.min(left);
            left = left.saturating_sub(taken);
            taken
        };
        let (mut of_named, mut others) = (vec![Bytes::ZERO; named.len()], Bytes::ZERO);
        for track in tracks {
            let Some((cell, _)) = track.bytes.at(at_ms, now_ms) else { continue };
            match named.iter().position(|pid| *pid == track.pid) {
                Some(n) => of_named[n] += to_bytes(cell),
                None => others += to_bytes(cell),
            }
        }
        let named = of_named.into_iter().map(&mut take).collect();
        let others = take(others);
        Some(StackPoint { named, others, unaccounted: left })
    }
}
