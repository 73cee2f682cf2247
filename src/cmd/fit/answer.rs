//! The answer as data: what JSON shows, and what the text is made of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{FitGpu, FitOptions};
use crate::model::best::Best;
use crate::model::need::Need;
use crate::model::overhead::{Overhead, expected};
use crate::model::plan::{Placement, Settings};
use crate::model::{Format, Kind, Model};
use crate::units::Bytes;

/// Everything that is said of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The model.
    pub model: About,
    /// What it is run with.
    pub engine: &'static str,
    /// How, as the title of the lines says.
    pub setup: String,
    /// What it needs, line by line; the first GPU's part where several share it.
    pub need: Need,
    /// Sum of the lines in bytes.
    pub need_bytes: u64,
    /// What should be left free besides.
    pub margin_bytes: u64,
    /// Tokens that the lines are for.
    pub context: Option<u64>,
    /// llama.cpp's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// What every device holds with everything on the first GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// llama.cpp's compute buffer on the first GPU by builds, in bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub compute_by_era: BTreeMap<&'static str, u64>,
    /// Remarks on the lines.
    pub remarks: Vec<String>,
    /// Where it fits.
    pub verdicts: Vec<Verdict>,
    /// Quantisation by context.
    pub table: Option<Table>,
    /// Rows of other kinds: vLLM, training.
    pub sections: Vec<Section>,
    /// What a step changes.
    pub steps: Vec<Step>,
    /// What to type, the best first.
    pub lines: Vec<String>,
    /// Whether it fits on some GPU now; `None` where no GPU is known.
    pub fits: Option<bool>,
}

/// The model in a few figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// Its name. Hostile text.
    pub name: String,
    /// Its architecture. Hostile text.
    pub arch: String,
    /// Where the figures come from.
    pub format: Format,
    /// What it is.
    pub kind: Kind,
    /// Its quantisation. Hostile text.
    pub quant: Option<String>,
    /// Parameters.
    pub parameters: u64,
    /// Bytes of its files, or of the weights where there are none.
    pub bytes: u64,
    /// Bits a parameter, in hundredths.
    pub centibits: u64,
    /// A second line: layers, heads, context.
    pub shape: String,
    /// Tokens that it was trained for; `null` where that is not known.
    pub context_max: Option<u64>,
    /// Remarks of the reader. May hold hostile text.
    pub notes: Vec<String>,
}

/// Whether something fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fits {
    /// Not.
    No,
    /// Only if every estimate holds.
    Tight,
    /// With room for the estimates' errors.
    Yes,
}

/// One GPU at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Which; `GPU 0`, or `all 2 GPUs`.
    pub gpu: String,
    /// Its name. Hostile text.
    pub name: String,
    /// `now`, `without zombies`, `empty`.
    pub when: &'static str,
    /// Free at that moment.
    pub free_bytes: u64,
    /// Whether it fits.
    pub fits: Fits,
    /// What is left over; negative where it does not fit.
    pub spare_bytes: i64,
    /// The best way to run it there at this context.
    pub best: Option<Best>,
    /// The longest context with everything on the GPU.
    pub longest_context: Option<u64>,
    /// The same with a `q8_0` cache.
    pub longest_context_q8_0: Option<u64>,
}

/// Quantisation by context.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The GPU that the marks are for.
    pub gpu: Option<String>,
    /// Tokens of the columns.
    pub contexts: Vec<u64>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One quantisation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub quant: String,
    /// Whether it is the file itself.
    pub this_file: bool,
    /// Bytes of weights on the GPU.
    pub weights_bytes: u64,
    /// Bytes in all, and whether that fits, by context.
    pub cells: Vec<Cell>,
    /// The longest context that fits now; `None` where no GPU is known.
    pub longest_context: Option<u64>,
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cell {
    /// Bytes in all.
    pub bytes: u64,
    /// Whether it fits now.
    pub now: Option<bool>,
    /// Whether it would on an empty GPU.
    pub empty: Option<bool>,
}

/// A small table of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// Label, figure, whether it fits, note.
    pub rows: Vec<SectionRow>,
}

/// A row of a small table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SectionRow {
    /// In words.
    pub label: String,
    /// Bytes.
    pub bytes: u64,
    /// Whether it fits on an empty GPU.
    pub fits: Option<bool>,
    /// What it consists of.
    pub note: String,
    /// The same as figures, in bytes by stable keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(&'static str, u64)>,
}

