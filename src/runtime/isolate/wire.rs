//! What the two processes say to each other: one JSON object a line. Ticks are the lines of a
//! recording (see [`crate::record`]); the rest is a few words of this file. Both ends are the same
//! program file, so that nothing here need be understood by another version.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use crate::record::Call;
use crate::record::MAX_LINE_BYTES;
use crate::sample::GpuTick;
use crate::source::{InFlight, SourceError, Wants};

/// Names of functions that are kept, and the longest of them in bytes: they come from a process
/// that may be broken.
const MOST_NAMES: usize = 256;
const LONGEST_NAME: usize = 80;

/// To the child: look once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// As [`Wants::pcie`].
    pub pcie: bool,
    /// As [`Wants::process_utilization`].
    pub process_utilization: bool,
    /// As [`Wants::details`].
    pub details: bool,
    /// Look at GPUs that are let sleep too.
    pub wake: bool,
}

impl Request {
    /// What is shown.
    pub const fn wants(self) -> Wants {
        Wants {
            pcie: self.pcie,
            process_utilization: self.process_utilization,
            details: self.details,
        }
    }
}

/// From the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What the driver says.
    Gpus(GpuTick),
    /// That it refuses.
    Failed(Failure),
    /// That a call takes long.
    Call(Call),
}

/// A [`SourceError`], to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// As in [`SourceError`].
    NoLibrary(String),
    /// Likewise.
    NoDriver,
    /// Likewise.
    VersionMismatch,
    /// Likewise.
    NoGpu,
    /// Likewise.
    NoPermission,
    /// Likewise: the function and the library's number.
    Driver(String, i32),
    /// Anything else, in words.
    Other(String),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::NoLibrary(why) => Self::NoLibrary(why),
            SourceError::NoDriver => Self::NoDriver,
            SourceError::VersionMismatch => Self::VersionMismatch,
            SourceError::NoGpu => Self::NoGpu,
            SourceError::NoPermission => Self::NoPermission,
            SourceError::Driver { call, code } => Self::Driver(call.to_owned(), code),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<Failure> for SourceError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoLibrary(why) => Self::NoLibrary(why),
            Failure::NoDriver => Self::NoDriver,
            Failure::VersionMismatch => Self::VersionMismatch,
            Failure::NoGpu => Self::NoGpu,
            Failure::NoPermission => Self::NoPermission,
            Failure::Driver(call, code) => Self::Driver { call: known(&call), code },
            Failure::Other(text) => Self::Stream(text),
        }
    }
}

impl From<&InFlight> for Call {
    fn from(call: &InFlight) -> Self {
        Self { name: call.call.to_owned(), gpu: call.gpu, since_boot_ms: call.since_boot_ms }
    }
}

/// A name that stays: that of a function, as [`InFlight`] has it.
pub fn known(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let sensible = name.len() <= LONGEST_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '*'));
    if !sensible || names.len() >= MOST_NAMES {
        return "a call of the driver";
    }
    // A function's name is needed for as long as the program runs; there are a few dozen.
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// Writes one line at once.
///
/// # Errors
/// Where the other end is gone.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads one line; `None` at the end.
///
/// # Errors
/// Where it is longer than a line of a recording may be, or is no message.
pub fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    from.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_arrives_as_it_was_sent() {
        let all = [
            SourceError::NoLibrary("x".to_owned()),
            SourceError::NoDriver,
            SourceError::VersionMismatch,
            SourceError::NoGpu,
            SourceError::NoPermission,
            SourceError::Driver { call: "nvmlInit_v2", code: 999 },
        ];
        for error in all {
            let mut line = Vec::new();
            write(&mut line, &Reply::Failed(error.clone().into())).unwrap();
            let Some(Reply::Failed(failure)) = read(&mut &line[..]).unwrap() else { panic!() };
            assert_eq!(SourceError::from(failure), error);
        }
    }

    #[test]
    fn names_are_kept_once_and_nonsense_is_not() {
        let call = known("nvmlDeviceGetMemoryInfo_v2");
        assert!(std::ptr::eq(call, known("nvmlDeviceGetMemoryInfo_v2")));
        assert_eq!(known("\u{1b}]0;x"), "a call of the driver");
        assert_eq!(known(&"x".repeat(81)), "a call of the driver");
    }

    #[test]
    fn a_line_without_an_end_is_no_message() {
        let whole = b"{\"failed\":\"no_gpu\"}\n";
        assert!(read::<Reply>(&mut &whole[..]).unwrap().is_some());
        assert!(read::<Reply>(&mut &whole[..10]).is_err());
        assert!(read::<Reply>(&mut &b""[..]).unwrap().is_none());
        let long = vec![b'x'; MAX_LINE_BYTES + 2];
        assert!(read::<Reply>(&mut &long[..]).is_err());
    }
}
