//! A model's header as plain data: what rules need to do arithmetic without reading a file.

use std::path::Path;

use serde::Serialize;

use super::error::ModelError;
use super::kv::{self, CacheSettings};
use super::load::{Format, Kind, Model};
use super::plan::Settings;
use super::savings::Running;
use super::shape::Shape;
use super::weights::Weights;

/// What a model's header says. A few kilobytes, whatever the model's size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFacts {
    /// What to call it. Hostile text.
    pub name: String,
    /// Where the figures come from.
    pub format: Format,
    /// What it is.
    pub kind: Kind,
    /// Its quantisation, as its maker named it. Hostile text.
    pub quant: Option<String>,
    /// Whether weights were read from tensor tables, not counted.
    pub exact: bool,
    /// Layers, heads, widths.
    pub shape: Shape,
    /// What its tensors weigh, by place and by type.
    pub weights: Weights,
}

impl From<Model> for ModelFacts {
    fn from(model: Model) -> Self {
        Self {
            name: model.name,
            format: model.format,
            kind: model.kind,
            quant: model.quant,
            exact: model.exact_weights,
            shape: model.shape,
            weights: model.weights,
        }
    }
}

impl ModelFacts {
    /// Bytes of the weights as stored.
    pub fn weight_bytes(&self) -> u64 {
        self.weights.file_bytes()
    }

    /// Parameters.
    pub fn parameters(&self) -> u64 {
        self.weights.elements()
    }

    /// Bytes stored in 16 and in 32 bits a value.
    pub fn wide_bytes(&self) -> (u64, u64) {
        let of = |names: &[&str]| {
            let wanted = |name: &str| names.iter().any(|n| n.eq_ignore_ascii_case(name));
            let types = self.weights.by_type.iter().filter(|(name, _)| wanted(name));
            types.fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
        };
        (of(&["F16", "BF16", "FP16"]), of(&["F32", "FP32"]))
    }

    /// Bytes that one more token of context costs with these settings.
    pub fn bytes_per_token(&self, settings: &CacheSettings) -> u64 {
        kv::slope(&self.shape, settings)
    }

    /// The model as it runs with these settings, for what a change would free.
    pub const fn running<'a>(&'a self, settings: &'a Settings) -> Running<'a> {
        Running { shape: &self.shape, weights: &self.weights, settings }
    }
}

/// Reads the header of a model file, of a set, or of a folder. It may block: never on a loop's
/// thread.
///
/// # Errors
/// Where the file cannot be read, or is no model.
pub fn facts(path: &Path) -> Result<ModelFacts, ModelError> {
    let text = path.to_str().ok_or_else(|| ModelError::UnknownFormat {
        what: "the path is no valid text".to_owned(),
    })?;
    // A path only: a size such as `8B` is nobody's file.
    std::fs::metadata(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
    Model::open(text).map(ModelFacts::from)
}

#[cfg(test)]
mod tests {
    use super::super::template;
    use super::*;

    #[test]
    fn a_header_becomes_data() {
        let (_, shape, weights) = template::of_size("8B").unwrap();
        let facts = ModelFacts {
            name: "8B".to_owned(),
            format: Format::Size,
            kind: Kind::Model,
            quant: None,
            exact: false,
            shape,
            weights,
        };
        assert_eq!(facts.bytes_per_token(&CacheSettings::new(8192)), 131_072);
        assert!(facts.weight_bytes() > 14 << 30 && facts.parameters() > 8_000_000_000);
        let settings = Settings::new(32_768);
        assert!(facts.running(&settings).half_context().bytes > 1 << 30);
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error() {
        assert!(matches!(facts(Path::new("8B")), Err(ModelError::Io { .. })));
    }
}
