//! The small language that signatures are written in, matched on text without white space: a
//! message that a terminal, a person or `rich` has wrapped anywhere still reads the same.
//!
//! `<name:kind>` is a figure, `⟦…⟧` may be missing, `⟦…⟧*` may stand any number of times, `…` skips up
//! to [`SKIP_MAX`] bytes. White space means nothing. Kinds: `size` (number and unit, powers of
//! 1024), `dec` (the same, powers of 1000), `int`, `mib` and `kib`, `gib` (a bare number of them), `num`
//! (thousandths).

use super::figures::Slot;
use super::size::{self, Size};
use super::stream::Stream;

/// How far `…` looks for what follows it.
const SKIP_MAX: usize = 600;
/// How often a repeated group is taken: more processes than a GPU ever has.
const REPEAT_MAX: usize = 512;

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Size,
    Decimal,
    Integer,
    Mebibytes,
    Kibibytes,
    Gibibytes,
    Thousandths,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(Vec<u8>),
    Field(Slot, Kind),
    Skip,
    Group { inner: Vec<Token>, repeat: bool },
}

/// A signature's text, ready to match.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    tokens: Vec<Token>,
}

/// What a match gave.
#[derive(Debug, Clone, Default)]
pub(super) struct Match {
    /// Where it ends in the stream.
    pub end: usize,
    /// The figures in the order of the text; `None` stands for a printed "no value".
    pub fields: Vec<(Slot, Option<u64>)>,
    /// The text ended inside the message.
    pub cut: bool,
}

enum Flow {
    On(usize),
    Missed,
    Cut,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let mut chars = text.chars().filter(|c| !c.is_whitespace());
        Self { tokens: compile(&mut chars) }
    }

    /// The text that a match begins with.
    pub(super) fn head(&self) -> &[u8] {
        match self.tokens.first() {
            Some(Token::Literal(head)) => head,
            _ => b"",
        }
    }

    /// Matches at `at`, which is where the head was found. `None` where the text says something
    /// else.
    pub(super) fn matches(&self, stream: &Stream, at: usize) -> Option<Match> {
        let mut found = Match::default();
        match run(&self.tokens, None, stream, at, &mut found) {
            Flow::On(end) => found.end = end,
            Flow::Missed => return None,
            Flow::Cut => {
                found.end = stream.text.len();
                found.cut = true;
            }
        }
        Some(found)
    }
}

fn compile(chars: &mut impl Iterator<Item = char>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut literal = String::new();
    let flush = |literal: &mut String, tokens: &mut Vec<Token>| {
        if !literal.is_empty() {
            tokens.push(Token::Literal(std::mem::take(literal).into_bytes()));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '<' => {
                flush(&mut literal, &mut tokens);
                let inner: String = chars.take_while(|c| *c != '>').collect();
                tokens.extend(field(&inner));
            }
            '⟦' => {
                flush(&mut literal, &mut tokens);
                tokens.push(Token::Group { inner: compile(chars), repeat: false });
            }
            '⟧' => break,
            '…' => {
                flush(&mut literal, &mut tokens);
                tokens.push(Token::Skip);
            }
            '*' if literal.is_empty() => {
                if let Some(Token::Group { repeat, .. }) = tokens.last_mut() {
                    *repeat = true;
                }
            }
            other => literal.push(other),
        }
    }
    flush(&mut literal, &mut tokens);
    tokens
}

fn field(text: &str) -> Option<Token> {
    let (name, kind) = text.split_once(':')?;
    let kind = match kind {
        "size" => Kind::Size,
        "dec" => Kind::Decimal,
        "int" => Kind::Integer,
        "mib" => Kind::Mebibytes,
        "kib" => Kind::Kibibytes,
        "gib" => Kind::Gibibytes,
        "num" => Kind::Thousandths,
        _ => return None,
    };
    Some(Token::Field(Slot::named(name)?, kind))
}

