//! A screen of cells, and the bytes that turn one screen into the next. A cell is one number of 8
//! bytes: ratatui's own takes 40 and holds text on the heap, which made emptying and comparing two
//! screens the larger part of a frame.

use std::io::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::ink::{Ink, Inks};
use super::packed::{packed, unpacked};
use crate::sample::text;

/// A text of more than one character; the rest of the number is its place in the grid.
const CLUSTER: u32 = 1 << 31;
/// The second column of a wide character.
const BEHIND: u32 = 0;
const BLANK: u32 = ' ' as u32;
/// A gap of so many equal cells is written over: that is no longer than to jump over it.
const SHORT_GAP: u16 = 3;

/// One cell: its character, and the number of its look above it. Rows of plain numbers are compared
/// as fast as memory is read.
type Cell = u64;

const EMPTY: Cell = BLANK as Cell;

const fn cell(symbol: u32, ink: u32) -> Cell {
    symbol as Cell | (ink as Cell) << 32
}

const fn symbol(cell: Cell) -> u32 {
    cell as u32
}

const fn ink(cell: Cell) -> u32 {
    (cell >> 32) as u32
}

const fn with_symbol(of: Cell, symbol: u32) -> Cell {
    cell(symbol, ink(of))
}

/// A screen.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    width: u16,
    height: u16,
    cells: Vec<Cell>,
    clusters: Vec<Box<str>>,
    inks: Inks,
    /// Whether any character takes two columns.
    wide: bool,
}

impl Grid {
    /// Empty, of a size.
    pub fn new(width: u16, height: u16) -> Self {
        let mut grid = Self::default();
        grid.clear(width, height);
        grid
    }

    /// Empties it, and gives it a size.
    pub fn clear(&mut self, width: u16, height: u16) {
        (self.width, self.height) = (width, height);
        self.cells.clear();
        self.cells.resize(usize::from(width) * usize::from(height), EMPTY);
        self.clusters.clear();
        self.inks.bound();
        self.wide = false;
    }

    /// Numbers looks as another screen does: the two are then quickly compared.
    pub fn number_as(&mut self, other: &Self) {
        self.inks.adopt(&other.inks);
    }

    /// All of it.
    pub const fn area(&self) -> Rect {
        Rect { x: 0, y: 0, width: self.width, height: self.height }
    }

    fn place(&self, x: u16, y: u16) -> Option<usize> {
        (x < self.width && y < self.height)
            .then(|| usize::from(y) * usize::from(self.width) + usize::from(x))
    }

    /// Writes a clean text from a column on, up to before column `end`; gives the column behind it.
    /// A wide character that does not fit ends it.
    pub fn put(&mut self, x: u16, y: u16, words: &str, style: Style, end: u16) -> u16 {
        let (end, ink) = (end.min(self.width), self.inks.number(Ink::of(style)));
        let Some(row) = self.place(0, y) else { return x };
        let (mut at, mut last) = (x, None);
        for c in words.chars() {
            let columns = if (' '..='~').contains(&c) { 1 } else { text::char_width(c) as u16 };
            if columns == 0 {
                if let Some(last) = last {
                    self.join(last, c);
                }
                continue;
            }
            if at.saturating_add(columns) > end {
                break;
            }
            let place = row + usize::from(at);
            self.set(place, c as u32, ink);
            for behind in 1..usize::from(columns) {
                self.set(place + behind, BEHIND, ink);
            }
            last = Some(place);
            at += columns;
        }
        at
    }

    /// Repeats a character of one column up to before column `end`.
    pub fn fill(&mut self, x: u16, y: u16, glyph: &str, style: Style, end: u16) {
        let (end, ink) = (end.min(self.width), self.inks.number(Ink::of(style)));
        let (Some(row), Some(c)) = (self.place(0, y), glyph.chars().next()) else { return };
        for at in x..end {
            self.set(row + usize::from(at), c as u32, ink);
        }
    }

    /// Sets one cell, and what is left of a wide character that it cuts.
    fn set(&mut self, place: usize, symbol_of: u32, ink: u32) {
        if symbol_of == BEHIND {
            self.wide = true;
        }
        if self.wide {
            let is_behind = |cell: &&mut Cell| symbol(**cell) == BEHIND;
            let cuts =
                symbol_of != BEHIND && self.cells.get_mut(place).is_some_and(|c| is_behind(&c));
            if cuts && let Some(base) = place.checked_sub(1).and_then(|p| self.cells.get_mut(p)) {
                *base = with_symbol(*base, BLANK);
            }
            if let Some(next) = self.cells.get_mut(place + 1).filter(is_behind) {
                *next = with_symbol(*next, BLANK);
            }
        }
        if let Some(to) = self.cells.get_mut(place) {
            *to = cell(symbol_of, ink);
        }
    }

