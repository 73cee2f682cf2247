//! Limits that are not the card's: a slice of it, a quota of MPS, an allocator without a cache.

use super::Severity;
use super::common::{Answer, about, fix, margin, not_told, uses_torch, variable, workload};
use super::per_holder::PerHolder;
use crate::analyze::workload::Software;
use crate::analyze::{GpuView, Holder, View};
use crate::oom::When;
use crate::sample::Why;
use crate::units::{Bytes, age};

const LIMIT: &str = "mig_limit";
const CACHING: &str = "no_caching";
/// From this age on it is no short experiment, in milliseconds.
const IN_EARNEST_MS: u64 = 600_000;
/// How MPS's clients are limited: `0=2G,1=10240M`.
const QUOTA: &str = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

/// A slice or a quota instead of the whole card.
pub static OTHER_LIMIT: PerHolder = PerHolder { key: LIMIT, number: 0, ask: limit };

/// An allocator that was told not to cache.
pub static NO_CACHING: PerHolder =
    PerHolder { key: CACHING, number: 0, ask: |_, holder, _| no_caching(holder) };

fn limit(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let slice = slice(view, holder, gpu);
    if matches!(slice, Answer::Hit(_)) {
        return slice;
    }
    if let Some(quota) = variable(holder, QUOTA) {
        return quota_of(holder, quota);
    }
    if !holder.kinds.mps {
        return slice;
    }
    let pid = holder.pid;
    match holder.process.as_ref().and_then(|process| process.environment.as_ref()) {
        None => Answer::NotYet(format!("the environment of {pid} has not been read yet")),
        Some(read) if read.value().is_none() => Answer::CannotTell(format!(
            "the environment of {pid} cannot be read: it may set a quota"
        )),
        Some(_) => slice,
    }
}

fn slice(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let Some(mig) = gpu.sample.mig.as_ref() else { return Answer::Clear };
    let Some(memory) = gpu.sample.memory.get() else { return not_told(gpu) };
    // A slice with room left limits nobody yet.
    let full = memory.free < margin(memory.total).max(Bytes(memory.total.0 / 10));
    if !full {
        return Answer::Clear;
    }
    let pid = holder.pid;
    let Some(held) = holder.bytes.get() else {
        return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
    };
    if held < Bytes(memory.total.0 / 10) {
        return Answer::Clear;
    }
    let headline = format!("{pid} fills its slice of {}, not the card", memory.total);
    let mut found = about(holder, (LIMIT, 0), Severity::Warning, headline);
    found.evidence.push(format!("{} of the slice are free", memory.free));
    let parent = view.gpus.iter().find(|other| other.sample.uuid == mig.parent);
    let card = parent.and_then(|parent| parent.sample.memory.get());
    found.evidence.extend(card.map(|card| format!("the card has {}", card.total)));
    found.fixes.extend(fix(holder, (0, "a larger slice"), &[When::Slice], None, &|_| None));
    Answer::Hit(found)
}

fn quota_of(holder: &Holder, quota: &str) -> Answer {
    let pid = holder.pid;
    let all: Vec<Bytes> = quota
        .split(',')
        .filter_map(|part| part.split_once('='))
        .filter_map(|(_, size)| size.trim().parse().ok())
        .collect();
    let Some(limit) = all.iter().min().copied().filter(|limit| *limit > Bytes::ZERO) else {
        return Answer::CannotTell(format!("{QUOTA} of {pid} cannot be read"));
    };
    let Some(held) = holder.bytes.get() else {
        return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
    };
    if held.0 < limit.0 / 10 * 8 {
        return Answer::Clear;
    }
    let headline = format!("{pid} holds {held} of its quota of {limit}");
    let mut found = about(holder, (LIMIT, 0), Severity::Warning, headline);
    found.evidence.push(format!("environment {QUOTA}"));
    let wanted = Bytes(limit.0.saturating_mul(2)).0 >> 20;
    let value = |name: &str| (name == "quota").then(|| format!("{wanted}M"));
    found.fixes.extend(fix(holder, (0, "a larger quota"), &[When::Quota], None, &value));
    Answer::Hit(found)
}

fn no_caching(holder: &Holder) -> Answer {
    const NAME: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";
    if !may_be_torch(holder) {
        return workload(holder).err().unwrap_or(Answer::Clear);
    }
    let pid = holder.pid;
    match holder.process.as_ref().and_then(|process| process.environment.as_ref()) {
        None => return Answer::NotYet(format!("the environment of {pid} has not been read yet")),
        Some(environment) => {
            if let Some(why) = environment.why() {
                let why = if why == Why::NotAsked { Why::NotYet } else { why };
                return Answer::CannotTell(format!("the environment of {pid}: {}", why.words()));
            }
        }
    }
    // The program asks whether the name is set: any value turns caching off, 0 as well.
    let Some(set) = variable(holder, NAME) else { return Answer::Clear };
    let old = holder.age_ms.get().filter(|age| *age >= IN_EARNEST_MS);
    let severity = if old.is_some() { Severity::Warning } else { Severity::Notice };
    let headline = format!("{pid} runs without the caching allocator");
    let mut found = about(holder, (CACHING, 0), severity, headline);
    let zero = if set == "0" { " (0 turns it off as well)" } else { "" };
    found.evidence.push(format!("environment {NAME}{zero}"));
    found.evidence.extend(old.map(|ms| format!("it has been running for {}", age(ms))));
    found.evidence.push("every tensor waits for the driver; errors print no sizes".to_owned());
    found.fixes.extend(fix(holder, (0, "let it cache again"), &[When::NoCaching], None, &|_| None));
    Answer::Hit(found)
}

/// A Python program of which nothing else is known may be one, too.
fn may_be_torch(holder: &Holder) -> bool {
    let read = holder.allocator.as_ref().is_some_and(|sample| sample.value().is_some());
    let python = |comm: &str| comm.starts_with("python") || comm.starts_with("pt_main_thread");
    match &holder.workload {
        Some(workload) => uses_torch(holder) || workload.software == Software::Jupyter || read,
        None => read || holder.process.as_ref().is_some_and(|process| python(&process.comm)),
    }
}
