//! The answer for llama.cpp: GGUF files, and sizes.

mod lines;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

use super::answer::{
    About, Answer, Cell, Fits, Row, Table, Verdict, about, fits, fits_now, label, moments,
    overhead, reference, spare,
};
use super::show::{grouped, parameters, size};
use super::{FitGpu, FitOptions};
use crate::model::best::Question;
use crate::model::compute::Era;
use crate::model::ggml::CacheType;
use crate::model::kv::{padded, slope};
use crate::model::need::{Need, llama as lines_of};
use crate::model::overhead::Overhead;
use crate::model::plan::{Placement, Settings, place, resident};
use crate::model::quant::{GGUF_QUANTS, Quant, named};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::model::{Kind, Model};
use crate::sample::text::clean;
use crate::units::Bytes;

/// The context that is shown where none is asked for.
const USUAL_CONTEXT: u64 = 8192;
/// The quantisation of a size without a file.
const USUAL_QUANT: &str = "Q4_K_M";
/// Columns of the table.
const CONTEXTS: [u64; 6] = [4096, 8192, 16_384, 32_768, 65_536, 131_072];
/// An encoder's scratch at its largest image, beside its weights: 28 % of them, in thousandths,
/// and no less than 128 MiB.
const ENCODER_SCRATCH: (u64, u64) = (280, 128 << 20);

struct Case<'a> {
    model: &'a Model,
    options: &'a FitOptions,
    cards: &'a [FitGpu],
    settings: Settings,
    placement: Placement,
    need: Need,
    margin: u64,
}

/// The answer.
pub(super) fn answer(
    given: &Model,
    options: &FitOptions,
    cards: &[FitGpu],
) -> anyhow::Result<Answer> {
    let model = quantised(given, options)?;
    let settings = settings(&model, options)?;
    let placement = place(&model.shape, &model.weights, &settings);
    let cuda = overhead(options, reference(cards));
    let need = lines_of(&model, &placement, &settings, &cuda);
    let margin = options.margin.map_or_else(|| need.margin(), |m| m.0);
    let case = Case { model: &model, options, cards, settings, placement, need, margin };
    let verdicts = case.verdicts();
    let fits = fits_now(&verdicts);
    let steps = case.steps();
    Ok(Answer {
        model: case.about(),
        engine: "llama.cpp",
        setup: case.setup(),
        need_bytes: case.need.bytes(),
        margin_bytes: margin,
        context: Some(case.settings.cache.context),
        compute_by_era: case.compute_by_era(),
        remarks: case.remarks(),
        table: Some(case.table(given)),
        sections: Vec::new(),
        lines: case.lines(&verdicts),
        verdicts,
        steps,
        fits,
        need: case.need,
        settings: Some(case.settings),
        placement: Some(case.placement),
    })
}

fn quantised(given: &Model, options: &FitOptions) -> anyhow::Result<Model> {
    let wanted = match (&options.quant, given.exact_weights) {
        (Some(name), _) => Some(name.as_str()),
        (None, true) => None,
        (None, false) => Some(USUAL_QUANT),
    };
    let Some(name) = wanted else { return Ok(given.clone()) };
    let Some(quant) = named(name) else {
        let known: Vec<&str> = GGUF_QUANTS.iter().map(|q| q.name).collect();
        bail!("no such quantisation; there are {}", known.join(", "));
    };
    let mut model = given.clone();
    model.weights = quant.weights(&given.weights);
    model.quant = Some(quant.name.to_owned());
    model.exact_weights = false;
    Ok(model)
}

fn settings(model: &Model, options: &FitOptions) -> anyhow::Result<Settings> {
    let trained = if model.shape.context_max == 0 { u64::MAX } else { model.shape.context_max };
    let context = options.context.unwrap_or(USUAL_CONTEXT.min(trained));
    let mut s = Settings::new(context);
    s.cache.slots = options.parallel.unwrap_or(1).clamp(1, 4096);
    s.cache.ubatch = options.ubatch.unwrap_or(s.cache.ubatch).clamp(1, 1 << 20);
    if let Some(keys) = options.cache_type_k {
        s.cache.keys = keys;
        s.cache.values = keys;
    }
    s.cache.values = options.cache_type_v.unwrap_or(s.cache.values);
    if options.no_flash_attention && s.cache.values.is_quantised() {
        bail!("a quantised cache of values needs flash attention: leave it on, or cache f16");
    }
    s.cache.full_window = options.swa_full;
    s.cache.unified = !options.kv_per_slot;
    s.cache.state_copies = options.draft.unwrap_or(0).min(64);
    s.draft = s.cache.state_copies > 0;
    s.compute.era = options.era.unwrap_or(Era::Limited);
    s.compute.flash = !options.no_flash_attention;
    s.compute.op_offload = !options.no_op_offload;
    s.cache_on_gpu = !options.no_kv_offload;
    s.gpu_layers = options.gpu_layers.unwrap_or(u64::MAX).min(model.shape.layers.len() as u64 + 1);
    s.cpu_experts = options.cpu_experts.unwrap_or(0);
    if let Some(path) = &options.mmproj {
        let encoder = Model::open(path).with_context(|| "the encoder cannot be read")?;
        if encoder.kind != Kind::Projector {
            bail!("{} is no encoder (mmproj) file", clean(path));
        }
        let bytes = encoder.weights.file_bytes();
        let scratch = (bytes / 1000).saturating_mul(ENCODER_SCRATCH.0).max(ENCODER_SCRATCH.1);
        s.projector = bytes.saturating_add(scratch);
    }
    Ok(s)
}

