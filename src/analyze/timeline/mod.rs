//! What happened when: markers on the line of time, made of the history tick by tick.
//!
//! Nothing is computed twice: a tick costs a look at its rows. The number of markers is bounded;
//! what had to go is counted.

mod cells;
mod kinds;
mod watch;
mod words;

use std::cmp::Reverse;

use crate::history::History;
use crate::ids::{GpuIndex, GpuUuid, Pid, Stamp};
use crate::sample::{KillMark, KillMarked, signal_name};
use crate::units::Bytes;

pub use cells::{Mark, cells};
pub use kinds::{MARKERS, MarkerKind, MarkerRow};

use watch::Watch;

/// Markers that are kept. About 150 bytes each.
const MOST: usize = 4_096;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// When; of a gap its last known moment.
    pub at: Stamp,
    /// What.
    pub kind: MarkerKind,
    /// On which GPU; `None` where it concerns all of them.
    pub gpu: Option<GpuUuid>,
    /// Its number.
    pub index: Option<GpuIndex>,
    /// Which process.
    pub pid: Option<Pid>,
    /// What it is called; empty where that is not known. Hostile text.
    pub name: String,
    /// How much: who came, the most so far; who went, the last figure; of a peak, all that was used.
    pub bytes: Option<Bytes>,
    /// More in words; may be empty. Hostile text.
    pub note: String,
    /// Of a gap: its first known moment.
    pub until: Option<Stamp>,
}

impl Marker {
    /// Without peculiarities.
    pub fn new(kind: MarkerKind, at: Stamp) -> Self {
        Self {
            at,
            kind,
            gpu: None,
            index: None,
            pid: None,
            name: String::new(),
            bytes: None,
            note: String::new(),
            until: None,
        }
    }

    /// An error that the driver reported: its number, and what it says. Hostile text.
    pub fn xid(at: Stamp, gpu: GpuUuid, index: GpuIndex, number: u64, note: &str) -> Self {
        Self {
            gpu: Some(gpu),
            index: Some(index),
            name: format!("XID {number}"),
            note: note.to_owned(),
            ..Self::new(MarkerKind::Xid, at)
        }
    }

    /// A signal of this program, or what came back of an order.
    pub fn kill(mark: &KillMark) -> Self {
        let plain = Self::new(MarkerKind::Kill, mark.at);
        match &mark.what {
            KillMarked::Signal { id, name, signal } => {
                let note = signal_name(*signal);
                Self { pid: Some(id.pid), name: name.clone(), note, ..plain }
            }
            KillMarked::Outcome(sentence) => Self { note: sentence.clone(), ..plain },
        }
    }

    /// Whether it concerns this GPU, or any where none is asked for.
    pub fn is_on(&self, gpu: Option<&GpuUuid>) -> bool {
        match (gpu, &self.gpu) {
            (Some(asked), Some(own)) => asked == own,
            _ => true,
        }
    }

    /// Which of two in one place is shown: the kind decides, then the bytes.
    fn weight(&self) -> (MarkerKind, Option<Bytes>) {
        (self.kind, self.bytes)
    }
}

/// All markers, in the order of time.
#[derive(Debug, Default)]
pub struct Timeline {
    marks: Vec<Marker>,
    dropped: u64,
    watch: Watch,
}

impl Timeline {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at what the tick that the history has just taken has changed: to be called after each.
    pub fn follow(&mut self, history: &History) {
        // Taken out for the time of the call: both are changed.
        let mut watch = std::mem::take(&mut self.watch);
        watch.follow(history, self);
        self.watch = watch;
    }

    /// Adds what no tick tells: a signal of this program, an error that the driver reported.
    pub fn add(&mut self, marker: Marker) {
        let place = self.marks.partition_point(|mark| mark.at.boot_ms <= marker.at.boot_ms);
        self.marks.insert(place, marker);
        if self.marks.len() > MOST {
            self.thin();
        }
    }

    /// That this program signalled a process, or what came back of it.
    pub fn killed(&mut self, mark: &KillMark) {
        if let KillMarked::Signal { id, .. } = &mark.what {
            self.watch.killed(*id, mark.at);
        }
        self.add(Marker::kill(mark));
    }

    /// The least important go, the oldest and smallest of them first; a quarter at once, so that
    /// this is rare.
    fn thin(&mut self) {
        let surplus = self.marks.len() - MOST * 3 / 4;
        let mut order: Vec<usize> = (0..self.marks.len()).collect();
        order.sort_by_key(|&n| (self.marks[n].weight(), n));
        let mut keep = vec![true; self.marks.len()];
        for &n in order.iter().take(surplus) {
            keep[n] = false;
        }
        let mut kept = keep.iter();
        self.marks.retain(|_| kept.next().copied().unwrap_or(true));
        self.dropped += surplus as u64;
    }

    /// Markers that there was no room for.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All of them, the peaks among them, in the order of time.
    pub fn markers(&self) -> Vec<&Marker> {
        let mut all: Vec<&Marker> = self.marks.iter().chain(self.watch.peaks()).collect();
        all.sort_by_key(|mark| mark.at.boot_ms);
        all
    }

