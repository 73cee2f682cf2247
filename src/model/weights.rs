//! Where every tensor goes: with the input, in a layer, with the output; and what that weighs.

use std::collections::BTreeMap;

use serde::Serialize;

/// Rows of quantised tensors are padded to this many values on CUDA (`ggml-cuda.cu`).
const ROW_PADDING: u64 = 512;
/// Tensors begin at multiples of this many bytes in a CUDA buffer.
const TENSOR_ALIGNMENT: u64 = 128;
/// Highest layer number that is taken from a name.
const MAX_LAYER: u64 = super::shape::MAX_LAYERS;

/// One tensor, whichever format it comes from.
#[derive(Debug, Clone, Copy)]
pub struct TensorFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type's name.
    pub type_name: &'a str,
    /// Bytes in the file.
    pub bytes: u64,
    /// Values.
    pub elements: u64,
    /// Length of a row.
    pub row: u64,
    /// Values and bytes of a block; (1, …) where it is not quantised.
    pub block: (u64, u64),
    /// Whether it has two dimensions or more.
    pub matrix: bool,
}

/// Which part of the model a tensor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Embeddings: llama.cpp always keeps them on the CPU.
    Input,
    /// The last norm and the projection to the vocabulary.
    Output,
    /// A layer's attention, norms, router, shared experts, dense feed-forward part.
    Layer(u64),
    /// A layer's experts, of which a token uses a few.
    Experts(u64),
    /// Vision and audio encoders and what joins them to the model.
    Projector,
    /// Rope factors, which every device with a layer keeps.
    EveryDevice,
}

/// Bytes and values of some tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Part {
    /// Bytes in the file.
    pub bytes: u64,
    /// What CUDA's padding adds.
    pub padding: u64,
    /// Values in matrices: these are quantised.
    pub matrix: u64,
    /// Values in vectors: these are not.
    pub vector: u64,
    /// Bytes of the largest tensor.
    pub largest: u64,
}

impl Part {
    fn add(&mut self, tensor: &TensorFacts<'_>) {
        self.bytes = self.bytes.saturating_add(tensor.bytes);
        self.padding = self.padding.saturating_add(padding(tensor));
        let values = if tensor.matrix { &mut self.matrix } else { &mut self.vector };
        *values = values.saturating_add(tensor.elements);
        self.largest = self.largest.max(tensor.bytes);
    }

    /// Values.
    pub const fn elements(&self) -> u64 {
        self.matrix.saturating_add(self.vector)
    }

    /// Bytes on a device, with CUDA's padding where it is one.
    pub const fn on_device(&self, cuda: bool) -> u64 {
        if cuda { self.bytes.saturating_add(self.padding) } else { self.bytes }
    }
}

fn padding(tensor: &TensorFacts<'_>) -> u64 {
    let (block, bytes) = tensor.block;
    let short = tensor.row % ROW_PADDING;
    let row = if block > 1 && short != 0 { (ROW_PADDING - short) / block * bytes } else { 0 };
    let padded = tensor.bytes.saturating_add(row);
    padded.checked_next_multiple_of(TENSOR_ALIGNMENT).unwrap_or(padded) - tensor.bytes
}

/// A layer's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LayerWeights {
    /// All but the experts.
    pub dense: Part,
    /// The experts.
    pub experts: Part,
}

/// The tensors of a model, summed up by where they go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Weights {
    /// Embeddings.
    pub input: Part,
    /// The token embeddings alone.
    pub token_embeddings: Part,
    /// Last norm and output projection, without the second copy of tied embeddings.
    pub output: Part,
    /// The layers, first to last, those for predicting several tokens included.
    pub layers: Vec<LayerWeights>,
    /// Vision and audio.
    pub projector: Part,
    /// Rope factors.
    pub every_device: Part,
    /// Whether there is no output projection, so that the embeddings serve as one.
    pub tied: bool,
    /// Tensors whose size could not be told.
    pub unsized_tensors: u64,
    /// Bytes by type.
    pub by_type: BTreeMap<String, u64>,
    /// Number of tensors.
    pub tensors: u64,
}

