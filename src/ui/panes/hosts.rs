//! The overview of several machines: a line for each, above the selected one's view.
//!
//! ```text
//! ▸ ana@gpubox       live        8 GPU ██████···   73% of 1120G   2 fixes    1 zombie
//!   bo@box2          away 2 min  Connection refused; again in 12 s
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Scene;
use crate::ui::app::{Drawn, Hit, Page};
use crate::ui::hosts::{HostLine, HostState, Hosts};
use crate::ui::ledger::count;
use crate::ui::paint::Canvas;
use crate::ui::theme::Look;
use crate::ui::words::span;

/// From this height on there is a rule below.
const ROOMY_ROWS: u16 = 20;
/// Columns of a state.
const STATE: u16 = 11;
/// A line is never wider: its two ends belong together.
const WIDEST: u16 = 120;

/// Lines that the overview takes of `rows`, none where there is nothing to choose from, and whether
/// there is a rule below.
pub fn plan(scene: &Scene<'_>, rows: u16) -> (u16, bool) {
    let hosts = &scene.app.hosts;
    if !hosts.is_many() || scene.app.page != Page::Main {
        return (0, false);
    }
    ((hosts.lines.len() as u16).min((rows / 5).max(2)), rows >= ROOMY_ROWS)
}

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let hosts = &scene.app.hosts;
    let rows = canvas.height();
    let area = Rect { width: canvas.width().min(WIDEST), ..canvas.area() };
    let (first, shown) = window(hosts, usize::from(rows));
    for (row, n) in (first..first + shown).enumerate() {
        let Some(host) = hosts.lines.get(n) else { break };
        let place = Rect { y: area.y + row as u16, height: 1, ..area };
        line(&mut canvas.part(place), host, n == hosts.selected);
        drawn.hits.push((place, Hit::Host(n)));
    }
    if shown < hosts.lines.len() {
        rest(canvas, hosts, (first, shown), rows.saturating_sub(1));
    }
}

/// The first machine that is shown, and how many are: the selected one among them, and a row left
/// for the others.
fn window(hosts: &Hosts, rows: usize) -> (usize, usize) {
    let count = hosts.lines.len();
    if count <= rows {
        return (0, count);
    }
    let shown = rows.saturating_sub(1).max(1);
    (hosts.selected.saturating_sub(shown / 2).min(count - shown), shown)
}

/// What is not shown, summed up.
fn rest(canvas: &mut Canvas<'_>, hosts: &Hosts, (first, shown): (usize, usize), row: u16) {
    let theme = canvas.look.theme;
    let hidden = || {
        let all = hosts.lines.iter().enumerate();
        all.filter(move |(n, _)| *n < first || *n >= first + shown).map(|(_, line)| line)
    };
    let states = ["live", "stalled", "no GPU", "away", "connecting"];
    let named = states.iter().filter_map(|word| {
        let n = hidden().filter(|line| line.state.word() == *word).count();
        (n > 0).then(|| format!("{n} {word}"))
    });
    let text = format!("{} more: {}", hidden().count(), named.collect::<Vec<_>>().join(", "));
    let x = canvas.put(2, row, &text, theme.dim);
    let zombies: usize = hidden().map(|line| line.zombies).sum();
    if zombies > 0 {
        canvas.put(x + 2, row, &count(zombies, "zombie"), theme.bad);
    }
}

fn line(canvas: &mut Canvas<'_>, host: &HostLine, selected: bool) {
    let theme = canvas.look.theme;
    let width = canvas.width();
    let named = if width >= 110 { 26 } else { width.saturating_sub(64).clamp(10, 17) };
    if selected {
        canvas.put(0, 0, canvas.look.glyphs.select, theme.accent);
    }
    let style = if selected { theme.selected } else { theme.text };
    canvas.put_foreign(2, 0, &host.name, style, named);
    let x = named + 3;
    let (words, style) = state(host, canvas.look);
    canvas.put_foreign(x, 0, &words, style, STATE);
    let x = x + STATE + 1;
    let end = width.saturating_sub(1);
    match &host.state {
        HostState::Away { why, retry_in_ms, .. } => {
            let again = retry_in_ms.map_or_else(
                || "; trying".to_owned(),
                |ms| format!("; again in {}", span(ms.saturating_add(999))),
            );
            let x = if width >= 110 { old(canvas, host, x) } else { x };
            let room = end.saturating_sub(x + again.chars().count() as u16);
            let x = canvas.put_foreign(x, 0, why, theme.text, room);
            canvas.put(x, 0, &again, theme.dim);
        }
        HostState::NoGpu { why } => {
            canvas.put_foreign(x, 0, why, theme.text, end.saturating_sub(x));
        }
        _ => figures(canvas, host, x),
    }
}

