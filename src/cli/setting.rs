//! One setting: its row of the table, how it is written, and where its value comes from.

use std::fmt;
use std::path::PathBuf;

use crate::cli::settings::Settings;
use crate::sample::text::clean_path;

/// What is allowed for a switch.
pub(super) const BOOL: &str = "true or false";

/// One row of the table.
pub struct Setting {
    /// `section.name`, as in the file.
    pub key: &'static str,
    /// The environment variable that sets it.
    pub env: &'static str,
    /// The default, as TOML.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Takes a value, or says what is allowed.
    pub apply: fn(&mut Settings, &str) -> Result<(), &'static str>,
}

/// What a value is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In quotes; a number may stand without.
    Text,
    /// `true` or `false`.
    Bool,
    /// `["a", "b"]`.
    List,
}

impl Kind {
    /// What is allowed, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Bool => BOOL,
            Self::List => "a list: [\"a\", \"b\"]",
        }
    }
}

impl Setting {
    /// What its value is written as; the default tells.
    pub fn kind(&self) -> Kind {
        match self.default.as_bytes().first() {
            Some(b'[') => Kind::List,
            Some(b't' | b'f') => Kind::Bool,
            _ => Kind::Text,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// This line of this file.
    File(PathBuf, usize),
    /// This variable.
    Environment(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", clean_path(path)),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag => f.write_str("command line"),
        }
    }
}
