//! Values of settings, as people write them.

use crate::analyze::alerts::Threshold;
use crate::units::{Bytes, Percent};

/// From a page to what an editor still opens.
pub(super) fn log_size(text: &str) -> Option<u64> {
    let bytes: Bytes = text.parse().ok()?;
    (4096..=1 << 30).contains(&bytes.0).then_some(bytes.0)
}

/// `95%`, `20GiB`.
pub(super) fn threshold(text: &str) -> Option<Threshold> {
    if let Some(share) = text.trim().strip_suffix('%') {
        let share: f32 = share.trim().parse().ok()?;
        return (share > 0.0 && share <= 100.0).then_some(Threshold::Percent(Percent(share)));
    }
    let bytes: Bytes = text.parse().ok()?;
    (bytes > Bytes::ZERO).then_some(Threshold::Bytes(bytes))
}

/// A list as TOML writes one, `["a", "b c"]`; or words between blanks, for a variable that needs no
/// quotes.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if !text.starts_with('[') {
        return Some(text.split_whitespace().map(ToOwned::to_owned).collect());
    }
    let table: toml::Table = toml::from_str(&format!("list = {text}")).ok()?;
    let list = table.get("list")?.as_array()?;
    list.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect()
}

/// The same with one word at least.
pub(super) fn program(text: &str) -> Option<Vec<String>> {
    words(text).filter(|words| !words.is_empty())
}

/// As [`words`]; without brackets also commas part them.
pub(super) fn column_words(text: &str) -> Option<Vec<String>> {
    if text.trim().starts_with('[') { words(text) } else { words(&text.replace(',', " ")) }
}

/// As [`words`]; `[` alone is a key, and no list.
pub fn key_words(text: &str) -> Option<Vec<String>> {
    if text.trim() == "[" { Some(vec!["[".to_owned()]) } else { words(text) }
}

/// Milliseconds of `500ms`, `1s`, `10m`, `2h`; within 100 ms and an hour.
pub(super) fn time(text: &str) -> Option<u64> {
    duration_ms(text).filter(|ms| (100..=3_600_000).contains(ms))
}

/// Milliseconds of `500ms`, `1m 30s`, `2h`.
pub fn duration_ms(text: &str) -> Option<u64> {
    let span: jiff::SignedDuration = text.trim().parse().ok()?;
    u64::try_from(span.as_millis()).ok()
}
