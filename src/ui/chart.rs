//! Memory over time: one row of blocks, or several of braille. Never animated: a new sample moves
//! it by what has changed.

use ratatui::style::Style;

use super::paint::Canvas;
use super::time::ChartForm;
use crate::history::{ChartPoint, StackPoint};
use crate::units::Bytes;

/// Dots of the two columns of a braille cell, from the lowest row up.
const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

/// Draws one row of blocks, a column for each point, scaled to `whole`.
pub fn blocks(
    canvas: &mut Canvas<'_>,
    at: (u16, u16),
    (points, whole): (&[Option<ChartPoint>], Bytes),
    style: Style,
) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let steps = glyphs.levels.len() - 1;
    for (n, point) in points.iter().enumerate() {
        let x = at.0 + n as u16;
        match point {
            None => canvas.cell(x, at.1, glyphs.gap, theme.dim),
            Some(point) => {
                let level = scaled(point.used, whole, steps);
                // Something is held: it can be seen, however little it is.
                let level = if point.used > Bytes::ZERO { level.max(1) } else { level };
                canvas.cell(x, at.1, glyphs.levels[level], style);
            }
        }
    }
}

/// Draws one row of shares of a hundred.
pub fn shares(canvas: &mut Canvas<'_>, at: (u16, u16), shares: &[Option<u8>], style: Style) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let steps = glyphs.levels.len() - 1;
    for (n, share) in shares.iter().enumerate() {
        let x = at.0 + n as u16;
        match share {
            None => canvas.cell(x, at.1, glyphs.gap, theme.dim),
            Some(share) => {
                let level = (usize::from(*share) * steps).div_ceil(100).min(steps);
                canvas.cell(x, at.1, glyphs.levels[level], style);
            }
        }
    }
}

/// Draws an area of braille: two points a column, four dots a row, scaled to `whole`. What is
/// allocated is solid, what is held is a line above it: the space between is cached. Without
/// braille: the higher of the two points, in rows of blocks.
pub fn area(
    canvas: &mut Canvas<'_>,
    (points, whole): (&[Option<ChartPoint>], Bytes),
    form: ChartForm,
    style: Style,
) {
    let braille = canvas.look.glyphs.braille && form == ChartForm::Braille;
    let (columns, rows) = (canvas.width(), canvas.height());
    let steps = usize::from(rows) * 4;
    let mut before = None;
    for column in 0..columns {
        let pair = [2 * column, 2 * column + 1].map(|n| points.get(usize::from(n)).copied());
        let pair = pair.map(Option::flatten);
        if pair == [None, None] {
            let (gap, dim) = (canvas.look.glyphs.gap, canvas.look.theme.dim);
            canvas.cell(column, rows.saturating_sub(1), gap, dim);
            before = None;
            continue;
        }
        let stretches = pair.map(|point| {
            let stretch = point.map(|point| Stretch::of(point, whole, steps, before));
            before = stretch.map(|stretch| stretch.used);
            stretch
        });
        for row in 0..rows {
            if braille {
                braille_cell(canvas, (column, row), stretches, style);
            } else {
                block_cell(canvas, (column, row), (pair, whole), style);
            }
        }
    }
}

/// What one part of a stack is drawn with.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// Its pattern.
    pub glyph: &'static str,
    /// Its colour.
    pub style: Style,
}

/// Draws who held the memory, a column for each point, the named holders from the bottom up with
/// their patterns, then the others, what is nobody's, and the driver's own (`reserved`).
pub fn stacked(
    canvas: &mut Canvas<'_>,
    (points, (whole, reserved)): (&[Option<StackPoint>], (Bytes, Bytes)),
    named: &[Layer],
) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let rows = canvas.height();
    let rest = [
        Layer { glyph: glyphs.others, style: theme.text },
        Layer { glyph: glyphs.unaccounted, style: theme.unaccounted },
        Layer { glyph: glyphs.reserved, style: theme.reserved },
    ];
    for (n, point) in points.iter().enumerate() {
        let x = n as u16;
        let Some(point) = point else {
            canvas.cell(x, rows.saturating_sub(1), glyphs.gap, theme.dim);
            continue;
        };
        let parts = point.named.iter().copied().zip(named.iter().copied());
        let others = [point.others, point.unaccounted, reserved].into_iter().zip(rest);
        let parts: Vec<(Bytes, Layer)> = parts.chain(others).collect();
        let full: Bytes = parts.iter().map(|part| part.0).sum();
        // Whatever is held can be seen, and the peak's mark stands in the topmost cell.
        let least = match point.used() {
            Bytes::ZERO => 0,
            used => covered(used, whole, usize::from(rows)),
        };
        let held = parts.len() - 1;
        for level in 0..scaled(full, whole, usize::from(rows)).max(least) {
            let edge = |level: usize| u128::from(whole.0) * level as u128 / u128::from(rows.max(1));
            let cell = (edge(level), edge(level + 1));
            // The driver's own never hides a holder.
            if let Some(layer) = most_of(&parts[..held], cell).or_else(|| most_of(&parts, cell)) {
                canvas.cell(x, rows - 1 - level as u16, layer.glyph, layer.style);
            }
        }
    }
}

