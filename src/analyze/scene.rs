//! The newest looks, joined: who is listed where, who lives, who descends from whom.

use std::rc::Rc;
use std::sync::Arc;

use super::Moment;
use crate::history::{History, HolderTrack, Look};
use crate::ids::quick::{Map, Set};
use crate::ids::{Pid, ProcId};
use crate::sample::{
    GpuProc, GpuSample, GpuTick, HostMemory, NvidiaFds, ProcSample, ProcState, Why,
};
use crate::units::Bytes;

/// Generations that are followed upwards.
const MAX_ANCESTORS: usize = 64;
/// `PF_EXITING`.
const EXITING: u64 = 4;

/// What is known of the process behind a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It exists.
    Alive,
    /// No look at the processes since it is listed.
    NotLooked,
    /// The kernel does not know its pid.
    Gone,
    /// Somebody else has its pid.
    Reused,
}

/// One row of the driver's lists, with what is remembered of it.
#[derive(Clone, Copy)]
pub struct ListedRow<'a> {
    pub gpu: &'a GpuSample,
    pub row: &'a GpuProc,
    pub track: Option<&'a HolderTrack>,
    pub presence: Presence,
}

/// Everything that a verdict may look at.
pub struct Scene<'a> {
    pub history: &'a History,
    pub moment: &'a Moment,
    pub now_ms: u64,
    pub tick: &'a GpuTick,
    pub look: Option<&'a Look>,
    /// Every listed row once.
    pub rows: Vec<ListedRow<'a>>,
    /// Whether the driver's pids are of another namespace than those of the looks.
    pub strangers: bool,
    /// Pids that are listed and live.
    living: Set<Pid>,
    /// Ancestors by the parent that they begin with: siblings share them.
    chains: Map<Pid, Rc<[&'a Arc<ProcSample>]>>,
}

impl<'a> Scene<'a> {
    pub fn new(history: &'a History, moment: &'a Moment, tick: &'a GpuTick) -> Self {
        let mut scene = Self {
            history,
            moment,
            now_ms: moment.now.boot_ms,
            tick,
            look: history.look(),
            rows: Vec::new(),
            strangers: history.look().is_some_and(|look| are_strangers(look, tick)),
            living: Set::default(),
            chains: Map::default(),
        };
        for process in scene.look.into_iter().flat_map(|look| look.procs.values()) {
            if !scene.chains.contains_key(&process.parent) {
                scene.chains.insert(process.parent, scene.climb(process.parent));
            }
        }
        scene.rows = tick
            .gpus
            .iter()
            .flat_map(|gpu| {
                let tracks = history.listed_on(&gpu.uuid);
                listed_rows(gpu).map(move |row| (gpu, row, tracks))
            })
            .filter(|(gpu, row, _)| !scene.is_repeated(gpu, row.pid))
            .map(|(gpu, row, tracks)| {
                let track = tracks.and_then(|tracks| tracks.get(&row.pid));
                ListedRow { gpu, row, track, presence: scene.presence(track, row.pid) }
            })
            .collect();
        let living = |listed: &&ListedRow<'_>| {
            listed.presence == Presence::Alive
                && scene.process(listed.row.pid).is_some_and(|p| !is_defunct(p))
        };
        scene.living = scene.rows.iter().filter(living).map(|listed| listed.row.pid).collect();
        scene
    }

    /// What a GPU in MIG mode lists is left to its instances, where they list it too.
    fn is_repeated(&self, gpu: &GpuSample, pid: Pid) -> bool {
        gpu.mig.is_none()
            && self.instances(gpu).any(|mig| listed_rows(mig).any(|row| row.pid == pid))
    }

    /// The MIG instances of a GPU.
    pub fn instances<'b>(&'b self, gpu: &'b GpuSample) -> impl Iterator<Item = &'a GpuSample> + 'b {
        let of =
            move |mig: &&GpuSample| mig.mig.as_ref().is_some_and(|info| info.parent == gpu.uuid);
        self.tick.gpus.iter().filter(of)
    }

    /// What the newest look says of a pid.
    pub fn process(&self, pid: Pid) -> Option<&'a Arc<ProcSample>> {
        self.look?.procs.get(&pid)
    }

    /// Whether a pid is listed, lives, and is no zombie in the kernel's sense.
    pub fn lives_listed(&self, pid: Pid) -> bool {
        self.living.contains(&pid)
    }

    fn presence(&self, track: Option<&HolderTrack>, pid: Pid) -> Presence {
        if self.strangers {
            return Presence::Gone;
        }
        match self.process(pid) {
            None => match (track, self.look) {
                (Some(track), Some(look)) if missed(track, look) => Presence::Gone,
                _ => Presence::NotLooked,
            },
            Some(process) if track.is_some_and(|track| is_reused(track, process)) => {
                Presence::Reused
            }
            Some(_) => Presence::Alive,
        }
    }

    /// Parents, nearest first, as far as they were looked at.
    pub fn ancestors(&self, process: &ProcSample) -> Rc<[&'a Arc<ProcSample>]> {
        let known = self.chains.get(&process.parent).map(Rc::clone);
        let chain = known.unwrap_or_else(|| self.climb(process.parent));
        // Reused pids can make a process its own ancestor.
        match chain.iter().position(|above| above.id == process.id) {
            Some(end) => chain.iter().take(end).copied().collect(),
            None => chain,
        }
    }

    /// A process and all above it.
    fn climb(&self, from: Pid) -> Rc<[&'a Arc<ProcSample>]> {
        let mut found: Vec<&Arc<ProcSample>> = Vec::new();
        let mut parent = from;
        while let Some(next) = self.process(parent) {
            if found.iter().any(|seen| seen.id == next.id) || found.len() >= MAX_ANCESTORS {
                break;
            }
            found.push(next);
            parent = next.parent;
        }
        found.into()
    }

    /// Whether a pid exists; `None` where that cannot be seen from here.
    pub fn exists(&self, pid: Pid) -> Option<bool> {
        match self.process(pid) {
            Some(process) => Some(!is_defunct(process)),
            None if self.sees_all() => Some(false),
            None => None,
        }
    }

    /// Whether a process that was not found does not exist.
    fn sees_all(&self) -> bool {
        self.look.is_some_and(|look| {
            look.host.hidepid.get() == Some(false)
                || look.host.euid == 0
                || look.host.hidepid.why() == Some(Why::NotSupported)
        })
    }

    /// Whether a process has this GPU's device file open.
    pub fn has_open(&self, gpu: &GpuSample, fds: &NvidiaFds) -> bool {
        let whole = match &gpu.mig {
            Some(info) => self.tick.gpus.iter().find(|g| g.uuid == info.parent).unwrap_or(gpu),
            None => gpu,
        };
        match whole.minor.get() {
            Some(minor) => fds.minors.contains(&minor),
            None => !fds.minors.is_empty(),
        }
    }

    /// The machine's memory, for a whole GPU that has none of its own. Without a list of who holds it
    /// there is nothing to tell apart.
    pub fn shared_memory(&self, gpu: &GpuSample) -> Option<&'a HostMemory> {
        let host = &self.look?.host;
        let shares = gpu.has_no_memory() && gpu.processes.value().is_some() && !host.wsl;
        host.memory.as_ref().filter(|_| shares)
    }

    /// What is left on a GPU, or of the memory that it shares.
    pub fn free(&self, gpu: &GpuSample) -> Option<Bytes> {
        let shared = || self.shared_memory(gpu).map(|host| host.available.min(host.total));
        gpu.memory.value().map(|memory| memory.free).or_else(shared)
    }

    /// The GPU, this one first, on which a process that is in no list may be listed all the same: its
    /// lists could not all be read.
    pub fn may_be_listed_on<'b>(
        &'b self,
        gpu: &'b GpuSample,
        process: &ProcSample,
    ) -> Option<&'b GpuSample> {
        if self.tick.is_partly_listed(gpu) {
            return Some(gpu);
        }
        self.tick.may_list(process.devices.value()?)
    }

    /// Whose word counts: the owner of this program.
    pub fn euid(&self) -> Option<u32> {
        self.look.map(|look| look.host.euid)
    }

    /// The past of a process.
    pub fn track(&self, id: ProcId) -> Option<&'a crate::history::ProcTrack> {
        self.history.process(id)
    }
}

