//! The view of now: GPU facts, host facts and history, joined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::judged::Judged;
use super::kept::Kept;
use super::ledger::Entry;
use super::scene::{Scene, listed_rows};
use super::{
    Class, Counts, DriverCost, Freshness, GpuView, Growth, Holder, Ledger, Moment, View, causes,
    fragment, freshness, growth, holders, past, xid,
};
use crate::history::History;
use crate::ids::quick::{Map, Set};
use crate::ids::{GpuUuid, Pid, ProcId};
use crate::sample::{GpuProc, GpuSample, ProcSample, Reading, Why};
use crate::units::Bytes;

impl View {
    /// Builds the view of a moment. Pure: the same history and moment give the same view.
    pub fn build(history: &History, moment: &Moment) -> Self {
        Self::build_next(history, moment, &mut Kept::default())
    }

    /// The same view, with less work where only some of it has changed since the one for which
    /// `kept` was used last.
    pub fn build_next(history: &History, moment: &Moment, kept: &mut Kept) -> Self {
        if moment.at_boot_ms.is_some() {
            return Self::build_earlier(history, moment, &Judged::default());
        }
        let mut view = Self::empty(history, moment);
        let Some(tick) = history.gpu_tick() else {
            view.device_users = holders::device_users(history);
            return view;
        };
        let scene = Scene::new(history, moment, tick);
        view.holders = holders::all(&scene, kept);
        view.relatives = relatives(&scene, &view.holders);
        let joined = Joined::new(&view);
        let gpus = tick.gpus.iter().map(|gpu| gpu_view(&scene, gpu, &joined)).collect();
        view.gpus = gpus;
        view
    }

    /// The view of the earlier moment that `moment` names, with the verdicts that were reached then.
    pub fn build_earlier(history: &History, moment: &Moment, judged: &Judged) -> Self {
        let at_ms = moment.at_boot_ms.unwrap_or(moment.now.boot_ms);
        past::build(history, moment, at_ms, judged)
    }

    /// The models that run here, by path: whoever builds views may read their headers once and put
    /// them into `models`.
    pub fn model_paths(&self) -> BTreeSet<&str> {
        let known = |holder: &&Holder| holder.workload.is_some() && holder.id.is_some();
        self.holders.iter().filter(known).filter_map(Holder::model_path).collect()
    }

    /// How many processes may be ended with one key, each once, and what that would free on all
    /// GPUs, as listed.
    pub fn zombies(&self) -> (usize, Bytes) {
        let zombies = self.holders.iter().filter(|holder| holder.verdict.zombie);
        let ids: Set<ProcId> = zombies.filter_map(|holder| holder.id).collect();
        (ids.len(), self.gpus.iter().map(|gpu| gpu.counts.zombie_bytes).sum())
    }

    /// Everything but GPUs and holders.
    pub(super) fn empty(history: &History, moment: &Moment) -> Self {
        let tick = history.gpu_tick();
        let look = history.look();
        Self {
            at: moment.now,
            driver: tick.map(|tick| tick.driver.clone()),
            host: look.map(|look| look.host.clone()),
            gpus: Vec::new(),
            holders: Vec::new(),
            device_users: Vec::new(),
            relatives: Vec::new(),
            scan: look.map(|look| look.scan),
            gpus_age_ms: tick.map(|tick| moment.now.since(tick.at)),
            procs_age_ms: look.map(|look| moment.now.since(look.at)),
            freshness: freshness::of_view(history, moment),
            dropped_ticks: moment.dropped_ticks,
            driver_cost: tick
                .map(|tick| DriverCost { took_ms: tick.took_ms, calls: tick.driver_calls }),
            models: BTreeMap::new(),
        }
    }
}

/// The holders, findable.
struct Joined<'a> {
    view: &'a View,
    rows: Map<(&'a GpuUuid, Pid), &'a Holder>,
    zombies: Set<ProcId>,
}

impl<'a> Joined<'a> {
    fn new(view: &'a View) -> Self {
        let zombies = view.holders.iter().filter(|h| h.verdict.zombie);
        Self {
            view,
            rows: view.holders.iter().map(|h| ((&h.gpu, h.pid), h)).collect(),
            zombies: zombies.filter_map(|h| h.id).collect(),
        }
    }

