//! What holds of a message, for the rows of lines.

use super::lines::When;
use crate::oom::clues::Mark;
use crate::oom::diagnose::{Diagnosis, Finding};
use crate::oom::engines::is_training;
use crate::oom::facts;
use crate::oom::figures::Slot;
use crate::oom::judge::Case;
use crate::oom::limits::{SHARE, expandable};
use crate::oom::numbers::Numbers;
use crate::oom::signatures::Stage;

/// Whether it holds.
pub(super) fn holds(when: When, case: &Case, n: &Numbers, finding: &Finding) -> bool {
    if let Some(stage) = stage(when) {
        return case.stage == stage;
    }
    if let Some(mark) = mark(when) {
        return case.has(mark);
    }
    let fragmented = finding.diagnosis == Diagnosis::Fragmentation;
    match when {
        When::Always => true,
        When::Training => is_training(case),
        When::HfTraining => is_training(case) && case.has(Mark::HfTrainer),
        When::HfLoss => case.stage == Stage::Loss && case.has(Mark::HfTrainer),
        When::HfAttention => case.stage == Stage::Attention && hf(case),
        When::HfOptimizer => case.stage == Stage::Optimizer && case.has(Mark::HfTrainer),
        When::HfFloat32 => case.has(Mark::Float32) && hf(case),
        When::Hf => hf(case),
        When::OnCuda => {
            !matches!(case.software, "pytorch-mps" | "pytorch-xpu" | "pytorch-directml")
        }
        When::WideCache => !facts::narrow_cache(case),
        When::SingleSample => case.batch == Some(1),
        When::ShareSet => is_share(case, finding),
        When::TorchShare => {
            is_share(case, finding)
                && case.event().is_some_and(|event| event.signature.id.starts_with("torch."))
        }
        When::Vgpu => is_share(case, finding) && case.has(Mark::Vgpu),
        When::Desktop => n.nothing_to_close(),
        When::Fragmented => fragmented,
        // Expandable segments came with 2.1, whose messages name reserved memory by its rest.
        When::FragmentedOld => {
            let old = case.figures.get(Slot::Reserved).is_some();
            fragmented && old && case.stage != Stage::Collective
        }
        When::FragmentedNoVirtualMemory => {
            let without = [Mark::Wsl, Mark::Jetson, Mark::Windows];
            fragmented && without.iter().any(|mark| case.has(*mark))
        }
        When::AlreadyExpandable => fragmented && case.has(Mark::ExpandableOn),
        When::Growing => finding.diagnosis == Diagnosis::LeakOrGrowth,
        When::Siblings => n.siblings(),
        When::ReserveSet => case.figures.get(Slot::Reserve).is_some(),
        When::NoVirtualMemory => {
            (case.has(Mark::Wsl) || case.has(Mark::Jetson))
                && finding.diagnosis == Diagnosis::UnknownGpuOom
                && expandable(case)
        }
        // The others are said of processes that run, not of messages.
        _ => false,
    }
}

/// Where it has to have failed.
const fn stage(when: When) -> Option<Stage> {
    Some(match when {
        When::Startup => Stage::Startup,
        When::TokenPool => Stage::TokenPool,
        When::Warmup => Stage::Warmup,
        When::Attention => Stage::Attention,
        When::Loss => Stage::Loss,
        When::Decode => Stage::Decode,
        When::Capture => Stage::Capture,
        When::Optimizer => Stage::Optimizer,
        When::Collective => Stage::Collective,
        _ => return None,
    })
}

/// What has to stand in the log.
const fn mark(when: When) -> Option<Mark> {
    Some(match when {
        When::FourBit => Mark::FourBit,
        When::SharedMemory => Mark::Jetson,
        When::MapsFull => Mark::MapsFull,
        When::FlashOff => Mark::FlashAttentionOff,
        When::Float32 => Mark::Float32,
        _ => return None,
    })
}

/// A share of the device is what ran out.
pub(super) fn is_share(case: &Case, finding: &Finding) -> bool {
    finding.cause == Some(SHARE)
        || (case.software == "pytorch-mps" && case.figures.get(Slot::Allowed).is_some())
}

/// Whether the log shows the library transformers.
fn hf(case: &Case) -> bool {
    case.has(Mark::HfModel) || case.has(Mark::HfTrainer)
}
