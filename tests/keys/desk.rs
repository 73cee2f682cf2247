//! A screen, an app and a keyboard.

use crossterm::event::{KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vramlens::analyze::View;
use vramlens::ids::{Pid, ProcId};
use vramlens::rules::Finding;
use vramlens::ui::action::Key;
use vramlens::ui::rows::Subject;
use vramlens::ui::{App, Context, Effect, Event, Hit, Settings, draw_on, update};

use crate::scenes::{Past, findings};

/// A screen that is typed at.
pub struct Desk {
    pub app: App,
    pub view: View,
    pub findings: Vec<Finding>,
    pub past: Past,
    size: (u16, u16),
}

impl Desk {
    pub fn new(view: View) -> Self {
        let app = App::new(Settings::default());
        let mut desk =
            Self { app, view, findings: findings(), past: Past::rising_to(1119), size: (80, 24) };
        desk.draw();
        desk
    }

    fn draw(&mut self) {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        self.app.drawn = draw_on(&mut Buffer::empty(area), area, &self.app, context);
    }

    /// What is shown, a line for each row.
    pub fn screen(&self) -> String {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        let mut buffer = Buffer::empty(area);
        draw_on(&mut buffer, area, &self.app, context);
        let row = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..area.height).map(row).collect::<Vec<_>>().join("\n")
    }

    pub fn event(&mut self, event: Event) -> Vec<Effect> {
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        let mut effects = update(&mut self.app, event, context);
        self.draw();
        effects.retain(|effect| !matches!(effect, Effect::Redraw | Effect::SetWants(_)));
        effects
    }

    /// `jj<enter>x`: what the last key asks for.
    pub fn keys(&mut self, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let (name, after) = named.unwrap_or_else(|| rest.split_at(c.len_utf8()));
            let key: Key = name.parse().unwrap();
            rest = after;
            effects = self.event(Event::Key(KeyEvent::new(key.code, key.modifiers)));
        }
        effects
    }

    pub fn click(&mut self, wanted: &Hit) -> Vec<Effect> {
        let hit = self.app.drawn.hits.iter().find(|(_, hit)| hit == wanted);
        let area = hit.unwrap_or_else(|| panic!("{wanted:?} is not on the screen")).0;
        self.mouse(MouseEventKind::Down(MouseButton::Left), area.x, area.y)
    }

    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
        let modifiers = KeyModifiers::NONE;
        self.event(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
    }

    /// The findings that are not sent away.
    pub fn shown_findings(&self) -> Vec<&Finding> {
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        self.app.findings(context)
    }

    pub fn selected_pid(&self) -> Option<u32> {
        let rows = self.app.rows(&self.view);
        match rows.get(self.app.selected_in(&rows))?.subject {
            Subject::Holder(holder) => Some(holder.pid.0),
            _ => None,
        }
    }

    pub fn shown_pids(&self) -> Vec<u32> {
        let rows = self.app.rows(&self.view);
        let pid = |row: &vramlens::ui::rows::Row<'_>| match row.subject {
            Subject::Holder(holder) => Some(holder.pid.0),
            _ => None,
        };
        rows.iter().filter_map(pid).collect()
    }
}

pub fn id(pid: u32) -> ProcId {
    ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 }
}
