//! The shape of a model from a `config.json` of transformers.

use serde_json::{Map, Value};

use super::error::ModelError;
use super::shape::{Cells, Experts, Layer, MAX_LAYERS, Mla, Shape};

/// Where the language part of a model with several parts is described.
const NESTED: [&str; 5] =
    ["text_config", "llm_config", "language_config", "thinker_config", "decoder"];
/// How deep such parts are looked for.
const DEPTH: usize = 3;

/// Architectures that read and do not write.
const ENCODERS: [&str; 10] = [
    "bert",
    "roberta",
    "xlm-roberta",
    "distilbert",
    "nomic_bert",
    "modernbert",
    "deberta-v2",
    "mpnet",
    "electra",
    "albert",
];

/// The keys of the language part.
pub(crate) struct Config<'a>(&'a Map<String, Value>);

impl<'a> Config<'a> {
    /// Finds the language part.
    pub fn of(root: &'a Value) -> Option<Self> {
        let mut map = root.as_object()?;
        for _ in 0..DEPTH {
            let nested = NESTED.iter().find_map(|key| map.get(*key)?.as_object());
            match nested {
                Some(inner) => map = inner,
                None => break,
            }
        }
        Some(Self(map))
    }

    fn int(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Number(n) => n.as_u64().or_else(|| n.as_f64().map(|f| f.max(0.0) as u64)),
            Value::Array(items) => items.first()?.as_u64(),
            _ => None,
        }
    }

    /// The first of several names that is there.
    fn any(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| self.int(key))
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str()
    }

    fn list(&self, key: &str) -> Option<&'a Vec<Value>> {
        self.0.get(key)?.as_array().filter(|items| !items.is_empty())
    }
}

/// What a layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mixer {
    Full,
    Window,
    Recurrent,
    /// Both at once (Falcon-H1).
    Both,
    /// Feed-forward only.
    None,
}

/// The shape that a configuration describes.
pub fn shape(root: &Value) -> Result<Shape, ModelError> {
    let missing = |key: &str| ModelError::MissingKey(key.to_owned());
    let config = Config::of(root).ok_or_else(|| ModelError::malformed("config.json is no map"))?;
    let c = &config;
    let embd = c.any(&["hidden_size", "n_embd", "d_model", "dim"]);
    let embd = embd.ok_or_else(|| missing("hidden_size"))?;
    let blocks = c.any(&["num_hidden_layers", "n_layer", "num_layers", "n_layers"]);
    let blocks = blocks
        .or_else(|| c.list("layer_types").map(|l| l.len() as u64))
        .ok_or_else(|| missing("num_hidden_layers"))?;
    if blocks > MAX_LAYERS {
        let what = "the number of layers";
        return Err(ModelError::TooLarge { what, value: blocks, limit: MAX_LAYERS, at: 0 });
    }
    let heads = c.any(&["num_attention_heads", "n_head", "n_heads"]).unwrap_or(0);
    let arch = c.text("model_type").or_else(|| root.get("model_type")?.as_str());
    let arch = arch.unwrap_or("unknown");
    let head = c.int("head_dim").filter(|n| *n > 0).or_else(|| embd.checked_div(heads));
    let head = head.unwrap_or(0);
    let tied = c.flag("tie_word_embeddings").or_else(|| root.get("tie_word_embeddings")?.as_bool());
    let mut shape = Shape {
        arch: arch.chars().take(64).collect(),
        known: arch != "unknown",
        embd,
        ff: c
            .any(&["intermediate_size", "n_inner", "ffn_hidden_size", "intermediate_dim"])
            .unwrap_or_else(|| embd.saturating_mul(4)),
        heads,
        head_k: head,
        head_v: head,
        vocab: c.int("vocab_size").unwrap_or(0),
        context_max: c.any(&["max_position_embeddings", "n_positions", "max_seq_len"]).unwrap_or(0),
        window: window(c),
        experts: experts(c),
        mla: mla(c),
        tied: tied.unwrap_or(arch.starts_with("gemma")),
        qk_norm: arch.starts_with("qwen3") || arch.starts_with("gemma3") || arch == "olmo2",
        gated: arch.starts_with("qwen3_next") || arch.starts_with("qwen3_5"),
        causal: !ENCODERS.contains(&arch),
        nextn: c.any(&["num_nextn_predict_layers", "num_mtp_layers"]).unwrap_or(0),
        ..Shape::default()
    };
    let shared = c.int("num_kv_shared_layers").unwrap_or(0);
    for i in 0..blocks {
        let mut layer = layer_of(c, &shape, i, blocks);
        if i >= blocks.saturating_sub(shared) {
            layer = Layer { state: layer.state, kv_heads: layer.kv_heads, ..Layer::default() };
        }
        layer.experts = shape.experts.is_some() && has_experts(c, i);
        shape.layers.push(layer);
    }
    if shape.layers.iter().all(|l| l.experts) {
        shape.ff = 0;
    }
    shape.checked()
}

