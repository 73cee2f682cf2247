//! The shape of a model from the metadata of a GGUF file.

use super::error::ModelError;
use super::gguf::Gguf;
use super::shape::{Cells, ENCODERS, Experts, KNOWN, Layer, MAX_LAYERS, Mla, Pattern, Shape};

/// Layers of gemma3n that own a cache; the later ones read theirs.
const GEMMA3N_OWN: u64 = 20;

/// Looks keys up below the architecture's name.
struct Keys<'a> {
    gguf: &'a Gguf,
    arch: &'a str,
}

impl Keys<'_> {
    fn int(&self, key: &str) -> Option<u64> {
        self.gguf.int(&format!("{}.{key}", self.arch))
    }

    fn need(&self, key: &str) -> Result<u64, ModelError> {
        let missing = || ModelError::MissingKey(format!("{}.{key}", self.arch));
        self.int(key).ok_or_else(missing)
    }

    /// One number a layer, whether the file has an array or a single one.
    fn each(&self, key: &str, layers: u64, otherwise: u64) -> Vec<u64> {
        let values = self.gguf.ints(&format!("{}.{key}", self.arch)).unwrap_or_default();
        let single = if values.len() == 1 { values.first().copied() } else { None };
        let at = |i: u64| values.get(i as usize).copied();
        (0..layers).map(|i| single.or_else(|| at(i)).unwrap_or(otherwise)).collect()
    }

    fn flags(&self, key: &str) -> Option<Vec<u64>> {
        self.gguf.ints(&format!("{}.{key}", self.arch))
    }
}

/// The shape that a header describes.
pub fn shape(gguf: &Gguf) -> Result<Shape, ModelError> {
    let arch = gguf.text("general.architecture");
    let arch = arch.ok_or_else(|| ModelError::MissingKey("general.architecture".to_owned()))?;
    let keys = Keys { gguf, arch };
    let blocks = keys.need("block_count")?;
    if blocks > MAX_LAYERS {
        let what = "the number of layers";
        return Err(ModelError::TooLarge { what, value: blocks, limit: MAX_LAYERS, at: 0 });
    }
    let nextn = keys.int("nextn_predict_layers").unwrap_or(0).min(blocks.saturating_sub(1));
    let embd = keys.need("embedding_length")?;
    let heads = keys.each("attention.head_count", blocks, 0);
    let most_heads = heads.iter().copied().max().unwrap_or(0);
    let head = embd.checked_div(most_heads).unwrap_or(0);
    let head_k = keys.int("attention.key_length").unwrap_or(head);
    let causal = !ENCODERS.contains(&arch) && keys.int("attention.causal") != Some(0);
    let mut shape = Shape {
        arch: arch.chars().take(64).collect(),
        known: KNOWN.contains(&arch) || Pattern::of(arch).is_some() || ENCODERS.contains(&arch),
        embd,
        ff: dense_width(&keys, blocks),
        heads: most_heads,
        head_k,
        head_v: keys.int("attention.value_length").unwrap_or(head),
        vocab: vocabulary(&keys),
        context_max: keys.int("context_length").unwrap_or(0),
        experts: experts(&keys),
        mla: mla(&keys),
        tied: !has_tensor(gguf, "output.weight"),
        qk_norm: gguf.tensors.iter().any(|t| t.name.ends_with("attn_q_norm.weight")),
        gated: matches!(arch, "qwen3next" | "qwen35" | "qwen35moe"),
        causal,
        nextn,
        ..Shape::default()
    };
    let windows = windows(&keys, &mut shape, blocks);
    let heads_kv = heads_kv(&keys, &heads, blocks)?;
    let recurrent = recurrent(&keys, &heads_kv, blocks);
    let dense_first = keys.int("leading_dense_block_count").unwrap_or(0);
    let moe_every = keys.int("interleave_moe_layer_step").unwrap_or(1).max(1);
    for i in 0..blocks.saturating_sub(nextn) {
        let at = i as usize;
        let kv_heads = heads_kv.get(at).copied().unwrap_or(0);
        let is_window = windows.get(at).copied().unwrap_or(false);
        let mut layer = attention(&keys, &shape, kv_heads, is_window);
        let is_recurrent = recurrent.get(at).copied().unwrap_or(false);
        if is_recurrent {
            layer.state = state(&keys, &shape);
        }
        if is_recurrent && arch != "falcon-h1" || !owns_cache(&keys, arch, i, blocks - nextn) {
            layer = Layer { state: layer.state, kv_heads, ..Layer::default() };
        }
        let has_experts = shape.experts.is_some() && i >= dense_first;
        layer.experts = has_experts && (i + 1).is_multiple_of(moe_every);
        shape.layers.push(layer);
    }
    shape.checked()
}

