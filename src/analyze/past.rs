//! The view of an earlier moment, from what history has kept of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::build::{counts, is_dead};
use super::judged::{self, Conclusion, Judged};
use super::ledger::Entry;
use super::workload::recognise;
use super::{Fragmentation, GpuView, Growth, Holder, Ledger, Moment, View, growth, xid};
use crate::history::{GpuTrack, History, HolderTrack, TIERS, to_bytes};
use crate::ids::quick::Set;
use crate::ids::{GpuUuid, Pid, ProcId, Stamp};
use crate::sample::{
    Earlier, GpuProc, GpuSample, Memory, ProcSample, Reading, UnreadLists, Utilization, Why,
};
use crate::units::{Bytes, Celsius, Milliwatts, Percent};

/// Builds it. Verdicts are those of then, where they are kept. What was not kept is absent.
pub fn build(history: &History, moment: &Moment, at_ms: u64, judged: &Judged) -> View {
    let mut view = View::empty(history, moment);
    let back = moment.now.boot_ms.saturating_sub(at_ms);
    view.at = Stamp { boot_ms: at_ms, wall_ms: moment.now.wall_ms.saturating_sub(back) };
    view.gpus_age_ms = Some(0);
    view.procs_age_ms = judged.covers(at_ms).then_some(0);
    view.driver_cost = None;
    let now_ms = history.latest().map_or(at_ms, |latest| latest.boot_ms);
    let mut tracks: Vec<_> =
        history.gpus().filter(|track| track.used.at(at_ms, now_ms).is_some()).collect();
    tracks.sort_by_key(|track| order(history, track));
    view.holders = holders(history, &tracks, judged, (at_ms, now_ms));
    let zombies = view.holders.iter().filter(|holder| holder.verdict.zombie);
    let zombies: Set<ProcId> = zombies.filter_map(|holder| holder.id).collect();
    let all = (&tracks[..], &zombies);
    view.gpus =
        tracks.iter().map(|track| gpu(history, track, all, &view, (at_ms, now_ms))).collect();
    view
}

/// The driver's order, as far as it still names them.
fn order(history: &History, track: &GpuTrack) -> (usize, u32) {
    let place = history
        .gpu_tick()
        .and_then(|tick| tick.gpus.iter().position(|gpu| gpu.uuid == track.facts.uuid));
    (place.unwrap_or(usize::MAX), track.facts.index.0)
}

fn gpu(
    history: &History,
    track: &GpuTrack,
    (all, zombies): (&[&GpuTrack], &Set<ProcId>),
    view: &View,
    (at_ms, now_ms): (u64, u64),
) -> GpuView {
    let own = &track.facts.uuid;
    let instance = |uuid: &GpuUuid| {
        let of = |other: &&&GpuTrack| other.facts.uuid == *uuid;
        let info = all.iter().find(of).and_then(|other| other.facts.mig.as_ref());
        info.is_some_and(|info| info.parent == *own)
    };
    let (used, step_ms) = track
        .used
        .at(at_ms, now_ms)
        .map_or((Bytes::ZERO, 0), |(cell, step)| (to_bytes(cell), step));
    let here: Vec<&Holder> = view.holders.iter().filter(|h| h.gpu == track.facts.uuid).collect();
    let entries: Vec<_> = view
        .holders
        .iter()
        .filter(|holder| holder.listed && (holder.gpu == *own || instance(&holder.gpu)))
        .map(|holder| Entry {
            bytes: holder.bytes,
            of_dead: is_dead(holder),
            cached: Reading::Absent(Why::NotKept),
        })
        .collect();
    let memory = track.facts.memory.map(|memory| Memory {
        used,
        free: memory.total - used - memory.reserved.get().unwrap_or(Bytes::ZERO),
        ..memory
    });
    let exact = step_ms == TIERS[0].0;
    let ledger = memory.map(|memory| Ledger::add_up(&memory, &entries, exact));
    GpuView {
        sample: GpuSample {
            processes: listed(view, &here),
            ..sample(track, memory, at_ms, now_ms)
        },
        freshness: view.freshness.clone(),
        growth: if exact {
            growth::of_series(&track.used, at_ms, memory.value().map(|memory| memory.free))
        } else {
            Growth::NotYet
        },
        allocated_growth: Growth::NotYet,
        counts: counts(&here, zombies),
        unaccounted_causes: Vec::new(),
        ledger,
        xids: xid::of(history, &track.facts, at_ms),
    }
}

