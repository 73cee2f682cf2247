//! Text, JSON and metrics made from a view. Pure: no clock, no files, no environment; what they need
//! of those comes in as a [`Style`].

mod clean;
pub mod doctor;
pub mod json;
mod ledger;
mod opened;
pub mod picture;
pub mod postmortem;
pub mod prometheus;
pub mod run_json;
mod table;
pub mod text;
pub mod triage;

use jiff::tz::TimeZone;

pub use crate::record::RedactCommand;
pub use opened::names as device_names;

/// How a report is written.
#[derive(Debug, Clone)]
pub struct Style {
    /// Columns of a line; tables fill them and never go beyond.
    pub width: usize,
    /// Whether commands are written whole, beyond these columns: for whoever searches the text.
    pub whole: bool,
    /// No character outside ASCII.
    pub ascii: bool,
    /// For the moment in the first line.
    pub time_zone: TimeZone,
    /// Takes secrets out of the arguments of a command.
    pub redact: RedactCommand,
}

impl Style {
    /// 80 columns, UTC.
    pub const fn new(redact: RedactCommand) -> Self {
        Self { width: 80, whole: false, ascii: false, time_zone: TimeZone::UTC, redact }
    }
}
