//! What the newest tick changes: who came, who went, a new peak, an error counted, a silence.

use std::sync::Arc;

use super::words::cause;
use super::{Marker, MarkerKind, Timeline};
use crate::analyze::xid;
use crate::history::{History, Look, gpu_of_device, listed_on};
use crate::ids::quick::{Map, Set};
use crate::ids::{GpuUuid, Pid, ProcId, Stamp};
use crate::sample::{Gap, GpuSample, GpuTick, KillMarked, ProcSample, Reading};
use crate::units::Bytes;

/// Rows that are watched: as many as the history has room for.
const MOST_HELD: usize = 8_192;
/// Without a look for longer than this, and than three intervals, nothing is known.
const SILENCE_MS: u64 = 10_000;
/// What went within this time after a signal or an error went because of it.
const BECAUSE_MS: u64 = 60_000;
/// A peak is marked once memory has fallen by this much below it, or by a fiftieth of all.
const FALL: Bytes = Bytes::mib(64);

/// A row of a list.
#[derive(Debug)]
struct Held {
    bytes: Option<Bytes>,
    peak: Option<Bytes>,
    id: Option<ProcId>,
    name: String,
    seen_ms: u64,
    /// Whether it came while we watched: a marker says so.
    came: bool,
}

/// The most that a GPU held.
#[derive(Debug)]
struct Peak {
    marker: Marker,
    fallen: bool,
}

/// What the ticks so far have shown, as far as the next one is compared with it.
#[derive(Debug, Default)]
pub(super) struct Watch {
    first_ms: Option<u64>,
    last: Option<Stamp>,
    intervals_ms: [u64; 2],
    /// A gap was told of, and nothing has come since.
    gap: bool,
    listed: Set<GpuUuid>,
    held: Map<(GpuUuid, Pid), Held>,
    peaks: Vec<Peak>,
    ooms: Map<(ProcId, u32), u64>,
    because: Map<ProcId, (u64, &'static str)>,
    gap_seen: Option<(Stamp, Stamp)>,
    gpus_seen: Option<Stamp>,
    look_seen: Option<Stamp>,
    kills_seen: u64,
}

impl Watch {
    /// Looks at what the newest tick has changed. Of a history that has taken several since, only
    /// the newest of each kind is seen.
    pub fn follow(&mut self, history: &History, line: &mut Timeline) {
        if let Some(gap) = history.gaps().next_back()
            && self.gap_seen.replace((gap.from, gap.to)) != Some((gap.from, gap.to))
        {
            self.told_gap(gap, line);
        }
        let known = std::mem::replace(&mut self.kills_seen, history.kills_taken());
        for mark in history.kills_since(known) {
            if let KillMarked::Signal { id, .. } = &mark.what {
                self.killed(*id, mark.at);
            }
            line.add(Marker::kill(mark));
        }
        if let Some(tick) = history.gpu_tick()
            && self.gpus_seen.replace(tick.at) != Some(tick.at)
        {
            self.gpus(tick, history, line);
        }
        if let Some(look) = history.look()
            && self.look_seen.replace(look.at) != Some(look.at)
        {
            self.look(look, history, line);
        }
    }

    /// Peaks from which memory has clearly fallen.
    pub fn peaks(&self) -> impl Iterator<Item = &Marker> {
        self.peaks.iter().filter(|peak| peak.fallen).map(|peak| &peak.marker)
    }

    /// That this program signalled a process.
    pub fn killed(&mut self, id: ProcId, at: Stamp) {
        self.because.insert(id, (at.boot_ms, "ended by vramlens"));
    }

    fn told_gap(&mut self, gap: &Gap, line: &mut Timeline) {
        self.gap = true;
        self.last = self.last.max(Some(gap.to));
        let note = cause(&gap.cause);
        let until = Some(gap.to);
        line.add(Marker { note, until, ..Marker::new(MarkerKind::Gap, gap.from) });
    }

    /// A silence that nobody told of: the machine slept, or the program was stopped.
    fn silence(&mut self, at: Stamp, line: &mut Timeline) -> bool {
        let Some(last) = self.last.replace(at) else { return false };
        let passed = at.since(last);
        let usual = self.intervals_ms[0].min(self.intervals_ms[1]);
        self.intervals_ms = [self.intervals_ms[1], passed];
        if std::mem::take(&mut self.gap) {
            return true;
        }
        let silent = passed > SILENCE_MS.max(usual.saturating_mul(3));
        if silent {
            let note = "nothing arrived".to_owned();
            let until = Some(at);
            line.add(Marker { note, until, ..Marker::new(MarkerKind::Gap, last) });
        }
        silent
    }

