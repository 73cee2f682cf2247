//! The processes: one row for each on each GPU, and one for what is nobody's.
//!
//! ```text
//!   GPU     PID USER     STATE        VRAM   Δ/min FRAG  SM%  AGE  COMMAND
//! ▸   0   41233 ana      active      86.1G   +1.2G  25%   92   3h  python train.py
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Scene;
use crate::analyze::{Freshness, GpuView, Holder};
use crate::fields::{self, Align, FieldId};
use crate::sample::text::width;
use crate::ui::app::{Drawn, Hit};
use crate::ui::columns::{MARGIN, Placed};
use crate::ui::ledger::is_old;
use crate::ui::paint::Canvas;
use crate::ui::rows::{Row, Subject};
use crate::units::Bytes;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let mig = scene.context.view.gpus.iter().any(|gpu| gpu.sample.mig.is_some());
    let columns = scene.app.settings.columns.place(canvas.width(), mig);
    head(canvas, scene, drawn, &columns);
    let rows = usize::from(canvas.height().saturating_sub(1));
    let last_first = scene.rows.len().saturating_sub(rows);
    // Moves only as far as it must to keep the selected row in sight.
    let least = (scene.at + 1).saturating_sub(rows.max(1));
    let first = scene.app.drawn.first_row.min(scene.at).max(least);
    let first = first.min(last_first);
    (drawn.first_row, drawn.rows, drawn.selected) = (first, rows, scene.at);
    drawn.wants.process_utilization |= columns.iter().any(|column| column.field.id == FieldId::Sm);
    if scene.rows.is_empty() {
        empty(canvas, scene);
    }
    let area = canvas.area();
    for (n, row) in scene.rows.iter().enumerate().skip(first).take(rows) {
        let y = 1 + (n - first) as u16;
        draw_row(canvas, scene, &columns, (y, n == scene.at), row);
        let strip = Rect { y: area.y + y, height: 1, ..area };
        drawn.hits.push((strip, Hit::Row(row.key())));
    }
}

fn head(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, columns: &[Placed]) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let area = canvas.area();
    for (n, column) in columns.iter().enumerate() {
        let sorted = column.field.id == scene.app.sort.by;
        let style = if sorted { theme.strong } else { theme.dim };
        let ascii = glyphs.ascii && column.field.id == FieldId::Delta;
        let title = if ascii { "d/min" } else { column.field.title };
        let end = column.x + column.width;
        let after = match column.field.align {
            Align::Left => canvas.put_within(column.x, 0, title, style, end),
            Align::Right => {
                canvas.put_right(end, 0, title, style);
                end
            }
        };
        if sorted {
            let glyph = glyphs.sorted[usize::from(!scene.app.sort.falls())];
            // Before a title that the next one would touch.
            let next = columns.get(n + 1);
            let touches = next.is_some_and(|next| {
                let air = match next.field.align {
                    Align::Left => 0,
                    Align::Right => usize::from(next.width).saturating_sub(width(next.field.title)),
                };
                usize::from(next.x) + air <= usize::from(after) + 1
            });
            let before = end.saturating_sub(width(title) as u16 + 1);
            let fits = column.field.align == Align::Right && before >= column.x.saturating_sub(1);
            canvas.put(if touches && fits { before } else { after }, 0, glyph, style);
        }
        let strip = Rect { x: area.x + column.x, width: column.width, height: 1, ..area };
        drawn.hits.push((strip.intersection(area), Hit::Column(column.field.id)));
    }
}

/// Why there is no row.
fn empty(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    let dim = canvas.look.theme.dim;
    let words = if !scene.app.filter.is_empty() {
        "no process passes the filter"
    } else if scene.app.scope.is_some() {
        "no process on this GPU"
    } else if scene.context.view.gpus.is_empty() {
        ""
    } else {
        "no process holds memory"
    };
    canvas.put(MARGIN + 1, 1, words, dim);
}

/// On the rule above: what the rows are restricted to, and which of them are seen.
pub fn title(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &Drawn, y: u16) {
    let theme = canvas.look.theme;
    let mut x = 3;
    let mut say = |canvas: &mut Canvas<'_>, words: &str| {
        let after = canvas.put_foreign(x, y, &format!(" {words} "), theme.accent, 48);
        x = after + 1;
    };
    if let Some(uuid) = &scene.app.scope
        && let Some(gpu) = scene.context.view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid)
    {
        say(canvas, &format!("only GPU {}", fields::gpu_label(&gpu.sample)));
    }
    if !scene.app.filter.is_empty() {
        say(canvas, &format!("filter {}", scene.app.filter.source()));
    }
    if scene.app.tree {
        say(canvas, "tree");
    }
    let (count, first) = (scene.rows.len(), drawn.first_row);
    if count > drawn.rows {
        let last = (first + drawn.rows).min(count);
        let words = format!(" {}-{last} of {count} ", first + 1);
        canvas.put_right(canvas.width().saturating_sub(3), y, &words, theme.dim);
    }
}

