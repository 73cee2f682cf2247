//! The compute buffer of llama.cpp: scratch for one micro-batch, reused by all layers.
//!
//! The largest of three moments counts: inside a layer, inside its attention, and the projection
//! to the vocabulary. Checked against what llama.cpp itself computes (`tests/fit_oracle.rs`).

use serde::Serialize;

use super::kv::{CacheSettings, CellCounts, cells, padded};
use super::shape::{Cells, Shape};

/// Bytes of a float.
const F32: u64 = 4;
/// From this many tokens on, a weight on the CPU is copied to the GPU and multiplied there
/// (`GGML_OP_OFFLOAD_MIN_BATCH`).
const OFFLOAD_BATCH: u64 = 32;
/// Copies of the inputs where several GPUs work as a pipeline.
const PIPELINE_COPIES: u64 = 4;

/// Which builds of llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `llama-server` since June 2026: logits for the tokens that are wanted only.
    Limited,
    /// Before, and `llama-cli`, `llama-bench`, `llama-perplexity` still: logits for the whole
    /// micro-batch.
    AllLogits,
    /// The fork `ik_llama.cpp`.
    IkLlama,
}

impl Era {
    /// Every era with its name on a command line and in words.
    pub const TABLE: [(Self, &'static str, &'static str); 3] = [
        (Self::Limited, "new", "llama-server since June 2026"),
        (Self::AllLogits, "old", "older builds, llama-cli, llama-bench"),
        (Self::IkLlama, "ik", "ik_llama.cpp"),
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }
}

impl std::str::FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let row = Self::TABLE.iter().find(|row| row.1 == text);
        row.map(|row| row.0).ok_or_else(|| "no such era; there are new, old, ik".to_owned())
    }
}

/// What the compute buffer depends on besides the model and its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ComputeSettings {
    /// Which builds.
    pub era: Era,
    /// Tokens whose logits are wanted; `None` for what the era does.
    pub outputs: Option<u64>,
    /// Flash attention.
    pub flash: bool,
    /// Whether the device is CUDA's: expands quantised caches, takes over work of the CPU.
    pub cuda: bool,
    /// Whether weights on the CPU are copied to the GPU for large batches.
    pub op_offload: bool,
}

impl ComputeSettings {
    /// What a present `llama-server` does on CUDA.
    pub const fn new() -> Self {
        Self { era: Era::Limited, outputs: None, flash: true, cuda: true, op_offload: true }
    }
}

impl Default for ComputeSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// What of the model is on the device in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnDevice {
    /// Layers on it.
    pub layers: u64,
    /// Whether the output layer is.
    pub output: bool,
    /// Whether every layer of the model is on some GPU.
    pub all_layers: bool,
    /// Of the layers on it, those whose experts are on the CPU.
    pub cpu_experts: u64,
    /// Bytes of the largest tensor of a layer that stays on the CPU.
    pub largest_on_cpu: u64,
    /// Bytes of the output projection where it stays on the CPU.
    pub output_on_cpu: u64,
    /// GPUs that work as a pipeline; 1 for none.
    pub pipeline: u64,
}

/// The three moments, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Compute {
    /// Inside a layer.
    pub layer: u64,
    /// Inside its attention.
    pub attention: u64,
    /// The projection to the vocabulary.
    pub output: u64,
}

impl Compute {
    /// The buffer: the largest of the moments.
    pub fn bytes(&self) -> u64 {
        self.layer.max(self.attention).max(self.output)
    }
}

struct Sizes<'a> {
    shape: &'a Shape,
    settings: &'a ComputeSettings,
    /// Tokens a micro-batch.
    batch: u64,
    /// Tokens whose logits are wanted.
    outputs: u64,
    /// Cells that a batch sees.
    counts: CellCounts,
    quantised: bool,
}

fn sizes<'a>(shape: &'a Shape, cache: &CacheSettings, settings: &'a ComputeSettings) -> Sizes<'a> {
    let batch = cache.ubatch.min(padded(cache.context)).max(1);
    let by_era = match settings.era {
        Era::Limited => cache.slots.max(1).saturating_mul(cache.state_copies.saturating_add(1)),
        Era::AllLogits | Era::IkLlama => batch,
    };
    Sizes {
        shape,
        settings,
        batch,
        outputs: settings.outputs.unwrap_or(by_era).clamp(1, batch),
        counts: cells(shape, cache),
        quantised: cache.keys.is_quantised() || cache.values.is_quantised(),
    }
}