fn has_tensor(gguf: &Gguf, name: &str) -> bool {
    gguf.tensors.iter().any(|t| t.name == name)
}

fn vocabulary(keys: &Keys<'_>) -> u64 {
    let from_tensor = || {
        let embeddings = keys.gguf.tensors.iter().find(|t| t.name == "token_embd.weight");
        embeddings.and_then(|t| t.shape.get(1).copied())
    };
    from_tensor()
        .or_else(|| keys.int("vocab_size"))
        .or_else(|| keys.gguf.array_len("tokenizer.ggml.tokens"))
        .unwrap_or(0)
}

fn dense_width(keys: &Keys<'_>, blocks: u64) -> u64 {
    let widths = keys.each("feed_forward_length", blocks, 0);
    let all_experts = keys.int("expert_count").unwrap_or(0) > 0
        && keys.int("leading_dense_block_count").unwrap_or(0) == 0
        && keys.int("interleave_moe_layer_step").unwrap_or(1) < 2
        && keys.int("expert_feed_forward_length").is_some();
    if all_experts { 0 } else { widths.into_iter().max().unwrap_or(0) }
}

fn experts(keys: &Keys<'_>) -> Option<Experts> {
    let count = keys.int("expert_count").filter(|n| *n > 0)?;
    let ff = keys.int("expert_feed_forward_length").or_else(|| keys.int("feed_forward_length"));
    let ff = ff.unwrap_or(0);
    let shared = keys.int("expert_shared_count").unwrap_or(0).saturating_mul(ff);
    Some(Experts {
        count,
        used: keys.int("expert_used_count").unwrap_or(1),
        ff,
        shared_ff: keys.int("expert_shared_feed_forward_length").unwrap_or(shared),
    })
}

/// Only files with the `_mla` keys are run with compressed keys and values; older ones expand them.
fn mla(keys: &Keys<'_>) -> Option<Mla> {
    let key = keys.int("attention.key_length_mla")?;
    let head_v = keys.int("attention.value_length_mla")?;
    let rope = keys.int("rope.dimension_count").unwrap_or(64);
    Some(Mla {
        kv_rank: keys.int("attention.kv_lora_rank")?,
        rope,
        nope: key.saturating_sub(rope),
        head_v,
        q_rank: keys.int("attention.q_lora_rank").unwrap_or(0),
    })
}

fn heads_kv(keys: &Keys<'_>, heads: &[u64], blocks: u64) -> Result<Vec<u64>, ModelError> {
    let key = "attention.head_count_kv";
    match keys.flags(key) {
        // The layers that the array leaves out would seem to keep nothing.
        Some(some) if some.len() > 1 && (some.len() as u64) < blocks => {
            Err(ModelError::MissingKey(format!(
                "{}.{key} of layers {} to {}",
                keys.arch,
                some.len(),
                blocks - 1
            )))
        }
        Some(_) => Ok(keys.each(key, blocks, 0)),
        None => Ok(heads.to_vec()),
    }
}

/// Which layers keep a window only; sets the window's width.
fn windows(keys: &Keys<'_>, shape: &mut Shape, blocks: u64) -> Vec<bool> {
    let family = Pattern::of(keys.arch);
    let default = family.map_or(0, |p| p.window);
    let window = keys.int("attention.sliding_window").filter(|n| *n > 0).unwrap_or(default);
    let flags = keys.flags("attention.sliding_window_pattern");
    let per_layer: Option<Vec<bool>> = match flags {
        Some(flags) if flags.len() > 1 => Some(flags.iter().map(|f| *f != 0).collect()),
        Some(one) => one.first().map(|every| {
            let dense_first = family.is_some_and(|p| p.dense_first);
            let pattern = Pattern { every: *every, dense_first, window };
            (0..blocks).map(|i| pattern.is_window(i)).collect()
        }),
        None => family.map(|p| (0..blocks).map(|i| p.is_window(i)).collect()),
    };
    match per_layer {
        Some(layers) if window > 0 => {
            shape.window = window;
            layers
        }
        _ => Vec::new(),
    }
}

