//! Every key, from the table of actions, and every state in the words of the table of fields.

use ratatui::layout::Rect;

use super::{Scene, timeline};
use crate::analyze::timeline::MARKERS;
use crate::fields::{FIELDS, Scope};
use crate::ui::action::{ACTIONS, Action, Group};
use crate::ui::app::Drawn;
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;

/// Columns of the keys.
const KEYS: usize = 11;

/// Draws it: two columns where they fit.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let area = canvas.area();
    drawn.rows = usize::from(area.height);
    let two = area.width >= 100;
    let width = if two { area.width / 2 - 2 } else { area.width.saturating_sub(2) };
    let left = Rect { x: area.x + 1, width, ..area };
    let mut keys = Doc::new(width, canvas.look);
    for group in Group::ALL {
        bindings(&mut keys, scene, group);
    }
    let mut words = Doc::new(width, canvas.look);
    legend(&mut words);
    markers(&mut words);
    columns(&mut words);
    ages(&mut words);
    if two {
        let right = Rect { x: left.right() + 2, ..left };
        let first = keys.draw(&mut canvas.part(left), scene.app.scroll);
        let second = words.draw(&mut canvas.part(right), scene.app.scroll);
        drawn.overflow = first.max(second);
    } else {
        legend(&mut keys);
        markers(&mut keys);
        columns(&mut keys);
        ages(&mut keys);
        drawn.overflow = keys.draw(&mut canvas.part(left), scene.app.scroll);
    }
}

fn bindings(doc: &mut Doc, scene: &Scene<'_>, group: Group) {
    let theme = doc.look().theme;
    let ascii = doc.look().glyphs.ascii;
    doc.head(group.title());
    for row in ACTIONS.iter().filter(|row| row.group == group) {
        let labels: Vec<String> =
            scene.app.settings.keys.keys(row.action).map(|key| key.label(ascii)).collect();
        // 0 to 9 are one thing to know.
        let label = match labels.as_slice() {
            [first, .., last] if labels.len() > 3 && row.action == Action::Gpu => {
                format!("{first}-{last}")
            }
            labels => labels.join(" "),
        };
        doc.bullet(&pad(&label, KEYS), theme.key, row.doc, theme.text);
    }
}

/// What the signs on the line of time stand for.
fn markers(doc: &mut Doc) {
    let look = *doc.look();
    doc.head("EVENTS");
    for row in &MARKERS {
        let glyph = if look.glyphs.ascii { row.ascii } else { row.glyph };
        let style = timeline::style(&look.theme, row.kind);
        doc.bullet(&pad(glyph, KEYS), style, row.help, look.theme.text);
    }
    let sign = if look.glyphs.ascii { "*2" } else { "◆2" };
    let several = "so many events in one cell; + for 10 or more";
    doc.bullet(&pad(sign, KEYS), look.theme.dim, several, look.theme.text);
}

/// What the patterns of the bar stand for.
fn legend(doc: &mut Doc) {
    let look = *doc.look();
    let (theme, glyphs) = (look.theme, look.glyphs);
    doc.head("THE BAR");
    let holders = glyphs.holders.concat();
    let lines = [
        (holders.as_str(), theme.text, "held by a process, a pattern for each of the largest"),
        (glyphs.cached, theme.text, "cached by the allocator of the process before it, unused"),
        (glyphs.others, theme.text, "held by further processes"),
        (glyphs.unaccounted, theme.unaccounted, "used, and in no process's name"),
        (glyphs.host, theme.text, "used by programs on the processor, of memory that both share"),
        (glyphs.free, theme.free, "free"),
        (glyphs.reserved, theme.reserved, "kept by the driver"),
    ];
    for (sign, style, text) in lines {
        doc.bullet(&pad(sign, KEYS), style, text, theme.text);
    }
}

/// How old figures are that are not read at every look.
fn ages(doc: &mut Doc) {
    let look = *doc.look();
    doc.head("AGES");
    let rows = [
        ("<4s", "read in turns, less than that before the rest: memory clock, P state, PCIe"),
        ("limit, MIG", "what an administrator sets is read every 10 s"),
        ("lists", "of graphics and MPS processes that were empty are asked again within 4 s"),
        ("at rest", "a process that does nothing is read every 4 s; its end is seen at once"),
        ("12s, as of", "how old it is, or when it was read, where that is longer ago than usual"),
    ];
    for (sign, text) in rows {
        doc.bullet(&pad(sign, KEYS), look.theme.strong, text, look.theme.text);
    }
}

fn columns(doc: &mut Doc) {
    let look = *doc.look();
    doc.head("COLUMNS");
    for field in FIELDS.iter().filter(|field| field.scope == Scope::Holder) {
        let title =
            if look.glyphs.ascii { field.title.replace('Δ', "d") } else { field.title.into() };
        // What the configuration calls it, where that is not the title.
        let help = if field.title.eq_ignore_ascii_case(field.name) {
            field.help.to_owned()
        } else {
            format!("{} In the settings: {}.", field.help, field.name)
        };
        doc.bullet(&pad(&title, KEYS), look.theme.strong, &help, look.theme.text);
    }
}

fn pad(text: &str, columns: usize) -> String {
    let used = crate::sample::text::width(text);
    format!("{text}{}", " ".repeat(columns.saturating_sub(used)))
}
