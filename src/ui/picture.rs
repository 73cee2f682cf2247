//! A drawn screen as an SVG, for documents: what the terminal shows, cell for cell.

use std::borrow::Cow;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::theme::rgb_of;

const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 17.0;
const MARGIN: f32 = 12.0;
const PAPER: &str = "#16181d";
const INK: &str = "#d5d8de";

/// The buffer as an SVG document.
pub fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let width = MARGIN.mul_add(2.0, f32::from(area.width) * CELL_WIDTH);
    let height = MARGIN.mul_add(2.0, f32::from(area.height) * CELL_HEIGHT);
    // A theme with a ground of its own has it up to the edge.
    let ground = buffer.content.first().and_then(|cell| colour(cell.bg));
    let ground = ground.unwrap_or(Cow::Borrowed(PAPER));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{ground}\"/>\n"
    );
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let style = Style::of(&buffer[(x, y)]);
            let blank = buffer[(x, y)].symbol() == " ";
            let begin = x;
            let mut text = String::new();
            // A run of one style is one element; its length is set, so that fonts cannot shift it.
            // Blanks are runs of their own: renderers leave them out of the length, or do not.
            while x < area.right()
                && Style::of(&buffer[(x, y)]) == style
                && (buffer[(x, y)].symbol() == " ") == blank
            {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            run(&mut out, (begin - area.left(), y - area.top()), x - begin, &text, &style);
        }
    }
    out.push_str("</svg>\n");
    out
}

#[derive(PartialEq)]
struct Style {
    ink: Cow<'static, str>,
    paper: Option<Cow<'static, str>>,
    bold: bool,
    faint: bool,
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let modifier = cell.modifier;
        let (mut ink, mut paper) = (colour(cell.fg), colour(cell.bg));
        if modifier.contains(Modifier::REVERSED) {
            (ink, paper) = (
                Some(paper.unwrap_or(Cow::Borrowed(PAPER))),
                Some(ink.unwrap_or(Cow::Borrowed(INK))),
            );
        }
        Self {
            ink: ink.unwrap_or(Cow::Borrowed(INK)),
            paper,
            bold: modifier.contains(Modifier::BOLD),
            faint: modifier.contains(Modifier::DIM),
        }
    }
}

fn run(out: &mut String, at: (u16, u16), cells: u16, text: &str, style: &Style) {
    let x = f32::from(at.0).mul_add(CELL_WIDTH, MARGIN);
    let y = f32::from(at.1).mul_add(CELL_HEIGHT, MARGIN);
    let width = f32::from(cells) * CELL_WIDTH;
    if let Some(paper) = &style.paper {
        *out += &format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{paper}\"/>\n"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
    let faint = if style.faint { " opacity=\"0.6\"" } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    *out += &format!(
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{}\"{weight}{faint}>{text}</text>\n",
        y + 13.0,
        style.ink
    );
}

/// The sixteen colours of a terminal, as a quiet dark palette has them.
fn colour(colour: Color) -> Option<Cow<'static, str>> {
    if let (Color::Rgb(..) | Color::Indexed(_), Some((r, g, b))) = (colour, rgb_of(colour)) {
        return Some(format!("#{r:02x}{g:02x}{b:02x}").into());
    }
    Some(Cow::Borrowed(match colour {
        Color::Black => "#22252b",
        Color::Red | Color::LightRed => "#e8676b",
        Color::Green | Color::LightGreen => "#8cc265",
        Color::Yellow | Color::LightYellow => "#e5b567",
        Color::Blue | Color::LightBlue => "#61a8ef",
        Color::Magenta | Color::LightMagenta => "#c47fdc",
        Color::Cyan | Color::LightCyan => "#54b9c5",
        Color::Gray => "#b4b8c0",
        Color::DarkGray => "#7a808b",
        Color::White => "#ffffff",
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style as CellStyle;

    #[test]
    fn text_is_escaped_and_styles_are_kept() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, "a<b", CellStyle::new().fg(Color::Green));
        buffer.set_string(3, 0, "&x", CellStyle::new().add_modifier(Modifier::REVERSED));
        let svg = svg(&buffer);
        assert!(svg.contains("fill=\"#8cc265\">a&lt;b</text>"), "{svg}");
        assert!(svg.contains(&format!("fill=\"{PAPER}\">&amp;x</text>")), "{svg}");
        assert!(svg.contains(&format!("height=\"17\" fill=\"{INK}\"/>")), "{svg}");
    }
}
