//! Opens what a person names: a GGUF file or one part of a set, a safetensors file, a folder, a
//! size.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value as Json;

use super::error::ModelError;
use super::gguf::{Gguf, GgufTensor};
use super::parts::{MAX_LISTED, json, missing_parts, part_names};
use super::shape::Shape;
use super::weights::{TensorFacts, Weights};
use super::{diffusion, from_config, from_gguf, ggml, safetensors, template};
use crate::sample::text::clean_path;

/// Most bytes that a model may claim: 64 PiB.
const MAX_BYTES: u64 = 1 << 56;

/// Where a model's figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A GGUF file or set.
    Gguf,
    /// Safetensors with a configuration.
    Safetensors,
    /// A configuration alone: weights are counted from the shape.
    Config,
    /// A size: a template.
    Size,
    /// Parts of a diffusion pipeline.
    Diffusion,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A language model.
    Model,
    /// A vision or audio encoder to go with one.
    Projector,
    /// An adapter to go with one.
    Adapter,
    /// Weights without a description: only their size is known.
    Weights,
    /// A diffusion pipeline.
    Diffusion,
}

/// A model, ready for arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// What to call it. Hostile text.
    pub name: String,
    /// Where the figures come from.
    pub format: Format,
    /// What it is.
    pub kind: Kind,
    /// The file or folder; `None` for a size.
    pub path: Option<PathBuf>,
    /// Its quantisation, as its maker named it. Hostile text.
    pub quant: Option<String>,
    /// Layers, heads, widths.
    pub shape: Shape,
    /// What its tensors weigh.
    pub weights: Weights,
    /// Whether the weights were read from tensor tables, not estimated.
    pub exact_weights: bool,
    /// Files that it consists of.
    pub files: usize,
    /// Header bytes that say more than the arithmetic uses.
    pub notes: Vec<String>,
    /// The pipeline, for diffusion.
    pub pipeline: Option<diffusion::Pipeline>,
}

impl Model {
    /// The weights with a value for every parameter. Packed formats (GPTQ, AWQ, bitsandbytes)
    /// keep several in one; there they are counted from the shape, as 16-bit.
    pub fn unpacked(&self) -> Weights {
        let counted = template::weights_of(&self.shape);
        let packed = self.format == Format::Safetensors
            && self.kind == Kind::Model
            && self.weights.elements() < counted.elements() / 10 * 7;
        if packed { counted } else { self.weights.clone() }
    }

    /// Opens a path or takes a size.
    pub fn open(text: &str) -> Result<Self, ModelError> {
        let path = Path::new(text);
        if path.is_dir() {
            return folder(path);
        }
        let missing = || std::fs::metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound);
        if looks_like_a_path(text) && missing() {
            return Err(ModelError::not_there(text, |part| template::of_size(part).is_some()));
        }
        if path.is_file() || looks_like_a_path(text) {
            return file(path);
        }
        if let Some(pipeline) = diffusion::named(text) {
            return Ok(of_pipeline(pipeline, None));
        }
        of_size(text).ok_or_else(|| ModelError::UnknownFormat {
            what: format!("{:?} is neither a file nor a size", super::error::excerpt(text)),
        })
    }
}

fn looks_like_a_path(text: &str) -> bool {
    let extension = Path::new(text).extension();
    text.contains('/') || extension.is_some_and(|e| e == "gguf" || e == "safetensors")
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ModelError {
    move |source| ModelError::Io { path: path.to_owned(), source }
}

fn of_size(text: &str) -> Option<Model> {
    let (nearest, shape, weights) = template::of_size(text)?;
    Some(Model {
        name: text.trim().to_ascii_uppercase(),
        format: Format::Size,
        kind: Kind::Model,
        path: None,
        quant: None,
        shape,
        weights,
        exact_weights: false,
        files: 0,
        notes: vec![format!(
            "a typical {} is assumed: give a file for exact figures",
            nearest.name
        )],
        pipeline: None,
    })
}

fn of_pipeline(pipeline: diffusion::Pipeline, path: Option<&Path>) -> Model {
    Model {
        name: pipeline.name.clone(),
        format: Format::Diffusion,
        kind: Kind::Diffusion,
        path: path.map(Path::to_owned),
        quant: None,
        shape: Shape::default(),
        weights: Weights::default(),
        exact_weights: path.is_some(),
        files: 0,
        notes: Vec::new(),
        pipeline: Some(pipeline),
    }
}

fn file(path: &Path) -> Result<Model, ModelError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "safetensors" => safetensors_file(path),
        "json" => folder(path.parent().unwrap_or_else(|| Path::new("."))),
        // Ollama's blobs have no extension: the magic number decides.
        _ => gguf_set(path),
    }
}

