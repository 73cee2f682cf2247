//! Bytes of the cache and of recurrent states.

use serde::Serialize;

use super::ggml::CacheType;
use super::shape::{Cells, Layer, Shape};

/// llama.cpp rounds the context up to this many tokens.
const CELL_STEP: u64 = 256;

/// What the size of a cache depends on besides the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CacheSettings {
    /// Tokens.
    pub context: u64,
    /// Sequences at the same time.
    pub slots: u64,
    /// Whether they share one cache (`--kv-unified`, the default of the server with `-np` unset).
    pub unified: bool,
    /// Tokens a micro-batch.
    pub ubatch: u64,
    /// Type of the keys.
    pub keys: CacheType,
    /// Type of the values.
    pub values: CacheType,
    /// Whether window layers keep the whole context all the same (`--swa-full`).
    pub full_window: bool,
    /// Whether compressed caches store values too, as llama.cpp did before autumn 2025.
    pub mla_values: bool,
    /// Further copies of recurrent states, for tokens that are guessed ahead.
    pub state_copies: u64,
}

impl CacheSettings {
    /// One sequence of `context` tokens, 16-bit.
    pub const fn new(context: u64) -> Self {
        Self {
            context,
            slots: 1,
            unified: true,
            ubatch: 512,
            keys: CacheType::F16,
            values: CacheType::F16,
            full_window: false,
            mla_values: false,
            state_copies: 0,
        }
    }
}

/// The context as llama.cpp takes it.
pub const fn padded(context: u64) -> u64 {
    match context.checked_next_multiple_of(CELL_STEP) {
        Some(n) => n,
        None => u64::MAX,
    }
}

/// Cells of all sequences together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CellCounts {
    /// In layers that keep everything.
    pub full: u64,
    /// In layers that keep a window.
    pub window: u64,
    /// In layers that keep everything, that one batch sees.
    pub full_seen: u64,
    /// In layers that keep a window, that one batch sees.
    pub window_seen: u64,
}

/// How many cells the layers of this shape get.
pub fn cells(shape: &Shape, settings: &CacheSettings) -> CellCounts {
    let slots = settings.slots.max(1);
    let (per_stream, streams) = if settings.unified {
        (padded(settings.context), 1)
    } else {
        (padded(settings.context.div_ceil(slots)), slots)
    };
    let window = if shape.window == 0 || shape.window_layers() == 0 {
        0
    } else if settings.full_window {
        per_stream
    } else {
        let sequences = if settings.unified { slots } else { 1 };
        let kept = shape.window.saturating_mul(sequences).saturating_add(settings.ubatch);
        per_stream.min(padded(kept))
    };
    CellCounts {
        full: per_stream.saturating_mul(streams),
        window: window.saturating_mul(streams),
        full_seen: per_stream,
        window_seen: window,
    }
}

/// Bytes of one token in one layer.
pub fn bytes_per_token(shape: &Shape, layer: &Layer, settings: &CacheSettings) -> u64 {
    let stored_values = match shape.mla {
        Some(mla) if settings.mla_values => mla.kv_rank,
        _ => layer.v,
    };
    let (k, v) = (settings.keys.bytes(layer.k), settings.values.bytes(stored_values));
    k.saturating_add(v).saturating_add(settings.keys.bytes(layer.indexer))
}

/// Bytes of one layer's cache.
pub fn layer_bytes(
    shape: &Shape,
    layer: &Layer,
    counts: &CellCounts,
    settings: &CacheSettings,
) -> u64 {
    let cells = match layer.cells {
        Cells::None => 0,
        Cells::Full => counts.full,
        Cells::Window => counts.window,
    };
    cells.saturating_mul(bytes_per_token(shape, layer, settings))
}

/// Bytes of one layer's recurrent state.
pub const fn state_bytes(layer: &Layer, settings: &CacheSettings) -> u64 {
    let sequences = if settings.slots == 0 { 1 } else { settings.slots };
    let copies = settings.state_copies.saturating_add(1);
    layer.state.saturating_mul(4).saturating_mul(sequences).saturating_mul(copies)
}

/// Cache and state of all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CacheBytes {
    /// In layers that keep everything.
    pub full: u64,
    /// In layers that keep a window.
    pub window: u64,
    /// Recurrent states.
    pub state: u64,
}

impl CacheBytes {
    /// All of it.
    pub const fn total(&self) -> u64 {
        self.full.saturating_add(self.window).saturating_add(self.state)
    }
}

/// Cache and state of all layers.
pub fn total(shape: &Shape, settings: &CacheSettings) -> CacheBytes {
    let counts = cells(shape, settings);
    let mut sum = CacheBytes::default();
    for layer in &shape.layers {
        let bytes = layer_bytes(shape, layer, &counts, settings);
        match layer.cells {
            Cells::Window => sum.window = sum.window.saturating_add(bytes),
            Cells::Full | Cells::None => sum.full = sum.full.saturating_add(bytes),
        }
        sum.state = sum.state.saturating_add(state_bytes(layer, settings));
    }
    sum
}

/// What one more token of context costs, all layers together.
pub fn slope(shape: &Shape, settings: &CacheSettings) -> u64 {
    let full = shape.layers.iter().filter(|l| l.cells == Cells::Full);
    full.fold(0, |sum, layer| sum.saturating_add(bytes_per_token(shape, layer, settings)))
}
