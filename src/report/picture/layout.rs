//! Where everything in a picture is.
//!
//! ```text
//!  gpubox: GPU memory, 2026-11-30 03:10:00 to 04:12:07
//!  2 GPUs · driver 580.159.04 · times are UTC+01:00
//!
//!  GPU 0  NVIDIA H200                       peak 112.3 GiB at 03:58:11
//!  140 GiB ┌──────────────────────────────┐  █ train.py 41233   64.2 GiB
//!  100 GiB │     stacked by holder        │  █ vllm 40011       22.1 GiB
//!        0 └──────────────────────────────┘  ▒ unaccounted       3.7 GiB
//!            ▲         ◆      ▼               ▪ driver            0.6 GiB
//!          03:30          04:00
//!  ▲ came  ▼ went  ◆ peak
//! ```

use std::collections::HashMap;

use super::axis::{size, sizes, times};
use super::collect::GpuPast;
use super::scene::{
    Anchor, CHAR, DIM, DRIVER, FRAME, Fill, GAP, GRID, HOLDERS, OTHERS, PAPER, Scene, Shape, TEXT,
    UNACCOUNTED, columns,
};
use super::stack::{Part, Plot, Stack, largest, stack};
use super::{Figure, Need, PictureError};
use crate::analyze::moment::clock;
use crate::analyze::timeline::{MARKERS, Marker, MarkerKind, cells};
use crate::ids::{Pid, Stamp};
use crate::sample::text::{clean, fit};
use crate::units::Bytes;

const MARGIN: i32 = 20;
/// Rows above the first panel, and below the last.
const HEAD: i32 = 62;
const FOOT: i32 = 34;
/// A panel without its plot: its title, signs, times and air.
const AROUND: i32 = TITLE + 16 + 18 + 10;
/// Rows of a panel above its plot.
const TITLE: i32 = 26;
/// The lowest plot that can be read.
const PLOT: i32 = 44;
/// The height of a panel where nobody says how large the picture is.
const PANEL: i32 = 230;
const AXIS: i32 = 10 * CHAR;
const LEGEND: i32 = 34 * CHAR;
/// Columns of a sign with its count.
const SIGN: i32 = 18;
const LINE: i32 = 17;

/// The size of a picture of so many GPUs, where nobody says.
pub fn usual(gpus: usize) -> (u32, u32) {
    let panels = i32::try_from(gpus.clamp(1, 64)).unwrap_or(1);
    let panel = if panels > 4 { PANEL * 4 / 5 } else { PANEL };
    (1_200, (HEAD + FOOT + panels * panel.max(AROUND + PLOT)).unsigned_abs())
}

/// Lays it out.
pub fn scene(figure: &Figure, (width, height): (u32, u32)) -> Result<Scene, PictureError> {
    let (w, h) = (i32::try_from(width).unwrap_or(i32::MAX), i32::try_from(height).unwrap_or(0));
    let count = i32::try_from(figure.gpus.len().max(1)).unwrap_or(i32::MAX);
    let least = Need {
        width: 600,
        height: (HEAD + FOOT).saturating_add(count.saturating_mul(AROUND + PLOT)).unsigned_abs(),
    };
    if width < least.width || height < least.height {
        return Err(PictureError::TooSmall { width, height, least, gpus: figure.gpus.len() });
    }
    let mut shapes =
        vec![Shape::Rect([0, 0, w, h], Fill::Plain(PAPER)), Shape::Frame([0, 0, w, h], FRAME)];
    let title = head(figure, w, &mut shapes);
    let panel = (h - HEAD - FOOT) / count;
    if figure.gpus.is_empty() {
        nothing(figure, &mut shapes);
    }
    let mut kinds = Vec::new();
    for (n, past) in (0..).zip(&figure.gpus) {
        let y = HEAD + panel * n;
        panel_of(figure, past, (y, panel, w), (&mut shapes, &mut kinds));
    }
    foot(&kinds, (w, h), &mut shapes);
    Ok(Scene { width: w, height: h, shapes, title })
}

