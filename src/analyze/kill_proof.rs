//! What a kill gave back: measured, not assumed.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

use super::kill_freed::{Freed, Unread, find, untold};
use super::kill_plan::{KillPlan, PlanRow};
use super::verdict::cure;
use super::{Class, Holder, View};
use crate::ids::{Pid, ProcId, Stamp};
use crate::sample::{KillPreset, ProcSample, ProcState, Reading, Why};
use crate::units::Bytes;

/// How long memory may take to come back, in milliseconds. 120 GiB were back after 0.2 s; unmapping
/// pinned host memory takes longer.
const SETTLES_MS: u64 = 10_000;
/// How long is waited for a look that shows what came back, in milliseconds from the end of an order.
const ANSWERS_MS: u64 = 15_000;

/// How an order ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderEnd {
    /// When its last signal had been sent and waited for: what was seen before proves nothing.
    pub at: Stamp,
    /// Targets whose end was seen, by pidfd: a row of an older look says nothing against that.
    pub gone: Vec<ProcId>,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KillProof {
    /// Per GPU.
    pub freed: Vec<Freed>,
    /// Targets that neither live nor stand in the driver's lists, all of which were read.
    pub unlisted: Vec<ProcId>,
    /// What is left, why, and what to do next.
    pub remaining: Vec<Remaining>,
    /// Why it is not known what came back, or how much of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Why>,
    /// `freed 44.1 of 44.2 GiB on GPU 0`.
    pub sentence: String,
}

impl KillProof {
    /// Whether all that was expected came back.
    pub fn complete(&self) -> bool {
        self.unknown.is_none() && self.remaining.is_empty() && self.freed.iter().all(Freed::enough)
    }

    /// Whether it is neither complete nor known to lack anything.
    pub const fn is_open(&self) -> bool {
        self.unknown.is_some() && self.remaining.is_empty()
    }

    /// What came back on all GPUs; absent where that of one is.
    pub fn freed_total(&self) -> Reading<Bytes> {
        if let Some(why) = self.unknown {
            return Reading::Absent(why);
        }
        Reading::Value(self.freed.iter().filter_map(|freed| freed.freed.get()).sum())
    }

    /// The line to type where it is not known what came back: who holds what, and which call hangs,
    /// or what of the driver cannot be read.
    pub fn next(&self) -> Option<&'static str> {
        Some(match self.unknown? {
            Why::TimedOut => "vramlens triage",
            _ => "vramlens doctor",
        })
    }

    /// Of an order after which nobody could look.
    pub fn unseen(plan: &KillPlan, who: Silent) -> Self {
        let silent = match who {
            Silent::Driver => "the driver does not answer",
            Silent::Processes => "the processes could not be looked at",
        };
        Self {
            freed: plan.expected.iter().map(Freed::unseen).collect(),
            unlisted: Vec::new(),
            remaining: Vec::new(),
            unknown: Some(Why::TimedOut),
            sentence: format!("{silent}: what came back is not known"),
        }
    }
}

/// Who does not answer after an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// The driver.
    Driver,
    /// Whoever looks at the processes.
    Processes,
}

/// Something that should be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// As shown.
    pub pid: Pid,
    /// What it holds, as listed.
    pub bytes: Option<Bytes>,
    /// Why it is there. May hold hostile text.
    pub reason: String,
    /// The line to type next.
    pub command: Option<String>,
}

/// What came back, once all of it has, or as much as will; that it is not known, once it can be
/// waited for no longer. `after` proves something only where GPU and processes were looked at after
/// the order had ended.
pub fn proven(
    before: &View,
    after: &View,
    plan: &KillPlan,
    end: &OrderEnd,
    now: Stamp,
) -> Option<KillProof> {
    let looked = |age_ms: Option<u64>| age_ms.map(|age| after.at.boot_ms.saturating_sub(age));
    let (driver, processes) = (looked(after.gpus_age_ms), looked(after.procs_age_ms));
    let later = |looked: Option<u64>, by_ms| looked.is_some_and(|at| at > end.at.boot_ms + by_ms);
    if later(driver, 0) && later(processes, 0) {
        let proof = kill_proof(before, after, plan, &end.gone);
        let settled = later(driver, SETTLES_MS) && later(processes, SETTLES_MS);
        if proof.complete() || settled {
            return Some(proof);
        }
    }
    // Processes are looked at after each answer of the driver.
    let who = if driver > processes { Silent::Processes } else { Silent::Driver };
    (now.since(end.at) >= ANSWERS_MS).then(|| KillProof::unseen(plan, who))
}