/// Reads a GGUF file and, where it is one of a set, all the others.
fn gguf_set(path: &Path) -> Result<Model, ModelError> {
    let (parts, named) = match part_names(path) {
        Some(parts) => (parts, true),
        None => (vec![path.to_owned()], false),
    };
    let missing: Vec<&PathBuf> = parts.iter().filter(|p| !p.is_file()).collect();
    if named && !missing.is_empty() {
        return Err(missing_parts(parts.len(), &missing));
    }
    let mut headers = parts.iter().map(|part| {
        let file = File::open(part).map_err(io(part))?;
        Gguf::read(file)
    });
    let Some(first) = headers.next().transpose()? else {
        return Err(ModelError::malformed("a set without parts"));
    };
    let count = first.int("split.count").unwrap_or(1);
    if !named && count > 1 {
        let what = format!("it is one of {count} parts, and its name does not tell the others");
        return Err(ModelError::malformed(what));
    }
    let mut weights = Weights::default();
    let mut notes = Vec::new();
    add_tensors(&mut weights, &first.tensors);
    for header in headers {
        add_tensors(&mut weights, &header?.tensors);
    }
    sane(&weights)?;
    let expected = first.int("split.tensors.count").filter(|_| named);
    if expected.is_some_and(|n| n != weights.tensors) {
        notes.push(format!("{} tensors of {}", weights.tensors, expected.unwrap_or(0)));
    }
    if weights.unsized_tensors > 0 {
        notes.push(format!("{} tensors of an unknown size", weights.unsized_tensors));
    }
    finish_gguf(path, &first, weights, notes, parts.len())
}

fn sane(weights: &Weights) -> Result<(), ModelError> {
    let (what, value) = ("the size of all tensors", weights.file_bytes());
    if value > MAX_BYTES {
        return Err(ModelError::TooLarge { what, value, limit: MAX_BYTES, at: 0 });
    }
    Ok(())
}

fn finish_gguf(
    path: &Path,
    first: &Gguf,
    mut weights: Weights,
    notes: Vec<String>,
    files: usize,
) -> Result<Model, ModelError> {
    let arch = first.text("general.architecture").unwrap_or_default();
    let kind = match first.text("general.type") {
        Some("mmproj") => Kind::Projector,
        Some("adapter") => Kind::Adapter,
        _ if arch == "clip" => Kind::Projector,
        _ => Kind::Model,
    };
    let shape = if kind == Kind::Model { from_gguf::shape(first)? } else { Shape::default() };
    weights.tied = shape.tied && weights.output.matrix == 0;
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("model").to_owned();
    let quant = first.int("general.file_type").and_then(ggml::file_type_name);
    Ok(Model {
        name: first.text("general.name").map_or(stem, ToOwned::to_owned),
        format: Format::Gguf,
        kind,
        path: Some(path.to_owned()),
        quant: quant.or_else(|| weights.main_type()).map(ToOwned::to_owned),
        shape: Shape { tied: weights.tied, ..shape },
        exact_weights: weights.unsized_tensors == 0,
        weights,
        files,
        notes,
        pipeline: None,
    })
}

fn add_tensors(weights: &mut Weights, tensors: &[GgufTensor]) {
    for tensor in tensors {
        let unknown = format!("type {}", tensor.type_id);
        let known = tensor.known;
        weights.unsized_tensors += u64::from(tensor.bytes.is_none());
        weights.add(&TensorFacts {
            name: &tensor.name,
            type_name: known.map_or(unknown.as_str(), |t| t.name),
            bytes: tensor.bytes.unwrap_or(0),
            elements: tensor.elements(),
            row: tensor.shape.first().copied().unwrap_or(1),
            block: known.map_or((1, 1), |t| (t.block, t.bytes)),
            matrix: tensor.shape.iter().filter(|n| **n > 1).count() > 1,
        });
    }
}

fn safetensors_file(path: &Path) -> Result<Model, ModelError> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let config = json(&parent.join("config.json"))?;
    from_parts(path, config.as_ref(), &[path.to_owned()])
}

