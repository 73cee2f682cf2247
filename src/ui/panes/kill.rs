//! The kill dialog, above the page.
//!
//! ```text
//! ┌ End 2 processes, 44.2 GiB on GPU 0,1 ────────────────────────────────┐
//! │  40011  bo   VLLM::EngineCore   22.1 GiB   zombie: launcher 39980 gone│
//! │  TERM, then KILL after 5 s.     y  go     d  dry run     esc  leave   │
//! └──────────────────────────────────────────────────────────────────────┘
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Scene;
use crate::sample::text::{clean, width};
use crate::ui::doc::wrap;
use crate::ui::kill::{Dialog, DialogRow, PRESETS, Phase, Proof, Typed};
use crate::ui::paint::Canvas;

/// Below this width note and keys do not fit on one line.
const NARROW: u16 = 60;

/// Draws it over the middle of the screen.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    if scene.app.choosing {
        return choose(canvas);
    }
    let Some(dialog) = &scene.app.kill else { return };
    let notes: Vec<usize> = dialog.rows.iter().map(|row| row.note.chars().count()).collect();
    let wish = 53 + notes.into_iter().max().unwrap_or(0).clamp(18, 60);
    let columns = (wish as u16).min(canvas.width().saturating_sub(2)).max(20);
    let narrow = columns < NARROW || !note_fits(dialog, columns.saturating_sub(2));
    let inside = (columns.saturating_sub(2), canvas.height().saturating_sub(2));
    let lines = body_lines(dialog, narrow, inside);
    let height = (lines as u16 + 2).min(canvas.height());
    let mut inner = frame(canvas, (columns, height), &dialog.title);
    let rows = inner.height();
    let bottom = bottom_lines(dialog, narrow, inside.0) as u16;
    let list = rows.saturating_sub(bottom);
    let y = targets(&mut inner, dialog, list);
    match &dialog.phase {
        Phase::Asking => asking(&mut inner, dialog, rows.saturating_sub(bottom).min(y), narrow),
        Phase::Running(steps) => {
            let y = progress(&mut inner, steps, y + 1, rows.saturating_sub(1));
            let dim = inner.look.theme.dim;
            inner.put(
                1,
                y.min(rows.saturating_sub(1)),
                "waiting    esc  send no further signal",
                dim,
            );
        }
        Phase::Done { steps, proof } => done(&mut inner, steps, proof, y + 1),
    }
}

/// Lines that the whole dialog would like.
fn body_lines(dialog: &Dialog, narrow: bool, (columns, rows): (u16, u16)) -> usize {
    let bottom = bottom_lines(dialog, narrow, columns);
    let room = usize::from(rows).saturating_sub(bottom);
    items(dialog, columns, room).iter().map(Item::lines).sum::<usize>() + bottom
}

fn bottom_lines(dialog: &Dialog, narrow: bool, columns: u16) -> usize {
    match &dialog.phase {
        Phase::Asking => 2 + usize::from(dialog.typed.is_some()) + usize::from(narrow),
        Phase::Running(steps) => steps.len().clamp(1, 8) + 2,
        Phase::Done { steps, proof } => {
            let sentence = sentence(proof, columns).len();
            steps.len().clamp(1, 8) + 3 + sentence + proof.remaining.len()
        }
    }
}

/// Whom, or who is left out; with the lines of why.
enum Item<'a> {
    /// The note stands beside it, or beneath it in lines of its own.
    Target(&'a DialogRow, Vec<String>),
    LeftOut(Vec<String>),
}

impl Item<'_> {
    fn lines(&self) -> usize {
        match self {
            Self::Target(_, beneath) => 1 + beneath.len(),
            Self::LeftOut(lines) => lines.len(),
        }
    }
}

const LEFT_OUT: &str = "left out: ";
/// Where the user, and where lines beneath a target begin.
const INDENT: u16 = 10;
/// Where the note begins, where it stands beside.
const NOTE: u16 = 49;
/// Below this the user has no column and the note no room beside.
const WIDE: u16 = 56;
/// More lines of one reason are cut.
const MOST_LINES: usize = 4;

/// In no more than `room` lines where that is possible: else each has one line, which is cut.
fn items(dialog: &Dialog, columns: u16, room: usize) -> Vec<Item<'_>> {
    let all = wrapped(dialog, columns, MOST_LINES);
    let fits = all.iter().map(Item::lines).sum::<usize>() <= room;
    if fits { all } else { wrapped(dialog, columns, 0) }
}

