//! Writing into the buffer: clipped, right-aligned, clean, without building strings to throw away.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::Grid;
use super::theme::Look;
use crate::sample::text;

/// A piece of the screen to write on, in coordinates of its own. Nothing leaves its area.
pub struct Canvas<'a> {
    grid: &'a mut Grid,
    area: Rect,
    /// How it is drawn.
    pub look: &'a Look,
}

impl<'a> Canvas<'a> {
    /// On the whole of it.
    pub const fn new(grid: &'a mut Grid, look: &'a Look) -> Self {
        let area = grid.area();
        Self { grid, area, look }
    }

    /// A part of this one, given in the screen's coordinates.
    pub fn part(&mut self, area: Rect) -> Canvas<'_> {
        let area = area.intersection(self.grid.area());
        Canvas { grid: self.grid, area, look: self.look }
    }

    /// Where it lies on the screen.
    pub const fn area(&self) -> Rect {
        self.area
    }

    /// Columns.
    pub const fn width(&self) -> u16 {
        self.area.width
    }

    /// Rows.
    pub const fn height(&self) -> u16 {
        self.area.height
    }

    /// Writes the program's own text; gives the column behind it.
    pub fn put(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        self.put_within(x, y, text, style, self.area.width)
    }

    /// The same, up to the column `end`.
    pub fn put_within(&mut self, x: u16, y: u16, text: &str, style: Style, end: u16) -> u16 {
        let end = end.min(self.area.width);
        if y >= self.area.height || x >= end {
            return x;
        }
        let (at, row) = (self.area.x + x, self.area.y + y);
        // Nothing of what lay there before shows through.
        let style = Style::reset().patch(style);
        let after = self.grid.put(at, row, text, style, self.area.x + end);
        after - self.area.x
    }

    /// Writes the program's own text so that it ends before column `end`.
    pub fn put_right(&mut self, end: u16, y: u16, text: &str, style: Style) -> u16 {
        let columns = u16::try_from(text::width(text)).unwrap_or(u16::MAX);
        let start = end.saturating_sub(columns);
        self.put_within(start, y, text, style, end);
        start
    }

    /// Writes text from outside in `columns`, cut where it is longer; gives the column behind it.
    pub fn put_foreign(&mut self, x: u16, y: u16, text: &str, style: Style, columns: u16) -> u16 {
        let columns = columns.min(self.area.width.saturating_sub(x));
        let (dots, ascii) = (self.look.glyphs.ellipsis, self.look.glyphs.ascii);
        let fitted = text::fit(text, usize::from(columns), dots, ascii);
        self.put(x, y, &fitted, style)
    }

    /// Repeats a glyph from column `from` to before `to`; gives `to`.
    pub fn fill(&mut self, from: u16, to: u16, y: u16, glyph: &str, style: Style) -> u16 {
        let end = to.min(self.area.width);
        if y < self.area.height && from < end {
            let (x, row) = (self.area.x + from, self.area.y + y);
            self.grid.fill(x, row, glyph, Style::reset().patch(style), self.area.x + end);
        }
        to
    }

    /// One cell.
    pub fn cell(&mut self, x: u16, y: u16, glyph: &str, style: Style) {
        self.put_within(x, y, glyph, style, x.saturating_add(1));
    }

    /// A rule over the whole width.
    pub fn rule(&mut self, y: u16) {
        let (glyph, style) = (self.look.glyphs.rule, self.look.theme.rule);
        let end = self.area.width.saturating_sub(1);
        self.fill(1, end.max(1), y, glyph, style);
    }

    /// Adds a style to a whole row.
    pub fn tint(&mut self, y: u16, style: Style) {
        if y < self.area.height {
            self.grid.tint(self.area.x, self.area.y + y, self.area.width, style);
        }
    }

    /// Empties the area: for what lies above other things.
    pub fn clear(&mut self) {
        for y in self.area.top()..self.area.bottom() {
            for x in self.area.left()..self.area.right() {
                self.grid.erase(x, y);
            }
        }
    }
}