/// Fits hostile text into so many pixels.
fn fitted(text: &str, pixels: i32) -> String {
    fit(text, usize::try_from(pixels / CHAR).unwrap_or(0), "~", false).into_owned()
}

fn head(figure: &Figure, w: i32, shapes: &mut Vec<Shape>) -> String {
    let at = |at: Stamp| clock(at, figure.utc_offset_s);
    let (from, to) = (at(figure.from), at(figure.to));
    // The day is said once where it is one.
    let same = from.get(..10) == to.get(..10);
    let until = if same { to.get(11..).unwrap_or(&to) } else { &to };
    let host = clean(figure.host.as_deref().unwrap_or("unknown host"));
    let title = format!("{host}: GPU memory, {from} to {until}");
    shapes.push(Shape::title([MARGIN, 30], fitted(&title, w - 2 * MARGIN)));
    let gpus = match figure.gpus.len() {
        1 => "1 GPU".to_owned(),
        n => format!("{n} GPUs"),
    };
    let driver =
        figure.driver.as_deref().map_or_else(String::new, |v| format!(" \u{b7} driver {v}"));
    let minutes = figure.utc_offset_s.abs() / 60;
    let sign = if figure.utc_offset_s < 0 { '-' } else { '+' };
    let zone = format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    let text = format!("{gpus}{driver} \u{b7} times are {zone}");
    shapes.push(Shape::text([MARGIN, 49], fitted(&text, w - 2 * MARGIN), DIM));
    title
}

fn nothing(figure: &Figure, shapes: &mut Vec<Shape>) {
    let words = "No figure of a GPU is in this stretch of time.";
    shapes.push(Shape::text([MARGIN, HEAD + 24], words, TEXT));
    for (n, marker) in (1..).zip(figure.markers.iter().take(2)) {
        let words = fitted(&marker.words(true), 500);
        shapes.push(Shape::text([MARGIN, HEAD + 24 + n * LINE], words, DIM));
    }
}

/// One GPU.
fn panel_of(
    figure: &Figure,
    past: &GpuPast,
    (y, height, w): (i32, i32, i32),
    (shapes, kinds): (&mut Vec<Shape>, &mut Vec<MarkerKind>),
) {
    let span_ms = (figure.from.boot_ms, figure.to.boot_ms);
    let plot = Plot {
        x: MARGIN + AXIS,
        y: y + TITLE,
        width: w - 2 * MARGIN - AXIS - LEGEND,
        height: height - AROUND,
        span_ms,
    };
    let room = ((plot.height + 4) / LINE).max(2) as usize;
    // Others, unaccounted and driver have lines of their own.
    let named = largest(past, span_ms, room.saturating_sub(3).clamp(1, HOLDERS.len()));
    let pids: Vec<Pid> = named.iter().map(|holder| holder.0).collect();
    let stack = stack(past, &pids, &plot);
    let peak = peak(past, span_ms);
    panel_title(figure, past, (y, plot), peak, shapes);
    grid(figure, past, &plot, &stack, shapes);
    let mut legend = Vec::new();
    for (part, steps) in &stack.areas {
        let (name, fill) = named_part(*part, &pids, &figure.names);
        let most = most_of(past, *part, &pids, span_ms);
        shapes.push(Shape::Area(format!("{name}, up to {most}"), steps.clone(), fill));
        legend.push((name, most, fill));
    }
    shapes.push(Shape::Frame([plot.x, plot.y, plot.width, plot.height], FRAME));
    write_legend(&legend, (plot.x + plot.width + 2 * CHAR, plot.y), room, shapes);
    signs(figure, past, &plot, peak, (shapes, kinds));
}

fn panel_title(
    figure: &Figure,
    past: &GpuPast,
    (y, plot): (i32, Plot),
    peak: Option<(Stamp, Bytes)>,
    shapes: &mut Vec<Shape>,
) {
    let right = match peak {
        Some((at, bytes)) => {
            let time =
                clock(Stamp { wall_ms: wall(figure, at.boot_ms), ..at }, figure.utc_offset_s);
            let time = time.get(11..).unwrap_or(&time).to_owned();
            format!("peak {bytes} of {} at {time}", size(past.total))
        }
        None => "no figure of its memory".to_owned(),
    };
    let end = plot.x + plot.width;
    let room = end - MARGIN - (columns(&right) + 2) * CHAR;
    shapes.push(Shape::title([MARGIN, y + 14], fitted(&past.label, room)));
    shapes.push(Shape::anchored([end, y + 14], right, DIM, Anchor::End));
}

