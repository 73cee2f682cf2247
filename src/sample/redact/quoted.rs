//! Secrets in quotes behind their name: `"api_key": "hun,ter2"`, `X_TOKEN='a b'`. Whatever stands
//! in the quotes is the secret, up to the quote that ends them. So it is where the name stands in them
//! too, as in a header: `'X-Api-Key: a b'`.

use super::{is_scheme, is_secret_name};

/// The longest name without quotes that is looked at, in characters.
const LONGEST_NAME: usize = 200;

/// What stands before, between and behind the secrets in quotes of a text.
pub fn around(text: &str) -> Vec<&str> {
    let (mut shown, mut from, mut look) = (Vec::new(), 0, 0);
    while let Some(found) = text.get(look..).and_then(|rest| rest.find([':', '='])) {
        let at = look + found;
        look = at + 1;
        let Some(before) = text.get(from..at) else { continue };
        let named = names_secret(before, text, at);
        let secret = || value(text, at).or_else(|| header(text, at));
        let Some((start, end)) = named.then(secret).flatten() else { continue };
        shown.extend(text.get(from..start));
        (from, look) = (end, end);
    }
    shown.extend(text.get(from..));
    shown
}

fn names_secret(before: &str, text: &str, at: usize) -> bool {
    let is_pair = text.as_bytes().get(at) == Some(&b':');
    // `os.environ["HF_TOKEN"] = "x"`.
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == ']');
    let name = if let Some(quote @ ('"' | '\'')) = before.chars().next_back() {
        let inner = before.trim_end_matches(quote).trim_end_matches('\\');
        inner.rsplit(quote).next().unwrap_or(inner)
    } else {
        bare_name(before)
    };
    // `key:` alone says how to sort, or what a table has.
    is_secret_name(name) && !(is_pair && name.eq_ignore_ascii_case("key"))
}

/// The name without quotes that a text ends in.
fn bare_name(before: &str) -> &str {
    let outside = |c: char| c.is_whitespace() || "{[(,;\"'&?|".contains(c);
    let longest = before.char_indices().rev().take(LONGEST_NAME).last();
    let near = before.get(longest.map_or(0, |(start, _)| start)..).unwrap_or_default();
    near.rsplit(outside).next().unwrap_or(near)
}

/// Where the value of a header with its colon at `at` begins and ends, in bytes: at the end of the
/// quotes that begin with its name, or of the line that does. A scheme is no secret.
fn header(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = text.get(at..)?.strip_prefix(':')?;
    let name = bare_name(text.get(..at)?);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=$".contains(c);
    // `key:` alone says how to sort; `token://` is an address.
    let of_other = name.rsplit('=').next()?.eq_ignore_ascii_case("key");
    if !name.chars().all(plain) || of_other || rest.starts_with(':') || rest.starts_with("//") {
        return None;
    }
    let before = text.get(..at - name.len())?;
    let blank = [' ', '\t'];
    let bare = rest.trim_start_matches(blank);
    let start = text.len() - bare.len();
    let end = if let Some(quote @ ('"' | '\'')) = before.chars().next_back() {
        let outer = before.strip_suffix(quote)?;
        let depth = outer.len() - outer.trim_end_matches('\\').len();
        closing(text, start, quote, depth)
    } else {
        let line = before.trim_end_matches(blank);
        if !(line.is_empty() || line.ends_with('\n')) {
            return None;
        }
        start + bare.find('\n').unwrap_or(bare.len())
    };
    let value = text.get(start..end)?;
    let scheme = value.split_once(blank).filter(|parts| is_scheme(parts.0));
    let secret = scheme.map_or(value, |parts| parts.1.trim_start_matches(blank));
    (!secret.is_empty()).then_some((end - secret.len(), end))
}

/// Where a quote stands that is no deeper in texts of texts than the one that it closes.
fn closing(text: &str, from: usize, quote: char, depth: usize) -> usize {
    let mut slashes = 0;
    for (n, c) in text.get(from..).unwrap_or_default().char_indices() {
        if c == quote && slashes <= depth {
            return from + n - slashes;
        }
        slashes = if c == '\\' { slashes + 1 } else { 0 };
    }
    text.len()
}

/// Where the quoted value behind the sign at `at` begins and ends, in bytes.
fn value(text: &str, at: usize) -> Option<(usize, usize)> {
    let is_pair = text.as_bytes().get(at) == Some(&b':');
    let behind = |from: usize| {
        let rest = text.get(from..)?;
        Some(text.len() - rest.trim_start().len())
    };
    let start = behind(at + 1)?;
    if text.get(start..)?.starts_with('[') {
        // Every value of a list.
        let mut end = behind(start + 1)?;
        quote_at(text, end)?;
        while let Some(c) = next_char(text, end)
            && c != ']'
        {
            end = quotes(text, end).map_or_else(|| past(text, end, c), |quotes| quotes.end);
        }
        return Some((start, end));
    }
    let mut end = quotes(text, start)?.end;
    // What is written on to the quotes belongs to it, for a shell in quotes of its own too.
    let (ends, mut all_closed) = (if is_pair { ",;}])&|\\\"'" } else { ";&|" }, true);
    while let Some(c) = next_char(text, end) {
        if c.is_whitespace() || ends.contains(c) {
            break;
        }
        let more = if all_closed { quotes(text, end) } else { None };
        all_closed &= more.as_ref().is_none_or(|more| more.closed);
        end = more.filter(|more| more.closed).map_or_else(|| past(text, end, c), |more| more.end);
    }
    Some((start, end))
}

fn next_char(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Behind this character, and the backslashes that follow one.
fn past(text: &str, at: usize, c: char) -> usize {
    let run = |rest: &str| rest.len() - rest.trim_start_matches('\\').len();
    if c == '\\' { at + text.get(at..).map_or(1, run) } else { at + c.len_utf8() }
}

/// The quote that begins here, and how many backslashes are before it: text in text in quotes.
fn quote_at(text: &str, at: usize) -> Option<(char, usize)> {
    let rest = text.get(at..)?;
    let bare = rest.trim_start_matches('\\');
    let quote = bare.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some((quote, rest.len() - bare.len()))
}

/// Where text in quotes ends, and whether it is closed there: else it is all of the text.
struct Quotes {
    end: usize,
    closed: bool,
}

/// What is in quotes from here, where that is anything.
fn quotes(text: &str, at: usize) -> Option<Quotes> {
    let (quote, depth) = quote_at(text, at)?;
    let mut slashes = 0;
    let begin = at + depth + 1;
    for (n, c) in text.get(begin..)?.char_indices() {
        if c == '\\' {
            slashes += 1;
            continue;
        }
        // Each text in a text doubles its backslashes, and gives one to each quote.
        if c == quote && slashes % (2 * (depth + 1)) == depth {
            return Some(Quotes { end: begin + n + 1, closed: true });
        }
        slashes = 0;
    }
    Some(Quotes { end: text.len(), closed: false })
}
