//! How figures and marks are written.

use crate::sample::text::{self, clean};

/// What the terminal takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Show {
    pub ascii: bool,
    pub color: bool,
}

/// What a piece of text means.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tone {
    Head,
    Good,
    Fair,
    Bad,
    Faint,
}

impl Show {
    /// Text in a colour, where there are colours.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Head => "1",
            Tone::Good => "32",
            Tone::Fair => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// One of two spellings.
    pub const fn pick(self, plain: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { plain }
    }

    /// Our own text in ASCII where that is wanted.
    pub fn text(self, text: &str) -> String {
        let clean = clean(text);
        if !self.ascii {
            return clean.into_owned();
        }
        let mut out = String::new();
        for c in clean.chars() {
            match c {
                '·' => out.push('|'),
                '×' | '✗' => out.push('x'),
                '±' => out.push_str("+-"),
                '–' | '−' => out.push('-'),
                '▸' => out.push('>'),
                '✓' => out.push('+'),
                '…' => out.push('~'),
                c if c.is_ascii() => out.push(c),
                _ => out.push('?'),
            }
        }
        out
    }
}

/// At most so many columns of a hostile text.
pub(super) fn cut(text: &str, columns: usize) -> String {
    text::fit(text, columns, "…", false).into_owned()
}

/// `4.06 GiB`, `116 MiB`: three figures.
pub(super) fn size(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    let mib = bytes as f64 / f64::from(1 << 20);
    if bytes > 0 && mib < 0.95 {
        format!("{:.0} KiB", mib * 1024.0)
    } else if mib < 1023.5 {
        format!("{mib:.0} MiB")
    } else if gib < 9.995 {
        format!("{gib:.2} GiB")
    } else if gib < 9999.5 {
        format!("{gib:.1} GiB")
    } else {
        format!("{:.1} TiB", gib / 1024.0)
    }
}

/// GiB with one digit, for a column of five.
pub(super) fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib < 99.95 { format!("{gib:.1}") } else { format!("{gib:.0}") }
}

/// `131,072`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `8k`, `131k`, `1M`: a context in a column of five.
pub(super) fn tokens(n: u64) -> String {
    match n {
        0..1024 => n.to_string(),
        1024..1_000_000 => format!("{}k", n / 1024),
        _ => {
            let mega = n as f64 / f64::from(1 << 20);
            if mega.fract() < 0.05 { format!("{mega:.0}M") } else { format!("{mega:.1}M") }
        }
    }
}

/// `8.03 B`, `494 M`.
pub(super) fn parameters(n: u64) -> String {
    if n >= 1_000_000_000 {
        format!("{:.2} B", n as f64 / 1e9)
    } else {
        let mega = n as f64 / 1e6;
        if mega < 9.5 { format!("{mega:.1} M") } else { format!("{mega:.0} M") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(size(4_357_873_664), "4.06 GiB");
        assert_eq!(size(121_634_816), "116 MiB");
        assert_eq!(grouped(131_072), "131,072");
        assert_eq!(tokens(131_072), "128k");
        assert_eq!(tokens(1 << 20), "1M");
        assert_eq!(parameters(8_030_261_248), "8.03 B");
    }

    #[test]
    fn names_of_files_are_harmless() {
        assert!(!clean("\x1b]0;x\x07").contains('\x1b'));
        assert_eq!(cut("abcdefgh", 4), "abc…");
    }
}
