//! The ladder: the first rule that holds names the cause, with the arithmetic that led to it.

use serde::Serialize;

use super::by_frame;
use super::clues::Mark;
use super::engines;
use super::figures::Slot;
use super::harmless;
use super::judge::{Case, Outcome};
use super::limits;
use super::numbers::Numbers;
use super::signatures::{Class, Stage};
use crate::units::Bytes;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Diagnosis {
    /// Reserved memory would have been enough, in one piece.
    Fragmentation,
    /// Weights, gradients or optimizer states do not fit.
    ModelTooBig,
    /// The cache of keys and values does not fit, or took what others need.
    KvCacheTooBig,
    /// Another process holds what is missing.
    OtherProcessHoldsMemory,
    /// One step needs more than is left.
    BatchOrActivationTooBig,
    /// It grows with equal work.
    LeakOrGrowth,
    /// The host ran out of memory, not the GPU.
    HostRamNotVram,
    /// Memory did not run out.
    NotOom,
    /// It ran out, and the log does not say why.
    UnknownGpuOom,
}

/// How sure a diagnosis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Printed figures satisfy the rule with room to spare.
    Certain,
    /// The stage or the traceback says it.
    Likely,
    /// One weak sign.
    Possible,
}

/// The outcome of the ladder.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub diagnosis: Diagnosis,
    pub confidence: Confidence,
    /// The cause in a few words, where it is known more exactly than the diagnosis says it.
    pub cause: Option<&'static str>,
    /// The device had room: something else refused.
    pub refused: bool,
    /// One sentence each.
    pub why: Vec<String>,
    /// Numbers of the nine fixes, in order.
    pub fixes: Vec<u8>,
}

impl Finding {
    pub(super) fn new(
        diagnosis: Diagnosis,
        confidence: Confidence,
        fixes: &[u8],
        why: impl Into<String>,
    ) -> Self {
        Self {
            diagnosis,
            confidence,
            cause: None,
            refused: false,
            why: vec![why.into()],
            fixes: fixes.to_vec(),
        }
    }

    /// Of this cause.
    pub(super) fn because(mut self, cause: &'static str) -> Self {
        self.cause = Some(cause);
        self
    }
}

/// A figure for a sentence, exact enough for its size.
pub(super) fn show(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.2} GiB", Bytes(bytes).as_gib())
    } else if bytes >= 1 << 20 {
        let mib = bytes as f64 / f64::from(1 << 20);
        // Half a MiB is much of a few.
        let places = if bytes < 10 << 20 && !bytes.is_multiple_of(1 << 20) { 2 } else { 0 };
        format!("{mib:.places$} MiB")
    } else {
        Bytes(bytes).to_string()
    }
}

/// Walks the ladder.
pub(super) fn diagnose(case: &Case, numbers: &Numbers) -> Finding {
    let mut finding = match case.outcome {
        Outcome::Gpu => gpu(case, numbers),
        Outcome::Host => harmless::host(case),
        Outcome::Other | Outcome::Recovered | Outcome::Mention | Outcome::Nothing => {
            harmless::not_oom(case)
        }
    };
    four_bit_already(case, &mut finding);
    one_memory(case, &mut finding);
    finding
}

/// Weights of 4 bits are not loaded in 4 bits. A file of llama.cpp can be smaller still.
fn four_bit_already(case: &Case, finding: &mut Finding) {
    if !case.has(Mark::FourBit) || !finding.fixes.contains(&2) || case.stage == Stage::Optimizer {
        return;
    }
    let file = matches!(case.software, "llama.cpp" | "koboldcpp" | "ollama" | "lm-studio");
    let weights = finding.diagnosis == Diagnosis::ModelTooBig
        || (case.outcome == Outcome::Host && case.software == "ollama");
    if file && weights {
        return;
    }
    finding.fixes.retain(|fix| *fix != 2);
    if weights && !finding.fixes.contains(&9) {
        finding.fixes.push(9);
    }
}

/// Where the GPU has the system's memory, what moves to the CPU stays in it.
fn one_memory(case: &Case, finding: &mut Finding) {
    let shared = case.has(Mark::Jetson) || case.software == "pytorch-mps";
    if shared && case.outcome == Outcome::Gpu && finding.fixes.contains(&5) {
        finding.fixes.retain(|fix| *fix != 5);
        if finding.fixes.is_empty() {
            finding.fixes.push(9);
        }
    }
}

fn gpu(case: &Case, n: &Numbers) -> Finding {
    let engine = case.event().is_some_and(|event| event.signature.class == Class::Engine);
    let by_stage = engine || engines::speaks_for_itself(case);
    let rules: [fn(&Case, &Numbers) -> Option<Finding>; 7] = [
        limits::larger_than_device,
        limits::another_limit,
        other_process,
        fragmentation,
        growth,
        engines::by_stage,
        by_frame::by_frame,
    ];
    for (number, rule) in rules.iter().enumerate() {
        // An engine's own words outrank what an allocator's figures would suggest.
        if by_stage && matches!(number, 0 | 1 | 3) {
            continue;
        }
        if let Some(finding) = rule(case, n) {
            return finding;
        }
    }
    let text = "the log shows neither what the program was doing nor who holds the memory";
    Finding::new(Diagnosis::UnknownGpuOom, Confidence::Possible, &[3, 4], text)
}

