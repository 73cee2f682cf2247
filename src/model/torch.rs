//! Inference with PyTorch: transformers, and vLLM's budget.

use serde::Serialize;

use super::kv::{CacheSettings, total};
use super::prefill;
use super::shape::Shape;
use super::weights::Weights;

const KIB: u64 = 1 << 10;

/// How transformers runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TorchSettings {
    /// Tokens of the prompt and the answer.
    pub context: u64,
    /// Of them, processed at once.
    pub prefill: u64,
    /// Sequences at the same time.
    pub batch: u64,
    /// Whether attention keeps its scores (`attn_implementation="eager"`).
    pub eager: bool,
    /// Whether logits are computed for every position, not for the last alone.
    pub all_logits: bool,
    /// Bytes of a cached value.
    pub cache_bytes: u64,
    /// Whether the GPU is of compute capability 9 or later: cuBLAS then takes 32 MiB, else 8.
    pub hopper: bool,
}

impl TorchSettings {
    /// `generate` on one sequence.
    pub const fn new(context: u64) -> Self {
        Self {
            context,
            prefill: context,
            batch: 1,
            eager: false,
            all_logits: false,
            cache_bytes: 2,
            hopper: true,
        }
    }
}

/// What it allocates, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TorchNeed {
    /// Weights.
    pub weights: u64,
    /// Keys and values.
    pub cache: u64,
    /// The widest moment of a layer.
    pub activations: u64,
    /// The moment of the logits, which comes after the layers.
    pub logits: u64,
    /// cuBLAS's workspace, which the allocator hands out.
    pub workspace: u64,
    /// What the blocks of weights are larger than the weights. `memory_allocated` counts it.
    pub rounding: u64,
    /// What the allocator reserves beyond all that: rests of segments and freed blocks of other
    /// sizes.
    pub slack: u64,
}

impl TorchNeed {
    /// Peak of `memory_allocated`.
    pub fn allocated(&self) -> u64 {
        let parts = [self.weights, self.rounding, self.cache, self.workspace];
        let fixed = parts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
        fixed.saturating_add(self.activations.max(self.logits))
    }

    /// Peak of `memory_reserved`.
    pub fn reserved(&self) -> u64 {
        self.allocated().saturating_add(self.slack)
    }
}

/// Bytes of keys and values; window layers stop growing at the window.
pub fn cache_bytes(shape: &Shape, context: u64, batch: u64, bytes: u64) -> u64 {
    let token = |l: &super::shape::Layer| l.k.saturating_add(l.v).saturating_mul(bytes);
    let of = |l: &super::shape::Layer| {
        let cells = match l.cells {
            super::shape::Cells::None => 0,
            super::shape::Cells::Full => context,
            super::shape::Cells::Window => context.min(shape.window),
        };
        cells.saturating_mul(token(l)).saturating_add(l.state.saturating_mul(4))
    };
    let all = shape.layers.iter().fold(0_u64, |sum, l| sum.saturating_add(of(l)));
    all.saturating_mul(batch.max(1))
}

/// cuBLAS's workspace of one handle and stream: eight pieces of 4 MiB from Hopper on, else two and
/// eight of 16 KiB (`:4096:2:16:8`). A thread of its own has a handle of its own: once a backward
/// pass has run, there is a second one.
const WORKSPACE: (u64, u64) = (8 * 4096 * KIB, 2 * 4096 * KIB + 8 * 16 * KIB);

/// What transformers allocates.
pub fn need(shape: &Shape, weights: &Weights, s: &TorchSettings) -> TorchNeed {
    let workspace = if s.hopper { WORKSPACE.0 } else { WORKSPACE.1 };
    let walked = prefill::walk(shape, weights, s, workspace);
    let cache = cache_bytes(shape, s.context, s.batch, s.cache_bytes);
    let fixed = walked.weights.saturating_add(cache).saturating_add(workspace);
    let bytes = weights.file_bytes();
    let mut need = TorchNeed {
        weights: bytes,
        cache,
        activations: walked.layers.saturating_sub(fixed),
        logits: walked.output.saturating_sub(fixed),
        workspace,
        rounding: walked.weights.saturating_sub(bytes),
        slack: 0,
    };
    need.slack = walked.reserved.saturating_sub(need.allocated());
    need
}

/// How vLLM is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VllmSettings {
    /// `gpu_memory_utilization` in hundredths.
    pub utilization: u64,
    /// `max_model_len`.
    pub max_len: u64,
    /// `max_num_batched_tokens`.
    pub batched_tokens: u64,
    /// `max_num_seqs`.
    pub sequences: u64,
    /// `tensor_parallel_size`.
    pub tensor_parallel: u64,
    /// Bytes of a cached value: 2, or 1 for fp8.
    pub cache_bytes: u64,
}

