//! One series of figures, thinned out with age. Cells that repeat cost nothing: a run lasts until
//! the next one begins.

use std::collections::VecDeque;

/// A figure of a cell: KiB of memory, or whatever the series counts. The largest value is kept
/// for "nothing is known".
pub type Cell = u32;

/// No figure.
pub const NONE: Cell = Cell::MAX;

/// The width of a cell and how many of them are kept, finest first: 1 s for 15 min, 10 s for 4 h,
/// 60 s for 7 days.
pub const TIERS: [(u64, u64); 3] = [(1_000, 900), (10_000, 1_440), (60_000, 10_080)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    slot: u32,
    value: Cell,
}

/// One series at one width.
#[derive(Debug, Clone, Default)]
pub struct Tier {
    runs: VecDeque<Run>,
    last_slot: u32,
}

impl Tier {
    fn set(&mut self, slot: u32, value: Cell) {
        if let Some(last) = self.runs.back_mut() {
            if last.value == value {
                self.last_slot = slot;
                return;
            }
            if last.slot == slot {
                last.value = value;
                self.last_slot = slot;
                return;
            }
        }
        self.runs.push_back(Run { slot, value });
        self.last_slot = slot;
    }

    /// Takes a figure. Cells passed over since the last one hold `between`.
    fn push(&mut self, slot: u32, value: Cell, between: Cell) {
        if self.runs.is_empty() || slot < self.last_slot {
            // A clock that ran backwards begins anew: order is what the runs rest on.
            self.runs.clear();
            self.runs.push_back(Run { slot, value });
            self.last_slot = slot;
            return;
        }
        if slot > self.last_slot {
            if slot - self.last_slot > 1 {
                self.set(self.last_slot + 1, between);
            }
            self.set(slot, value);
            return;
        }
        let now = self.runs.back().map_or(NONE, |run| run.value);
        let highest = match (now, value) {
            (NONE, value) | (value, NONE) => value,
            (now, value) => now.max(value),
        };
        self.set(slot, highest);
    }

    fn forget_before(&mut self, slot: u32) {
        while self.runs.get(1).is_some_and(|next| next.slot <= slot) {
            self.runs.pop_front();
        }
        // What is left at the front may begin earlier; it counts from `slot` on.
        if let Some(front) = self.runs.front_mut() {
            front.slot = front.slot.max(slot.min(self.last_slot));
        }
    }

    fn at(&self, slot: u32) -> Cell {
        if slot > self.last_slot {
            return NONE;
        }
        let next = self.runs.partition_point(|run| run.slot <= slot);
        next.checked_sub(1).and_then(|n| self.runs.get(n)).map_or(NONE, |run| run.value)
    }

    /// The highest figure of `from..=to`.
    fn highest(&self, from: u32, to: u32) -> Cell {
        let to = to.min(self.last_slot);
        if self.first_slot().is_none_or(|first| to < first) {
            return NONE;
        }
        let next = self.runs.partition_point(|run| run.slot <= from);
        let mut highest = NONE;
        for run in self.runs.range(next.saturating_sub(1)..) {
            if run.slot > to {
                break;
            }
            if run.value != NONE && (highest == NONE || run.value > highest) {
                highest = run.value;
            }
        }
        if from > to { NONE } else { highest }
    }

    fn first_slot(&self) -> Option<u32> {
        self.runs.front().map(|run| run.slot)
    }
}

/// One series at every width.
#[derive(Debug, Clone, Default)]
pub struct Series {
    tiers: [Tier; TIERS.len()],
    last: Option<(u64, Cell)>,
    first_ms: Option<u64>,
}

const fn slot(at_ms: u64, step_ms: u64) -> u32 {
    let slot = at_ms / step_ms;
    if slot < u32::MAX as u64 { slot as u32 } else { u32::MAX - 1 }
}

impl Series {
    /// Takes the figure of a moment. `gap` says that nothing is known between the figure before
    /// and this one; otherwise the one before held until now.
    pub fn push(&mut self, at_ms: u64, value: Cell, gap: bool) {
        let between = match self.last {
            Some((_, last)) if !gap => last,
            _ => NONE,
        };
        for (tier, (step, kept)) in self.tiers.iter_mut().zip(TIERS) {
            let slot = slot(at_ms, step);
            tier.push(slot, value, between);
            tier.forget_before((slot + 1).saturating_sub(kept as u32));
        }
        self.last = Some((at_ms, value));
        self.first_ms.get_or_insert(at_ms);
    }

