//! Which layer goes to which device, and what every device then holds.

use serde::Serialize;

use super::compute::{Compute, ComputeSettings, OnDevice, on_gpu, on_host};
use super::kv::{CacheSettings, cells, layer_bytes, state_bytes};
use super::shape::{Cells, Layer, Shape};
use super::weights::{LayerWeights, Weights};

/// What can be chosen when a model is started with llama.cpp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The cache.
    pub cache: CacheSettings,
    /// The compute buffer.
    pub compute: ComputeSettings,
    /// `-ngl`: layers on GPUs counted from the last, the output layer being the first of them.
    pub gpu_layers: u64,
    /// `--n-cpu-moe`: the experts of the first so many layers stay on the CPU.
    pub cpu_experts: u64,
    /// Whether the cache of a layer is where the layer is.
    pub cache_on_gpu: bool,
    /// Shares of the GPUs (`-ts`, or their free memory); one entry a GPU.
    pub split: Vec<u64>,
    /// Bytes of vision or audio weights beside the model, with their own scratch.
    pub projector: u64,
    /// Whether the layers for guessing ahead are loaded, as a second context.
    pub draft: bool,
}

impl Settings {
    /// Everything on one GPU, with a context of this many tokens.
    pub fn new(context: u64) -> Self {
        Self {
            cache: CacheSettings::new(context),
            compute: ComputeSettings::new(),
            gpu_layers: u64::MAX,
            cpu_experts: 0,
            cache_on_gpu: true,
            split: vec![1],
            projector: 0,
            draft: false,
        }
    }
}

/// What one GPU holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GpuPart {
    /// Weights.
    pub weights: u64,
    /// Cache of layers that keep everything.
    pub cache_full: u64,
    /// Cache of layers that keep a window.
    pub cache_window: u64,
    /// Recurrent states.
    pub state: u64,
    /// Scratch.
    pub compute: Compute,
    /// Vision and audio.
    pub projector: u64,
    /// The layers for guessing ahead: weights, cache, and a scratch of their own.
    pub draft: u64,
    /// Layers on it.
    pub layers: u64,
    /// Whether the output layer is on it.
    pub output: bool,
}

impl GpuPart {
    /// Cache and states.
    pub const fn context(&self) -> u64 {
        self.cache_full.saturating_add(self.cache_window).saturating_add(self.state)
    }

    /// All but what CUDA itself takes.
    pub fn total(&self) -> u64 {
        let fixed = self.weights.saturating_add(self.projector).saturating_add(self.draft);
        fixed.saturating_add(self.context()).saturating_add(self.compute.bytes())
    }
}

/// What the host holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostPart {
    /// Weights, most of them mapped from the file.
    pub weights: u64,
    /// Cache and states.
    pub context: u64,
    /// Scratch.
    pub compute: u64,
    /// Logits of all slots.
    pub output: u64,
}

/// What every device holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The GPUs in the order of the split.
    pub gpus: Vec<GpuPart>,
    /// The rest.
    pub host: HostPart,
    /// Layers of the model with the output layer: `-ngl` of this and more is everything.
    pub all_layers: u64,
}

impl Placement {
    /// Bytes on all GPUs.
    pub fn on_gpus(&self) -> u64 {
        self.gpus.iter().fold(0, |sum, gpu| sum.saturating_add(gpu.total()))
    }
}

/// Which GPU takes the `index`-th of `count` layers on GPUs: the first whose cumulative share is
/// above the layer's own.
fn gpu_of(split: &[u64], index: u64, count: u64) -> usize {
    let sum: u128 = split.iter().map(|s| u128::from(*s)).sum();
    let mut below = 0_u128;
    for (gpu, share) in split.iter().enumerate() {
        below += u128::from(*share);
        // index / count < below / sum
        if u128::from(index) * sum < below * u128::from(count) {
            return gpu;
        }
    }
    split.len().saturating_sub(1)
}

/// Adds without a wrap: sizes in a header are only claims.
const fn grow(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}

/// The layers of the model that are on a GPU, the output layer aside: `-ngl` counts from the end.
pub fn resident<'a>(shape: &'a Shape, settings: &Settings) -> &'a [Layer] {
    let layers = shape.layers.len() as u64;
    let on_gpus = if settings.split.is_empty() { 0 } else { settings.gpu_layers.min(layers + 1) };
    shape.layers.get((layers + 1 - on_gpus) as usize..).unwrap_or_default()
}

