//! A model as the arithmetic sees it: layers, heads, widths. Filled from a GGUF header, from a
//! `config.json`, or from a template, and the same for all of them.

use serde::Serialize;

use super::error::ModelError;

/// Most layers that are taken.
pub(crate) const MAX_LAYERS: u64 = 4096;
/// Largest width, head count or vocabulary that is taken; larger ones are damage.
pub(crate) const MAX_WIDTH: u64 = 1 << 32;

/// The shape of a decoder.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Shape {
    /// Architecture, as the file names it. Hostile text.
    pub arch: String,
    /// Whether this architecture's rules are known here, or the common ones were assumed.
    pub known: bool,
    /// Width of the residual stream.
    pub embd: u64,
    /// Width of the feed-forward part of dense layers; 0 where all have experts.
    pub ff: u64,
    /// Query heads of the widest layer.
    pub heads: u64,
    /// Values a head for keys.
    pub head_k: u64,
    /// Values a head for values.
    pub head_v: u64,
    /// Number of tokens in the vocabulary.
    pub vocab: u64,
    /// Tokens that it was trained for; 0 where the file does not say.
    pub context_max: u64,
    /// Width of the sliding window in tokens, 0 for none.
    pub window: u64,
    /// Mixture of experts.
    pub experts: Option<Experts>,
    /// Compressed keys and values.
    pub mla: Option<Mla>,
    /// Whether the output projection reuses the token embeddings.
    pub tied: bool,
    /// Whether queries and keys are normalised (no rope scratch is left over).
    pub qk_norm: bool,
    /// Whether the query projection also yields a gate as wide as the queries.
    pub gated: bool,
    /// Whether it keeps a cache at all (encoders do not).
    pub causal: bool,
    /// Layers for predicting several tokens, left out of `layers`.
    pub nextn: u64,
    /// The layers, first to last.
    pub layers: Vec<Layer>,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Experts {
    /// Experts a layer.
    pub count: u64,
    /// Of them, used for a token.
    pub used: u64,
    /// Width of one expert.
    pub ff: u64,
    /// Width of the experts that every token uses, all together.
    pub shared_ff: u64,
}

/// Multi-head latent attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Mla {
    /// Rank of the compressed keys and values.
    pub kv_rank: u64,
    /// Values a head that carry the position.
    pub rope: u64,
    /// Values a head that do not.
    pub nope: u64,
    /// Values a head of the expanded values.
    pub head_v: u64,
    /// Rank of the compressed queries, 0 for none.
    pub q_rank: u64,
}

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Layer {
    /// Which cells its cache has.
    pub cells: Cells,
    /// Key-value heads.
    pub kv_heads: u64,
    /// Values of keys for one token.
    pub k: u64,
    /// Values of values for one token.
    pub v: u64,
    /// Values of a sparse indexer's keys for one token.
    pub indexer: u64,
    /// Recurrent state of one sequence in values of 4 bytes.
    pub state: u64,
    /// Whether it has experts.
    pub experts: bool,
}

/// How many tokens a layer's cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// It has no cache of its own.
    #[default]
    None,
    /// All of the context.
    Full,
    /// The sliding window.
    Window,
}

impl Shape {
    /// Number of layers that keep the whole context.
    pub fn full_layers(&self) -> usize {
        self.layers.iter().filter(|l| l.cells == Cells::Full).count()
    }

    /// Number of layers that keep a window.
    pub fn window_layers(&self) -> usize {
        self.layers.iter().filter(|l| l.cells == Cells::Window).count()
    }

    /// Number of layers with a recurrent state.
    pub fn recurrent_layers(&self) -> usize {
        self.layers.iter().filter(|l| l.state > 0).count()
    }

    /// Whether a token's cost does not depend on the context alone.
    pub fn depends_on_slots(&self) -> bool {
        self.window_layers() > 0 || self.recurrent_layers() > 0
    }

    /// Width of all queries.
    pub const fn queries(&self) -> u64 {
        self.heads.saturating_mul(self.head_k)
    }

    /// Width of the feed-forward scratch: the dense width, or that of the experts in use.
    pub fn ff_live(&self) -> u64 {
        let experts = self.experts.map_or(0, |e| e.used.saturating_mul(e.ff));
        self.ff.max(experts)
    }

    /// Refuses a shape that cannot be, so that the arithmetic after it need not.
    pub(crate) fn checked(self) -> Result<Self, ModelError> {
        let e = self.experts.unwrap_or_default();
        let widths = [
            ("the width", self.embd),
            ("the feed-forward width", self.ff),
            ("the number of heads", self.heads),
            ("the width of a head", self.head_k.max(self.head_v)),
            ("the vocabulary", self.vocab),
            ("the context", self.context_max),
            ("the window", self.window),
            ("the number of experts", e.count.max(e.used).max(e.ff).max(e.shared_ff)),
        ];
        for (what, value) in widths {
            if value > MAX_WIDTH {
                return Err(ModelError::TooLarge { what, value, limit: MAX_WIDTH, at: 0 });
            }
        }
        if self.embd == 0 || self.layers.is_empty() {
            return Err(ModelError::MissingKey("embedding length and layer count".to_owned()));
        }
        // A model that writes text keeps something of every token; nothing at all means unread.
        let keeps = |l: &Layer| l.k > 0 || l.v > 0 || l.state > 0;
        if self.causal && !self.layers.iter().any(keeps) {
            return Err(ModelError::MissingKey("number of heads, or their width,".to_owned()));
        }
        Ok(self)
    }
}

