//! The second pass: which known messages the digest holds, where, with which figures.

use std::collections::BTreeMap;

use super::condense::Digest;
use super::figures::{Figures, Slot};
use super::lines::Line;
use super::pattern::Pattern;
use super::signatures::{self, Class, Signature, host, science};
use super::stream::Stream;

/// More events than this are only counted.
const EVENTS_MAX: usize = 4096;

/// A known message in the digest.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub signature: &'static Signature,
    pub figures: Figures,
    /// The lines that hold its first and its last byte.
    pub line: usize,
    pub last_line: usize,
    /// The text ends inside it.
    pub cut: bool,
    /// Who wrote it.
    pub writer: String,
}

/// Matches every row against every writer's text.
pub(super) fn find(digest: &Digest) -> Vec<Event> {
    let lines = &digest.lines;
    let patterns: Vec<(&'static Signature, Pattern)> =
        signatures::all().map(|row| (row, Pattern::new(row.pattern))).collect();
    let mut events = Vec::new();
    for stream in streams(lines) {
        let mut found = Vec::new();
        for (order, (signature, pattern)) in patterns.iter().enumerate() {
            for at in memchr::memmem::find_iter(&stream.text, pattern.head()) {
                if found.len() >= EVENTS_MAX {
                    break;
                }
                if let Some(hit) = pattern.matches(&stream, at) {
                    found.push((at, hit, order, *signature));
                }
            }
        }
        // The longest one at a place stays; what lies inside it is the same message.
        found.sort_by_key(|(at, hit, order, _)| (*at, usize::MAX - hit.end, *order));
        let mut reached = 0;
        for (at, hit, _, signature) in found {
            let inside = hit.end <= reached && signature.class != Class::Recovered;
            if inside || !is_word(lines, &stream, at, signature) {
                continue;
            }
            reached = reached.max(hit.end);
            let (line, last_line) =
                (stream.line_at(at), stream.line_at(hit.end.saturating_sub(1).max(at)));
            let unfinished = hit.end == stream.text.len() && !digest.ends_with_newline;
            let number_last = unfinished && stream.text.last().is_some_and(u8::is_ascii_digit);
            let writer = lines.get(line).map(|line| line.writer.clone()).unwrap_or_default();
            let figures = Figures::of(&hit.fields);
            let cut = hit.cut || number_last;
            events.push(Event { signature, figures, line, last_line, cut, writer });
        }
    }
    events.extend(shell_kills(lines));
    if events.iter().all(|event| event.signature.class == Class::Detail) {
        events.extend(general(lines));
    }
    events.sort_by_key(|event| event.line);
    for event in &mut events {
        repair(event, lines);
    }
    events
}

/// Each writer's lines as one text. Lines without a writer belong to the one before them; a gap of
/// the digest parts everything.
fn streams(lines: &[Line]) -> Vec<Stream> {
    let mut done: Vec<Stream> = Vec::new();
    let mut open: BTreeMap<&str, Stream> = BTreeMap::new();
    let mut current = "";
    for (number, line) in lines.iter().enumerate() {
        if line.after_gap {
            done.extend(std::mem::take(&mut open).into_values());
            current = "";
        }
        if !line.writer.is_empty() {
            current = &line.writer;
        }
        open.entry(current).or_default().push(number, line.body());
    }
    done.extend(open.into_values());
    done
}

/// A message that is a single word must stand as one: `MemoryError` is not the end of
/// `OutOfMemoryError`.
fn is_word(lines: &[Line], stream: &Stream, at: usize, signature: &Signature) -> bool {
    let word = signature.pattern;
    if !word.bytes().all(|b| b.is_ascii_alphabetic()) {
        return true;
    }
    let Some(line) = lines.get(stream.line_at(at)) else { return false };
    line.body().match_indices(word).any(|(at, _)| {
        !line.body().as_bytes().get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// `Killed` alone on a line, or after `line 31: 1880210`, as shells print it.
fn shell_kills(lines: &[Line]) -> Vec<Event> {
    let mut events = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let body = line.body().trim();
        let words: Vec<&str> = body.split_whitespace().take(12).collect();
        let after_job = words.windows(2).any(|pair| match pair {
            [job, word] => {
                word.eq_ignore_ascii_case("killed") && job.bytes().all(|b| b.is_ascii_digit())
            }
            _ => false,
        });
        if body == "Killed" || (after_job && !body.contains("Killed process")) {
            events.push(Event {
                signature: &host::SHELL_KILLED,
                figures: Figures::default(),
                line: number,
                last_line: number,
                cut: false,
                writer: line.writer.clone(),
            });
        }
    }
    events
}

/// Lines in words that no row knows: a shortage, and a device.
fn general(lines: &[Line]) -> Option<Event> {
    const SHORT: [&str; 6] = [
        "out of memory",
        "outofmemory",
        "not enough memory",
        "insufficient memory",
        "not enough video memory",
        "memory exhausted",
    ];
    const DEVICE: [&str; 8] =
        ["cuda", "gpu", "vram", "rocm", "vulkan", "nvidia", "video memory", "device memory"];
    let line = lines.iter().position(|line| {
        let lower = line.full.to_ascii_lowercase();
        let any = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let raised =
            any(&["error", "fail", "exception", "fatal", "abort", "panic", "cannot", "could not"]);
        any(&SHORT) && any(&DEVICE) && (raised || lower.len() < 120)
    })?;
    let writer = lines.get(line).map(|line| line.writer.clone()).unwrap_or_default();
    let figures = Figures::default();
    Some(Event { signature: &science::GENERAL, figures, line, last_line: line, cut: false, writer })
}

/// What the text of single messages says beyond their pattern.
fn repair(event: &mut Event, lines: &[Line]) {
    match event.signature.id {
        "tf.shape" => {
            let text: String = lines.iter().skip(event.line).take(3).map(Line::body).collect();
            if let Some(bytes) = tensor_bytes(&text) {
                event.figures.set(Slot::Requested, bytes);
            }
            if let Some(device) = after(&text, "device:GPU:") {
                event.figures.set(Slot::Device, device);
            }
        }
        "torch.cuda" | "torch.hip" | "torch.xpu" => {
            let complete = event.figures.get(Slot::Unallocated).is_some()
                || event.figures.get(Slot::Reserved).is_some();
            event.cut |= !complete;
        }
        id if id.starts_with("nccl.") => {
            // `node17:40021:40833 [5] …`: the local device.
            let from = event.line.saturating_sub(4);
            let device = lines.iter().skip(from).take(12).find_map(|line| {
                let (lead, rest) = line.full.split_once(" [")?;
                let (device, after) = rest.split_once(']')?;
                (lead.contains(':') && after.contains("NCCL")).then(|| device.parse().ok())?
            });
            if let Some(device) = device {
                event.figures.set(Slot::Device, device);
            }
        }
        "torch.async" => event.cut |= event.figures.get(Slot::Requested).is_none(),
        _ => {}
    }
}

/// The number that follows `mark`.
fn after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The bytes of `shape[96,64,256,256] and type float`.
fn tensor_bytes(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once('[')?;
    let (shape, rest) = rest.split_once(']')?;
    let mut elements = 1_u64;
    for dimension in shape.split(',') {
        elements = elements.checked_mul(dimension.trim().parse().ok()?)?;
    }
    let (_, kind) = rest.split_once("type ")?;
    let kind: String = kind.chars().take_while(char::is_ascii_alphanumeric).collect();
    let width = match kind.as_str() {
        "float" | "float32" | "int32" | "uint32" => 4,
        "half" | "float16" | "bfloat16" | "int16" => 2,
        "double" | "float64" | "int64" | "complex64" => 8,
        "int8" | "uint8" | "bool" => 1,
        "complex128" => 16,
        _ => return None,
    };
    elements.checked_mul(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_bytes() {
        let text = "shape[96,64,256,256] and type float on /job";
        assert_eq!(tensor_bytes(text), Some(1_610_612_736));
        assert_eq!(tensor_bytes("shape[99999999999,99999999999] and type float"), None);
        assert_eq!(tensor_bytes("shape[] and type string"), None);
    }
}
