//! Columns as wide as what is in them.

use crate::report::Style;
use crate::report::clean::{fit, width};
use crate::report::ledger::line;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub title: &'static str,
    pub right: bool,
    /// The narrowest and the widest that it gets, so that tables of one kind look alike.
    pub between: (usize, usize),
}

impl Column {
    pub(super) const fn left(title: &'static str, least: usize, most: usize) -> Self {
        Self { title, right: false, between: (least, most) }
    }

    pub(super) const fn right(title: &'static str, least: usize, most: usize) -> Self {
        Self { title, right: true, between: (least, most) }
    }
}

const GAP: &str = "  ";

/// Writes a table; the last column takes what remains of a line, or is written whole where that is
/// asked for. Cells hold clean text.
pub(super) fn write(out: &mut String, heads: &[Column], rows: &[Vec<String>], style: &Style) {
    let columns = if style.whole { usize::MAX } else { style.width };
    for row in lines(heads, rows, columns, style.ascii) {
        // They are as wide as they may be, but for what stands before the last column.
        if style.whole {
            out.push_str(&row);
            out.push('\n');
        } else {
            line(out, &row, style);
        }
    }
}

/// Lines of a table; the last column takes what remains of `columns`.
fn lines(heads: &[Column], rows: &[Vec<String>], columns: usize, ascii: bool) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::with_capacity(heads.len());
    for (at, head) in heads.iter().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
        let widest = cells.chain([width(head.title)]).max().unwrap_or(0);
        widths.push(widest.clamp(head.between.0, head.between.1));
    }
    let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
    let left = columns.saturating_sub(before + GAP.len());
    if let Some(last) = widths.last_mut() {
        *last = (*last).min(left.max(1));
    }
    let titles: Vec<String> = heads.iter().map(|head| head.title.to_owned()).collect();
    let line = |cells: &Vec<String>| {
        let mut out = String::new();
        for ((head, cell), &columns) in heads.iter().zip(cells).zip(&widths) {
            let cell = fit(cell, columns, ascii);
            let pad = " ".repeat(columns.saturating_sub(width(&cell)));
            out.push_str(GAP);
            let (first, second) = if head.right { (pad, cell) } else { (cell, pad) };
            out.push_str(&first);
            out.push_str(&second);
        }
        out.truncate(out.trim_end().len());
        out
    };
    std::iter::once(&titles).chain(rows).map(line).collect()
}
