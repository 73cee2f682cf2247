//! Moments, spans of time and trends in words.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::analyze::Growth;
use crate::ids::Stamp;
use crate::units::{Bytes, age};

/// The local time of a moment: `04:12:07`, or `2026-11-30 04:12:07` with its date.
pub fn clock(at: Stamp, utc_offset_s: i32, date: bool) -> String {
    let time = i64::try_from(at.wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let offset = Offset::from_seconds(utc_offset_s).unwrap_or(Offset::UTC);
    let format = if date { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" };
    match time {
        Some(time) if at.wall_ms > 0 => offset.to_datetime(time).strftime(format).to_string(),
        _ => "--:--:--".to_owned(),
    }
}

/// `250ms`, `1s`, `2m`.
pub fn interval(ms: u64) -> String {
    if ms < 1000 { format!("{ms}ms") } else { age(ms) }
}

/// `12 s`, `4 min`: for sentences.
pub fn span(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// `growing 1.2 GiB/min`, and when it is full: only where it grows steadily.
pub fn trend(growth: Growth) -> (String, Option<String>) {
    let size = |per_minute: f64| Bytes(per_minute.abs() as u64);
    match growth {
        Growth::NotYet => (String::new(), None),
        Growth::Steady => ("steady".to_owned(), None),
        Growth::Changing { per_minute } => {
            let sign = if per_minute.0 < 0.0 { "-" } else { "+" };
            (format!("changing, {sign}{} in a minute", size(per_minute.0)), None)
        }
        Growth::Trend { per_minute, full_in_ms, .. } => {
            let verb = if per_minute.0 < 0.0 { "shrinking" } else { "growing" };
            let full = full_in_ms.map(|[early, likely, late]| {
                if late > likely.saturating_mul(2) || early == late {
                    format!("full in about {}", age(likely))
                } else {
                    format!("full in {} ({} to {})", age(likely), age(early), age(late))
                }
            });
            (format!("{verb} {}/min", size(per_minute.0)), full)
        }
    }
}
