//! Every holder of every GPU: what the driver lists, and who it does not list.

use std::sync::Arc;

use super::kept::Kept;
use super::scene::{ListedRow, Presence, Scene, is_defunct, listed_rows};
use super::verdict::{self, Case, Link};
use super::{Growth, Holder, fragment, growth, served};
use crate::history::{History, listed_on};
use crate::ids::{Pid, ProcId};
use crate::sample::{GpuSample, ProcKinds, ProcSample, ProcState, Reading, Why};
use crate::units::Bytes;

/// A row whose owner is dead, while the driver still lists it.
struct Ghost<'a> {
    /// Its place among the rows.
    row: usize,
    gpu: &'a GpuSample,
    pid: Pid,
    kept_by: Vec<(ProcId, Link)>,
}

/// A process that has a CUDA device open, and is in no list.
struct Unlisted<'a> {
    process: &'a Arc<ProcSample>,
    /// The dead whose memory it keeps, by the place of their ghosts.
    keeps: Vec<(usize, Link)>,
}

/// All of them: per GPU the listed rows in the driver's order, then those not listed.
pub fn all(scene: &Scene<'_>, kept: &mut Kept) -> Vec<Holder> {
    let (ghosts, unlisted) = survivors(scene);
    // Both are in the driver's order.
    let mut next = ghosts.iter().peekable();
    let rows = scene.rows.iter().enumerate();
    let mut holders: Vec<Holder> =
        rows.map(|(n, row)| listed(scene, row, next.next_if(|ghost| ghost.row == n))).collect();
    let unaccounted: Vec<Bytes> = scene.tick.gpus.iter().map(rough_unaccounted).collect();
    for process in unlisted.iter().filter(|one| !one.keeps.is_empty() || !only_asks(one.process)) {
        for gpu in places(scene, process, &ghosts, &unaccounted) {
            holders.push(not_listed(scene, gpu, process, &ghosts));
        }
    }
    for holder in &mut holders {
        let Some(process) = &holder.process else { continue };
        holder.workload = kept.workload(scene, process);
        holder.server = served::said(scene, process);
    }
    kept.forget_others();
    holders
}

/// Who has a GPU's devices open, by what `/proc` says alone; see [`super::View::device_users`].
pub fn device_users(history: &History) -> Vec<Arc<ProcSample>> {
    let Some(look) = history.look() else { return Vec::new() };
    let opened = |process: &&Arc<ProcSample>| {
        let devices = process.devices.value();
        devices.is_some_and(|fds| fds.any() && (fds.uvm || !fds.minors.is_empty()))
            && process.state != ProcState::Dead
            && !only_asks(process)
    };
    let mut found: Vec<_> = look.procs.values().filter(opened).map(Arc::clone).collect();
    found.sort_by_key(|process| process.id);
    found
}

/// Whether it only asks the driver for figures, as this program does. The driver's library opens
/// the CUDA device too (for the CUDA version), so that device alone tells nothing; but it opens
/// about nine files a GPU where a CUDA context opens about sixty (driver 580, H200).
fn only_asks(process: &ProcSample) -> bool {
    process.devices.value().is_some_and(|fds| {
        let gpus = u32::try_from(fds.minors.len()).unwrap_or(u32::MAX).max(1);
        !fds.drm && fds.count > 4 && fds.count < gpus.saturating_mul(16)
    })
}

fn survivors<'a>(scene: &'a Scene<'a>) -> (Vec<Ghost<'a>>, Vec<Unlisted<'a>>) {
    let dead = |listed: &ListedRow<'_>| match listed.presence {
        Presence::Gone | Presence::Reused => true,
        Presence::Alive => scene.process(listed.row.pid).is_some_and(|p| is_defunct(p)),
        Presence::NotLooked => false,
    };
    let mut ghosts: Vec<_> = scene
        .rows
        .iter()
        .enumerate()
        .filter(|(_, listed)| dead(listed))
        .map(|(row, listed)| Ghost {
            row,
            gpu: listed.gpu,
            pid: listed.row.pid,
            kept_by: Vec::new(),
        })
        .collect();
    let mut unlisted: Vec<_> = candidates(scene);
    for candidate in &mut unlisted {
        let Some(fds) = candidate.process.devices.value().filter(|fds| fds.uvm) else { continue };
        let mut links: Vec<_> = ghosts
            .iter()
            .enumerate()
            .filter(|(_, ghost)| scene.has_open(ghost.gpu, fds))
            .filter_map(|(n, ghost)| Some((n, verdict::link(scene, candidate.process, ghost.pid)?)))
            .collect();
        if links.iter().any(|(_, link)| *link == Link::Certain) {
            links.retain(|(_, link)| *link == Link::Certain);
        }
        for (n, link) in &links {
            ghosts[*n].kept_by.push((candidate.process.id, *link));
        }
        candidate.keeps = links;
    }
    (ghosts, unlisted)
}

/// Processes with a CUDA or render device open, in no list, and not the helpers of a living listed
/// process.
fn candidates<'a>(scene: &'a Scene<'a>) -> Vec<Unlisted<'a>> {
    let Some(look) = scene.look else { return Vec::new() };
    let opened = |process: &ProcSample| {
        process.devices.value().is_some_and(|fds| fds.any() && (fds.uvm || fds.drm))
    };
    let folded = |process: &ProcSample| {
        let family = scene.ancestors(process);
        family.iter().any(|a| a.session == process.session && scene.lives_listed(a.id.pid))
    };
    let mut found: Vec<_> = look
        .procs
        .values()
        .filter(|process| opened(process) && !scene.history.is_listed(process.id.pid))
        .filter(|process| process.state != ProcState::Dead && !folded(process))
        .map(|process| Unlisted { process, keeps: Vec::new() })
        .collect();
    found.sort_by_key(|unlisted| unlisted.process.id);
    found
}

