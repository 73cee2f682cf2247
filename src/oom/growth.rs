//! Whether the memory that a log prints now and then rises with equal work.

use std::collections::BTreeMap;

use super::lines::Line;
use super::size::{self, Size};

/// A rising series of figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Series {
    /// The figures in bytes, in their order.
    pub points: Vec<u64>,
    /// The counter that stands beside them, where there is one.
    pub counters: Vec<u64>,
}

#[derive(Debug, Default)]
struct Points {
    values: Vec<u64>,
    counters: Vec<u64>,
    work: Vec<u64>,
}

/// More kinds of lines than this are not told apart.
const SHAPES_MAX: usize = 512;
/// A series needs this many points.
const POINTS_MIN: usize = 3;

/// The longest rising series among the lines before `until`; lines of messages are left out.
pub(super) fn find(
    lines: &[Line],
    until: usize,
    is_message: impl Fn(usize) -> bool,
) -> Option<Series> {
    let mut shapes: BTreeMap<String, Points> = BTreeMap::new();
    let mut asked_for_memory = false;
    for (number, line) in lines.iter().enumerate().take(until) {
        if is_message(number) || line.full.len() > 1024 {
            continue;
        }
        let body = line.body();
        let lower = body.to_ascii_lowercase();
        let reading = if lower.trim_start().starts_with("out[") && asked_for_memory {
            last_number(body).map(|value| (value, "out[]".to_owned()))
        } else {
            figure(body, &lower)
        };
        if lower.contains("memory_allocated") || lower.contains("memory_reserved") {
            asked_for_memory =
                lower.contains("2**30") || lower.contains("1024**3") || lower.contains("1e9");
        }
        let Some((value, shape)) = reading else { continue };
        if shapes.len() >= SHAPES_MAX && !shapes.contains_key(&shape) {
            continue;
        }
        let points = shapes.entry(shape).or_default();
        points.values.push(value);
        points.counters.extend(largest_integer(line.body()));
        points.work.extend(work(&lower));
    }
    let mut rising: Vec<Points> = shapes.into_values().filter(rises).collect();
    rising.sort_by_key(|points| points.values.len());
    rising.pop().map(|points| Series { points: points.values, counters: points.counters })
}

/// Rises nearly always, by a fifth at least, and is no warm-up and not explained by more work.
fn rises(points: &Points) -> bool {
    let values = &points.values;
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    let steps = values.len().saturating_sub(1);
    let up = values.windows(2).filter(|pair| matches!(pair, [a, b] if b > a)).count();
    let flat = values.windows(2).filter(|pair| matches!(pair, [a, b] if b == a)).count();
    let enough =
        values.len() >= POINTS_MIN && up + flat >= steps.saturating_sub(steps / 5) && up >= 2;
    let much = *last >= first + first / 5;
    let warm_up = values.len() < 5 && points.counters.first().is_some_and(|first| *first <= 2);
    let more_work = points.work.len() >= values.len()
        && points.work.windows(2).all(|pair| matches!(pair, [a, b] if b > a));
    enough && much && !warm_up && !more_work
}

/// A figure of memory in a line, and the line's shape: its text with every number taken out.
fn figure(body: &str, lower: &str) -> Option<(u64, String)> {
    const NOT_USE: [&str; 12] = [
        "shard",
        "download",
        "loading",
        "load ",
        "capacity",
        "/s",
        "file size",
        "buffer size",
        "split",
        "available",
        "free",
        "total",
    ];
    let speaks = ["mem", "alloc", "vram", "gpu", "cuda", "reserved", "arena", "used", "gib", "mib"];
    if NOT_USE.iter().any(|word| lower.contains(word))
        || !speaks.iter().any(|word| lower.contains(word))
    {
        return None;
    }
    let bytes = body.as_bytes();
    let mut at = 0;
    let mut found = None;
    while at < bytes.len() {
        let starts = bytes.get(at).is_some_and(u8::is_ascii_digit)
            && !at
                .checked_sub(1)
                .and_then(|b| bytes.get(b))
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'.');
        if !starts {
            at += 1;
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        let key = lower.get(..at).unwrap_or_default();
        let joined: Vec<u8> = rest.iter().take(24).copied().filter(|b| *b != b' ').collect();
        let value = match size::read(&joined, false) {
            Some((Size::Bytes(n), length)) if length > digits => Some(n),
            _ if key.ends_with("mib=") || key.ends_with("mb=") => number(rest, 1 << 20),
            _ if key.ends_with("gib=") || key.ends_with("gb=") => number(rest, 1 << 30),
            _ => None,
        };
        if value.is_some_and(|value| value >= 64 << 20) {
            found = value;
            break;
        }
        at += digits.max(1);
    }
    Some((found?, shape(lower)))
}

