//! The GPUs: a panel for each where they fit; else one panel for the selected GPU and one line, or
//! one cell of a grid, for every one.
//!
//! ```text
//!  GPU 0  NVIDIA H200                       util  96%   54°C   612/700 W   ok
//!  ██████████████████████░░░░░░░░░▓▓▓▓▓▓▓▓?? ·····················▚  82% of 139.8G
//!  █train.py 64.2 ░cached 21.9 ▓vllm 22.1 ?unaccounted 3.7 ·free 27.3 ▚driver 0.6
//!  ▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇  10 min            growing 1.2 GiB/min · full in about 23m
//! ```

use ratatui::layout::Rect;

use super::{Scene, past};
use crate::analyze::{GpuView, Ledger};
use crate::fields::gpu_label;
use crate::sample::{GpuSample, Seldom, Why};
use crate::ui::action::Action;
use crate::ui::app::{Drawn, Hit};
use crate::ui::gpu_words;
use crate::ui::ledger;
use crate::ui::paint::Canvas;

/// How the GPUs are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A panel for each, charts of so many rows; 0 for title and bar only.
    Panels(u16),
    /// One panel for the selected GPU, where there is room, and a grid of all.
    Grid {
        /// Rows of the chart of the panel; `None` for no panel.
        panel: Option<u16>,
        /// Columns of the grid.
        columns: u16,
        /// Rows of the grid that are shown.
        rows: u16,
    },
}

/// Rows of a panel without its chart.
const PANEL: u16 = 3;

/// The narrowest cell of the grid.
const CELL: u16 = 26;

/// Lays `count` GPUs out in at most `budget` rows.
pub fn plan(count: usize, width: u16, budget: u16) -> Plan {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    if count == 0 {
        return Plan::Panels(1);
    }
    // In a narrow panel a chart of several rows leaves less room for its words.
    let tall = if width >= 100 {
        8
    } else if width >= 76 && budget >= 16 {
        6
    } else {
        1
    };
    if count.saturating_mul(PANEL + 1) <= budget {
        return Plan::Panels((budget / count - PANEL).clamp(1, tall));
    }
    if count == 1 {
        return Plan::Panels(0);
    }
    let has_panel = budget > PANEL + 2;
    let room = budget.saturating_sub(if has_panel { PANEL + 1 } else { 0 }).max(1);
    let most = (width / CELL).clamp(1, 6);
    let columns = (1..=most).find(|columns| count.div_ceil(*columns) <= room).unwrap_or(most);
    let rows = count.div_ceil(columns).min(room);
    // What the grid leaves is for the chart.
    let panel = has_panel.then_some(budget.saturating_sub(PANEL + rows).clamp(1, tall));
    Plan::Grid { panel, columns, rows }
}

impl Plan {
    /// Rows that it takes for `count` GPUs.
    pub fn height(self, count: usize) -> u16 {
        let panel = |chart| if chart == 0 { 2 } else { PANEL + chart };
        match self {
            Self::Panels(chart) => panel(chart).saturating_mul(count.max(1) as u16),
            Self::Grid { panel: height, rows, .. } => height.map_or(0, panel) + rows,
        }
    }
}

/// Draws them.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, plan: Plan) {
    let gpus = &scene.context.view.gpus;
    let focus = scene.app.focus(scene.context.view, scene.row());
    let at = gpus.iter().position(|gpu| Some(&gpu.sample.uuid) == focus).unwrap_or(0);
    let area = canvas.area();
    match plan {
        Plan::Panels(chart) => {
            let height = plan.height(1);
            for (n, gpu) in gpus.iter().enumerate() {
                let y = area.y + height * n as u16;
                let part = Rect { y, height, ..area };
                drawn.hits.push((part, Hit::Gpu(gpu.sample.uuid.clone())));
                panel(&mut canvas.part(part), scene, gpu, chart, gpus.len() > 1 && n == at);
            }
        }
        Plan::Grid { panel: chart, columns, rows } => {
            let mut top = area.y;
            if let (Some(chart), Some(gpu)) = (chart, gpus.get(at)) {
                let part = Rect { y: top, height: PANEL + chart, ..area };
                panel(&mut canvas.part(part), scene, gpu, chart, true);
                top += PANEL + chart;
            }
            // Down the columns, as the numbers run; a window around the selected one.
            let per_page = usize::from(rows) * usize::from(columns);
            let first = if gpus.len() <= per_page { 0 } else { at / per_page * per_page };
            let width = area.width / columns;
            for (n, gpu) in gpus.iter().enumerate().skip(first).take(per_page) {
                let place = (n - first) as u16;
                let (x, y) = (area.x + place / rows * width, top + place % rows);
                let part = Rect { x, y, width, height: 1 };
                drawn.hits.push((part, Hit::Gpu(gpu.sample.uuid.clone())));
                line(&mut canvas.part(part), scene, gpu, n == at);
            }
        }
    }
}

