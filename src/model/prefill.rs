//! The tensors that a decoder of transformers holds while it reads a prompt, in the order in which
//! it makes and drops them, on the [caching allocator](super::segments).
//!
//! Names are those of `modeling_llama.py`; most decoders there are generated from it. At its
//! widest, in the product of a layer's feed-forward part, one token has
//!
//! - four maps of the model's width: `inputs_embeds`, which the model's `forward` holds to its end,
//!   the layer's input, the residual after attention, and its norm;
//! - three of the feed-forward width: the activated gate, the up projection and their product;
//! - the cosines and sines of one head, the token and its position in 8 bytes each;
//! - its keys and values in every layer.
//!
//! Where the feed-forward part is narrow, rotating the queries or the norm in 32-bit is wider: all
//! of it is walked, and the allocator says which moment was the widest.

use super::segments::{Block, Segments};
use super::shape::{Cells, Layer, Shape};
use super::torch::TorchSettings;
use super::weights::{LayerWeights, Part, Weights};

/// Bytes of a value in the forward pass.
const HALF: u64 = 2;
/// Bytes of a value in norms, rope tables and softmax.
const SINGLE: u64 = 4;
/// Bytes of a token's number, and of its position.
const INDEX: u64 = 8;
/// Layers that are walked one by one; no model has more.
const MOST_LAYERS: usize = 256;

/// What the walk found, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Walked {
    /// Blocks of the weights; more than the weights where the allocator does not split a rest off.
    pub weights: u64,
    /// Most in use up to the last layer.
    pub layers: u64,
    /// Most in use after it: the last norm and the logits.
    pub output: u64,
    /// Segments.
    pub reserved: u64,
}

/// Loads the weights tensor by tensor, then reads the prompt. (`from_pretrained` with a
/// `device_map` reserves one segment for all weights beforehand; then less is left over.)
pub(super) fn walk(shape: &Shape, weights: &Weights, s: &TorchSettings, cublas: u64) -> Walked {
    let mut walk = Walk::new(shape, s);
    walk.load(weights);
    let loaded = walk.memory.allocated();
    // A process that has worked before: the first product of all takes it.
    walk.memory.take(cublas);
    walk.read();
    Walked {
        weights: loaded,
        layers: walk.layers,
        output: walk.memory.peak_allocated(),
        reserved: walk.memory.reserved(),
    }
}

/// Values, times bytes of each.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, n| product.saturating_mul(*n))
}

struct Walk<'a> {
    memory: Segments,
    shape: &'a Shape,
    s: &'a TorchSettings,
    /// Tokens of all sequences that are read at once.
    tokens: u64,
    /// The most up to the last layer.
    layers: u64,
}

impl<'a> Walk<'a> {
    fn new(shape: &'a Shape, s: &'a TorchSettings) -> Self {
        let tokens = s.prefill.saturating_mul(s.batch.max(1));
        let memory = Segments::default();
        Self { memory, shape, s, tokens, layers: 0 }
    }

    /// A map of so many values a token.
    fn map(&mut self, width: u64, bytes: u64) -> Block {
        self.memory.take(product(&[self.tokens, width, bytes]))
    }

    fn half(&mut self, width: u64) -> Block {
        self.map(width, HALF)
    }

