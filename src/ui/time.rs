//! Where in time the screen is, and how a recording plays: what the keys for it do.

use super::action::Action;
use super::app::{App, Context, Message, Position, Prompt, PromptKind};
use super::commands::interval;
use super::event::{Effect, PlayStep, Seek};
use super::update::seek;
use super::words::clock;
use crate::analyze::moment::{Span, parse};
use crate::ids::Stamp;

/// What charts are drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChartForm {
    /// Dots: eight to a character.
    #[default]
    Braille,
    /// Blocks: for fonts without braille.
    Block,
}

/// How a recording plays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Play {
    /// How many times as fast as it was recorded.
    pub speed: f64,
    /// Whether it is held.
    pub paused: bool,
    /// Both ends of it, where they are known: not of a pipe.
    pub ends: Option<(Stamp, Stamp)>,
}

impl Play {
    /// At a speed, from its beginning.
    pub const fn at_speed(speed: f64) -> Self {
        Self { speed, paused: false, ends: None }
    }
}

/// Speeds that the keys go through.
const SPEEDS: [f64; 4] = [1.0, 2.0, 8.0, 60.0];

/// Plays a recording faster or slower.
fn speed(app: &mut App, faster: bool) -> Vec<Effect> {
    let Some(play) = &mut app.play else { return Vec::new() };
    let next = if faster {
        SPEEDS.iter().find(|speed| **speed > play.speed)
    } else {
        SPEEDS.iter().rev().find(|speed| **speed < play.speed)
    };
    let Some(next) = next else { return Vec::new() };
    play.speed = *next;
    vec![Effect::Play(PlayStep::AsSet), Effect::Redraw]
}

/// Does what a key of time says.
pub fn act(app: &mut App, action: Action, context: Context<'_>) -> Vec<Effect> {
    let now = shown(app, context);
    // A sixtieth of the chart: ten seconds where it shows ten minutes.
    let far = (app.settings.chart_ms / 60).max(1000);
    let near = app.settings.interval_ms.max(1000);
    if matches!(action, Action::NextMarker | Action::PreviousMarker) {
        return jump(app, action == Action::NextMarker, context);
    }
    if matches!(action, Action::Faster | Action::Slower) {
        let faster = action == Action::Faster;
        return if app.play.is_some() { speed(app, faster) } else { interval(app, faster) };
    }
    if action == Action::GoTo {
        app.prompt = Some(Prompt { kind: PromptKind::Time, text: String::new() });
        return vec![Effect::Redraw];
    }
    app.heading_ms = None;
    match action {
        Action::Pause => pause(app, now),
        Action::Back => back(app, far, context),
        Action::StepBack => back(app, near, context),
        Action::Oldest => back(app, u64::MAX, context),
        Action::Forward => forward(app, far, context),
        Action::Step if app.position == Position::Live && app.play.is_some() => {
            hold(app);
            vec![Effect::Play(PlayStep::Sample), Effect::Redraw]
        }
        Action::Step => forward(app, near, context),
        _ => {
            if let Some(play) = &mut app.play {
                play.paused = false;
            }
            seek(app, Seek::Live)
        }
    }
}

/// The moment that is shown, or is about to be: keys can come faster than frames.
fn shown(app: &App, context: Context<'_>) -> u64 {
    match app.position {
        Position::At(at_ms) => at_ms,
        Position::Live => context.view.at.boot_ms,
    }
}

/// Holds this moment, or goes on.
fn pause(app: &mut App, now: u64) -> Vec<Effect> {
    match (&mut app.play, app.position) {
        (Some(play), Position::Live) => {
            play.paused = !play.paused;
            vec![Effect::Play(PlayStep::AsSet), Effect::Redraw]
        }
        (None, Position::Live) => seek(app, Seek::At(now)),
        (play, Position::At(_)) => {
            if let Some(play) = play {
                play.paused = false;
            }
            seek(app, Seek::Live)
        }
    }
}