impl VllmSettings {
    /// The defaults of 2026.
    pub const fn new(max_len: u64) -> Self {
        Self {
            utilization: 92,
            max_len,
            batched_tokens: 8192,
            sequences: 256,
            tensor_parallel: 1,
            cache_bytes: 2,
        }
    }
}

/// What vLLM does with a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VllmBudget {
    /// What it takes of the GPU in all.
    pub budget: u64,
    /// Weights of this GPU.
    pub weights: u64,
    /// Peak of activations in its trial run.
    pub activations: u64,
    /// CUDA's context, NCCL, graphs.
    pub outside: u64,
    /// What is left for the cache; 0 where nothing is.
    pub cache: u64,
    /// Tokens that it holds.
    pub tokens: u64,
    /// Requests of full length at the same time, in hundredths.
    pub concurrency: u64,
}

/// Tokens of a block.
const BLOCK: u64 = 16;

/// Bytes of one block of the cache on each GPU, all layers together.
pub fn vllm_block_bytes(shape: &Shape, s: &VllmSettings) -> u64 {
    let tp = s.tensor_parallel.max(1);
    let of = |l: &super::shape::Layer| {
        if l.cells == super::shape::Cells::None || l.kv_heads == 0 {
            return 0;
        }
        // Compressed caches are not split over GPUs; heads are, one at the least.
        let heads = if shape.mla.is_some() { l.kv_heads } else { (l.kv_heads / tp).max(1) };
        let values = l.k.saturating_add(l.v) / l.kv_heads;
        heads.saturating_mul(values).saturating_mul(s.cache_bytes).saturating_mul(BLOCK)
    };
    shape.layers.iter().fold(0, |sum, l| sum.saturating_add(of(l)))
}

/// Tokens that a cache of so many bytes holds.
pub fn vllm_tokens(shape: &Shape, s: &VllmSettings, cache: u64) -> u64 {
    let block = vllm_block_bytes(shape, s);
    cache.checked_div(block).unwrap_or(0).saturating_mul(BLOCK)
}

/// What vLLM does with a GPU of `total` bytes.
pub fn vllm(
    shape: &Shape,
    weights: &Weights,
    s: &VllmSettings,
    total: u64,
    outside: u64,
) -> VllmBudget {
    let tp = s.tensor_parallel.max(1);
    let budget = (u128::from(total) * u128::from(s.utilization) / 100).try_into().unwrap_or(total);
    let ff = shape.ff_live().saturating_add(shape.experts.map_or(0, |e| e.shared_ff));
    let widths = shape.embd.saturating_mul(4).saturating_add(ff.saturating_mul(3) / tp);
    let layers = s.batched_tokens.saturating_mul(widths).saturating_mul(2);
    let logits = s.sequences.saturating_mul(shape.vocab).saturating_mul(8);
    let activations = layers
        .max(logits)
        .saturating_add(s.batched_tokens.saturating_mul(shape.embd).saturating_mul(2));
    let weights = weights.file_bytes() / tp;
    let taken = weights.saturating_add(activations).saturating_add(outside);
    let cache = budget.saturating_sub(taken);
    let tokens = vllm_tokens(shape, s, cache);
    let concurrency = tokens.saturating_mul(100).checked_div(s.max_len).unwrap_or(0);
    VllmBudget { budget, weights, activations, outside, cache, tokens, concurrency }
}

/// Bytes of the cache as vLLM and llama.cpp agree on them, 16-bit, one sequence.
pub fn plain_cache(shape: &Shape, context: u64) -> u64 {
    total(shape, &CacheSettings::new(context)).total()
}

#[cfg(test)]
mod tests {
    use super::super::template;
    use super::*;

    #[test]
    fn blocks_of_an_8b_model() {
        let (_, shape, weights) = template::of_size("8B").unwrap();
        let s = VllmSettings { utilization: 90, ..VllmSettings::new(8192) };
        assert_eq!(vllm_block_bytes(&shape, &s), 16 * 131_072);
        let two = VllmSettings { tensor_parallel: 2, ..s };
        assert_eq!(vllm_block_bytes(&shape, &two), 8 * 131_072);
        let total = (79.22 * f64::from(1 << 30)) as u64;
        let budget = vllm(&shape, &weights, &s, total, 1_920_000_000);
        let gib = budget.cache as f64 / f64::from(1 << 30);
        assert!((gib - 53.29).abs() < 1.0, "{gib}");
    }

    #[test]
    fn a_window_stops_the_cache() {
        let (_, shape, _) = template::of_size("27B").unwrap();
        let (short, long) = (cache_bytes(&shape, 1024, 1, 2), cache_bytes(&shape, 2048, 1, 2));
        assert_eq!(long - short, 1024 * 10 * 8192);
    }
}
