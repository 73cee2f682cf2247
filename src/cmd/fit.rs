//! `vramlens fit`: what of a model fits in which GPU.

mod answer;
mod llama;
mod matrix;
mod other;
mod show;
mod text;
mod torch;

use std::io::Write;

use serde::Serialize;

use crate::analyze::{GpuView, View};
use crate::cmd::json_text;
use crate::model::compute::Era;
use crate::model::ggml::CacheType;
use crate::model::{Format, Kind, Model};
use crate::rules::Fit;
use crate::sample::Reading;
use crate::units::Bytes;

pub use answer::{Answer, Fits, Verdict};

/// Exit code where it fits.
pub const FITS: u8 = 0;
/// Exit code where it does not.
pub const DOES_NOT_FIT: u8 = 1;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FitOptions {
    /// A file, a folder, a size such as `70B`, a pipeline such as `sdxl`; `None` for the table of
    /// what fits in what.
    pub model: Option<String>,
    /// Tokens; `None` for 8192 or what the model was trained for, whichever is less.
    pub context: Option<u64>,
    /// Type of cached keys.
    pub cache_type_k: Option<CacheType>,
    /// Type of cached values; that of the keys where it is not given.
    pub cache_type_v: Option<CacheType>,
    /// Sequences at the same time.
    pub parallel: Option<u64>,
    /// Tokens a micro-batch.
    pub ubatch: Option<u64>,
    /// Layers on the GPU; `None` for all.
    pub gpu_layers: Option<u64>,
    /// Layers whose experts stay on the CPU.
    pub cpu_experts: Option<u64>,
    /// Each sequence has a cache of its own share of the context (`--no-kv-unified`).
    pub kv_per_slot: bool,
    /// Tokens that are guessed ahead by the model's own layers for that, where it has some.
    pub draft: Option<u64>,
    /// Turns flash attention off.
    pub no_flash_attention: bool,
    /// Window layers keep the whole context.
    pub swa_full: bool,
    /// The cache stays in host memory.
    pub no_kv_offload: bool,
    /// Weights on the CPU are never copied to the GPU.
    pub no_op_offload: bool,
    /// Builds of llama.cpp to compute for.
    pub era: Option<Era>,
    /// Quantisation to compute for, one of the table's rows.
    pub quant: Option<String>,
    /// A vision or audio encoder to load beside it.
    pub mmproj: Option<String>,
    /// Cards that are not here, by their nominal size.
    pub cards: Vec<Bytes>,
    /// What to leave free; `None` for what the error bands ask for.
    pub margin: Option<Bytes>,
    /// What CUDA takes; `None` for what such a card usually shows.
    pub overhead: Option<Bytes>,
    /// JSON instead of text.
    pub json: bool,
    /// Only ASCII.
    pub ascii: bool,
    /// Colours.
    pub color: bool,
}

/// A GPU as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitGpu {
    /// The driver's number; `None` for a card that is not here.
    pub index: Option<u32>,
    /// Its name. Hostile text.
    pub name: String,
    /// All of its memory.
    pub total: Bytes,
    /// Kept by driver and firmware, for nobody to use.
    pub reserved: Bytes,
    /// Free now.
    pub free: Reading<Bytes>,
    /// What ending the zombies would free.
    pub zombies: Bytes,
    /// Bytes that CUDA itself takes in a process that runs there, where that could be measured
    /// (see [`crate::model::overhead::calibrated`]).
    pub overhead: Option<Bytes>,
}

impl FitGpu {
    /// A card that is not here, empty.
    pub fn absent(nominal: Bytes) -> Self {
        let usable = Bytes(crate::model::overhead::usable(nominal.0));
        Self {
            index: None,
            name: if nominal.0.is_multiple_of(1 << 30) {
                format!("{} GiB", nominal.0 >> 30)
            } else {
                nominal.to_string()
            },
            total: nominal,
            reserved: nominal - usable,
            free: Reading::Value(usable),
            zombies: Bytes::ZERO,
            overhead: None,
        }
    }

    /// Every GPU of a view that is no MIG parent, with what its zombies hold.
    pub fn from_view(view: &View) -> Vec<Self> {
        let whole = |gpu: &&GpuView| gpu.sample.mig_enabled.get() != Some(true);
        let of = |gpu: &GpuView| {
            let ledger = gpu.ledger.as_ref();
            let name = gpu.sample.name.value().cloned().unwrap_or_default();
            // Without a size there is nothing to compare with.
            let total = ledger.value()?.total;
            Some(Self {
                index: Some(gpu.sample.index.0),
                name,
                total,
                reserved: ledger.value()?.reserved,
                free: ledger.map(|l| l.free),
                zombies: gpu.counts.zombie_bytes,
                overhead: None,
            })
        };
        view.gpus.iter().filter(|g| whole(g) || g.sample.mig.is_some()).filter_map(of).collect()
    }

