//! Markers in words.

use super::{Marker, MarkerKind};
use crate::sample::GapCause;
use crate::units::Bytes;

impl Marker {
    /// What happened, in one sentence without its moment: `train.py 41233 came, up to 64.2 GiB`.
    /// May hold hostile text. `gpu` says which GPU, where that is in doubt.
    pub fn words(&self, gpu: bool) -> String {
        let on = self.index.filter(|_| gpu).map_or_else(String::new, |n| format!(" on GPU {n}"));
        let who = self.who();
        let note = |before: &str| match self.note.as_str() {
            "" => String::new(),
            note => format!("{before}{note}"),
        };
        let bytes = |before: &str| match self.bytes {
            Some(bytes) if bytes > Bytes::ZERO => format!("{before}{bytes}"),
            _ => String::new(),
        };
        match self.kind {
            MarkerKind::Came => format!("{who} came{on}{}{}", bytes(", up to "), note(", ")),
            MarkerKind::Went => format!("{who} went{on}{}{}", bytes(", held "), note(", ")),
            MarkerKind::Kill if self.pid.is_none() => format!("vramlens{}", note(" ")),
            MarkerKind::Kill => format!("{who} was signalled by vramlens{}", note(": ")),
            MarkerKind::Oom => {
                format!("{who} ran out of memory{on}{}{}", bytes(", its cache held "), note(", "))
            }
            MarkerKind::Xid => format!("{}{on}{}", self.name, note(": ")),
            MarkerKind::Peak => {
                let of = self.index.map_or_else(String::new, |n| format!(" of GPU {n}"));
                format!("peak{of}{}", bytes(": "))
            }
            MarkerKind::Gap => {
                let lasts = self.until.map_or(0, |until| until.since(self.at));
                format!("nothing is known for {}{}", lasting(lasts), note(": "))
            }
        }
    }

    /// `train.py 41233`.
    pub fn who(&self) -> String {
        match (self.pid, self.name.as_str()) {
            (Some(pid), "") => format!("pid {pid}"),
            (Some(pid), name) => format!("{name} {pid}"),
            (None, name) => name.to_owned(),
        }
    }
}

fn lasting(ms: u64) -> String {
    match ms {
        0..1_000 => "a moment".to_owned(),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// Why nothing is known.
pub(super) fn cause(cause: &GapCause) -> String {
    match cause {
        GapCause::Stall { call, gpu: Some(gpu) } => format!("{call} hung on GPU {gpu}"),
        GapCause::Stall { call, gpu: None } => format!("{call} hung"),
        GapCause::Dropped(1) => "1 sample was lost".to_owned(),
        GapCause::Dropped(n) => format!("{n} samples were lost"),
        GapCause::Damaged => "the recording is damaged here".to_owned(),
        GapCause::Suspended => "the machine slept, or vramlens was stopped".to_owned(),
        GapCause::Away => "the far end was away".to_owned(),
    }
}
