//! The line of time: which moment is shown, of how much, and what happened when.
//!
//! ```text
//!  ▶ replay 03:58:11 · 42 % of 2h10m · 8×  ──↑────↓──◆2───╌╌╌──!──┃·········
//! ```

use ratatui::style::{Modifier, Style};

use super::Scene;
use crate::analyze::timeline::{Mark, MarkerKind, Timeline, cells};
use crate::ui::app::{Drawn, Hit, Page, Position};
use crate::ui::paint::Canvas;
use crate::ui::theme::Theme;
use crate::ui::words::{clock, span};

/// Below this many rows there is no room for it.
const ROWS: u16 = 12;
/// Stretches of time that the line shows of a live session, the shortest that holds the moment.
const SPANS_MS: [u64; 6] =
    [600_000, 3_600_000, 4 * 3_600_000, 12 * 3_600_000, 24 * 3_600_000, 7 * 24 * 3_600_000];

/// Whether it is shown: in a recording, and wherever the moment is not the newest.
pub fn is_shown(scene: &Scene<'_>, rows: u16) -> bool {
    let page = matches!(scene.app.page, Page::Main | Page::Detail(_));
    let held = scene.app.position != Position::Live || scene.app.play.is_some();
    page && held && rows >= ROWS
}

/// The colour of a kind of marker. Its glyph is the second cue.
pub const fn style(theme: &Theme, kind: MarkerKind) -> Style {
    match kind {
        MarkerKind::Came => theme.good,
        MarkerKind::Went => theme.text,
        MarkerKind::Peak => theme.strong,
        MarkerKind::Gap => theme.dim,
        MarkerKind::Kill => theme.warn,
        MarkerKind::Oom | MarkerKind::Xid => theme.bad,
    }
}

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let theme = canvas.look.theme;
    let end = canvas.width().saturating_sub(1);
    let words = status(scene, end);
    let mut x = canvas.put(1, 0, &words, theme.text) + 2;
    let ends = ends(scene);
    let mut right = end;
    let dropped = scene.context.history.timeline().map_or(0, Timeline::dropped);
    if end >= 110 {
        let label = |ms: u64| clock(moment(scene, ms), scene.app.settings.utc_offset_s, false);
        x = canvas.put(x, 0, &label(ends.0), theme.dim) + 1;
        if dropped > 0 {
            let words = format!("{dropped} events not kept");
            right = canvas.put_right(right, 0, &words, theme.warn).saturating_sub(2);
        }
        right = canvas.put_right(right, 0, &label(ends.1), theme.dim).saturating_sub(1);
    }
    let columns = right.saturating_sub(x);
    if columns >= 8 {
        track(canvas, scene, drawn, (x, columns), ends);
    }
}

/// A moment that is known by its time since boot.
fn moment(scene: &Scene<'_>, boot_ms: u64) -> crate::ids::Stamp {
    let at = scene.context.view.at;
    let wall_ms = (at.wall_ms + boot_ms).saturating_sub(at.boot_ms);
    crate::ids::Stamp { boot_ms, wall_ms }
}

/// Both ends of the line: of a recording all of it; of a session as much as holds the moment.
fn ends(scene: &Scene<'_>) -> (u64, u64) {
    if let Some((from, to)) = scene.app.play.and_then(|play| play.ends) {
        return (from.boot_ms, to.boot_ms);
    }
    let now = scene.context.view.at.boot_ms;
    let newest = scene.context.history.latest().map_or(now, |at| at.boot_ms).max(now);
    let oldest = scene.context.history.oldest().map_or(now, |at| at.boot_ms).min(now);
    let back = newest - now;
    let fits = |span: &&u64| **span >= back + back / 4;
    let wide = SPANS_MS.iter().find(fits).copied().unwrap_or(u64::MAX);
    (oldest.max(newest.saturating_sub(wide)), newest)
}