/// Puts everything in its place.
pub fn place(shape: &Shape, weights: &Weights, settings: &Settings) -> Placement {
    let layers = shape.layers.len() as u64;
    let gpus = settings.split.len();
    let on_gpus = if gpus == 0 { 0 } else { settings.gpu_layers.min(layers + 1) };
    let first = layers + 1 - on_gpus;
    let counts = cells(shape, &settings.cache);
    let mut all = Everywhere {
        parts: vec![GpuPart::default(); gpus],
        devices: vec![OnDevice::default(); gpus],
        host: HostPart { weights: weights.input.bytes, ..HostPart::default() },
        largest_on_cpu: 0,
    };
    for (i, layer) in (0..layers).zip(&shape.layers) {
        let bytes = weights.layers.get(i as usize).copied().unwrap_or_default();
        let cache = layer_bytes(shape, layer, &counts, &settings.cache);
        let state = state_bytes(layer, &settings.cache);
        let gpu = (i >= first).then(|| gpu_of(&settings.split, i - first, on_gpus));
        let window = layer.cells == Cells::Window;
        all.add(i, gpu, &bytes, &Cached { cache, state, window }, settings);
    }
    let Everywhere { mut parts, mut devices, mut host, largest_on_cpu } = all;
    put_output(weights, settings, on_gpus, &mut parts, &mut host);
    let pipeline = gpus > 1 && on_gpus > layers && settings.cpu_experts == 0;
    for (part, device) in parts.iter_mut().zip(&mut devices) {
        device.output = part.output;
        device.all_layers = on_gpus > layers;
        device.largest_on_cpu = largest_on_cpu;
        device.output_on_cpu = if on_gpus == 0 { weights.output_bytes(false) } else { 0 };
        device.pipeline = if pipeline { gpus as u64 } else { 1 };
        if part.layers > 0 {
            grow(&mut part.weights, weights.every_device.on_device(settings.compute.cuda));
        }
        part.compute = on_gpu(shape, &settings.cache, &settings.compute, device);
        if settings.draft && part.output {
            part.draft = draft(shape, weights, settings).saturating_add(part.compute.bytes());
        }
    }
    if let Some(main) = parts.first_mut() {
        main.projector = settings.projector;
    }
    host.compute = on_host(shape, &settings.cache, &settings.compute, first.min(layers));
    host.output = shape.vocab.saturating_mul(4).saturating_mul(settings.cache.slots.max(1));
    Placement { gpus: parts, host, all_layers: layers + 1 }
}

/// The devices while layers are handed out.
struct Everywhere {
    parts: Vec<GpuPart>,
    devices: Vec<OnDevice>,
    host: HostPart,
    largest_on_cpu: u64,
}

/// What a layer keeps of the tokens, in bytes.
struct Cached {
    cache: u64,
    state: u64,
    window: bool,
}

impl Everywhere {
    fn add(
        &mut self,
        index: u64,
        gpu: Option<usize>,
        bytes: &LayerWeights,
        kept: &Cached,
        settings: &Settings,
    ) {
        let host = &mut self.host;
        let place = gpu.and_then(|g| self.parts.get_mut(g).zip(self.devices.get_mut(g)));
        let Some((part, device)) = place else {
            grow(&mut host.weights, bytes.dense.bytes.saturating_add(bytes.experts.bytes));
            grow(&mut host.context, kept.cache.saturating_add(kept.state));
            let largest = bytes.dense.largest.max(bytes.experts.largest);
            self.largest_on_cpu = self.largest_on_cpu.max(largest);
            return;
        };
        let cuda = settings.compute.cuda;
        part.layers += 1;
        device.layers += 1;
        grow(&mut part.weights, bytes.dense.on_device(cuda));
        if index < settings.cpu_experts && bytes.experts.bytes > 0 {
            grow(&mut host.weights, bytes.experts.bytes);
            device.cpu_experts += 1;
            self.largest_on_cpu = self.largest_on_cpu.max(bytes.experts.largest);
        } else {
            grow(&mut part.weights, bytes.experts.on_device(cuda));
        }
        if settings.cache_on_gpu {
            let sum = if kept.window { &mut part.cache_window } else { &mut part.cache_full };
            grow(sum, kept.cache);
            grow(&mut part.state, kept.state);
        } else {
            grow(&mut host.context, kept.cache.saturating_add(kept.state));
        }
    }
}

/// Weights and cache of the layers for guessing ahead; each keeps what the widest layer keeps.
fn draft(shape: &Shape, weights: &Weights, settings: &Settings) -> u64 {
    let counts = cells(shape, &settings.cache);
    let of = |layer| layer_bytes(shape, layer, &counts, &settings.cache);
    let cache = shape.layers.iter().map(of).max().unwrap_or(0).saturating_mul(shape.nextn);
    let layers = weights.layers.iter().skip(shape.layers.len());
    let bytes = |l: &LayerWeights| l.dense.bytes.saturating_add(l.experts.bytes);
    layers.fold(cache, |sum, layer| sum.saturating_add(bytes(layer)))
}

fn put_output(
    weights: &Weights,
    settings: &Settings,
    on_gpus: u64,
    parts: &mut [GpuPart],
    host: &mut HostPart,
) {
    if on_gpus == 0 {
        grow(&mut host.weights, weights.output.bytes);
        return;
    }
    let gpu = gpu_of(&settings.split, on_gpus - 1, on_gpus);
    if let Some(part) = parts.get_mut(gpu) {
        grow(&mut part.weights, weights.output_bytes(settings.compute.cuda));
        part.output = true;
    }
}
