//! The lines of a recording.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::Stamp;
use crate::record::note::{Answer, Note, Pulse};
use crate::sample::{Gap, GpuTick, KillMark, ProcTick, Reading, Tick};

/// The schema that this version writes.
pub const SCHEMA: SchemaVersion = SchemaVersion { major: 1, minor: 2 };

/// A schema's number, `1.0`. Within a major number fields are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaVersion {
    /// Another one means that the lines cannot be read.
    pub major: u32,
    /// A larger one has more fields.
    pub minor: u32,
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for SchemaVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('.').and_then(|(major, minor)| {
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        });
        parts.ok_or_else(|| "a schema is written as MAJOR.MINOR".to_owned())
    }
}

impl Serialize for SchemaVersion {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SchemaVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a recording says of itself, first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The schema of the lines that follow.
    pub schema: SchemaVersion,
    /// Who wrote it, `vramlens 0.1.0`.
    pub tool: String,
    /// The kernel's id of the boot (`/proc/sys/kernel/random/boot_id`): stamps of two recordings
    /// with the same one are on one clock.
    pub boot_id: Reading<String>,
    /// The machine's name.
    pub hostname: Reading<String>,
    /// The driver's version.
    pub driver: Reading<String>,
    /// The refresh interval, in milliseconds.
    pub interval_ms: u64,
    /// When the recording began.
    pub started: Stamp,
    /// Whether names of users, the host and paths were taken out.
    #[serde(default)]
    pub redacted: bool,
}

impl Header {
    /// A header of this version's schema and name.
    pub fn new(started: Stamp, interval_ms: u64) -> Self {
        Self {
            schema: SCHEMA,
            tool: concat!("vramlens ", env!("CARGO_PKG_VERSION")).to_owned(),
            boot_id: Reading::Absent(crate::sample::Why::NotAsked),
            hostname: Reading::Absent(crate::sample::Why::NotAsked),
            driver: Reading::Absent(crate::sample::Why::NotAsked),
            interval_ms,
            started,
            redacted: false,
        }
    }
}

/// The last line of a recording that was closed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct End {
    /// Ticks in the file, gaps among them.
    pub ticks: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Written<'a> {
    Header(&'a Header),
    End(End),
}

#[derive(Deserialize)]
struct OnlySchema {
    schema: SchemaVersion,
}

#[derive(Deserialize)]
struct HeaderLine {
    header: Header,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Header(OnlySchema),
    Gpus(GpuTick),
    Procs(ProcTick),
    Gap(Gap),
    Kill(KillMark),
    Pulse(Pulse),
    Answer(Answer),
    End(IgnoredAny),
}

const KINDS: [&str; 8] = ["header", "gpus", "procs", "gap", "kill", "pulse", "answer", "end"];

/// A line that was read.
#[derive(Debug)]
pub(super) enum Line {
    Header(Box<Header>),
    Tick(Box<Tick>),
    /// Only in a live stream.
    Note(Box<Note>),
    End,
    /// Written by a later version, and passed over.
    Unknown,
    /// No object, or one that its kind does not allow.
    Damaged,
    /// A schema with another major number.
    Foreign(SchemaVersion),
}

pub(super) fn parse(line: &[u8]) -> Line {
    match serde_json::from_slice::<Wire>(line) {
        Ok(Wire::Header(only)) if only.schema.major != SCHEMA.major => Line::Foreign(only.schema),
        Ok(Wire::Header(_)) => match serde_json::from_slice::<HeaderLine>(line) {
            Ok(line) => Line::Header(Box::new(line.header)),
            Err(_) => Line::Damaged,
        },
        Ok(Wire::Gpus(tick)) => Line::Tick(Box::new(Tick::Gpus(tick))),
        Ok(Wire::Procs(tick)) => Line::Tick(Box::new(Tick::Procs(tick))),
        Ok(Wire::Gap(gap)) => Line::Tick(Box::new(Tick::Gap(gap))),
        Ok(Wire::Kill(mark)) => Line::Tick(Box::new(Tick::Kill(mark))),
        Ok(Wire::Pulse(pulse)) => Line::Note(Box::new(Note::Pulse(pulse))),
        Ok(Wire::Answer(answer)) => Line::Note(Box::new(Note::Answer(answer))),
        Ok(Wire::End(_)) => Line::End,
        Err(_) => unknown_or_damaged(line),
    }
}

#[allow(clippy::zero_sized_map_values, reason = "a set cannot skip the values of JSON")]
fn unknown_or_damaged(line: &[u8]) -> Line {
    // Bounded by the line's own length, which is.
    match serde_json::from_slice::<BTreeMap<Cow<'_, str>, IgnoredAny>>(line) {
        Ok(keys) if !keys.is_empty() && !keys.keys().any(|key| KINDS.contains(&&**key)) => {
            Line::Unknown
        }
        _ => Line::Damaged,
    }
}
