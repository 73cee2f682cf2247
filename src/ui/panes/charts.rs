//! Charts of several rows with their axes: memory up, time to the right, what happened beneath.

use ratatui::layout::Rect;

use super::{Scene, timeline};
use crate::analyze::timeline::{Marker, MarkerKind, Timeline, cells};
use crate::analyze::{GpuView, Holder, Ledger};
use crate::history::ChartPoint;
use crate::ids::{Pid, Stamp};
use crate::ui::chart::{self, Layer};
use crate::ui::ledger::{self, Segment};
use crate::ui::paint::Canvas;
use crate::ui::words::{clock, span};
use crate::units::Bytes;

/// Columns of the labels beside a chart.
const LABELS: u16 = 7;
/// From this many rows on the last one is the axis of time.
const AXIS_ROWS: u16 = 4;

/// A chart of one GPU: what of it was used and allocated, or who held it.
pub fn gpu(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    (gpu, ledger): (&GpuView, &Ledger),
    segments: &[Segment],
) -> Option<(Stamp, Bytes)> {
    let theme = canvas.look.theme;
    let plot = Plot::new(canvas, scene, ledger.total);
    let old = ledger::is_old(gpu);
    let columns = usize::from(plot.area.width);
    let points = scene.context.history.gpu(&gpu.sample.uuid, plot.span_ms, 2 * columns);
    let stacked = scene.app.stacked && gpu.sample.mig_enabled.get() != Some(true);
    let pids: Vec<Pid> = segments.iter().filter_map(|part| Some(part.holder?.0)).collect();
    let layers = if stacked {
        scene.context.history.stack(&gpu.sample.uuid, plot.span_ms, columns, &pids)
    } else {
        Vec::new()
    };
    if layers.is_empty() {
        let style = if old { theme.dim } else { theme.chart };
        let form = scene.app.settings.chart;
        chart::area(&mut canvas.part(plot.area), (&points, ledger.total), form, style);
    } else {
        let dimmed = |style| if old { theme.dim } else { style };
        let layer = |part: &Segment| Layer { glyph: part.glyph, style: dimmed(part.style) };
        let named: Vec<Layer> =
            segments.iter().filter(|part| part.holder.is_some()).map(layer).collect();
        let reserved = if ledger.reserved_known { ledger.reserved } else { Bytes::ZERO };
        let whole = (ledger.total, reserved);
        chart::stacked(&mut canvas.part(plot.area), (&layers, whole), &named);
    }
    plot.labels(canvas);
    let here =
        |marker: &&Marker| marker.kind != MarkerKind::Peak && marker.is_on(Some(&gpu.sample.uuid));
    plot.time(canvas, scene, here);
    let finer = |span_ms, columns| scene.context.history.gpu(&gpu.sample.uuid, span_ms, columns);
    plot.peak(canvas, scene, &points, finer).map(|peak| exact(scene, gpu, peak))
}

/// A chart of one process in `rows`; on the row beneath them its peak.
pub fn holder(canvas: &mut Canvas<'_>, scene: &Scene<'_>, holder: &Holder, rows: u16) {
    let theme = canvas.look.theme;
    let part = Rect { height: rows, ..canvas.area() };
    let mut plot = Plot::new(&canvas.part(part), scene, Bytes::ZERO);
    let columns = 2 * usize::from(plot.area.width);
    let of = (&holder.gpu, holder.pid);
    let points = scene.context.history.holder(of, plot.span_ms, columns);
    let most = points.iter().flatten().map(|point| point.used).max();
    plot.top = scale(most.or(holder.peak.get()).or(holder.bytes.get()).unwrap_or_default());
    let form = scene.app.settings.chart;
    chart::area(&mut canvas.part(plot.area), (&points, plot.top), form, theme.chart);
    plot.labels(canvas);
    plot.time(canvas, scene, |marker| marker.pid == Some(holder.pid) || marker.until.is_some());
    let finer = |span_ms, columns| scene.context.history.holder(of, span_ms, columns);
    if let Some((at, bytes)) = plot.peak(canvas, scene, &points, finer) {
        let time = clock(at, scene.app.settings.utc_offset_s, false);
        let glyphs = canvas.look.glyphs;
        let sign = MarkerKind::Peak.row();
        let sign = if glyphs.ascii { sign.ascii } else { sign.glyph };
        let dot = glyphs.dot;
        let words = format!("{sign} peak {bytes} at {time} {dot} last {}", span(plot.lasts()));
        canvas.put(0, rows, &words, theme.dim);
    }
}

/// How long a chart is, in milliseconds: no longer than the machine had been up.
pub fn lasts_ms(scene: &Scene<'_>) -> u64 {
    scene.app.settings.chart_ms.min(scene.context.view.at.boot_ms)
}

/// The same in words, in whole minutes from two of them on.
pub fn lasts(scene: &Scene<'_>) -> String {
    let ms = lasts_ms(scene);
    span(if ms < 120_000 { ms } else { (ms + 30_000) / 60_000 * 60_000 })
}

/// The top of an axis: the next half power of two, so that it seldom changes.
fn scale(most: Bytes) -> Bytes {
    let mut top = Bytes::mib(64);
    while top < most {
        let half = Bytes(top.0 + top.0 / 2);
        if half >= most {
            return half;
        }
        top = Bytes(top.0.saturating_mul(2));
    }
    top
}

/// Where a chart is drawn, and of which time.
struct Plot {
    area: Rect,
    rows: u16,
    axis: bool,
    span_ms: (u64, u64),
    top: Bytes,
    left: u16,
}

