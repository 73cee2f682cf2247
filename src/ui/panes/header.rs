//! The first line: host, driver, how current, interval, clock.
//!
//! ```text
//!  vramlens  gpubox          driver 580.159.04  CUDA 13.0     ● live  1s  04:12:07
//! ```

use ratatui::style::Style;

use super::Scene;
use crate::analyze::Freshness;
use crate::sample::Reading;
use crate::ui::app::{Page, Position};
use crate::ui::paint::Canvas;
use crate::ui::words::{clock, interval, span};

/// Facts about processes that are older than this are said to be.
const OLD_MS: u64 = 15_000;

/// Draws it.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>) {
    let theme = canvas.look.theme;
    let (app, view) = (scene.app, scene.context.view);
    let replay = view.freshness == Freshness::Replay || app.recording.is_some();
    let end = canvas.width().saturating_sub(1);
    let wide = end >= 60;

    let time = clock(view.at, app.settings.utc_offset_s, replay && end >= 100);
    let mut right = canvas.put_right(end, 0, &time, theme.text);
    right = canvas.put_right(
        right.saturating_sub(2),
        0,
        &interval(app.settings.interval_ms),
        theme.dim,
    );
    let (words, style) = status(scene, wide);
    let mut x = 1;
    // What is wrong matters more than the program's name.
    if wide && words.chars().count() + 34 < usize::from(end) {
        x = canvas.put(x, 0, "vramlens", theme.dim) + 2;
    }
    let host = view.host.as_ref().and_then(|host| host.hostname.value());
    // Of several machines the one that the user named.
    let host = app.hosts.current().map(|host| &host.name).or(host);
    let room = right.saturating_sub(x + 3 + words.chars().count() as u16);
    if let Some(host) = host {
        x = canvas.put_foreign(x, 0, host, theme.strong, room.min(32));
    }
    if let Some(container) = view.host.as_ref().and_then(|host| host.container.as_ref())
        && wide
        && room > 34
    {
        x = canvas.put(x + 1, 0, "in ", theme.dim);
        x = canvas.put_foreign(x, 0, &container.runtime, theme.dim, 12);
    }
    if view.host.as_ref().is_some_and(|host| host.wsl) && wide {
        let words = if room > 60 { "in WSL2: holders are not told" } else { "in WSL2" };
        x = canvas.put(x + 1, 0, words, theme.warn);
    }
    let columns = words.chars().count() as u16;
    let status_at = right.saturating_sub(2 + columns).max(x + 1);
    canvas.put_foreign(status_at, 0, &words, style, right.saturating_sub(status_at + 1));

    let facts = facts(scene);
    let needed = facts.chars().count() as u16;
    if wide && x + needed + 6 <= status_at {
        // Where it does not move when the status changes by a letter.
        let at = (status_at.saturating_sub(needed + 4)).min(canvas.width() / 2 - needed / 2 + 2);
        canvas.put_foreign(at.max(x + 2), 0, &facts, theme.dim, needed);
    }
}

/// Driver and CUDA; what was lost on the way.
fn facts(scene: &Scene<'_>) -> String {
    let view = scene.context.view;
    let mut facts = Vec::with_capacity(3);
    if let Some(driver) = &view.driver {
        if let Reading::Value(version) = &driver.version {
            facts.push(format!("driver {version}"));
        }
        if let Reading::Value(version) = &driver.cuda {
            facts.push(format!("CUDA {version}"));
        }
    }
    // Host facts come from another thread: where that hangs, the rows are old and say so.
    if let Some(age) = view.procs_age_ms.filter(|age| *age > OLD_MS) {
        facts.push(format!("processes {} old", span(age)));
    }
    if view.dropped_ticks > 0 {
        facts.push(format!("samples lost: {}", view.dropped_ticks));
    }
    facts.join("  ")
}

/// How current the figures are, in words.
fn status(scene: &Scene<'_>, wide: bool) -> (String, Style) {
    let (theme, glyphs) = (scene.app.settings.look.theme, scene.app.settings.look.glyphs);
    let view = scene.context.view;
    if scene.app.unattended {
        // It may stand there for days.
        let words = if wide { "rests while nobody is attached" } else { "rests" };
        return (format!("{} {words}", glyphs.paused), theme.banner);
    }
    if matches!(scene.app.page, Page::NoGpu(_)) {
        return ("no GPU".to_owned(), theme.warn);
    }
    if let Some(status) = super::hosts::status(scene).filter(|_| at_present(scene)) {
        return status;
    }
    match &view.freshness {
        Freshness::Stalled { for_ms, .. } if !wide => {
            (format!("{} stalled for {}", glyphs.alert, span(*for_ms)), theme.bad)
        }
        Freshness::Stalled { call, gpu, for_ms } => {
            let call = call.as_deref().unwrap_or("the driver");
            let gpu = gpu.map(|gpu| format!(" on GPU {gpu}")).unwrap_or_default();
            (format!("{} stalled in {call}{gpu} for {}", glyphs.alert, span(*for_ms)), theme.bad)
        }
        Freshness::Lost => (format!("{} lost", glyphs.alert), theme.bad),
        Freshness::Starting if scene.app.recording.is_some() => {
            ("waiting for the recording".to_owned(), theme.warn)
        }
        Freshness::Starting => ("waiting for the driver".to_owned(), theme.warn),
        Freshness::Replay => {
            let name = scene.app.recording.as_deref().unwrap_or("recording");
            let held = scene.app.position != Position::Live;
            let glyph = if held { glyphs.paused } else { glyphs.replay };
            (format!("{glyph} recording: {name}"), theme.banner)
        }
        Freshness::Live if scene.app.position == Position::Live => {
            (format!("{} live", glyphs.live), theme.good)
        }
        Freshness::Live | Freshness::Past => (paused(scene), theme.banner),
    }
}

fn at_present(scene: &Scene<'_>) -> bool {
    scene.app.position == Position::Live
}

fn paused(scene: &Scene<'_>) -> String {
    let glyph = scene.app.settings.look.glyphs.paused;
    let now =
        scene.context.history.latest().map_or(0, |latest| latest.since(scene.context.view.at));
    match now {
        0..3000 => format!("{glyph} paused"),
        ago => format!("{glyph} paused, {} ago", span(ago)),
    }
}
