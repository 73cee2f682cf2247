//! The answer for PyTorch: transformers, vLLM, training.

use super::answer::{
    Answer, Cell, Fits, Row, Section, SectionRow, Step, Table, about, fits, fits_now, label,
    overhead, plain_verdicts, reference,
};
use super::show::{grouped, size};
use super::{FitGpu, FitOptions};
use crate::model::best::{LEAST_CONTEXT, MOST_CONTEXT};
use crate::model::ggml::CacheType;
use crate::model::need::{Line, Need, weights_line};
use crate::model::overhead::Overhead;
use crate::model::quant::TORCH_QUANTS;
use crate::model::shape::Shape;
use crate::model::torch::{TorchNeed, TorchSettings, VllmSettings, need, vllm};
use crate::model::training::{Method, Training, need as training_need};
use crate::model::weights::Weights;
use crate::model::{Model, savings};
use crate::sample::text::shell_word;
use crate::units::Bytes;

const MIB: u64 = 1 << 20;
/// The context that is shown where none is asked for.
const USUAL_CONTEXT: u64 = 8192;
/// Columns of the table.
const CONTEXTS: [u64; 6] = [4096, 8192, 16_384, 32_768, 65_536, 131_072];
/// What PyTorch loads besides a context as llama.cpp has it: cuBLAS's and its own kernels. With
/// torch 2.11 for CUDA 13 an H200 shows 695 MiB outside of the allocator after a prefill; a
/// backward pass and an optimizer add some 72.
const KERNELS: u64 = 176 * MIB;
/// Error of activations in thousandths: Llama-like decoders are walked tensor by tensor; other
/// attention and unknown architectures by the common rules; experts differ by implementation.
const ACTIVATIONS: (u64, u64, u64) = (30, 150, 300);
/// Error of the allocator's slack in thousandths: it depends on what the process did before. Of
/// what is reserved this is 6 % at most, and was 1.2 % at most where it was measured.
const SLACK: u64 = 400;
/// What vLLM has outside of PyTorch's allocator besides the context: graphs, NCCL.
const VLLM_OUTSIDE: u64 = 1200 * MIB;

fn settings(model: &Model, options: &FitOptions, context: u64) -> TorchSettings {
    let mut s = TorchSettings::new(context);
    s.batch = options.parallel.unwrap_or(1).clamp(1, 4096);
    s.eager = options.no_flash_attention;
    if let Some(kind) = options.cache_type_k {
        s.cache_bytes = if kind == CacheType::F32 { 4 } else { (kind.bytes(32) / 32).max(1) };
    }
    if model.quant.as_deref() == Some("F32") && options.cache_type_k.is_none() {
        s.cache_bytes = 4;
    }
    s
}

fn sequences(n: u64) -> String {
    if n == 1 { "1 sequence".to_owned() } else { format!("{n} sequences") }
}

pub(super) fn with_kernels(mut cuda: Overhead) -> Overhead {
    if !cuda.measured && cuda.low != cuda.high {
        cuda.low = cuda.low.saturating_add(KERNELS / 2);
        cuda.bytes = cuda.bytes.saturating_add(KERNELS);
        cuda.high = cuda.high.saturating_add(KERNELS);
    }
    cuda
}

/// How far off activations may be.
fn activations_band(shape: &Shape) -> u64 {
    let plain = shape.known
        && shape.mla.is_none()
        && shape.recurrent_layers() == 0
        && shape.window_layers() == 0;
    match shape.experts {
        Some(_) => ACTIVATIONS.2,
        None if plain => ACTIVATIONS.0,
        None => ACTIVATIONS.1,
    }
}

fn lines(model: &Model, n: &TorchNeed, s: &TorchSettings, cuda: &Overhead) -> Need {
    let peak = n.activations.max(n.logits);
    let band = activations_band(&model.shape);
    let slack = n.slack.saturating_add(n.rounding);
    let note = format!("{} tokens · {}", grouped(s.context), sequences(s.batch));
    let what = format!("prefill of {} tokens at once", grouped(s.prefill));
    let lines = vec![
        weights_line(model, n.weights),
        Line::exact("kv_cache", "KV cache", n.cache, note),
        Line::band("activations", "activations", peak, band, what),
        Line::band(
            "workspace",
            "cuBLAS workspace",
            n.workspace,
            0,
            "the allocator hands it out".into(),
        ),
        Line::band(
            "slack",
            "allocator slack",
            slack,
            SLACK,
            "rests of segments, cached blocks".into(),
        ),
        Line::overhead(cuda),
    ];
    Need { lines, host_bytes: 0 }
}