fn folder(path: &Path) -> Result<Model, ModelError> {
    if let Some(index) = json(&path.join("model_index.json"))? {
        return Ok(of_pipeline(diffusion::from_folder(path, &index)?, Some(path)));
    }
    let config = json(&path.join("config.json"))?;
    let names = listing(path)?;
    let ends = |end: &str| names.iter().filter(|n| n.ends_with(end)).cloned().collect::<Vec<_>>();
    let ggufs: Vec<String> = ends(".gguf");
    if config.is_none() && !ggufs.is_empty() {
        return gguf_in(path, &ggufs);
    }
    let index = json(&path.join("model.safetensors.index.json"))?;
    let shards = match index.as_ref().and_then(|i| i.get("weight_map")).and_then(Json::as_object) {
        Some(map) => {
            let set: BTreeSet<&str> = map.values().filter_map(Json::as_str).collect();
            let plain = |n: &&str| !n.contains('/') && !n.contains('\\');
            set.into_iter().filter(plain).map(|n| path.join(n)).collect()
        }
        None => lone_shards(path, &ends(".safetensors")),
    };
    let missing: Vec<&PathBuf> = shards.iter().filter(|p| !p.is_file()).collect();
    if !missing.is_empty() && missing.len() < shards.len() {
        return Err(missing_parts(shards.len(), &missing));
    }
    let shards = if missing.is_empty() { shards } else { Vec::new() };
    from_parts(path, config.as_ref(), &shards)
}

fn listing(path: &Path) -> Result<Vec<String>, ModelError> {
    let entries = std::fs::read_dir(path).map_err(io(path))?;
    let mut names: Vec<String> =
        entries.flatten().take(10_000).filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Shards without an index; doubles of the same weights are left out.
fn lone_shards(path: &Path, names: &[String]) -> Vec<PathBuf> {
    let model: Vec<&String> = names.iter().filter(|n| n.starts_with("model")).collect();
    let of_model = !model.is_empty();
    let wanted = |n: &&String| {
        (!of_model || n.starts_with("model"))
            && !n.starts_with("consolidated")
            && !n.ends_with(".fp16.safetensors")
    };
    names.iter().filter(wanted).map(|n| path.join(n)).collect()
}

fn gguf_in(path: &Path, names: &[String]) -> Result<Model, ModelError> {
    let first = |n: &&String| {
        let later = part_names(&path.join(n)).is_some_and(|p| p.first() != Some(&path.join(n)));
        !later && !n.contains("mmproj")
    };
    let models: Vec<&String> = names.iter().filter(first).collect();
    match models.as_slice() {
        [one] => gguf_set(&path.join(one)),
        [] => gguf_set(&path.join(names.first().map_or("", String::as_str))),
        many => {
            let list: Vec<&str> = many.iter().take(MAX_LISTED).map(|n| n.as_str()).collect();
            let what = format!("there are {} models here: {}", many.len(), list.join(", "));
            Err(ModelError::UnknownFormat { what })
        }
    }
}

fn from_parts(path: &Path, config: Option<&Json>, shards: &[PathBuf]) -> Result<Model, ModelError> {
    let mut weights = Weights::default();
    for shard in shards {
        let file = File::open(shard).map_err(io(shard))?;
        for tensor in safetensors::read(file)? {
            weights.add(&TensorFacts {
                name: &tensor.name,
                type_name: &tensor.dtype,
                bytes: tensor.bytes,
                elements: tensor.shape.iter().fold(1, |p: u64, n| p.saturating_mul(*n)),
                row: tensor.shape.last().copied().unwrap_or(1),
                block: (1, 1),
                matrix: tensor.shape.iter().filter(|n| **n > 1).count() > 1,
            });
        }
    }
    sane(&weights)?;
    let adapter =
        shards.iter().any(|s| s.file_name().is_some_and(|n| n == "adapter_model.safetensors"));
    let shape = match config {
        Some(config) => from_config::shape(config)?,
        None if !shards.is_empty() => Shape::default(),
        None => {
            let what = format!("{} holds no model", clean_path(path));
            return Err(ModelError::UnknownFormat { what });
        }
    };
    let quant = config.and_then(from_config::quantisation);
    let exact = !shards.is_empty();
    let mut notes = Vec::new();
    if exact {
        weights.tied = weights.output.matrix == 0;
    } else {
        weights = template::weights_of(&shape);
        let wide = config.is_some_and(from_config::is_32_bit);
        if wide {
            weights = super::quant::F32.weights(&weights);
        }
        let bits = if wide { 32 } else { 16 };
        notes.push(format!("no weights here: they are counted from config.json, as {bits}-bit"));
    }
    let stem = path.canonicalize().unwrap_or_else(|_unresolved| path.to_owned());
    Ok(Model {
        name: stem.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
        format: if exact { Format::Safetensors } else { Format::Config },
        kind: match config {
            _ if adapter => Kind::Adapter,
            Some(_) => Kind::Model,
            None => Kind::Weights,
        },
        path: Some(path.to_owned()),
        quant: quant.or_else(|| weights.main_type().map(ToOwned::to_owned)),
        shape: Shape { tied: weights.tied, ..shape },
        weights,
        exact_weights: exact,
        files: shards.len(),
        notes,
        pipeline: None,
    })
}
