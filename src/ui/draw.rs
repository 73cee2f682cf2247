//! A frame: which pane gets which rows.
//!
//! ```text
//!  header
//!  GPUs                       as many rows as they need, up to a share of the screen
//!  ──────────────────────────
//!  processes      │ detail    the right third of a wide screen, or beneath on a high one
//!  ──────────────────────────
//!  fixes
//!  footer
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::{App, Context, Drawn, Page, Position};
use super::doc::Doc;
use super::grid::Grid;
use super::paint::Canvas;
use super::panes::{
    Scene, detail, fixes, footer, gpus, header, help, hosts, kill, nogpu, table, tabs, text,
    timeline,
};
use super::rows::Subject;
use crate::analyze::Freshness;

/// From this height on there are rules and fixes.
const ROOMY_ROWS: u16 = 16;
/// The fixes are never wider: lines of which both ends belong together are not torn apart.
const FIXES_COLUMNS: u16 = 110;
/// From this width on the right third is the detail.
const SIDE_COLUMNS: u16 = 140;
/// With so many rows left under the table the detail is there.
const BENEATH_ROWS: u16 = 12;

/// Draws on a part of a buffer, see [`draw`].
pub fn draw_on(buffer: &mut Buffer, area: Rect, app: &App, context: Context<'_>) -> Drawn {
    let area = area.intersection(buffer.area);
    let mut grid = Grid::new(area.width, area.height);
    let drawn = draw(&mut grid, app, context);
    grid.copy_to(buffer, area);
    drawn
}

/// Draws a frame on an empty screen. What it gives belongs into [`App::drawn`]: the next click needs
/// it.
pub fn draw(grid: &mut Grid, app: &App, context: Context<'_>) -> Drawn {
    let mut drawn =
        Drawn { first_row: app.drawn.first_row, selected: app.drawn.selected, ..Drawn::default() };
    let area = grid.area();
    if area.width == 0 || area.height == 0 {
        return drawn;
    }
    let scene = Scene::new(app, context);
    let mut canvas = Canvas::new(grid, &app.settings.look);
    let top = Rect { height: 1, ..area };
    header::draw(&mut canvas.part(top), &scene);
    let bottom = Rect { y: area.bottom() - 1, height: 1, ..area };
    let mut body = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    if timeline::is_shown(&scene, area.height) {
        body.height -= 1;
        let line = Rect { y: body.bottom(), height: 1, ..area };
        timeline::draw(&mut canvas.part(line), &scene, &mut drawn);
    }
    let body = overview(&mut canvas, &scene, &mut drawn, body);
    if area.height > 1 {
        page(&mut canvas, &scene, &mut drawn, body);
        footer::draw(&mut canvas.part(bottom), &scene, &mut drawn);
    }
    kill::draw(&mut canvas, &scene);
    app.settings.look.theme.lay(grid);
    drawn
}

/// The machines, where there are several; gives what is left.
fn overview(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, body: Rect) -> Rect {
    let (lines, ruled) = hosts::plan(scene, body.height);
    if lines == 0 || lines >= body.height {
        return body;
    }
    hosts::draw(&mut canvas.part(Rect { height: lines, ..body }), scene, drawn);
    if ruled {
        canvas.part(body).rule(lines);
    }
    let height = lines + u16::from(ruled);
    Rect { y: body.y + height, height: body.height - height, ..body }
}

fn page(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, body: Rect) {
    let mut part = canvas.part(body);
    match &scene.app.page {
        Page::Main => main_page(&mut part, scene, drawn),
        Page::Detail(tab) => {
            part.rule(0);
            if let Some(holder) = scene.holder() {
                let style = part.look.theme.strong;
                let x = part.put(3, 0, &format!(" {} ", holder.pid), style);
                let room = part.width().saturating_sub(x + 6);
                let x = part.put_foreign(x, 0, &holder.command(), style, room);
                part.put(x, 0, " ", style);
            }
            let area = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
            tabs::draw(&mut part.part(area), scene, drawn, *tab);
        }
        Page::Help => help::draw(&mut part, scene, drawn),
        Page::Fixes => fixes::page(&mut part, scene, drawn),
        Page::Text { title, lines } => text::draw(&mut part, scene, drawn, (title, lines)),
        Page::NoGpu(found) => nogpu::draw(&mut part, scene, drawn, found),
    }
}

/// Rows of the main page.
struct Rows {
    gpus: Rect,
    table: Rect,
    side: Option<Rect>,
    beneath: Option<Rect>,
    fixes: Option<Rect>,
    rules: Vec<u16>,
}