/// Without the others it would have fitted.
fn other_process(case: &Case, n: &Numbers) -> Option<Finding> {
    let held = n.held_by_others;
    let enough = match (n.requested, n.free, n.total) {
        (Some(requested), Some(free), _) => {
            free < requested + n.margin() && free + held >= requested + n.margin()
        }
        (Some(requested), None, _) => held >= requested + n.margin(),
        (None, Some(free), _) => held > free,
        (None, None, _) => held >= 1 << 30,
    };
    let large = match n.total {
        Some(total) => {
            let half = n.this_process.or(n.reserved).is_some_and(|this| this < total / 2);
            held >= total / 4 || (half && held >= n.margin()) || n.all_desktop()
        }
        None => held >= 1 << 30 || n.all_desktop(),
    };
    let startup = case.stage == Stage::Startup;
    let weights = case.stage == Stage::Weights;
    if !(startup || enough && large && held > 0) {
        return None;
    }
    let mut finding = Finding::new(
        Diagnosis::OtherProcessHoldsMemory,
        if enough && large { Confidence::Certain } else { Confidence::Likely },
        &[3],
        what_others_hold(n),
    );
    let desktop = n.all_desktop();
    if desktop {
        finding.why.push("all of them belong to the desktop".to_owned());
        finding.fixes = vec![8, if weights { 2 } else { 4 }];
    } else if n.siblings() {
        finding.why.push(
            "they have neighbouring numbers and equal sizes: ranks of the same job, all on this device"
                .to_owned(),
        );
    } else {
        if n.closing_may_help() && desktop_likely(case) {
            finding.fixes.push(8);
        }
        if case.software == "vllm" && startup {
            finding.fixes.push(1);
        }
        // Weights do not depend on the batch.
        if n.allocated.zip(n.total).is_some_and(|(allocated, total)| allocated >= total / 3) {
            finding.fixes.push(if weights { 2 } else { 4 });
        }
    }
    Some(finding)
}

fn what_others_hold(n: &Numbers) -> String {
    // What nobody names is computed, without a guess for this process's own context.
    let about = if n.implied_others.is_some() { "about " } else { "" };
    let held = show(n.held_by_others);
    match n.requested.zip(n.free) {
        _ if n.held_by_others == 0 => {
            "it failed before anything of its own was on the device".to_owned()
        }
        Some((requested, free)) => format!(
            "others hold {about}{held}; with the {} that is free the {} asked for would fit",
            show(free),
            show(requested)
        ),
        None => format!("others hold {about}{held} of the device"),
    }
}

/// Whether there may be a desktop on the device.
pub(super) fn desktop_likely(case: &Case) -> bool {
    !case.has(Mark::Datacentre) && !matches!(case.software, "ollama" | "whisper.cpp")
}

/// Enough is reserved and not allocated, in pieces.
fn fragmentation(case: &Case, n: &Numbers) -> Option<Finding> {
    let pool = case.event()?.signature.id != "torch.async";
    let (unallocated, reserved, requested) = (n.unallocated?, n.reserved?, n.requested?);
    let free = n.free.unwrap_or_default();
    let much = unallocated >= (512 << 20).max(reserved / 10);
    if !pool || !much || !(unallocated >= requested || free + unallocated >= requested) {
        return None;
    }
    let collective = case.stage == Stage::Collective;
    let fixes: &[u8] = if collective { &[6] } else { &[6, 4] };
    let retries = case.figures.get(Slot::Retries);
    let sure = unallocated >= requested + requested / 5 && reserved > 0;
    let mut finding = Finding::new(
        Diagnosis::Fragmentation,
        if sure { Confidence::Certain } else { Confidence::Likely },
        fixes,
        format!(
            "{} is reserved and not allocated ({:.0} % of {}), and {} was asked for: there is enough, \
             but not in one piece",
            show(unallocated),
            unallocated as f64 * 100.0 / reserved as f64,
            show(reserved),
            show(requested)
        ),
    );
    if collective {
        finding.cause = Some("PyTorch's cache holds what NCCL needs");
        finding.why = vec![format!(
            "{} is reserved by PyTorch and not allocated; NCCL allocates outside that pool and could not \
             get {}",
            show(unallocated),
            show(requested)
        )];
    }
    if unallocated < requested {
        finding.why.push(format!("only together with the {} that is free", show(free)));
    }
    if let Some(retries) = retries.filter(|retries| *retries > 0) {
        finding
            .why
            .push(format!("the allocator had to free its cache and try again {retries} times"));
    }
    if case.has(Mark::RisingLengths) {
        finding.why.push("the lengths of the samples vary from step to step".to_owned());
    }
    Some(finding)
}

/// It grows with equal work.
fn growth(case: &Case, n: &Numbers) -> Option<Finding> {
    if matches!(case.stage, Stage::Weights | Stage::Optimizer | Stage::Startup | Stage::Capture) {
        return None;
    }
    if let Some(series) = &case.growth {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let steps = series.points.len().saturating_sub(1).max(1) as u64;
        let each = last.saturating_sub(*first) / steps;
        let mut finding = Finding::new(
            Diagnosis::LeakOrGrowth,
            if series.points.len() > 3 { Confidence::Certain } else { Confidence::Likely },
            &[6],
            format!(
                "the log shows {} growing to {} in {} reports, {} each time, with equal work",
                show(*first),
                show(*last),
                series.points.len(),
                show(each)
            ),
        );
        if let Some(requested) = n.requested.filter(|requested| *requested <= 64 << 20) {
            finding.why.push(format!("the request that failed is small: {}", show(requested)));
        }
        return Some(finding);
    }
    (case.stage == Stage::Arena && engines::smaller_fail_too(case)).then(|| {
        Finding::new(
            Diagnosis::LeakOrGrowth,
            Confidence::Likely,
            &[6],
            "the arena only ever grows; at its limit even smaller requests fail",
        )
    })
}
