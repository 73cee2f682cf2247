//! The last line: what can be done now, a message, or what is being typed.

use super::Scene;
use crate::fields::own_line;
use crate::ui::action::Action;
use crate::ui::app::{Drawn, Hit, Page, Position, PromptKind};
use crate::ui::ledger::count;
use crate::ui::paint::Canvas;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    if scene.app.prompt.is_some() {
        return prompt(canvas, scene);
    }
    let fails = scene.app.message.as_ref().is_some_and(|message| message.error);
    let left = if let Some(cost) = scene.app.cost.as_ref().filter(|_| !fails) {
        let theme = canvas.look.theme;
        let room = canvas.width().saturating_sub(2);
        canvas.put_within(1, 0, &own_line(cost), theme.text, room)
    } else if scene.app.message.is_some() {
        message(canvas, scene)
    } else if scene.app.page == Page::Main {
        zombies(canvas, scene, drawn)
    } else {
        below(canvas, scene, drawn)
    };
    keys(canvas, scene, drawn, left);
}

fn prompt(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    let Some(prompt) = &scene.app.prompt else { return };
    let theme = canvas.look.theme;
    let (title, help) = match prompt.kind {
        PromptKind::Filter => ("filter", "user: state: gpu: vram>2G !not"),
        PromptKind::Explain => ("error message, paste it", ""),
        PromptKind::Recording => ("recording", "a .vrt file"),
        PromptKind::Time => ("go to", crate::analyze::moment::FORMS),
    };
    let mut x = canvas.put(1, 0, title, theme.accent);
    x = canvas.put(x, 0, ": ", theme.accent);
    // The end of what is typed is what matters.
    let room = usize::from(canvas.width().saturating_sub(x + 2));
    let skip = prompt.text.chars().count().saturating_sub(room);
    let tail: String = prompt.text.chars().skip(skip).collect();
    x = canvas.put_foreign(x, 0, &tail, theme.text, room as u16);
    canvas.cell(x, 0, " ", theme.text.add_modifier(ratatui::style::Modifier::REVERSED));
    let end = canvas.width().saturating_sub(1);
    let complaint = scene.app.filter.complaints.first();
    let complaint = complaint.filter(|_| prompt.kind == PromptKind::Filter);
    let (note, style) = complaint.map_or((help, theme.dim), |text| (text.as_str(), theme.warn));
    if x + 4 + (note.chars().count() as u16) < end {
        canvas.put_right(end, 0, note, style);
    }
}

fn message(canvas: &mut Canvas<'_>, scene: &Scene<'_>) -> u16 {
    let Some(message) = &scene.app.message else { return 0 };
    let theme = canvas.look.theme;
    let style = if message.error { theme.warn } else { theme.text };
    canvas.put_foreign(1, 0, &message.text, style, canvas.width().saturating_sub(2))
}

/// That a page goes on.
fn below(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &Drawn) -> u16 {
    let rest = drawn.overflow.saturating_sub(scene.app.scroll);
    if rest == 0 {
        return 0;
    }
    let theme = canvas.look.theme;
    let key = scene.app.settings.keys.label(Action::Down, canvas.look.glyphs.ascii);
    let x = canvas.put(1, 0, &key, theme.key);
    canvas.put(x + 1, 0, &format!("{} below", count(rest, "more line")), theme.dim)
}

/// Offers `z`, only where there is a zombie.
fn zombies(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) -> u16 {
    let theme = canvas.look.theme;
    let marked = scene.app.marks.len();
    if marked > 0 && may_end(scene) {
        let key = scene.app.settings.keys.label(Action::Kill, canvas.look.glyphs.ascii);
        return canvas.put(1, 0, &format!("{marked} marked: press {key}"), theme.accent);
    }
    let complaint = super::hosts::complaint(scene);
    if !complaint.is_empty() {
        let room = canvas.width().saturating_sub(24);
        return canvas.put_foreign(1, 0, &complaint, theme.warn, room);
    }
    let (n, bytes) = scene.context.view.zombies();
    if n == 0 {
        return elsewhere(canvas, scene, drawn);
    }
    let key = scene.app.settings.keys.label(Action::KillZombies, canvas.look.glyphs.ascii);
    let narrow = canvas.width() < 60;
    // In a recording nothing can be ended, nor in an earlier moment.
    if !may_end(scene) {
        return canvas.put(1, 0, &format!("{}, {bytes}", count(n, "zombie")), theme.bad);
    }
    let words = if narrow {
        format!("{key}: {}", count(n, "zombie"))
    } else {
        format!("{}, {bytes}: press {key}", count(n, "zombie"))
    };
    let end = canvas.put(1, 0, &words, theme.bad);
    drawn.hits.push((strip(canvas, 1, end), Hit::Do(Action::KillZombies)));
    end
}