fn owns_cache(keys: &Keys<'_>, arch: &str, index: u64, layers: u64) -> bool {
    let own = match arch {
        "gemma3n" => GEMMA3N_OWN,
        _ => layers.saturating_sub(keys.int("attention.shared_kv_layers").unwrap_or(0)),
    };
    index < own
}

fn attention(keys: &Keys<'_>, shape: &Shape, kv_heads: u64, is_window: bool) -> Layer {
    if !shape.causal || kv_heads == 0 {
        return Layer { kv_heads, ..Layer::default() };
    }
    let cells = if is_window { Cells::Window } else { Cells::Full };
    let indexer = keys.int("attention.indexer.key_length").unwrap_or(0);
    if let Some(mla) = shape.mla {
        let k = mla.kv_rank.saturating_add(mla.rope);
        return Layer { cells, kv_heads: 1, k, v: 0, indexer, ..Layer::default() };
    }
    let (mut head_k, mut head_v) = (shape.head_k, shape.head_v);
    if is_window {
        head_k = keys.int("attention.key_length_swa").unwrap_or(head_k);
        head_v = keys.int("attention.value_length_swa").unwrap_or(head_v);
    }
    Layer {
        cells,
        kv_heads,
        k: kv_heads.saturating_mul(head_k),
        v: kv_heads.saturating_mul(head_v),
        indexer,
        ..Layer::default()
    }
}

/// Which layers keep a recurrent state.
fn recurrent(keys: &Keys<'_>, heads_kv: &[u64], blocks: u64) -> Vec<bool> {
    if let Some(flags) = keys.flags("attention.recurrent_layers").filter(|f| f.len() > 1) {
        return flags.iter().map(|f| *f != 0).collect();
    }
    let no_attention = |i: u64| heads_kv.get(i as usize) == Some(&0);
    let of: Box<dyn Fn(u64) -> bool> = match keys.arch {
        "mamba" | "mamba2" | "falcon-h1" => Box::new(|_| true),
        arch if arch.contains("rwkv") => Box::new(|_| true),
        "qwen3next" | "qwen35" | "qwen35moe" => {
            let every = keys.int("full_attention_interval").unwrap_or(4).max(1);
            Box::new(move |i| !(i + 1).is_multiple_of(every))
        }
        "nemotron_h" | "nemotron_h_moe" => {
            let ff = keys.each("feed_forward_length", blocks, 0);
            Box::new(move |i| no_attention(i) && ff.get(i as usize) == Some(&0))
        }
        "jamba" | "granitehybrid" | "plamo2" | "lfm2" | "lfm2moe" | "kimi-linear" => {
            Box::new(no_attention)
        }
        _ => Box::new(|_| false),
    };
    (0..blocks).map(of).collect()
}

/// Recurrent state of one layer and one sequence, in values.
fn state(keys: &Keys<'_>, shape: &Shape) -> u64 {
    let int = |key: &str| keys.int(key).unwrap_or(0);
    if let Some(size) = keys.int("wkv.head_size") {
        let shift = keys.int("token_shift_count").unwrap_or(2);
        return shape.embd.saturating_mul(shift.saturating_add(size));
    }
    let conv = int("ssm.conv_kernel").saturating_sub(1);
    if let Some(dim) = keys.int("kda.head_dim") {
        let wide = shape.heads.saturating_mul(dim);
        return wide
            .saturating_mul(dim)
            .saturating_add(wide.saturating_mul(conv).saturating_mul(3));
    }
    if let Some(cached) = keys.int("shortconv.l_cache") {
        return shape.embd.saturating_mul(cached.saturating_sub(1));
    }
    let (inner, size) = (int("ssm.inner_size"), int("ssm.state_size"));
    let wide = int("ssm.group_count").saturating_mul(size).saturating_mul(2).saturating_add(inner);
    conv.saturating_mul(wide).saturating_add(size.saturating_mul(inner))
}
