//! Which processes are one job: its launcher, its engine, its workers, its ranks.

use std::collections::{HashMap, HashSet};

use super::verdict::{guard, worker};
use super::{Holder, View};
use crate::ids::{Pid, ProcId};
use crate::sample::ProcSample;

/// Generations that are followed.
const MAX_GENERATIONS: usize = 64;

/// What a process is to the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It was asked for.
    Target,
    /// It launched one that was.
    Launcher,
    /// It belongs to the job, and why.
    Member(String),
}

/// One process of a job.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Its facts.
    pub process: &'a ProcSample,
    /// What it is to the job.
    pub role: Role,
    /// Whether it holds memory or has the device open.
    pub holds: bool,
}

/// Every process of the view, by pid.
pub struct Family<'a> {
    by_pid: HashMap<Pid, &'a ProcSample>,
    holders: HashSet<ProcId>,
}

impl<'a> Family<'a> {
    /// Of a view: those that live.
    pub fn new(view: &'a View) -> Self {
        let living = |h: &&'a Holder| h.id.is_some();
        let held = view.holders.iter().filter(living).filter_map(|h| h.process.as_deref());
        let others = view.relatives.iter().map(|process| &**process);
        Self {
            by_pid: others.chain(held).map(|process| (process.id.pid, process)).collect(),
            holders: view.holders.iter().filter_map(|holder| holder.id).collect(),
        }
    }

    /// The process with exactly this identity.
    pub fn find(&self, id: ProcId) -> Option<&'a ProcSample> {
        self.by_pid.get(&id.pid).copied().filter(|process| process.id == id)
    }

    /// Whether it is a holder.
    pub fn holds(&self, id: ProcId) -> bool {
        self.holders.contains(&id)
    }

    fn ancestors(&self, process: &ProcSample) -> Vec<&'a ProcSample> {
        let mut found: Vec<&ProcSample> = Vec::new();
        let mut pid = process.parent;
        while let Some(next) = self.by_pid.get(&pid) {
            let seen = next.id == process.id || found.iter().any(|known| known.id == next.id);
            if seen || found.len() >= MAX_GENERATIONS {
                break;
            }
            found.push(next);
            pid = next.parent;
        }
        found
    }

    /// How far below the top of its family a process is.
    pub fn depth(&self, process: &ProcSample) -> usize {
        self.ancestors(process).len()
    }

    /// The whole job of the targets: everybody else in it once, each with its reason.
    pub fn job(&self, targets: &[ProcId]) -> Vec<Member<'a>> {
        let asked: HashSet<ProcId> = targets.iter().copied().collect();
        let asked_of: Vec<_> = targets.iter().filter_map(|id| self.find(*id)).collect();
        let mut members: Vec<Member<'a>> = asked_of
            .iter()
            .map(|process| Member { process, role: Role::Target, holds: self.holds(process.id) })
            .collect();
        let mut known = asked;
        for target in &asked_of {
            for launcher in self.launchers(target) {
                self.add(&mut members, &mut known, launcher, Role::Launcher);
            }
        }
        let roots: Vec<_> = members.iter().map(|member| member.process).collect();
        let mut everybody: Vec<_> = self.by_pid.values().copied().collect();
        everybody.sort_by_key(|process| process.id);
        for process in everybody {
            let reason = roots.iter().find_map(|root| self.belongs(process, root, &known));
            if let Some(reason) = reason {
                self.add(&mut members, &mut known, process, Role::Member(reason));
            }
        }
        members
    }

    fn add(
        &self,
        members: &mut Vec<Member<'a>>,
        known: &mut HashSet<ProcId>,
        process: &'a ProcSample,
        role: Role,
    ) {
        if guard(process).is_none() && known.insert(process.id) {
            members.push(Member { process, role, holds: self.holds(process.id) });
        }
    }

    /// Who launched a worker: those above it that could have, of the same user and session.
    fn launchers(&self, worker_process: &ProcSample) -> Vec<&'a ProcSample> {
        let Some(kind) = worker(worker_process) else { return Vec::new() };
        let mut found = Vec::new();
        for above in self.ancestors(worker_process) {
            let launches = (kind.is)(above) || (kind.launches)(above);
            if above.uid != worker_process.uid || !related(above, worker_process) || !launches {
                break;
            }
            found.push(above);
            // Whoever launched the launcher is somebody's harness, not the job.
            if !(kind.is)(above) {
                break;
            }
        }
        found
    }

    /// Why a process belongs to the job of `root`.
    fn belongs(
        &self,
        process: &ProcSample,
        root: &ProcSample,
        known: &HashSet<ProcId>,
    ) -> Option<String> {
        if process.id == root.id || process.uid != root.uid {
            return None;
        }
        if same_ranks(process, root) {
            return Some(format!("rank of the same job as {}", root.id.pid));
        }
        if self.ancestors(process).iter().any(|a| a.id == root.id) {
            return Some(format!("child of {}", root.id.pid));
        }
        // A living leader that nobody asked for is somebody's shell or script.
        let leader = self.by_pid.get(&root.group);
        let led = leader.is_none_or(|leader| known.contains(&leader.id));
        (process.group == root.group && root.group != Pid(0) && led)
            .then(|| format!("same process group as {}", root.id.pid))
    }
}

/// A port that a shell exports for everything is no job: both must be ranks.
fn same_ranks(a: &ProcSample, b: &ProcSample) -> bool {
    let same = |name: &str| {
        let (mine, theirs) = (a.variable(name), b.variable(name));
        mine.is_some_and(|value| !value.is_empty()) && mine == theirs
    };
    let ranked =
        |p: &ProcSample| ["RANK", "LOCAL_RANK"].iter().any(|name| p.variable(name).is_some());
    same("TORCHELASTIC_RUN_ID") || (same("MASTER_PORT") && ranked(a) && ranked(b))
}

fn related(a: &ProcSample, b: &ProcSample) -> bool {
    a.session == b.session || a.group == b.group || b.variable("TORCHELASTIC_RUN_ID").is_some()
}
