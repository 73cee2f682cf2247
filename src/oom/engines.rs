//! The rung of the ladder that follows from what an engine says itself.

use super::clues::Mark;
use super::diagnose::{Confidence, Diagnosis, Finding, show};
use super::figures::Slot;
use super::judge::Case;
use super::limits::SHARE;
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
        ("jax" | "nccl", Stage::Collective | Stage::Capture) => {
            finding(UnknownGpuOom, &[3]).map(|found| found.because(no_room_beside(case)))
        }
        (_, Stage::Handle) => finding(UnknownGpuOom, &[3, 4])
            .map(|found| found.because("no room was left for the handle of a library")),
        ("vllm" | "sglang", Stage::Capture) => finding(KvCacheTooBig, &[1, 4]),
        ("vllm" | "tgi", Stage::Warmup) => finding(BatchOrActivationTooBig, &[4, 1]),
        ("ollama", Stage::Compute) if event.signature.id == "llama.runtime" => {
            finding(ModelTooBig, &[5, 1, 2])
        }
        _ if !engine => None,
        ("bitsandbytes", _) => finding(ModelTooBig, &[9, 3, 5]),
        ("lm-studio", _) if event.signature.id == "lmstudio" => finding(KvCacheTooBig, &[1, 2, 5]),
        ("vllm", Stage::Kv) => finding(KvCacheTooBig, &[1]),
        // The context does not matter before there is a cache, and the pool of SGLang does not
        // shrink with it. Not every program keeps layers on the CPU.
        ("sglang" | "whisper.cpp", Stage::Weights) => finding(ModelTooBig, &[2]),
        ("vllm" | "exllama", Stage::Weights) => finding(ModelTooBig, &[2, 1]),
        ("sglang", Stage::TokenPool) | ("tensorrt-llm", _) => finding(KvCacheTooBig, &[1, 4]),
        (_, Stage::Weights) => finding(ModelTooBig, &[5, 2]),
        // Neither its context nor its layers can be chosen.
        ("whisper.cpp", Stage::Kv | Stage::Compute) => finding(BatchOrActivationTooBig, &[4]),
        (_, Stage::Kv) => finding(KvCacheTooBig, &[1, 5]),
        (_, Stage::Compute) => finding(BatchOrActivationTooBig, &[4, 1]),
        ("unreal-engine", _) => finding(BatchOrActivationTooBig, &[4, 8]),
        ("llama.cpp" | "ollama" | "koboldcpp", Stage::Unknown) => finding(ModelTooBig, &[5, 1, 2]),
        ("rapids-rmm", _) if matches!(event.signature.id, "rmm.pool" | "rmm.limit") => {
            finding(BatchOrActivationTooBig, &[4, 6]).map(|found| found.because(SHARE))
        }
        (_, Stage::Arena) => finding(BatchOrActivationTooBig, &[4, 6]),
        _ => finding(BatchOrActivationTooBig, &[4]),
    }?;
    found.why.extend(arithmetic(case, n));
    Some(found)
}

/// Who left no room for what a library needs beside the pool.
fn no_room_beside(case: &Case) -> &'static str {
    match case.stage {
        _ if case.has(Mark::XlaFraction) => "the pool that XLA takes in advance leaves no room",
        Stage::Collective => "no room was left for the buffers of NCCL",
        _ => "no room was left for CUDA graphs",
    }
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
    lines.extend(share(case));
    lines.extend(shortage(n));
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

/// The weights against the share of the device that SGLang was given.
fn share(case: &Case) -> Option<String> {
    let get = |slot| case.figures.get(slot);
    if case.software != "sglang" {
        return None;
    }
    let (weights, share, base) =
        (get(Slot::Weights)?, get(Slot::Utilization)?, get(Slot::FreeBefore)?);
    Some(format!(
        "the weights take {}; {}.{:02} of {} is {}",
        show(weights),
        share / 1000,
        share % 1000 / 10,
        show(base),
        show(base / 1000 * share)
    ))
}

/// What was asked for against what was free.
pub(super) fn shortage(n: &Numbers) -> Option<String> {
    Some(match (n.requested?, n.free) {
        (requested, Some(free)) if requested > free => format!(
            "{} was asked for and {} was free: short by at least {}",
            show(requested),
            show(free),
            show(requested - free)
        ),
        (requested, Some(free)) => format!(
            "{} was asked for and {} was free, in pieces or not for long",
            show(requested),
            show(free)
        ),
        (requested, None) => format!("{} was asked for at once", show(requested)),
    })
}
