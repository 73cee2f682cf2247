//! The rungs of the ladder that follow from the stage: what an engine names itself, what a traceback
//! shows, and what is no shortage of GPU memory.

use super::clues::Mark;
use super::diagnose::{Confidence, Diagnosis, Finding, show};
use super::figures::Slot;
use super::judge::{Case, Outcome};
use super::numbers::Numbers;
use super::signatures::{Class, Stage};

/// Programs whose own lines name the stage.
pub(super) fn speaks_for_itself(case: &Case) -> bool {
    matches!(case.software, "llama.cpp" | "ollama" | "koboldcpp" | "whisper.cpp" | "lm-studio")
        || (case.software == "vllm" && case.stage == Stage::Capture)
}

/// The program trains: its log has losses, epochs or a backward pass.
pub(super) fn is_training(case: &Case) -> bool {
    matches!(case.stage, Stage::Backward | Stage::Optimizer) || case.has(Mark::Training)
}

/// The same arena failed again for less.
pub(super) fn smaller_fail_too(case: &Case) -> bool {
    let sizes: Vec<u64> = case
        .events
        .iter()
        .filter(|event| event.signature.stage == Stage::Arena)
        .filter_map(|event| event.figures.get(Slot::Requested))
        .collect();
    sizes.windows(2).any(|pair| matches!(pair, [a, b] if b < a))
}

/// What an engine says itself.
pub(super) fn by_stage(case: &Case, n: &Numbers) -> Option<Finding> {
    use Diagnosis::{BatchOrActivationTooBig, KvCacheTooBig, ModelTooBig, UnknownGpuOom};
    let event = case.event()?;
    let engine = event.signature.class == Class::Engine || speaks_for_itself(case);
    let likely = Confidence::Likely;
    let meaning = meaning(case);
    let finding =
        |diagnosis, fixes: &[u8]| Some(Finding::new(diagnosis, likely, fixes, meaning.clone()));
    let mut found = match (case.software, case.stage) {
        ("jax" | "nccl", Stage::Collective | Stage::Capture) => finding(UnknownGpuOom, &[3]),
        (_, Stage::Handle) => finding(UnknownGpuOom, &[3, 4]),
        ("vllm", Stage::Capture) => finding(KvCacheTooBig, &[1, 4]),
        ("sglang", Stage::Capture) => finding(KvCacheTooBig, &[1, 4]),
        ("vllm" | "tgi", Stage::Warmup) => finding(BatchOrActivationTooBig, &[4, 1]),
        _ if !engine => None,
        ("bitsandbytes", _) => finding(ModelTooBig, &[9, 3, 5]),
        ("lm-studio", _) => finding(KvCacheTooBig, &[1, 2, 5]),
        ("vllm", Stage::Kv) => finding(KvCacheTooBig, &[1]),
        ("vllm" | "sglang", Stage::Weights) => finding(ModelTooBig, &[2, 1]),
        ("sglang", Stage::TokenPool) => finding(KvCacheTooBig, &[1, 4]),
        ("tensorrt-llm", _) => finding(KvCacheTooBig, &[1, 4]),
        ("ollama", Stage::Weights) => finding(ModelTooBig, &[5, 2]),
        (_, Stage::Weights) => finding(ModelTooBig, &[5, 2, 1]),
        (_, Stage::Kv) => finding(KvCacheTooBig, &[1, 5]),
        (_, Stage::Compute) => finding(BatchOrActivationTooBig, &[4, 1]),
        ("unreal-engine", _) => finding(BatchOrActivationTooBig, &[4, 8]),
        ("llama.cpp" | "ollama" | "koboldcpp", Stage::Unknown) => finding(ModelTooBig, &[5, 1, 2]),
        (_, Stage::Arena) => finding(BatchOrActivationTooBig, &[4, 6]),
        _ => finding(BatchOrActivationTooBig, &[4]),
    }?;
    found.why.extend(arithmetic(case, n));
    Some(found)
}