impl Weights {
    /// Adds a tensor.
    pub fn add(&mut self, tensor: &TensorFacts<'_>) {
        self.tensors += 1;
        let sum = match self.by_type.get_mut(tensor.type_name) {
            Some(sum) => sum,
            None => self.by_type.entry(tensor.type_name.to_owned()).or_insert(0),
        };
        *sum = sum.saturating_add(tensor.bytes);
        match role(tensor.name) {
            Role::Input => {
                self.input.add(tensor);
                if is_token_embedding(tensor.name) {
                    self.token_embeddings.add(tensor);
                }
            }
            Role::Output => self.output.add(tensor),
            Role::Layer(i) => self.layer(i).dense.add(tensor),
            Role::Experts(i) => self.layer(i).experts.add(tensor),
            Role::Projector => self.projector.add(tensor),
            Role::EveryDevice => self.every_device.add(tensor),
        }
    }

    fn layer(&mut self, index: u64) -> &mut LayerWeights {
        let at = index.min(MAX_LAYER) as usize;
        if at >= self.layers.len() {
            self.layers.resize(at + 1, LayerWeights::default());
        }
        &mut self.layers[at]
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        let layers = self.layers.iter().flat_map(|l| [&l.dense, &l.experts]);
        [&self.input, &self.output, &self.projector, &self.every_device].into_iter().chain(layers)
    }