impl Sizes<'_> {
    fn floats(&self, each: u64) -> u64 {
        each.saturating_mul(self.batch).saturating_mul(F32)
    }

    fn mask(&self, bytes: u64) -> u64 {
        let seen = self.counts.full_seen.saturating_add(self.counts.window_seen);
        seen.saturating_mul(self.batch).saturating_mul(bytes)
    }

    /// The mask as the layers read it: 16-bit for flash attention.
    fn live_mask(&self) -> u64 {
        self.mask(if self.settings.flash { 2 } else { 4 })
    }

    /// The mask as it comes from the host: 16-bit since flash attention reads it so.
    fn input_mask(&self) -> u64 {
        let new = self.settings.era != Era::AllLogits;
        self.mask(if new && self.settings.flash { 2 } else { 4 })
    }

    fn queries(&self) -> u64 {
        self.shape.queries()
    }

    /// Values a token inside a layer.
    fn layer_values(&self) -> u64 {
        let s = self.shape;
        let (e, ff) = (s.embd, s.ff_live());
        let plain = ff.saturating_mul(3).saturating_add(e.saturating_mul(2));
        if let Some(values) = self.mla_values() {
            return plain.max(values);
        }
        let mostly_recurrent = s.recurrent_layers() * 2 > s.layers.len();
        let rotated = self.quantised && !s.qk_norm && s.experts.is_none();
        let queries = if mostly_recurrent || rotated { 0 } else { self.queries() };
        let routed = s.experts.map_or(0, |x| x.used.saturating_mul(e));
        let routed = if routed > ff.saturating_mul(2) { routed } else { 0 };
        plain.saturating_add(queries).saturating_add(routed)
    }

    /// Values a token where keys and values are compressed.
    fn mla_values(&self) -> Option<u64> {
        let mla = self.shape.mla?;
        let head = mla.kv_rank.saturating_mul(2) + mla.rope * 2 + mla.nope;
        let heads = self.shape.heads.saturating_mul(head);
        let rest = self.shape.embd.saturating_mul(4).saturating_add(mla.kv_rank * 2);
        Some(heads.saturating_add(rest))
    }

    fn attention(&self) -> u64 {
        let s = self.shape;
        if s.layers.iter().all(|l| l.cells == Cells::None) && s.causal {
            return 0;
        }
        let e2 = s.embd.saturating_mul(2);
        if !self.settings.flash {
            let scores = self.counts.full_seen.saturating_mul(s.heads);
            let rest = self.mla_values().unwrap_or_else(|| {
                let queries = self.queries().saturating_mul(if s.gated { 3 } else { 2 });
                e2.saturating_add(queries)
            });
            let scratch = self.floats(scores.saturating_add(rest)).saturating_add(self.mask(4));
            return scratch.saturating_add(self.value_index());
        }
        if s.mla.is_some() {
            return 0;
        }
        let queries = self.queries().saturating_mul(if s.gated { 4 } else { 2 });
        let cast = if self.settings.era == Era::AllLogits { self.mask(4) } else { 0 };
        let scratch = self.floats(e2.saturating_add(queries)).saturating_add(self.mask(2));
        scratch.saturating_add(cast).saturating_add(self.expanded())
    }

    /// Without flash attention values are stored transposed, by an index of 8 bytes each.
    fn value_index(&self) -> u64 {
        let widest = |kind: Cells| {
            let layers = self.shape.layers.iter().filter(|l| l.cells == kind);
            layers.map(|l| l.v).max().unwrap_or(0)
        };
        let values = widest(Cells::Full).saturating_add(widest(Cells::Window));
        if self.settings.flash { 0 } else { self.floats(values.saturating_mul(2)) }
    }

    /// A quantised cache is expanded to 16 bits a layer at a time.
    fn expanded(&self) -> u64 {
        let here = self.settings.cuda && self.quantised && self.settings.era == Era::Limited;
        if !here {
            return 0;
        }
        let of = |cells: u64, kind: Cells| {
            let widest = self.shape.layers.iter().filter(|l| l.cells == kind);
            let values = widest.map(|l| l.k.saturating_add(l.v)).max().unwrap_or(0);
            cells.saturating_mul(values).saturating_mul(2)
        };
        of(self.counts.full_seen, Cells::Full).max(of(self.counts.window_seen, Cells::Window))
    }

    fn output(&self) -> u64 {
        let s = self.shape;
        // A norm after the feed-forward part lets go of the residual.
        let post_norm = s.arch.starts_with("gemma") || s.arch == "glm4";
        let two = self.settings.era == Era::IkLlama && !post_norm
            || s.recurrent_layers() > 0
            || s.arch == "gpt-oss";
        let widths = s.vocab.saturating_add(s.embd.saturating_mul(if two { 2 } else { 1 }));
        self.outputs.saturating_mul(widths).saturating_mul(F32)
    }
}

