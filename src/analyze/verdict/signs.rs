//! What speaks for an orphan: structural evidence that its launcher is gone.

use super::names::{self, WorkerKind};
use super::{Case, Link, against, note, said};
use crate::analyze::Evidence;
use crate::analyze::scene::Scene;
use crate::ids::Pid;
use crate::sample::ProcSample;

/// The signs of one process.
#[derive(Debug, Default)]
pub struct Signs {
    /// The leader of its process group is gone.
    pub group: bool,
    /// The leader of its session is gone, or its standard streams are deleted files.
    pub session: bool,
    /// A worker without its launcher.
    pub worker: bool,
    /// Its environment names somebody who is gone.
    pub environment: bool,
    /// Its parent was seen to change.
    pub parent: bool,
    /// It keeps a dead holder's memory.
    pub survivor: bool,
    /// All of it in words, and what could not be told.
    pub evidence: Vec<Evidence>,
}

impl Signs {
    /// Looks for all of them.
    pub fn of(case: &Case<'_>, process: &ProcSample) -> Self {
        let scene = case.scene;
        let mut signs = Self::default();
        signs.group_leader(scene, process);
        signs.session_leader(scene, process);
        signs.launcher(scene, process);
        signs.named_in_environment(scene, process);
        signs.parent_change(scene, process);
        for (dead, link) in case.keeps {
            signs.survivor = true;
            let how = match link {
                Link::Certain => "it is of that process's own group, session or children",
                Link::Strong => "its launcher is gone and it has that GPU open",
            };
            let text = format!("keeps the memory that the driver lists under {dead}: {how}");
            signs.evidence.push(said("survivor", text));
        }
        signs
    }

    /// Signs a to d: two of them make an orphan.
    pub fn structural(&self) -> usize {
        [self.group, self.session, self.worker, self.environment].iter().filter(|s| **s).count()
    }

    /// Whether they suffice, before any shield.
    pub fn orphan(&self) -> bool {
        self.survivor || self.parent || self.structural() >= 2
    }

    /// A worker without its launcher, and one more sign: of no use to anybody, even if it spins.
    pub fn lone_worker(&self) -> bool {
        self.worker && self.structural() + usize::from(self.parent) >= 2
    }

    fn group_leader(&mut self, scene: &Scene<'_>, process: &ProcSample) {
        if process.group == process.id.pid {
            return;
        }
        let leader = process.group;
        match scene.exists(leader).filter(|_| leader != Pid(0)) {
            Some(false) => {
                self.group = true;
                let text = format!("the leader of its process group, {leader}, is gone");
                self.evidence.push(said("group_leader_gone", text));
            }
            Some(true) => {
                let text = format!("the leader of its process group, {leader}, lives");
                self.evidence.push(against("group_leader_lives", text));
            }
            None => {
                let text = "the leader of its process group cannot be seen from here".to_owned();
                self.evidence.push(note("group_leader_unseen", text));
            }
        }
    }

    fn session_leader(&mut self, scene: &Scene<'_>, process: &ProcSample) {
        let leader = process.session;
        let gone = leader != process.id.pid
            && leader != Pid(0)
            && process.tty == 0
            && scene.exists(leader) == Some(false);
        if gone {
            self.session = true;
            let text = format!("the leader of its session, {leader}, is gone, with its terminal");
            self.evidence.push(said("session_leader_gone", text));
        }
        if process.stdio_deleted {
            self.session = true;
            let text = "its standard input and output are files that were deleted".to_owned();
            self.evidence.push(said("stdio_deleted", text));
        }
    }