fn hold(app: &mut App) {
    if let Some(play) = &mut app.play {
        play.paused = true;
    }
}

fn back(app: &mut App, by_ms: u64, context: Context<'_>) -> Vec<Effect> {
    let now = shown(app, context);
    let oldest = context.history.oldest().map_or(now, |stamp| stamp.boot_ms);
    seek(app, Seek::At(now.saturating_sub(by_ms).max(oldest)))
}

fn forward(app: &mut App, by_ms: u64, context: Context<'_>) -> Vec<Effect> {
    let to = shown(app, context).saturating_add(by_ms);
    let newest = context.history.latest().map_or(0, |stamp| stamp.boot_ms);
    match (app.position, &app.play) {
        (Position::Live, None) => Vec::new(),
        (Position::Live, Some(_)) => vec![Effect::Play(PlayStep::RunTo(to)), Effect::Redraw],
        (Position::At(_), _) if to < newest => seek(app, Seek::At(to)),
        (Position::At(_), _) => seek(app, Seek::Live),
    }
}

/// Shows a moment: of what was seen at once; of the rest of a recording after it was played up to
/// there.
pub fn reach(app: &mut App, at_ms: u64, context: Context<'_>) -> Vec<Effect> {
    let newest = context.history.latest().map_or(0, |stamp| stamp.boot_ms);
    let oldest = context.history.oldest().map_or(0, |stamp| stamp.boot_ms);
    app.heading_ms = Some(at_ms);
    if app.play.is_none() && at_ms >= newest {
        app.heading_ms = None;
        return seek(app, Seek::Live);
    }
    if app.play.is_none() || at_ms < newest {
        return seek(app, Seek::At(at_ms.max(oldest)));
    }
    hold(app);
    let mut effects = seek(app, Seek::Live);
    effects.insert(1, Effect::Play(PlayStep::RunTo(at_ms)));
    effects
}

/// Goes to the moment that was typed.
pub fn go_to(app: &mut App, text: &str, context: Context<'_>) -> Vec<Effect> {
    if text.is_empty() {
        return vec![Effect::Redraw];
    }
    let (at, history) = (context.view.at, context.history);
    let ends = app.play.and_then(|play| play.ends);
    let from = ends.map(|ends| ends.0).or_else(|| history.oldest()).unwrap_or(at);
    let to = ends.map(|ends| ends.1).or_else(|| history.latest()).unwrap_or(at);
    let utc_offset_s = app.settings.utc_offset_s;
    let span = Span { from, to, back_from: at, on_from: at, utc_offset_s };
    match parse(text, &span) {
        Ok(at_ms) => {
            app.message = None;
            reach(app, at_ms, context)
        }
        Err(error) => {
            app.message = Some(Message { text: error.to_string(), error: true });
            vec![Effect::Redraw]
        }
    }
}

/// To what happened next, or before; says what that is.
fn jump(app: &mut App, forward: bool, context: Context<'_>) -> Vec<Effect> {
    let at = context.view.at;
    let Some(line) = context.history.timeline() else { return vec![Effect::Redraw] };
    let from = app.heading_ms.unwrap_or(at.boot_ms);
    let scope = app.scope.clone();
    let found =
        if forward { line.after(from, scope.as_ref()) } else { line.before(from, scope.as_ref()) };
    let Some(&first) = found.first() else {
        app.say(if forward {
            "nothing is marked after this"
        } else {
            "nothing is marked before this"
        });
        return vec![Effect::Redraw];
    };
    let several = context.view.gpus.len() > 1;
    let time = clock(first.at, app.settings.utc_offset_s, false);
    let shown: Vec<String> = found.iter().take(2).map(|mark| mark.words(several)).collect();
    let mut words = format!("{}, {time}", shown.join("; "));
    if found.len() > 2 {
        words += &format!(" (and {} more then)", found.len() - 2);
    }
    let effects = reach(app, first.at.boot_ms, context);
    app.say(words);
    effects
}