    fn free(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.memory.free(*block);
        }
    }

    fn load(&mut self, weights: &Weights) {
        let whole = |part: &Part| [part.largest, part.bytes.saturating_sub(part.largest)];
        let mut tensors: Vec<u64> = whole(&weights.input).to_vec();
        for (i, layer) in weights.layers.iter().enumerate().take(MOST_LAYERS) {
            tensors.extend(layer_tensors(self.shape, i, layer));
        }
        let rest = weights.layers.iter().skip(MOST_LAYERS);
        tensors.extend(rest.map(|l| l.dense.bytes.saturating_add(l.experts.bytes)));
        for part in [&weights.output, &weights.projector, &weights.every_device] {
            tensors.extend(whole(part));
        }
        for bytes in tensors.into_iter().filter(|bytes| *bytes > 0) {
            self.memory.take(bytes);
        }
    }

    /// `LlamaModel.forward` and the head.
    fn read(&mut self) {
        let embd = self.shape.embd;
        let past = self.s.context.saturating_sub(self.s.prefill);
        let walked = self.shape.layers.iter().take(MOST_LAYERS);
        let caches: Vec<Vec<Block>> = walked.clone().map(|l| self.cache(l, past)).collect();
        let _ids = self.map(1, INDEX);
        let embeds = self.half(embd);
        let _positions = self.map(1, INDEX);
        self.rope_tables();
        let pairs = product(&[self.s.prefill, self.s.context, self.s.batch.max(1)]);
        if self.s.eager {
            self.memory.take(product(&[pairs, HALF]));
        }
        let mut hidden = embeds;
        for (layer, old) in walked.zip(&caches) {
            let out = self.layer(layer, old, pairs);
            if hidden != embeds {
                self.memory.free(hidden);
            }
            hidden = out;
        }
        for layer in self.shape.layers.iter().skip(MOST_LAYERS) {
            self.cache(layer, self.s.context);
        }
        self.layers = self.memory.peak_allocated();
        self.memory.forget_peak();
        self.norm(embd);
        let sequences = self.s.batch.max(1);
        let positions = if self.s.all_logits { self.tokens } else { sequences };
        self.memory.take(product(&[positions, self.shape.vocab, HALF]));
    }

    /// `LlamaRotaryEmbedding`: frequencies twice, cosine and sine, scaled, then in 16-bit.
    fn rope_tables(&mut self) {
        let width = self.shape.mla.map_or(self.shape.head_k, |mla| mla.rope);
        let angles = [self.map(width / 2, SINGLE), self.map(width, SINGLE)];
        let mut scaled = || {
            let plain = self.map(width, SINGLE);
            let scaled = self.map(width, SINGLE);
            self.memory.free(plain);
            scaled
        };
        let tables = [scaled(), scaled()];
        let _kept = [self.half(width), self.half(width)];
        self.free(&angles);
        self.free(&tables);
    }

    /// Keys and values of so many tokens, and a recurrent state.
    fn cache(&mut self, layer: &Layer, tokens: u64) -> Vec<Block> {
        let cells = match layer.cells {
            Cells::None => 0,
            Cells::Full => tokens,
            Cells::Window => tokens.min(self.shape.window),
        };
        let sequences = self.s.batch.max(1);
        let of = |width| product(&[cells, sequences, width, self.s.cache_bytes]);
        let sizes = [of(layer.k), of(layer.v), product(&[layer.state, sequences, SINGLE])];
        sizes.into_iter().filter(|n| *n > 0).map(|n| self.memory.take(n)).collect()
    }

    /// `LlamaRMSNorm`: a copy in 32-bit, its square, the product, and back.
    fn norm(&mut self, width: u64) -> Block {
        let copy = self.map(width, SINGLE);
        let square = self.map(width, SINGLE);
        let mean = self.map(1, SINGLE);
        self.memory.free(square);
        let root = [self.map(1, SINGLE), self.map(1, SINGLE)];
        self.memory.free(root[0]);
        let scaled = self.map(width, SINGLE);
        self.free(&[copy, root[1]]);
        let rounded = self.half(width);
        let out = self.half(width);
        self.free(&[rounded, mean, scaled]);
        out
    }

    /// `apply_rotary_pos_emb` on queries or keys: the product with the cosines, the halves turned
    /// and multiplied by the sines, and the sum.
    fn rotate(&mut self, width: u64) -> Block {
        let cosines = self.half(width);
        let negated = self.half(width / 2);
        let turned = self.half(width);
        self.memory.free(negated);
        let sines = self.half(width);
        self.memory.free(turned);
        let sum = self.half(width);
        self.free(&[cosines, sines]);
        sum
    }

    /// `LlamaDecoderLayer.forward`; gives the residual stream after it.
    fn layer(&mut self, layer: &Layer, old: &[Block], pairs: u64) -> Block {
        let embd = self.shape.embd;
        let normed = self.norm(embd);
        let (attended, scores) = self.attention(layer, old, pairs);
        self.memory.free(normed);
        let residual = self.half(embd);
        self.memory.free(attended);
        let normed = self.norm(embd);
        let forward = self.feed_forward(layer);
        self.memory.free(normed);
        let out = self.half(embd);
        self.free(&[residual, forward]);
        // The layer's frame holds the scores that eager attention returns.
        self.free(&scores);
        out
    }

    /// `LlamaAttention.forward`; gives its result, and the scores where it keeps them.
    fn attention(&mut self, layer: &Layer, old: &[Block], pairs: u64) -> (Block, Vec<Block>) {
        let queries = self.shape.queries();
        // Compressed caches are expanded to all heads; recurrent layers mix maps as wide.
        let wide = self.shape.mla.is_some() || layer.k == 0;
        let (k, v) = if wide { (queries, queries) } else { (layer.k, layer.v) };
        let gate = self.shape.gated.then(|| self.half(queries));
        let mut raw = [self.half(queries), self.half(k)];
        let values = self.half(v);
        if self.shape.qk_norm {
            for (map, width) in raw.iter_mut().zip([queries, k]) {
                let normed = self.norm(width);
                self.memory.free(*map);
                *map = normed;
            }
        }
        let (query, key) = (self.rotate(queries), self.rotate(k));
        self.free(&raw);
        // `DynamicLayer.update` joins what is cached and what is new in new tensors: for a moment
        // the layer's cache is there twice.
        self.cache(layer, self.s.context);
        self.free(old);
        self.free(&[key, values]);
        let scores = if self.s.eager { vec![self.scores(pairs)] } else { Vec::new() };
        let mixed = self.half(product(&[self.shape.heads, self.shape.head_v]));
        if !self.s.eager {
            // Flash attention's sums of exponents.
            let sums = self.map(self.shape.heads, SINGLE);
            self.memory.free(sums);
        }
        let out = self.half(self.shape.embd);
        self.free(&[mixed, query]);
        self.free(gate.as_slice());
        (out, scores)
    }

    /// `eager_attention_forward`: scores, with the mask, softmax in 32-bit, and back in 16-bit.
    fn scores(&mut self, pairs: u64) -> Block {
        let all = product(&[pairs, self.shape.heads]);
        let plain = self.memory.take(product(&[all, HALF]));
        let masked = self.memory.take(product(&[all, HALF]));
        self.memory.free(plain);
        let softmax = self.memory.take(product(&[all, SINGLE]));
        let out = self.memory.take(product(&[all, HALF]));
        self.free(&[softmax, masked]);
        out
    }

    /// `LlamaMLP.forward`, or experts by one grouped product.
    fn feed_forward(&mut self, layer: &Layer) -> Block {
        let embd = self.shape.embd;
        let Some(experts) = self.shape.experts.filter(|_| layer.experts) else {
            return self.gated_product(self.shape.ff_live());
        };
        let rows = |width: u64| width.saturating_mul(experts.used);
        let picked = self.half(rows(embd));
        let both = self.half(rows(experts.ff.saturating_mul(2)));
        let active = self.half(rows(experts.ff));
        let mixed = self.half(rows(experts.ff));
        self.free(&[active, both]);
        let down = self.half(rows(embd));
        self.free(&[mixed, picked]);
        let weighted = self.half(rows(embd));
        self.memory.free(down);
        let out = self.half(embd);
        self.memory.free(weighted);
        if experts.shared_ff > 0 {
            let shared = self.gated_product(experts.shared_ff);
            let sum = self.half(embd);
            self.free(&[out, shared]);
            return sum;
        }
        out
    }

    /// `down_proj(act_fn(gate_proj(x)) * up_proj(x))`.
    fn gated_product(&mut self, width: u64) -> Block {
        let gate = self.half(width);
        let active = self.half(width);
        self.memory.free(gate);
        let up = self.half(width);
        let mixed = self.half(width);
        self.free(&[active, up]);
        let down = self.half(self.shape.embd);
        self.memory.free(mixed);
        down
    }
}

