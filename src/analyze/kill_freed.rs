//! What came back on one GPU, from what the driver told before and after an order. What it did not
//! tell makes the figure unknown, never 0.

use serde::Serialize;

use super::kill_plan::{ExpectedBytes, KillPlan};
use super::{GpuView, Holder, View};
use crate::ids::{GpuIndex, GpuUuid, ProcId};
use crate::sample::{Reading, Why};
use crate::units::Bytes;

/// The share of what was expected that counts as all of it, in per cent.
const ENOUGH_PERCENT: u64 = 90;

/// One GPU's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Which.
    pub gpu: GpuUuid,
    /// Its number.
    pub index: GpuIndex,
    /// As it was listed.
    pub expected: Bytes,
    /// By how much `used` fell, what others took meanwhile counted in; absent where either could not
    /// be told, before or after.
    pub freed: Reading<Bytes>,
    /// What could not be read, where the figure is absent for that: `the list of processes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

impl Freed {
    /// Of a GPU on which nobody has looked since.
    pub(super) fn unseen(part: &ExpectedBytes) -> Self {
        Self::new(part, Reading::Absent(Why::TimedOut), None)
    }

    /// On the GPU of `part`, from the view before the order and one after it.
    pub(super) fn between(
        before: &View,
        after: &View,
        plan: &KillPlan,
        part: &ExpectedBytes,
    ) -> Self {
        match fell(before, after, plan, part) {
            Ok(fell) => {
                let freed = u64::try_from(fell.max(0)).unwrap_or(u64::MAX);
                Self::new(part, Reading::Value(Bytes(freed).min(part.bytes)), None)
            }
            Err((what, why)) => Self::new(part, Reading::Absent(why), Some(what)),
        }
    }

    fn new(part: &ExpectedBytes, freed: Reading<Bytes>, unread: Option<String>) -> Self {
        Self { gpu: part.gpu.clone(), index: part.index, expected: part.bytes, freed, unread }
    }

    /// Whether all of it came back; no where that is not known.
    pub(super) fn enough(&self) -> bool {
        self.freed.get().is_some_and(|freed| {
            let enough = u128::from(self.expected.0) * u128::from(ENOUGH_PERCENT);
            u128::from(freed.0) * 100 >= enough
        })
    }
}

/// What could not be read, and why.
pub(super) type Unread = (String, Why);

/// By how much `used` fell beyond what others gave back or took.
fn fell(
    before: &View,
    after: &View,
    plan: &KillPlan,
    part: &ExpectedBytes,
) -> Result<i128, Unread> {
    let fell = used(before, &part.gpu)? - used(after, &part.gpu)?;
    let others = |view| of_others(view, before, plan, &part.gpu);
    let (first, last) = (others(before), others(after));
    let mut grew = 0;
    for old in &first {
        match last.iter().find(|new| is_same(old, new)) {
            Some(new) => grew += held(new, old)? - held(old, new)?,
            None => grew -= held_alone(old)?,
        }
    }
    for new in last.iter().filter(|new| !first.iter().any(|old| is_same(old, new))) {
        grew += held_alone(new)?;
    }
    Ok(fell + grew)
}

/// What is used on a GPU of which everything was told: who is on no list that was read would pass
/// for memory that came back, or that did not.
fn used(view: &View, gpu: &GpuUuid) -> Result<i128, Unread> {
    let gpu = find(view, gpu).ok_or_else(|| ("the GPU".to_owned(), Why::GpuLost))?;
    let ledger = match &gpu.ledger {
        Reading::Value(ledger) => ledger,
        Reading::Absent(why) => return Err(("the GPU's memory".to_owned(), *why)),
    };
    let unread = gpu.sample.unread_lists;
    if let Some(why) = gpu.sample.processes.why() {
        return Err(("the list of processes".to_owned(), why));
    }
    if let Some(why) = unread.graphics.or(unread.mps) {
        let whom = unread.missing().map_or("processes", |missing| missing.0);
        return Err((format!("the list of {whom}"), why));
    }
    Ok(i128::from(ledger.used.0))
}

pub(super) fn find<'a>(view: &'a View, gpu: &GpuUuid) -> Option<&'a GpuView> {
    view.gpus.iter().find(|one| one.sample.uuid == *gpu)
}

fn of_others<'a>(view: &'a View, before: &View, plan: &KillPlan, gpu: &GpuUuid) -> Vec<&'a Holder> {
    let of_others = |h: &&Holder| h.gpu == *gpu && !is_planned(before, plan, h);
    view.holders.iter().filter(of_others).collect()
}

/// Whether two rows of one GPU are of one process. One that could not be looked at has its pid alone.
fn is_same(old: &Holder, new: &Holder) -> bool {
    let other = old.id.zip(new.id).is_some_and(|(old, new)| old != new);
    old.pid == new.pid && !other
}

/// What a row holds that stands in both views. Of whom neither tells, nothing is known to have
/// changed; one that only the other tells has not taken or given back all of it.
fn held(row: &Holder, other: &Holder) -> Result<i128, Unread> {
    match (row.bytes, other.bytes) {
        (Reading::Value(bytes), _) => Ok(i128::from(bytes.0)),
        (Reading::Absent(_), Reading::Absent(_)) => Ok(0),
        (Reading::Absent(why), Reading::Value(_)) => Err((format!("what {} holds", row.pid), why)),
    }
}

/// What a row holds that stands in one view: others begin and end. Who is in no list, all of which
/// were read, is listed with nothing: children of a job have its devices open too.
fn held_alone(row: &Holder) -> Result<i128, Unread> {
    match row.bytes {
        Reading::Value(bytes) => Ok(i128::from(bytes.0)),
        Reading::Absent(_) if !row.listed => Ok(0),
        Reading::Absent(why) => Err((format!("what {} holds", row.pid), why)),
    }
}

/// What of the plan has no figure: nobody can say how much should come back.
pub(super) fn untold(before: &View, plan: &KillPlan) -> Option<Unread> {
    let rows = before.holders.iter().filter(|h| h.listed && is_planned(before, plan, h));
    let mut untold = rows.filter_map(|row| row.bytes.why().map(|why| (row.pid, why)));
    untold.next().map(|(pid, why)| (format!("what {pid} held"), why))
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