/// The window pattern of a family where its files do not carry one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Every how many layers one is full.
    pub every: u64,
    /// Whether that one is the first of them, not the last.
    pub dense_first: bool,
    /// The window where the file has none.
    pub window: u64,
}

const fn pattern(every: u64, dense_first: bool, window: u64) -> Pattern {
    Pattern { every, dense_first, window }
}

/// Families whose pattern is part of the program (`llama-model.cpp`). Phi-3 and the first Mistral
/// carry a window too, and keep the whole context anyway.
const PATTERNS: [(&str, Pattern); 18] = [
    ("gemma2", pattern(2, false, 4096)),
    ("gemma3", pattern(6, false, 0)),
    ("gemma3n", pattern(5, false, 0)),
    ("gemma4", pattern(6, false, 0)),
    ("gpt-oss", pattern(2, false, 128)),
    ("cohere2", pattern(4, false, 0)),
    ("cohere2moe", pattern(4, true, 0)),
    ("llama4", pattern(4, false, 8192)),
    ("exaone4", pattern(4, false, 0)),
    ("exaone-moe", pattern(4, false, 0)),
    ("olmo2", pattern(4, false, 0)),
    ("afmoe", pattern(4, false, 0)),
    ("plamo3", pattern(8, false, 0)),
    ("mellum", pattern(4, false, 0)),
    ("gemma-embedding", pattern(6, false, 0)),
    ("modern-bert", pattern(3, true, 0)),
    ("smallthinker", pattern(4, true, 0)),
    ("laguna", pattern(4, true, 0)),
];

impl Pattern {
    /// The pattern of a family.
    pub fn of(arch: &str) -> Option<Self> {
        PATTERNS.iter().find(|row| row.0 == arch).map(|row| row.1)
    }

    /// Whether layer `index` keeps a window only.
    pub const fn is_window(self, index: u64) -> bool {
        if self.every < 2 {
            return self.every == 1;
        }
        if self.dense_first {
            !index.is_multiple_of(self.every)
        } else {
            index % self.every < self.every - 1
        }
    }
}

/// Architectures that have no cache.
pub(crate) const ENCODERS: [&str; 15] = [
    "bert",
    "nomic-bert",
    "nomic-bert-moe",
    "jina-bert-v2",
    "jina-bert-v3",
    "modern-bert",
    "neo-bert",
    "eurobert",
    "gemma-embedding",
    "t5encoder",
    "wavtokenizer-dec",
    "dream",
    "llada",
    "llada-moe",
    "rnd1",
];

/// Architectures whose common rules are checked: they need nothing that is not in the header.
pub(crate) const KNOWN: [&str; 66] = [
    "llama",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen3moe",
    "qwen3vl",
    "qwen3vlmoe",
    "qwen3next",
    "qwen35",
    "qwen35moe",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma-embedding",
    "gpt-oss",
    "llama4",
    "mistral",
    "mistral3",
    "phi2",
    "phi3",
    "phimoe",
    "deepseek",
    "deepseek2",
    "deepseek32",
    "glm4",
    "glm4moe",
    "glm-dsa",
    "chatglm",
    "command-r",
    "cohere2",
    "cohere2moe",
    "olmo",
    "olmo2",
    "olmoe",
    "granite",
    "granitemoe",
    "granitehybrid",
    "jamba",
    "mamba",
    "mamba2",
    "falcon",
    "falcon-h1",
    "nemotron",
    "nemotron_h",
    "nemotron_h_moe",
    "deci",
    "lfm2",
    "lfm2moe",
    "rwkv6",
    "rwkv7",
    "kimi-linear",
    "minimax-m2",
    "exaone",
    "exaone4",
    "starcoder2",
    "stablelm",
    "internlm2",
    "smollm3",
    "ernie4_5",
    "hunyuan-moe",
    "dots1",
    "afmoe",
    "bert",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_the_full_layers() {
        let gemma3 = Pattern::of("gemma3").unwrap();
        let full: Vec<u64> = (0..14).filter(|i| !gemma3.is_window(*i)).collect();
        assert_eq!(full, [5, 11]);
        let dense_first = Pattern::of("smallthinker").unwrap();
        assert!(!dense_first.is_window(0) && dense_first.is_window(1));
        assert!(Pattern::of("llama").is_none());
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(Shape::default().checked().is_err());
        let layers = vec![Layer::default()];
        let wide = Shape { embd: u64::MAX, layers, ..Shape::default() };
        assert!(wide.checked().is_err());
    }
}