/// Bytes of a layer's tensors. Their sum is known, so the shape only says how it is divided.
fn layer_tensors(shape: &Shape, index: usize, weights: &LayerWeights) -> Vec<u64> {
    let Some(layer) = shape.layers.get(index).or(shape.layers.last()) else { return Vec::new() };
    let (embd, queries) = (shape.embd, shape.queries());
    let ff = if weights.experts.bytes == 0 {
        shape.ff_live()
    } else {
        shape.experts.map_or(0, |e| e.shared_ff)
    };
    let inner = product(&[shape.heads, shape.head_v]);
    let query = if shape.gated { queries.saturating_mul(2) } else { queries };
    let widths = [query, layer.k, layer.v, inner, ff, ff, ff];
    let mut tensors = divided(&weights.dense, &widths.map(|width| embd.saturating_mul(width)));
    tensors.extend(divided(&weights.experts, &[2, 1]));
    tensors
}

/// A part's matrices in these proportions, then its vectors as two norms.
fn divided(part: &Part, shares: &[u64]) -> Vec<u64> {
    let all = shares.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
    if part.matrix == 0 || all == 0 {
        return vec![part.bytes];
    }
    // All of one type, or matrices in another than the norms, which are 16-bit then.
    let vectors = match part.bytes.checked_div(part.elements()) {
        Some(each) if part.bytes.is_multiple_of(part.elements()) => {
            part.vector.saturating_mul(each)
        }
        _ => part.vector.saturating_mul(HALF).min(part.bytes),
    };
    let matrices = u128::from(part.bytes - vectors.min(part.bytes));
    let of = |share: &u64| (matrices * u128::from(*share) / u128::from(all)) as u64;
    let tensors = shares.iter().map(of).chain([vectors / 2, vectors / 2]);
    tensors.collect()
}