    fn gpus(&mut self, tick: &GpuTick, history: &History, line: &mut Timeline) {
        self.first_ms.get_or_insert(tick.at.boot_ms);
        let unseen = self.silence(tick.at, line);
        // What a GPU in MIG mode lists is left to its instances, where they list it too.
        let instances: Set<(&GpuUuid, Pid)> = tick
            .gpus
            .iter()
            .filter_map(|gpu| Some((&gpu.mig.as_ref()?.parent, gpu.processes.value()?)))
            .flat_map(|(parent, rows)| rows.iter().map(move |row| (parent, row.pid)))
            .collect();
        for gpu in &tick.gpus {
            self.peak(gpu, tick.at);
            let Some(rows) = gpu.processes.value() else { continue };
            let known = self.listed.contains(&gpu.uuid);
            for row in rows.iter().filter(|row| !instances.contains(&(&gpu.uuid, row.pid))) {
                let came = known.then_some(unseen);
                self.row((gpu, row.pid, row.used.get()), (tick.at, came), history, line);
            }
            if !known {
                self.listed.insert(gpu.uuid.clone());
            }
        }
        self.gone(tick, history, line);
        for event in &tick.xid.events {
            let Some(track) = history.gpu(&event.gpu) else { continue };
            let index = track.facts.index;
            let note = xid::meaning(event.code).meaning;
            line.add(Marker::xid(event.at, event.gpu.clone(), index, event.code, note));
        }
    }

    /// A row of a list; `came` says whether one that is new has just come, and whether nothing was
    /// known for a while before.
    fn row(
        &mut self,
        (gpu, pid, bytes): (&GpuSample, Pid, Option<Bytes>),
        (at, came): (Stamp, Option<bool>),
        history: &History,
        line: &mut Timeline,
    ) {
        let key = (gpu.uuid.clone(), pid);
        if let Some(held) = self.held.get_mut(&key) {
            (held.seen_ms, held.bytes) = (at.boot_ms, bytes.or(held.bytes));
            if bytes > held.peak {
                held.peak = bytes;
                let place = held.came.then(|| line.find(MarkerKind::Came, &gpu.uuid, pid));
                if let Some(n) = place.flatten() {
                    line.marks[n].bytes = bytes;
                }
            }
            return;
        }
        if self.held.len() >= MOST_HELD {
            return;
        }
        let track = history.holder(&gpu.uuid, pid);
        let facts = track.and_then(|track| track.facts.as_deref());
        let name = facts.map(ProcSample::short_name).unwrap_or_default();
        let id = track.and_then(|track| track.id);
        let back = track.is_some_and(|track| track.first_ms < at.boot_ms);
        let peak = track.and_then(|track| track.peak).or(bytes);
        if back {
            // It was away for a moment only: it has not gone.
            if let Some(n) = line.find(MarkerKind::Went, &gpu.uuid, pid) {
                line.marks.remove(n);
            }
        } else if let Some(unseen) = came {
            let note = if unseen { "while nothing was known" } else { "" };
            line.add(Marker {
                gpu: Some(gpu.uuid.clone()),
                index: Some(gpu.index),
                pid: Some(pid),
                name: name.clone(),
                bytes,
                note: note.to_owned(),
                ..Marker::new(MarkerKind::Came, at)
            });
        }
        self.held
            .insert(key, Held { bytes, peak, id, name, seen_ms: at.boot_ms, came: came.is_some() });
    }

    /// Rows that a list no longer names. A list that could not be read says nothing of them.
    fn gone(&mut self, tick: &GpuTick, history: &History, line: &mut Timeline) {
        let at_ms = tick.at.boot_ms;
        let unreadable: Set<&GpuUuid> = tick
            .gpus
            .iter()
            .filter(|gpu| gpu.processes.value().is_none())
            .map(|gpu| &gpu.uuid)
            .collect();
        let is_gone = |key: &(GpuUuid, Pid), held: &mut Held| {
            held.seen_ms < at_ms && !unreadable.contains(&key.0)
        };
        let mut gone: Vec<_> = self.held.extract_if(|key, held| is_gone(key, held)).collect();
        gone.sort_by(|a, b| a.0.cmp(&b.0));
        for ((gpu, pid), held) in gone {
            let track = history.gone().rev().find(|track| track.pid == pid && track.gpu == gpu);
            let id = held.id.or_else(|| track.and_then(|track| track.id));
            let why = id.and_then(|id| self.because.get(&id));
            let why = why.filter(|(since_ms, _)| at_ms.saturating_sub(*since_ms) <= BECAUSE_MS);
            line.add(Marker {
                index: track.map(|track| track.index),
                gpu: Some(gpu),
                pid: Some(pid),
                name: held.name,
                bytes: held.bytes,
                note: why.map_or("", |why| why.1).to_owned(),
                ..Marker::new(MarkerKind::Went, tick.at)
            });
        }
        self.because.retain(|_, (since_ms, _)| at_ms.saturating_sub(*since_ms) <= BECAUSE_MS);
    }

