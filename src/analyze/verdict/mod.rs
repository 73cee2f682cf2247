//! What a holder is, and why.
use super::scene::{Presence, Scene};
use super::{Class, Verdict};
use crate::history::HolderTrack;
use crate::ids::{Pid, ProcId};
use crate::sample::{GpuProc, GpuSample, ProcSample};

/// How sure it is that a process keeps a dead one's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    Strong,
    Certain,
}

pub struct Case<'a> {
    pub scene: &'a Scene<'a>,
    pub gpu: &'a GpuSample,
    pub pid: Pid,
    pub row: Option<&'a GpuProc>,
    pub process: Option<&'a ProcSample>,
    pub track: Option<&'a HolderTrack>,
    pub presence: Presence,
    pub survivors: &'a [(ProcId, Link)],
    pub keeps: &'a [(Pid, Link)],
}

pub fn link(_scene: &Scene<'_>, process: &ProcSample, dead: Pid) -> Option<Link> {
    (process.group == dead || process.session == dead || process.parent == dead)
        .then_some(Link::Certain)
}

pub fn judge(case: &Case<'_>) -> Verdict {
    let class = match case.presence {
        Presence::Gone => Class::Ghost,
        Presence::Reused => Class::Reused,
        _ if !case.keeps.is_empty() => Class::Survivor,
        _ if case.row.is_none() => Class::Hidden,
        _ => Class::Unknown,
    };
    Verdict { class, zombie: false, since_ms: None, evidence: Vec::new(), manager: None }
}
