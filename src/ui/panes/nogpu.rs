//! What was found where a GPU was looked for, and what to do.

use ratatui::layout::Rect;

use crate::ui::app::NoGpu;
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, found: &NoGpu) {
    let theme = canvas.look.theme;
    let area = canvas.area();
    let body = Rect {
        x: area.x + 1,
        y: area.y + u16::from(area.height > 12),
        width: area.width.saturating_sub(2).min(100),
        height: area.height,
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
    doc.pieces(vec![
        ("  d".to_owned(), theme.key),
        ("  see vramlens on a recording of a real GPU".to_owned(), theme.text),
    ]);
    doc.pieces(vec![("  r".to_owned(), theme.key), ("  open a recording".to_owned(), theme.text)]);
    doc.draw(&mut canvas.part(body), 0);
}