/// Compares the views before and after an order; `gone` are the targets whose end was seen.
pub fn kill_proof(before: &View, after: &View, plan: &KillPlan, gone: &[ProcId]) -> KillProof {
    let targets: HashSet<ProcId> = plan.rows.iter().map(|row| row.id).collect();
    let freed: Vec<Freed> =
        plan.expected.iter().map(|part| Freed::between(before, after, plan, part)).collect();
    let mut remaining = Vec::new();
    let mut unlisted = Vec::new();
    for row in &plan.rows {
        match left(after, plan, row, gone) {
            Some(left) => remaining.push(left),
            None if lists_are_read(after, row) => unlisted.push(row.id),
            None => {}
        }
    }
    remaining.extend(ghosts(after, plan, &targets, gone));
    remaining.extend(restarted(before, after, plan));
    unlisted.retain(|id| !remaining.iter().any(|left| left.pid == id.pid));
    if remaining.is_empty() {
        remaining.extend(freed.iter().filter_map(|part| missing(plan, part)));
    }
    let untold = untold(before, plan);
    let unknown = freed.iter().find_map(|part| part.freed.why());
    let unknown = unknown.or(untold.as_ref().map(|untold| untold.1));
    let sentence = sentence(&freed, untold);
    KillProof { freed, unlisted, remaining, unknown, sentence }
}

/// Whether all lists were read of the GPUs that a target was on; of all where it was on none.
fn lists_are_read(after: &View, row: &PlanRow) -> bool {
    let is_read = |gpu: &super::GpuView| !gpu.sample.is_partly_listed();
    if row.bytes.is_empty() {
        return after.gpus.iter().all(is_read);
    }
    row.bytes.iter().all(|share| find(after, &share.gpu).is_some_and(is_read))
}

/// A target that lives.
fn left(after: &View, plan: &KillPlan, row: &PlanRow, gone: &[ProcId]) -> Option<Remaining> {
    let pid = row.id.pid;
    if gone.contains(&row.id) {
        return None;
    }
    // Whoever is only waiting for its parent to take note holds nothing any more.
    let ended = |process: &ProcSample| process.state == ProcState::Zombie && process.threads <= 1;
    if let Some(holder) = after.holders.iter().find(|h| h.id == Some(row.id)) {
        if holder.process.as_deref().is_some_and(&ended) && !holder.listed {
            return None;
        }
        let (reason, command) = still_there(holder, plan.order.preset);
        return Some(Remaining { pid, bytes: holder.bytes.get(), reason, command });
    }
    let lives = |process: &&Arc<ProcSample>| process.id == row.id && !ended(process);
    after.relatives.iter().find(lives).map(|_| Remaining {
        pid,
        bytes: None,
        reason: "it lives, and holds no memory any more".to_owned(),
        command: None,
    })
}

fn still_there(holder: &Holder, preset: KillPreset) -> (String, Option<String>) {
    let pid = holder.pid;
    let cure = || holder.process.as_ref().map_or("", |process| cure(process));
    match holder.verdict.class {
        Class::Exiting | Class::Defunct => {
            ("it is on its way out; its memory follows in a moment".to_owned(), None)
        }
        Class::Unkillable | Class::Stuck => (format!("no signal ends it: {}", cure()), None),
        Class::Suspended => {
            let reason = "it is stopped and acts on no TERM before it goes on".to_owned();
            (reason, Some(format!("vramlens kill --now {pid}")))
        }
        Class::Frozen => ("its cgroup is frozen: thaw it first".to_owned(), None),
        _ if matches!(preset, KillPreset::Gentle | KillPreset::Signal(_)) => {
            let reason = "it took the signal and has not ended: it may be saving".to_owned();
            (reason, Some(format!("vramlens kill --now {pid}")))
        }
        _ => ("it has not ended yet".to_owned(), Some(format!("vramlens kill --now {pid}"))),
    }
}

/// Dead targets that the driver still lists: somebody keeps their memory.
fn ghosts(
    after: &View,
    plan: &KillPlan,
    targets: &HashSet<ProcId>,
    gone: &[ProcId],
) -> Vec<Remaining> {
    let is_dead = |h: &Holder| h.id.is_none_or(|id| gone.contains(&id));
    let of_plan =
        |h: &&Holder| h.listed && is_dead(h) && plan.rows.iter().any(|row| row.id.pid == h.pid);
    let remaining = |holder: &Holder| {
        let keepers: Vec<_> = holder.survivors.iter().filter(|id| !targets.contains(id)).collect();
        let pids: Vec<_> = keepers.iter().map(|id| id.pid.to_string()).collect();
        let (reason, command) = if pids.is_empty() {
            ("it ended; the driver is still taking it down".to_owned(), None)
        } else {
            let reason = format!("it ended, and {} keeps its memory", pids.join(", "));
            (reason, Some(format!("vramlens kill {}", pids.join(" "))))
        };
        Remaining { pid: holder.pid, bytes: holder.bytes.get(), reason, command }
    };
    after.holders.iter().filter(of_plan).map(remaining).collect()
}

