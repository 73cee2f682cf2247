//! The answer for llama.cpp: GGUF files, and sizes.

use anyhow::{Context as _, bail};

use super::answer::{
    About, Answer, Cell, Fits, Row, Step, Table, Verdict, about, fits, fits_now, label, moments,
    overhead, reference, spare,
};
use super::show::{grouped, parameters, shell_word, size};
use super::{FitGpu, FitOptions};
use crate::model::best::Question;
use crate::model::compute::Era;
use crate::model::ggml::CacheType;
use crate::model::kv::{padded, slope};
use crate::model::need::{Need, llama as lines_of};
use crate::model::overhead::Overhead;
use crate::model::plan::{Placement, Settings, place};
use crate::model::quant::{GGUF_QUANTS, Quant, named};
use crate::model::savings::Running;
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::model::{Kind, Model};
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
    s.compute.era = options.era.unwrap_or(Era::Limited);
    s.compute.flash = !options.no_flash_attention;
    s.compute.op_offload = !options.no_op_offload;
    s.cache_on_gpu = !options.no_kv_offload;
    s.gpu_layers = options.gpu_layers.unwrap_or(u64::MAX).min(model.shape.layers.len() as u64 + 1);
    s.cpu_experts = options.cpu_experts.unwrap_or(0);
    if let Some(path) = &options.mmproj {
        let encoder = Model::open(path).with_context(|| "the encoder cannot be read")?;
        if encoder.kind != Kind::Projector {
            bail!("{} is no encoder (mmproj) file", super::show::clean(path));
        }
        let bytes = encoder.weights.file_bytes();
        let scratch = (bytes / 1000).saturating_mul(ENCODER_SCRATCH.0).max(ENCODER_SCRATCH.1);
        s.projector = bytes.saturating_add(scratch);
    }
    Ok(s)
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
            (None, true) => parts.push(format!("{heads} KV heads × {}", shape.head_k)),
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
        let per_token = slope(self.shape(), &self.settings.cache);
        if per_token > 0 {
            remarks.push(format!("every further token costs {} B", grouped(per_token)));
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
        if self.shape().nextn > 0 {
            remarks
                .push("its layers for guessing ahead are not counted: not loaded as a rule".into());
        }
        let trained = self.shape().context_max;
        if trained > 0 && self.settings.cache.context > trained {
            remarks.push(format!("it was trained for {} tokens only", grouped(trained)));
        }
        remarks
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
        let placed = self.split(&self.settings, &budgets);
        let need = place(self.shape(), &self.model.weights, &placed).on_gpus();
        let mut verdict = self.verdict(&budgets, &budgets, free, need.saturating_add(cuda_bytes));
        verdict.gpu = format!("all {} GPUs", self.cards.len());
        verdict.name = "split by free memory".to_owned();
        Some(verdict)
    }

    fn split(&self, settings: &Settings, shares: &[u64]) -> Settings {
        Settings { split: shares.to_vec(), ..settings.clone() }
    }

    fn verdict(&self, budgets: &[u64], shares: &[u64], free: Bytes, need: u64) -> Verdict {
        let settings = self.split(&self.settings, shares);
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

    fn steps(&self) -> Vec<Step> {
        let running =
            Running { shape: self.shape(), weights: &self.model.weights, settings: &self.settings };
        let s = &self.settings;
        let layers = s.gpu_layers.min(self.all_layers());
        let mut steps = Vec::new();
        let mut step = |title: String, frees: u64, flag: String| {
            steps.push(Step { title, frees_bytes: frees, flag, then_fits: false });
        };
        if s.compute.flash && !s.cache.keys.is_quantised() {
            for (kind, name) in [(CacheType::Q8_0, "q8_0"), (CacheType::Q4_0, "q4_0")] {
                let freed = running.cache_type(kind).bytes;
                step(format!("{name} cache"), freed, format!("-ctk {name} -ctv {name}"));
            }
        }
        let half = s.cache.context / 2;
        step("half the context".into(), running.half_context().bytes, format!("-c {half}"));
        if s.cache.slots > 1 {
            step("one slot".into(), running.slots(1).bytes, "-np 1".into());
        }
        if s.cache.ubatch > 128 {
            let half = s.cache.ubatch / 2;
            step(
                "half the micro-batch".into(),
                running.micro_batch(half).bytes,
                format!("-ub {half}"),
            );
        }
        if self.model.weights.has_experts() {
            for n in [1, self.all_layers() / 4] {
                let title = format!(
                    "experts of {n} {} to the CPU",
                    if n == 1 { "layer" } else { "layers" }
                );
                let flag = format!("--n-cpu-moe {}", s.cpu_experts.saturating_add(n));
                step(title, running.experts_to_cpu(n).bytes, flag);
            }
        } else if layers > 4 {
            for n in [1, 4] {
                let title =
                    format!("{n} {} fewer on the GPU", if n == 1 { "layer" } else { "layers" });
                step(title, running.fewer_layers(n).bytes, format!("-ngl {}", layers - n));
            }
        }
        for name in ["Q4_K_M", "Q3_K_M"] {
            if let Some(quant) = named(name).filter(|_| self.model.quant.as_deref() != Some(name)) {
                let freed = running.quantised(&quant).bytes;
                step(format!("weights in {name}"), freed, format!("a {name} file"));
            }
        }
        steps.retain(|step| step.frees_bytes >= 1 << 20);
        steps.sort_by_key(|step| std::cmp::Reverse(step.frees_bytes));
        self.mark(&mut steps);
        steps
    }

    /// Marks the steps that would be enough, where it does not fit now.
    fn mark(&self, steps: &mut [Step]) {
        let Some((gpu, free)) = reference(self.cards).and_then(|g| Some((g, g.free.get()?))) else {
            return;
        };
        let cuda = overhead(self.options, Some(gpu));
        let need = self.placement.on_gpus().saturating_add(cuda.bytes);
        if fits(need, self.margin, free) == Fits::Yes {
            return;
        }
        for step in steps {
            let less = need.saturating_sub(step.frees_bytes);
            step.then_fits = fits(less, self.margin, free) == Fits::Yes;
        }
    }

    fn lines(&self, verdicts: &[Verdict]) -> Vec<String> {
        let mut now = verdicts.iter().filter(|v| v.when == "now");
        let asked = (self.settings.gpu_layers, self.settings.cpu_experts);
        let context = self.settings.cache.context;
        let main = reference(self.cards).map(label);
        if let Some(fitting) = now.clone().find(|v| v.fits == Fits::Yes) {
            let chosen = now.find(|v| v.fits == Fits::Yes && Some(&v.gpu) == main.as_ref());
            let line = self.line(asked.0, asked.1, None);
            return vec![self.on(chosen.unwrap_or(fitting), line)];
        }
        // Together, or the one with the most room.
        let last = verdicts.last().filter(|v| v.gpu.starts_with("all "));
        let first = last.or_else(|| now.find(|v| Some(&v.gpu) == main.as_ref()));
        let Some(first) = first else { return vec![self.line(asked.0, asked.1, None)] };
        let mut lines = Vec::new();
        let shorter = first.longest_context.filter(|n| *n >= 2048 && *n < context);
        if let Some(best) = first.best {
            lines.push(self.line(best.gpu_layers, best.cpu_experts, None));
        }
        if let Some(shorter) = shorter {
            lines.push(self.line(self.all_layers(), 0, Some(shorter)));
        }
        lines
    }

    /// Names the GPU where it is not the only one.
    fn on(&self, verdict: &Verdict, line: String) -> String {
        let gpu = self.cards.iter().find(|gpu| label(gpu) == verdict.gpu);
        match gpu.and_then(|gpu| gpu.index).filter(|_| self.cards.len() > 1) {
            Some(n) => format!("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={n} {line}"),
            None => line,
        }
    }

    fn line(&self, gpu_layers: u64, cpu_experts: u64, context: Option<u64>) -> String {
        let s = &self.settings;
        let path = self.model.path.as_ref().map(|p| p.to_string_lossy().into_owned());
        let usual = format!("MODEL-{}.gguf", self.model.quant.as_deref().unwrap_or(USUAL_QUANT));
        let mut words = vec![
            "llama-server".to_owned(),
            format!("-m {}", shell_word(path.as_deref().unwrap_or(&usual))),
            format!("-c {}", context.unwrap_or(s.cache.context)),
            format!("-ngl {}", if gpu_layers >= self.all_layers() { 99 } else { gpu_layers }),
        ];
        let mut flag = |on: bool, text: String| {
            if on {
                words.push(text);
            }
        };
        flag(cpu_experts > 0 && gpu_layers > 0, format!("--n-cpu-moe {cpu_experts}"));
        flag(s.cache.keys != CacheType::F16, format!("-ctk {}", s.cache.keys.name()));
        flag(s.cache.values != CacheType::F16, format!("-ctv {}", s.cache.values.name()));
        flag(s.cache.values.is_quantised(), "-fa on".to_owned());
        flag(!s.compute.flash, "-fa off".to_owned());
        let slots = s.cache.slots;
        let say_slots = slots > 1 || self.shape().depends_on_slots();
        flag(say_slots, format!("-np {slots}"));
        flag(s.cache.ubatch != 512, format!("-ub {}", s.cache.ubatch));
        flag(s.cache.full_window, "--swa-full".to_owned());
        flag(!s.cache_on_gpu, "-nkvo".to_owned());
        let encoder = self.options.mmproj.as_deref().unwrap_or_default();
        flag(!encoder.is_empty(), format!("--mmproj {}", shell_word(encoder)));
        words.join(" ")
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