    fn peak(&mut self, gpu: &GpuSample, at: Stamp) {
        let Some(memory) = gpu.memory.value() else { return };
        let known = self.peaks.iter_mut().find(|p| p.marker.gpu.as_ref() == Some(&gpu.uuid));
        if let Some(peak) = known {
            let most = peak.marker.bytes.unwrap_or_default();
            if memory.used > most {
                (peak.marker.at, peak.marker.bytes, peak.fallen) = (at, Some(memory.used), false);
            } else {
                let fall = FALL.max(Bytes(memory.total.0 / 50));
                peak.fallen |= most.saturating_sub(memory.used) >= fall;
            }
        } else if self.peaks.len() < MOST_HELD {
            let marker = Marker {
                gpu: Some(gpu.uuid.clone()),
                index: Some(gpu.index),
                bytes: Some(memory.used),
                ..Marker::new(MarkerKind::Peak, at)
            };
            self.peaks.push(Peak { marker, fallen: false });
        }
    }

    fn look(&mut self, look: &Look, history: &History, line: &mut Timeline) {
        for ((gpu, pid), held) in &mut self.held {
            let Some(track) = history.holder(gpu, *pid) else { continue };
            held.id = track.id.or(held.id);
            let Some(facts) = track.facts.as_deref().filter(|_| held.name.is_empty()) else {
                continue;
            };
            held.name = facts.short_name();
            let place = held.came.then(|| line.find(MarkerKind::Came, gpu, *pid));
            if let Some(n) = place.flatten() {
                line.marks[n].name.clone_from(&held.name);
            }
        }
        let readable = |process: &&Arc<ProcSample>| {
            process.allocator.as_ref().is_some_and(|allocator| allocator.value().is_some())
        };
        let mut readable: Vec<_> = look.procs.values().filter(readable).collect();
        // The same history gives the same markers.
        readable.sort_by_key(|process| process.id);
        for process in readable {
            self.errors(process, look.at, history, line);
        }
        if self.ooms.len() > 2 * look.procs.len() + 64 {
            let alive: Set<ProcId> = look.procs.values().map(|process| process.id).collect();
            self.ooms.retain(|(id, _), _| alive.contains(id));
        }
    }

    /// Out-of-memory errors that its allocator counted since the look before.
    fn errors(&mut self, process: &ProcSample, at: Stamp, history: &History, line: &mut Timeline) {
        let Some(Reading::Value(allocator)) = &process.allocator else { return };
        for device in &allocator.devices {
            let Some(count) = device.ooms.get() else { continue };
            let key = (process.id, device.ordinal.0);
            // Of one that began while we watched every error is new.
            let watched = self.first_ms.is_some_and(|first| process.started_boot_ms >= first);
            let before = self.ooms.insert(key, count).unwrap_or(if watched { 0 } else { count });
            let new = count.saturating_sub(before);
            if new == 0 {
                continue;
            }
            self.because.insert(process.id, (at.boot_ms, "after an out-of-memory error"));
            let gpu = history.gpu_tick().and_then(|tick| {
                let listed = listed_on(tick, process.id.pid);
                let devices = allocator.devices.len();
                gpu_of_device(device, process, &tick.gpus, &listed, devices)
            });
            let index = gpu.as_ref().and_then(|gpu| history.gpu(gpu)).map(|gpu| gpu.facts.index);
            line.add(Marker {
                gpu,
                index,
                pid: Some(process.id.pid),
                name: process.short_name(),
                bytes: Some(device.reserved),
                note: if new > 1 { format!("{new} times") } else { String::new() },
                ..Marker::new(MarkerKind::Oom, at)
            });
        }
    }
}
