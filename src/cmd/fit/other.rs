//! The answer for what is no language model: diffusion pipelines, encoders, adapters.

use super::answer::{Answer, Step, about, fits_now, overhead, plain_verdicts, reference};
use super::torch::with_kernels;
use super::{FitGpu, FitOptions};
use crate::model::need::{Line, Need, weights_line};
use crate::model::{Kind, Model, diffusion as images};

/// Savings below this are not worth a line, in bytes.
const WORTH: u64 = 1 << 20;

fn bare(
    model: &Model,
    engine: &'static str,
    need: Need,
    options: &FitOptions,
    cards: &[FitGpu],
) -> Answer {
    let margin = options.margin.map_or_else(|| need.margin(), |m| m.0);
    let verdicts = plain_verdicts(need.bytes(), margin, cards);
    Answer {
        model: about(model, String::new()),
        engine,
        setup: String::new(),
        need_bytes: need.bytes(),
        margin_bytes: margin,
        context: None,
        settings: None,
        placement: None,
        compute_by_era: std::collections::BTreeMap::new(),
        remarks: Vec::new(),
        table: None,
        sections: Vec::new(),
        steps: Vec::new(),
        lines: Vec::new(),
        fits: fits_now(&verdicts),
        verdicts,
        need,
    }
}

/// A file that goes with a model: an encoder or an adapter.
pub(super) fn alone(model: &Model, options: &FitOptions, cards: &[FitGpu]) -> Answer {
    let need = Need { lines: vec![weights_line(model, model.weights.file_bytes())], host_bytes: 0 };
    let mut answer = bare(
        model,
        if model.kind == Kind::Weights { "alone" } else { "with its model" },
        need,
        options,
        cards,
    );
    let remark = match model.kind {
        Kind::Weights => "no config.json beside it: only the size of the weights is known",
        Kind::Adapter => "an adapter: it goes on top of its base model",
        _ => "this goes with a model: give that one, and this with --mmproj",
    };
    answer.remarks.push(remark.to_owned());
    answer
}

/// The answer for a diffusion pipeline.
pub(super) fn answer(model: &Model, options: &FitOptions, cards: &[FitGpu]) -> Answer {
    let Some(pipeline) = &model.pipeline else { return alone(model, options, cards) };
    let image = images::Image {
        batch: options.parallel.unwrap_or(1).clamp(1, 256),
        ..images::Image::default()
    };
    let n = images::need(pipeline, &image);
    let cuda = with_kernels(overhead(options, reference(cards)));
    let band = if model.exact_weights { 0 } else { 30 };
    let line = |key, label, bytes, note: &str| Line::band(key, label, bytes, band, note.to_owned());
    let scratch = n.vae_scratch.max(n.denoiser_scratch.unwrap_or(0));
    let who = if scratch == n.vae_scratch { "the VAE's decoder" } else { "the denoiser" };
    let lines = vec![
        line("text_encoders", "text encoders", pipeline.text_bytes, "16-bit"),
        line("denoiser", "denoiser", pipeline.denoiser_bytes, "16-bit"),
        line("vae", "VAE", pipeline.vae_bytes, "16-bit"),
        Line::band("scratch", "scratch", scratch, 300, format!("{who}, 1024 × 1024")),
        Line::overhead(&cuda),
    ];
    let mut answer = bare(model, "diffusers", Need { lines, host_bytes: 0 }, options, cards);
    answer.setup = format!(
        "1024 × 1024 · {} · all parts resident",
        if image.batch == 1 { "1 image".to_owned() } else { format!("{} images", image.batch) }
    );
    let tiled = images::vae_scratch(&images::Image { tiled: true, ..image });
    let tiled = scratch.saturating_sub(tiled.max(n.denoiser_scratch.unwrap_or(0)));
    let parts = [pipeline.text_bytes, pipeline.denoiser_bytes, pipeline.vae_bytes];
    let all = parts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let offload = all.saturating_sub(*parts.iter().max().unwrap_or(&0));
    for (title, frees_bytes, flag) in [
        ("one part at a time", offload, "pipe.enable_model_cpu_offload()"),
        ("text encoders in 8-bit", pipeline.text_bytes / 2, "a quantised text encoder"),
        ("tiled decoding", tiled, "pipe.vae.enable_tiling()"),
    ] {
        let (title, flag) = (title.to_owned(), flag.to_owned());
        answer.steps.push(Step { title, frees_bytes, flag, then_fits: false });
    }
    answer.steps.retain(|s| s.frees_bytes >= WORTH);
    answer.steps.sort_by_key(|step| std::cmp::Reverse(step.frees_bytes));
    answer
}