/// Zombies of the machines that are not selected.
fn elsewhere(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) -> u16 {
    let (zombies, hosts) = scene.app.hosts.zombies_elsewhere();
    if zombies == 0 {
        return 0;
    }
    let words = format!("{} on {}", count(zombies, "zombie"), count(hosts, "other host"));
    let end = canvas.put(1, 0, &words, canvas.look.theme.bad);
    drawn.hits.push((strip(canvas, 1, end), Hit::Do(Action::NextHost)));
    end
}

/// Whether anything can be ended: not in a recording, and not in an earlier moment.
fn may_end(scene: &Scene<'_>) -> bool {
    scene.app.recording.is_none() && scene.app.position == Position::Live
}

/// Whether a key has something to act on now.
fn can_be_done(scene: &Scene<'_>, action: Action) -> bool {
    match action {
        Action::Kill => may_end(scene),
        Action::Copy => !scene.app.findings(scene.context).is_empty(),
        _ => true,
    }
}

/// The most useful keys that fit, right-aligned so that they do not move.
fn keys(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn, left: u16) {
    use Action::{
        Back, Copy, Demo, Detail, Filter, Fixes, Help, Kill, Leave, Live, NextGpu, NextHost, Open,
        Quit, RetryHost, Sort, Tree,
    };
    let past = scene.app.position != Position::Live;
    let time = if past { Live } else { Back };
    let many = scene.app.hosts.is_many();
    let away = matches!(
        scene.app.hosts.current().map(|host| &host.state),
        Some(crate::ui::hosts::HostState::Away { .. })
    );
    let wanted: &[Action] = match scene.app.page {
        Page::Main if away && many => &[Quit, Help, RetryHost, NextHost],
        Page::Main if away => &[Quit, Help, RetryHost],
        Page::Main if scene.context.view.gpus.is_empty() && many => &[Quit, Help, NextHost],
        Page::Main if scene.context.view.gpus.is_empty() => &[Quit, Help],
        Page::Main if scene.rows.is_empty() => &[Quit, Help, time],
        Page::Main if many => &[Quit, Help, NextHost, Detail, Kill, time, Fixes, Filter, Sort],
        Page::Main => &[Quit, Help, Detail, Kill, time, Fixes, Filter, Sort, Tree],
        Page::Detail(_) => &[Quit, Help, Leave, Kill, NextGpu, time],
        Page::Fixes => &[Quit, Help, Leave, Copy],
        Page::Help | Page::Text { .. } => &[Quit, Leave],
        Page::NoGpu(_) => &[Quit, Demo, Open, Help],
    };
    let room = canvas.width().saturating_sub(left + 3);
    let ascii = canvas.look.glyphs.ascii;
    let words = |action: Action| match (action, &scene.app.page) {
        (NextGpu, Page::Detail(_)) => "next tab",
        (Live, _) if scene.app.recording.is_some() => "go on",
        (Quit | Help, _) if canvas.width() < 100 => "",
        _ => action.row().short,
    };
    let mut shown: Vec<(Action, String, &str)> = Vec::with_capacity(wanted.len());
    let mut used = 0;
    for &action in wanted.iter().filter(|action| can_be_done(scene, **action)) {
        let label = scene.app.settings.keys.label(action, ascii);
        if label.is_empty() {
            continue;
        }
        let columns = (label.chars().count() + words(action).chars().count() + 3) as u16;
        if used + columns > room {
            break;
        }
        used += columns;
        shown.push((action, label, words(action)));
    }
    // In the order of use, the ways out last.
    shown.reverse();
    let mut x = canvas.width().saturating_sub(used) + 1;
    for (action, label, words) in shown {
        let start = x;
        x = canvas.put(x, 0, &label, canvas.look.theme.key);
        if !words.is_empty() {
            x = canvas.put(x + 1, 0, words, canvas.look.theme.dim);
        }
        drawn.hits.push((strip(canvas, start, x), Hit::Do(action)));
        x += 2;
    }
}

fn strip(canvas: &Canvas<'_>, from: u16, to: u16) -> ratatui::layout::Rect {
    let area = canvas.area();
    ratatui::layout::Rect::new(area.x + from, area.y, to.saturating_sub(from), 1)
}
