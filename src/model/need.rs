//! The answer line by line: what, how much, how sure, and where the figure comes from.

use serde::Serialize;

use super::load::{Format, Model};
use super::overhead::Overhead;
use super::plan::{Placement, Settings, resident};
use super::quant::QUANT_BAND;
use super::shape::{Cells, Layer};

const MIB: u64 = 1 << 20;

/// Error of the scratch in thousandths where the architecture is known, and where it is not, as
/// measured on llama.cpp's own figures (95 of 100 are within it).
const COMPUTE_BAND: (u64, u64) = (50, 150);
/// Weights that are counted from a configuration miss biases and the like: thousandths.
const COUNTED_BAND: u64 = 10;
const COUNTED: &str = "counted from config.json";
/// Room that is left besides: the run-time pool grows with long prompts.
const LEAST_MARGIN: u64 = 64 * MIB;

/// How a figure was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From a file's tables, to the byte.
    Exact,
    /// Of a process that runs here.
    Measured,
    /// Arithmetic, within the band.
    Estimated,
    /// Arithmetic on the shape of a typical model of that size.
    Assumed,
}

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Stable key.
    pub key: &'static str,
    /// In words.
    pub label: &'static str,
    /// The likely figure in bytes.
    pub bytes: u64,
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
    /// How it was come by.
    pub basis: Basis,
    /// Where it comes from.
    pub note: String,
}

impl Line {
    /// To the byte.
    pub fn exact(key: &'static str, label: &'static str, bytes: u64, note: String) -> Self {
        Self { key, label, bytes, low: bytes, high: bytes, basis: Basis::Exact, note }
    }

    /// Within so many thousandths.
    pub fn band(
        key: &'static str,
        label: &'static str,
        bytes: u64,
        thousandths: u64,
        note: String,
    ) -> Self {
        let off = (u128::from(bytes) * u128::from(thousandths) / 1000) as u64;
        let (low, high) = (bytes.saturating_sub(off), bytes.saturating_add(off));
        Self { key, label, bytes, low, high, basis: Basis::Estimated, note }
    }

    /// What CUDA takes.
    pub fn overhead(overhead: &Overhead) -> Self {
        let (basis, note) = if overhead.measured {
            (Basis::Measured, "seen on a process that runs here")
        } else {
            (Basis::Estimated, "usual for such a card")
        };
        Self {
            key: "cuda_context",
            label: "CUDA context",
            bytes: overhead.bytes,
            low: overhead.low,
            high: overhead.high,
            basis,
            note: note.to_owned(),
        }
    }
}

/// Lines that add up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Need {
    /// On the GPU.
    pub lines: Vec<Line>,
    /// In host memory, in bytes.
    pub host_bytes: u64,
}

impl Need {
    /// The likely sum in bytes.
    pub fn bytes(&self) -> u64 {
        self.lines.iter().fold(0, |sum, line| sum.saturating_add(line.bytes))
    }

    /// The sum at most; errors of single lines do not cancel out here.
    pub fn high(&self) -> u64 {
        self.lines.iter().fold(0, |sum, line| sum.saturating_add(line.high))
    }

    /// Room that should be left beyond the likely sum.
    pub fn margin(&self) -> u64 {
        self.high().saturating_sub(self.bytes()).max(LEAST_MARGIN)
    }
}

/// What llama.cpp needs on the first GPU of a placement.
pub fn llama(model: &Model, placed: &Placement, settings: &Settings, cuda: &Overhead) -> Need {
    let Some(gpu) = placed.gpus.first() else { return Need::default() };
    let mut lines = vec![weights_line(model, gpu.weights)];
    // Of those that are on it: the others' caches are in host memory.
    let here = resident(&model.shape, settings);
    let layers = |kind: &dyn Fn(&Layer) -> bool| {
        let count = |layers: &[Layer]| layers.iter().filter(|layer| kind(layer)).count();
        let (here, all) = (count(here), count(&model.shape.layers));
        if here == all { format!("{all} layers") } else { format!("{here} of {all} layers") }
    };
    if gpu.cache_full > 0 || gpu.state == 0 {
        let full = layers(&|l| l.cells == Cells::Full);
        let note = match (settings.cache_on_gpu, full.contains(" of ")) {
            (false, _) => "in host memory".to_owned(),
            (true, true) => format!("{full}, whole context"),
            (true, false) => format!("{full} keep the whole context"),
        };
        lines.push(Line::exact("kv_cache", "KV cache", gpu.cache_full, note));
    }
    if gpu.cache_window > 0 {
        let cells = super::kv::cells(&model.shape, &settings.cache).window;
        let note = format!("{} keep {cells} cells", layers(&|l| l.cells == Cells::Window));
        lines.push(Line::exact("kv_cache_window", "KV cache, window", gpu.cache_window, note));
    }
    if gpu.state > 0 {
        let note = format!("{}, any context", layers(&|l| l.state > 0));
        lines.push(Line::exact("recurrent_state", "recurrent state", gpu.state, note));
    }
    if gpu.projector > 0 {
        let note = "vision or audio, with its scratch".to_owned();
        lines.push(Line::band("projector", "encoder", gpu.projector, 100, note));
    }
    if gpu.draft > 0 {
        let note = format!("{} layers: weights, cache, scratch", model.shape.nextn);
        lines.push(Line::band("draft", "guessing ahead", gpu.draft, COMPUTE_BAND.0, note));
    }
    if model.format == Format::Size {
        for line in lines.iter_mut().filter(|line| line.basis == Basis::Exact) {
            line.basis = Basis::Assumed;
        }
    }
    let band = if model.shape.known { COMPUTE_BAND.0 } else { COMPUTE_BAND.1 };
    let note = settings.compute.era.words().to_owned();
    lines.push(Line::band("compute", "compute buffer", gpu.compute.bytes(), band, note));
    lines.push(Line::overhead(cuda));
    let host = placed.host;
    let buffers = host.context.saturating_add(host.compute).saturating_add(host.output);
    Need { lines, host_bytes: buffers.saturating_add(host.weights) }
}

/// The weights, exact where they were read from tensor tables.
pub fn weights_line(model: &Model, bytes: u64) -> Line {
    const LABEL: &str = "weights";
    if model.exact_weights {
        let note = match (model.format, model.files) {
            (Format::Gguf, 1) => "the file's tensor table".to_owned(),
            (_, n) => format!("tensor tables of {n} files"),
        };
        return Line::exact("weights", LABEL, bytes, note);
    }
    let (note, band) = match model.format {
        Format::Size => ("a typical model of this size", QUANT_BAND),
        Format::Config if model.shape.recurrent_layers() > 0 => (COUNTED, 10 * COUNTED_BAND),
        Format::Config => (COUNTED, COUNTED_BAND),
        _ => ("converted from this file", QUANT_BAND),
    };
    Line::band("weights", LABEL, bytes, band, note.to_owned())
}
