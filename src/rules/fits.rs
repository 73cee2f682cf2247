//! "Would it fit after that?": a wanted size against what is free and what the findings free.

use super::common::margin;
use super::rank::{best, overlaps};
use super::{Finding, Provenance};
use crate::analyze::{GpuView, View};
use crate::ids::GpuIndex;
use crate::units::Bytes;

/// How a wanted size relates to one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Which.
    pub gpu: GpuIndex,
    /// What is wanted.
    pub need: Bytes,
    /// Free now.
    pub free: Bytes,
    /// What must stay free besides.
    pub margin: Bytes,
    /// The steps that help, in order; no more of them than are needed. Empty where it fits now.
    pub steps: Vec<Step>,
    /// What is still missing after all steps; zero where it fits.
    pub missing: Bytes,
}

/// One step: a fix of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The finding, in a line. May hold hostile text.
    pub headline: String,
    /// The line to type.
    pub line: Option<String>,
    /// What it frees at the least.
    pub bytes: Bytes,
    /// Where that figure comes from.
    pub provenance: Provenance,
}

/// What it takes to have `need` bytes free on this GPU. Only what a fix frees at the least is
/// counted, and no byte twice.
pub fn fit_of(view: &View, gpu: &GpuView, need: Bytes, findings: &[Finding]) -> Option<Fit> {
    let own = gpu.sample.memory.get().map(|memory| (memory.total, memory.free));
    // One without memory of its own has what the machine has left.
    let shared = || gpu.ledger.get().filter(|l| l.unified).map(|l| (l.total, l.free));
    let (total, free) = own.or_else(shared)?;
    let index = gpu.sample.index;
    let margin = margin(total);
    let mut missing = (need + margin) - free;
    let mut taken: Vec<&Finding> = Vec::new();
    let mut steps = Vec::new();
    for finding in findings.iter().filter(|finding| finding.gpu == Some(index)) {
        if missing == Bytes::ZERO {
            break;
        }
        if taken.iter().any(|other| overlaps(other, finding)) {
            continue;
        }
        let Some((fix, saving)) = best(finding) else { continue };
        let held = held(view, gpu, finding);
        let bytes = saving.low.min(held.unwrap_or(saving.low));
        if bytes == Bytes::ZERO {
            continue;
        }
        taken.push(finding);
        missing = missing - bytes;
        steps.push(Step {
            headline: finding.headline.clone(),
            line: fix.line.clone(),
            bytes,
            provenance: saving.provenance,
        });
    }
    Some(Fit { gpu: index, need, free, margin, steps, missing })
}

/// What the finding's process holds on this GPU; a kill may end others as well.
fn held(view: &View, gpu: &GpuView, finding: &Finding) -> Option<Bytes> {
    let ends = finding.fixes.iter().any(|fix| !fix.ends.is_empty());
    let here = |pid| {
        let mut rows = view.holders.iter().filter(|holder| holder.gpu == gpu.sample.uuid);
        rows.find(|holder| holder.pid == pid).and_then(|holder| holder.bytes.get())
    };
    if ends { None } else { finding.pid.and_then(here) }
}

/// The answer for the GPU that comes closest, as lines of text. May hold hostile text.
pub fn would_it_fit(view: &View, need: Bytes, findings: &[Finding]) -> String {
    let gpus = view.gpus.iter().filter(|gpu| gpu.sample.mig_enabled.get() != Some(true));
    let fits = gpus.filter_map(|gpu| fit_of(view, gpu, need, findings));
    // Nothing to do beats few steps; the least that is missing beats the rest.
    let Some(fit) = fits.min_by_key(|fit| (fit.missing, fit.steps.len(), fit.gpu)) else {
        return format!("Whether {need} would fit cannot be told: no GPU tells its memory.\n");
    };
    let Fit { gpu, free, margin, .. } = fit;
    if fit.steps.is_empty() && fit.missing == Bytes::ZERO {
        return format!(
            "{need} fit on GPU {gpu} now: {free} are free, {margin} stay in reserve.\n"
        );
    }
    let mut text = format!("{need} do not fit on GPU {gpu} now: {free} are free.\n");
    for step in &fit.steps {
        text += &format!("  +{:<9} {}\n", step.bytes.to_string(), step.headline);
        if let Some(line) = &step.line {
            text += &format!("             {line}\n");
        }
    }
    text += &match (fit.steps.len(), fit.missing) {
        (0, missing) => format!("Nothing here frees memory; {missing} are missing.\n"),
        (_, Bytes::ZERO) => format!("After that they fit, with {margin} in reserve.\n"),
        (_, missing) => format!("Even after all of that {missing} are missing.\n"),
    };
    text
}