/// A GPU in full.
fn panel(canvas: &mut Canvas<'_>, scene: &Scene<'_>, gpu: &GpuView, chart: u16, focused: bool) {
    title(canvas, scene, gpu, focused);
    let Some(ledger) = gpu.ledger.value() else {
        return without_ledger(canvas, scene, gpu, chart);
    };
    let holders = ledger::holders_of(scene.context.view, gpu);
    let room = canvas.width().saturating_sub(2);
    let (segments, tight) = if chart == 0 {
        (ledger::segments(scene.app, gpu, ledger, &holders, 4), None)
    } else {
        let (segments, tight) = ledger::fitted(scene.app, gpu, ledger, &holders, room);
        (segments, Some(tight))
    };
    bar_line(canvas, 1, gpu, ledger, &segments);
    let Some(tight) = tight else { return };
    let selected = scene.holder().map(|holder| (holder.pid, holder.index));
    ledger::legend(canvas, 2, (&segments, tight), selected, ledger.shared);
    if chart == 1 {
        past::line(canvas, scene, gpu, ledger);
    } else {
        past::area(canvas, scene, (gpu, ledger), &segments, PANEL);
    }
}

fn title(canvas: &mut Canvas<'_>, scene: &Scene<'_>, gpu: &GpuView, focused: bool) {
    let theme = canvas.look.theme;
    let sample = &gpu.sample;
    let end = canvas.width().saturating_sub(1);
    if focused {
        canvas.put(0, 0, canvas.look.glyphs.select, theme.accent);
    }
    let style = if focused { theme.accent } else { theme.strong };
    let kind = if sample.mig.is_some() { "MIG" } else { "GPU" };
    let mut x = canvas.put(1, 0, &format!("{kind} {}", gpu_label(sample)), style) + 2;
    let (health, health_style) = gpu_words::health(gpu, &theme);
    let mut right = canvas.put_right(end, 0, &health, health_style);
    let settings_age = own_age(scene, gpu, Seldom::Settings);
    if !ledger::is_old(gpu) && gpu_words::at_rest(gpu).is_none() {
        // Each in its fixed columns; the least telling one goes first where there is no room.
        let glyphs = scene.app.settings.look.glyphs;
        let facts = [
            gpu_words::utilization(sample),
            gpu_words::temperature(sample, &glyphs),
            gpu_words::power(sample, settings_age.as_deref()),
        ];
        // Of an instance the driver tells none of these; it stands at the whole GPU.
        let instance = sample.mig.is_some();
        let known = [
            sample.utilization.value().is_some(),
            sample.temperature.value().is_some(),
            sample.power.value().is_some(),
        ];
        let facts: Vec<String> = facts
            .into_iter()
            .zip(known)
            .filter(|(_, known)| *known || !instance)
            .map(|(fact, _)| fact)
            .collect();
        let room = right.saturating_sub(x + 12);
        let mut used = 0;
        let fits = facts.iter().take_while(|fact| {
            used += fact.chars().count() as u16 + 3;
            used <= room
        });
        for fact in facts.iter().take(fits.count()).rev() {
            right = canvas.put_right(right.saturating_sub(3), 0, fact, theme.text);
        }
    }
    let room = right.saturating_sub(x + 2);
    match sample.name.value() {
        Some(name) => x = canvas.put_foreign(x, 0, name, theme.text, room),
        None => x = canvas.put(x, 0, "unnamed", theme.dim),
    }
    if sample.mig_enabled.get() == Some(true) && sample.mig.is_none() {
        let old = settings_age.map_or_else(String::new, |age| format!(" ({age} old)"));
        let words = format!("MIG on{old}");
        canvas.put_within(x + 2, 0, &words, theme.dim, right.saturating_sub(2));
    }
}

pub(super) fn own_age(scene: &Scene<'_>, gpu: &GpuView, what: Seldom) -> Option<String> {
    let interval_ms = scene.app.settings.interval_ms;
    gpu_words::own_age(scene.context.view, &gpu.sample, what, interval_ms)
}

/// The bar, and how full.
fn bar_line(
    canvas: &mut Canvas<'_>,
    row: u16,
    gpu: &GpuView,
    ledger: &Ledger,
    segments: &[ledger::Segment],
) {
    let theme = canvas.look.theme;
    let (percent, words) = gpu_words::fullness(ledger);
    let style = if ledger::is_old(gpu) { theme.dim } else { theme.level(percent) };
    let end = canvas.width().saturating_sub(1);
    let columns = if canvas.width() < 60 { 5 } else { 15 };
    let words = if columns == 5 { format!("{percent:.0}%") } else { words };
    canvas.put_right(end, row, &words, style);
    ledger::bar(canvas, row, (1, end.saturating_sub(columns + 1)), segments);
}