fn draw_row(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    columns: &[Placed],
    (y, selected): (u16, bool),
    row: &Row<'_>,
) {
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    if selected {
        canvas.put(0, y, glyphs.select, theme.accent);
    }
    if !scene.app.marks.is_empty() && scene.app.marks.iter().any(|key| row.is(key)) {
        canvas.put(1, y, glyphs.mark, theme.accent);
    }
    match row.subject {
        Subject::Holder(holder) => {
            let old = gpu_of(scene, holder).is_some_and(is_old);
            for column in columns {
                let style = if old { theme.dim } else { cell_style(canvas, holder, column) };
                if column.field.id == FieldId::Command {
                    command(canvas, (column, y), holder, row, style);
                } else {
                    cell(canvas, scene, (column, y), holder, style);
                }
            }
        }
        Subject::Unaccounted(gpu, bytes) => unaccounted(canvas, columns, y, gpu, bytes),
        Subject::Job(parent, count, bytes) => job(canvas, columns, y, (parent.0, count, bytes)),
    }
    if selected {
        canvas.tint(y, theme.selected);
        // What it is keeps its colour.
        if let Subject::Holder(holder) = row.subject
            && !gpu_of(scene, holder).is_some_and(is_old)
            && let Some(state) = columns.iter().find(|column| column.field.id == FieldId::State)
        {
            let style = theme.selected.patch(theme.verdict(&holder.verdict));
            cell(canvas, scene, (state, y), holder, style);
        }
    }
}

fn gpu_of<'a>(scene: &Scene<'a>, holder: &Holder) -> Option<&'a GpuView> {
    scene.context.view.gpus.iter().find(|gpu| holder.is_on(&gpu.sample))
}

fn cell_style(canvas: &Canvas<'_>, holder: &Holder, column: &Placed) -> Style {
    let theme = &canvas.look.theme;
    match column.field.id {
        FieldId::State => theme.verdict(&holder.verdict),
        FieldId::Vram => theme.strong,
        FieldId::Fragmentation => match fields::fragmented_percent(holder) {
            Some(percent) if percent >= 20.0 => theme.warn,
            _ => theme.text,
        },
        FieldId::User | FieldId::Age | FieldId::Gpu | FieldId::Unit => theme.dim,
        _ => theme.text,
    }
}

fn cell(
    canvas: &mut Canvas<'_>,
    scene: &Scene<'_>,
    (column, y): (&Placed, u16),
    holder: &Holder,
    style: Style,
) {
    let text = match column.field.id {
        FieldId::Gpu => match gpu_of(scene, holder) {
            Some(gpu) => fields::gpu_label(&gpu.sample),
            None => fields::cell(FieldId::Gpu, holder),
        },
        id => fields::cell(id, holder),
    };
    let style = if text == "-" { canvas.look.theme.dim } else { style };
    put_cell(canvas, column, y, &text, style);
}

fn put_cell(canvas: &mut Canvas<'_>, column: &Placed, y: u16, text: &str, style: Style) {
    match column.field.align {
        Align::Right => {
            canvas.put_right(column.x + column.width, y, text, style);
        }
        Align::Left => {
            canvas.put_foreign(column.x, y, text, style, column.width);
        }
    }
}

fn command(
    canvas: &mut Canvas<'_>,
    (column, y): (&Placed, u16),
    holder: &Holder,
    row: &Row<'_>,
    style: Style,
) {
    let mut x = column.x;
    if row.depth > 0 {
        x += 2 * (u16::from(row.depth) - 1);
        let branch = canvas.look.glyphs.branches[usize::from(row.last)];
        x = canvas.put(x, y, branch, canvas.look.theme.dim);
    }
    let room = (column.x + column.width).saturating_sub(x);
    let mut text = holder.command();
    // Where there is no room for all of it, the interpreter and the folders go first.
    if usize::from(room) < width(&text)
        && let Some(process) = &holder.process
    {
        text = process.short_command();
    }
    if text.is_empty() {
        canvas.put_foreign(x, y, fields::without_command(holder), canvas.look.theme.dim, room);
    } else {
        canvas.put_foreign(x, y, &text, style, room);
    }
}

fn unaccounted(canvas: &mut Canvas<'_>, columns: &[Placed], y: u16, gpu: &GpuView, bytes: Bytes) {
    let theme = canvas.look.theme;
    let past = gpu.freshness == Freshness::Past;
    for column in columns {
        let label;
        let (text, style) = match column.field.id {
            FieldId::Gpu => {
                label = fields::gpu_label(&gpu.sample);
                (label.as_str(), theme.dim)
            }
            FieldId::State if gpu.sample.unlisted().is_some() => ("not told", theme.unaccounted),
            FieldId::State => ("unacct", theme.unaccounted),
            FieldId::Vram => {
                label = bytes.short();
                (label.as_str(), theme.strong)
            }
            FieldId::Command => match gpu.unaccounted_causes.first() {
                Some(cause) => (cause.text.as_str(), theme.text),
                None if past => ("its causes are not kept for earlier moments", theme.dim),
                None => ("no process listed", theme.dim),
            },
            _ => ("-", theme.dim),
        };
        let style = if is_old(gpu) { theme.dim } else { style };
        put_cell(canvas, column, y, text, style);
    }
}

fn job(canvas: &mut Canvas<'_>, columns: &[Placed], y: u16, job: (u32, usize, Option<Bytes>)) {
    let theme = canvas.look.theme;
    for column in columns {
        let text = match column.field.id {
            FieldId::Pid => job.0.to_string(),
            FieldId::State => "launcher".to_owned(),
            FieldId::Vram => job.2.map_or_else(|| "-".to_owned(), Bytes::short),
            FieldId::Command => format!("{} processes, it holds nothing itself", job.1),
            _ => continue,
        };
        put_cell(canvas, column, y, &text, theme.dim);
    }
}