/// The state in words, with the time where it is a bad one.
fn state(host: &HostLine, look: &Look) -> (String, Style) {
    let theme = look.theme;
    match &host.state {
        HostState::Live if host.older => ("older".to_owned(), theme.warn),
        HostState::Live => (host.state.word().to_owned(), theme.good),
        HostState::Connecting => (host.state.word().to_owned(), theme.dim),
        HostState::NoGpu { .. } => (host.state.word().to_owned(), theme.warn),
        HostState::Stalled { for_ms } => (format!("stalled {}", brief(*for_ms)), theme.bad),
        HostState::Away { for_ms, .. } => (format!("away {}", brief(*for_ms)), theme.bad),
    }
}

fn brief(ms: u64) -> String {
    crate::units::age(ms)
}

/// Figures of a machine that cannot be reached now, with their age; gives the column behind them.
fn old(canvas: &mut Canvas<'_>, host: &HostLine, x: u16) -> u16 {
    let theme = canvas.look.theme;
    let Some(age_ms) = host.age_ms.filter(|_| host.gpus > 0) else { return x };
    let told = untold(host).map_or_else(String::new, |told| format!(", {told}"));
    let text = format!("{} GPU  {}{told}, {} old", host.gpus, fullness(host).1, brief(age_ms));
    canvas.put(x, 0, &text, theme.dim) + 3
}

fn figures(canvas: &mut Canvas<'_>, host: &HostLine, x: u16) {
    let theme = canvas.look.theme;
    let width = canvas.width();
    if host.gpus == 0 {
        return;
    }
    let fresh = host.state.is_current();
    let tinted = |style: Style| if fresh { style } else { theme.dim };
    let end = width.saturating_sub(1);
    let roomy = width >= 76;
    let (many, left) = match host.zombies {
        0 => (String::new(), theme.dim),
        n if roomy => (count(n, "zombie"), theme.bad),
        n => (format!("{n}z"), theme.bad),
    };
    canvas.put_right(end, 0, &many, tinted(left));
    let mut right = end.saturating_sub(if roomy { 11 } else { 4 });
    if roomy {
        let found = if host.findings > 0 { fixes(host.findings) } else { String::new() };
        canvas.put_right(right, 0, &found, tinted(theme.warn));
        right = right.saturating_sub(10);
    }
    let (percent, words) = fullness(host);
    let partial = untold(host);
    if let Some(told) = partial.as_deref().filter(|_| roomy) {
        canvas.put_right(right, 0, told, tinted(theme.warn));
        right = right.saturating_sub(told.len() as u16 + 1);
    }
    let words = if roomy {
        words
    } else {
        words.split_once(" of ").map_or("?", |(share, _)| share).to_owned()
    };
    canvas.put_right(right, 0, &words, tinted(theme.level(percent)));
    right = right.saturating_sub(if roomy { 14 } else { 5 });
    let gpus = match partial {
        Some(_) if !roomy => format!("{}/{} GPU", host.told, host.gpus),
        _ => format!("{} GPU", host.gpus),
    };
    let x = x + (gpus.len() as u16).max(6);
    if right < x {
        return;
    }
    canvas.put_right(x, 0, &gpus, tinted(theme.text));
    bar(canvas, (x + 1, right), host, fresh);
}

/// That the figures are not of all its GPUs, where that is so.
fn untold(host: &HostLine) -> Option<String> {
    (0 < host.told && host.told < host.gpus).then(|| format!("{} of {} tell", host.told, host.gpus))
}