/// Matches tokens; `after` is what follows the last of them.
fn run(
    tokens: &[Token],
    after: Option<&Token>,
    stream: &Stream,
    start: usize,
    found: &mut Match,
) -> Flow {
    let mut at = start;
    let mut tokens = tokens;
    while let [token, rest @ ..] = tokens {
        let next = rest.first().or(after);
        let flow = match token {
            // The text ends where the message goes on.
            Token::Literal(_) | Token::Field(..) if at > start && at >= stream.text.len() => {
                Flow::Cut
            }
            Token::Literal(literal) => self::literal(literal, stream, at),
            Token::Field(slot, kind) => figure(*slot, *kind, next, stream, at, found),
            Token::Skip => skip(next, stream, at),
            Token::Group { inner, repeat: false } => group(inner, 1, next, stream, at, found),
            Token::Group { inner, repeat: true } => {
                group(inner, REPEAT_MAX, None, stream, at, found)
            }
        };
        match flow {
            Flow::On(next) => at = next,
            other => return other,
        }
        tokens = rest;
    }
    Flow::On(at)
}

fn literal(literal: &[u8], stream: &Stream, at: usize) -> Flow {
    let rest = stream.text.get(at..).unwrap_or_default();
    if rest.starts_with(literal) {
        Flow::On(at + literal.len())
    } else if !rest.is_empty() && literal.starts_with(rest) {
        Flow::Cut
    } else {
        Flow::Missed
    }
}

fn group(
    inner: &[Token],
    most: usize,
    after: Option<&Token>,
    stream: &Stream,
    at: usize,
    found: &mut Match,
) -> Flow {
    let mut at = at;
    for _ in 0..most {
        let kept = found.fields.len();
        match run(inner, after, stream, at, found) {
            Flow::On(next) if next > at => at = next,
            Flow::Cut => return Flow::Cut,
            Flow::On(_) | Flow::Missed => {
                found.fields.truncate(kept);
                break;
            }
        }
    }
    Flow::On(at)
}

fn skip(next: Option<&Token>, stream: &Stream, at: usize) -> Flow {
    let Some(Token::Literal(literal)) = next else { return Flow::On(at) };
    let window = stream.text.get(at..stream.text.len().min(at + SKIP_MAX)).unwrap_or_default();
    match memchr::memmem::find(window, literal) {
        Some(offset) => Flow::On(at + offset),
        None => Flow::Missed,
    }
}

fn figure(
    slot: Slot,
    kind: Kind,
    next: Option<&Token>,
    stream: &Stream,
    at: usize,
    found: &mut Match,
) -> Flow {
    let rest = stream.text.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Flow::Missed;
    }
    // A bare number ends with its line, unless what must follow says that it was wrapped.
    let line = stream.text.get(at..stream.line_end(at)).unwrap_or_default();
    let follows = |text: &[u8], length: usize| match next {
        Some(Token::Literal(literal)) => {
            let after = text.get(length..).unwrap_or_default();
            !after.is_empty() && after.starts_with(literal)
        }
        _ => true,
    };
    let bare = |read: fn(&[u8]) -> Option<(Size, usize)>| match (read(line), read(rest)) {
        (Some((value, length)), _) if follows(rest, length) => Some((value, length)),
        (_, Some((value, length))) if follows(rest, length) => Some((value, length)),
        (short, long) => short.or(long),
    };
    let read = match kind {
        Kind::Size => size::read(rest, false),
        Kind::Decimal => size::read(rest, true),
        Kind::Integer => bare(size::integer),
        Kind::Mebibytes => bare(size::thousandths).map(|read| scaled(read, 1 << 20)),
        Kind::Kibibytes => bare(size::thousandths).map(|read| scaled(read, 1 << 10)),
        Kind::Gibibytes => bare(size::thousandths).map(|read| scaled(read, 1 << 30)),
        Kind::Thousandths => bare(size::thousandths),
    };
    let Some((value, length)) = read else {
        // A number whose unit is missing at the very end is a cut message.
        let number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
        let digits = rest.iter().take_while(|byte| number(byte)).count();
        let cut = digits > 0 && rest.len() - digits < 4 && rest.len() < 32;
        return if cut { Flow::Cut } else { Flow::Missed };
    };
    let (read, after) = rest.split_at_checked(length).unwrap_or((rest, b""));
    let last = read.last().copied().unwrap_or_default();
    if last.is_ascii_digit() && !follows(rest, length) && separator_ends(after) {
        return Flow::Cut;
    }
    let value = match value {
        Size::Bytes(n) => Some(n),
        Size::NoValue => None,
    };
    found.fields.push((slot, value));
    // `18.24G` at the very end may be the beginning of `18.24GiB`, and of what follows it.
    found.cut |=
        after.is_empty() && matches!(last.to_ascii_uppercase(), b'K' | b'M' | b'G' | b'T' | b'I');
    Flow::On(at + length)
}

