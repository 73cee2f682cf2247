//! What people try first and what cannot help here.

use crate::oom::clues::Mark;
use crate::oom::diagnose::{Confidence, Diagnosis, Finding, show};
use crate::oom::engines::is_training;
use crate::oom::figures::Slot;
use crate::oom::judge::{Case, Outcome};
use crate::oom::limits::SHARE;
use crate::oom::numbers::Numbers;
use crate::oom::signatures::Stage;

/// One sentence each, the most tempting first; four at the most.
pub(in crate::oom) fn useless(case: &Case, n: &Numbers, finding: &Finding) -> Vec<String> {
    if case.outcome != Outcome::Gpu {
        return on_the_host(case, n, finding).into_iter().collect();
    }
    let mut lines = of_the_allocator(case, n, finding);
    lines.extend(of_the_step(case, n, finding));
    if case.software == "vllm" && case.figures.get(Slot::KvNeeded).is_some() {
        lines.push("empty_cache(): the cache is made once and never given back.".to_owned());
    }
    if let Some(free) = n.free.filter(|_| finding.refused) {
        // PyTorch's limits are parts of the whole: those of a larger GPU are larger.
        let part = finding.cause == Some(SHARE) && is_torch(case) && !case.has(Mark::Vgpu);
        let larger = if part { "" } else { ", a larger GPU" };
        lines.push(format!("Ending other processes{larger}: {} was free.", show(free)));
    } else if finding.diagnosis != Diagnosis::OtherProcessHoldsMemory
        && n.this_process.is_some()
        && n.held_by_others == 0
        && !n.unified
    {
        lines.push("Ending other processes: this one is alone on the device.".to_owned());
    }
    if own_memory(case, n, finding) {
        lines.push("More system RAM or swap: it is the GPU's own memory that is short.".to_owned());
    }
    lines.truncate(4);
    lines
}

/// Of the host's memory.
fn on_the_host(case: &Case, n: &Numbers, finding: &Finding) -> Option<String> {
    // What Ollama leaves to the host is what has no room on the GPU: there more of that helps.
    if finding.diagnosis != Diagnosis::HostRamNotVram || case.software == "ollama" {
        return None;
    }
    let had = n.free.filter(|free| Some(*free) > n.requested);
    // A kill without a figure may have other reasons.
    let certain = finding.confidence == Confidence::Certain;
    let why = match had {
        Some(free) => format!("the GPU had {} free", show(free)),
        None if certain => "it was the host's memory that ran out".to_owned(),
        None => return None,
    };
    Some(format!("empty_cache(), expandable_segments, ending processes on the GPU: {why}."))
}

/// Whether it is the GPU's own memory that ran out: not where it is the system's, where it can spill
/// into that or is told to, where a share or another limit was reached, and where nothing was allocated.
fn own_memory(case: &Case, n: &Numbers, finding: &Finding) -> bool {
    let shared = n.unified
        || matches!(case.software, "pytorch-mps" | "pytorch-directml")
        || case.events.iter().any(|event| {
            let id = event.signature.id;
            matches!(id, "blender.both" | "lmstudio") || id.starts_with("ggml.metal")
        });
    let managed = case.software == "rapids-rmm";
    let share = managed || n.allowed.is_some() || finding.cause == Some(SHARE);
    !shared && !finding.refused && !share
}

/// Settings of PyTorch's allocator.
fn of_the_allocator(case: &Case, n: &Numbers, finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    let torch = is_torch(case);
    if case.has(Mark::ExpandableOn) && torch && finding.diagnosis == Diagnosis::Fragmentation {
        lines.push("expandable_segments:True: it is set already.".to_owned());
    }
    if let (Some(unallocated), Some(requested)) = (n.unallocated, n.requested)
        && torch
        && !matches!(finding.diagnosis, Diagnosis::Fragmentation | Diagnosis::UnknownGpuOom)
        && unallocated < requested
    {
        lines.push(format!(
            "expandable_segments, max_split_size_mb, empty_cache(): only {} is cached, {} was asked for.",
            show(unallocated),
            show(requested)
        ));
    }
    lines
}

/// A smaller step, and checkpointing.
fn of_the_step(case: &Case, n: &Numbers, finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    // A trial run of vLLM takes what is left beside its weights.
    let fixed = matches!(case.stage, Stage::Weights | Stage::Optimizer)
        && case.event().is_none_or(|event| event.signature.id != "vllm.no_blocks");
    if fixed && finding.diagnosis == Diagnosis::ModelTooBig {
        let what = if case.stage == Stage::Weights { "weights" } else { "optimizer states" };
        lines.push(format!("A smaller batch: {what} do not depend on it."));
    }
    let had_room = n.requested.zip(n.free).is_some_and(|(requested, free)| requested < free);
    let smaller = finding.fixes.contains(&4);
    if finding.diagnosis == Diagnosis::UnknownGpuOom && had_room && !smaller {
        lines.push("A smaller batch: there was room for it.".to_owned());
    }
    if finding.diagnosis == Diagnosis::LeakOrGrowth {
        lines.push("A smaller batch or a larger GPU: it only fails later.".to_owned());
    }
    if !is_training(case)
        && finding.diagnosis == Diagnosis::BatchOrActivationTooBig
        && is_torch(case)
    {
        lines.push("Gradient checkpointing: nothing is trained here.".to_owned());
    }
    lines
}

fn is_torch(case: &Case) -> bool {
    case.event().is_some_and(|event| event.signature.id.starts_with("torch."))
}