/// What the failing message means, as the first sentence.
fn meaning(case: &Case) -> String {
    let own = case.event().map(|event| (event.line, event.last_line, event.signature.meaning));
    let (line, last, own) = own.unwrap_or_default();
    let stage = case.events.iter().find(|other| {
        other.signature.class == Class::Engine
            && other.signature.stage == case.stage
            && other.line + 60 >= line
            && other.line <= last + 60
    });
    match (case.software, case.stage) {
        ("vllm", Stage::Capture) => {
            "the cache took its share of the device first, and recording CUDA graphs found no room".to_owned()
        }
        ("jax", Stage::Collective) if case.has(Mark::XlaFraction) => {
            "XLA took its share of the device in advance (the log sets the fraction) and left NCCL no room \
             for its own buffers"
                .to_owned()
        }
        _ => stage.map_or(own, |stage| stage.signature.meaning).to_owned(),
    }
}

/// Figures around the message that show it.
fn arithmetic(case: &Case, n: &Numbers) -> Vec<String> {
    let get = |slot| case.figures.get(slot);
    let mut lines = Vec::new();
    if let Some((need, have)) = get(Slot::KvNeeded).zip(get(Slot::KvAvailable)) {
        let context =
            get(Slot::Context).map(|tokens| format!(" for {tokens} tokens")).unwrap_or_default();
        lines.push(format!(
            "{} of cache{context} is needed, {} is available: short by {}",
            show(need),
            show(have),
            show(need.saturating_sub(have))
        ));
        if let Some(longest) = get(Slot::SuggestedLength) {
            lines.push(format!("a context of {longest} tokens would fit"));
        }
        return lines;
    }
    if let Some((need, have)) = get(Slot::TokensNeeded).zip(get(Slot::TokensAvailable)) {
        lines.push(format!("{need} tokens were wanted, {have} are left in the pool"));
    }
    if let Some(have) = get(Slot::KvAvailable) {
        lines.push(format!("the cache was given {}", show(have)));
    }
    if case.software == "sglang"
        && let Some((weights, share)) = get(Slot::Weights).zip(get(Slot::Utilization))
    {
        let base = get(Slot::FreeBefore).unwrap_or_default();
        lines.push(format!(
            "the weights take {}; {}.{:02} of {} is {}",
            show(weights),
            share / 1000,
            share % 1000 / 10,
            show(base),
            show(base * share / 1000)
        ));
    }
    match (n.requested, n.free) {
        (Some(requested), Some(free)) if requested > free => lines.push(format!(
            "{} was asked for and {} was free: short by at least {}",
            show(requested),
            show(free),
            show(requested - free)
        )),
        (Some(requested), None) => {
            lines.push(format!("{} was asked for in one buffer", show(requested)))
        }
        _ => {}
    }
    if case.stage == Stage::Kv
        && let Some(context) = get(Slot::Context)
        && case.software != "vllm"
    {
        lines.push(format!("the context that was asked for is {context} tokens"));
    }
    if case.stage == Stage::Compute
        && let Some(batch) = get(Slot::MicroBatch)
    {
        let flash =
            if case.has(Mark::FlashAttentionOff) { ", without flash attention" } else { "" };
        lines.push(format!("that buffer grows with the physical batch: {batch} tokens{flash}"));
    }
    lines
}