/// The answer for a folder of transformers.
pub(super) fn answer(
    model: &Model,
    options: &FitOptions,
    cards: &[FitGpu],
) -> anyhow::Result<Answer> {
    let quant = match &options.quant {
        Some(name) => Some(crate::model::quant::named(name).ok_or_else(|| {
            let known: Vec<&str> = TORCH_QUANTS.iter().map(|q| q.name).collect();
            anyhow::anyhow!("no such quantisation; there are {}", known.join(", "))
        })?),
        None => None,
    };
    let mut model = model.clone();
    if let Some(quant) = quant {
        model.weights = quant.weights(&model.weights);
        model.quant = Some(quant.name.to_owned());
        model.exact_weights = false;
    }
    let model = &model;
    let trained = if model.shape.context_max == 0 { u64::MAX } else { model.shape.context_max };
    let context = options.context.unwrap_or(USUAL_CONTEXT.min(trained));
    let s = settings(model, options, context);
    let n = need(&model.shape, &model.weights, &s);
    let cuda = with_kernels(overhead(options, reference(cards)));
    let need = lines(model, &n, &s, &cuda);
    let margin = options.margin.map_or_else(|| need.margin(), |m| m.0);
    let mut verdicts = plain_verdicts(need.bytes(), margin, cards);
    for verdict in &mut verdicts {
        let free = Bytes(verdict.free_bytes);
        let longest = longest(model, &model.weights, options, &cuda, free);
        verdict.longest_context = Some(longest);
    }
    let heads = model.shape.layers.iter().map(|l| l.kv_heads).max().unwrap_or(0);
    let mut shape =
        format!("{} layers · {heads} KV heads × {}", model.shape.layers.len(), model.shape.head_k);
    if model.shape.context_max > 0 {
        shape = format!("{shape} · trained for {}", grouped(model.shape.context_max));
    }
    Ok(Answer {
        model: about(model, shape),
        engine: "transformers",
        setup: format!("{} tokens · {} · 16-bit cache", grouped(context), sequences(s.batch)),
        need_bytes: need.bytes(),
        margin_bytes: margin,
        context: Some(context),
        settings: None,
        placement: None,
        compute_by_era: std::collections::BTreeMap::new(),
        remarks: remarks(model, &s, &n),
        table: Some(table(model, options, cards, &cuda, margin)),
        sections: sections(model, options, cards, context, &cuda),
        steps: steps(model, &s, context),
        lines: start_lines(model, context),
        fits: fits_now(&verdicts),
        verdicts,
        need,
    })
}

fn remarks(model: &Model, s: &TorchSettings, n: &TorchNeed) -> Vec<String> {
    let mut remarks = Vec::new();
    let all = TorchSettings { all_logits: true, ..*s };
    let all = need(&model.shape, &model.weights, &all);
    let more = all.reserved().saturating_sub(n.reserved());
    if more > 16 * MIB {
        remarks.push(format!("{} more where logits of every position are kept", size(more)));
    }
    let eager = need(&model.shape, &model.weights, &TorchSettings { eager: true, ..*s });
    let more = eager.reserved().saturating_sub(n.reserved());
    if !s.eager {
        remarks.push(format!("{} more with eager attention", size(more)));
    }
    remarks
}

fn longest(
    model: &Model,
    weights: &Weights,
    options: &FitOptions,
    cuda: &Overhead,
    free: Bytes,
) -> u64 {
    let trained = model.shape.context_max;
    let most = if trained == 0 { MOST_CONTEXT } else { trained };
    let room = |context: u64| {
        let s = settings(model, options, context);
        let n = need(&model.shape, weights, &s);
        let bytes = n.reserved().saturating_add(cuda.bytes);
        let margin = options.margin.map_or_else(|| lines(model, &n, &s, cuda).margin(), |m| m.0);
        fits(bytes, margin, free) == Fits::Yes
    };
    if room(most) {
        return most;
    }
    let (mut low, mut high) = (0, most / 256);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        *(if room(middle * 256) { &mut low } else { &mut high }) = middle;
    }
    low * 256
}

fn table(
    model: &Model,
    options: &FitOptions,
    cards: &[FitGpu],
    cuda: &Overhead,
    margin: u64,
) -> Table {
    let gpu = reference(cards);
    let now = gpu.and_then(|gpu| gpu.free.get());
    let trained = model.shape.context_max.max(LEAST_CONTEXT);
    let contexts: Vec<u64> = CONTEXTS.iter().copied().filter(|c| *c <= trained).collect();
    let mut rows = Vec::new();
    let own = model.quant.clone().unwrap_or_default();
    let mut row = |name: &str, this_file: bool, weights: &Weights| {
        let cells = contexts.iter().map(|context| {
            let s = settings(model, options, *context);
            let bytes = need(&model.shape, weights, &s).reserved().saturating_add(cuda.bytes);
            let room = |free: Bytes| fits(bytes, margin, free) == Fits::Yes;
            Cell { bytes, now: now.map(room), empty: gpu.map(|g| room(g.empty())) }
        });
        rows.push(Row {
            quant: name.to_owned(),
            this_file,
            weights_bytes: weights.file_bytes(),
            cells: cells.collect(),
            longest_context: now.map(|free| longest(model, weights, options, cuda, free)),
        });
    };
    row(&own, true, &model.weights);
    let plain = model.unpacked();
    let bits = model.weights.file_bytes().saturating_mul(8) / plain.elements().max(1);
    for quant in TORCH_QUANTS.iter().skip(1).filter(|q| q.layers / 1000 < bits) {
        row(quant.name, false, &quant.weights(&plain));
    }
    Table { gpu: gpu.map(label), contexts, rows }
}

