//! Models of which only the size is known, or only the shape.

use super::shape::{Cells, Experts, Layer, Mla, Shape};
use super::weights::{LayerWeights, Part, Weights};

/// A typical model of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// As people write it.
    pub name: &'static str,
    /// Millions of parameters.
    pub millions: u64,
    layers: u64,
    embd: u64,
    heads: u64,
    kv_heads: u64,
    head: u64,
    ff: u64,
    vocab: u64,
    context: u64,
    tied: bool,
    /// Width of the window, and every how many layers one is full.
    window: Option<(u64, u64)>,
    /// Experts, used, width.
    experts: Option<(u64, u64, u64)>,
}

macro_rules! template {
    ($name:literal $millions:literal: $layers:literal $embd:literal $heads:literal $kv:literal
     $head:literal $ff:literal $vocab:literal $context:literal $tied:literal
     $(window $window:expr;)? $(experts $experts:expr;)?) => {{
        #[allow(unused_mut, unused_assignments)]
        {
            let mut window = None;
            let mut experts = None;
            $(window = Some($window);)?
            $(experts = Some($experts);)?
            Template {
                name: $name, millions: $millions, layers: $layers, embd: $embd, heads: $heads,
                kv_heads: $kv, head: $head, ff: $ff, vocab: $vocab, context: $context,
                tied: $tied, window, experts,
            }
        }
    }};
}

/// The sizes that people name, each after a well-known model of that size.
pub const TEMPLATES: [Template; 14] = [
    template!("1B" 1236: 16 2048 32 8 64 8192 128_256 131_072 true),
    template!("3B" 3213: 28 3072 24 8 128 8192 128_256 131_072 true),
    template!("4B" 4022: 36 2560 32 8 128 9728 151_936 40_960 true),
    template!("8B" 8030: 32 4096 32 8 128 14_336 128_256 131_072 false),
    template!("14B" 14_768: 40 5120 40 8 128 17_408 151_936 40_960 false),
    template!("24B" 23_572: 40 5120 32 8 128 32_768 131_072 131_072 false),
    template!("27B" 27_009: 62 5376 32 16 128 21_504 262_208 131_072 true window (1024, 6);),
    template!("30B-A3B" 30_532: 48 2048 32 4 128 6144 151_936 262_144 false experts (128, 8, 768);),
    template!("32B" 32_762: 64 5120 64 8 128 25_600 151_936 131_072 false),
    template!("70B" 70_554: 80 8192 64 8 128 28_672 128_256 131_072 false),
    template!("120B-A5B" 116_829: 36 2880 64 8 64 11_520 201_088 131_072 false
        window (128, 2); experts (128, 4, 2880);),
    template!("123B" 122_610: 88 12_288 96 8 128 28_672 32_768 131_072 false),
    template!("235B-A22B" 235_094: 94 4096 64 4 128 12_288 151_936 262_144 false
        experts (128, 8, 1536);),
    template!("405B" 405_853: 126 16_384 128 8 128 53_248 128_256 131_072 false),
];

/// Largest size that is taken, in millions of parameters.
const MAX_MILLIONS: f64 = 100_000_000.0;

/// The shape and 16-bit weights of a size such as `8B`, `1.5b`, `30B-A3B`, `500M`.
pub fn of_size(text: &str) -> Option<(Template, Shape, Weights)> {
    let millions = parse_size(text)?;
    let experts = text.to_ascii_uppercase().contains("-A");
    let same_kind = TEMPLATES.iter().filter(|t| t.experts.is_some() == experts);
    let nearest = same_kind.min_by_key(|t| distance(t.millions, millions))?;
    let shape = nearest.shape();
    let mut weights = weights_of(&shape);
    // Close to the model that the template is made after, its own count is the better one.
    let close = distance(nearest.millions, millions) < 1100;
    if !close {
        rescale(&mut weights, millions.saturating_mul(1_000_000));
    }
    Some((*nearest, shape, weights))
}

/// How many times larger, in thousandths.
fn distance(a: u64, b: u64) -> u64 {
    let (small, large) = (a.min(b).max(1), a.max(b));
    large.saturating_mul(1000) / small
}

/// Millions of parameters in a text such as `8B` or `500m`.
fn parse_size(text: &str) -> Option<u64> {
    let upper = text.trim().to_ascii_uppercase();
    let whole = upper.split("-A").next()?;
    let (number, factor) = match whole.strip_suffix('B') {
        Some(number) => (number, 1000.0),
        None => (whole.strip_suffix('M')?, 1.0),
    };
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value: f64 = if plain { number.parse().ok()? } else { return None };
    let millions = value * factor;
    (1.0..=MAX_MILLIONS).contains(&millions).then_some(millions.round() as u64)
}

/// Spreads another number of parameters over the layers.
fn rescale(weights: &mut Weights, parameters: u64) {
    let fixed = weights.input.elements().saturating_add(weights.output.elements());
    let layers = weights.elements().saturating_sub(fixed).max(1);
    let wanted = parameters.saturating_sub(fixed).max(parameters / 2);
    let scale = |n: u64| -> u64 {
        (u128::from(n) * u128::from(wanted) / u128::from(layers)).try_into().unwrap_or(u64::MAX)
    };
    for layer in &mut weights.layers {
        for part in [&mut layer.dense, &mut layer.experts] {
            part.matrix = scale(part.matrix);
            part.bytes = scale(part.bytes);
            part.largest = scale(part.largest);
        }
    }
}