    /// Puts a mark on the character before it.
    fn join(&mut self, place: usize, mark: char) {
        let Some(base) = self.cells.get(place).copied() else { return };
        let mut joined = String::new();
        match self.clusters.get((symbol(base) & !CLUSTER) as usize) {
            Some(known) if symbol(base) & CLUSTER != 0 => joined.push_str(known),
            _ => joined.extend(char::from_u32(symbol(base))),
        }
        joined.push(mark);
        if let Some(to) = self.cells.get_mut(place) {
            *to = with_symbol(base, CLUSTER | self.clusters.len() as u32);
            self.clusters.push(joined.into());
        }
    }

    /// Adds a style to a piece of a row.
    pub fn tint(&mut self, x: u16, y: u16, width: u16, style: Style) {
        let end = x.saturating_add(width).min(self.width);
        let (Some(from), true) = (self.place(x, y), x < end) else { return };
        let Some(cells) = self.cells.get_mut(from..from + usize::from(end - x)) else { return };
        for to in cells {
            let mut tinted = self.inks.get(ink(*to));
            tinted.patch(style);
            *to = cell(symbol(*to), self.inks.number(tinted));
        }
    }

    /// Puts a ground and an ink where there is none but the terminal's own.
    pub fn lay(&mut self, paper: Style) {
        let (fore, back) = (paper.fg.map_or(0, packed), paper.bg.map_or(0, packed));
        if (fore, back) == (0, 0) {
            return;
        }
        let laid = |ink: Ink| Ink {
            fore: if ink.fore == 0 { fore } else { ink.fore },
            back: if ink.back == 0 { back } else { ink.back },
            ..ink
        };
        let numbers: Vec<u32> = (0..self.inks.len())
            .map(|number| self.inks.number(laid(self.inks.get(number))))
            .collect();
        for to in &mut self.cells {
            let number = numbers.get(ink(*to) as usize).copied().unwrap_or_default();
            *to = cell(symbol(*to), number);
        }
    }

    /// Empties one cell.
    pub fn erase(&mut self, x: u16, y: u16) {
        if let Some(place) = self.place(x, y) {
            self.set(place, BLANK, 0);
        }
    }

    fn symbol(&self, cell: Cell, out: &mut Vec<u8>) {
        if symbol(cell) & CLUSTER != 0 {
            let known = self.clusters.get((symbol(cell) & !CLUSTER) as usize);
            out.extend_from_slice(known.map_or(b" ", |text| text.as_bytes()));
        } else if let Some(c) = char::from_u32(symbol(cell)) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Whether a cell shows what one of another screen does; `agree` says that both number looks
    /// alike.
    fn same(&self, own: Cell, other: &Self, others: Cell, agree: bool) -> bool {
        let inks = if agree {
            ink(own) == ink(others)
        } else {
            self.inks.get(ink(own)) == other.inks.get(ink(others))
        };
        if symbol(own) & symbol(others) & CLUSTER == 0 {
            return inks && symbol(own) == symbol(others);
        }
        let text = |grid: &'_ Self, cell: Cell| {
            grid.clusters.get((symbol(cell) & !CLUSTER) as usize).cloned()
        };
        inks && text(self, own) == text(other, others)
    }

    /// Copies it onto a part of a buffer.
    pub fn copy_to(&self, buffer: &mut Buffer, area: Rect) {
        let mut bytes = Vec::new();
        for y in 0..self.height.min(area.height) {
            for x in 0..self.width.min(area.width) {
                let Some(cell) = self.place(x, y).and_then(|place| self.cells.get(place)) else {
                    continue;
                };
                let Some(to) = buffer.cell_mut((area.x + x, area.y + y)) else { continue };
                to.reset();
                if symbol(*cell) == BEHIND {
                    continue;
                }
                bytes.clear();
                self.symbol(*cell, &mut bytes);
                to.set_symbol(&String::from_utf8_lossy(&bytes));
                let ink = self.inks.get(ink(*cell));
                to.fg = unpacked(ink.fore);
                to.bg = unpacked(ink.back);
                to.modifier = Modifier::from_bits_truncate(ink.modifier as u16);
            }
        }
    }
}

