//! A page of text: headings, facts, wrapped lines. Everything from outside is made clean here.

use ratatui::style::Style;

use super::paint::Canvas;
use super::theme::Look;
use crate::sample::text::{char_width, clean, clean_ascii, width};

/// Pieces of one line, each in its style.
type Line = Vec<(String, Style)>;

/// Lines of a page of known width.
pub struct Doc {
    lines: Vec<Line>,
    columns: usize,
    look: Look,
}

/// Columns of the name of a fact.
const NAME: usize = 15;

impl Doc {
    /// An empty page of so many columns.
    pub fn new(columns: u16, look: &Look) -> Self {
        Self { lines: Vec::new(), columns: usize::from(columns), look: *look }
    }

    /// How it is drawn.
    pub const fn look(&self) -> &Look {
        &self.look
    }

    /// Columns.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// An empty line, except at the top.
    pub fn space(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
    }

    /// A heading.
    pub fn head(&mut self, title: &str) {
        self.space();
        self.lines.push(vec![(title.to_owned(), self.look.theme.dim)]);
    }

    /// A heading with something behind it.
    pub fn head_with(&mut self, title: &str, text: &str, style: Style) {
        self.space();
        let title = format!("{title}  ");
        self.wrapped(&[(&title, self.look.theme.dim)], text, style, width(&title));
    }

    /// A name and its value.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.fact_in(name, value, self.look.theme.text);
    }

    /// A name and its value in a style.
    pub fn fact_in(&mut self, name: &str, value: &str, style: Style) {
        let name = format!("{name:<NAME$}");
        self.wrapped(&[(&name, self.look.theme.dim)], value, style, NAME);
    }

    /// A line of text, wrapped.
    pub fn line(&mut self, text: &str, style: Style) {
        self.wrapped(&[], text, style, 0);
    }

    /// A line with something before it; what is wrapped stands below its text.
    pub fn bullet(&mut self, bullet: &str, bullet_style: Style, text: &str, style: Style) {
        let bullet = format!("{bullet} ");
        self.wrapped(&[(&bullet, bullet_style)], text, style, width(&bullet));
    }

    /// A line of pieces that are the program's own; not wrapped.
    pub fn pieces(&mut self, pieces: Vec<(String, Style)>) {
        self.lines.push(pieces);
    }

    fn wrapped(&mut self, before: &[(&str, Style)], text: &str, style: Style, indent: usize) {
        let text = if self.look.glyphs.ascii { clean_ascii(text) } else { clean(text) };
        let mut line: Line =
            before.iter().map(|(text, style)| ((*text).to_owned(), *style)).collect();
        let room = self.columns.saturating_sub(indent).max(8);
        for (n, part) in wrap(&text, room).into_iter().enumerate() {
            if n > 0 {
                line.push((" ".repeat(indent), Style::new()));
            }
            line.push((part, style));
            self.lines.push(std::mem::take(&mut line));
        }
    }

    /// Draws it from line `scroll` on; gives the lines that do not fit.
    pub fn draw(&self, canvas: &mut Canvas<'_>, scroll: usize) -> usize {
        let rows = usize::from(canvas.height());
        let overflow = self.lines.len().saturating_sub(rows);
        let lines = self.lines.iter().skip(scroll.min(overflow)).take(rows);
        for (row, line) in lines.enumerate() {
            let mut x = 0;
            for (text, style) in line {
                x = canvas.put(x, row as u16, text, *style);
            }
        }
        overflow
    }
}

/// Breaks a clean text at spaces, or within a word that is longer than a line. Never empty.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split(' ') {
        let columns = width(word);
        let gap = usize::from(!line.is_empty());
        if used + gap + columns > room && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else if gap == 1 {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            if used + char_width(c) > room {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += char_width(c);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("訓練訓練", 5), ["訓練", "訓練"]);
    }
}