fn number(text: &[u8], unit: u64) -> Option<u64> {
    match size::thousandths(text)? {
        (Size::Bytes(n), _) => Some(n.saturating_mul(unit / 1000)),
        (Size::NoValue, _) => None,
    }
}

/// The text with runs of digits as `#`, without what stands after the last figure.
fn shape(lower: &str) -> String {
    let mut shape = String::new();
    for c in lower.chars().take(160) {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c if c.is_whitespace() => {}
            c => shape.push(c),
        }
    }
    let end = shape.rfind('#').map_or(shape.len(), |at| at + 1);
    shape.truncate(end);
    shape
}

fn last_number(body: &str) -> Option<u64> {
    let word = body.rsplit([' ', ':']).next()?;
    let (value, length) = size::thousandths(word.as_bytes())?;
    match value {
        Size::Bytes(n) if length == word.len() => Some(n.saturating_mul((1 << 30) / 1000)),
        _ => None,
    }
}

/// The largest counter of a line: clocks and dates are none.
fn largest_integer(body: &str) -> Option<u64> {
    body.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-')))
        .filter(|word| word.len() < 12)
        .filter_map(|word| word.trim_end_matches(':').parse().ok())
        .max()
}

/// The amount of work that a line names.
fn work(lower: &str) -> Option<u64> {
    ["tokens=", "tokens ", "batch=", "bs=", "batch_size=", "seqlen ", "len=", "frames="]
        .iter()
        .find_map(|key| {
            let (_, rest) = lower.split_once(key)?;
            let digits: String =
                rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::lines::read;

    fn series(text: &str) -> Option<Vec<u64>> {
        let mut lines = Vec::new();
        for line in text.lines() {
            read(line.as_bytes(), 0, false, &mut lines);
        }
        find(&lines, lines.len(), |_| false).map(|series| series.points)
    }

    #[test]
    fn equal_work_that_needs_more_every_time_is_growth() {
        assert_eq!(
            series("step 100 mem 3.0 GiB\nstep 200 mem 4.0 GiB\nstep 300 mem 5.0 GiB")
                .map(|s| s.len()),
            Some(3)
        );
        assert!(series("cuda_used_mib=3110 uptime_h=0\ncuda_used_mib=5240 uptime_h=12\ncuda_used_mib=7388 uptime_h=24\ncuda_used_mib=9388 uptime_h=36\ncuda_used_mib=9988 uptime_h=40").is_some());
    }

    #[test]
    fn warm_up_loading_and_more_work_are_not() {
        assert_eq!(series("it 0 ok 3.1 GiB\nit 1 ok 3.9 GiB\nit 2 ok 4.5 GiB"), None);
        assert_eq!(
            series("loading shard 7 3.0 GiB\nloading shard 8 4.0 GiB\nloading shard 9 5.0 GiB"),
            None
        );
        assert_eq!(
            series("tokens=100 mem 3.0 GiB\ntokens=200 mem 4.0 GiB\ntokens=300 mem 5.0 GiB"),
            None
        );
        assert_eq!(series("step 5 mem 3.0 GiB\nstep 6 mem 3.0 GiB\nstep 7 mem 3.0 GiB"), None);
    }
}