/// Writes what makes a terminal that shows `before` show `after`; without `before` it shows
/// something unknown. Leaves plain ink behind.
pub fn difference(before: Option<&Grid>, after: &Grid, out: &mut Vec<u8>) {
    let before = before.filter(|before| before.area() == after.area());
    let blank = Grid::default();
    let mut pen = Pen { out, ink: Ink::default(), at: None };
    if before.is_none() {
        pen.out.extend_from_slice(b"\x1b[0m\x1b[2J");
    }
    let shown = before.unwrap_or(&blank);
    let agree = after.inks.agree(&shown.inks);
    let width = usize::from(after.width);
    for y in 0..after.height {
        let from = usize::from(y) * width;
        let new = after.cells.get(from..from + width).unwrap_or_default();
        let old = shown.cells.get(from..from + width);
        // Most rows are as they were.
        if agree && old == Some(new) && after.clusters.is_empty() {
            continue;
        }
        for (x, cell) in new.iter().enumerate() {
            let was = old.and_then(|old| old.get(x)).copied().unwrap_or(EMPTY);
            if symbol(*cell) != BEHIND && !after.same(*cell, shown, was, agree) {
                pen.go((x as u16, y), after, new);
                pen.draw(after, *cell);
                let wide = new.get(x + 1).is_some_and(|next| symbol(*next) == BEHIND);
                pen.at = Some((x as u16 + 1 + u16::from(wide), y));
            }
        }
    }
    pen.ink(Ink::default());
}

/// Where the cursor stands, and with what it writes.
struct Pen<'a> {
    out: &'a mut Vec<u8>,
    ink: Ink,
    at: Option<(u16, u16)>,
}

impl Pen<'_> {
    /// Moves the cursor, or writes over a short gap.
    fn go(&mut self, to: (u16, u16), grid: &Grid, row: &[Cell]) {
        match self.at {
            Some(at) if at == to => {}
            // In the last column the cursor waits: where it is then, terminals do not agree.
            Some((x, y)) if y == to.1 && x < to.0 && usize::from(x) < row.len() => {
                let gap = row.get(usize::from(x)..usize::from(to.0)).unwrap_or_default();
                let plain = |cell: &Cell| {
                    (0x20..0x7f).contains(&symbol(*cell)) && grid.inks.get(ink(*cell)) == self.ink
                };
                if to.0 - x <= SHORT_GAP && gap.iter().all(plain) {
                    self.out.extend(gap.iter().map(|cell| symbol(*cell) as u8));
                } else if to.0 - x == 1 {
                    self.out.extend_from_slice(b"\x1b[C");
                } else {
                    let _ = write!(self.out, "\x1b[{}C", to.0 - x);
                }
            }
            _ => {
                let _ = write!(self.out, "\x1b[{};{}H", to.1 + 1, to.0 + 1);
            }
        }
    }

    fn draw(&mut self, grid: &Grid, cell: Cell) {
        self.ink(grid.inks.get(ink(cell)));
        grid.symbol(cell, self.out);
    }

    fn ink(&mut self, ink: Ink) {
        let before = std::mem::replace(&mut self.ink, ink);
        if before == ink {
            return;
        }
        if ink == Ink::default() {
            self.out.extend_from_slice(b"\x1b[m");
            return;
        }
        self.out.extend_from_slice(b"\x1b[");
        let from = self.out.len();
        let mut had = before;
        if before.modifier & !ink.modifier != 0 {
            self.out.extend_from_slice(b"0;");
            had = Ink::default();
        }
        for (bit, code) in SGR {
            if ink.modifier & !had.modifier & u32::from(bit.bits()) != 0 {
                let _ = write!(self.out, "{code};");
            }
        }
        if ink.fore != had.fore {
            color(self.out, ink.fore, 30);
        }
        if ink.back != had.back {
            color(self.out, ink.back, 40);
        }
        // The last separator becomes the end.
        if self.out.len() > from {
            self.out.pop();
        }
        self.out.push(b'm');
    }
}

const SGR: [(Modifier, u8); 9] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

/// A colour's code and a separator. `base` is 30 in front and 40 behind.
fn color(out: &mut Vec<u8>, color: u32, base: u32) {
    let _ = match unpacked(color) {
        Color::Reset => write!(out, "{};", base + 9),
        Color::Indexed(n) => write!(out, "{};5;{n};", base + 8),
        Color::Rgb(r, g, b) => write!(out, "{};2;{r};{g};{b};", base + 8),
        _ if color <= 8 => write!(out, "{};", base + color - 1),
        _ => write!(out, "{};", base + 60 + color - 9),
    };
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