/// The wall clock of a moment of the recording.
fn wall(figure: &Figure, boot_ms: u64) -> u64 {
    (figure.from.wall_ms + boot_ms).saturating_sub(figure.from.boot_ms)
}

fn peak(past: &GpuPast, span_ms: (u64, u64)) -> Option<(Stamp, Bytes)> {
    let within = past.held.iter().filter(|h| h.until_ms > span_ms.0 && h.from_ms <= span_ms.1);
    let most = within.max_by_key(|held| (held.used, std::cmp::Reverse(held.from_ms)))?;
    let boot_ms = most.from_ms.max(span_ms.0);
    Some((Stamp { boot_ms, wall_ms: 0 }, most.used))
}

/// Lines and labels behind the areas, and where nothing is known.
fn grid(figure: &Figure, past: &GpuPast, plot: &Plot, stack: &Stack, shapes: &mut Vec<Shape>) {
    for &(from, to) in &stack.gaps {
        shapes.push(Shape::Rect([from, plot.y, to - from, plot.height], Fill::Striped(GAP)));
        if to - from >= 9 * CHAR {
            let at = [from + (to - from) / 2, plot.y + plot.height / 2 + 4];
            shapes.push(Shape::anchored(at, "no data", DIM, Anchor::Middle));
        }
    }
    let marks = sizes(past.total, ((plot.height / 34).max(1) as usize).min(5));
    for mark in &marks {
        let y = plot.row(*mark, past.total);
        shapes.push(Shape::Rect(
            [plot.x, y.min(plot.y + plot.height - 1), plot.width, 1],
            Fill::Plain(GRID),
        ));
        if *mark == past.total || y - plot.y >= 14 {
            shapes.push(Shape::anchored([plot.x - 6, y + 4], size(*mark), DIM, Anchor::End));
        }
    }
    let bottom = plot.y + plot.height;
    for (at_ms, label) in
        times(figure.from, figure.to, (plot.width / 110).max(1) as usize, figure.utc_offset_s)
    {
        let x = plot.column(at_ms).min(plot.x + plot.width - 1);
        shapes.push(Shape::Rect([x, plot.y, 1, plot.height], Fill::Plain(GRID)));
        shapes.push(Shape::Rect([x, bottom, 1, 4], Fill::Plain(FRAME)));
        shapes.push(Shape::anchored([x, bottom + 16 + 14], label, DIM, Anchor::Middle));
    }
}

fn named_part(part: Part, pids: &[Pid], names: &HashMap<Pid, String>) -> (String, Fill) {
    match part {
        Part::Holder(pid) => {
            let place = pids.iter().position(|other| *other == pid).unwrap_or(0);
            let name = names.get(&pid).map(|name| clean(name)).unwrap_or_default();
            let name = if name.is_empty() { format!("pid {pid}") } else { format!("{name} {pid}") };
            (name, Fill::Plain(HOLDERS[place % HOLDERS.len()]))
        }
        Part::Others => ("other holders".to_owned(), Fill::Plain(OTHERS)),
        Part::Unaccounted => ("unaccounted".to_owned(), Fill::Striped(UNACCOUNTED)),
        Part::Driver => ("driver".to_owned(), Fill::Dotted(DRIVER)),
    }
}

/// The most that a part held.
fn most_of(past: &GpuPast, part: Part, pids: &[Pid], span_ms: (u64, u64)) -> Bytes {
    let within = past.held.iter().filter(|h| h.until_ms > span_ms.0 && h.from_ms <= span_ms.1);
    let figures = within.map(|held| {
        let parts = super::stack::parts(held, pids);
        parts.into_iter().find(|p| p.0 == part).map_or(Bytes::ZERO, |p| p.1)
    });
    figures.max().unwrap_or_default()
}