fn wrapped<'a>(dialog: &'a Dialog, columns: u16, most: usize) -> Vec<Item<'a>> {
    let lines = |text: &str, indent: u16| {
        let room = usize::from(columns.saturating_sub(indent + 1)).max(8);
        let mut lines = wrap(&clean(text), room);
        lines.truncate(most);
        lines
    };
    let beside = if columns >= WIDE { usize::from(columns.saturating_sub(NOTE)) } else { 0 };
    let target = |row: &'a DialogRow| {
        let fits = width(&row.note) <= beside;
        Item::Target(row, if fits { Vec::new() } else { lines(&row.note, INDENT) })
    };
    let left_out = |text: &String| match most {
        0 => Item::LeftOut(vec![text.clone()]),
        _ => Item::LeftOut(lines(text, 1 + LEFT_OUT.len() as u16)),
    };
    dialog.rows.iter().map(target).chain(dialog.refused.iter().map(left_out)).collect()
}

/// Whom; who is left out. Gives the row below.
fn targets(canvas: &mut Canvas<'_>, dialog: &Dialog, rows: u16) -> u16 {
    let theme = canvas.look.theme;
    let room = usize::from(rows);
    let items = items(dialog, canvas.width(), room);
    let all: usize = items.iter().map(Item::lines).sum();
    let (mut y, mut shown) = (0, 0);
    for item in &items {
        // The last line says how many are not shown.
        let end = usize::from(y) + item.lines();
        if end > room || (all > room && end == room && shown + 1 < items.len()) {
            break;
        }
        y = draw_item(canvas, item, y);
        shown += 1;
    }
    if shown < items.len() && usize::from(y) < room.max(1) {
        canvas.put(1, y, &format!("and {} more", items.len() - shown), theme.dim);
        y += 1;
    }
    y
}

/// Gives the row below.
fn draw_item(canvas: &mut Canvas<'_>, item: &Item<'_>, y: u16) -> u16 {
    let theme = canvas.look.theme;
    let (mut y, x, lines) = match item {
        Item::Target(row, beneath) => {
            target(canvas, row, beneath.is_empty(), y);
            (y + 1, INDENT, beneath)
        }
        Item::LeftOut(lines) => (y, canvas.put(1, y, LEFT_OUT, theme.warn), lines),
    };
    let style = if matches!(item, Item::Target(..)) { theme.dim } else { theme.text };
    for line in lines {
        canvas.put_foreign(x, y, line, style, canvas.width().saturating_sub(x + 1));
        y += 1;
    }
    y
}

fn target(canvas: &mut Canvas<'_>, row: &DialogRow, noted: bool, y: u16) {
    let theme = canvas.look.theme;
    let wide = canvas.width() >= WIDE;
    canvas.put_right(8, y, &row.pid.to_string(), theme.strong);
    let mut x = INDENT;
    if wide {
        canvas.put_foreign(x, y, &row.user, theme.dim, 8);
        x += 9;
    }
    let command = if wide { 18 } else { canvas.width().saturating_sub(x + 11) };
    canvas.put_foreign(x, y, &row.command, theme.text, command);
    x += command;
    canvas.put_right(x + 10, y, &row.bytes, theme.strong);
    if noted && wide {
        canvas.put_foreign(NOTE, y, &row.note, theme.dim, canvas.width().saturating_sub(NOTE));
    }
}

/// What can be pressed while it asks, and what that does.
fn keys(dialog: &Dialog) -> &'static [(&'static str, &'static str)] {
    match &dialog.typed {
        _ if dialog.order.targets.is_empty() => &[("esc", "leave")],
        Some(typed) if typed.is_given() => &[("Enter", "go"), ("esc", "leave")],
        Some(_) => &[("esc", "leave")],
        None => &[("y", "go"), ("d", "dry run"), ("esc", "leave")],
    }
}

/// Where the keys begin, at the right end of so many columns.
fn keys_at(dialog: &Dialog, columns: u16) -> u16 {
    let taken: usize = keys(dialog).iter().map(|(key, word)| key.len() + word.len() + 6).sum();
    columns.saturating_sub(1).saturating_sub(taken as u16 - 4)
}

/// Whether the note has room before the keys; else it has a line of its own.
fn note_fits(dialog: &Dialog, columns: u16) -> bool {
    width(&dialog.note) <= usize::from(keys_at(dialog, columns).saturating_sub(3))
}

fn asking(canvas: &mut Canvas<'_>, dialog: &Dialog, y: u16, narrow: bool) {
    let theme = canvas.look.theme;
    // With nobody to send it to there is nothing to say of a signal.
    let note = if dialog.order.targets.is_empty() { "" } else { dialog.note.as_str() };
    let end = canvas.width().saturating_sub(1);
    let mut y = y + 1;
    if let Some(typed) = &dialog.typed {
        type_it(canvas, typed, y);
        y += 1;
    }
    if narrow {
        canvas.put_foreign(1, y, note, theme.text, end);
        y += 1;
    }
    let mut x = keys_at(dialog, canvas.width());
    if !narrow {
        canvas.put_foreign(1, y, note, theme.text, x.saturating_sub(3));
    }
    for (key, word) in keys(dialog) {
        x = canvas.put(x, y, key, theme.key) + 2;
        x = canvas.put(x, y, word, theme.dim) + 4;
    }
}