    /// Free where nobody uses it.
    pub fn empty(&self) -> Bytes {
        self.total - self.reserved
    }
}

/// Reads `8192`, `8k`, `128K`, `1m` as a number of tokens.
pub fn parse_context(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no number of tokens: write 8192, 8k or 1m");
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match (lower.strip_suffix('k'), lower.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1024),
        (_, Some(digits)) => (digits, 1 << 20),
        _ => (lower.as_str(), 1),
    };
    let number: u64 = digits.replace(['_', ','], "").parse().map_err(|_ignored| bad())?;
    let tokens = number.checked_mul(factor).filter(|n| (1..=1 << 30).contains(n));
    tokens.ok_or_else(bad)
}

/// What would make room for so many bytes on this machine, as the findings of its moment say.
pub type Room<'a> = &'a dyn Fn(Bytes) -> Option<Fit>;

/// Answers, and says whether it fits: exit code 0, or 1 where it does not.
///
/// # Errors
///
/// Where the model cannot be read, or the answer not written.
pub fn run(options: &FitOptions, gpus: &[FitGpu], out: &mut dyn Write) -> anyhow::Result<u8> {
    run_here(options, gpus, &|_| None, out)
}

/// The same; where it does not fit now, with what would make room for it.
///
/// # Errors
///
/// As [`run`].
pub fn run_here(
    options: &FitOptions,
    gpus: &[FitGpu],
    room: Room<'_>,
    out: &mut dyn Write,
) -> anyhow::Result<u8> {
    let cards: Vec<FitGpu> = if options.cards.is_empty() {
        gpus.to_vec()
    } else {
        options.cards.iter().map(|size| FitGpu::absent(*size)).collect()
    };
    let show = show::Show { ascii: options.ascii, color: options.color };
    let Some(name) = &options.model else {
        let table = matrix::build(&cards);
        if options.json {
            return json(out, &table).map(|()| FITS);
        }
        let mut text = Vec::new();
        matrix::write(&table, show, &mut text)?;
        return trimmed(&text, out).map(|()| FITS);
    };
    let model = Model::open(name)?;
    let answer = answer_for(&model, options, &cards)?;
    let wanted = Bytes(answer.need_bytes.saturating_add(answer.margin_bytes));
    let room = if answer.fits == Some(false) { room(wanted) } else { None };
    if options.json {
        let mut all = serde_json::to_value(&answer)?;
        if let (Some(fit), Some(all)) = (&room, all.as_object_mut()) {
            all.insert("make_room".to_owned(), serde_json::to_value(fit)?);
        }
        json(out, &all)?;
    } else {
        let mut text = Vec::new();
        text::write(&answer, show, &mut text)?;
        if let Some(fit) = &room {
            writeln!(text, "\nTO MAKE ROOM")?;
            for line in fit.text().lines() {
                writeln!(text, "  {line}")?;
            }
        }
        trimmed(&text, out)?;
    }
    Ok(if answer.fits == Some(false) { DOES_NOT_FIT } else { FITS })
}

/// The whole answer as data.
///
/// # Errors
///
/// Where a quantisation or an encoder is named that does not exist.
pub fn answer_for(model: &Model, options: &FitOptions, cards: &[FitGpu]) -> anyhow::Result<Answer> {
    match (model.kind, model.format) {
        (Kind::Diffusion, _) => Ok(other::answer(model, options, cards)),
        (Kind::Projector | Kind::Adapter | Kind::Weights, _) => {
            Ok(other::alone(model, options, cards))
        }
        (_, Format::Gguf | Format::Size) => llama::answer(model, options, cards),
        (_, _) => torch::answer(model, options, cards),
    }
}

/// Lines without blanks at their ends.
fn trimmed(text: &[u8], out: &mut dyn Write) -> anyhow::Result<()> {
    for line in String::from_utf8_lossy(text).lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn json(out: &mut dyn Write, value: &impl Serialize) -> anyhow::Result<()> {
    // The name of a model is its file's, and its data are the file's too.
    out.write_all(json_text(value)?.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read() {
        assert_eq!(parse_context("8192"), Ok(8192));
        assert_eq!(parse_context("128K"), Ok(131_072));
        assert_eq!(parse_context("1m"), Ok(1 << 20));
        for bad in ["", "k", "-1", "0", "8kk", "99999999999999999999", "9999m"] {
            assert!(parse_context(bad).is_err(), "{bad}");
        }
    }
}