    /// The figure of the cell that `at_ms` falls in, of the finest width that reaches back so far
    /// from `now_ms`, and that width.
    pub fn at(&self, at_ms: u64, now_ms: u64) -> Option<(Cell, u64)> {
        let tier = tier_for(at_ms, now_ms)?;
        let (step, _) = TIERS[tier];
        let value = self.tiers[tier].at(slot(at_ms, step));
        (value != NONE).then_some((value, step))
    }

    /// The highest figure from `from_ms` up to, not including, `to_ms`.
    pub fn highest(&self, from_ms: u64, to_ms: u64, now_ms: u64) -> Option<Cell> {
        let tier = tier_for(from_ms, now_ms)?;
        let (step, _) = TIERS[tier];
        let to = slot(to_ms.saturating_sub(1).max(from_ms), step);
        let value = self.tiers[tier].highest(slot(from_ms, step), to);
        (value != NONE).then_some(value)
    }

    /// The highest figure up to and including `at_ms`, and of nothing that came after it.
    pub fn highest_until(&self, at_ms: u64, now_ms: u64) -> Option<Cell> {
        let mut highest = self.at(at_ms, now_ms).map(|found| found.0);
        let mut end_ms = u64::MAX;
        for (tier, (step, kept)) in self.tiers.iter().zip(TIERS) {
            let begins_ms = (u64::from(slot(now_ms, step)) + 1).saturating_sub(kept) * step;
            // The cell that holds `at_ms` may hold what came after it.
            let end = end_ms.min(at_ms / step * step);
            if end > begins_ms {
                let value = tier.highest(slot(begins_ms, step), slot(end - 1, step));
                highest = highest.max((value != NONE).then_some(value));
            }
            end_ms = begins_ms;
        }
        highest
    }

    /// The figures of one width from `from_ms` to `to_ms`, oldest first, as (milliseconds, figure);
    /// cells without one are left out.
    pub fn cells(
        &self,
        tier: usize,
        from_ms: u64,
        to_ms: u64,
    ) -> impl Iterator<Item = (u64, Cell)> + '_ {
        let (step, _) = TIERS[tier];
        let held = &self.tiers[tier];
        let first = held.first_slot().unwrap_or(u32::MAX).max(slot(from_ms, step));
        let last = held.last_slot.min(slot(to_ms, step));
        let mut run = held.runs.partition_point(|run| run.slot <= first).saturating_sub(1);
        (first..=last).filter_map(move |at| {
            while held.runs.get(run + 1).is_some_and(|next| next.slot <= at) {
                run += 1;
            }
            let value = held.runs.get(run)?.value;
            (value != NONE).then_some((u64::from(at) * step, value))
        })
    }

    /// Whether it held one value from `from_ms` on: cheap to ask.
    pub fn constant_since(&self, tier: usize, from_ms: u64) -> bool {
        let (step, _) = TIERS[tier];
        let held = |run: &Run| run.value != NONE && run.slot <= slot(from_ms, step);
        self.tiers[tier].runs.back().is_some_and(held)
    }

    /// Where it held one value in all cells of one width from `from_ms` to `to_ms`: the first and
    /// the last of them, in milliseconds.
    pub fn held(&self, tier: usize, from_ms: u64, to_ms: u64) -> Option<(u64, u64)> {
        let (step, _) = TIERS[tier];
        let held = &self.tiers[tier];
        let (from, last) = (slot(from_ms, step), held.last_slot.min(slot(to_ms, step)));
        let run = held.runs.back().filter(|run| run.value != NONE && run.slot <= last)?;
        // What came before it lies outside, or is unknown.
        let before = held.runs.len().checked_sub(2).and_then(|n| held.runs.get(n));
        let alone = run.slot <= from
            || before.is_none()
            || (held.runs.len() == 2 && before.is_some_and(|before| before.value == NONE));
        let first = run.slot.max(from);
        (alone && first <= last).then(|| (u64::from(first) * step, u64::from(last) * step))
    }

    /// The oldest moment that it has a cell for, in milliseconds.
    pub fn oldest_ms(&self) -> Option<u64> {
        let starts = self.tiers.iter().zip(TIERS);
        let cell = |(tier, (step, _)): (&Tier, _)| Some(u64::from(tier.first_slot()?) * step);
        let oldest = starts.filter_map(cell).min()?;
        // The first cell begins before the first figure.
        Some(oldest.max(self.first_ms?))
    }

    /// The newest figure and its moment.
    pub fn last(&self) -> Option<(u64, Cell)> {
        self.last.filter(|last| last.1 != NONE)
    }

    /// How many runs it keeps: its weight.
    pub fn weight(&self) -> usize {
        self.tiers.iter().map(|tier| tier.runs.len()).sum()
    }

    /// Drops the oldest runs, coarsest width first, until `weight` are left.
    pub fn thin(&mut self, weight: usize) {
        let mut surplus = self.weight().saturating_sub(weight);
        for tier in self.tiers.iter_mut().rev() {
            let cut = surplus.min(tier.runs.len().saturating_sub(1));
            tier.runs.drain(..cut);
            tier.runs.shrink_to_fit();
            surplus -= cut;
        }
    }

    /// Gives back what it does not need: for series that get no more figures.
    pub fn shrink(&mut self) {
        for tier in &mut self.tiers {
            tier.runs.shrink_to_fit();
        }
    }
}