fn sections(
    model: &Model,
    options: &FitOptions,
    cards: &[FitGpu],
    context: u64,
    cuda: &Overhead,
) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(gpu) = reference(cards) {
        let mut s = VllmSettings::new(context);
        s.cache_bytes = if options.cache_type_k == Some(CacheType::Fp8) { 1 } else { 2 };
        let outside = cuda.bytes.saturating_add(VLLM_OUTSIDE);
        let b = vllm(&model.shape, &model.weights, &s, gpu.total.0, outside);
        let requests = format!("{}.{:02}", b.concurrency / 100, b.concurrency % 100);
        let note =
            format!("{} tokens: {requests} requests of {}", grouped(b.tokens), grouped(context));
        let row = |label: &str, bytes: u64, note: &str| SectionRow {
            label: label.to_owned(),
            bytes,
            fits: None,
            note: note.to_owned(),
            parts: Vec::new(),
        };
        let enough = b.cache > 0 && b.tokens >= context;
        let mut cache = row("left for the cache", b.cache, &note);
        cache.fits = Some(enough);
        let free = gpu.free.get().map_or(0, |free| free.0);
        let mut taken = row("taken in all", b.budget, "of the whole card, free or not");
        taken.fits = gpu.free.get().map(|free| b.budget <= free.0);
        if taken.fits == Some(false) {
            let utilization = u128::from(free) * 100 / u128::from(gpu.total.0.max(1));
            taken.note = format!("only {} free: at most 0.{utilization:02} now", size(free));
        }
        sections.push(Section {
            title: format!(
                "vLLM at --gpu-memory-utilization 0.{} of {}",
                s.utilization,
                label(gpu)
            ),
            rows: vec![
                taken,
                row("weights", b.weights, ""),
                row("activations", b.activations, "its trial run of 8,192 tokens, ±30 %"),
                row("outside of PyTorch", b.outside, "context, graphs, NCCL"),
                cache,
            ],
        });
    }
    sections.push(training(model, cards));
    sections
}

fn training(model: &Model, cards: &[FitGpu]) -> Section {
    let empty = cards.iter().map(FitGpu::empty).max();
    let plain = model.unpacked();
    let rows = Method::all().map(|(method, name)| {
        let run = Training::new(method);
        let n = training_need(&model.shape, &plain, &run);
        let bytes = n.total();
        let states = bytes.saturating_sub(n.activations).saturating_sub(n.logits);
        let whole = Training { checkpointing: false, ..run };
        let saved = savings::checkpointing(&model.shape, &plain, &whole).bytes;
        SectionRow {
            label: name.to_owned(),
            bytes,
            fits: empty.map(|free| fits(bytes, bytes / 10, free) == Fits::Yes),
            note: format!("states {} · off: +{}", size(states), size(saved)),
            parts: vec![
                ("states", states),
                ("activations", n.activations),
                ("logits", n.logits),
                ("saved_by_checkpointing", saved),
            ],
        }
    });
    Section {
        title: "TRAINING  1 × 2,048 tokens, checkpointing on, ±25 %".to_owned(),
        rows: rows.collect(),
    }
}

fn steps(model: &Model, s: &TorchSettings, context: u64) -> Vec<Step> {
    let now = need(&model.shape, &model.weights, s).reserved();
    let mut steps = Vec::new();
    let mut step = |title: &str, after: u64, flag: String| {
        let frees_bytes = now.saturating_sub(after);
        if frees_bytes >= MIB {
            let title = title.to_owned();
            steps.push(Step { title, frees_bytes, flag, then_fits: false });
        }
    };
    let of = |s: &TorchSettings| need(&model.shape, &model.weights, s).reserved();
    let packed = model.unpacked().file_bytes() > model.weights.file_bytes();
    let four = if packed { 0 } else { savings::four_bit_on_load(&model.weights).bytes };
    step("4-bit on load", now.saturating_sub(four), "load_in_4bit, double quant".into());
    let half = TorchSettings { context: context / 2, prefill: s.prefill / 2, ..*s };
    step("half the context", of(&half), format!("{} tokens", grouped(context / 2)));
    let fp8 = TorchSettings { cache_bytes: 1, ..*s };
    step("8-bit cache", of(&fp8), "--kv-cache-dtype fp8 (vLLM)".into());
    let chunk = TorchSettings { prefill: s.prefill.min(2048), ..*s };
    step("prefill in pieces of 2,048", of(&chunk), "prefill_chunk_size=2048".into());
    steps.sort_by_key(|step| std::cmp::Reverse(step.frees_bytes));
    steps
}

fn start_lines(model: &Model, context: u64) -> Vec<String> {
    let path = model.path.as_ref().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
    vec![format!("vllm serve {} --max-model-len {context}", shell_word(&path))]
}