fn window(c: &Config<'_>) -> u64 {
    if c.flag("use_sliding_window") == Some(false) {
        return 0;
    }
    c.any(&["sliding_window", "attention_chunk_size", "sliding_window_size"]).unwrap_or(0)
}

fn experts(c: &Config<'_>) -> Option<Experts> {
    const COUNT: [&str; 5] = [
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "moe_num_experts",
        "num_routed_experts",
    ];
    const USED: [&str; 5] = [
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_top_k",
    ];
    let count = c.any(&COUNT).filter(|n| *n > 1)?;
    let ff = c.any(&["moe_intermediate_size", "expert_intermediate_size", "intermediate_size"]);
    let ff = ff.unwrap_or(0);
    let shared = c.any(&["n_shared_experts", "num_shared_experts"]).unwrap_or(0);
    let shared = c
        .any(&["shared_expert_intermediate_size", "shared_intermediate_size"])
        .unwrap_or(shared.saturating_mul(ff));
    Some(Experts { count, used: c.any(&USED).unwrap_or(1), ff, shared_ff: shared })
}

fn has_experts(c: &Config<'_>, index: u64) -> bool {
    if index < c.int("first_k_dense_replace").unwrap_or(0) {
        return false;
    }
    let listed = c.list("mlp_only_layers");
    if listed.is_some_and(|l| l.iter().any(|n| n.as_u64() == Some(index))) {
        return false;
    }
    if let Some(period) = c.int("expert_layer_period").filter(|n| *n > 0) {
        return index % period == c.int("expert_layer_offset").unwrap_or(0);
    }
    let step = c.any(&["interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq"]);
    (index + 1).is_multiple_of(step.unwrap_or(1).max(1))
}

fn mla(c: &Config<'_>) -> Option<Mla> {
    Some(Mla {
        kv_rank: c.int("kv_lora_rank").filter(|n| *n > 0)?,
        rope: c.int("qk_rope_head_dim").unwrap_or(64),
        nope: c.int("qk_nope_head_dim").unwrap_or(128),
        head_v: c.int("v_head_dim").unwrap_or(128),
        q_rank: c.int("q_lora_rank").unwrap_or(0),
    })
}