    fn launcher(&mut self, scene: &Scene<'_>, process: &ProcSample) {
        let Some(kind) = names::worker(process) else { return };
        match launcher_lives(scene, process, kind) {
            Some(true) => {
                let text = format!("{} whose {} lives", kind.title, kind.launcher);
                self.evidence.push(against("launcher_lives", text));
            }
            Some(false) => {
                self.worker = true;
                let text = format!("{} without a {} above it", kind.title, kind.launcher);
                self.evidence.push(said("launcher_gone", text));
            }
            None => {
                let text = format!("{}; who is above it cannot be seen", kind.title);
                self.evidence.push(note("launcher_unseen", text));
            }
        }
    }

    fn named_in_environment(&mut self, scene: &Scene<'_>, process: &ProcSample) {
        if let Some(server) = process.notebook_server()
            && scene.exists(server) == Some(false)
        {
            self.environment = true;
            let text = format!("a notebook kernel whose server, {server}, is gone");
            self.evidence.push(said("jupyter_gone", text));
        }
        if let Some(job) = &process.slurm_job
            && !in_slurm_step(scene, process)
            && process.cgroup.value().is_some()
        {
            self.environment = true;
            let text = format!("started by Slurm job {job}, and outside of its cgroup");
            self.evidence.push(said("slurm_escaped", text));
        }
    }

    fn parent_change(&mut self, scene: &Scene<'_>, process: &ProcSample) {
        let former = scene.track(process.id).and_then(|track| track.former_parents.last());
        let Some(former) = former.filter(|pid| scene.exists(**pid) == Some(false)) else { return };
        self.parent = true;
        let text = format!("its parent {former} was seen to end, it went to {}", process.parent);
        self.evidence.push(said("parent_ended", text));
    }
}

/// Whether somebody who may have launched a worker is above it; `None` where the line of parents
/// cannot be followed to its top.
pub fn launcher_lives(scene: &Scene<'_>, process: &ProcSample, kind: &WorkerKind) -> Option<bool> {
    let ancestors = scene.ancestors(process);
    if ancestors.iter().any(|a| (kind.launches)(a) && !(kind.is)(a)) {
        return Some(true);
    }
    // Whoever could not be named may be the launcher, and so may whoever is outside of this
    // namespace.
    let unnamed = ancestors.iter().any(|a| a.cmdline.value().is_none() && !names::adopts(a));
    let top = match ancestors.last() {
        Some(top) if top.id.pid == Pid(1) => Pid(1),
        Some(top) => top.parent,
        None => process.parent,
    };
    (top == Pid(1) && !unnamed).then_some(false)
}

/// Whether a process is inside of the Slurm step that it was started by.
pub fn in_slurm_step(scene: &Scene<'_>, process: &ProcSample) -> bool {
    let in_path = |job: &String| {
        process.cgroup.value().is_some_and(|path| {
            path.split('/').any(|part| part.strip_prefix("job_") == Some(job.as_str()))
        })
    };
    process.slurm_job.as_ref().is_some_and(in_path)
        || scene.ancestors(process).iter().any(|a| a.comm.starts_with("slurmstepd"))
}

/// How sure it is that a process with a dead pid's GPU open keeps its memory; `None` for a
/// process that has the device open for reasons of its own.
pub fn link(scene: &Scene<'_>, process: &ProcSample, dead: Pid) -> Option<Link> {
    let former = scene.track(process.id).is_some_and(|track| track.former_parents.contains(&dead));
    if former || [process.group, process.session, process.parent].contains(&dead) {
        return Some(Link::Certain);
    }
    // A fork inherits the group. Whoever is no leader of its group, and has a parent of another
    // session, was not started by that parent: it was taken in.
    let member = process.group != process.id.pid && process.group != Pid(0);
    let stranger = match scene.process(process.parent) {
        Some(parent) => {
            names::adopts(parent)
                || (parent.session != process.session && parent.group != process.group)
        }
        None => process.parent == Pid(1),
    };
    let leaderless = member && scene.exists(process.group) == Some(false);
    let lone = names::worker(process)
        .is_some_and(|kind| launcher_lives(scene, process, kind) == Some(false));
    ((member && stranger) || leaderless || lone).then_some(Link::Strong)
}