/// A GPU whose bytes cannot be told: why, and what is known all the same.
fn without_ledger(canvas: &mut Canvas<'_>, scene: &Scene<'_>, gpu: &GpuView, chart: u16) {
    let theme = canvas.look.theme;
    let (first, second) = match gpu.ledger.why() {
        Some(Why::GpuLost) => (
            "the GPU has fallen off the bus: its figures are gone".to_owned(),
            "dmesg | grep -i xid    tells why; a reset or a reboot brings it back".to_owned(),
        ),
        Some(why @ (Why::Asleep | Why::LetSleep | Why::Spared)) => {
            let key = scene.app.settings.keys.label(Action::Look, canvas.look.glyphs.ascii);
            (
                match why {
                    Why::Asleep => "it sleeps, and is not woken for this".to_owned(),
                    Why::Spared => {
                        "it is awake, and reading it would wake one that sleeps".to_owned()
                    }
                    _ => "let sleep: nobody uses it".to_owned(),
                },
                format!("{key}  to look at it all the same"),
            )
        }
        Some(Why::NotSupported) => (
            "memory is shared with the host: the driver counts no total of its own".to_owned(),
            gpu_words::held_by_processes(scene.context.view, gpu),
        ),
        why => {
            let why = why.map_or_else(String::new, Why::words);
            (format!("its memory cannot be read: {why}"), String::new())
        }
    };
    let lost = gpu.ledger.why() == Some(Why::GpuLost);
    let first_style = match gpu_words::at_rest(gpu) {
        Some(_) => theme.dim,
        None if lost => theme.bad,
        None => theme.warn,
    };
    let room = canvas.width().saturating_sub(2);
    canvas.put_foreign(1, 1, &first, first_style, room);
    if chart > 0 {
        canvas.put_foreign(1, 2, &second, theme.dim, room);
    }
}

/// A GPU in one line.
fn line(canvas: &mut Canvas<'_>, scene: &Scene<'_>, gpu: &GpuView, focused: bool) {
    let theme = canvas.look.theme;
    let width = canvas.width();
    let style = if focused { theme.accent } else { theme.text };
    if focused {
        canvas.put(0, 0, canvas.look.glyphs.select, style);
    }
    let label = gpu_label(&gpu.sample);
    canvas.put_right(if label.contains(':') { 6 } else { 4 }, 0, &label, style);
    let roomy = width >= 76;
    let mut x = if width < 38 { 6 } else { 7 };
    if width >= 110 {
        if let Some(name) = gpu.sample.name.value() {
            canvas.put_foreign(x, 0, name, theme.text, 18);
        }
        x += 20;
    }
    let end = width.saturating_sub(1);
    let Some(ledger) = gpu.ledger.value() else {
        let (health, style) = gpu_words::health(gpu, &theme);
        let why = gpu.ledger.why().map_or_else(String::new, Why::words);
        let words = if health == "ok" { why } else { health };
        canvas.put_foreign(x, 0, &words, style, end.saturating_sub(x));
        return;
    };
    // From the right: leftovers, use, how full. Each has its place.
    let (counted, bad) = counted(gpu, roomy);
    canvas.put_right(end, 0, &counted, if bad { theme.bad } else { theme.dim });
    let mut right = end.saturating_sub(if roomy { 11 } else { 3 });
    if width >= 36 {
        let busy = busy_cell(&gpu.sample, roomy);
        canvas.put_right(right, 0, &busy, theme.dim);
        right = right.saturating_sub(busy.len() as u16 + 1);
    }
    let (percent, words) = gpu_words::fullness(ledger);
    let words = if roomy { words } else { format!("{percent:.0}%") };
    canvas.put_right(right, 0, &words, theme.level(percent));
    right = right.saturating_sub(if roomy { 15 } else { 5 });
    let holders = ledger::holders_of(scene.context.view, gpu);
    let segments = ledger::segments(scene.app, gpu, ledger, &holders, 4);
    ledger::bar(canvas, 0, (x, right), &segments);
}

/// What stands at the end of a GPU's line, and whether it is bad.
fn counted(gpu: &GpuView, roomy: bool) -> (String, bool) {
    let zombies = gpu.counts.zombies as usize;
    let words = match gpu_words::fault(gpu) {
        Some(seen) if roomy => return (format!("XID {}", seen.xid.code), true),
        Some(_) => return ("xid".to_owned(), true),
        None if zombies > 0 && roomy => return (ledger::count(zombies, "zombie"), true),
        None if zombies > 0 => return (format!("{zombies}z"), true),
        None if !roomy => String::new(),
        None if gpu.sample.unlisted().is_some() => "not told".to_owned(),
        // Who holds its memory stands at its instances.
        None if ledger::is_split(gpu) => "instances".to_owned(),
        None => ledger::count(gpu.counts.holders as usize, "holder"),
    };
    (words, false)
}

/// How busy it is: beside another share without a title only with one of its own.
fn busy_cell(sample: &GpuSample, roomy: bool) -> String {
    match sample.utilization.value() {
        _ if roomy => gpu_words::utilization_short(sample),
        Some(share) => format!("sm{:>3.0}", share.sm.0),
        None => "sm  -".to_owned(),
    }
}