fn type_it(canvas: &mut Canvas<'_>, typed: &Typed, y: u16) {
    let theme = canvas.look.theme;
    let x = canvas.put(1, y, "protected: type ", theme.warn);
    let x = canvas.put_foreign(x, y, &typed.word, theme.strong, 24);
    let x = canvas.put(x, y, " to end it: ", theme.warn);
    let x = canvas.put_foreign(x, y, &typed.entered, theme.text, 24);
    canvas.cell(x, y, " ", Style::new().add_modifier(ratatui::style::Modifier::REVERSED));
}

/// The last things that happened, up to row `until`; gives the row below.
fn progress(canvas: &mut Canvas<'_>, steps: &[String], y: u16, until: u16) -> u16 {
    let theme = canvas.look.theme;
    let room = usize::from(until.saturating_sub(y)).min(8);
    let mut y = y;
    for step in steps.iter().skip(steps.len().saturating_sub(room)) {
        let x = canvas.put(1, y, canvas.look.glyphs.dot, theme.dim) + 1;
        canvas.put_foreign(x, y, step, theme.text, canvas.width().saturating_sub(x + 1));
        y += 1;
    }
    y
}

/// In lines: what is not known, and why, takes more than one.
fn sentence(proof: &Proof, columns: u16) -> Vec<String> {
    let mut lines = wrap(&clean(&proof.sentence), usize::from(columns.saturating_sub(4)).max(8));
    lines.truncate(MOST_LINES);
    lines
}

fn done(canvas: &mut Canvas<'_>, steps: &[String], proof: &Proof, y: u16) {
    let theme = canvas.look.theme;
    let rows = canvas.height();
    let sentence = sentence(proof, canvas.width());
    let below = (sentence.len() + proof.remaining.len()) as u16 + 2;
    let room = canvas.width().saturating_sub(2);
    let mut y = progress(canvas, steps, y, rows.saturating_sub(below));
    let (sign, style) = if proof.complete { ("", theme.good) } else { ("! ", theme.warn) };
    let x = canvas.put(1, y, sign, style);
    for line in &sentence {
        canvas.put_foreign(x, y, line, style, room);
        y += 1;
    }
    for line in &proof.remaining {
        let x = canvas.put(1, y, canvas.look.glyphs.prompt, theme.dim) + 1;
        canvas.put_foreign(x, y, line, theme.text, room.saturating_sub(x));
        y += 1;
    }
    let copy = if proof.remaining.is_empty() { "" } else { "    y  copy the command" };
    canvas.put(1, rows.saturating_sub(1).max(y), &format!("esc  leave{copy}"), theme.dim);
}

/// How hard: for `X`.
fn choose(canvas: &mut Canvas<'_>) {
    let size = (66.min(canvas.width()), PRESETS.len() as u16 + 4);
    let mut inner = frame(canvas, size, "How to end it");
    let theme = inner.look.theme;
    for (n, (key, _, words)) in PRESETS.iter().enumerate() {
        inner.put(1, n as u16, &key.to_string(), theme.key);
        inner.put(4, n as u16, words, theme.text);
    }
    inner.put(
        1,
        PRESETS.len() as u16 + 1,
        "nothing is sent before you have seen to whom    esc  leave",
        theme.dim,
    );
}

/// An empty box in the middle of the screen; gives its inside.
fn frame<'c>(canvas: &'c mut Canvas<'_>, (width, height): (u16, u16), title: &str) -> Canvas<'c> {
    let screen = canvas.area();
    let (width, height) = (width.min(screen.width), height.min(screen.height));
    let area = Rect {
        x: screen.x + (screen.width - width) / 2,
        // Its top stays where it is when it grows.
        y: screen.y + (screen.height / 4).min(screen.height - height),
        width,
        height,
    };
    // A column of air on both sides: nothing seems to belong to what lies below.
    let margin = u16::from(area.x > screen.x);
    let air = Rect { x: area.x - margin, width: area.width + 2 * margin, ..area };
    canvas.part(air.intersection(screen)).clear();
    let mut outer = canvas.part(area);
    let (theme, glyphs) = (outer.look.theme, outer.look.glyphs);
    let (right, bottom) = (width.saturating_sub(1), height.saturating_sub(1));
    for y in [0, bottom] {
        outer.fill(1, right, y, glyphs.rule, theme.text);
    }
    for y in 1..bottom {
        outer.cell(0, y, glyphs.bar, theme.text);
        outer.cell(right, y, glyphs.bar, theme.text);
    }
    let corners = [(0, 0), (right, 0), (0, bottom), (right, bottom)];
    for (corner, (x, y)) in glyphs.corners.iter().zip(corners) {
        outer.cell(x, y, corner, theme.text);
    }
    let x = outer.put(1, 0, " ", theme.text);
    let x = outer.put_foreign(x, 0, title, theme.strong, width.saturating_sub(4));
    outer.put_within(x, 0, " ", theme.text, right);
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    canvas.part(inside)
}
