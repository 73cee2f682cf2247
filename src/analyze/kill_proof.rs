//! What a kill gave back: measured, not assumed.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

use super::kill_plan::{ExpectedBytes, KillPlan, PlanRow};
use super::verdict::cure;
use super::{Class, Holder, View};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::sample::{KillPreset, ProcSample, ProcState};
use crate::units::Bytes;

/// The share of what was expected that counts as all of it, in per cent.
const ENOUGH_PERCENT: u64 = 90;

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KillProof {
    /// Per GPU.
    pub freed: Vec<Freed>,
    /// Targets that neither live nor stand in the driver's lists.
    pub unlisted: Vec<ProcId>,
    /// What is left, why, and what to do next.
    pub remaining: Vec<Remaining>,
    /// `freed 44.1 of 44.2 GiB on GPU 0`.
    pub sentence: String,
}

impl KillProof {
    /// Whether all that was expected came back.
    pub fn complete(&self) -> bool {
        self.remaining.is_empty() && self.freed.iter().all(Freed::enough)
    }

    /// What came back on all GPUs.
    pub fn freed_total(&self) -> Bytes {
        self.freed.iter().map(|freed| freed.freed).sum()
    }

    /// What was expected on all GPUs.
    pub fn expected_total(&self) -> Bytes {
        self.freed.iter().map(|freed| freed.expected).sum()
    }
}

/// One GPU's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Which.
    pub gpu: GpuUuid,
    /// Its number.
    pub index: GpuIndex,
    /// As it was listed.
    pub expected: Bytes,
    /// By how much `used` fell, what others took meanwhile counted in.
    pub freed: Bytes,
}

impl Freed {
    fn enough(&self) -> bool {
        u128::from(self.freed.0) * 100 >= u128::from(self.expected.0) * u128::from(ENOUGH_PERCENT)
    }
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

/// Compares the views before and after an order.
pub fn kill_proof(before: &View, after: &View, plan: &KillPlan) -> KillProof {
    let targets: HashSet<ProcId> = plan.rows.iter().map(|row| row.id).collect();
    let freed: Vec<Freed> =
        plan.expected.iter().map(|part| freed(before, after, plan, part)).collect();
    let mut remaining = Vec::new();
    let mut unlisted = Vec::new();
    for row in &plan.rows {
        match left(after, plan, row) {
            Some(left) => remaining.push(left),
            None => unlisted.push(row.id),
        }
    }
    remaining.extend(ghosts(after, plan, &targets));
    remaining.extend(restarted(before, after, plan));
    if remaining.is_empty() {
        remaining
            .extend(freed.iter().filter(|part| !part.enough()).map(|part| missing(plan, part)));
    }
    let sentence = sentence(&freed);
    KillProof { freed, unlisted, remaining, sentence }
}

fn freed(before: &View, after: &View, plan: &KillPlan, part: &ExpectedBytes) -> Freed {
    let used = |view: &View| {
        let gpu = view.gpus.iter().find(|gpu| gpu.sample.uuid == part.gpu);
        gpu.and_then(|gpu| gpu.ledger.get()).map(|ledger| i128::from(ledger.used.0))
    };
    let others = |view: &View| {
        let of_others = |h: &&Holder| h.gpu == part.gpu && !is_planned(before, plan, h);
        let rows = view.holders.iter().filter(of_others);
        rows.filter_map(|h| h.bytes.get()).map(|bytes| i128::from(bytes.0)).sum::<i128>()
    };
    let fell = match (used(before), used(after)) {
        (Some(before_used), Some(after_used)) => {
            before_used - after_used + others(after) - others(before)
        }
        _ => 0,
    };
    let freed = u64::try_from(fell.max(0)).unwrap_or(u64::MAX);
    let (gpu, index) = (part.gpu.clone(), part.index);
    Freed { gpu, index, expected: part.bytes, freed: Bytes(freed).min(part.bytes) }
}

/// Whether a row is of the plan: a target, or the dead whose memory only targets keep.
fn is_planned(before: &View, plan: &KillPlan, holder: &Holder) -> bool {
    let target = |id: &ProcId| plan.rows.iter().any(|row| row.id == *id);
    let kept = |ghost: &Holder| {
        ghost.gpu == holder.gpu
            && ghost.pid == holder.pid
            && !ghost.survivors.is_empty()
            && ghost.survivors.iter().all(target)
    };
    holder.id.as_ref().is_some_and(target)
        || plan.rows.iter().any(|row| holder.id.is_none() && row.id.pid == holder.pid)
        || before.holders.iter().any(kept)
}

/// A target that lives.
fn left(after: &View, plan: &KillPlan, row: &PlanRow) -> Option<Remaining> {
    let pid = row.id.pid;
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
fn ghosts(after: &View, plan: &KillPlan, targets: &HashSet<ProcId>) -> Vec<Remaining> {
    let of_plan =
        |h: &&Holder| h.id.is_none() && plan.rows.iter().any(|row| row.id.pid == h.pid) && h.listed;
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

/// Stands under the first target that held memory there.
fn missing(plan: &KillPlan, part: &Freed) -> Remaining {
    let held = |row: &&PlanRow| row.bytes.iter().any(|share| share.gpu == part.gpu);
    let pid = plan.rows.iter().find(held).map_or(Pid(0), |row| row.id.pid);
    let lacking = part.expected - part.freed;
    Remaining {
        pid,
        bytes: None,
        reason: format!(
            "{lacking} on GPU {} did not come back yet: the driver may still be taking it down, or \
             another process took it",
            part.index
        ),
        command: None,
    }
}

/// Both figures in the unit of what was expected.
fn sentence(freed: &[Freed]) -> String {
    let sum = |figure: fn(&Freed) -> Bytes| freed.iter().map(figure).sum::<Bytes>();
    let (got, expected) = (sum(|part| part.freed), sum(|part| part.expected));
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
    if gpus.is_empty() {
        return "nothing was expected to come back".to_owned();
    }
    format!("freed {got} of {text} on GPU {}", gpus.join(", "))
}
