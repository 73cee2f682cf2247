//! What stands in the cells of the table, and how they are ordered.

use std::cmp::Ordering;

use super::{FieldId, state_word};
use crate::analyze::{Class, Fragmentation, Growth, Holder};
use crate::sample::GpuSample;
use crate::units::{Bytes, age};

/// The label of a GPU: its number; of a MIG instance `0:3`.
pub fn gpu_label(gpu: &GpuSample) -> String {
    gpu.label()
}

/// Whether its process was not looked at yet, so that its command is not known.
pub fn not_looked_at(holder: &Holder) -> bool {
    holder.process.is_none() && holder.verdict.evidence.iter().any(|fact| fact.key == "not_looked")
}

/// What stands in the place of a command that is not known.
pub fn without_command(holder: &Holder) -> &'static str {
    match holder.verdict.class {
        Class::Ghost if holder.survivors.is_empty() => "a dead process",
        Class::Ghost => "a dead process: see its survivors",
        _ if not_looked_at(holder) => "not looked at yet",
        _ => "unknown",
    }
}

/// A cell of a holder: the text of a column. `-` where nothing is known.
pub fn cell(id: FieldId, holder: &Holder) -> String {
    let process = holder.process.as_ref();
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    match id {
        FieldId::Gpu => holder.index.to_string(),
        FieldId::Pid => holder.pid.to_string(),
        FieldId::User => known(user(holder)),
        FieldId::State => state_word(&holder.verdict).to_owned(),
        FieldId::Vram => known(holder.bytes.get().map(Bytes::short)),
        FieldId::Delta => delta(holder.growth),
        FieldId::Fragmentation => known(fragmented_percent(holder).map(|p| format!("{p:.0}%"))),
        FieldId::Sm => known(holder.sm.get().map(|p| format!("{:.0}", p.0))),
        FieldId::Age => known(holder.age_ms.get().map(age)),
        FieldId::Cpu => known(process.and_then(|p| p.cpu.get()).map(|p| format!("{:.0}", p.0))),
        FieldId::Rss => known(process.and_then(|p| p.rss.get()).map(Bytes::short)),
        FieldId::Peak => known(holder.peak.get().map(Bytes::short)),
        FieldId::Unit => known(unit(holder)),
        FieldId::Command => holder.command(),
        FieldId::Kind => holder.kinds.letters(),
        FieldId::Kv => known(kv_used(holder).map(|p| format!("{p:.0}%"))),
        _ => String::new(),
    }
}

fn user(holder: &Holder) -> Option<String> {
    let process = holder.process.as_ref()?;
    let uid = || process.uid.get().map(|uid| uid.to_string());
    process.user.value().cloned().or_else(uid)
}

/// What manages it: Slurm job, container or systemd unit.
fn unit(holder: &Holder) -> Option<String> {
    let process = holder.process.as_ref()?;
    let slurm = process.slurm_job.as_ref().map(|job| format!("slurm {job}"));
    let container = || {
        let container = process.container.as_ref()?;
        let id: String = container.id.as_deref().unwrap_or_default().chars().take(12).collect();
        Some(format!("{} {id}", container.runtime).trim_end().to_owned())
    };
    slurm.or_else(container).or_else(|| process.unit.clone())
}

/// Bytes a minute with their sign: `+1.2G`, `0`, `-512M`; `-` before anything can be said.
pub fn delta(growth: Growth) -> String {
    let Some(per_minute) = slope(growth) else { return "-".to_owned() };
    let size = Bytes(per_minute.abs() as u64);
    match size {
        // Less is the noise of a single page table.
        Bytes(0..=1_048_575) => "0".to_owned(),
        _ if per_minute < 0.0 => format!("-{}", size.short()),
        _ => format!("+{}", size.short()),
    }
}

/// The slope in bytes a minute; `None` before anything can be said.
pub const fn slope(growth: Growth) -> Option<f64> {
    match growth {
        Growth::NotYet => None,
        Growth::Steady => Some(0.0),
        Growth::Changing { per_minute } | Growth::Trend { per_minute, .. } => Some(per_minute.0),
    }
}

/// What is cached by its allocator, where that could be read.
pub const fn cached(holder: &Holder) -> Option<Bytes> {
    match holder.fragmentation {
        Fragmentation::None => None,
        Fragmentation::CachedOnly { cached } | Fragmentation::Blocks { cached, .. } => Some(cached),
    }
}

/// The fragmented share of what a holder holds, in per cent; `None` without a basis.
pub fn fragmented_percent(holder: &Holder) -> Option<f64> {
    let Fragmentation::Blocks { fragmented, .. } = holder.fragmentation else { return None };
    let held = holder.bytes.get()?;
    (held.0 > 0).then(|| (fragmented.0 as f64 * 100.0 / held.0 as f64).min(100.0))
}

/// How much of its server's cache holds tokens, in per cent, as that reports.
fn kv_used(holder: &Holder) -> Option<f64> {
    Some(f64::from(holder.server.as_ref()?.value()?.kv_used?.0))
}

/// Orders two holders by a field, the smaller first; what is absent sorts as the smallest.
pub fn compare(id: FieldId, a: &Holder, b: &Holder) -> Ordering {
    match id {
        FieldId::Gpu => a.index.cmp(&b.index),
        FieldId::Pid => a.pid.cmp(&b.pid),
        FieldId::State => {
            let rank = |h: &Holder| (!h.verdict.zombie, h.verdict.class);
            rank(a).cmp(&rank(b))
        }
        FieldId::User | FieldId::Unit | FieldId::Command | FieldId::Kind => {
            cell(id, a).cmp(&cell(id, b))
        }
        _ => number(id, a).unwrap_or(f64::MIN).total_cmp(&number(id, b).unwrap_or(f64::MIN)),
    }
}

/// The field as a number, in its unit; `None` where it is absent or words.
pub fn number(id: FieldId, holder: &Holder) -> Option<f64> {
    let process = holder.process.as_ref();
    match id {
        FieldId::Gpu => Some(f64::from(holder.index.0)),
        FieldId::Pid => Some(f64::from(holder.pid.0)),
        FieldId::Vram => holder.bytes.get().map(|bytes| bytes.0 as f64),
        FieldId::Delta => slope(holder.growth),
        FieldId::Fragmentation => fragmented_percent(holder),
        FieldId::Sm => holder.sm.get().map(|p| f64::from(p.0)),
        FieldId::Age => holder.age_ms.get().map(|ms| ms as f64),
        FieldId::Cpu => process?.cpu.get().map(|p| f64::from(p.0)),
        FieldId::Rss => process?.rss.get().map(|bytes| bytes.0 as f64),
        FieldId::Peak => holder.peak.get().map(|bytes| bytes.0 as f64),
        FieldId::Kv => kv_used(holder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BytesPerMinute;

    #[test]
    fn a_slope_has_a_sign_and_no_noise() {
        let moving = |n| Growth::Changing { per_minute: BytesPerMinute(n) };
        assert_eq!(delta(moving(1_288_490_188.0)), "+1.2G");
        assert_eq!(delta(moving(-536_870_912.0)), "-512M");
        assert_eq!(delta(moving(1000.0)), "0");
        assert_eq!(delta(Growth::Steady), "0");
        assert_eq!(delta(Growth::NotYet), "-");
    }
}
