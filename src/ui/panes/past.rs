//! The past of a GPU in its panel: memory and how busy it was, and beside them what goes with it.

use ratatui::layout::Rect;

use super::gpus::own_age;
use super::{Scene, charts};
use crate::analyze::{GpuView, Ledger};
use crate::history::BusyPoint;
use crate::sample::Seldom;
use crate::ui::paint::Canvas;
use crate::ui::words::{clock, trend};
use crate::ui::{chart, gpu_words, ledger};

/// One row of history, and where it leads.
pub fn line(canvas: &mut Canvas<'_>, scene: &Scene<'_>, gpu: &GpuView, ledger: &Ledger) {
    let theme = canvas.look.theme;
    let end = canvas.width().saturating_sub(1);
    let start = forecast(canvas, gpu, 3, end);
    let label = format!("  {}", charts::lasts(scene));
    let most = start.saturating_sub(4 + label.len() as u16);
    let columns = most.min(canvas.width() / 2).min(60);
    let points = points(scene, gpu, usize::from(columns));
    let style = if ledger::is_old(gpu) { theme.dim } else { theme.chart };
    chart::blocks(canvas, (1, 3), (&points, ledger.total), style);
    canvas.put(1 + columns, 3, &label, theme.dim);
}

/// Writes the trend, right-aligned; gives its first column.
fn forecast(canvas: &mut Canvas<'_>, gpu: &GpuView, row: u16, end: u16) -> u16 {
    let theme = canvas.look.theme;
    if ledger::is_old(gpu) {
        // Nothing can be said of what comes.
        return end;
    }
    let (words, full) = trend(gpu.growth);
    let mut start = end;
    if let Some(full) = full.filter(|full| usize::from(end) > full.len() + words.len() + 24) {
        start = canvas.put_right(start, row, &full, theme.warn);
        start = canvas.put_right(start, row, &format!(" {} ", canvas.look.glyphs.dot), theme.dim);
    }
    if words.len() + 16 > usize::from(start) {
        return start;
    }
    let growing = words.starts_with("growing");
    canvas.put_right(start, row, &words, if growing { theme.text } else { theme.dim })
}

/// Several rows of history; beside them the trend, clocks and the bus.
pub fn area(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    (gpu, ledger): (&GpuView, &Ledger),
    segments: &[ledger::Segment],
    top: u16,
) {
    let theme = canvas.look.theme;
    let area = canvas.area();
    let rows = area.height.saturating_sub(top);
    let beside = 46.min(area.width / 2);
    let part = Rect {
        x: area.x + 1,
        y: area.y + top,
        width: area.width.saturating_sub(beside + 3),
        height: rows,
    };
    let peak = charts::gpu(&mut canvas.part(part), scene, (gpu, ledger), segments);
    let end = area.width.saturating_sub(1);
    forecast(canvas, gpu, top, end);
    let last = format!("last {}", charts::lasts(scene));
    let peak = peak.map_or_else(String::new, |(at, bytes)| {
        let time = clock(at, scene.app.settings.utc_offset_s, false);
        format!("peak {bytes} at {time}")
    });
    let untold = gpu.sample.mig.is_some() && gpu.sample.sm_clock.value().is_none();
    let [clocks, bus] = if ledger::is_old(gpu) || untold {
        // As in the title, nothing that moves by the second is shown of a look long past.
        [String::new(), String::new()]
    } else {
        let [details, bus] = [Seldom::Details, Seldom::Pcie].map(|what| own_age(scene, gpu, what));
        let clocks = gpu_words::clocks(&gpu.sample, details.as_deref());
        [clocks, gpu_words::bus(&gpu.sample, bus.as_deref())]
    };
    let lines = [last, clocks, bus, peak];
    for (n, line) in lines.iter().enumerate().filter(|(n, _)| *n as u16 + 1 < rows) {
        canvas.put_right(end, top + 1 + n as u16, line, theme.dim);
    }
    let below = lines.len() as u16 + 1;
    if rows > below + 2 && !ledger::is_old(gpu) && !untold {
        busy(canvas, scene, gpu, (top + below, end, beside));
    }
}

/// How busy it was, in two rows from `row` on that end at column `end`.
fn busy(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    gpu: &GpuView,
    (row, end, room): (u16, u16, u16),
) {
    const WORDS: [&str; 2] = ["SM busy", "memory busy"];
    let theme = canvas.look.theme;
    let figure = 6;
    let columns = room.saturating_sub(WORDS[1].len() as u16 + figure + 1).min(30);
    let times = (scene.context.view.at.boot_ms, charts::lasts_ms(scene));
    let Some(points) = scene.context.history.busy(&gpu.sample.uuid, times, columns.into()) else {
        return;
    };
    let now = gpu.sample.utilization.value().map(|now| [now.sm.0, now.memory.0]);
    let [sm, memory] = [|point: &BusyPoint| point.sm, |point: &BusyPoint| point.memory];
    for (n, of) in [sm, memory].into_iter().enumerate() {
        let y = row + n as u16;
        let now = now.map_or_else(|| "-".to_owned(), |now| format!("{:.0}%", now[n]));
        canvas.put_right(end, y, &now, theme.dim);
        let first = end.saturating_sub(figure + columns);
        canvas.put_right(first.saturating_sub(1), y, WORDS[n], theme.dim);
        let shares: Vec<Option<u8>> = points.iter().map(of).collect();
        chart::shares(canvas, (first, y), &shares, theme.chart);
    }
}

fn points(
    scene: &Scene<'_>,
    gpu: &GpuView,
    columns: usize,
) -> Vec<Option<crate::history::ChartPoint>> {
    let to = scene.context.view.at.boot_ms;
    let from = to - charts::lasts_ms(scene);
    scene.context.history.gpu(&gpu.sample.uuid, (from, to), columns)
}