impl Plot {
    /// All of the canvas without the labels on the right and the axis beneath.
    fn new(canvas: &Canvas<'_>, scene: &Scene<'_>, top: Bytes) -> Self {
        let area = canvas.area();
        let to = scene.context.view.at.boot_ms;
        let axis = area.height >= AXIS_ROWS;
        let rows = area.height.saturating_sub(u16::from(axis)).max(1);
        let width = area.width.saturating_sub(LABELS);
        // Both ends belong to it.
        let span_ms = (to - lasts_ms(scene), to + 1);
        Self { area: Rect { width, height: rows, ..area }, rows, axis, span_ms, top, left: width }
    }

    const fn lasts(&self) -> u64 {
        self.span_ms.1 - self.span_ms.0
    }

    fn labels(&self, canvas: &mut Canvas<'_>) {
        let theme = canvas.look.theme;
        canvas.put(self.left + 1, 0, &self.top.short(), theme.dim);
        if self.rows >= 5 {
            let half = Bytes(self.top.0 / 2).short();
            canvas.put(self.left + 1, self.rows / 2, &half, theme.dim);
        }
        if self.rows > 1 {
            canvas.put(self.left + 1, self.rows - 1, "0", theme.dim);
        }
    }

    /// The axis of time with what happened on it; the times at its ends give way to marks.
    fn time(&self, canvas: &mut Canvas<'_>, scene: &Scene<'_>, which: impl Fn(&&Marker) -> bool) {
        if !self.axis {
            return;
        }
        let theme = canvas.look.theme;
        let (glyphs, offset) = (canvas.look.glyphs, scene.app.settings.utc_offset_s);
        canvas.fill(0, self.area.width, self.rows, glyphs.rule, theme.rule);
        let at = scene.context.view.at;
        let back = at.boot_ms.saturating_sub(self.span_ms.0);
        let from = Stamp { boot_ms: 0, wall_ms: at.wall_ms.saturating_sub(back) };
        let (from, to) = (clock(from, offset, false), clock(at, offset, false));
        let line = scene.context.history.timeline();
        let found: Vec<&Marker> = line
            .into_iter()
            .flat_map(|line: &Timeline| line.between(self.span_ms.0, self.span_ms.1))
            .filter(|marker| which(marker))
            .collect();
        let width = usize::from(self.area.width);
        let marks = cells(found.into_iter(), self.span_ms, width);
        let free = |part: &[_]| part.iter().all(Option::is_none);
        let room = from.len() + 1;
        if width >= 30 && marks.get(..room).is_some_and(free) {
            canvas.put(0, self.rows, &format!("{from} "), theme.dim);
        }
        if width >= 30 && marks.get(width - room..).is_some_and(free) {
            canvas.put_right(self.area.width, self.rows, &format!(" {to}"), theme.dim);
        }
        timeline::draw_marks(canvas, &marks, (0, self.rows));
    }

    /// Marks the highest point; gives its moment, as exactly as `finer` knows it.
    fn peak(
        &self,
        canvas: &mut Canvas<'_>,
        scene: &Scene<'_>,
        points: &[Option<ChartPoint>],
        finer: impl Fn((u64, u64), usize) -> Vec<Option<ChartPoint>>,
    ) -> Option<(Stamp, Bytes)> {
        let (n, used) = highest(points)?;
        let steps = f64::from(self.rows);
        let share = used.0 as f64 / self.top.0.max(1) as f64;
        let row = self.rows.saturating_sub((share * steps).ceil().clamp(1.0, steps) as u16);
        let sign = MarkerKind::Peak.row();
        let glyph = if canvas.look.glyphs.ascii { sign.ascii } else { sign.glyph };
        let style = timeline::style(&canvas.look.theme, MarkerKind::Peak);
        canvas.cell((n / 2) as u16, row, glyph, style);
        let edge = |n: usize| self.span_ms.0 + self.lasts() * n as u64 / points.len().max(1) as u64;
        let (from, to) = (edge(n), edge(n + 1));
        let seconds = (to.saturating_sub(from) / 1_000).clamp(1, 600);
        let exact = finer((from, to), seconds as usize);
        let second = highest(&exact).map_or(0, |found| found.0 as u64);
        let boot_ms = from + (to - from) * second / seconds;
        let at = scene.context.view.at;
        let wall_ms = at.wall_ms.saturating_sub(at.boot_ms.saturating_sub(boot_ms));
        Some((Stamp { boot_ms, wall_ms }, used))
    }
}

/// The moment of a GPU's peak as its marker has it: a chart knows it only to a column.
fn exact(scene: &Scene<'_>, gpu: &GpuView, (at, bytes): (Stamp, Bytes)) -> (Stamp, Bytes) {
    let near = (at.boot_ms.saturating_sub(3_000), at.boot_ms + 3_000);
    let line = scene.context.history.timeline();
    let mut marks = line.into_iter().flat_map(|line| line.between(near.0, near.1));
    let peak = marks
        .find(|mark| mark.kind == MarkerKind::Peak && mark.gpu.as_ref() == Some(&gpu.sample.uuid));
    (peak.map_or(at, |peak| peak.at), bytes)
}

/// The first of the highest points, where anything was used.
fn highest(points: &[Option<ChartPoint>]) -> Option<(usize, Bytes)> {
    let known = points.iter().enumerate().filter_map(|(n, point)| Some((n, point.as_ref()?.used)));
    known.reduce(|a, b| if b.1 > a.1 { b } else { a }).filter(|most| most.1 > Bytes::ZERO)
}
