//! What a change would free, in bytes: the numbers behind the fixes. Pure.

use serde::Serialize;

use super::ggml::CacheType;
use super::plan::{Settings, place};
use super::quant::{QUANT_BAND, Quant, named};
use super::shape::Shape;
use super::training::{Training, need};
use super::weights::Weights;

/// What a change frees on the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Freed {
    /// The likely figure in bytes.
    pub bytes: u64,
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
}

impl Freed {
    const fn exact(bytes: u64) -> Self {
        Self { bytes, low: bytes, high: bytes }
    }

    fn band(bytes: u64, thousandths: u64) -> Self {
        let part = (u128::from(bytes) * u128::from(thousandths) / 1000) as u64;
        Self { bytes, low: bytes - part, high: bytes.saturating_add(part) }
    }
}

/// Scratch is right to within 3 %, and most of a difference is not scratch.
const PLAN_BAND: u64 = 10;
/// Activations depend on what the program keeps.
const ACTIVATION_BAND: u64 = 300;

/// A model and how it runs now.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// Layers, heads, widths.
    pub shape: &'a Shape,
    /// What the tensors weigh.
    pub weights: &'a Weights,
    /// How it was started.
    pub settings: &'a Settings,
}

impl Running<'_> {
    fn on_gpus(&self, weights: &Weights, settings: &Settings) -> u64 {
        place(self.shape, weights, settings).on_gpus()
    }

    /// What other settings free.
    pub fn with(&self, change: impl FnOnce(&mut Settings)) -> Freed {
        let mut other = self.settings.clone();
        change(&mut other);
        let before = self.on_gpus(self.weights, self.settings);
        Freed::band(before.saturating_sub(self.on_gpus(self.weights, &other)), PLAN_BAND)
    }

    /// Half the context.
    pub fn half_context(&self) -> Freed {
        self.with(|s| s.cache.context /= 2)
    }

    /// This context.
    pub fn context(&self, context: u64) -> Freed {
        self.with(|s| s.cache.context = context)
    }

    /// Another type of cache.
    pub fn cache_type(&self, kind: CacheType) -> Freed {
        self.with(|s| (s.cache.keys, s.cache.values) = (kind, kind))
    }

    /// Fewer sequences at the same time, with the same context each.
    pub fn slots(&self, slots: u64) -> Freed {
        let now = self.settings.cache.slots.max(1);
        self.with(|s| {
            if !s.cache.unified {
                s.cache.context = s.cache.context / now * slots.max(1);
            }
            s.cache.slots = slots.max(1);
        })
    }

    /// `n` layers fewer on the GPUs.
    pub fn fewer_layers(&self, n: u64) -> Freed {
        let all = self.shape.layers.len() as u64 + 1;
        self.with(|s| s.gpu_layers = s.gpu_layers.min(all).saturating_sub(n))
    }

    /// The experts of `n` layers more on the CPU.
    pub fn experts_to_cpu(&self, n: u64) -> Freed {
        self.with(|s| s.cpu_experts = s.cpu_experts.saturating_add(n))
    }

    /// A micro-batch of this many tokens.
    pub fn micro_batch(&self, tokens: u64) -> Freed {
        self.with(|s| s.cache.ubatch = tokens.max(1))
    }

    /// Weights in another quantisation.
    pub fn quantised(&self, to: &Quant) -> Freed {
        let smaller = to.weights(self.weights);
        let before = self.on_gpus(self.weights, self.settings);
        let after = self.on_gpus(&smaller, self.settings);
        Freed::band(before.saturating_sub(after), QUANT_BAND)
    }

    /// Weights in 4-bit: `Q4_K_M`.
    pub fn four_bit(&self) -> Freed {
        named("Q4_K_M").map_or_else(Freed::default, |q| self.quantised(&q))
    }
}

/// 4-bit weights on load (NF4, doubly quantised): layers only, embeddings and output stay.
pub fn four_bit_on_load(weights: &Weights) -> Freed {
    let Some(quant) = named("4-bit (nf4)") else { return Freed::default() };
    let after = quant.weights(weights).file_bytes();
    Freed::band(weights.file_bytes().saturating_sub(after), 10)
}