    /// Those from `from_ms` to `to_ms`, both included, in no order.
    pub fn between(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &Marker> {
        let first = self.marks.partition_point(|mark| mark.at.boot_ms < from_ms);
        let end = self.marks.partition_point(|mark| mark.at.boot_ms <= to_ms).max(first);
        let within = move |mark: &&Marker| (from_ms..=to_ms).contains(&mark.at.boot_ms);
        self.marks[first..end].iter().chain(self.watch.peaks().filter(within))
    }

    /// The markers of the next moment after `at_ms` that has any, the most important first.
    pub fn after(&self, at_ms: u64, gpu: Option<&GpuUuid>) -> Vec<&Marker> {
        let first = self.marks.partition_point(|mark| mark.at.boot_ms <= at_ms);
        let next = self.marks[first..].iter().find(|mark| mark.is_on(gpu));
        let peaks = self.watch.peaks().filter(|mark| mark.at.boot_ms > at_ms && mark.is_on(gpu));
        let moment = next.into_iter().chain(peaks).map(|mark| mark.at.boot_ms).min();
        self.at(moment, gpu)
    }

    /// The same before it.
    pub fn before(&self, at_ms: u64, gpu: Option<&GpuUuid>) -> Vec<&Marker> {
        let end = self.marks.partition_point(|mark| mark.at.boot_ms < at_ms);
        let last = self.marks[..end].iter().rev().find(|mark| mark.is_on(gpu));
        let peaks = self.watch.peaks().filter(|mark| mark.at.boot_ms < at_ms && mark.is_on(gpu));
        let moment = last.into_iter().chain(peaks).map(|mark| mark.at.boot_ms).max();
        self.at(moment, gpu)
    }

    fn at(&self, moment: Option<u64>, gpu: Option<&GpuUuid>) -> Vec<&Marker> {
        let Some(moment) = moment else { return Vec::new() };
        let mut here: Vec<&Marker> =
            self.between(moment, moment).filter(|mark| mark.is_on(gpu)).collect();
        here.sort_by_key(|mark| Reverse(mark.weight()));
        here
    }

    /// The newest marker of a process on a GPU of one of these kinds.
    fn find(&self, kind: MarkerKind, gpu: &GpuUuid, pid: Pid) -> Option<usize> {
        self.marks.iter().rposition(|mark| {
            mark.kind == kind && mark.pid == Some(pid) && mark.gpu.as_ref() == Some(gpu)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(boot_ms: u64) -> Stamp {
        Stamp { boot_ms, wall_ms: boot_ms }
    }

    #[test]
    fn what_must_go_is_of_the_least_importance_and_counted() {
        let mut line = Timeline::new();
        for n in 0..MOST as u64 {
            let kind = if n % 1_000 == 0 { MarkerKind::Oom } else { MarkerKind::Came };
            let bytes = Some(Bytes::mib(n % 7));
            line.add(Marker { bytes, ..Marker::new(kind, stamp(n)) });
        }
        assert_eq!(line.dropped(), 0);
        line.add(Marker::new(MarkerKind::Gap, stamp(9_999)));
        assert_eq!(line.marks.len(), MOST * 3 / 4);
        assert_eq!(line.dropped(), (MOST / 4 + 1) as u64);
        let count = |kind| line.marks.iter().filter(|mark| mark.kind == kind).count();
        assert_eq!((count(MarkerKind::Oom), count(MarkerKind::Gap)), (5, 1));
        let came = line.marks.iter().filter(|mark| mark.kind == MarkerKind::Came);
        let smallest = came.filter_map(|mark| mark.bytes).min();
        assert!(smallest > Some(Bytes::ZERO), "the small ones went first: {smallest:?}");
        assert!(line.marks.is_sorted_by_key(|mark| mark.at.boot_ms));
    }

    #[test]
    fn a_jump_leads_to_the_next_moment_and_names_the_most_important_first() {
        let mut line = Timeline::new();
        line.add(Marker::new(MarkerKind::Went, stamp(20)));
        line.add(Marker::new(MarkerKind::Came, stamp(10)));
        line.add(Marker::new(MarkerKind::Oom, stamp(20)));
        let other = GpuUuid::new("GPU-b");
        line.add(Marker::xid(stamp(15), GpuUuid::new("GPU-a"), GpuIndex(0), 79, "off the bus"));
        let kinds = |found: Vec<&Marker>| found.iter().map(|mark| mark.kind).collect::<Vec<_>>();
        assert_eq!(kinds(line.after(10, Some(&other))), [MarkerKind::Oom, MarkerKind::Went]);
        assert_eq!(kinds(line.after(10, None)), [MarkerKind::Xid]);
        assert_eq!(kinds(line.before(20, None)), [MarkerKind::Xid]);
        assert_eq!(kinds(line.before(15, None)), [MarkerKind::Came]);
        assert!(line.after(20, None).is_empty() && line.before(10, None).is_empty());
    }
}