fn rows(area: Rect, scene: &Scene<'_>) -> (Rows, gpus::Plan) {
    let count = scene.context.view.gpus.len();
    let roomy = area.height + 2 >= ROOMY_ROWS;
    let budget = if roomy { (area.height * 9).div_ceil(20) } else { (area.height / 3).max(1) };
    let plan = gpus::plan(count, area.width, budget);
    let gpus = plan.height(count).min(area.height);
    let mut rules = Vec::with_capacity(2);
    let rule = u16::from(roomy);
    let mut rest = area.height.saturating_sub(gpus + rule);
    let top = area.y + gpus + rule;
    if roomy {
        rules.push(gpus);
    }
    let mut fixes = None;
    if roomy {
        // The table shows its rows, the fixes what is left, each at least a part of it.
        let needs = scene.rows.len().max(1) as u16 + 1;
        let wish = fixes::wish(scene).min(rest / 2 + 1);
        let height = wish.min(rest.saturating_sub(needs.min(rest / 2) + 1)).max(wish.min(4));
        if height + 3 < rest {
            // Above the footer stays a line empty where there is one.
            let air = u16::from(rest > needs + height + 2);
            let y = area.bottom() - height - air;
            fixes = Some(Rect { y, height, width: area.width.min(FIXES_COLUMNS), ..area });
            rules.push(y - area.y - 1);
            rest -= height + air + 1;
        }
    }
    let mut table = Rect { y: top, height: rest, ..area };
    let mut side = None;
    if area.width >= SIDE_COLUMNS && roomy {
        table.width = area.width * 2 / 3;
        let x = table.right() + 2;
        let height = area.bottom().saturating_sub(top);
        side = Some(Rect { x, y: top, width: area.right().saturating_sub(x + 1), height });
        if let Some(fixes) = &mut fixes {
            fixes.width = table.width;
        }
    }
    let mut beneath = None;
    let needs = scene.rows.len().max(1) as u16 + 2;
    if side.is_none() && roomy && rest >= needs + BENEATH_ROWS && scene.row().is_some() {
        table.height = needs;
        let y = top + needs;
        rules.push(y - area.y);
        let width = area.width.saturating_sub(2).min(FIXES_COLUMNS);
        beneath = Some(Rect { x: area.x + 1, y: y + 1, width, height: rest - needs - 1 });
    }
    let gpus = Rect { height: gpus, ..area };
    (Rows { gpus, table, side, beneath, fixes, rules }, plan)
}

fn main_page(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let area = canvas.area();
    if scene.context.view.gpus.is_empty() {
        return waiting(canvas, scene);
    }
    let (rows, plan) = rows(area, scene);
    gpus::draw(&mut canvas.part(rows.gpus), scene, drawn, plan);
    drawn.wants.pcie |= matches!(
        plan,
        gpus::Plan::Panels(chart) | gpus::Plan::Grid { panel: Some(chart), .. } if chart > 3
    );
    for (n, rule) in rows.rules.iter().enumerate() {
        // The second one ends where the detail begins.
        let width = if n > 0 && rows.side.is_some() { rows.table.width + 1 } else { area.width };
        canvas.part(Rect { width, ..area }).rule(*rule);
    }
    table::draw(&mut canvas.part(rows.table), scene, drawn);
    if let Some(rule) = rows.rules.first() {
        table::title(canvas, scene, drawn, *rule);
    }
    if let Some(side) = rows.side {
        let (bar, rule) = (canvas.look.glyphs.bar, canvas.look.theme.rule);
        let mut edge = canvas.part(Rect { x: side.x - 2, width: 1, ..side });
        for y in 0..side.height {
            edge.cell(0, y, bar, rule);
        }
        selected(canvas, scene, side);
    }
    if let Some(beneath) = rows.beneath {
        selected(canvas, scene, beneath);
    }
    if let Some(area) = rows.fixes {
        fixes::draw(&mut canvas.part(area), scene, drawn);
    }
}

/// The selected process, beside the table or beneath it.
fn selected(canvas: &mut Canvas<'_>, scene: &Scene<'_>, area: Rect) {
    let mut doc = Doc::new(area.width, canvas.look);
    match (scene.holder(), scene.row()) {
        (Some(holder), _) => detail::summary(&mut doc, scene, holder),
        (None, Some(row)) => {
            if let Subject::Unaccounted(gpu, bytes) = row.subject {
                detail::unaccounted(&mut doc, gpu, bytes);
            }
        }
        (None, None) => {}
    }
    doc.draw(&mut canvas.part(area), 0);
}

/// Before the first answer, or without a GPU in it.
fn waiting(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    if hosts::waiting(canvas, scene) {
        return;
    }
    let theme = canvas.look.theme;
    let known = scene.context.history.latest().is_some();
    let (words, more) = match &scene.context.view.freshness {
        Freshness::Past | Freshness::Replay if scene.app.position != Position::Live && known => (
            "Nothing is known of this moment.".to_owned(),
            "The line of time below has a broken stretch here: n and N lead out of it.",
        ),
        Freshness::Stalled { for_ms, .. } => (
            format!("The driver has not answered for {}.", super::words::span(*for_ms)),
            "vramlens triage    reports what /proc tells without it",
        ),
        Freshness::Starting if scene.app.recording.is_some() => {
            ("Waiting for the recording.".to_owned(), "")
        }
        Freshness::Starting => ("Waiting for the driver's first answer.".to_owned(), ""),
        _ => ("The driver reports no GPU.".to_owned(), ""),
    };
    canvas.put(1, 1, &words, theme.text);
    canvas.put(1, 2, more, theme.dim);
}