    /// The holder of a listed row, on the GPU itself or on one of its MIG instances.
    fn find(&self, scene: &Scene<'_>, gpu: &GpuSample, pid: Pid) -> Option<&'a Holder> {
        let own = self.rows.get(&(&gpu.uuid, pid)).copied();
        own.or_else(|| {
            scene.instances(gpu).find_map(|mig| self.rows.get(&(&mig.uuid, pid)).copied())
        })
    }
}

fn relatives(scene: &Scene<'_>, holders: &[Holder]) -> Vec<Arc<ProcSample>> {
    let Some(look) = scene.look else { return Vec::new() };
    let holders: Set<ProcId> = holders.iter().filter_map(|holder| holder.id).collect();
    let others = look.procs.values().filter(|process| !holders.contains(&process.id));
    let mut others: Vec<_> = others.map(Arc::clone).collect();
    others.sort_by_key(|process| process.id);
    others
}

fn gpu_view(scene: &Scene<'_>, gpu: &GpuSample, joined: &Joined<'_>) -> GpuView {
    let here: Vec<&Holder> = joined.view.holders.iter().filter(|h| h.is_on(gpu)).collect();
    let freshness = freshness::of_gpu(gpu, &joined.view.freshness);
    let ledger = match &gpu.memory {
        _ if freshness == Freshness::Lost => Reading::Absent(Why::GpuLost),
        Reading::Absent(why) => match scene.shared_memory(gpu) {
            Some(memory) => Reading::Value(Ledger::unified(memory, &entries(scene, gpu, joined))),
            None => Reading::Absent(*why),
        },
        Reading::Value(memory) => {
            Reading::Value(Ledger::add_up(memory, &entries(scene, gpu, joined), true))
        }
    };
    GpuView {
        sample: GpuSample { unread_lists: scene.tick.unread_lists(gpu), ..gpu.clone() },
        freshness,
        growth: growth_of(scene, gpu),
        allocated_growth: scene.history.gpu(&gpu.uuid).map_or(Growth::NotYet, |track| {
            growth::of_series(&track.allocated, scene.now_ms, None)
        }),
        counts: counts(&here, &joined.zombies),
        unaccounted_causes: ledger
            .value()
            .map_or_else(Vec::new, |ledger| causes::ranked(scene, gpu, ledger, &here)),
        ledger,
        xids: xid::of(scene.history, gpu, scene.now_ms),
    }
}

/// How the memory in use moves: of a GPU without memory of its own, the machine's.
fn growth_of(scene: &Scene<'_>, gpu: &GpuSample) -> Growth {
    let series = match scene.shared_memory(gpu) {
        Some(_) => Some(scene.history.host_used()),
        None => scene.history.gpu(&gpu.uuid).map(|track| &track.used),
    };
    series.map_or(Growth::NotYet, |used| growth::of_series(used, scene.now_ms, scene.free(gpu)))
}

/// What the ledger of a GPU counts. One in MIG mode that does not list itself has its instances'.
fn entries(scene: &Scene<'_>, gpu: &GpuSample, joined: &Joined<'_>) -> Vec<Entry> {
    let sources: Vec<&GpuSample> = match &gpu.processes {
        Reading::Value(_) => vec![gpu],
        Reading::Absent(_) => scene.instances(gpu).collect(),
    };
    let entry = |source: &GpuSample, row: &GpuProc| {
        let holder = joined.find(scene, source, row.pid);
        let cached = fragment::cached(holder.and_then(|holder| holder.allocator.as_ref()));
        Entry { bytes: row.used, of_dead: holder.is_some_and(is_dead), cached }
    };
    sources.iter().flat_map(|source| listed_rows(source).map(|row| entry(source, row))).collect()
}

/// Whether the owner of a row is dead, and its memory is kept by others.
pub(super) const fn is_dead(holder: &Holder) -> bool {
    matches!(holder.verdict.class, Class::Ghost | Class::Reused | Class::Defunct)
}

pub(super) fn counts(here: &[&Holder], zombies: &Set<ProcId>) -> Counts {
    // A ghost's memory comes back when all who keep it are ended.
    let freed = |holder: &&&Holder| {
        let kept_by = &holder.survivors;
        holder.verdict.zombie
            || (!kept_by.is_empty() && kept_by.iter().all(|id| zombies.contains(id)))
    };
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Counts {
        holders: count(here.len()),
        zombies: count(here.iter().filter(|holder| holder.verdict.zombie).count()),
        zombie_bytes: here.iter().filter(freed).filter_map(|holder| holder.bytes.get()).sum(),
    }
}
