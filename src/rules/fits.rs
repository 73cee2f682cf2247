//! "Would it fit after that?": a wanted size against what is free and what the findings free.

use serde::Serialize;

use super::common::{margin, room};
use super::rank::{best, overlaps};
use super::{Finding, Fix, Provenance};
use crate::analyze::{GpuView, View};
use crate::ids::GpuIndex;
use crate::units::Bytes;

/// A size that is wanted: what somebody is about to start, or the request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// So much.
    pub need: Bytes,
    /// On this GPU; `None` for any.
    pub gpu: Option<GpuIndex>,
}

impl Wanted {
    /// On whatever GPU.
    pub const fn anywhere(need: Bytes) -> Self {
        Self { need, gpu: None }
    }

    fn is_for(self, gpu: &GpuView) -> bool {
        gpu.sample.mig_enabled.get() != Some(true)
            && self.gpu.is_none_or(|index| index == gpu.sample.index)
    }
}

/// How a wanted size relates to one GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Which.
    pub gpu: GpuIndex,
    /// How it is called: a MIG instance is `0:1`.
    #[serde(skip)]
    pub label: String,
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    let (total, free) = room(gpu)?;
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
        let Some((fix, bytes, provenance)) = sure(view, gpu, finding) else { continue };
        taken.push(finding);
        missing = missing - bytes;
        steps.push(Step {
            headline: finding.headline.clone(),
            line: fix.line.clone(),
            bytes,
            provenance,
        });
    }
    Some(Fit { gpu: index, label: gpu.sample.label(), need, free, margin, steps, missing })
}

/// The best fix of a finding, and what it frees for sure.
fn sure<'a>(
    view: &View,
    gpu: &GpuView,
    finding: &'a Finding,
) -> Option<(&'a Fix, Bytes, Provenance)> {
    let (fix, saving) = best(finding)?;
    let bytes = saving.low.min(held(view, gpu, finding).unwrap_or(saving.low));
    (bytes > Bytes::ZERO).then_some((fix, bytes, saving.provenance))
}

/// Says with every finding whether its fix is enough for what is wanted. Nothing is added where it
/// fits already, or where a fix frees nothing by itself.
pub fn mark(view: &View, wanted: Wanted, findings: &mut [Finding]) {
    let free_now = |gpu: &GpuView| {
        let (total, free) = room(gpu)?;
        Some((wanted.need + margin(total)) - free)
    };
    let missing_on = |index| {
        let gpu = view.gpus.iter().find(|gpu| wanted.is_for(gpu) && gpu.sample.index == index)?;
        Some((gpu, free_now(gpu)?))
    };
    for finding in findings {
        let Some((gpu, missing)) = finding.gpu.and_then(missing_on) else { continue };
        let Some((_, bytes, _)) = sure(view, gpu, finding) else { continue };
        if missing == Bytes::ZERO {
            continue;
        }
        let need = wanted.need;
        finding.evidence.push(if bytes >= missing {
            format!("enough by itself for {need}: {missing} are missing")
        } else {
            format!("frees {bytes} of the {missing} that are missing for {need}")
        });
    }
}

/// The GPU on which the wanted size comes closest to fitting.
pub fn closest(view: &View, wanted: Wanted, findings: &[Finding]) -> Option<Fit> {
    let gpus = view.gpus.iter().filter(|gpu| wanted.is_for(gpu));
    let fits = gpus.filter_map(|gpu| fit_of(view, gpu, wanted.need, findings));
    // Nothing to do beats few steps; the least that is missing beats the rest.
    fits.min_by_key(|fit| (fit.missing, fit.steps.len(), fit.gpu))
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
    match closest(view, Wanted::anywhere(need), findings) {
        Some(fit) => fit.text() + &untold(view, &fit),
        None => format!("Whether {need} would fit cannot be told: no GPU tells its memory.\n"),
    }
}

/// Where it does not fit, those GPUs of which it cannot be told.
fn untold(view: &View, fit: &Fit) -> String {
    let whole = view.gpus.iter().filter(|gpu| gpu.sample.mig_enabled.get() != Some(true));
    let unknown: Vec<String> = whole
        .filter(|gpu| !fit.fits_now() && room(gpu).is_none())
        .map(|gpu| gpu.sample.label())
        .collect();
    if unknown.is_empty() {
        return String::new();
    }
    format!(
        "Whether they fit on GPU {} cannot be told: no memory is told there.\n",
        unknown.join(", ")
    )
}

impl Fit {
    /// Whether it fits without anything being done.
    pub const fn fits_now(&self) -> bool {
        self.steps.is_empty() && self.missing.0 == 0
    }

    /// In a few words, for a title: `fits now`, `fits after 2 fixes`, `3.1 GiB missing`.
    pub fn words(&self) -> String {
        match (self.steps.len(), self.missing) {
            (0, Bytes::ZERO) => "fits now".to_owned(),
            (1, Bytes::ZERO) => "fits after one fix".to_owned(),
            (n, Bytes::ZERO) => format!("fits after {n} fixes"),
            (0, missing) => format!("{missing} missing"),
            (_, missing) => format!("{missing} missing even after all fixes"),
        }
    }

    /// As lines of text. May hold hostile text.
    pub fn text(&self) -> String {
        let Self { label, free, margin, need, .. } = self;
        if self.fits_now() {
            return format!(
                "{need} fit on GPU {label} now: {free} are free, {margin} stay in reserve.\n"
            );
        }
        // With enough bytes free only the reserve is missing, and the sentence must say so.
        let kept =
            if need <= free { format!(", and {margin} should stay so") } else { String::new() };
        let mut text = format!("{need} do not fit on GPU {label} now: {free} are free{kept}.\n");
        for step in &self.steps {
            text += &format!("  +{:<9} {}\n", step.bytes.to_string(), step.headline);
            if let Some(line) = &step.line {
                text += &format!("             {line}\n");
            }
        }
        text += &match (self.steps.len(), self.missing) {
            (0, missing) => {
                format!(
                    "Nothing here frees memory; with {margin} in reserve {missing} are missing.\n"
                )
            }
            (_, Bytes::ZERO) => format!("After that they fit, with {margin} in reserve.\n"),
            (_, missing) => {
                format!("Even after all of that {missing} are missing, with {margin} in reserve.\n")
            }
        };
        text
    }
}
