//! Training and fine-tuning: states by parameters, activations by tokens.

use serde::Serialize;

use super::shape::Shape;
use super::weights::Weights;

/// How a model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// 16-bit compute, 32-bit master copy and Adam states.
    AdamMixed,
    /// Everything in 32-bit.
    Adam32,
    /// Weights, gradients and Adam states in 16-bit.
    Adam16,
    /// 16-bit, Adam states in 8-bit.
    Adam8,
    /// 16-bit, factored second moments.
    Adafactor,
    /// 16-bit, no states.
    Sgd,
    /// Adapters on a frozen 16-bit model.
    Lora,
    /// Adapters on a frozen 4-bit model.
    Qlora,
}

/// Bytes of a parameter that is trained: weight, gradient, optimizer (master copy in it).
struct States {
    method: Method,
    name: &'static str,
    weight: u64,
    gradient: u64,
    optimizer: u64,
}

const STATES: [States; 8] = [
    states(Method::AdamMixed, "AdamW, mixed", 2, 4, 12),
    states(Method::Adam32, "AdamW, 32-bit", 4, 4, 8),
    states(Method::Adam16, "AdamW, pure bf16", 2, 2, 4),
    states(Method::Adam8, "AdamW, 8-bit states", 2, 2, 2),
    states(Method::Adafactor, "Adafactor, bf16", 2, 2, 0),
    states(Method::Sgd, "SGD, bf16", 2, 2, 0),
    states(Method::Lora, "LoRA on bf16", 2, 0, 0),
    states(Method::Qlora, "QLoRA on 4-bit", 0, 0, 0),
];

const fn states(method: Method, name: &'static str, w: u64, g: u64, o: u64) -> States {
    States { method, name, weight: w, gradient: g, optimizer: o }
}

/// Bytes of a parameter of an adapter: 32-bit weight, gradient and Adam states.
const ADAPTER_BYTES: u64 = 16;
/// Bits of a 4-bit weight with doubly quantised scales, in thousandths.
const NF4_MILLIBITS: u64 = 4127;
/// Bytes of a logit: 16-bit, its 32-bit copy, and the gradient of that.
const LOGIT_BYTES: u64 = 10;

impl Method {
    /// Every method with its name.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        STATES.iter().map(|row| (row.method, row.name))
    }

    fn states(self) -> &'static States {
        STATES.iter().find(|row| row.method == self).unwrap_or(&STATES[0])
    }
}

/// A training run on one of `gpus` GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Training {
    /// How.
    pub method: Method,
    /// Tokens a sequence.
    pub sequence: u64,
    /// Sequences a step and GPU.
    pub batch: u64,
    /// Whether activations are computed again on the way back.
    pub checkpointing: bool,
    /// Fused attention, which keeps no scores.
    pub flash: bool,
    /// Whether the loss is computed in pieces, so that logits are never whole.
    pub chunked_loss: bool,
    /// Rank of adapters.
    pub rank: u64,
    /// `ZeRO` stage, 0 to 3 (FSDP's full sharding is 3).
    pub zero_stage: u8,
    /// GPUs that states are spread over.
    pub gpus: u64,
}

impl Training {
    /// One sequence of 2048 tokens on one GPU, with checkpointing.
    pub const fn new(method: Method) -> Self {
        Self {
            method,
            sequence: 2048,
            batch: 1,
            checkpointing: true,
            flash: true,
            chunked_loss: false,
            rank: 16,
            zero_stage: 0,
            gpus: 1,
        }
    }
}

/// What one GPU holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TrainingNeed {
    /// The model.
    pub weights: u64,
    /// Gradients.
    pub gradients: u64,
    /// Optimizer states and master copies.
    pub optimizer: u64,
    /// Adapters with their gradients and states.
    pub adapters: u64,
    /// What the way back needs.
    pub activations: u64,
    /// Logits, their copies and gradients.
    pub logits: u64,
    /// Buckets and layers gathered from other GPUs.
    pub buffers: u64,
}

