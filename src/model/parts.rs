//! Models in several files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::error::ModelError;

/// Longest `config.json` or index that is read, in bytes.
const MAX_JSON: u64 = 64 << 20;
/// Most parts of a set.
const MAX_PARTS: u64 = 4096;
/// Names of files in a message.
pub(super) const MAX_LISTED: usize = 8;

/// All names of a set that this file's name says it belongs to: `NAME-00001-of-00003.gguf`.
pub(super) fn part_names(path: &Path) -> Option<Vec<PathBuf>> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, total) = stem.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let five = |s: &str| s.len() == 5 && s.bytes().all(|b| b.is_ascii_digit());
    if !five(total) || !five(number) {
        return None;
    }
    let total: u64 = total.parse().ok().filter(|n| (1..=MAX_PARTS).contains(n))?;
    let part = |n| path.with_file_name(format!("{name}-{n:05}-of-{total:05}.gguf"));
    Some((1..=total).map(part).collect())
}

/// Names what is not there.
pub(super) fn missing_parts(total: usize, missing: &[&PathBuf]) -> ModelError {
    let name = |p: &&PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned());
    let mut names: Vec<String> = missing.iter().filter_map(name).take(MAX_LISTED).collect();
    if missing.len() > MAX_LISTED {
        names.push(format!("and {} more", missing.len() - MAX_LISTED));
    }
    ModelError::MissingParts { present: total - missing.len(), total, names }
}

/// A file of JSON; `None` where it is not there.
pub(super) fn json(path: &Path) -> Result<Option<Json>, ModelError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ModelError::Io { path: path.to_owned(), source }),
    };
    let mut text = Vec::new();
    file.take(MAX_JSON)
        .read_to_end(&mut text)
        .map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bad = |e| ModelError::malformed(format!("{name} is no JSON ({e})"));
    serde_json::from_slice(&text).map(Some).map_err(bad)
}