/// Cut at a thousands separator the beginning of a number looks like a smaller one.
fn separator_ends(after: &[u8]) -> bool {
    matches!(after, [b',' | b'.', digits @ ..] if digits.len() < 3 && digits.iter().all(u8::is_ascii_digit))
}

fn scaled((value, length): (Size, usize), unit: u64) -> (Size, usize) {
    match value {
        Size::Bytes(n) => (Size::Bytes((n.saturating_mul(unit) + 500) / 1000), length),
        Size::NoValue => (Size::NoValue, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str) -> Stream {
        Stream::of_lines(text.lines().enumerate())
    }

    #[test]
    fn a_wrapped_number_is_read_whole_and_a_finished_one_is_not_continued() {
        let pattern = Pattern::new("buffer of size <req:int>");
        let found = pattern.matches(&stream("buffer of size 194\n0.02.411 E next"), 0);
        assert_eq!(found.map(|m| m.fields), Some(vec![(Slot::Requested, Some(194))]));
        let pattern = Pattern::new("allocate <req:int> bytes");
        let found = pattern.matches(&stream("allocate 47703\n54232 bytes."), 0);
        assert_eq!(found.map(|m| m.fields), Some(vec![(Slot::Requested, Some(4_770_354_232))]));
    }

    #[test]
    fn a_number_that_ends_a_group_is_read_whole_where_it_was_wrapped() {
        let pattern = Pattern::new("device (⟦<free:size>⟧⟦<free:gib>⟧/<total:size>)");
        let found = pattern.matches(&stream("device (10\n.5/79.19 GiB)"), 0);
        let fields = found.map(|m| m.fields).unwrap_or_default();
        assert_eq!(fields.first(), Some(&(Slot::Free, Some(21 << 29))));
    }

    #[test]
    fn a_text_that_ends_inside_a_figure_is_cut() {
        let pattern = Pattern::new("request for <req:size>⟦, limit <allowed:int> bytes⟧");
        let cut = |text: &str| pattern.matches(&stream(text), 0).map(|found| found.cut);
        assert_eq!(cut("request for 18.24G"), Some(true));
        assert_eq!(cut("request for 18.24GiB"), Some(false));
        assert_eq!(cut("request for 18.24Gi"), Some(true));
        assert_eq!(cut("request for 18.24GiB, limit 24,000,00"), Some(true));
        assert_eq!(cut("request for 18.24GiB, limit 24,000,"), Some(true));
        assert_eq!(cut("request for 18.24GiB, limit 24,000,000 bytes"), Some(false));
    }

    #[test]
    fn groups_repeat_and_may_be_missing() {
        let pattern =
            Pattern::new("free.⟦Process <pid:int> has <pidbytes:size> in use.⟧*⟦Of <alloc:size>⟧");
        let text =
            "free. Process 4 has 1.00 MiB in use. Process 5 has 2.00 MiB in use. Of 3.00 MiB";
        let found = pattern.matches(&stream(text), 0).unwrap_or_default();
        assert_eq!(found.fields.len(), 5);
        assert!(!found.cut);
        let found = pattern.matches(&stream("free. Process 4 has 1.0"), 0).unwrap_or_default();
        assert!(found.cut);
    }
}
