//! What a GPU held as areas on top of each other, a step for each column of pixels.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::collect::{GpuPast, Held};
use super::scene::Step;
use crate::ids::Pid;
use crate::units::Bytes;

/// Where an area is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plot {
    /// The first column.
    pub x: i32,
    /// The first row.
    pub y: i32,
    /// Columns.
    pub width: i32,
    /// Rows.
    pub height: i32,
    /// The moments at both ends, in milliseconds since boot.
    pub span_ms: (u64, u64),
}

impl Plot {
    /// The column of a moment.
    pub fn column(&self, at_ms: u64) -> i32 {
        let (from, to) = self.span_ms;
        let part = u128::from(at_ms.clamp(from, to.max(from)) - from);
        let whole = u128::from(to.saturating_sub(from)).max(1);
        self.x + (part * self.width as u128 / whole) as i32
    }

    /// The row of a figure.
    pub fn row(&self, bytes: Bytes, top: Bytes) -> i32 {
        let whole = u128::from(top.0).max(1);
        let part = u128::from(bytes.0.min(top.0)) * self.height as u128;
        self.y + self.height - ((part + whole / 2) / whole) as i32
    }

    /// The stretch of time of the column `n`.
    fn stretch(&self, n: i32) -> (u64, u64) {
        let (from, to) = self.span_ms;
        let edge = |n: i32| {
            let part = u128::from(to.saturating_sub(from)) * n as u128;
            from + (part / u128::from(self.width.unsigned_abs().max(1))) as u64
        };
        (edge(n), edge(n + 1).max(edge(n) + 1))
    }
}

/// One area of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// One of the largest holders.
    Holder(Pid),
    /// All other holders.
    Others,
    /// Used, and nobody's.
    Unaccounted,
    /// Kept by the driver.
    Driver,
}

/// The parts of a sample from the bottom up; they sum to what is used and reserved.
pub(super) fn parts(held: &Held, named: &[Pid]) -> Vec<(Part, Bytes)> {
    let mut left = held.used;
    let mut take = |bytes: Bytes| {
        // The lists can exceed what is used for a moment, or where memory is shared.
        let taken = bytes.min(left);
        left = left.saturating_sub(taken);
        taken
    };
    let mut parts = Vec::with_capacity(named.len() + 3);
    for pid in named {
        let own = held.holders.iter().find(|holder| holder.0 == *pid);
        parts.push((Part::Holder(*pid), take(own.map_or(Bytes::ZERO, |holder| holder.1))));
    }
    let unnamed = held.holders.iter().filter(|holder| !named.contains(&holder.0));
    let others = unnamed.map(|holder| holder.1).sum::<Bytes>() + held.others;
    parts.push((Part::Others, take(others)));
    parts.push((Part::Unaccounted, left));
    parts.push((Part::Driver, held.reserved));
    parts
}

/// The areas of a GPU from the bottom up, and where nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stack {
    /// Each with its steps.
    pub areas: Vec<(Part, Vec<Step>)>,
    /// Columns without a figure: first, and behind the last.
    pub gaps: Vec<(i32, i32)>,
}

/// Stacks it. A column shows the sample with the most used of its stretch of time.
pub fn stack(past: &GpuPast, named: &[Pid], plot: &Plot) -> Stack {
    let mut areas: BTreeMap<usize, (Part, Vec<Step>)> = BTreeMap::new();
    let mut gaps: Vec<(i32, i32)> = Vec::new();
    let mut next = 0;
    for n in 0..plot.width {
        let (from, to) = plot.stretch(n);
        while past.held.get(next).is_some_and(|held| held.until_ms <= from) {
            next += 1;
        }
        let here = past.held[next..].iter().take_while(|held| held.from_ms < to);
        let most = here.max_by_key(|held| (held.used, Reverse(held.from_ms)));
        let x = plot.x + n;
        let Some(most) = most else {
            match gaps.last_mut() {
                Some(last) if last.1 == x => last.1 = x + 1,
                _ => gaps.push((x, x + 1)),
            }
            continue;
        };
        let mut sum = Bytes::ZERO;
        for (level, (part, bytes)) in parts(most, named).into_iter().enumerate() {
            let bottom = plot.row(sum, past.total);
            sum += bytes;
            let mut top = plot.row(sum, past.total);
            if part == Part::Driver && bytes > Bytes::ZERO && bottom > plot.y {
                // It is thinner than a pixel on most GPUs, and would come and go with rounding.
                top = top.min(bottom - 1);
            }
            let (_, steps) = areas.entry(level).or_insert_with(|| (part, Vec::new()));
            if top < bottom {
                push(steps, Step { x, end: x + 1, top, bottom });
            }
        }
    }
    let areas = areas.into_values().filter(|area| !area.1.is_empty()).collect();
    Stack { areas, gaps }
}

