//! The rung of the ladder that follows from a traceback.

use super::clues::Mark;
use super::diagnose::{Confidence, Diagnosis, Finding, desktop_likely, show};
use super::engines::{is_training, shortage};
use super::judge::Case;
use super::numbers::Numbers;
use super::signatures::Stage;

/// What the traceback shows.
pub(super) fn by_frame(case: &Case, n: &Numbers) -> Option<Finding> {
    let mut found = by_stage(case, n)?;
    found.why.extend(shortage(n));
    let rest = n.rest_of_system().filter(|_| case.has(Mark::Jetson));
    if let Some(rest) = rest.filter(|rest| Some(*rest) >= n.short()) {
        found.why.push(format!(
            "the GPU shares the system's memory: the rest of it holds {}",
            show(rest)
        ));
        found.fixes.push(3);
    }
    if case.software == "pytorch-mps" && n.allowed.is_some() {
        found.fixes.push(6);
    }
    if let (Some(unallocated), Some(reserved)) = (n.unallocated, n.reserved)
        && reserved > 0
    {
        found.why.push(format!(
            "only {:.1} % of what PyTorch reserved is not allocated: it is used, not fragmented",
            unallocated as f64 * 100.0 / reserved as f64
        ));
    }
    if case.event().is_some_and(|event| event.signature.id == "torch.nvml") {
        let text = "this assertion stands for an out-of-memory message that could not be written";
        found.why.insert(0, text.to_owned());
    }
    if case.has(Mark::NoCaching) {
        let text = "caching is off: it cannot be fragmentation, and the message has no figures";
        found.why.push(text.to_owned());
    }
    Some(found)
}

fn by_stage(case: &Case, n: &Numbers) -> Option<Finding> {
    use Diagnosis::{BatchOrActivationTooBig, KvCacheTooBig, ModelTooBig, OtherProcessHoldsMemory};
    let likely = Confidence::Likely;
    let training = is_training(case);
    Some(match case.stage {
        Stage::Optimizer => Finding::new(
            ModelTooBig,
            likely,
            &[2, 9],
            "it failed while the optimizer's state was made: weights, gradients and states do not fit, \
             whatever the batch",
        ),
        Stage::Weights if case.has(Mark::FourBit) => Finding::new(
            ModelTooBig,
            likely,
            &[9, 5, 3],
            "it failed while weights were loaded, and they are 4-bit already",
        ),
        Stage::Weights => Finding::new(
            ModelTooBig,
            likely,
            &[2, 5, 9],
            "it failed while weights were loaded or moved to the device",
        ),
        Stage::Startup => Finding::new(
            OtherProcessHoldsMemory,
            likely,
            if desktop_likely(case) && n.closing_may_help() { &[3, 8] } else { &[3] },
            "it failed before anything of its own was on the device",
        ),
        Stage::Kv => Finding::new(
            KvCacheTooBig,
            likely,
            &[1, 5],
            "it failed while keys and values of the context were stored",
        ),
        stage => {
            let text = step(stage, training, case, n)?;
            let deep = training && !matches!(stage, Stage::Decode | Stage::Loss);
            let seven = deep && !case.has(Mark::CheckpointingOn);
            let fixes: &[u8] = if seven { &[4, 7] } else { &[4] };
            let weak = stage == Stage::Unknown && !training;
            let sure = if weak { Confidence::Possible } else { likely };
            Finding::new(BatchOrActivationTooBig, sure, fixes, text)
        }
    })
}

/// What one step was doing; `None` where nothing says it.
fn step(stage: Stage, training: bool, case: &Case, n: &Numbers) -> Option<&'static str> {
    let own = n.this_process.or(n.reserved).zip(n.total);
    let alone =
        n.held_by_others < n.margin() && own.is_some_and(|(own, total)| own >= total / 4 * 3);
    Some(match stage {
        Stage::Backward => "it failed in the backward pass: the activations of one step do not fit",
        Stage::Loss => "it failed in the loss: logits of one step do not fit",
        Stage::Attention => "it failed in attention: its scores grow with the square of the length",
        Stage::Decode => {
            "it failed while latents were decoded: one picture or all frames at once do not fit"
        }
        Stage::Forward => "it failed in a forward pass: the activations of one step do not fit",
        _ if training => "the program was training: the activations of one step do not fit",
        _ if array_library(case.software) => "one array is larger than what is left",
        _ if case.software == "tensorrt" => {
            "the execution context for the largest shapes does not fit"
        }
        _ if alone => "this process alone holds nearly all of the device, and nothing shows a leak",
        _ => return None,
    })
}

/// Programs that do nothing but compute on arrays: what does not fit is one step of theirs.
fn array_library(software: &str) -> bool {
    const LIBRARIES: [&str; 15] = [
        "cupy",
        "numba",
        "rapids-rmm",
        "jax",
        "tensorflow",
        "paddle",
        "mxnet",
        "onnxruntime",
        "warp",
        "opencv",
        "pytorch-mps",
        "comfyui",
        "stable-diffusion-webui",
        "ctranslate2",
        "tensorrt",
    ];
    LIBRARIES.contains(&software)
}