fn fixes(n: usize) -> String {
    if n == 1 { "1 fix".to_owned() } else { format!("{n} fixes") }
}

fn fullness(host: &HostLine) -> (f64, String) {
    let percent = host.used.percent_of(host.total).map_or(0.0, |percent| f64::from(percent.0));
    if host.total.0 == 0 {
        return (0.0, "memory unknown".to_owned());
    }
    // 99.6 is not full.
    let shown = if percent < 100.0 { percent.min(99.0) } else { percent };
    (percent, format!("{shown:.0}% of {}", host.total.short()))
}

fn bar(canvas: &mut Canvas<'_>, (from, to): (u16, u16), host: &HostLine, fresh: bool) {
    if host.total.0 == 0 || to <= from {
        return;
    }
    let (theme, glyphs) = (canvas.look.theme, canvas.look.glyphs);
    let cells = u128::from(to - from);
    let whole = u128::from(host.total.0);
    let full = ((u128::from(host.used.0) * cells + whole / 2) / whole).min(cells);
    let middle = from + full as u16;
    let style = if fresh { theme.text } else { theme.dim };
    canvas.fill(from, middle, 0, glyphs.holders[0], style);
    canvas.fill(middle, to, 0, glyphs.free, theme.free);
}

/// What fills the page of a machine of which nothing was seen; no where it is not about one.
pub fn waiting(canvas: &mut Canvas<'_>, scene: &Scene<'_>) -> bool {
    let Some(host) = scene.app.hosts.current() else { return false };
    let theme = canvas.look.theme;
    let room = canvas.width().saturating_sub(2);
    let (head, why, next) = match &host.state {
        HostState::Connecting => (format!("Connecting to {}.", host.name), None, String::new()),
        HostState::Away { for_ms, why, retry_in_ms } => {
            let key = scene
                .app
                .settings
                .keys
                .label(crate::ui::action::Action::RetryHost, canvas.look.glyphs.ascii);
            let next = retry_in_ms.map_or_else(
                || "It is being tried again.".to_owned(),
                |ms| {
                    let wait = span(ms.saturating_add(999));
                    format!("It is tried again in {wait}.    {key}  retry now")
                },
            );
            (format!("{} is away for {}.", host.name, span(*for_ms)), Some(why), next)
        }
        HostState::NoGpu { why } => {
            let next = format!("ssh {} vramlens doctor    says what is missing there", host.name);
            (format!("No GPU can be read on {}.", host.name), Some(why), next)
        }
        HostState::Live | HostState::Stalled { .. } => return false,
    };
    canvas.put_foreign(1, 1, &head, theme.text, room);
    let mut y = 2;
    if let Some(why) = why {
        canvas.put_foreign(1, y, why, theme.warn, room);
        y += 1;
    }
    canvas.put_foreign(1, y + 1, &next, theme.dim, room);
    true
}

/// How the selected machine is, for the header, where its figures do not say it themselves.
pub fn status(scene: &Scene<'_>) -> Option<(String, Style)> {
    let host = scene.app.hosts.current()?;
    let look = &scene.app.settings.look;
    let (alert, live) = (look.glyphs.alert, look.glyphs.live);
    match &host.state {
        HostState::Away { for_ms, .. } => {
            Some((format!("{alert} away for {}", span(*for_ms)), look.theme.bad))
        }
        HostState::Connecting => Some(("connecting".to_owned(), look.theme.warn)),
        HostState::NoGpu { .. } => Some(("no GPU".to_owned(), look.theme.warn)),
        HostState::Live if host.older => {
            Some((format!("{live} live, older version"), look.theme.good))
        }
        HostState::Live | HostState::Stalled { .. } => None,
    }
}

/// Why the selected machine is away, for the footer; empty where it is not.
pub fn complaint(scene: &Scene<'_>) -> String {
    // A page of which nothing is seen says it itself.
    let seen = !scene.context.view.gpus.is_empty();
    match scene.app.hosts.current().filter(|_| seen).map(|host| &host.state) {
        Some(HostState::Away { why, .. } | HostState::NoGpu { why }) => why.clone(),
        _ => String::new(),
    }
}