/// The driver's list, as far as it is kept. Without the looks of then it says nothing.
fn listed(view: &View, here: &[&Holder]) -> Reading<Vec<GpuProc>> {
    let row = |holder: &&&Holder| GpuProc {
        pid: holder.pid,
        used: holder.bytes,
        kinds: holder.kinds,
        sm: holder.sm,
        gpu_instance: None,
        compute_instance: None,
    };
    let rows = here.iter().filter(|holder| holder.listed).map(|holder| row(&holder)).collect();
    view.procs_age_ms.map(|_| rows).ok_or(Why::NotKept).into()
}

/// What never changes stays; what was not kept is absent.
fn sample(track: &GpuTrack, memory: Reading<Memory>, at_ms: u64, now_ms: u64) -> GpuSample {
    let absent = Why::NotKept;
    let kept = |series: &crate::history::Series| series.at(at_ms, now_ms).map(|found| found.0);
    // A share of the memory's time was not kept: utilization is whole or absent.
    let utilization = kept(&track.sm)
        .zip(kept(&track.memory_busy))
        .map(|(sm, memory)| Utilization { sm: Percent(sm as f32), memory: Percent(memory as f32) });
    let temperature = kept(&track.temperature).and_then(|cell| i32::try_from(cell).ok());
    GpuSample {
        memory,
        utilization: utilization.ok_or(absent).into(),
        temperature: temperature.map(Celsius).ok_or(absent).into(),
        power: kept(&track.power).map(|mw| Milliwatts(u64::from(mw))).ok_or(absent).into(),
        sm_clock: Reading::Absent(absent),
        memory_clock: Reading::Absent(absent),
        throttle: Reading::Absent(absent),
        performance_state: Reading::Absent(absent),
        pcie: Reading::Absent(absent),
        fan: Reading::Absent(absent),
        power_limit: Reading::Absent(absent),
        persistence: Reading::Absent(absent),
        processes: Reading::Absent(absent),
        unread_lists: UnreadLists::default(),
        earlier: Earlier::default(),
        ..track.facts.clone()
    }
}

fn holders(
    history: &History,
    gpus: &[&GpuTrack],
    judged: &Judged,
    (at_ms, now_ms): (u64, u64),
) -> Vec<Holder> {
    let place = |uuid: &GpuUuid| gpus.iter().position(|gpu| gpu.facts.uuid == *uuid);
    let mut found: Vec<(usize, &HolderTrack, Bytes)> = history
        .holders()
        .filter_map(|track| {
            let (cell, _) = track.bytes.at(at_ms, now_ms)?;
            Some((place(&track.gpu)?, track, to_bytes(cell)))
        })
        .collect();
    // What a GPU in MIG mode lists is left to its instances, where they list it too.
    let instance = |place: usize| gpus[place].facts.mig.as_ref().map(|info| &info.parent);
    let repeated: HashSet<(GpuUuid, Pid)> = found
        .iter()
        .filter_map(|(place, track, _)| Some((instance(*place)?.clone(), track.pid)))
        .collect();
    // Cells are wide, and verdicts exact: who is in a list within the cell is there once.
    let in_list: HashSet<(GpuUuid, Pid)> =
        found.iter().map(|(_, track, _)| (track.gpu.clone(), track.pid)).collect();
    found.retain(|(_, track, _)| !repeated.contains(&(track.gpu.clone(), track.pid)));
    found.sort_by_key(|(place, track, bytes)| (*place, std::cmp::Reverse(*bytes), track.pid));
    let listed = found.into_iter().map(|(_, track, bytes)| {
        let known = judged.of(&track.gpu, track.pid, at_ms).filter(|(known, _)| known.listed);
        holder(track, bytes, known, (at_ms, now_ms))
    });
    let others = judged.unlisted(at_ms).into_iter().filter(|(gpu, pid, ..)| {
        place(gpu).is_some() && !in_list.contains(&((*gpu).clone(), *pid))
    });
    listed
        .chain(others.map(|(gpu, pid, known, from_ms)| unlisted(gpu, pid, known, (from_ms, at_ms))))
        .collect()
}

