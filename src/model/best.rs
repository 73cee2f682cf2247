//! What fits: the most layers on the GPU, the fewest experts on the CPU, the longest context.

use serde::Serialize;

use super::kv::padded;
use super::plan::{Placement, Settings, place};
use super::shape::Shape;
use super::weights::Weights;

/// Contexts are tried in steps of so many tokens.
const STEP: u64 = 256;
/// Shortest context that is of use; llama.cpp does not go below it on its own either.
pub const LEAST_CONTEXT: u64 = 4096;
/// Longest context that is tried where the file does not say what the model was trained for.
pub const MOST_CONTEXT: u64 = 1 << 20;

/// A model and how much of it has been decided.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Layers, heads, widths.
    pub shape: &'a Shape,
    /// What the tensors weigh.
    pub weights: &'a Weights,
    /// Bytes for buffers on each GPU: what is free without CUDA's own share and the margin.
    pub budgets: &'a [u64],
}

/// The best way to run a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Best {
    /// `-ngl`, at most the number of layers and one for the output.
    pub gpu_layers: u64,
    /// `--n-cpu-moe`.
    pub cpu_experts: u64,
    /// Whether everything is on GPUs.
    pub complete: bool,
}

impl Question<'_> {
    /// Whether every GPU has room.
    pub fn fits(&self, settings: &Settings) -> bool {
        self.has_room(&place(self.shape, self.weights, settings))
    }

    fn has_room(&self, placement: &Placement) -> bool {
        let enough = |(gpu, budget): (&super::plan::GpuPart, &u64)| gpu.total() <= *budget;
        placement.gpus.len() <= self.budgets.len()
            && placement.gpus.iter().zip(self.budgets).all(enough)
    }

    /// The most layers that fit at this context; `None` where not even none does (its scratch).
    pub fn gpu_layers(&self, settings: &Settings) -> Option<u64> {
        let all = self.shape.layers.len() as u64 + 1;
        (0..=all).rev().find(|n| self.fits(&Settings { gpu_layers: *n, ..settings.clone() }))
    }

    /// The fewest layers whose experts stay on the CPU, with all layers on the GPUs.
    pub fn cpu_experts(&self, settings: &Settings) -> Option<u64> {
        if !self.weights.has_experts() {
            return None;
        }
        let all = self.shape.layers.len() as u64;
        let with = |n| Settings { gpu_layers: all + 1, cpu_experts: n, ..settings.clone() };
        (0..=all).find(|n| self.fits(&with(*n)))
    }

    /// The best offload at this context: everything, or experts first, or layers.
    pub fn offload(&self, settings: &Settings) -> Option<Best> {
        let all = self.shape.layers.len() as u64 + 1;
        if let Some(cpu_experts) = self.cpu_experts(settings) {
            return Some(Best { gpu_layers: all, cpu_experts, complete: cpu_experts == 0 });
        }
        // With all experts on the CPU layers may still be too many.
        let cpu_experts = if self.weights.has_experts() { all - 1 } else { 0 };
        let gpu_layers = self.gpu_layers(&Settings { cpu_experts, ..settings.clone() })?;
        Some(Best { gpu_layers, cpu_experts, complete: gpu_layers == all && cpu_experts == 0 })
    }

    /// The longest context that fits with these settings, a multiple of 256, at most what the
    /// model was trained for; 0 where none does.
    pub fn context(&self, settings: &Settings) -> u64 {
        let trained = self.shape.context_max;
        let most = if trained == 0 { MOST_CONTEXT } else { padded(trained).min(1 << 30) };
        let with = |context: u64| {
            let mut s = settings.clone();
            s.cache.context = context;
            self.fits(&s)
        };
        if with(most) {
            return if trained == 0 { most } else { trained };
        }
        let (mut fits, mut too_long) = (0, most / STEP);
        while fits + 1 < too_long {
            let middle = fits + (too_long - fits) / 2;
            *(if with(middle * STEP) { &mut fits } else { &mut too_long }) = middle;
        }
        fits * STEP
    }
}