impl Template {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        let is_window = |i: u64| self.window.is_some_and(|(_, every)| i % every < every - 1);
        let kv = self.kv_heads * self.head;
        let layers = (0..self.layers).map(|i| Layer {
            cells: if is_window(i) { Cells::Window } else { Cells::Full },
            kv_heads: self.kv_heads,
            k: kv,
            v: kv,
            experts: self.experts.is_some(),
            ..Layer::default()
        });
        let experts = |(count, used, ff)| Experts { count, used, ff, shared_ff: 0 };
        Shape {
            arch: self.name.to_owned(),
            known: true,
            embd: self.embd,
            ff: if self.experts.is_some() { 0 } else { self.ff },
            heads: self.heads,
            head_k: self.head,
            head_v: self.head,
            vocab: self.vocab,
            context_max: self.context,
            window: self.window.map_or(0, |w| w.0),
            experts: self.experts.map(experts),
            tied: self.tied,
            qk_norm: false,
            causal: true,
            layers: layers.collect(),
            ..Shape::default()
        }
    }
}

fn part(matrix: u64, vector: u64, largest: u64) -> Part {
    let bytes = matrix.saturating_add(vector).saturating_mul(2);
    Part { bytes, padding: 0, matrix, vector, largest: largest.saturating_mul(2) }
}

/// 16-bit weights that a model of this shape has.
pub fn weights_of(shape: &Shape) -> Weights {
    let table = shape.vocab.saturating_mul(shape.embd);
    let mut weights = Weights {
        input: part(table, 0, table),
        token_embeddings: part(table, 0, table),
        tied: shape.tied,
        ..Weights::default()
    };
    weights.output =
        if shape.tied { part(0, shape.embd, 0) } else { part(table, shape.embd, table) };
    weights.layers = shape.layers.iter().map(|layer| layer_of(shape, layer)).collect();
    weights.by_type = [("BF16".to_owned(), weights.file_bytes())].into();
    weights
}

fn layer_of(shape: &Shape, layer: &Layer) -> LayerWeights {
    let e = shape.embd;
    let attention = if let Some(mla) = shape.mla {
        mla_weights(shape, &mla)
    } else {
        // A recurrent layer's projections are about as large as attention's.
        let queries = shape.queries().saturating_mul(if shape.gated { 2 } else { 1 });
        let out = shape.heads.saturating_mul(shape.head_v);
        let widths = queries.saturating_add(layer.k).saturating_add(layer.v);
        e.saturating_mul(widths.saturating_add(out))
    };
    let mut dense = attention;
    let mut experts = Part::default();
    let mut largest = e.saturating_mul(shape.queries());
    match shape.experts {
        Some(x) if layer.experts => {
            let one = e.saturating_mul(x.ff);
            let all = one.saturating_mul(3).saturating_mul(x.count);
            experts = part(all, 0, one.saturating_mul(x.count));
            let router = e.saturating_mul(x.count);
            let shared = e.saturating_mul(x.shared_ff).saturating_mul(3);
            dense = dense.saturating_add(shared).saturating_add(router);
        }
        _ => {
            let one = e.saturating_mul(shape.ff);
            largest = largest.max(one);
            dense = dense.saturating_add(one.saturating_mul(3));
        }
    }
    LayerWeights { dense: part(dense, e.saturating_mul(2), largest), experts }
}

fn mla_weights(shape: &Shape, mla: &Mla) -> u64 {
    let head = mla.nope.saturating_add(mla.rope);
    let queries = shape.heads.saturating_mul(head);
    let q = if mla.q_rank > 0 {
        shape.embd.saturating_add(queries).saturating_mul(mla.q_rank)
    } else {
        shape.embd.saturating_mul(queries)
    };
    let kv = shape.embd.saturating_mul(mla.kv_rank.saturating_add(mla.rope));
    let out_width = mla.nope.saturating_add(mla.head_v).saturating_mul(shape.heads);
    let expand = mla.kv_rank.saturating_mul(out_width);
    let out = shape.heads.saturating_mul(mla.head_v).saturating_mul(shape.embd);
    q.saturating_add(kv).saturating_add(expand).saturating_add(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_their_parameters() {
        for template in TEMPLATES {
            let counted = weights_of(&template.shape()).elements() / 1_000_000;
            let off = distance(counted, template.millions);
            assert!(off < 1015, "{}: {counted} for {}", template.name, template.millions);
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("7b"), Some(7000));
        assert_eq!(parse_size("1.5B"), Some(1500));
        assert_eq!(parse_size("30B-A3B"), Some(30_000));
        assert_eq!(parse_size("270M"), Some(270));
        for bad in ["", "B", "-3B", "1e9B", "model.gguf", "99999999999B", "infB", "nanB"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
        let (template, _, weights) = of_size("13B").unwrap();
        assert_eq!(template.name, "14B");
        assert!(distance(weights.elements() / 1_000_000, 13_000) < 1140);
    }
}
