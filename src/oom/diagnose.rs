//! The ladder: the first rule that holds names the cause, with the arithmetic that led to it.

use serde::Serialize;

use super::by_frame;
use super::clues::Mark;
use super::engines;
use super::figures::Slot;
use super::harmless;
use super::judge::{Case, Outcome};
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
        Self { diagnosis, confidence, fixes: fixes.to_vec(), why: vec![why.into()] }
    }
}

/// A figure for a sentence, exact enough for its size.
pub(super) fn show(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.2} GiB", Bytes(bytes).as_gib())
    } else if bytes >= 1 << 20 {
        format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
    } else {
        Bytes(bytes).to_string()
    }
}

/// Walks the ladder.
pub(super) fn diagnose(case: &Case, numbers: &Numbers) -> Finding {
    match case.outcome {
        Outcome::Gpu => gpu(case, numbers),
        Outcome::Host => harmless::host(case),
        Outcome::Other | Outcome::Recovered | Outcome::Mention | Outcome::Nothing => {
            harmless::not_oom(case)
        }
    }
}

fn gpu(case: &Case, n: &Numbers) -> Finding {
    let engine = case.event().is_some_and(|event| event.signature.class == Class::Engine);
    let by_stage = engine || engines::speaks_for_itself(case);
    let rules: [fn(&Case, &Numbers) -> Option<Finding>; 7] = [
        larger_than_device,
        another_limit,
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

/// The request alone exceeds the device, or the share of it that this process may take.
fn larger_than_device(case: &Case, n: &Numbers) -> Option<Finding> {
    let (requested, limit) = (n.requested?, n.allowed.or(n.total)?);
    let whole = n.allowed.map_or("the device", |_| "this process's share");
    (requested > limit && case.stage != Stage::Weights).then(|| {
        Finding::new(
            Diagnosis::BatchOrActivationTooBig,
            Confidence::Certain,
            &[4],
            format!(
                "one allocation of {} is larger than {whole} of {}: only a smaller tensor helps",
                show(requested),
                show(limit)
            ),
        )
    })
}

/// There was room: something else than the device's capacity refused.
fn another_limit(case: &Case, n: &Numbers) -> Option<Finding> {
    if case.event()?.signature.class == Class::Driver {
        return driver_limit(case);
    }
    let (requested, free) = (n.requested?, n.free?);
    if requested + n.margin() > free {
        return None;
    }
    let fits =
        format!("{} was asked for and {} was free on the device", show(requested), show(free));
    if let Some(limit) = n.allowed {
        let used = n.reserved.unwrap_or_default();
        let left = limit.saturating_sub(used);
        let training = engines::is_training(case);
        let fixes: &[u8] = if training { &[4, 7] } else { &[4] };
        let mut finding =
            Finding::new(Diagnosis::BatchOrActivationTooBig, Confidence::Certain, fixes, fits);
        finding.why.push(format!(
            "this process may take {} and has reserved {}: {} is left of its share",
            show(limit),
            show(used),
            show(left)
        ));
        return Some(finding);
    }
    let mut finding = Finding::new(Diagnosis::UnknownGpuOom, Confidence::Certain, &[6], fits);
    finding.why.push(match case.figures.get(Slot::Reserve) {
        Some(reserve) => format!(
            "the request exceeds the reserve of {} that expandable_segments_reserve sets for a segment",
            show(reserve)
        ),
        None if case.has(Mark::MapsFull) => {
            "the log shows the host's limit of memory maps (vm.max_map_count) reached".to_owned()
        }
        None => "so another limit refused: a quota of the container, memory maps or RAM of the host, \
                 address space, or expandable segments on a platform without them"
            .to_owned(),
    });
    Some(finding)
}

/// Virtual-memory calls fail on some platforms however much is free.
fn driver_limit(case: &Case) -> Option<Finding> {
    let platform = if case.has(Mark::Wsl) {
        "WSL2"
    } else if case.has(Mark::Jetson) {
        "Jetson"
    } else {
        return None;
    };
    let expandable = case.has(Mark::ExpandableOn)
        || case.event().is_some_and(|event| event.signature.id == "driver.cuda_driver");
    expandable.then(|| {
        Finding::new(
            Diagnosis::UnknownGpuOom,
            Confidence::Likely,
            &[6],
            format!(
                "expandable segments use virtual-memory calls that fail on {platform} with memory free: \
                 here they are the cause, not the cure"
            ),
        )
    })
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
    if !(startup || enough && large && held > 0) {
        return None;
    }
    let mut finding = Finding::new(
        Diagnosis::OtherProcessHoldsMemory,
        if enough && large { Confidence::Certain } else { Confidence::Likely },
        &[3],
        match n.requested.zip(n.free) {
            Some((requested, free)) if held > 0 => format!(
                "others hold {}; with the {} that is free the {} asked for would fit",
                show(held),
                show(free),
                show(requested)
            ),
            _ if held > 0 => format!("others hold {} of the device", show(held)),
            _ => "it failed before anything of its own was on the device".to_owned(),
        },
    );
    let desktop = n.all_desktop();
    if desktop {
        finding.why.push("all of them belong to the desktop".to_owned());
        finding.fixes = vec![8, 4];
    } else if n.siblings() {
        finding.why.push(
            "they have neighbouring numbers and equal sizes: ranks of the same job, all on this device"
                .to_owned(),
        );
    } else {
        if !case.has(Mark::Datacentre) && !matches!(case.software, "ollama" | "whisper.cpp") {
            finding.fixes.push(8);
        }
        if n.allocated.zip(n.total).is_some_and(|(allocated, total)| allocated >= total / 3) {
            finding.fixes.push(4);
        }
    }
    Some(finding)
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