/// Equal neighbours are one step.
fn push(steps: &mut Vec<Step>, step: Step) {
    match steps.last_mut() {
        Some(last) if last.end == step.x && (last.top, last.bottom) == (step.top, step.bottom) => {
            last.end = step.end;
        }
        _ => steps.push(step),
    }
}

/// The holders with the highest figures between two moments, the highest first, `most` at the most.
pub fn largest(past: &GpuPast, span_ms: (u64, u64), most: usize) -> Vec<(Pid, Bytes)> {
    let mut peaks: BTreeMap<Pid, Bytes> = BTreeMap::new();
    let within = |held: &&Held| held.until_ms > span_ms.0 && held.from_ms <= span_ms.1;
    for (pid, bytes) in past.held.iter().filter(within).flat_map(|held| &held.holders) {
        let peak = peaks.entry(*pid).or_default();
        *peak = (*peak).max(*bytes);
    }
    let mut order: Vec<(Pid, Bytes)> = peaks.into_iter().filter(|p| p.1 > Bytes::ZERO).collect();
    order.sort_by_key(|&(pid, bytes)| (Reverse(bytes), pid));
    order.truncate(most);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GpuUuid;
    use proptest::prelude::*;

    fn past(held: Vec<Held>) -> GpuPast {
        let uuid = GpuUuid::new("GPU-a");
        GpuPast { uuid, label: "GPU 0".into(), total: Bytes(1_000), held }
    }

    fn held(from_ms: u64, used: u64, holders: &[(u32, u64)]) -> Held {
        Held {
            from_ms,
            until_ms: from_ms + 10,
            used: Bytes(used),
            reserved: Bytes(10),
            holders: holders.iter().map(|(pid, bytes)| (Pid(*pid), Bytes(*bytes))).collect(),
            others: Bytes::ZERO,
        }
    }

    #[test]
    fn heights_are_bytes_and_holes_stay_holes() {
        let past = past(vec![held(0, 500, &[(1, 300), (2, 100)]), held(30, 600, &[(1, 600)])]);
        let plot = Plot { x: 5, y: 7, width: 40, height: 100, span_ms: (0, 40) };
        let named: Vec<Pid> = largest(&past, (0, 40), 1).into_iter().map(|h| h.0).collect();
        assert_eq!(named, [Pid(1)]);
        let stack = stack(&past, &named, &plot);
        let step = |x, end, top, bottom| Step { x, end, top: 107 - top, bottom: 107 - bottom };
        assert_eq!(
            stack.areas,
            [
                (Part::Holder(Pid(1)), vec![step(5, 15, 30, 0), step(35, 45, 60, 0)]),
                (Part::Others, vec![step(5, 15, 40, 30)]),
                (Part::Unaccounted, vec![step(5, 15, 50, 40)]),
                (Part::Driver, vec![step(5, 15, 51, 50), step(35, 45, 61, 60)]),
            ]
        );
        assert_eq!(stack.gaps, [(15, 35)]);
    }

    proptest! {
        #[test]
        fn the_parts_sum_to_what_is_used(
            used in 0_u64..2_000,
            holders in prop::collection::vec((0_u32..9, 0_u64..900), 0..9),
            named in prop::collection::vec(0_u32..9, 0..4),
        ) {
            let mut named: Vec<Pid> = named.into_iter().map(Pid).collect();
            named.dedup();
            let sum: Bytes = parts(&held(0, used, &holders), &named).iter().map(|p| p.1).sum();
            prop_assert_eq!(sum, Bytes(used + 10));
        }
    }
}
