//! Fixes 4 and 7: activations, which are the swing of what is allocated within a step.

use super::common::{Answer, about, device, fix, saving, severity, training, uses_torch, workload};
use super::per_holder::PerHolder;
use super::{Finding, Provenance, Severity};
use crate::analyze::workload::{Setting, Software};
use crate::analyze::{GpuView, Holder};
use crate::model::savings::{Freed, checkpointing_of, half_batch_of};
use crate::oom::When;
use crate::units::Bytes;

const BATCH: (&str, u8) = ("batch", 4);
const AGAIN: (&str, u8) = ("checkpointing", 7);
/// Swings of less are not worth a change.
const LEAST: Bytes = Bytes::gib(1);

/// Fix 4.
pub static SMALLER_STEP: PerHolder =
    PerHolder { key: BATCH.0, number: BATCH.1, ask: |_, holder, gpu| smaller_step(holder, gpu) };

/// Fix 7.
pub static CHECKPOINTING: PerHolder =
    PerHolder { key: AGAIN.0, number: AGAIN.1, ask: |_, holder, gpu| checkpointing(holder, gpu) };

/// How far a step goes above what stays.
struct Swing {
    peak: Bytes,
    above_now: Bytes,
    /// Whether an allocation has failed already.
    failed: bool,
}

fn swing(holder: &Holder, gpu: &GpuView) -> Result<Swing, Answer> {
    let device = device(holder, gpu)?;
    let pid = holder.pid;
    let Some(peak) = device.peak_allocated.get() else {
        return Err(Answer::CannotTell(format!("the allocator of {pid} does not tell its peak")));
    };
    // Without a step so far there is no swing to speak of.
    if device.allocated == Bytes::ZERO {
        return Err(Answer::NotYet(format!("{pid} has allocated nothing yet")));
    }
    let peak = peak.min(device.reserved.max(device.allocated));
    let failed = device.ooms.get().is_some_and(|n| n > 0);
    Ok(Swing { peak, above_now: peak - device.allocated, failed })
}

impl Swing {
    fn large(&self) -> bool {
        self.above_now >= LEAST && self.above_now.0 >= self.peak.0 / 4
    }

    fn evidence(&self) -> String {
        format!("allocated peaks at {}, {} above now", self.peak, self.above_now)
    }
}

fn saves(holder: &Holder, freed: Freed) -> Option<super::Saving> {
    saving(holder, [freed.low, freed.bytes, freed.high], Provenance::Estimated)
}

fn diffusion(holder: &Holder) -> bool {
    let software = holder.workload.as_ref().map(|workload| workload.software);
    matches!(software, Some(Software::Diffusers | Software::ComfyUi | Software::A1111))
}

/// A finding about a step, the graver where one has failed.
fn step(
    holder: &Holder,
    gpu: &GpuView,
    key: (&'static str, u8),
    swing: &Swing,
    headline: String,
) -> Finding {
    let grave = if swing.failed { Severity::Warning } else { severity(gpu) };
    let mut found = about(holder, key, grave, headline);
    found.evidence.push(swing.evidence());
    if swing.failed {
        found.evidence.push("its allocator has failed before".to_owned());
    }
    found
}

fn smaller_step(holder: &Holder, gpu: &GpuView) -> Answer {
    if !uses_torch(holder) {
        return workload(holder).err().unwrap_or(Answer::Clear);
    }
    let trains = training(holder);
    if trains.is_none() && !diffusion(holder) {
        return no_training(holder);
    }
    let swing = match swing(holder, gpu) {
        Ok(swing) => swing,
        Err(answer) => return answer,
    };
    if !swing.large() {
        return Answer::Clear;
    }
    let headline = format!("{} takes up to {} for one step", holder.pid, swing.above_now);
    let mut found = step(holder, gpu, BATCH, &swing, headline);
    let number = |setting| holder.workload.as_ref()?.number(setting);
    let batch = number(Setting::Batch);
    if let Some(batch) = batch {
        found.evidence.push(format!("batch {batch}"));
    }
    let value = |name: &str| match (name, batch) {
        ("batch_new", Some(batch)) if batch > 1 && batch.is_multiple_of(2) => {
            Some((batch / 2).to_string())
        }
        ("accumulation", Some(batch)) if batch > 1 && batch.is_multiple_of(2) => {
            let now = number(Setting::Accumulation).unwrap_or(1);
            Some(now.saturating_mul(2).to_string())
        }
        ("factor", Some(batch)) if batch > 1 && batch.is_multiple_of(2) => Some("2".to_owned()),
        _ => None,
    };
    let saves = saves(holder, half_batch_of(swing.above_now.0));
    let made = match (trains.is_some(), batch) {
        // One sample is as few as it gets: only a shorter one is less.
        (true, Some(0 | 1)) => {
            fix(holder, (BATCH.1, "a shorter sequence"), &[When::Always], saves, &value)
        }
        (true, _) => fix(holder, (BATCH.1, "half the batch"), trains_with(holder), saves, &value),
        (false, _) => fix(holder, (BATCH.1, "smaller pieces"), &[When::Always], saves, &value),
    };
    found.fixes.extend(made);
    Answer::Hit(found)
}

/// Whose arguments are its own: those of the Trainer of transformers only where it is that.
fn trains_with(holder: &Holder) -> &'static [When] {
    match holder.workload.as_ref().map(|workload| workload.software) {
        Some(Software::Transformers) => &[When::HfTraining, When::Training],
        _ => &[When::Training],
    }
}

fn checkpointing(holder: &Holder, gpu: &GpuView) -> Answer {
    // It recomputes on the way back: without one it does nothing.
    let Some(sign) = training(holder) else { return no_training(holder) };
    let on = holder.workload.as_ref().and_then(|w| w.get(Setting::Checkpointing));
    if on.is_some_and(|found| !is_off(&found.value)) {
        return Answer::Clear;
    }
    let swing = match swing(holder, gpu) {
        Ok(swing) => swing,
        Err(answer) => return answer,
    };
    if !swing.large() {
        return Answer::Clear;
    }
    let headline = format!("{} trains, activations about {}", holder.pid, swing.above_now);
    let mut found = step(holder, gpu, AGAIN, &swing, headline);
    found.evidence.push(format!("training: {sign}"));
    let saves = saves(holder, checkpointing_of(swing.above_now.0));
    let title = (AGAIN.1, "compute activations again");
    let holds = [trains_with(holder), &[When::Always]].concat();
    found.fixes.extend(fix(holder, title, &holds, saves, &|_| None));
    Answer::Hit(found)
}

/// Without a sign of training it is none, where its arguments were read.
fn no_training(holder: &Holder) -> Answer {
    let why = holder.process.as_ref().and_then(|process| process.cmdline.why());
    why.map_or(Answer::Clear, |why| {
        Answer::CannotTell(format!("whether {} trains: {}", holder.pid, why.words()))
    })
}

fn is_off(value: &str) -> bool {
    ["false", "0", "off", "no"].iter().any(|off| value.eq_ignore_ascii_case(off))
}
