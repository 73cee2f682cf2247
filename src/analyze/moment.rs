//! A moment as somebody types it: `03:58`, `03:58:11`, `2026-11-30 03:58`, `-10m`, `+5m`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use crate::ids::Stamp;

/// What is accepted, for messages and prompts.
pub const FORMS: &str = "03:58, 03:58:11, 2026-11-30 03:58, -10m, +5m";

/// Where a typed moment is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The oldest moment that there is.
    pub from: Stamp,
    /// The newest.
    pub to: Stamp,
    /// What `-10m` goes back from.
    pub back_from: Stamp,
    /// What `+5m` goes on from.
    pub on_from: Stamp,
    /// Local time, in seconds east of UTC.
    pub utc_offset_s: i32,
}

/// Why a text is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// It cannot be read.
    #[error("{0:?} is no time: write {FORMS}")]
    Unreadable(String),
    /// It lies outside.
    #[error("{asked} is not in what is kept: {from} to {to}")]
    Outside {
        /// As typed.
        asked: String,
        /// The oldest moment.
        from: String,
        /// The newest.
        to: String,
    },
}

/// Reads it; gives milliseconds since boot. A time without a date is the last such time before the
/// end. What lies less than a minute beyond either end is that end: times are typed without their
/// seconds.
pub fn parse(text: &str, span: &Span) -> Result<u64, MomentError> {
    let text = text.trim();
    let shown = || text.chars().take(40).collect::<String>();
    let unreadable = || MomentError::Unreadable(shown());
    if let Some(by) = text.strip_prefix('-') {
        let ms = duration(by).ok_or_else(unreadable)?;
        return Ok(span.back_from.boot_ms.saturating_sub(ms).max(span.from.boot_ms));
    }
    if let Some(by) = text.strip_prefix('+') {
        let ms = duration(by).ok_or_else(unreadable)?;
        return Ok(span.on_from.boot_ms.saturating_add(ms).min(span.to.boot_ms));
    }
    let wall_ms = wall(text, span).ok_or_else(unreadable)?;
    let boot_ms = i128::from(span.to.boot_ms) + i128::from(wall_ms) - i128::from(span.to.wall_ms);
    let (first, last) = (i128::from(span.from.boot_ms), i128::from(span.to.boot_ms));
    if boot_ms < first - 60_000 || boot_ms > last + 60_000 {
        let [from, to] = [span.from, span.to].map(|at| clock(at, span.utc_offset_s));
        return Err(MomentError::Outside { asked: shown(), from, to });
    }
    Ok(u64::try_from(boot_ms.clamp(first, last)).unwrap_or(0))
}

/// `10m`, `1h 30m`, `90` (seconds).
fn duration(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.trim().parse::<u32>() {
        return Some(u64::from(seconds) * 1_000);
    }
    let span: SignedDuration = text.trim().parse().ok()?;
    u64::try_from(span.as_millis()).ok()
}

/// Milliseconds since 1970 of a time of day, with or without its date.
fn wall(text: &str, span: &Span) -> Option<i64> {
    let offset = Offset::from_seconds(span.utc_offset_s).ok()?;
    let ms = |at: DateTime| Some(offset.to_timestamp(at).ok()?.as_millisecond());
    if let Some((date, time)) = text.split_once([' ', 'T']) {
        let date: Date = date.parse().ok()?;
        return ms(date.to_datetime(time_of_day(time.trim())?));
    }
    let time = time_of_day(text)?;
    let last = Timestamp::from_millisecond(i64::try_from(span.to.wall_ms).ok()?).ok()?;
    let today = offset.to_datetime(last).date();
    let at = ms(today.to_datetime(time))?;
    // Within the minute that the end is in it is still today's.
    if at > last.as_millisecond() + 60_000 {
        return ms(today.yesterday().ok()?.to_datetime(time));
    }
    Some(at)
}

fn time_of_day(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let mut next = |most: i8| {
        let part = parts.next()?;
        let digits =
            !part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
        part.parse::<i8>().ok().filter(|n| digits && *n <= most)
    };
    let (hour, minute) = (next(23)?, next(59)?);
    let second = if text.matches(':').count() == 2 { next(59)? } else { 0 };
    if text.matches(':').count() > 2 {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

/// The local time of a moment, with its date.
pub fn clock(at: Stamp, utc_offset_s: i32) -> String {
    let offset = Offset::from_seconds(utc_offset_s).unwrap_or(Offset::UTC);
    match i64::try_from(at.wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(time) => offset.to_datetime(time).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => "an unknown time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hours up to 04:12:07 on 2026-11-30, at UTC+1.
    fn span() -> Span {
        let to = Stamp { boot_ms: 400_000_000, wall_ms: 1_796_008_327_000 };
        let from = Stamp { boot_ms: to.boot_ms - 7_200_000, wall_ms: to.wall_ms - 7_200_000 };
        Span { from, to, back_from: to, on_from: from, utc_offset_s: 3_600 }
    }

    #[test]
    fn every_form_is_read() {
        let span = span();
        assert_eq!(clock(span.to, 3_600), "2026-11-30 04:12:07");
        let back = |text: &str| span.to.boot_ms - parse(text, &span).unwrap();
        assert_eq!(back("03:58:11"), 836_000);
        assert_eq!(back("03:58"), 847_000);
        assert_eq!(back(" 2026-11-30 03:58 "), 847_000);
        assert_eq!(back("2026-11-30T03:58:11"), 836_000);
        assert_eq!(back("-10m"), 600_000);
        assert_eq!(back("-1h 30m"), 5_400_000);
        assert_eq!(back("-90"), 90_000);
        assert_eq!(back("+5m"), 7_200_000 - 300_000);
        assert_eq!(back("-9h"), 7_200_000, "no further than there is");
        assert_eq!(back("+9h"), 0);
        // The minute of either end is that end.
        assert_eq!(back("04:13"), 0);
        assert_eq!(back("02:12"), 7_200_000);
    }

    #[test]
    fn a_time_without_a_date_is_the_last_one_before_the_end() {
        // 00:30, and the recording began at 22:00 the day before.
        let to = Stamp { boot_ms: 400_000_000, wall_ms: 1_796_008_327_000 - 13_327_000 };
        let from = Stamp { boot_ms: to.boot_ms - 9_000_000, wall_ms: to.wall_ms - 9_000_000 };
        let span = Span { from, to, back_from: to, on_from: from, utc_offset_s: 3_600 };
        assert_eq!(clock(to, 3_600), "2026-11-30 00:30:00");
        assert_eq!(parse("23:00", &span), Ok(to.boot_ms - 5_400_000));
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
        let bad =
            ["", "noon", "25:00", "03:60", "3", "-", "+fast", "03:58:11:2", "03:5x", "1:2:3 x"];
        for bad in bad {
            let error = parse(bad, &span()).unwrap_err().to_string();
            assert!(error.contains("03:58:11") && error.contains("-10m"), "{error}");
        }
        let error = parse("2026-11-29 03:58", &span()).unwrap_err().to_string();
        assert_eq!(
            error,
            "2026-11-29 03:58 is not in what is kept: 2026-11-30 02:12:07 to 2026-11-30 04:12:07"
        );
        assert!(parse("01:00", &span()).is_err());
    }
}