fn split(settings: &Settings, shares: &[u64]) -> Settings {
    Settings { split: shares.to_vec(), ..settings.clone() }
}

impl Case<'_> {
    fn shape(&self) -> &Shape {
        &self.model.shape
    }

    fn all_layers(&self) -> u64 {
        self.shape().layers.len() as u64 + 1
    }

    fn about(&self) -> About {
        let shape = self.shape();
        let mut parts = vec![format!("{} layers", shape.layers.len())];
        let heads = shape.layers.iter().map(|l| l.kv_heads).max().unwrap_or(0);
        match (shape.mla, shape.causal) {
            (Some(mla), _) => parts.push(format!("latent {} + {}", mla.kv_rank, mla.rope)),
            (None, true) => {
                let word = if heads == 1 { "head" } else { "heads" };
                parts.push(format!("{heads} KV {word} × {}", shape.head_k));
            }
            (None, false) => parts.push("no cache".to_owned()),
        }
        if shape.window > 0 {
            parts.push(format!("window {}", grouped(shape.window)));
        }
        if shape.recurrent_layers() > 0 {
            parts.push(format!("{} recurrent", shape.recurrent_layers()));
        }
        if let Some(e) = shape.experts {
            parts.push(format!("{} of {} experts", e.used, e.count));
        }
        if shape.context_max > 0 {
            parts.push(format!("trained for {}", grouped(shape.context_max)));
        }
        about(self.model, parts.join(" · "))
    }

    fn setup(&self) -> String {
        let s = &self.settings;
        let cache = if s.cache.keys == s.cache.values {
            s.cache.keys.name().to_owned()
        } else {
            format!("{}/{}", s.cache.keys.name(), s.cache.values.name())
        };
        let layers = if s.gpu_layers >= self.all_layers() {
            "all layers".to_owned()
        } else {
            format!("{} of {} layers", s.gpu_layers, self.all_layers())
        };
        let slots = if s.cache.slots == 1 { "slot" } else { "slots" };
        format!(
            "{} tokens · {cache} cache · {} {slots} · {layers}",
            grouped(s.cache.context),
            s.cache.slots
        )
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let all = slope(self.shape(), &self.settings.cache);
        let here = Shape {
            layers: resident(self.shape(), &self.settings).to_vec(),
            ..self.shape().clone()
        };
        let here = slope(&here, &self.settings.cache);
        match if self.settings.cache_on_gpu { here } else { 0 } {
            _ if all == 0 => {}
            here if here == all => {
                remarks.push(format!("every further token costs {} B", grouped(all)));
            }
            here => remarks.push(format!(
                "every further token costs {} B, and {} B of host memory",
                grouped(here),
                grouped(all - here)
            )),
        }
        if self.options.era.is_none() {
            let mut old = self.settings.clone();
            old.compute.era = Era::AllLogits;
            let old = place(self.shape(), &self.model.weights, &old).on_gpus();
            let more = old.saturating_sub(self.placement.on_gpus());
            if more > 16 << 20 {
                let words = Era::AllLogits.words();
                remarks.push(format!("{} more with {words}", size(more)));
            }
        }
        if !self.shape().known {
            remarks.push("this architecture is not known here: common rules, scratch ±15 %".into());
        }
        if self.shape().nextn > 0 && !self.settings.draft {
            remarks
                .push("its layers for guessing ahead are not counted: not loaded as a rule".into());
        }
        let trained = self.shape().context_max;
        if trained > 0 && self.settings.cache.context > trained {
            remarks.push(format!("it was trained for {} tokens only", grouped(trained)));
        }
        remarks
    }

    fn compute_by_era(&self) -> BTreeMap<&'static str, u64> {
        let of = |era| {
            let mut settings = self.settings.clone();
            settings.compute.era = era;
            let placed = place(self.shape(), &self.model.weights, &settings);
            placed.gpus.first().map_or(0, |gpu| gpu.compute.bytes())
        };
        Era::TABLE.iter().map(|row| (row.1, of(row.0))).collect()
    }

    fn budget(&self, free: Bytes, cuda: &Overhead) -> u64 {
        free.0.saturating_sub(cuda.bytes).saturating_sub(self.margin)
    }

    fn question<'a>(&'a self, weights: &'a Weights, budgets: &'a [u64]) -> Question<'a> {
        Question { shape: self.shape(), weights, budgets }
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for gpu in self.cards {
            let cuda = overhead(self.options, Some(gpu));
            let need = self.placement.on_gpus().saturating_add(cuda.bytes);
            for (when, free) in moments(gpu) {
                let budgets = [self.budget(free, &cuda)];
                let mut verdict = self.verdict(&budgets, &[1], free, need);
                verdict.gpu = label(gpu);
                verdict.name.clone_from(&gpu.name);
                verdict.when = when;
                verdicts.push(verdict);
            }
        }
        if self.cards.len() > 1 {
            verdicts.extend(self.together());
        }
        verdicts
    }

    /// All GPUs that are here, each with the share that its free memory gives it.
    fn together(&self) -> Option<Verdict> {
        let mut budgets = Vec::new();
        let (mut free, mut cuda_bytes) = (Bytes::ZERO, 0_u64);
        for gpu in self.cards {
            let cuda = overhead(self.options, Some(gpu));
            let now = gpu.free.get()?;
            free += now;
            cuda_bytes = cuda_bytes.saturating_add(cuda.bytes);
            budgets.push(self.budget(now, &cuda));
        }
        let placed = split(&self.settings, &budgets);
        let need = place(self.shape(), &self.model.weights, &placed).on_gpus();
        let mut verdict = self.verdict(&budgets, &budgets, free, need.saturating_add(cuda_bytes));
        verdict.gpu = format!("all {} GPUs", self.cards.len());
        "together".clone_into(&mut verdict.name);
        Some(verdict)
    }

    fn verdict(&self, budgets: &[u64], shares: &[u64], free: Bytes, need: u64) -> Verdict {
        let settings = split(&self.settings, shares);
        let question = self.question(&self.model.weights, budgets);
        let all = Settings { gpu_layers: self.all_layers(), cpu_experts: 0, ..settings.clone() };
        let mut eight = all.clone();
        (eight.cache.keys, eight.cache.values) = (CacheType::Q8_0, CacheType::Q8_0);
        let mut state = fits(need, self.margin, free);
        if budgets.len() > 1 && state == Fits::Yes && !question.fits(&settings) {
            // Together there is room, and one of them overflows.
            state = Fits::No;
        }
        Verdict {
            gpu: String::new(),
            name: String::new(),
            when: "now",
            free_bytes: free.0,
            fits: state,
            spare_bytes: spare(free, need),
            best: question.offload(&settings),
            longest_context: Some(question.context(&all)),
            longest_context_q8_0: (!self.options.no_flash_attention)
                .then(|| question.context(&eight)),
        }
    }

    fn table(&self, given: &Model) -> Table {
        let trained = self.shape().context_max;
        let longest =
            if trained == 0 { u64::MAX } else { trained.max(self.settings.cache.context) };
        let contexts: Vec<u64> =
            CONTEXTS.iter().copied().filter(|c| *c <= padded(longest)).collect();
        let mut rows: Vec<Row> = Vec::new();
        let own = given.exact_weights.then(|| given.quant.clone()).flatten();
        for quant in GGUF_QUANTS {
            let is_own = own.as_deref() == Some(quant.name);
            let weights =
                if is_own { given.weights.clone() } else { quant.weights(&given.weights) };
            rows.push(self.row(quant.name, is_own, &weights, &contexts));
        }
        if let Some(own) = own.filter(|own| !GGUF_QUANTS.iter().any(|q: &Quant| q.name == own)) {
            rows.push(self.row(&own, true, &given.weights, &contexts));
            rows.sort_by_key(|row| std::cmp::Reverse(row.weights_bytes));
        }
        Table { gpu: reference(self.cards).map(label), contexts, rows }
    }

    fn row(&self, name: &str, this_file: bool, weights: &Weights, contexts: &[u64]) -> Row {
        let gpu = reference(self.cards);
        let cuda = overhead(self.options, gpu);
        let now = gpu.and_then(|gpu| gpu.free.get());
        let mut all = Settings {
            gpu_layers: self.all_layers(),
            cpu_experts: 0,
            split: vec![1],
            ..self.settings.clone()
        };
        let mut weights_bytes = 0;
        let cells = contexts.iter().map(|context| {
            all.cache.context = *context;
            let placed = place(self.shape(), weights, &all);
            weights_bytes = placed.gpus.first().map_or(0, |g| g.weights);
            let bytes = placed.on_gpus().saturating_add(cuda.bytes);
            let room = |free: Bytes| fits(bytes, self.margin, free) == Fits::Yes;
            Cell { bytes, now: now.map(room), empty: gpu.map(|gpu| room(gpu.empty())) }
        });
        let cells = cells.collect();
        let longest = now.map(|free| {
            let budgets = [self.budget(free, &cuda)];
            self.question(weights, &budgets).context(&all)
        });
        Row { quant: name.to_owned(), this_file, weights_bytes, cells, longest_context: longest }
    }
}

/// Parameters and bits for a title.
pub(super) fn title(about: &About) -> String {
    let mut parts = Vec::new();
    if !about.arch.is_empty() {
        parts.push(about.arch.clone());
    }
    parts.extend(about.quant.clone());
    if about.parameters > 0 {
        parts.push(parameters(about.parameters));
    }
    parts.push(size(about.bytes));
    parts.join(" · ")
}