fn layer_of(c: &Config<'_>, shape: &Shape, index: u64, blocks: u64) -> Layer {
    let mixer = mixer(c, shape, index, blocks);
    let kv_heads = match c.list("num_key_value_heads") {
        Some(list) => list.get(index as usize).and_then(Value::as_u64).unwrap_or(0),
        None if c.flag("multi_query") == Some(true) => 1,
        None => c.any(&["num_key_value_heads", "num_kv_heads", "n_head_kv"]).unwrap_or(shape.heads),
    };
    let mut layer = Layer { kv_heads, ..Layer::default() };
    if matches!(mixer, Mixer::Recurrent | Mixer::Both) {
        layer.state = state(c, shape);
    }
    if !shape.causal || matches!(mixer, Mixer::Recurrent | Mixer::None) {
        return layer;
    }
    layer.cells = if mixer == Mixer::Window { Cells::Window } else { Cells::Full };
    layer.indexer = c.int("index_head_dim").unwrap_or(0);
    if let Some(mla) = shape.mla {
        layer.k = mla.kv_rank.saturating_add(mla.rope);
        layer.kv_heads = 1;
        return layer;
    }
    let mut head = shape.head_k;
    if mixer == Mixer::Full
        && let Some(global) = c.int("global_head_dim")
    {
        head = global;
        layer.kv_heads = c.int("num_global_key_value_heads").unwrap_or(kv_heads);
    }
    layer.k = layer.kv_heads.saturating_mul(head);
    layer.v = layer.kv_heads.saturating_mul(c.int("v_head_dim").unwrap_or(head));
    layer
}

fn mixer(c: &Config<'_>, shape: &Shape, index: u64, blocks: u64) -> Mixer {
    let by_window = |is_window| {
        if is_window && shape.window > 0 { Mixer::Window } else { Mixer::Full }
    };
    for key in ["layer_types", "layers_block_type", "attn_type_list"] {
        if let Some(item) = c.list(key).and_then(|list| list.get(index as usize)) {
            return match (item.as_str(), item.as_u64()) {
                (Some("full_attention" | "attention" | "hybrid"), _) | (_, Some(1)) => Mixer::Full,
                (Some("sliding_attention" | "chunked_attention"), _) => by_window(true),
                (Some("mlp" | "moe"), _) => Mixer::None,
                (Some(_), _) | (_, Some(0)) => Mixer::Recurrent,
                _ => Mixer::Full,
            };
        }
    }
    if let Some(letter) =
        c.text("hybrid_override_pattern").and_then(|p| p.chars().nth(index as usize))
    {
        return match letter {
            'M' => Mixer::Recurrent,
            '*' => Mixer::Full,
            _ => Mixer::None,
        };
    }
    by_arch(c, shape, index, blocks).unwrap_or_else(|| {
        let every = c.any(&["sliding_window_pattern", "_sliding_window_pattern"]);
        by_window(every.is_none_or(|n| n < 2 || index % n < n - 1) && is_windowed(c, shape, index))
    })
}

fn by_arch(c: &Config<'_>, shape: &Shape, index: u64, blocks: u64) -> Option<Mixer> {
    let in_list = |key: &str| c.list(key).map(|l| l.iter().any(|n| n.as_u64() == Some(index)));
    let recurrent = |is_attention: bool| if is_attention { Mixer::Full } else { Mixer::Recurrent };
    match shape.arch.as_str() {
        "mamba" | "mamba2" | "falcon_mamba" | "rwkv" | "rwkv7" => Some(Mixer::Recurrent),
        "falcon_h1" => Some(Mixer::Both),
        "jamba" => {
            let period = c.int("attn_layer_period").unwrap_or(8).max(1);
            Some(recurrent(index % period == c.int("attn_layer_offset").unwrap_or(4)))
        }
        "bamba" => Some(recurrent(in_list("attn_layer_indices").unwrap_or(false))),
        "lfm2" | "lfm2_moe" => in_list("full_attn_idxs").map(recurrent),
        _ => {
            if let Some(every) = c.int("full_attention_interval").filter(|n| *n > 0) {
                return Some(recurrent((index + 1).is_multiple_of(every)));
            }
            if shape.arch == "llama4" || shape.arch == "llama4_text" {
                let full = (index + 1).is_multiple_of(4) && blocks > 0;
                return Some(if full { Mixer::Full } else { Mixer::Window });
            }
            None
        }
    }
}

