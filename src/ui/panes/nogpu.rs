//! What was found where a GPU was looked for, and what to do.

use ratatui::layout::Rect;

use super::Scene;
use crate::ui::action::Action;
use crate::ui::app::{Drawn, NoGpu};
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, found: &NoGpu) {
    let theme = canvas.look.theme;
    let area = canvas.area();
    let body = Rect {
        x: area.x + 1,
        y: area.y + u16::from(area.height > 12),
        width: area.width.saturating_sub(2).min(100),
        height: area.height.saturating_sub(u16::from(area.height > 12)),
    };
    let mut doc = Doc::new(body.width, canvas.look);
    doc.line("No NVIDIA GPU can be read on this machine.", theme.strong);
    doc.space();
    let widest = found.facts.iter().map(|fact| fact.0.len()).max().unwrap_or(0);
    for (what, finding) in &found.facts {
        doc.bullet(&format!("  {what:<widest$}  "), theme.dim, finding, theme.text);
    }
    doc.space();
    doc.bullet("What to do:", theme.strong, &found.advice, theme.text);
    doc.space();
    let words = [
        (Action::Demo, "see vramlens on a recording of a real GPU"),
        (Action::Open, "open a recording"),
    ];
    for (action, words) in words {
        let label = scene.app.settings.keys.label(action, canvas.look.glyphs.ascii);
        doc.pieces(vec![(format!("  {label}"), theme.key), (format!("  {words}"), theme.text)]);
    }
    drawn.rows = usize::from(body.height);
    drawn.overflow = doc.draw(&mut canvas.part(body), scene.app.scroll);
}