/// The driver's list of one GPU; empty where it could not be read.
pub fn listed_rows(gpu: &GpuSample) -> impl Iterator<Item = &GpuProc> {
    gpu.processes.value().into_iter().flatten()
}

/// Inside of a container, drivers before 535.113.01 name the pids of the host; under Windows'
/// driver they are nobody's here.
fn are_strangers(look: &Look, tick: &GpuTick) -> bool {
    let translates = tick.driver.version.value().is_some_and(|version| {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        [0, 1, 2].map(|_| parts.next().unwrap_or(0)) >= [535, 113, 1]
    });
    look.host.wsl || (look.host.host_pid_namespace.get() == Some(false) && !translates)
}

/// Enough looks without it: two, or one that began well after it was listed.
fn missed(track: &HolderTrack, look: &Look) -> bool {
    track.missing_looks >= 2
        || (track.missing_looks == 1 && look.at.boot_ms >= track.first_ms + 1_000)
}

fn is_reused(track: &HolderTrack, process: &ProcSample) -> bool {
    let deviceless = process.devices.value().is_some_and(|fds| !fds.any());
    let threads_hold = is_zombie_leader(process) && process.threads > 1;
    if !deviceless || process.flags & EXITING != 0 || is_defunct(process) || threads_hold {
        return false;
    }
    let stranger = track.id.is_some_and(|id| id != process.id);
    let younger = process.started_boot_ms > track.first_ms + 1_000;
    stranger || younger || track.deviceless_looks >= 2
}

/// State Z with nothing left of it.
pub fn is_defunct(process: &ProcSample) -> bool {
    process.state == ProcState::Dead || (is_zombie_leader(process) && process.threads <= 1)
}

/// State Z of the first thread; others may live on.
pub fn is_zombie_leader(process: &ProcSample) -> bool {
    process.state == ProcState::Zombie
}

/// Whether the kernel is taking it down.
pub const fn is_exiting(process: &ProcSample) -> bool {
    process.flags & EXITING != 0
}
