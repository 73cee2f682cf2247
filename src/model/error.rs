//! Why a model cannot be sized.

use crate::sample::text::{clean, clean_path};
use std::path::{Path, PathBuf};

/// Why a model cannot be sized: what, where, and what to try.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file or folder cannot be opened or read.
    #[error("{path}: {source}", path = clean_path(path))]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What looks like a path is none.
    #[error(
        "there is no file or folder {path}: give a .gguf file, a .safetensors file or a folder with \
         config.json{hint}"
    )]
    NotThere {
        /// As typed, printable.
        path: String,
        /// What else to try.
        hint: String,
    },
    /// A read or a seek failed while a header was read.
    #[error("the header cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The header ends where more was announced.
    #[error("the file ends inside its header, at byte {at}, where {what} should be")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where, in bytes from the start.
        at: u64,
    },
    /// A count or a length cannot be true.
    #[error(
        "{what} is said to be {value} at byte {at}, and at most {limit} can be there: \
         the file is damaged or hostile"
    )]
    TooLarge {
        /// Which count or length.
        what: &'static str,
        /// As the file has it.
        value: u64,
        /// What the file can hold, or this program takes.
        limit: u64,
        /// Where, in bytes from the start.
        at: u64,
    },
    /// The content breaks the format's rules.
    #[error("{what}: the file is damaged or of another format")]
    Malformed {
        /// Which rule.
        what: String,
    },
    /// Not a format that is known.
    #[error(
        "{what}: give a .gguf file, a .safetensors file, a folder with config.json, or a size such as 8B"
    )]
    UnknownFormat {
        /// What was found instead.
        what: String,
    },
    /// A GGUF version that does not exist yet.
    #[error("GGUF version {0} is not known here (1, 2 and 3 are)")]
    Version(u32),
    /// Metadata without which nothing can be computed.
    #[error("the key {0} is missing: without it the memory cannot be computed")]
    MissingKey(String),
    /// Parts of a split model are not there.
    #[error("{present} of {total} parts are there; missing: {}", names.join(", "))]
    MissingParts {
        /// Parts found.
        present: usize,
        /// Parts that the model has.
        total: usize,
        /// File names that were looked for, at most eight.
        names: Vec<String>,
    },
}

impl ModelError {
    /// What looks like a path and is none; `is_size` knows sizes such as `8B`.
    pub(crate) fn not_there(text: &str, is_size: impl Fn(&str) -> bool) -> Self {
        Self::NotThere { path: excerpt(text), hint: hub_hint(text, is_size) }
    }

    /// A broken rule of the format.
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into() }
    }
}

/// What to try instead of a name on a hub: nothing is fetched from there.
fn hub_hint(text: &str, is_size: impl Fn(&str) -> bool) -> String {
    let (Some((owner, name)), false) = (text.split_once('/'), text.starts_with(['/', '.', '~']))
    else {
        return String::new();
    };
    let kind = Path::new(name).extension();
    let is_file = kind.is_some_and(|kind| kind == "gguf" || kind == "safetensors");
    if owner.is_empty() || name.contains('/') || is_file {
        return String::new();
    }
    let size = name.split('-').find(|part| {
        part.ends_with(['B', 'b'])
            && part.starts_with(|c: char| c.is_ascii_digit())
            && is_size(part)
    });
    let size = size.map_or_else(String::new, |size| {
        format!(", or for a typical model of that size: vramlens fit {}", size.to_ascii_uppercase())
    });
    format!(". A name on a hub is not looked up: give the folder that it was downloaded to{size}")
}

/// Text of a file as it may stand in a message: printable, at most 64 characters.
pub(crate) fn excerpt(text: &str) -> String {
    // What is not shown is not looked at: a file's strings have any length.
    let shown: String = text.chars().take(64).collect();
    let mut out = clean(&shown).into_owned();
    if text.chars().nth(64).is_some() {
        out.push('…');
    }
    out
}