/// The compute buffer of a device.
pub fn on_gpu(
    shape: &Shape,
    cache: &CacheSettings,
    settings: &ComputeSettings,
    device: &OnDevice,
) -> Compute {
    let sizes = sizes(shape, cache, settings);
    let offload = settings.cuda && settings.op_offload && sizes.batch >= OFFLOAD_BATCH;
    let copied = if offload { device.largest_on_cpu } else { 0 };
    let mut compute = Compute::default();
    if device.output {
        compute.output = sizes.output();
    } else if offload && device.output_on_cpu > 0 && sizes.outputs >= OFFLOAD_BATCH {
        compute.output = sizes.output().saturating_add(device.output_on_cpu);
    }
    if device.layers == 0 && copied == 0 {
        return compute;
    }
    compute.attention = sizes.attention();
    let one_row_left = device.layers == 1 && device.output && !device.all_layers;
    if one_row_left && sizes.outputs < sizes.batch && copied == 0 {
        // The last layer alone: only the wanted tokens go on to its feed-forward part.
        return compute;
    }
    let values = layer_values(&sizes, device, copied > 0);
    let layer = sizes.floats(values).saturating_add(sizes.live_mask());
    compute.layer = layer.saturating_add(copied);
    if device.pipeline > 1 {
        let input = sizes.input_mask().saturating_add(sizes.floats(shape.embd));
        let more = input.saturating_mul(PIPELINE_COPIES - 1);
        compute.layer = compute.layer.saturating_add(more);
        compute.attention = compute.attention.saturating_add(more);
        if compute.output > 0 {
            let mask = sizes.input_mask();
            compute.output = compute.output.saturating_add(more).saturating_add(mask);
        }
    }
    compute
}

fn layer_values(sizes: &Sizes<'_>, device: &OnDevice, offload: bool) -> u64 {
    let shape = sizes.shape;
    let whole = sizes.layer_values();
    if device.layers > 0 && device.cpu_experts == device.layers && !offload {
        let routed = shape.experts.map_or(0, |x| x.used.saturating_mul(shape.embd));
        let rest = shape.embd.saturating_mul(2).saturating_add(sizes.queries());
        return routed.saturating_add(rest);
    }
    if device.all_layers {
        whole
    } else if shape.experts.is_some() {
        whole.saturating_add(shape.embd.saturating_mul(2))
    } else {
        whole.saturating_sub(shape.embd)
    }
}

/// Pinned host memory beside it, in bytes: inputs and mask, and whole layers where some are there.
pub fn on_host(
    shape: &Shape,
    cache: &CacheSettings,
    settings: &ComputeSettings,
    layers_on_host: u64,
) -> u64 {
    let sizes = sizes(shape, cache, settings);
    let input = sizes.floats(shape.embd);
    if layers_on_host > 0 {
        let layer = sizes.floats(sizes.layer_values()).saturating_add(sizes.live_mask());
        return layer.max(sizes.attention()).saturating_add(input);
    }
    let inputs = if settings.era == Era::Limited { input.saturating_mul(2) } else { input };
    inputs.saturating_add(sizes.input_mask()).saturating_add(sizes.value_index())
}