/// The finest tier that still has the cell of `at_ms`.
fn tier_for(at_ms: u64, now_ms: u64) -> Option<usize> {
    TIERS.iter().position(|(step, kept)| {
        let oldest = (u64::from(slot(now_ms, *step)) + 1).saturating_sub(*kept);
        u64::from(slot(at_ms, *step)) >= oldest
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every sample kept, every question answered by looking at all of them.
    #[derive(Default)]
    struct Naive(Vec<(u64, Cell, bool)>);

    impl Naive {
        fn at(&self, at_ms: u64, now_ms: u64) -> Option<Cell> {
            let (step, _) = TIERS[tier_for(at_ms, now_ms)?];
            let cell = at_ms / step;
            let inside: Vec<_> = self.0.iter().filter(|s| s.0 / step == cell).collect();
            if !inside.is_empty() {
                return inside.iter().map(|s| s.1).filter(|v| *v != NONE).max();
            }
            let next = self.0.iter().position(|s| s.0 / step > cell)?;
            let before = self.0.get(next.checked_sub(1)?)?;
            (!self.0[next].2 && before.1 != NONE).then_some(before.1)
        }
    }

    fn samples() -> impl Strategy<Value = Vec<(u64, Cell, bool)>> {
        let step = prop_oneof![100..3_000_u64, 5_000..90_000_u64, Just(1_000_u64), Just(7_200_000)];
        let value = prop_oneof![8 => 0..6_u32, 1 => Just(NONE)];
        prop::collection::vec((step, value, prop::bool::weighted(0.1)), 1..400)
    }

    proptest! {
        #[test]
        fn a_series_equals_a_list_of_all_samples(
            steps in samples(),
            asked in prop::collection::vec(0.0..1.0_f64, 40),
        ) {
            let (mut series, mut naive, mut now) = (Series::default(), Naive::default(), 5_000_u64);
            for (step, value, gap) in steps {
                now += step;
                series.push(now, value, gap);
                naive.0.push((now, value, gap));
            }
            let oldest = naive.0[0].0;
            for part in asked {
                let at = oldest + ((now - oldest) as f64 * part) as u64;
                prop_assert_eq!(
                    series.at(at, now).map(|v| v.0), naive.at(at, now), "at {} of {}", at, now
                );
            }
            prop_assert_eq!(series.at(now + 60_000, now), None);
        }

        #[test]
        fn a_chart_column_is_the_highest_cell(values in prop::collection::vec(0..50_u32, 1..900)) {
            let mut series = Series::default();
            for (n, value) in values.iter().enumerate() {
                series.push(n as u64 * 1_000, *value, false);
            }
            let now = (values.len() as u64 - 1) * 1_000;
            let half = values.len() / 2;
            prop_assert_eq!(
                series.highest(half as u64 * 1_000, now + 1_000, now),
                values[half..].iter().max().copied()
            );
        }

        #[test]
        fn a_series_never_grows_beyond_its_cells(values in prop::collection::vec(0..9_u32, 3_000)) {
            let mut series = Series::default();
            for (n, value) in values.iter().enumerate() {
                series.push(n as u64 * 61_000, *value, n % 7 == 0);
            }
            prop_assert!(series.weight() <= 900 + 1_440 + 10_080);
            series.thin(100);
            prop_assert!(series.weight() <= 100);
            prop_assert_eq!(series.last().map(|l| l.1), values.last().copied());
        }
    }
}
