//! The page of one process, in tabs.

use ratatui::layout::Rect;

use super::workload;
use super::{Scene, charts, detail};
use crate::analyze::Holder;
use crate::ui::app::{Drawn, Hit, Tab};
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;
use crate::ui::rows::Subject;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, tab: Tab) {
    bar(canvas, drawn, tab);
    canvas.rule(1);
    let area = canvas.area();
    let body = Rect {
        x: area.x + 1,
        y: area.y + 2,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    let Some(holder) = scene.holder() else {
        return no_process(&mut canvas.part(body), scene);
    };
    drawn.wants.process_utilization = true;
    let mut part = canvas.part(body);
    if tab == Tab::History {
        history(&mut part, scene, holder);
        return;
    }
    let mut doc = Doc::new(body.width.min(100), part.look);
    match tab {
        Tab::Verdict => {
            detail::identity(&mut doc, holder);
            detail::age_of_facts(&mut doc, holder, scene.context.view.at);
            detail::verdict(&mut doc, holder);
            detail::legend(&mut doc);
        }
        Tab::Allocator => detail::allocator(&mut doc, scene, holder, false),
        Tab::Workload => workload::workload(&mut doc, scene, holder),
        Tab::Environment => detail::environment(&mut doc, holder.process.as_deref()),
        Tab::History => {}
    }
    drawn.overflow = doc.draw(&mut part, scene.app.scroll);
    drawn.rows = usize::from(body.height);
}

/// What a row says that is no process.
fn no_process(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    let theme = canvas.look.theme;
    let mut doc = Doc::new(canvas.width().min(100), canvas.look);
    match scene.row().map(|row| &row.subject) {
        Some(Subject::Unaccounted(gpu, bytes)) => detail::unaccounted(&mut doc, gpu, *bytes),
        Some(_) => doc.line("no single process: choose one in the table", theme.dim),
        None => doc.line("the process is gone", theme.dim),
    }
    doc.draw(canvas, 0);
}

fn bar(canvas: &mut Canvas<'_>, drawn: &mut Drawn, tab: Tab) {
    let theme = canvas.look.theme;
    let area = canvas.area();
    let mut x = 1;
    let taken: usize = Tab::ALL.iter().map(|each| each.title().len() + 5).sum();
    let narrow = taken > usize::from(area.width) + 3;
    for (n, each) in Tab::ALL.into_iter().enumerate() {
        let open = each == tab;
        let start = x;
        if open {
            canvas.put(x - 1, 0, canvas.look.glyphs.select, theme.accent);
        }
        x = canvas.put(x, 0, &(n + 1).to_string(), theme.dim) + 1;
        // Where there is no room for all of them, the open one has its name.
        if open || !narrow {
            x = canvas.put(x, 0, each.title(), if open { theme.accent } else { theme.text });
        } else {
            x -= 1;
        }
        let strip = Rect { x: area.x + start, width: x - start, height: 1, ..area };
        drawn.hits.push((strip.intersection(area), Hit::Tab(each)));
        x += 3;
    }
}

/// The chart of one process, as high as there is room, with its axes and its peak.
fn history(canvas: &mut Canvas<'_>, scene: &Scene<'_>, holder: &Holder) {
    let area = canvas.area();
    let rows = area.height.saturating_sub(8).clamp(1, 18);
    charts::holder(&mut canvas.part(Rect { height: rows + 1, ..area }), scene, holder, rows);
    let below = rows + 2;
    let rest = Rect { y: area.y + below, height: area.height.saturating_sub(below), ..area };
    let mut doc = Doc::new(rest.width.min(100), canvas.look);
    detail::movement(&mut doc, scene, holder);
    doc.draw(&mut canvas.part(rest), 0);
}