/// Whether layers of this family keep a window where nothing is said layer by layer.
fn is_windowed(c: &Config<'_>, shape: &Shape, index: u64) -> bool {
    let every = match shape.arch.as_str() {
        "gemma2" | "gpt_oss" => 2,
        "gemma3" | "gemma3_text" => 6,
        "cohere2" => 4,
        "mistral" | "mixtral" | "phi3" | "starcoder2" => return true,
        "qwen2" | "qwen2_moe" | "qwen3" => {
            return index >= c.int("max_window_layers").unwrap_or(u64::MAX);
        }
        _ => return c.0.contains_key("sliding_window_pattern"),
    };
    index % every < every - 1
}

/// Recurrent state of a layer and a sequence, in values.
fn state(c: &Config<'_>, shape: &Shape) -> u64 {
    let int = |keys: &[&str], otherwise: u64| c.any(keys).unwrap_or(otherwise);
    if let Some(heads) = c.int("linear_num_value_heads") {
        let inner = heads.saturating_mul(int(&["linear_value_head_dim"], 128));
        let key = int(&["linear_key_head_dim"], 128);
        let keys = int(&["linear_num_key_heads"], heads).saturating_mul(key);
        let conv = int(&["linear_conv_kernel_dim"], 4).saturating_sub(1);
        return conv
            .saturating_mul(keys.saturating_mul(2).saturating_add(inner))
            .saturating_add(key.saturating_mul(inner));
    }
    if let Some(cached) = c.any(&["conv_L_cache"]) {
        return shape.embd.saturating_mul(cached.saturating_sub(1));
    }
    if shape.arch.starts_with("rwkv") {
        let size = int(&["head_size", "head_dim"], 64);
        return shape.embd.saturating_mul(size.saturating_add(2));
    }
    let expanded = shape.embd.saturating_mul(int(&["mamba_expand", "expand"], 2));
    let by_heads = int(&["mamba_n_heads", "num_heads", "mamba_num_heads"], 0)
        .saturating_mul(int(&["mamba_d_head", "mamba_head_dim"], 0));
    let inner = c.any(&["mamba_d_ssm", "mamba_intermediate_size"]);
    let inner = inner.unwrap_or(if by_heads > 0 { by_heads } else { expanded });
    let size = int(&["mamba_d_state", "state_size", "ssm_state_size"], 16);
    let groups = int(&["mamba_n_groups", "n_groups"], 0);
    let conv = int(&["mamba_d_conv", "conv_kernel"], 4).saturating_sub(1);
    let wide = groups.saturating_mul(size).saturating_mul(2).saturating_add(inner);
    conv.saturating_mul(wide).saturating_add(size.saturating_mul(inner))
}

/// Whether the weights are 32-bit where nothing else is known of them.
pub(crate) fn is_32_bit(root: &Value) -> bool {
    let text = |map: &Value| {
        let dtype = map.get("dtype").or_else(|| map.get("torch_dtype"))?;
        dtype.as_str().map(|name| name == "float32")
    };
    let nested = || NESTED.iter().find_map(|key| text(root.get(*key)?));
    text(root).or_else(nested).unwrap_or(false)
}

/// How the weights are stored, in words, where the configuration says so.
pub fn quantisation(root: &Value) -> Option<String> {
    let config = root
        .get("quantization_config")
        .or_else(|| NESTED.iter().find_map(|key| root.get(*key)?.get("quantization_config")))?;
    let int = |key: &str| config.get(key).and_then(Value::as_u64);
    let method = config.get("quant_method").and_then(Value::as_str).unwrap_or("quantised");
    let on = |key: &str| config.get(key).and_then(Value::as_bool) == Some(true);
    Some(match method {
        "bitsandbytes" if on("load_in_4bit") => "bitsandbytes 4-bit".to_owned(),
        "bitsandbytes" => "bitsandbytes 8-bit".to_owned(),
        "gptq" | "awq" => format!("{method} {}-bit", int("bits").unwrap_or(4)),
        other => super::error::excerpt(other),
    })
}
