//! Verdicts as they were reached, kept for looks back: a new entry only where something of one has
//! changed, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Class, Evidence, Freshness, Holder, Verdict, View, Weight};
use crate::history::slim;
use crate::ids::quick::{Map, Set};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::sample::{ProcKinds, ProcSample, Reading};
use crate::units::{Bytes, age};

/// Rows that are followed. Of more nothing is kept.
const MOST_ROWS: usize = 2_048;
/// Entries of all rows together, about half a kilobyte each.
const MOST_RUNS: usize = 6_144;
/// Stretches of time in which views were made.
const MOST_STRETCHES: usize = 256;
/// Between two views of one stretch there is no more, in milliseconds: twice the longest interval.
/// What nothing is known of has no rows, whatever was judged before it.
const STRETCH_MS: u64 = 130_000;
/// A verdict of so long before is called one of then, in milliseconds.
const THEN_MS: u64 = 2_000;

/// What was known of a row.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub index: GpuIndex,
    pub listed: bool,
    pub kinds: ProcKinds,
    pub bytes: Reading<Bytes>,
    pub id: Option<ProcId>,
    pub survivors: Vec<ProcId>,
    /// Of one that is in no list: nobody else keeps who it was.
    pub process: Option<Arc<ProcSample>>,
    verdict: Verdict,
    /// When the verdict counts from, milliseconds since boot.
    since_ms: Option<u64>,
}

impl Conclusion {
    fn of(holder: &Holder, at_ms: u64) -> Self {
        let process = holder.process.as_deref().filter(|_| !holder.listed);
        Self {
            index: holder.index,
            listed: holder.listed,
            kinds: holder.kinds,
            bytes: holder.bytes,
            id: holder.id,
            survivors: holder.survivors.clone(),
            process: process.map(|process| Arc::new(slim(process.clone()))),
            verdict: holder.verdict.clone(),
            since_ms: holder.verdict.since_ms.map(|ago| at_ms.saturating_sub(ago)),
        }
    }

    /// Whether it says the same of a row: the words of evidence hold figures that move.
    fn holds(&self, holder: &Holder) -> bool {
        let verdict = &holder.verdict;
        let same = |a: &Evidence, b: &Evidence| a.key == b.key && a.weight == b.weight;
        let evidence = self.verdict.evidence.iter().zip(&verdict.evidence);
        self.verdict.class == verdict.class
            && self.verdict.zombie == verdict.zombie
            && self.id == holder.id
            && self.listed == holder.listed
            && self.survivors == holder.survivors
            && self.verdict.evidence.len() == verdict.evidence.len()
            && evidence.into_iter().all(|(a, b)| same(a, b))
    }
}

#[derive(Debug)]
struct Run {
    from_ms: u64,
    /// `None`: it was not there.
    what: Option<Arc<Conclusion>>,
}

/// The verdicts of a session.
#[derive(Debug, Default)]
pub struct Judged {
    rows: Map<(GpuUuid, Pid), VecDeque<Run>>,
    runs: usize,
    stretches: VecDeque<(u64, u64)>,
}

impl Judged {
    /// Takes the verdicts of a view of the present.
    pub fn follow(&mut self, view: &View) {
        // While no answer comes only time passes: that is not what was judged of the last one.
        if matches!(view.freshness, Freshness::Stalled { .. }) {
            return;
        }
        // It holds from the looks on that it was made of.
        let at_ms = view.at.boot_ms.saturating_sub(view.gpus_age_ms.unwrap_or(0));
        if view.gpus.is_empty() || self.stretches.back().is_some_and(|last| at_ms < last.1) {
            return;
        }
        self.stretch(at_ms);
        let mut there: Set<(&GpuUuid, Pid)> = Set::default();
        for holder in &view.holders {
            there.insert((&holder.gpu, holder.pid));
            let key = (holder.gpu.clone(), holder.pid);
            let room = self.rows.len() < MOST_ROWS;
            if !room && !self.rows.contains_key(&key) {
                continue;
            }
            let runs = self.rows.entry(key).or_default();
            let last = runs.back().and_then(|run| run.what.as_ref());
            if !last.is_some_and(|last| last.holds(holder)) {
                let what = Some(Arc::new(Conclusion::of(holder, view.at.boot_ms)));
                self.runs += put(runs, Run { from_ms: at_ms, what });
            }
        }
        for ((gpu, pid), runs) in &mut self.rows {
            let present = runs.back().is_some_and(|run| run.what.is_some());
            if present && !there.contains(&(gpu, *pid)) {
                self.runs += put(runs, Run { from_ms: at_ms, what: None });
            }
        }
        self.bound(at_ms);
    }

