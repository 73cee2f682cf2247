//! Text from outside, made fit for a terminal: nothing in it can move the cursor, change the order
//! of what is read, or take another width than it seems to.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use serde_json::ser::Formatter;
use unicode_width::UnicodeWidthChar;

/// Stands for what cannot be shown as it is.
pub const REPLACEMENT: char = '\u{fffd}';

/// More marks on one letter than any script needs are an attack on the line above.
const MARKS_PER_LETTER: usize = 2;

/// The text with every character that a terminal would obey, hide or measure in its own way
/// replaced by a visible one. Tabs become spaces; other control characters become their pictures
/// (`␛`); invisible and direction-changing characters become `�`. Idempotent.
pub fn clean(text: &str) -> Cow<'_, str> {
    // What nearly every name and command line is made of.
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Cleaned::new(text).collect())
}

/// The name of a file, clean: a name can hold everything, a line break as well.
pub fn clean_path(path: impl AsRef<Path>) -> String {
    clean(&path.as_ref().to_string_lossy()).into_owned()
}

/// A word for a shell: quoted where it needs to be, and nothing in it that is not [`clean`].
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    match word.as_ref().to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if clean(text) == text => format!("'{}'", text.replace('\'', "'\\''")),
        _ => bytes_word(word.as_ref().as_bytes()),
    }
}

/// `$'…'` with a number for every byte that cannot stand for itself.
fn bytes_word(bytes: &[u8]) -> String {
    let byte = |b: &u8| match b {
        b'\'' | b'\\' => format!("\\x{b:02x}"),
        b' '..=b'~' => char::from(*b).to_string(),
        _ => format!("\\x{b:02x}"),
    };
    format!("$'{}'", bytes.iter().map(byte).collect::<String>())
}

/// JSON whose strings say the same and that is fit for a terminal: what [`clean`] would replace is
/// written as an escape. (Below a blank a writer of JSON has done so already.)
pub fn clean_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' || replace(c) == c {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out
}

/// Writes JSON on one line as [`clean_json`] makes it.
///
/// # Errors
/// Where the output fails, or the value is none of JSON.
pub fn write_json(out: impl io::Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Harmless))
}

struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        // What nearly every name and command line is made of.
        if fragment.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return out.write_all(fragment.as_bytes());
        }
        out.write_all(clean_json(fragment).as_bytes())
    }
}

/// Words in lines of no more than `columns`; a longer word has a line of its own.
pub fn wrap(clean: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// [`clean`], and `?` for every character outside ASCII, one for each column.
pub fn clean_ascii(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Cleaned::new(text).flat_map(ascii_columns).collect())
}

fn ascii_columns(c: char) -> impl Iterator<Item = char> {
    let (shown, columns) = if c.is_ascii() { (c, 1) } else { ('?', char_width(c)) };
    std::iter::repeat_n(shown, columns)
}

/// Columns that a clean text takes.
pub fn width(clean: &str) -> usize {
    if clean.is_ascii() { clean.len() } else { clean.chars().map(char_width).sum() }
}

/// Makes a hostile text clean and fit for `columns`, with `ellipsis` at its end where it is cut.
/// Reads no more of it than is shown.
pub fn fit<'a>(text: &'a str, columns: usize, ellipsis: &str, ascii: bool) -> Cow<'a, str> {
    let plain = |bytes: &[u8]| bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    if text.len() <= columns && plain(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut used) = (String::new(), 0);
    // The length and the columns of what remains if the rest has to go.
    let (mut keep, room) = (0, columns.saturating_sub(width(ellipsis)));
    if text.as_bytes().get(..=columns).is_some_and(plain) {
        // One column more than there is room for, each of one letter.
        out.push_str(text.get(..room).unwrap_or_default());
        if room + width(ellipsis) <= columns {
            out.push_str(ellipsis);
        }
        return Cow::Owned(out);
    }
    let ascii_chars = |c| if ascii && !char::is_ascii(&c) { '?' } else { c };
    for c in Cleaned::new(text) {
        let columns_of_c = if ascii { 1 } else { char_width(c) };
        if used + columns_of_c > columns {
            out.truncate(keep);
            if room + width(ellipsis) <= columns {
                out.push_str(ellipsis);
            }
            return Cow::Owned(out);
        }
        out.push(ascii_chars(c));
        used += columns_of_c;
        if used <= room {
            keep = out.len();
        }
    }
    Cow::Owned(out)
}

/// Columns of one clean character.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// The characters of a text, each replaced where it has to be.
struct Cleaned<'a> {
    rest: std::str::Chars<'a>,
    marks: usize,
    at_start: bool,
}

impl<'a> Cleaned<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), marks: 0, at_start: true }
    }
}

impl Iterator for Cleaned<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let c = replace(self.rest.next()?);
            if char_width(c) > 0 {
                (self.marks, self.at_start) = (0, false);
                return Some(c);
            }
            if std::mem::replace(&mut self.at_start, false) {
                return Some(REPLACEMENT);
            }
            self.marks += 1;
            if self.marks <= MARKS_PER_LETTER {
                return Some(c);
            }
        }
    }
}