/// The moment, and where it is, in words.
fn status(scene: &Scene<'_>, end: u16) -> String {
    let glyphs = scene.app.settings.look.glyphs;
    let at = scene.context.view.at;
    let time = clock(at, scene.app.settings.utc_offset_s, false);
    let held = scene.app.position != Position::Live;
    let Some(play) = scene.app.play else {
        let ago = scene.context.history.latest().map_or(0, |latest| latest.since(at));
        return format!("{} {time} {} {} ago", glyphs.paused, glyphs.dot, span(ago));
    };
    let glyph = if held || play.paused { glyphs.paused } else { glyphs.replay };
    let times = if glyphs.ascii { "x" } else { "×" };
    let speed = format!("{}{times}", play.speed);
    let dot = glyphs.dot;
    let part = play.ends.map(|(from, to)| {
        let whole = to.since(from).max(1);
        let percent = at.since(from).min(whole) * 100 / whole;
        (percent, lasting(whole))
    });
    match part {
        Some((percent, _)) if end < 70 => format!("{glyph} {time} {percent}% {speed}"),
        Some((percent, whole)) => {
            format!("{glyph} replay {time} {dot} {percent} % of {whole} {dot} {speed}")
        }
        None => format!("{glyph} replay {time} {dot} {speed}"),
    }
}

/// `2h10m`, `3m05s`, `12s`.
fn lasting(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d{:02}h", s / 86_400, s % 86_400 / 3600),
    }
}

/// The line itself, from column `x` on.
fn track(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    drawn: &mut Drawn,
    (x, columns): (u16, u16),
    ends: (u64, u64),
) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let scope = scene.app.scope.as_ref();
    let width = usize::from(columns);
    let markers = scene.context.history.timeline().map_or_else(Vec::new, Timeline::markers);
    let here = || markers.iter().copied().filter(|marker| marker.is_on(scope));
    let known = scene.context.history.latest().map_or(ends.1, |at| at.boot_ms);
    let column = |ms: u64| {
        let part = u128::from(ms.clamp(ends.0, ends.1) - ends.0) * u128::from(columns);
        let whole = u128::from(ends.1 - ends.0).max(1);
        ((part / whole) as u16).min(columns - 1)
    };
    // What is still to be played is only hinted at.
    let played = column(known);
    for n in 0..columns {
        let (glyph, style) =
            if n <= played { (glyphs.rule, theme.rule) } else { (glyphs.free, theme.dim) };
        canvas.cell(x + n, 0, glyph, style);
    }
    for marker in here() {
        if let Some(until) = marker.until.filter(|until| until.boot_ms >= ends.0) {
            for n in column(marker.at.boot_ms)..=column(until.boot_ms) {
                canvas.cell(x + n, 0, gap_glyph(glyphs.ascii), theme.dim);
            }
        }
    }
    let marks = cells(here(), ends, width);
    draw_marks(canvas, &marks, (x, 0));
    let at = column(scene.context.view.at.boot_ms);
    let marked = marks.get(usize::from(at)).copied().flatten();
    let glyph =
        marked.map_or(if glyphs.ascii { "|" } else { "┃" }, |mark| glyph(mark, glyphs.ascii));
    let style = theme.accent.add_modifier(Modifier::REVERSED);
    canvas.cell(x + at, 0, glyph, style);
    let area = canvas.area();
    for n in 0..columns {
        let ms = marks.get(usize::from(n)).copied().flatten().map_or_else(
            || ends.0 + (ends.1 - ends.0) * u64::from(n) / u64::from(columns),
            |mark| mark.marker.at.boot_ms,
        );
        let cell = ratatui::layout::Rect::new(area.x + x + n, area.y, 1, 1);
        drawn.hits.push((cell, Hit::Time(ms)));
    }
}

const fn gap_glyph(ascii: bool) -> &'static str {
    let row = MarkerKind::Gap.row();
    if ascii { row.ascii } else { row.glyph }
}

const fn glyph(mark: Mark<'_>, ascii: bool) -> &'static str {
    let row = mark.marker.kind.row();
    if ascii { row.ascii } else { row.glyph }
}

/// Marks in their cells; behind one that stands for several their count, where that cell is free.
pub fn draw_marks(canvas: &mut Canvas<'_>, marks: &[Option<Mark<'_>>], (x, y): (u16, u16)) {
    let look = canvas.look;
    for (n, mark) in marks.iter().enumerate() {
        let Some(mark) = mark else { continue };
        let place = x + n as u16;
        let style = style(&look.theme, mark.marker.kind);
        canvas.cell(place, y, glyph(*mark, look.glyphs.ascii), style);
        if mark.count > 1 && marks.get(n + 1).is_some_and(Option::is_none) {
            let count = ["2", "3", "4", "5", "6", "7", "8", "9"];
            let count = count.get(mark.count - 2).copied().unwrap_or("+");
            canvas.cell(place + 1, y, count, look.theme.dim);
        }
    }
}
