//! Whom to end, in which order and how: fixed before the first signal, since reparenting hides
//! children afterwards.

use std::collections::HashSet;

use serde::Serialize;

use super::job::{Family, Member, Role};
pub use super::kill_row::PlanRow;
use super::verdict::guard;
use super::{Class, Evidence, Freshness, Holder, View, Weight};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::sample::{KillOrder, KillPreset, KillTarget, ProcSample, Reading};
use crate::units::Bytes;

/// `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// An order, and what a person has to see before it is given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KillPlan {
    /// For the executor. Empty where everything was refused.
    pub order: KillOrder,
    /// Whom it ends, in the order of the signals.
    pub rows: Vec<PlanRow>,
    /// Whom it does not end, and why.
    pub refused: Vec<Refusal>,
    /// Whether a person has to type a word first: somebody else may need one of them.
    pub needs_typed_confirmation: bool,
    /// What should come back, per GPU.
    pub expected: Vec<ExpectedBytes>,
}

/// Memory on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpectedBytes {
    /// Which.
    pub gpu: GpuUuid,
    /// Its number.
    pub index: GpuIndex,
    /// How much.
    pub bytes: Bytes,
}

/// One process that will not be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// As shown.
    pub pid: Pid,
    /// Its identity, where it has one.
    pub id: Option<ProcId>,
    /// What it is called. Hostile text.
    pub name: String,
    /// Why not. May hold hostile text.
    pub reason: String,
    /// The line to type instead.
    pub command: Option<String>,
}

impl KillPlan {
    /// What should come back on all GPUs.
    pub fn expected_total(&self) -> Bytes {
        self.expected.iter().map(|share| share.bytes).sum()
    }

    /// The same, or why not where the driver does not tell what one of them holds.
    pub fn expected_told(&self) -> Reading<Bytes> {
        let untold = self.rows.iter().find_map(|row| row.untold);
        untold.map_or_else(|| Reading::Value(self.expected_total()), Reading::Absent)
    }

    /// Whether there is nobody to end.
    pub const fn is_empty(&self) -> bool {
        self.order.targets.is_empty()
    }
}

/// The plan to end these processes with the whole of their jobs. `preset` is the user's own
/// choice; without one it is `Zombie` where all targets are zombies, else `Gentle`.
pub fn plan(view: &View, targets: &[ProcId], preset: Option<KillPreset>) -> KillPlan {
    let family = Family::new(view);
    let members = family.job(targets);
    let missing = targets.iter().filter(|id| family.find(**id).is_none());
    let mut refused: Vec<_> = missing.map(|id| gone(*id)).collect();
    let zombies: HashSet<ProcId> = zombie_ids(view, |_| true).into_iter().collect();
    let all = !targets.is_empty() && targets.iter().all(|id| zombies.contains(id));
    let preset_or = preset.unwrap_or(if all { KillPreset::Zombie } else { KillPreset::Gentle });
    let plan = settle(view, &family, members, preset.is_some(), &mut refused);
    finish(plan, preset_or, refused)
}

/// The plan to end all zombies: exactly those, on every GPU or on one.
pub fn zombies(view: &View, gpu: Option<GpuIndex>) -> KillPlan {
    let family = Family::new(view);
    let here = |holder: &Holder| gpu.is_none_or(|gpu| holder.index == gpu);
    let members = zombie_ids(view, here)
        .into_iter()
        .filter_map(|id| family.find(id))
        .map(|process| Member { process, role: Role::Target, holds: true })
        .collect();
    let mut refused = Vec::new();
    let settled = settle(view, &family, members, false, &mut refused);
    finish(settled, KillPreset::Zombie, refused)
}

/// What ending exactly these processes would give back, whoever may end them.
pub fn freed_by(view: &View, ids: &[ProcId]) -> Vec<ExpectedBytes> {
    let all: HashSet<ProcId> = ids.iter().copied().collect();
    let (mut sums, mut counted) = (Vec::new(), HashSet::new());
    for id in ids {
        let rows: Vec<_> = view.holders.iter().filter(|holder| holder.id == Some(*id)).collect();
        for part in share(view, &rows, &all, &mut counted) {
            add(&mut sums, &part);
        }
    }
    sums
}