    /// Bytes in the files.
    pub fn file_bytes(&self) -> u64 {
        self.parts().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Parameters.
    pub fn elements(&self) -> u64 {
        self.parts().fold(0, |sum, part| sum.saturating_add(part.elements()))
    }

    /// Bytes of the output layer, with the second copy of tied embeddings.
    pub const fn output_bytes(&self, cuda: bool) -> u64 {
        let tied = if self.tied { self.token_embeddings.on_device(cuda) } else { 0 };
        self.output.on_device(cuda).saturating_add(tied)
    }

    /// Parameters of the layers' matrices: what 4-bit and adapters work on.
    pub fn layer_matrices(&self) -> u64 {
        let of = |l: &LayerWeights| l.dense.matrix.saturating_add(l.experts.matrix);
        self.layers.iter().fold(0, |sum, l| sum.saturating_add(of(l)))
    }

    /// Whether any tensor belongs to an expert.
    pub fn has_experts(&self) -> bool {
        self.layers.iter().any(|l| l.experts.bytes > 0)
    }

    /// The type that holds the most bytes.
    pub fn main_type(&self) -> Option<&str> {
        self.by_type.iter().max_by_key(|entry| *entry.1).map(|entry| entry.0.as_str())
    }
}

fn is_token_embedding(name: &str) -> bool {
    const NAMES: [&str; 5] = [
        "token_embd.weight",
        "embed_tokens.weight",
        "wte.weight",
        "word_embeddings.weight",
        "tok_embeddings.weight",
    ];
    NAMES.iter().any(|tail| name.ends_with(tail)) && !name.contains("per_layer")
}

/// Beginnings of names of encoders and what joins them to the model.
const PROJECTORS: [&str; 26] = [
    "v.",
    "a.",
    "mm.",
    "mm_",
    "resampler.",
    "adapter.",
    "s.",
    "model.image_newline",
    "vision_tower",
    "vision_model",
    "vision_",
    "visual.",
    "model.visual",
    "model.vision",
    "multi_modal_projector",
    "model.multi_modal_projector",
    "audio_tower",
    "model.audio_tower",
    "model.embed_vision",
    "model.embed_audio",
    "mm_projector",
    "model.mm_projector",
    "thinker.visual",
    "thinker.audio_tower",
    "aligner",
    "image_newline",
];

/// Parts of names of embeddings.
const INPUTS: [&str; 9] = [
    "token_embd",
    "position_embd",
    "token_types",
    "per_layer_token_embd",
    "embed_tokens",
    "wte.",
    "wpe.",
    "word_embeddings",
    "tok_embeddings",
];

/// Which part of the model a tensor's name stands for, in GGUF's and in transformers' scheme.
pub fn role(name: &str) -> Role {
    if PROJECTORS.iter().any(|start| name.starts_with(start)) {
        return Role::Projector;
    }
    if let Some((layer, rest)) = numbered(name) {
        let experts =
            is_gguf_expert(rest) || rest.contains(".experts.") && !rest.contains("shared_expert");
        return if experts { Role::Experts(layer) } else { Role::Layer(layer) };
    }
    if name.starts_with("rope_freqs") || name.starts_with("rope_factors") {
        return Role::EveryDevice;
    }
    if INPUTS.iter().any(|part| name.contains(part)) { Role::Input } else { Role::Output }
}

/// The number of the layer in a name, and what follows it.
fn numbered(name: &str) -> Option<(u64, &str)> {
    const MARKS: [&str; 7] = ["blk.", "layers.", "h.", "blocks.", "layer.", "block.", "mtp."];
    for mark in MARKS {
        let mut from = name;
        let mut begins = true;
        while let Some((before, after)) = from.split_once(mark) {
            let word = begins && before.is_empty() || before.ends_with('.');
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (number, rest) = after.split_at(digits);
            if word
                && digits > 0
                && let Ok(layer) = number.parse()
            {
                return (layer < MAX_LAYER).then_some((layer, rest));
            }
            from = after;
            begins = false;
        }
    }
    None
}

fn is_gguf_expert(rest: &str) -> bool {
    ["up", "down", "gate", "gate_up"].iter().any(|kind| {
        let after = rest.strip_prefix(".ffn_").and_then(|rest| rest.strip_prefix(kind));
        after.is_some_and(|after| after.starts_with("_exps") || after.starts_with("_chexps"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_schemes_find_their_place() {
        let cases = [
            ("token_embd.weight", Role::Input),
            ("per_layer_token_embd.weight", Role::Input),
            ("output.weight", Role::Output),
            ("output_norm.weight", Role::Output),
            ("rope_freqs.weight", Role::EveryDevice),
            ("blk.12.attn_q.weight", Role::Layer(12)),
            ("blk.3.ffn_gate_exps.weight", Role::Experts(3)),
            ("blk.3.ffn_gate_up_exps.weight", Role::Experts(3)),
            ("blk.3.ffn_gate_shexp.weight", Role::Layer(3)),
            ("blk.3.ffn_gate_inp.weight", Role::Layer(3)),
            ("v.blk.0.attn_q.weight", Role::Projector),
            ("mm.0.weight", Role::Projector),
            ("model.embed_tokens.weight", Role::Input),
            ("model.layers.7.self_attn.q_proj.weight", Role::Layer(7)),
            ("model.layers.7.mlp.experts.3.up_proj.weight", Role::Experts(7)),
            ("model.layers.7.mlp.shared_experts.up_proj.weight", Role::Layer(7)),
            ("model.language_model.layers.7.mlp.experts.gate_up_proj", Role::Experts(7)),
            ("transformer.h.5.mlp.c_fc.weight", Role::Layer(5)),
            ("lm_head.weight", Role::Output),
            ("model.norm.weight", Role::Output),
            ("vision_tower.encoder.layers.3.fc1.weight", Role::Projector),
        ];
        for (name, expected) in cases {
            assert_eq!(role(name), expected, "{name}");
        }
        assert_eq!(numbered("blk.99999999999999999999.x"), None);
    }

    #[test]
    fn rows_are_padded_on_cuda() {
        let tensor = TensorFacts {
            name: "x",
            type_name: "Q8_0",
            bytes: 2880 / 32 * 34,
            elements: 2880,
            row: 2880,
            block: (32, 34),
            matrix: true,
        };
        // 192 values more are 204 bytes, then up to the next 128.
        assert_eq!(tensor.bytes + padding(&tensor), (3060_u64 + 204).next_multiple_of(128));
    }
}
