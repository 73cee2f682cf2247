//! What can be wrong with the configuration, in words that name the place and what is allowed.

use crate::ui::theme::ThemeError;

/// What is wrong with the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A file that was named cannot be read.
    #[error("cannot read the configuration {path}: {reason}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// No TOML.
    #[error("{path}:{line}: {reason}")]
    Syntax {
        /// Which file.
        path: String,
        /// Where in it.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// No such setting.
    #[error("{place}: there is no setting {key:?}{}; `vramlens config` lists them all", meant(nearest.as_deref()))]
    Unknown {
        /// File and line.
        place: String,
        /// As written.
        key: String,
        /// The one that may be meant.
        nearest: Option<String>,
    },
    /// No such value.
    #[error("{place}: {key} is {value:?}, and must be {allowed}")]
    Value {
        /// File and line, or variable.
        place: String,
        /// The setting.
        key: String,
        /// As written.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A value of another type.
    #[error("{place}: {key} is {found}, and must be {allowed}")]
    Type {
        /// File and line.
        place: String,
        /// The setting.
        key: String,
        /// What stands there.
        found: &'static str,
        /// What is allowed.
        allowed: String,
    },
    /// Keys that cannot be as they are written.
    #[error("{place}: {reason}")]
    Keys {
        /// File and line, or variable.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// `--set` without a setting or a value.
    #[error("--set {0:?} is no setting: write --set view.interval=2s")]
    Set(String),
    /// More than one of these, each in a line of its own.
    #[error("{}", lines(.0))]
    Several(Vec<SettingsError>),
    /// A theme file.
    #[error(transparent)]
    Theme(#[from] ThemeError),
}

/// An error with its causes in one line; a cause that already stands at the end of what it caused is
/// not said twice.
pub fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// So many are told; the rest is counted.
const TOLD: usize = 20;

fn lines(all: &[SettingsError]) -> String {
    let mut lines: Vec<String> = all.iter().take(TOLD).map(ToString::to_string).collect();
    if all.len() > TOLD {
        lines.push(format!("and {} more", all.len() - TOLD));
    }
    lines.join("\n")
}

impl SettingsError {
    /// All of them as one; no error where there are none.
    pub(super) fn all(mut all: Vec<Self>) -> Result<(), Self> {
        if all.len() > 1 {
            return Err(Self::Several(all));
        }
        all.pop().map_or(Ok(()), Err)
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(", did you mean {name}?")).unwrap_or_default()
}