/// The largest first; names on the left, the most of each on the right.
fn write_legend(
    legend: &[(String, Bytes, Fill)],
    (x, top): (i32, i32),
    room: usize,
    shapes: &mut Vec<Shape>,
) {
    for (n, (name, most, fill)) in (0..).zip(legend.iter().take(room)) {
        let y = top + n * LINE;
        shapes.push(Shape::Rect([x, y + 1, 11, 11], *fill));
        shapes.push(Shape::Frame([x, y + 1, 11, 11], fill.ink()));
        let figure = most.to_string();
        let end = x + LEGEND - 2 * CHAR;
        let wide = end - x - 18 - (columns(&figure) + 1) * CHAR;
        shapes.push(Shape::text([x + 18, y + 11], fitted(name, wide), TEXT));
        shapes.push(Shape::anchored([end, y + 11], figure, DIM, Anchor::End));
    }
}

/// Markers beneath the plot, with their count where several share a place; the peak on its curve.
fn signs(
    figure: &Figure,
    past: &GpuPast,
    plot: &Plot,
    peak: Option<(Stamp, Bytes)>,
    (shapes, kinds): (&mut Vec<Shape>, &mut Vec<MarkerKind>),
) {
    let mut note = |kind| {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    };
    let here = |marker: &&Marker| marker.kind != MarkerKind::Peak && marker.is_on(Some(&past.uuid));
    let places = usize::try_from(plot.width / SIGN).unwrap_or(0);
    let row = plot.y + plot.height + 9;
    let marks = cells(figure.markers.iter().filter(here), plot.span_ms, places);
    for (n, mark) in (0..).zip(&marks) {
        let Some(mark) = mark else { continue };
        note(mark.marker.kind);
        let exact = plot.column(mark.marker.at.boot_ms);
        // At its moment, as far as its neighbours and its count leave room.
        let cell = plot.x + n * SIGN + 6;
        let x = if mark.count > 1 { cell } else { exact.clamp(cell, cell + SIGN - 12) };
        if matches!(mark.marker.kind, MarkerKind::Oom | MarkerKind::Kill | MarkerKind::Xid) {
            let ink = super::scene::sign(mark.marker.kind).1;
            shapes.push(Shape::Dashes([exact, plot.y, plot.height], ink));
        }
        let time = clock(
            Stamp { boot_ms: 0, wall_ms: wall(figure, mark.marker.at.boot_ms) },
            figure.utc_offset_s,
        );
        let time = time.get(11..).unwrap_or(&time).to_owned();
        let mut words = format!("{}, {time}", clean(&mark.marker.words(false)));
        if mark.count > 1 {
            words += &format!(", and {} more", mark.count - 1);
            let count = if mark.count > 9 { "+".to_owned() } else { mark.count.to_string() };
            shapes.push(Shape::text([x + 6, row + 5], count, DIM));
        }
        shapes.push(Shape::Sign([x, row], mark.marker.kind, words));
    }
    if let Some((at, bytes)) = peak.filter(|peak| peak.1 > Bytes::ZERO) {
        note(MarkerKind::Peak);
        let at =
            [plot.column(at.boot_ms).min(plot.x + plot.width - 1), plot.row(bytes, past.total)];
        shapes.push(Shape::Sign(at, MarkerKind::Peak, format!("peak: {bytes}")));
    }
}

/// What the signs mean: those that are there.
fn foot(kinds: &[MarkerKind], (w, h): (i32, i32), shapes: &mut Vec<Shape>) {
    let mut x = MARGIN + AXIS;
    for row in MARKERS.iter().filter(|row| kinds.contains(&row.kind)) {
        shapes.push(Shape::Sign([x + 5, h - 18], row.kind, row.help.to_owned()));
        shapes.push(Shape::text([x + 15, h - 14], row.word, DIM));
        x += 15 + (columns(row.word) + 3) * CHAR;
    }
    let by = concat!("vramlens ", env!("CARGO_PKG_VERSION"));
    shapes.push(Shape::anchored([w - MARGIN, h - 14], by, DIM, Anchor::End));
}