fn replace(c: char) -> char {
    match c {
        '\t' | '\u{a0}' => ' ',
        // The pictures of the control characters.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(REPLACEMENT),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}'
        // Invisible: fillers, joiners, marks of direction, separators of lines.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        // Change the width of what stands before them, not alike everywhere.
        | '\u{fe00}'..='\u{fe0f}' | '\u{20e3}' | '\u{1f3fb}'..='\u{1f3ff}' => REPLACEMENT,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_in_a_text_reaches_the_terminal_as_a_command() {
        assert_eq!(clean("python train.py"), "python train.py");
        assert_eq!(clean("a\x1b[2Jb"), "a␛[2Jb");
        assert_eq!(clean("a\tb\nc\r"), "a b␊c␍");
        assert_eq!(clean("\u{9b}31m"), "\u{fffd}31m");
        assert_eq!(clean("evil\u{202e}gpj.exe"), "evil\u{fffd}gpj.exe");
        assert_eq!(clean("py\u{200b}thon"), "py\u{fffd}thon");
    }

    #[test]
    fn scripts_and_marks_keep_the_grid() {
        assert_eq!(clean("訓練.py"), "訓練.py");
        assert_eq!(width("訓練.py"), 7);
        assert_eq!(clean("e\u{301}"), "e\u{301}");
        assert_eq!(clean("\u{301}e"), "\u{fffd}e");
        let zalgo = format!("a{}b", "\u{301}".repeat(40));
        assert_eq!(clean(&zalgo), "a\u{301}\u{301}b");
        assert_eq!(clean_ascii("訓 é\x1b"), "?? ??");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(fit("python train.py", 15, "…", false), "python train.py");
        assert_eq!(fit("python train.py", 9, "…", false), "python t…");
        assert_eq!(fit("訓練訓練", 5, "…", false), "訓練…");
        assert_eq!(fit("訓練訓練", 4, "…", false), "訓…");
        assert_eq!(fit("abc", 0, "…", false), "");
        assert_eq!(fit("abcdef", 4, "~", true), "abc~");
    }

    #[test]
    fn a_word_for_a_shell_is_clean_and_still_the_word() {
        assert_eq!(shell_word("a/b-1.gguf"), "a/b-1.gguf");
        assert_eq!(shell_word("a b's"), r"'a b'\''s'");
        assert_eq!(shell_word("日本"), "'日本'");
        assert_eq!(shell_word("a\x1b[2J"), r"$'a\x1b[2J'");
        assert_eq!(shell_word("a\u{202e}b'"), r"$'a\xe2\x80\xaeb\x27'");
        assert_eq!(shell_word(OsStr::from_bytes(b"a\xff")), r"$'a\xff'");
        for word in ["a\u{202e}b'", "it's", "a\nb", "\u{9b}31m\\"] {
            let line = format!("printf %s {}", shell_word(word));
            let said = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word, "{line}");
        }
    }

    #[test]
    fn json_says_the_same_and_nothing_that_a_terminal_obeys() {
        let value = serde_json::json!({ "name\u{9b}": "訓練 é\u{7f}\u{9b}31m\u{202e}\u{1f3fb}\n\u{1b}[2J" });
        let json = clean_json(&serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        assert!(json.contains("訓練 é\\u007f\\u009b31m\\u202e\\ud83c\\udffb\\n"), "{json}");
        assert!(json.lines().all(|line| clean(line) == line), "{json}");
        // The same on one line.
        let mut line = Vec::new();
        write_json(&mut line, &value).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), clean_json(&value.to_string()));
    }

    #[test]
    fn the_name_of_a_file_is_one_clean_line() {
        let name = clean_path("/tmp/a\nvramlens: fine\u{1b}[2J\u{9b}1m\u{202e}");
        assert_eq!(name, "/tmp/a␊vramlens: fine␛[2J�1m�");
        assert_eq!(clean_path(OsStr::from_bytes(b"a\xff")), "a�");
    }

    proptest! {
        #[test]
        fn clean_text_is_harmless_and_stays_as_it_is(text in any::<String>()) {
            let once = clean(&text).into_owned();
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert_eq!(&clean(&once), &once);
            prop_assert!(clean_ascii(&text).bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        }

        /// The mark belongs to a letter that is cut off: it changes nothing, and takes another way.
        #[test]
        fn plain_text_is_cut_as_any_other(text in "[ -~]{0,40}", columns in 0_usize..39) {
            prop_assume!(text.len() > columns + 1);
            let (head, tail) = text.split_at(columns + 1);
            let marked = format!("{head}\u{301}{tail}");
            prop_assert_eq!(fit(&text, columns, "…", false), fit(&marked, columns, "…", false));
        }

        #[test]
        fn a_fitted_text_fits(text in any::<String>(), columns in 0_usize..40) {
            prop_assert!(width(&fit(&text, columns, "…", false)) <= columns);
            let ascii = fit(&text, columns, "~", true);
            prop_assert!(ascii.is_ascii() && ascii.len() <= columns);
        }
    }
}
