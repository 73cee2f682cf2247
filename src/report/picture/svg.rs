//! A picture as SVG: text stays text, areas are paths, and every sign says what it is when it is
//! pointed at.

use std::fmt::Write;

use super::scene::{Anchor, Fill, Ink, PAPER, Scene, Shape, Step, sign};

/// The document. The same picture gives the same bytes.
pub fn write(scene: &Scene) -> String {
    let (w, h) = (scene.width, scene.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
         viewBox=\"0 0 {w} {h}\" font-size=\"11.67\" role=\"img\" \
         font-family=\"'DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace\">\n\
         <title>{}</title>\n",
        escaped(&scene.title)
    );
    patterns(scene, &mut out);
    for shape in &scene.shapes {
        one(shape, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn patterns(scene: &Scene, out: &mut String) {
    let mut fills: Vec<Fill> = Vec::new();
    for shape in &scene.shapes {
        let (Shape::Rect(_, fill) | Shape::Area(_, _, fill)) = shape else { continue };
        if !matches!(fill, Fill::Plain(_)) && !fills.contains(fill) {
            fills.push(*fill);
        }
    }
    if fills.is_empty() {
        return;
    }
    out.push_str("<defs>\n");
    for fill in fills {
        let ink = hex(fill.ink());
        let (size, inner) = match fill {
            Fill::Dotted(_) => (4, format!("<rect width=\"2\" height=\"2\" fill=\"{ink}\"/>")),
            _ => (
                6,
                format!(
                    "<path d=\"M-1 1L1 -1M0 6L6 0M5 7L7 5\" stroke=\"{ink}\" stroke-width=\"2\"/>"
                ),
            ),
        };
        let _ = writeln!(
            out,
            "<pattern id=\"{}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"{size}\" height=\"{size}\" fill=\"{}\"/>{inner}</pattern>",
            id(fill),
            hex(PAPER)
        );
    }
    out.push_str("</defs>\n");
}

fn one(shape: &Shape, out: &mut String) {
    let _ = match shape {
        Shape::Rect([x, y, w, h], fill) => writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{}\"/>",
            paint(*fill)
        ),
        Shape::Frame([x, y, w, h], ink) => writeln!(
            out,
            "<rect x=\"{x}.5\" y=\"{y}.5\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\"/>",
            w - 1,
            h - 1,
            hex(*ink)
        ),
        Shape::Area(name, steps, fill) => writeln!(
            out,
            "<path d=\"{}\" fill=\"{}\"><title>{}</title></path>",
            path(steps),
            paint(*fill),
            escaped(name)
        ),
        Shape::Dashes([x, y, h], ink) => writeln!(
            out,
            "<path d=\"M{x}.5 {y}v{h}\" stroke=\"{}\" stroke-dasharray=\"3 3\"/>",
            hex(*ink)
        ),
        Shape::Sign([x, y], kind, words) => {
            let (polygons, ink) = sign(*kind);
            let mut d = String::new();
            for polygon in polygons {
                for (n, (px, py)) in polygon.iter().enumerate() {
                    let _ = write!(d, "{}{} {}", if n == 0 { 'M' } else { 'L' }, x + px, y + py);
                }
                d.push('Z');
            }
            let (fill, edge, words) = (hex(ink), hex(PAPER), escaped(words));
            writeln!(
                out,
                "<path d=\"{d}\" fill=\"{fill}\" stroke=\"{edge}\" paint-order=\"stroke\">\
                 <title>{words}</title></path>"
            )
        }
        Shape::Text { at: [x, y], text, ink, anchor, bold } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" fill=\"{}\"{anchor}{weight} xml:space=\"preserve\">{}</text>",
                hex(*ink),
                escaped(text)
            )
        }
    };
}

/// An area in closed pieces: along its upper edge, and back along the lower one.
fn path(steps: &[Step]) -> String {
    let mut out = String::new();
    for piece in steps.chunk_by(|a, b| a.end == b.x) {
        let Some(first) = piece.first() else { continue };
        let _ = write!(out, "M{} {}", first.x, first.top);
        let mut y = first.top;
        for step in piece {
            if step.top != y {
                let _ = write!(out, "H{}V{}", step.x, step.top);
                y = step.top;
            }
        }
        let mut x = piece.last().map_or(first.end, |last| last.end);
        let _ = write!(out, "H{x}");
        for step in piece.iter().rev() {
            if step.bottom != y {
                let _ = if x == step.end { Ok(()) } else { write!(out, "H{}", step.end) };
                let _ = write!(out, "V{}", step.bottom);
                (x, y) = (step.end, step.bottom);
            }
        }
        let _ = write!(out, "H{}", first.x);
        out.push('Z');
    }
    out
}

fn hex(Ink(r, g, b): Ink) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn id(fill: Fill) -> String {
    let kind = if matches!(fill, Fill::Dotted(_)) { "dots" } else { "stripes" };
    format!("{kind}-{}", hex(fill.ink()).trim_start_matches('#'))
}

fn paint(fill: Fill) -> String {
    match fill {
        Fill::Plain(ink) => hex(ink),
        _ => format!("url(#{})", id(fill)),
    }
}

/// Clean text for XML, which has no place for some characters at all.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_closed_and_broken_at_holes() {
        let step = |x, end, top| Step { x, end, top, bottom: 9 };
        let path = path(&[step(0, 2, 5), step(2, 4, 3), step(6, 7, 5)]);
        assert_eq!(path, "M0 5H2V3H4V9H0ZM6 5H7V9H6Z");
    }

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escaped("a<b>&\"'\u{1}\u{ffff}é"),
            "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}é"
        );
    }
}