/// New holders of the same name, and unit or command: a supervisor has restarted a target.
fn restarted(before: &View, after: &View, plan: &KillPlan) -> Vec<Remaining> {
    let known: HashSet<ProcId> = before.holders.iter().filter_map(|h| h.id).collect();
    let planned: Vec<_> = before
        .holders
        .iter()
        .filter(|h| plan.rows.iter().any(|row| h.id == Some(row.id)))
        .filter_map(|h| h.process.as_ref())
        .collect();
    let again = |holder: &&Holder| {
        let process = holder.process.as_ref().filter(|process| !known.contains(&process.id));
        process.is_some_and(|new| {
            planned.iter().any(|old| {
                let same_unit = old.unit.is_some() && old.unit == new.unit;
                old.comm == new.comm && (same_unit || old.cmdline == new.cmdline)
            })
        })
    };
    let mut found: Vec<_> = after
        .holders
        .iter()
        .filter(again)
        .map(|holder| Remaining {
            pid: holder.pid,
            bytes: holder.bytes.get(),
            reason: "it was started again by its supervisor".to_owned(),
            command: holder.verdict.manager.as_ref().map(|manager| manager.command.clone()),
        })
        .collect();
    found.dedup_by_key(|left| left.pid);
    found
}

/// Stands under the first target that held memory there. `None` where all came back, and where that
/// is not known.
fn missing(plan: &KillPlan, part: &Freed) -> Option<Remaining> {
    let freed = part.freed.get().filter(|_| !part.enough())?;
    let held = |row: &&PlanRow| row.bytes.iter().any(|share| share.gpu == part.gpu);
    let pid = plan.rows.iter().find(held).map_or(Pid(0), |row| row.id.pid);
    let lacking = part.expected - freed;
    Some(Remaining {
        pid,
        bytes: None,
        reason: format!(
            "{lacking} on GPU {} did not come back yet: the driver may still be taking it down, or \
             another process took it",
            part.index
        ),
        command: None,
    })
}

/// What came back, and of what that is not known.
fn sentence(freed: &[Freed], untold: Option<Unread>) -> String {
    if freed.is_empty() && untold.is_none() {
        return "nothing was expected to come back".to_owned();
    }
    let (told, others): (Vec<&Freed>, Vec<&Freed>) =
        freed.iter().partition(|part| part.freed.value().is_some());
    let mut parts = Vec::new();
    if !told.is_empty() {
        parts.push(figures(&told));
    }
    parts.extend(others.into_iter().map(|part| {
        let why = part.freed.why().map_or_else(String::new, Why::words);
        let why = match &part.unread {
            Some(what) => format!("{what} could not be read ({why})"),
            None => why,
        };
        format!("what came back of {} on GPU {} is not known: {why}", part.expected, part.index)
    }));
    if let Some((what, why)) = untold {
        let open = if parts.is_empty() { "what came back is not known: " } else { "" };
        parts.push(format!("{open}{what} could not be read ({})", why.words()));
    }
    parts.join("; ")
}

/// Both figures in the unit of what was expected.
fn figures(freed: &[&Freed]) -> String {
    let expected: Bytes = freed.iter().map(|part| part.expected).sum();
    let got: Bytes = freed.iter().filter_map(|part| part.freed.get()).sum();
    let text = expected.to_string();
    let unit = text.split_once(' ').map_or("B", |parts| parts.1);
    let got = match unit {
        "TiB" => format!("{:.1}", got.as_gib() / 1024.0),
        "GiB" => format!("{:.1}", got.as_gib()),
        "MiB" => format!("{:.0}", got.as_gib() * 1024.0),
        "KiB" => format!("{:.0}", got.0 as f64 / 1024.0),
        _ => got.0.to_string(),
    };
    let mut gpus: Vec<_> = freed.iter().map(|part| part.index).collect();
    gpus.sort_unstable();
    let gpus: Vec<_> = gpus.iter().map(ToString::to_string).collect();
    format!("freed {got} of {text} on GPU {}", gpus.join(", "))
}
