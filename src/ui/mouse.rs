//! The mouse: a click selects, sorts or presses a key; the wheel moves.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::action::Action;
use super::app::{App, Context, Hit, Page};
use super::commands::{act, sort_by};
use super::event::Effect;

/// Rows that a turn of the wheel moves.
const WHEEL: usize = 3;

/// Takes what the mouse did.
pub fn click(app: &mut App, event: MouseEvent, context: Context<'_>) -> Vec<Effect> {
    if app.kill.is_some() || app.choosing {
        return Vec::new();
    }
    match event.kind {
        MouseEventKind::ScrollUp => wheel(app, Action::Up, context),
        MouseEventKind::ScrollDown => wheel(app, Action::Down, context),
        MouseEventKind::Down(MouseButton::Left) => {
            let at = Position { x: event.column, y: event.row };
            let hit = app.drawn.hits.iter().rev().find(|(area, _)| area.contains(at));
            match hit.map(|(_, hit)| hit.clone()) {
                Some(hit) => hit_at(app, hit, context),
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn wheel(app: &mut App, action: Action, context: Context<'_>) -> Vec<Effect> {
    for _ in 0..WHEEL {
        act(app, action, None, context);
    }
    vec![Effect::Redraw]
}

fn hit_at(app: &mut App, hit: Hit, context: Context<'_>) -> Vec<Effect> {
    match hit {
        // A click on what is selected opens it.
        Hit::Row(key) if app.selected.as_ref() == Some(&key) => {
            return act(app, Action::Detail, None, context);
        }
        Hit::Row(key) => app.selected = Some(key),
        Hit::Column(field) => sort_by(app, field),
        Hit::Do(action) => return act(app, action, None, context),
        Hit::Gpu(uuid) if app.scope.as_ref() == Some(&uuid) => app.scope = None,
        Hit::Gpu(uuid) => app.scope = Some(uuid),
        Hit::Tab(tab) => (app.page, app.scroll) = (Page::Detail(tab), 0),
        Hit::Host(n) => return vec![Effect::SelectHost(n), Effect::Redraw],
        Hit::Time(at_ms) => return super::time::reach(app, at_ms, context),
        Hit::Finding(n) => (app.page, app.finding) = (Page::Fixes, n),
    }
    vec![Effect::Redraw]
}