/// The layer that takes most of a stretch, of equal ones the lowest.
fn most_of(parts: &[(Bytes, Layer)], (from, to): (u128, u128)) -> Option<Layer> {
    let (mut sum, mut most) = (0_u128, (0_u128, None));
    for (bytes, layer) in parts {
        let begin = sum;
        sum += u128::from(bytes.0);
        let inside = sum.min(to).saturating_sub(begin.max(from));
        if inside > most.0 {
            most = (inside, Some(*layer));
        }
    }
    most.1
}

/// Steps that a share reaches into.
fn covered(bytes: Bytes, whole: Bytes, steps: usize) -> usize {
    let share = bytes.0 as f64 / whole.0.max(1) as f64;
    ((share * steps as f64).ceil() as usize).clamp(1, steps.max(1))
}

/// What one column of dots shows: solid up to `solid`, a line from `line` to before `used`.
#[derive(Clone, Copy)]
struct Stretch {
    solid: usize,
    line: usize,
    top: usize,
    used: usize,
}

impl Stretch {
    /// The line is joined to where it was `before`.
    fn of(point: ChartPoint, whole: Bytes, steps: usize, before: Option<usize>) -> Self {
        let used = scaled(point.used, whole, steps).max(usize::from(point.used > Bytes::ZERO));
        let solid = point.allocated.map_or(used, |bytes| scaled(bytes, whole, steps)).min(used);
        let before = before.unwrap_or(used);
        let line = used.saturating_sub(1).min(before);
        Self { solid, line, top: used.max(before.saturating_sub(1)), used }
    }

    const fn dot(self, level: usize) -> bool {
        level < self.solid || (level >= self.line && level < self.top)
    }
}

fn braille_cell(canvas: &mut Canvas<'_>, at: (u16, u16), pair: [Option<Stretch>; 2], style: Style) {
    let below = usize::from(canvas.height() - 1 - at.1) * 4;
    let (mut dots, mut solid) = (0_u32, false);
    for (side, stretch) in pair.iter().enumerate() {
        let Some(stretch) = stretch else { continue };
        for (n, dot) in DOTS[side].iter().enumerate() {
            if stretch.dot(below + n) {
                dots |= dot;
            }
        }
        solid |= below < stretch.solid;
    }
    if let Some(c) = char::from_u32(0x2800 + dots).filter(|_| dots != 0) {
        let style = if solid { style } else { canvas.look.theme.text };
        canvas.cell(at.0, at.1, c.encode_utf8(&mut [0; 4]), style);
    }
}

fn block_cell(
    canvas: &mut Canvas<'_>,
    (column, row): (u16, u16),
    (pair, whole): ([Option<ChartPoint>; 2], Bytes),
    style: Style,
) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let rows = usize::from(canvas.height());
    let below = rows - 1 - usize::from(row);
    let highest = |bytes: fn(&ChartPoint) -> Bytes| {
        let most = pair.iter().flatten().map(bytes).max().unwrap_or_default();
        scaled(most, whole, rows).max(usize::from(most > Bytes::ZERO))
    };
    let used = highest(|point| point.used);
    let allocated = highest(|point| point.allocated.unwrap_or(point.used));
    if below < allocated {
        canvas.cell(column, row, glyphs.holders[0], style);
    } else if below < used {
        canvas.cell(column, row, glyphs.cached, theme.dim);
    }
}

/// `bytes` in steps of `whole`, rounded, never above `steps`.
fn scaled(bytes: Bytes, whole: Bytes, steps: usize) -> usize {
    if whole.0 == 0 {
        return 0;
    }
    let share = bytes.0 as f64 / whole.0 as f64;
    ((share * steps as f64).round() as usize).min(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_of_the_layer_that_takes_most_of_it() {
        let layer = |glyph| Layer { glyph, style: Style::default() };
        let parts = [(Bytes::gib(70), layer("a")), (Bytes::gib(16), layer("b"))];
        let gib = |n: u64| u128::from(Bytes::gib(n).0);
        let glyph = |from, to| most_of(&parts, (gib(from), gib(to))).map(|layer| layer.glyph);
        assert_eq!(glyph(60, 80), Some("a"));
        assert_eq!(glyph(66, 86), Some("b"));
        assert_eq!(glyph(80, 100), Some("b"), "the topmost cell is of what reaches into it");
        assert_eq!(glyph(86, 100), None);
        // 72 and 87 of 140 GiB in seven rows are another height, as the mark of a peak has it.
        let rows = |gib: u64| covered(Bytes::gib(gib), Bytes::gib(140), 7);
        assert_eq!((rows(72), rows(87), rows(140), rows(0)), (4, 5, 7, 1));
    }
}