fn zombie_ids(view: &View, fits: impl Fn(&Holder) -> bool) -> Vec<ProcId> {
    // What is not current is not acted on: the pids of an hour ago may be anybody's.
    if !matches!(view.freshness, Freshness::Live | Freshness::Replay | Freshness::Stalled { .. }) {
        return Vec::new();
    }
    let zombies = view.holders.iter().filter(|holder| holder.verdict.zombie && fits(holder));
    let mut ids: Vec<_> = zombies.filter_map(|holder| holder.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The members that may be ended, and whether a word must be typed.
struct Settled {
    rows: Vec<(PlanRow, KillTarget)>,
    typed: bool,
    expected: Vec<ExpectedBytes>,
}

fn settle(
    view: &View,
    family: &Family<'_>,
    mut members: Vec<Member<'_>>,
    explicit: bool,
    refused: &mut Vec<Refusal>,
) -> Settled {
    members.sort_by_key(|member| {
        let rank = match (&member.role, member.holds) {
            (Role::Launcher, _) => 0,
            (_, true) => 1,
            (_, false) => 2,
        };
        (rank, family.depth(member.process), member.process.id.start_ticks, member.process.id)
    });
    let mut settled = Settled { rows: Vec::new(), typed: false, expected: Vec::new() };
    let mut allowed = Vec::new();
    for member in members {
        let rows: Vec<_> =
            view.holders.iter().filter(|h| h.id == Some(member.process.id)).collect();
        match objection(view, &member, &rows, explicit) {
            Some(refusal) => refused.push(refusal),
            None => allowed.push((member, rows)),
        }
    }
    let ids: HashSet<ProcId> = allowed.iter().map(|(member, _)| member.process.id).collect();
    let mut counted = HashSet::new();
    for (member, rows) in allowed {
        settled.typed |= needs_word(&member, &rows);
        let bytes = share(view, &rows, &ids, &mut counted);
        for part in &bytes {
            add(&mut settled.expected, part);
        }
        let carrier = settled.rows.iter().find(|(other, _)| keeps_the_same(view, &rows, other.id));
        let shares_with = carrier.map(|(other, _)| other.id.pid).filter(|_| bytes.is_empty());
        let row = row(&member, &rows, bytes);
        let untold = row.untold.filter(|_| shares_with.is_none());
        let row = PlanRow { untold, shares_with, ..row };
        settled.rows.push((row, target(&member)));
    }
    settled
}

fn add(sums: &mut Vec<ExpectedBytes>, part: &ExpectedBytes) {
    match sums.iter_mut().find(|sum| sum.gpu == part.gpu) {
        Some(sum) => sum.bytes += part.bytes,
        None => sums.push(part.clone()),
    }
}

/// What ending one process gives back: its own rows, and those of the dead whose memory is kept by
/// nobody outside of the plan. The first of several survivors carries it.
fn share(
    view: &View,
    rows: &[&Holder],
    ids: &HashSet<ProcId>,
    counted: &mut HashSet<(GpuUuid, Pid)>,
) -> Vec<ExpectedBytes> {
    let mut sums = Vec::new();
    for row in rows {
        let kept = view.holders.iter().filter(|ghost| {
            ghost.gpu == row.gpu
                && row.id.is_some_and(|id| ghost.survivors.contains(&id))
                && ghost.survivors.iter().all(|id| ids.contains(id))
        });
        for holder in kept.chain([*row]) {
            if let Reading::Value(bytes) = holder.bytes
                && counted.insert((holder.gpu.clone(), holder.pid))
            {
                let (gpu, index) = (holder.gpu.clone(), holder.index);
                add(&mut sums, &ExpectedBytes { gpu, index, bytes });
            }
        }
    }
    sums
}

/// Whether a process keeps the memory of a dead one that another keeps too.
fn keeps_the_same(view: &View, rows: &[&Holder], other: ProcId) -> bool {
    rows.iter().any(|row| {
        let id = row.id;
        view.holders.iter().any(|ghost| {
            ghost.gpu == row.gpu
                && ghost.survivors.contains(&other)
                && id.is_some_and(|id| ghost.survivors.contains(&id))
        })
    })
}

fn row(member: &Member<'_>, rows: &[&Holder], bytes: Vec<ExpectedBytes>) -> PlanRow {
    let zombie = rows.iter().any(|holder| holder.verdict.zombie);
    let main_fact = |evidence: &[Evidence]| {
        evidence.iter().find(|fact| fact.weight == Weight::For).map(|fact| fact.text.clone())
    };
    let fact = rows.first().and_then(|holder| main_fact(&holder.verdict.evidence));
    let reason = match (&member.role, fact) {
        (Role::Launcher, _) => "launched the others".to_owned(),
        (Role::Member(why), _) => why.clone(),
        (Role::Target, Some(fact)) if zombie => format!("zombie: {fact}"),
        (Role::Target, _) => "chosen".to_owned(),
    };
    // Who is in no list has no amount of its own where it keeps that of the dead.
    let counts = |holder: &&&Holder| holder.listed || bytes.is_empty();
    let untold = rows.iter().filter(counts).find_map(|holder| holder.bytes.why());
    PlanRow {
        id: member.process.id,
        user: member.process.user.clone(),
        name: member.process.short_name(),
        untold,
        bytes,
        shares_with: None,
        reason,
        zombie,
    }
}

fn target(member: &Member<'_>) -> KillTarget {
    KillTarget {
        id: member.process.id,
        uid: member.process.uid,
        comm: member.process.comm.clone(),
        must_hold_device: member.holds,
    }
}

fn needs_word(member: &Member<'_>, rows: &[&Holder]) -> bool {
    let guarded = |holder: &&Holder| {
        matches!(holder.verdict.class, Class::Protected | Class::Debugged)
            || (holder.verdict.manager.is_some() && !holder.verdict.zombie)
    };
    guard(member.process).is_some() || member.process.tracer != Pid(0) || rows.iter().any(guarded)
}

/// Why a process is not ended.
fn objection(
    view: &View,
    member: &Member<'_>,
    rows: &[&Holder],
    explicit: bool,
) -> Option<Refusal> {
    let process = member.process;
    let pid = process.id.pid;
    if pid.0 <= 2 || process.flags & KERNEL_THREAD != 0 {
        return Some(refusal(process, "belongs to the kernel or is its first process", None));
    }
    if matches!(view.freshness, Freshness::Past) {
        let reason = "this is an earlier moment";
        return Some(refusal(process, reason, None));
    }
    if let Some(why) = rows.iter().find_map(|holder| hopeless(holder)) {
        return Some(refusal(process, &why, None));
    }
    let euid = view.host.as_ref().map(|host| host.euid);
    if let (Some(euid), Reading::Value(uid)) = (euid, process.uid)
        && euid != 0
        && euid != uid
    {
        let reason = format!("belongs to {}", owner(process, uid));
        return Some(refusal(process, &reason, Some(format!("sudo vramlens kill {pid}"))));
    }
    let managed = rows.iter().find(|holder| !holder.verdict.zombie && !explicit);
    let manager = managed.and_then(|holder| holder.verdict.manager.as_ref())?;
    let reason = format!("is run by {} ({}), which would restart it", manager.kind, manager.name);
    Some(refusal(process, &reason, Some(manager.command.clone())))
}

fn owner(process: &ProcSample, uid: u32) -> String {
    match (&process.user, &process.container) {
        (Reading::Value(name), _) => format!("{name} (uid {uid})"),
        (_, Some(_)) => format!("uid {uid}, a container's user"),
        _ => format!("uid {uid}"),
    }
}

/// What no signal changes.
fn hopeless(holder: &Holder) -> Option<String> {
    let named = |key: &str| {
        let fact = holder.verdict.evidence.iter().find(|fact| fact.key == key);
        fact.map(|fact| fact.text.clone())
    };
    match holder.verdict.class {
        Class::Unkillable => {
            let cure = named("cure").unwrap_or_default();
            Some(format!("no signal ends it: a KILL is pending already; {cure}"))
        }
        Class::Ghost | Class::Reused | Class::OtherNamespace | Class::OtherUser => {
            Some("is not the process that the driver lists".to_owned())
        }
        Class::Defunct => Some("is dead already and holds nothing".to_owned()),
        _ => None,
    }
}

fn refusal(process: &ProcSample, reason: &str, command: Option<String>) -> Refusal {
    Refusal {
        pid: process.id.pid,
        id: Some(process.id),
        name: process.short_name(),
        reason: reason.to_owned(),
        command,
    }
}

fn gone(id: ProcId) -> Refusal {
    Refusal {
        pid: id.pid,
        id: Some(id),
        name: String::new(),
        reason: "has ended, or somebody else has its pid now".to_owned(),
        command: None,
    }
}

fn finish(settled: Settled, preset: KillPreset, refused: Vec<Refusal>) -> KillPlan {
    let (rows, targets) = settled.rows.into_iter().unzip();
    KillPlan {
        order: KillOrder { targets, preset },
        rows,
        refused,
        needs_typed_confirmation: settled.typed,
        expected: settled.expected,
    }
}