/// Who it was: what a process used is kept of no earlier moment.
fn then(facts: &Arc<ProcSample>, ended: bool) -> Arc<ProcSample> {
    let why = if ended { Why::Gone } else { Why::NotKept };
    let mut facts = crate::history::slim(ProcSample::clone(facts));
    (facts.cpu, facts.rss) = (Reading::Absent(why), Reading::Absent(why));
    Arc::new(facts)
}

fn holder(
    track: &HolderTrack,
    bytes: Bytes,
    known: Option<(&Conclusion, u64)>,
    (at_ms, now_ms): (u64, u64),
) -> Holder {
    let ended = known.is_some_and(|(known, _)| known.id.is_none());
    // Without a verdict of then it is only known to have lived until a look that found it.
    let lived = known.is_some() || track.alive_ms.is_some_and(|alive_ms| alive_ms >= at_ms);
    let age_ms = match &track.facts {
        None => Reading::Absent(Why::Gone),
        Some(_) if ended => Reading::Absent(Why::Gone),
        Some(facts) if lived => Reading::Value(at_ms.saturating_sub(facts.started_boot_ms)),
        Some(_) => Reading::Absent(Why::NotKept),
    };
    let peak = track.bytes.highest_until(at_ms, now_ms).map(to_bytes);
    Holder {
        gpu: track.gpu.clone(),
        index: track.index,
        pid: track.pid,
        id: known.map_or(track.id, |(known, _)| known.id),
        kinds: known.map_or(track.kinds, |(known, _)| known.kinds),
        listed: true,
        bytes: Reading::Value(bytes),
        peak: peak.ok_or(Why::NotKept).into(),
        growth: growth_of(track, at_ms, now_ms),
        sm: Reading::Absent(Why::NotKept),
        process: track.facts.as_ref().map(|facts| then(facts, ended)),
        age_ms,
        verdict: known
            .map_or_else(judged::not_kept, |(known, from_ms)| known.verdict(from_ms, at_ms)),
        survivors: known.map_or_else(Vec::new, |(known, _)| known.survivors.clone()),
        allocator: Some(Reading::Absent(Why::NotKept)),
        fragmentation: Fragmentation::None,
        server: None,
        workload: track
            .facts
            .as_deref()
            .and_then(|facts| recognise(facts, &[]).known().cloned())
            .map(Arc::new),
    }
}

/// How it moved, as long as that is kept second by second.
fn growth_of(track: &HolderTrack, at_ms: u64, now_ms: u64) -> Growth {
    let exact = track.bytes.at(at_ms, now_ms).is_some_and(|(_, step)| step == TIERS[0].0);
    if exact { growth::of_series(&track.bytes, at_ms, None) } else { Growth::NotYet }
}

fn unlisted(gpu: &GpuUuid, pid: Pid, known: &Conclusion, (from_ms, at_ms): (u64, u64)) -> Holder {
    let process = known.process.as_ref().map(|facts| then(facts, false));
    let age = process.as_ref().map(|facts| at_ms.saturating_sub(facts.started_boot_ms));
    Holder {
        gpu: gpu.clone(),
        index: known.index,
        pid,
        id: known.id,
        kinds: known.kinds,
        listed: false,
        bytes: known.bytes,
        peak: known.bytes,
        growth: Growth::NotYet,
        sm: Reading::Absent(Why::NotKept),
        age_ms: age.ok_or(Why::NotKept).into(),
        verdict: known.verdict(from_ms, at_ms),
        survivors: Vec::new(),
        allocator: Some(Reading::Absent(Why::NotKept)),
        fragmentation: Fragmentation::None,
        server: None,
        workload: process
            .as_deref()
            .and_then(|facts| recognise(facts, &[]).known().cloned())
            .map(Arc::new),
        process,
    }
}
