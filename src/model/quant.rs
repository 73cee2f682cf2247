//! Bits that a weight takes in the common quantisations, to say what another one would need.

use serde::Serialize;

use super::weights::{Part, Weights};

/// A quantisation: thousandths of a bit for the layers, the embeddings, the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quant {
    /// Its name.
    pub name: &'static str,
    /// In the matrices of layers.
    pub layers: u64,
    /// In the token embeddings.
    pub embeddings: u64,
    /// In the output projection.
    pub output: u64,
    /// Whether experts are stored in it while the rest stays 16-bit.
    pub experts_only: bool,
}

const fn q(name: &'static str, layers: u64, embeddings: u64, output: u64) -> Quant {
    Quant { name, layers, embeddings, output, experts_only: false }
}

/// The rows of the table for llama.cpp, largest first. Mixtures (`_M`) use better types for some
/// tensors; their figures follow from the whole-file sizes of an 8B model in llama.cpp's
/// quantisation notes.
pub const GGUF_QUANTS: [Quant; 8] = [
    q("F16", 16_000, 16_000, 16_000),
    q("Q8_0", 8500, 8500, 8500),
    q("Q6_K", 6563, 6563, 6563),
    q("Q5_K_M", 5650, 5500, 6563),
    q("Q4_K_M", 4793, 4500, 6563),
    q("IQ4_XS", 4317, 4250, 6563),
    q("Q3_K_M", 3849, 3438, 6563),
    q("Q2_K", 2944, 2625, 6563),
];

/// Weights as they are trained in the old way.
pub const F32: Quant = q("F32", 32_000, 32_000, 32_000);

/// The rows for PyTorch: embeddings and output stay 16-bit.
pub const TORCH_QUANTS: [Quant; 4] = [
    q("bf16", 16_000, 16_000, 16_000),
    q("fp8 / int8", 8000, 16_000, 16_000),
    q("4-bit (AWQ, GPTQ)", 4160, 16_000, 16_000),
    q("4-bit (nf4)", 4127, 16_000, 16_000),
];

/// How far such a size may be from a real file, in thousandths: mixtures differ by maker and by
/// architecture.
pub const QUANT_BAND: u64 = 40;

/// 32-bit vectors take this many bytes.
const VECTOR_BYTES: u64 = 4;

fn bytes(matrix: u64, millibits: u64) -> u64 {
    (u128::from(matrix) * u128::from(millibits) / 8000).try_into().unwrap_or(u64::MAX)
}

fn converted(part: &Part, millibits: u64) -> Part {
    let vectors = part.vector.saturating_mul(VECTOR_BYTES);
    let old = part.matrix.max(1);
    let largest = (u128::from(part.largest) * u128::from(bytes(part.matrix, millibits))
        / u128::from(part.bytes.max(1)))
    .try_into()
    .unwrap_or(u64::MAX);
    let matrix = if part.matrix == 0 { 0 } else { bytes(old, millibits) };
    Part { bytes: matrix.saturating_add(vectors), padding: 0, largest, ..*part }
}

impl Quant {
    /// The same model in this quantisation, as far as that can be foreseen.
    pub fn weights(&self, of: &Weights) -> Weights {
        let mut to = of.clone();
        to.input = converted(&of.input, self.embeddings);
        // Tied embeddings are the output projection too, and kept as good as that.
        let embeddings = if of.tied { self.embeddings.max(self.output) } else { self.embeddings };
        to.token_embeddings = converted(&of.token_embeddings, embeddings);
        if of.tied {
            let rest = of.input.matrix.saturating_sub(of.token_embeddings.matrix);
            let rest = bytes(rest, self.embeddings);
            to.input.bytes = to.token_embeddings.bytes.saturating_add(rest);
        }
        to.output = converted(&of.output, self.output);
        for (new, old) in to.layers.iter_mut().zip(&of.layers) {
            new.dense = converted(&old.dense, self.layers);
            new.experts = converted(&old.experts, self.layers);
        }
        to.by_type = [(self.name.to_owned(), to.file_bytes())].into();
        to
    }
}

/// The row of this name.
pub fn named(name: &str) -> Option<Quant> {
    let all = GGUF_QUANTS.iter().chain(&TORCH_QUANTS);
    all.copied().find(|q| q.name.eq_ignore_ascii_case(name))
}
