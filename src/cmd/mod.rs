//! One file per command.

mod damage;
pub mod doctor;
pub mod explain;
pub mod fit;
pub mod fixes;
pub mod hosts;
pub mod kill;
pub mod kill_host;
mod kill_whom;
pub mod look;
pub mod past;
pub mod record;
pub mod replay;
pub mod run;
pub mod serve;
pub mod top;

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::runtime::gather::Stall;
use crate::runtime::options::{Options, absent};
use crate::sample::text::{clean, clean_json};
use crate::source::SourceError;

/// How a command ends; documented in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine,
    /// There are findings, or something does not fit.
    Findings,
    /// Wrong usage or bad input.
    Usage,
    /// No driver, or no GPU.
    NoDriver,
    /// The driver does not answer.
    Stalled,
    /// Interrupted.
    Interrupted,
    /// As the command that was run.
    Command(u8),
}

impl Exit {
    /// From a command's own number.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Fine,
            1 => Self::Findings,
            _ => Self::Usage,
        }
    }

    /// As the number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Findings => 1,
            Self::Usage => 2,
            Self::NoDriver => 3,
            Self::Stalled => 4,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// JSON as every command prints it: in lines, the last one ended, and fit for a terminal.
///
/// # Errors
/// Where the value is none of JSON.
pub fn json_text(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(clean_json(&serde_json::to_string_pretty(value)?) + "\n")
}

/// ` (CALL does not return on GPU 1)`; nothing where it is not known what hangs.
pub fn hanging(stall: &Stall) -> String {
    stall.call.as_ref().map_or_else(String::new, |call| {
        let gpu = call.gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
        format!(" ({} does not return{gpu})", call.call)
    })
}

/// Says on standard error that the driver does not answer. As JSON on standard output for scripts that
/// read it.
///
/// # Errors
/// Where the output fails.
pub fn no_answer(why: &str, json: bool) -> anyhow::Result<Exit> {
    if json {
        top::print(&json_text(&serde_json::json!({ "error": clean(why) }))?)?;
    }
    let _ = writeln!(std::io::stderr(), "vramlens: {}", clean(why));
    Ok(Exit::Stalled)
}

/// Says on standard error why there is no GPU, and what to do. As JSON on standard output for
/// scripts that read it.
///
/// # Errors
/// Where the output fails.
pub fn no_driver(error: &SourceError, options: &Options, json: bool) -> anyhow::Result<Exit> {
    let absence = absent(error, options.library_name());
    if json {
        let answer = serde_json::json!({ "error": clean(&error.to_string()), "found": absence });
        top::print(&json_text(&answer)?)?;
    }
    let hint = "To look at a recording of a real GPU: vramlens --demo";
    let _ = write!(std::io::stderr(), "{}\n{hint}\n", absence.text());
    Ok(Exit::NoDriver)
}
