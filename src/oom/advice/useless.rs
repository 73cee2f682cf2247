//! What people try first and what cannot help here.

use crate::oom::clues::Mark;
use crate::oom::diagnose::{Diagnosis, Finding, show};
use crate::oom::engines::is_training;
use crate::oom::figures::Slot;
use crate::oom::judge::{Case, Outcome};
use crate::oom::numbers::Numbers;
use crate::oom::signatures::Stage;

/// One sentence each, the most tempting first; four at the most.
pub(in crate::oom) fn useless(case: &Case, n: &Numbers, finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    if case.outcome != Outcome::Gpu {
        if finding.diagnosis == Diagnosis::HostRamNotVram {
            lines.push(
                "A smaller batch, 4-bit weights or a larger GPU: the GPU was not full.".to_owned(),
            );
        }
        return lines;
    }
    let torch = case.event().is_some_and(|event| event.signature.id.starts_with("torch."));
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
    let fixed = matches!(case.stage, Stage::Weights | Stage::Optimizer);
    if fixed && finding.diagnosis == Diagnosis::ModelTooBig {
        let what = if case.stage == Stage::Weights { "Weights" } else { "Optimizer states" };
        lines.push(format!("A smaller batch: {} do not depend on it.", what.to_lowercase()));
    }
    if finding.diagnosis == Diagnosis::UnknownGpuOom && n.requested < n.free && n.free.is_some() {
        lines.push("A smaller batch: there was room for it.".to_owned());
    }
    if finding.diagnosis == Diagnosis::LeakOrGrowth {
        lines.push("A smaller batch or a larger GPU: it only fails later.".to_owned());
    }
    if !is_training(case) && finding.diagnosis == Diagnosis::BatchOrActivationTooBig && torch {
        lines.push("Gradient checkpointing: nothing is trained here.".to_owned());
    }
    if case.software == "vllm" && case.figures.get(Slot::KvNeeded).is_some() {
        lines.push("empty_cache(): the cache is made once and never given back.".to_owned());
    }
    if finding.diagnosis != Diagnosis::OtherProcessHoldsMemory
        && n.this_process.is_some()
        && n.held_by_others == 0
    {
        lines.push("Ending other processes: this one is alone on the device.".to_owned());
    }
    lines.push("More system RAM or swap: the GPU's own memory ran out.".to_owned());
    lines.truncate(4);
    lines
}
