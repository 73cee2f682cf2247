//! Lines of a log as text: decoded, without colours, without the marks of who wrote them.

use super::prefix;

/// Longest line that is kept, in bytes; longer ones arrive in pieces.
pub(super) const LINE_MAX: usize = 8 << 10;

/// A line of the digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins in the input, in bytes.
    pub offset: u64,
    /// Who wrote it: rank, container, actor, unit; empty where the line does not say.
    pub writer: String,
    /// The visible text with the marks of who and when.
    pub full: String,
    /// Where the message begins in `full`.
    body_at: usize,
    /// Lines before this one are missing in the digest.
    pub after_gap: bool,
}

impl Line {
    /// The message.
    pub(super) fn body(&self) -> &str {
        self.full.get(self.body_at..).unwrap_or_default()
    }
}

/// Reads one raw line. A message inside JSON or a `repr` has its line breaks written as `\n`: it
/// becomes several lines.
pub(super) fn read(raw: &[u8], offset: u64, after_gap: bool, out: &mut Vec<Line>) {
    let text = visible(raw);
    let mut gap = after_gap;
    let mut writer: Option<String> = None;
    for part in text.split("\\n") {
        let full = part.replace("\\\"", "\"").replace("\\'", "'");
        let stripped = prefix::strip(&full);
        let body_at = full.len() - stripped.body_len;
        let own = stripped.writer;
        let writer = writer.get_or_insert_with(|| own.clone());
        let writer = if own.is_empty() { writer.clone() } else { own };
        out.push(Line { offset, writer, full, body_at, after_gap: gap });
        gap = false;
    }
}

/// Valid text without escape sequences and control characters.
pub(super) fn visible(raw: &[u8]) -> String {
    let raw = name_device(raw);
    let text = String::from_utf8_lossy(&raw);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\t' => out.push(' '),
            c if hidden(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// The asynchronous allocator prints its device number as a character: device 0 is a NUL byte.
fn name_device(raw: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const LEAD: &[u8] = b"Allocation on device ";
    let at = memchr::memmem::find(raw, LEAD).map(|at| at + LEAD.len());
    match at.and_then(|at| raw.get(at).map(|byte| (at, *byte))) {
        Some((at, device @ 0..=15)) if device != b'\t' => {
            let mut owned = raw.to_vec();
            let digits = device.to_string();
            owned.splice(at..=at, digits.bytes());
            owned.into()
        }
        _ => raw.into(),
    }
}

/// Control characters, and what turns the direction of text or hides in it.
fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_csi(chars),
        Some(']' | 'P' | '^' | '_' | 'X') => {
            // A string sequence ends with BEL or ESC \; one that never ends takes the line.
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some('(' | ')' | '#' | '%') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| matches!(c, '\u{20}'..='\u{7e}')) {
        if matches!(c, '\u{40}'..='\u{7e}') {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_controls_are_gone() {
        assert_eq!(visible(b"\x1b[0;36m(A pid=1)\x1b[0;0m x"), "(A pid=1) x");
        assert_eq!(visible(b"a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c"), "abc");
        assert_eq!(visible(b"a\xffb\0c\x08"), "a\u{fffd}bc");
        assert_eq!(visible("a\u{202e}b\u{9b}31mc".as_bytes()), "abc");
        assert_eq!(visible(b"Allocation on device \0 would"), "Allocation on device 0 would");
        assert_eq!(visible(b"\x1b]0;never ends"), "");
    }

    #[test]
    fn line_breaks_inside_json_are_line_breaks() {
        let mut lines = Vec::new();
        read(br#"{"error":"a\nb \"c\""}"#, 7, false, &mut lines);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].body(), "b \"c\"\"}");
    }
}
