//! The view of an earlier moment, from what history has kept of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::ledger::Entry;
use super::workload::recognise;
use super::{
    Class, Counts, Evidence, Fragmentation, GpuView, Growth, Holder, Ledger, Moment, Verdict, View,
    Weight, growth, xid,
};
use crate::history::{GpuTrack, History, HolderTrack, TIERS, to_bytes};
use crate::ids::{GpuUuid, Pid, Stamp};
use crate::sample::{Earlier, GpuSample, Memory, Reading, UnreadLists, Utilization, Why};
use crate::units::{Bytes, Celsius, Milliwatts, Percent};

/// Builds it. What was not kept is absent; process facts are the last that were known.
pub fn build(history: &History, moment: &Moment, at_ms: u64) -> View {
    let mut view = View::empty(history, moment);
    let back = moment.now.boot_ms.saturating_sub(at_ms);
    view.at = Stamp { boot_ms: at_ms, wall_ms: moment.now.wall_ms.saturating_sub(back) };
    view.gpus_age_ms = Some(0);
    view.procs_age_ms = None;
    view.driver_cost = None;
    let now_ms = history.latest().map_or(at_ms, |latest| latest.boot_ms);
    let mut tracks: Vec<_> =
        history.gpus().filter(|track| track.used.at(at_ms, now_ms).is_some()).collect();
    tracks.sort_by_key(|track| order(history, track));
    view.holders = holders(history, &tracks, at_ms, now_ms);
    view.gpus =
        tracks.iter().map(|track| gpu(history, track, &tracks, &view, (at_ms, now_ms))).collect();
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
    all: &[&GpuTrack],
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
        .filter(|holder| holder.gpu == *own || instance(&holder.gpu))
        .map(|holder| Entry {
            bytes: holder.bytes,
            of_dead: false,
            cached: Reading::Absent(Why::NotAsked),
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
        sample: sample(track, memory, at_ms, now_ms),
        freshness: view.freshness.clone(),
        growth: if exact {
            growth::of_series(&track.used, at_ms, memory.value().map(|memory| memory.free))
        } else {
            Growth::NotYet
        },
        allocated_growth: Growth::NotYet,
        counts: Counts {
            holders: u32::try_from(here.len()).unwrap_or(u32::MAX),
            ..Counts::default()
        },
        unaccounted_causes: Vec::new(),
        ledger,
        xids: xid::of(history, &track.facts, at_ms),
    }
}

/// What never changes stays; what was not kept is absent.
fn sample(track: &GpuTrack, memory: Reading<Memory>, at_ms: u64, now_ms: u64) -> GpuSample {
    let absent = Why::NotAsked;
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

fn holders(history: &History, gpus: &[&GpuTrack], at_ms: u64, now_ms: u64) -> Vec<Holder> {
    let mut found: Vec<(usize, &HolderTrack, Bytes)> = history
        .holders()
        .filter_map(|track| {
            let place = gpus.iter().position(|gpu| gpu.facts.uuid == track.gpu)?;
            let (cell, _) = track.bytes.at(at_ms, now_ms)?;
            Some((place, track, to_bytes(cell)))
        })
        .collect();
    // What a GPU in MIG mode lists is left to its instances, where they list it too.
    let instance = |place: usize| gpus[place].facts.mig.as_ref().map(|info| &info.parent);
    let repeated: HashSet<(GpuUuid, Pid)> = found
        .iter()
        .filter_map(|(place, track, _)| Some((instance(*place)?.clone(), track.pid)))
        .collect();
    found.retain(|(_, track, _)| !repeated.contains(&(track.gpu.clone(), track.pid)));
    found.sort_by_key(|(place, track, bytes)| (*place, std::cmp::Reverse(*bytes), track.pid));
    found.into_iter().map(|(_, track, bytes)| holder(track, bytes, at_ms)).collect()
}

fn holder(track: &HolderTrack, bytes: Bytes, at_ms: u64) -> Holder {
    let age = track.facts.as_ref().map(|facts| at_ms.saturating_sub(facts.started_boot_ms));
    Holder {
        gpu: track.gpu.clone(),
        index: track.index,
        pid: track.pid,
        id: track.id,
        kinds: track.kinds,
        listed: true,
        bytes: Reading::Value(bytes),
        peak: track.peak.ok_or(Why::NotSupported).into(),
        growth: Growth::NotYet,
        sm: Reading::Absent(Why::NotAsked),
        process: track.facts.clone(),
        age_ms: age.ok_or(Why::Gone).into(),
        verdict: verdict(),
        survivors: Vec::new(),
        allocator: None,
        fragmentation: Fragmentation::None,
        server: None,
        workload: track
            .facts
            .as_deref()
            .and_then(|facts| recognise(facts, &[]).known().cloned())
            .map(Arc::new),
    }
}

/// Nothing is judged in the past, and nothing there can be ended.
fn verdict() -> Verdict {
    let text = "this is an earlier moment: verdicts are of the present".to_owned();
    Verdict {
        class: Class::Unknown,
        zombie: false,
        since_ms: None,
        evidence: vec![Evidence { key: "past", weight: Weight::Neutral, text }],
        manager: None,
    }
}