    fn stretch(&mut self, at_ms: u64) {
        match self.stretches.back_mut() {
            Some(last) if at_ms - last.1 <= STRETCH_MS => last.1 = at_ms,
            _ => self.stretches.push_back((at_ms, at_ms)),
        }
        if self.stretches.len() > MOST_STRETCHES {
            self.stretches.pop_front();
        }
    }

    /// Forgets the oldest eighth, where there are too many. What is before that is not known any more.
    fn bound(&mut self, at_ms: u64) {
        if self.runs <= MOST_RUNS && self.rows.len() < MOST_ROWS {
            return;
        }
        let mut begins: Vec<u64> =
            self.rows.values().flatten().map(|run| run.from_ms).filter(|ms| *ms < at_ms).collect();
        let eighth = begins.len() / 8;
        if begins.is_empty() {
            return;
        }
        let horizon = *begins.select_nth_unstable(eighth).1;
        for runs in self.rows.values_mut() {
            while runs.get(1).is_some_and(|next| next.from_ms <= horizon) {
                runs.pop_front();
            }
        }
        let gone = |runs: &VecDeque<Run>| {
            runs.back().is_none_or(|run| run.what.is_none()) && runs.len() < 2
        };
        self.rows.retain(|_, runs| !gone(runs));
        self.runs = self.rows.values().map(VecDeque::len).sum();
        self.stretches.retain_mut(|stretch| {
            stretch.0 = stretch.0.max(horizon);
            stretch.0 <= stretch.1
        });
    }

    /// Whether views were made at that time.
    pub(super) fn covers(&self, at_ms: u64) -> bool {
        let behind = self.stretches.partition_point(|stretch| stretch.0 <= at_ms);
        let stretch = behind.checked_sub(1).and_then(|n| self.stretches.get(n));
        stretch.is_some_and(|stretch| at_ms <= stretch.1.saturating_add(STRETCH_MS))
    }

    /// What was known of a row then, and since when.
    pub(super) fn of(&self, gpu: &GpuUuid, pid: Pid, at_ms: u64) -> Option<(&Conclusion, u64)> {
        if !self.covers(at_ms) {
            return None;
        }
        at(self.rows.get(&(gpu.clone(), pid))?, at_ms)
    }

    /// Who was in no list then, in a fixed order.
    pub(super) fn unlisted(&self, at_ms: u64) -> Vec<(&GpuUuid, Pid, &Conclusion, u64)> {
        if !self.covers(at_ms) {
            return Vec::new();
        }
        let known = self.rows.iter().filter_map(|((gpu, pid), runs)| {
            let (what, from_ms) = at(runs, at_ms)?;
            (!what.listed).then_some((gpu, *pid, what, from_ms))
        });
        let mut found: Vec<_> = known.collect();
        found.sort_by_key(|(gpu, pid, what, _)| (what.index, *pid, *gpu));
        found
    }

    /// Entries and rows that are kept: for the self-check.
    pub fn weight(&self) -> (usize, usize) {
        (self.runs, self.rows.len())
    }
}

/// Adds a run, or takes the place of one of the same moment; gives how many more there are.
fn put(runs: &mut VecDeque<Run>, run: Run) -> usize {
    if let Some(last) = runs.back_mut().filter(|last| last.from_ms == run.from_ms) {
        *last = run;
        return 0;
    }
    runs.push_back(run);
    1
}

fn at(runs: &VecDeque<Run>, at_ms: u64) -> Option<(&Conclusion, u64)> {
    let behind = runs.partition_point(|run| run.from_ms <= at_ms);
    let run = runs.get(behind.checked_sub(1)?)?;
    Some((run.what.as_deref()?, run.from_ms))
}

impl Conclusion {
    /// The verdict as it counts at a moment, with the age of its words.
    pub(super) fn verdict(&self, from_ms: u64, at_ms: u64) -> Verdict {
        let mut verdict = self.verdict.clone();
        verdict.since_ms = self.since_ms.map(|since_ms| at_ms.saturating_sub(since_ms));
        let old_ms = at_ms.saturating_sub(from_ms);
        if old_ms >= THEN_MS {
            let text = format!("so it was judged, in these words, {} before", age(old_ms));
            verdict.evidence.push(Evidence { key: "past", weight: Weight::Neutral, text });
        }
        verdict
    }
}

/// Of what no verdict is kept.
pub(super) fn not_kept() -> Verdict {
    let text = "its verdict is not kept for this earlier moment".to_owned();
    Verdict {
        class: Class::Unknown,
        zombie: false,
        since_ms: None,
        evidence: vec![Evidence { key: "past", weight: Weight::Neutral, text }],
        manager: None,
    }
}