/// What a step changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// In words.
    pub title: String,
    /// Bytes that it frees on the GPU.
    pub frees_bytes: u64,
    /// What to type for it.
    pub flag: String,
    /// Whether the model then fits now, where it does not yet.
    pub then_fits: bool,
}

/// The moments that are asked about: their names and what is free.
pub(super) fn moments(gpu: &FitGpu) -> Vec<(&'static str, Bytes)> {
    let mut moments = Vec::new();
    if let Some(free) = gpu.free.get() {
        moments.push(("now", free));
        if gpu.zombies > Bytes::ZERO {
            moments.push(("without zombies", free + gpu.zombies));
        }
    }
    let last = moments.last().map_or(Bytes::ZERO, |m| m.1);
    let empty = gpu.empty();
    // A per cent more or less is the driver's own.
    if last.0 < empty.0 / 100 * 99 {
        moments.push(("empty", empty));
    }
    moments
}

/// What CUDA takes on this GPU.
pub(super) fn overhead(options: &FitOptions, gpu: Option<&FitGpu>) -> Overhead {
    if let Some(bytes) = options.overhead {
        return Overhead { bytes: bytes.0, low: bytes.0, high: bytes.0, measured: false };
    }
    match gpu {
        Some(gpu) => match gpu.overhead {
            Some(Bytes(bytes)) => {
                let off = 16 << 20;
                let (low, high) = (bytes.saturating_sub(off), bytes + off);
                Overhead { bytes, low, high, measured: true }
            }
            None => expected(&gpu.name, gpu.total.0),
        },
        None => expected("", 24 << 30),
    }
}

/// Whether a sum fits.
pub(super) fn fits(need: u64, margin: u64, free: Bytes) -> Fits {
    if need.saturating_add(margin) <= free.0 {
        Fits::Yes
    } else if need <= free.0 {
        Fits::Tight
    } else {
        Fits::No
    }
}

/// The difference with its sign.
pub(super) fn spare(free: Bytes, need: u64) -> i64 {
    let clamp = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    clamp(free.0).saturating_sub(clamp(need))
}

/// The GPU that tables and lines are for: the one with the most room.
pub(super) fn reference(cards: &[FitGpu]) -> Option<&FitGpu> {
    // The first of equals.
    cards.iter().rev().max_by_key(|gpu| (gpu.free.get(), gpu.total))
}

/// A GPU as a row's head.
pub(super) fn label(gpu: &FitGpu) -> String {
    gpu.index.map_or_else(|| "card".to_owned(), |index| format!("GPU {index}"))
}

/// Verdicts of one need that does not depend on the GPU's own choices.
pub(super) fn plain_verdicts(need: u64, margin: u64, cards: &[FitGpu]) -> Vec<Verdict> {
    let of = |gpu: &FitGpu| {
        let (label, name) = (label(gpu), gpu.name.clone());
        moments(gpu)
            .into_iter()
            .map(|(when, free)| Verdict {
                gpu: label.clone(),
                name: name.clone(),
                when,
                free_bytes: free.0,
                fits: fits(need, margin, free),
                spare_bytes: spare(free, need),
                best: None,
                longest_context: None,
                longest_context_q8_0: None,
            })
            .collect::<Vec<_>>()
    };
    cards.iter().flat_map(of).collect()
}

/// Whether it fits somewhere now.
pub(super) fn fits_now(verdicts: &[Verdict]) -> Option<bool> {
    let now: Vec<&Verdict> = verdicts.iter().filter(|v| v.when == "now").collect();
    if now.is_empty() { None } else { Some(now.iter().any(|v| v.fits == Fits::Yes)) }
}

/// The model in a few figures.
pub(super) fn about(model: &Model, shape: String) -> About {
    let pipeline = model.pipeline.as_ref();
    let pipeline =
        pipeline.map(|p| p.text_bytes.saturating_add(p.denoiser_bytes).saturating_add(p.vae_bytes));
    let bytes = pipeline.unwrap_or_else(|| model.weights.file_bytes());
    let parameters = model.unpacked().elements();
    let bits = u128::from(bytes) * 800;
    let centibits = bits.checked_div(u128::from(parameters)).unwrap_or(0) as u64;
    About {
        name: model.name.clone(),
        arch: model.shape.arch.clone(),
        format: model.format,
        kind: model.kind,
        quant: model.quant.clone(),
        parameters,
        bytes,
        centibits,
        shape,
        context_max: Some(model.shape.context_max).filter(|tokens| *tokens > 0),
        notes: model.notes.clone(),
    }
}
