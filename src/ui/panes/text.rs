//! A page of text: what `explain` found.

use ratatui::layout::Rect;

use super::Scene;
use crate::ui::app::Drawn;
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;

/// Draws it.
pub fn draw(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    drawn: &mut Drawn,
    (title, lines): (&str, &[String]),
) {
    let theme = canvas.look.theme;
    canvas.put_foreign(1, 0, title, theme.strong, canvas.width().saturating_sub(2));
    canvas.rule(1);
    let area = canvas.area();
    let body = Rect {
        x: area.x + 1,
        y: area.y + 2,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    let mut doc = Doc::new(body.width.min(100), canvas.look);
    for line in lines {
        let text = line.trim_start_matches(' ');
        // What is indented stays so: a rule stands under its columns.
        match (line.len() - text.len()).min(usize::from(body.width) / 2) {
            0 => doc.line(text, theme.text),
            indent => doc.bullet(&" ".repeat(indent - 1), theme.text, text, theme.text),
        }
    }
    drawn.overflow = doc.draw(&mut canvas.part(body), scene.app.scroll);
    drawn.rows = usize::from(body.height);
}