impl TrainingNeed {
    /// The peak.
    pub fn total(&self) -> u64 {
        let parts = [
            self.weights,
            self.gradients,
            self.optimizer,
            self.adapters,
            self.activations,
            self.logits,
            self.buffers,
        ];
        parts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Bytes of activations that one token leaves behind in one layer, 16-bit: the norms' inputs in
/// 32-bit and outputs, queries, keys, values and their result, four feed-forward maps.
fn layer_activations(shape: &Shape, sequence: u64, flash: bool) -> u64 {
    let kv = shape.layers.iter().map(|l| l.k.max(l.v)).max().unwrap_or(0);
    let ff = shape.ff_live().saturating_add(shape.experts.map_or(0, |e| e.shared_ff));
    let widths = shape
        .embd
        .saturating_mul(16)
        .saturating_add(shape.queries().saturating_mul(4))
        .saturating_add(kv.saturating_mul(4))
        .saturating_add(ff.saturating_mul(8));
    // Scores, their softmax, and its mask: 5 bytes a pair and head (Korthikanti et al., 2022).
    let scores = shape.heads.saturating_mul(sequence).saturating_mul(5);
    if flash { widths } else { widths.saturating_add(scores) }
}

/// Bytes of activations of one step.
pub fn activations(shape: &Shape, run: &Training) -> u64 {
    let tokens = run.sequence.saturating_mul(run.batch);
    let layers = shape.layers.len() as u64;
    let one = layer_activations(shape, run.sequence, run.flash);
    let per_token = if run.checkpointing {
        shape.embd.saturating_mul(2).saturating_mul(layers).saturating_add(one)
    } else {
        one.saturating_mul(layers)
    };
    tokens.saturating_mul(per_token)
}

/// Parameters of adapters of this rank on every matrix of every layer.
fn adapter_parameters(shape: &Shape, rank: u64) -> u64 {
    let (e, q) = (shape.embd, shape.queries());
    let ff = if shape.ff > 0 { shape.ff } else { shape.ff_live() };
    let of = |l: &super::shape::Layer| {
        let attention = [q, l.k, l.v, q].map(|width| e.saturating_add(width));
        let forward = (e.saturating_add(ff)).saturating_mul(3);
        attention.iter().fold(forward, |sum, n| sum.saturating_add(*n))
    };
    shape.layers.iter().fold(0_u64, |sum, l| sum.saturating_add(of(l))).saturating_mul(rank)
}

/// What one GPU holds at the peak of a step.
pub fn need(shape: &Shape, weights: &Weights, run: &Training) -> TrainingNeed {
    let n = weights.elements();
    let states = run.method.states();
    let gpus = run.gpus.max(1);
    let share = |bytes: u64, from: u8| {
        if run.zero_stage >= from { bytes.div_ceil(gpus) } else { bytes }
    };
    let frozen = match run.method {
        Method::Qlora => {
            let quantised = weights.layer_matrices();
            let packed = u128::from(quantised) * u128::from(NF4_MILLIBITS) / 8000;
            let packed = u64::try_from(packed).unwrap_or(u64::MAX);
            packed.saturating_add(n.saturating_sub(quantised).saturating_mul(2))
        }
        _ => n.saturating_mul(states.weight),
    };
    let adapters = match run.method {
        Method::Lora | Method::Qlora => {
            adapter_parameters(shape, run.rank).saturating_mul(ADAPTER_BYTES)
        }
        _ => 0,
    };
    let tokens = run.sequence.saturating_mul(run.batch);
    let logits = tokens.saturating_mul(shape.vocab).saturating_mul(LOGIT_BYTES);
    let of =
        |l: &super::weights::LayerWeights| l.dense.elements().saturating_add(l.experts.elements());
    let widest = weights.layers.iter().map(of).max();
    let gathered = widest.unwrap_or(0).saturating_mul(2).saturating_mul(2);
    TrainingNeed {
        weights: share(frozen, 3),
        gradients: share(n.saturating_mul(states.gradient), 2),
        optimizer: share(n.saturating_mul(states.optimizer), 1),
        adapters: share(adapters, 1),
        activations: activations(shape, run),
        logits: if run.chunked_loss { logits / 16 } else { logits },
        buffers: if run.zero_stage > 0 && gpus > 1 { gathered.max(512 << 20) } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::super::template;
    use super::*;

    fn gib(bytes: u64) -> f64 {
        bytes as f64 / f64::from(1 << 30)
    }

    #[test]
    fn states_of_an_8b_model() {
        let (_, shape, weights) = template::of_size("8B").unwrap();
        let states = |method| {
            let n = need(&shape, &weights, &Training::new(method));
            gib(n.weights + n.gradients + n.optimizer)
        };
        assert!((states(Method::AdamMixed) - 134.6).abs() < 0.5, "{}", states(Method::AdamMixed));
        assert!((states(Method::Adam16) - 59.8).abs() < 0.5);
        assert!((states(Method::Lora) - 14.96).abs() < 0.1);
        // 8 G parameters at half a byte would be 3.7: embeddings and output stay 16-bit.
        assert!((states(Method::Qlora) - 5.31).abs() < 0.1, "{}", states(Method::Qlora));
    }

    #[test]
    fn checkpointing_frees_most_activations() {
        let (_, shape, _) = template::of_size("8B").unwrap();
        let with = Training { sequence: 4096, ..Training::new(Method::Lora) };
        let without = Training { checkpointing: false, ..with };
        let (less, more) = (activations(&shape, &with), activations(&shape, &without));
        assert!(less * 5 < more, "{less} {more}");
    }

    #[test]
    fn stage_three_spreads_everything() {
        let (_, shape, weights) = template::of_size("70B").unwrap();
        let run = Training { zero_stage: 3, gpus: 8, ..Training::new(Method::AdamMixed) };
        let need = need(&shape, &weights, &run);
        let states = need.weights + need.gradients + need.optimizer;
        assert!((gib(states) - 70.55 * 18.0 / 8.0 / 1.0737).abs() < 1.0, "{}", gib(states));
    }
}