/// Weights that were loaded in 32 bits, in 16.
pub fn half_of_float32(weights: &Weights) -> Freed {
    Freed::band(weights.elements().saturating_mul(2), 10)
}

/// Computing activations again, where only their swing within a step is known: 60 to 80 % of it.
pub const fn checkpointing_of(swing: u64) -> Freed {
    Freed { bytes: swing / 10 * 7, low: swing / 10 * 6, high: swing / 10 * 8 }
}

/// Half the batch, where only the swing of a step is known. Part of it does not depend on it.
pub fn half_batch_of(swing: u64) -> Freed {
    Freed::band(swing / 2, ACTIVATION_BAND)
}

/// Computing activations again on the way back.
pub fn checkpointing(shape: &Shape, weights: &Weights, run: &Training) -> Freed {
    let with = Training { checkpointing: true, ..*run };
    let before = need(shape, weights, run).activations;
    Freed::band(before.saturating_sub(need(shape, weights, &with).activations), ACTIVATION_BAND)
}

/// Fewer sequences a step.
pub fn smaller_batch(shape: &Shape, weights: &Weights, run: &Training, batch: u64) -> Freed {
    let with = Training { batch: batch.max(1), ..*run };
    let before = need(shape, weights, run).total();
    Freed::band(before.saturating_sub(need(shape, weights, &with).total()), ACTIVATION_BAND)
}

/// A cache of so many bytes in another type, where only its size is known (from a log).
pub fn cache_type_of(cache_bytes: u64, now: CacheType, to: CacheType) -> Freed {
    let (now, to) = (now.bytes(32), to.bytes(32));
    let after = u128::from(cache_bytes) * u128::from(to) / u128::from(now.max(1));
    Freed::exact(cache_bytes.saturating_sub(u64::try_from(after).unwrap_or(u64::MAX)))
}

/// Tokens by which a context must be cut to free `bytes`, where a token costs `per_token`.
pub const fn tokens_to_cut(bytes: u64, per_token: u64) -> u64 {
    if per_token == 0 { 0 } else { bytes.div_ceil(per_token) }
}

#[cfg(test)]
mod tests {
    use super::super::template;
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    fn near(freed: Freed, gib: f64) {
        let ours = freed.bytes as f64 / GIB;
        assert!((ours - gib).abs() < 0.03 * gib.max(0.3), "{ours} for {gib}");
        assert!(freed.low <= freed.bytes && freed.bytes <= freed.high);
    }

    #[test]
    fn an_8b_model_at_32k() {
        let (_, shape, weights) = template::of_size("8B").unwrap();
        let settings = Settings::new(32_768);
        let run = Running { shape: &shape, weights: &weights, settings: &settings };
        near(run.half_context(), 2.02);
        // The scratch for expanding a quantised cache takes a little of it back.
        assert_eq!(cache_type_of(4 << 30, CacheType::F16, CacheType::Q8_0).bytes, 15 << 27);
        near(cache_type_of(4 << 30, CacheType::F16, CacheType::Q4_0), 2.875);
        assert!(run.cache_type(CacheType::Q8_0).bytes > (17 << 30) / 10);
        near(four_bit_on_load(&weights), 14.96 - 5.31);
        assert!(run.four_bit().bytes > 9 << 30);
        let layer = run.fewer_layers(2);
        assert!(layer.bytes > 0 && layer.bytes < 3 << 30);
        assert_eq!(run.slots(1).bytes, 0);
        assert_eq!(tokens_to_cut(2_576_980_378, 131_072), 19_661);
    }

    #[test]
    fn slots_multiply_windows_only() {
        let (_, shape, weights) = template::of_size("27B").unwrap();
        let mut settings = Settings::new(32_768);
        settings.cache.slots = 4;
        let run = Running { shape: &shape, weights: &weights, settings: &settings };
        assert!(run.slots(1).bytes > 1 << 30);
    }
}