/// On which GPUs an unlisted process is shown. Open files do not say which GPU it uses: a survivor
/// stands where its ghosts are, others where memory is nobody's, else on the first that is open.
fn places<'a>(
    scene: &'a Scene<'a>,
    unlisted: &Unlisted<'_>,
    ghosts: &[Ghost<'a>],
    unaccounted: &[Bytes],
) -> Vec<&'a GpuSample> {
    if !unlisted.keeps.is_empty() {
        let mut gpus: Vec<_> = unlisted.keeps.iter().map(|(n, _)| ghosts[*n].gpu).collect();
        gpus.dedup_by_key(|gpu| &gpu.uuid);
        return gpus;
    }
    let Some(fds) = unlisted.process.devices.value() else { return Vec::new() };
    let whole = || scene.tick.gpus.iter().zip(unaccounted).filter(|(gpu, _)| gpu.mig.is_none());
    let mut open: Vec<_> = whole().filter(|(gpu, _)| scene.has_open(gpu, fds)).collect();
    if open.is_empty() && fds.drm {
        open = whole().collect();
        open.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        open.truncate(1);
    }
    let missing: Vec<_> =
        open.iter().filter(|(_, bytes)| **bytes > Bytes::mib(64)).map(|(gpu, _)| *gpu).collect();
    // Every desktop program has a render node open: without missing memory it holds none.
    if missing.is_empty() && fds.uvm {
        return open.first().map(|(gpu, _)| *gpu).into_iter().collect();
    }
    missing
}

fn rough_unaccounted(gpu: &GpuSample) -> Bytes {
    let Some(memory) = gpu.memory.value() else { return Bytes::ZERO };
    memory.used - listed_rows(gpu).filter_map(|row| row.used.get()).sum()
}

fn listed(scene: &Scene<'_>, listed: &ListedRow<'_>, ghost: Option<&Ghost<'_>>) -> Holder {
    let ListedRow { gpu, row, track, presence } = *listed;
    let found = scene.process(row.pid);
    let process = found.filter(|_| presence == Presence::Alive);
    let kept_by = ghost.map_or(&[][..], |ghost| &ghost.kept_by);
    let case = Case {
        scene,
        gpu,
        pid: row.pid,
        row: Some(row),
        process: found.map(|process| &**process),
        track,
        presence,
        survivors: kept_by,
        keeps: &[],
    };
    let verdict = verdict::judge(&case);
    let allocator = process.filter(|process| process.allocator.is_some()).and_then(|process| {
        let listed_on = listed_on(scene.tick, row.pid);
        fragment::for_gpu(process, &gpu.uuid, &scene.tick.gpus, &listed_on)
    });
    Holder {
        gpu: gpu.uuid.clone(),
        index: gpu.index,
        pid: row.pid,
        id: process.map(|process| process.id),
        kinds: row.kinds,
        listed: true,
        bytes: row.used,
        peak: match track.and_then(|track| track.peak) {
            Some(peak) => Reading::Value(peak),
            None => row.used,
        },
        growth: track.map_or(Growth::NotYet, |track| {
            growth::of_series(&track.bytes, scene.now_ms, scene.free(gpu))
        }),
        sm: row.sm,
        // A dead row keeps the last facts of its process: whose it was.
        process: process.or_else(|| track.and_then(|track| track.facts.as_ref())).map(Arc::clone),
        age_ms: process.map_or(Reading::Absent(absent_process(presence)), |p| age(scene, p)),
        verdict,
        survivors: kept_by.iter().map(|(id, _)| *id).collect(),
        fragmentation: fragment::of_allocator(allocator.as_ref(), scene.moment.request),
        allocator,
        workload: None,
        server: None,
    }
}

fn not_listed(
    scene: &Scene<'_>,
    gpu: &GpuSample,
    unlisted: &Unlisted<'_>,
    ghosts: &[Ghost<'_>],
) -> Holder {
    let process = unlisted.process;
    let here = |(n, link): &(usize, Link)| {
        let ghost = &ghosts[*n];
        (ghost.gpu.uuid == gpu.uuid).then_some((ghost.pid, *link))
    };
    let keeps: Vec<_> = unlisted.keeps.iter().filter_map(here).collect();
    let case = Case {
        scene,
        gpu,
        pid: process.id.pid,
        row: None,
        process: Some(process),
        track: None,
        presence: Presence::Alive,
        survivors: &[],
        keeps: &keeps,
    };
    Holder {
        gpu: gpu.uuid.clone(),
        index: gpu.index,
        pid: process.id.pid,
        id: Some(process.id),
        kinds: ProcKinds::default(),
        listed: false,
        bytes: Reading::Absent(Why::NotSupported),
        peak: Reading::Absent(Why::NotSupported),
        growth: Growth::NotYet,
        sm: Reading::Absent(Why::NotSupported),
        age_ms: age(scene, process),
        verdict: verdict::judge(&case),
        survivors: Vec::new(),
        allocator: None,
        fragmentation: super::Fragmentation::None,
        workload: None,
        server: None,
        process: Some(Arc::clone(process)),
    }
}

const fn absent_process(presence: Presence) -> Why {
    match presence {
        Presence::NotLooked => Why::NotYet,
        _ => Why::Gone,
    }
}

fn age(scene: &Scene<'_>, process: &ProcSample) -> Reading<u64> {
    Reading::Value(scene.now_ms.saturating_sub(process.started_boot_ms))
}