/// What the traceback shows.
pub(super) fn by_frame(case: &Case, n: &Numbers) -> Option<Finding> {
    use Diagnosis::{BatchOrActivationTooBig, KvCacheTooBig, ModelTooBig, OtherProcessHoldsMemory};
    let likely = Confidence::Likely;
    let training = is_training(case);
    let mut found = match case.stage {
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
            &[3, 8],
            "it failed before anything of its own was on the device",
        ),
        Stage::Kv => Finding::new(
            KvCacheTooBig,
            likely,
            &[1, 5],
            "it failed while keys and values of the context were stored",
        ),
        stage => {
            let text = step(stage, training, case)?;
            let deep = training && !matches!(stage, Stage::Decode | Stage::Loss);
            let seven = deep && !case.has(Mark::CheckpointingOn);
            let fixes: &[u8] = if seven { &[4, 7] } else { &[4] };
            Finding::new(BatchOrActivationTooBig, likely, fixes, text)
        }
    };
    if let (Some(requested), Some(free)) = (n.requested, n.free) {
        found.why.push(if requested > free {
            format!(
                "{} was asked for and {} was free: short by at least {}",
                show(requested),
                show(free),
                show(requested - free)
            )
        } else {
            format!(
                "{} was asked for and {} was free, in pieces or not for long",
                show(requested),
                show(free)
            )
        });
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
        found.why.insert(
            0,
            "this assertion stands for an out-of-memory message that could not be written".into(),
        );
    }
    if case.has(Mark::NoCaching) {
        found.why.push(
            "caching is off, so it cannot be fragmentation, and the message has no figures".into(),
        );
    }
    Some(found)
}

/// What one step was doing; `None` where nothing says it.
fn step(stage: Stage, training: bool, case: &Case) -> Option<&'static str> {
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
        _ => return None,
    })
}

fn array_library(software: &str) -> bool {
    matches!(
        software,
        "cupy"
            | "numba"
            | "rapids-rmm"
            | "jax"
            | "tensorflow"
            | "paddle"
            | "mxnet"
            | "onnxruntime"
            | "warp"
            | "opencv"
            | "pytorch-mps"
            | "comfyui"
            | "stable-diffusion-webui"
            | "ctranslate2"
    )
}

/// The host ran out.
pub(super) fn host(case: &Case) -> Finding {
    let event = case.event();
    let killed = event.is_some_and(|event| event.signature.class == Class::Killed);
    let fixes: &[u8] = if case.software == "ollama" { &[9, 2] } else { &[] };
    let confidence = if killed { Confidence::Likely } else { Confidence::Certain };
    let meaning = event.map_or("", |event| event.signature.meaning);
    let mut finding = Finding::new(Diagnosis::HostRamNotVram, confidence, fixes, meaning);
    let get = |slot| case.figures.get(slot);
    if let Some(wanted) = get(Slot::HostRequested) {
        let there = get(Slot::HostAvailable)
            .map(|n| format!(", {} was available", show(n)))
            .unwrap_or_default();
        finding.why.push(format!("{} of host memory was asked for{there}", show(wanted)));
    }
    if let Some(rss) = get(Slot::HostRss) {
        finding.why.push(format!("the killed process had {} in RAM", show(rss)));
    }
    if let (Some(requested), Some(free)) = (get(Slot::Requested), get(Slot::Free))
        && free > requested
    {
        finding.why.push(format!(
            "the GPU had {} free when {} was refused: it was not the GPU that was full",
            show(free),
            show(requested)
        ));
    }
    finding
}

/// Memory did not run out, or not for good.
pub(super) fn not_oom(case: &Case) -> Finding {
    let event = case.event();
    let meaning = event.map_or("", |event| event.signature.meaning);
    let fixes: &[u8] =
        if event.is_some_and(|event| event.signature.id == "vllm.profiling") { &[3] } else { &[] };
    let text = match case.outcome {
        Outcome::Recovered => {
            "memory ran out, the program caught it, and it went on: nothing has to be done"
                .to_owned()
        }
        Outcome::Mention => {
            "the words stand in text about such errors, not in an error of this program".to_owned()
        }
        Outcome::Nothing => "no message that is known was found".to_owned(),
        _ => meaning.to_owned(),
    };
    let mut finding = Finding::new(Diagnosis::NotOom, Confidence::Likely, fixes, text);
    if case.outcome == Outcome::Recovered && !meaning.is_empty() {
        finding.why.push(meaning.to_owned());
    }
    finding
}
