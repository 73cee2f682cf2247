//! An event changes the state and says what is to be done outside. Nothing else happens here.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{Action, Key, Place};
use super::app::{App, Context, Page, Position, Prompt, PromptKind, Tab};
use super::event::{Effect, Event, Seek};
use super::filter::Filter;
use super::kill::{PRESETS, Phase};
use super::{commands, mouse};

/// More than this is no error message.
const PROMPT_BYTES: usize = 65_536;

/// Takes an event.
pub fn update(app: &mut App, event: Event, context: Context<'_>) -> Vec<Effect> {
    let mut effects = match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
        Event::Key(key) => press(app, key, context),
        Event::Mouse(event) => mouse::click(app, event, context),
        Event::Paste(text) => paste(app, &text),
        Event::Resize | Event::Tick => vec![Effect::Redraw],
        Event::Plan(dialog) => planned(app, dialog),
        Event::Kill(event) => {
            if let Some(dialog) = &mut app.kill {
                dialog.happened(&event);
            }
            vec![Effect::Redraw]
        }
        Event::Proof(proof) => {
            match &mut app.kill {
                Some(dialog) => dialog.proven(proof),
                // The dialog was closed meanwhile: the result is still said.
                None => app.say(proof.sentence),
            }
            vec![Effect::Redraw]
        }
        Event::Message(message) => {
            app.message = Some(message);
            vec![Effect::Redraw]
        }
        Event::Text { title, lines } => {
            (app.page, app.scroll) = (Page::Text { title, lines }, 0);
            vec![Effect::Redraw]
        }
        Event::Settings(new) => super::look::settings(app, *new),
        Event::NoGpu(found) => {
            app.page = Page::NoGpu(found);
            vec![Effect::Redraw]
        }
        Event::Gpus => {
            if matches!(app.page, Page::NoGpu(_)) {
                app.page = Page::Main;
            }
            vec![Effect::Redraw]
        }
    };
    let wants = app.drawn.wants;
    if app.wanted != wants {
        app.wanted = wants;
        effects.push(Effect::SetWants(wants));
    }
    effects
}

fn planned(app: &mut App, dialog: super::kill::Dialog) -> Vec<Effect> {
    let at_once = !app.settings.confirm_kill
        && app.zombies_asked
        && dialog.order.preset == crate::sample::KillPreset::Zombie
        && dialog.refused.is_empty()
        && dialog.may_go();
    app.kill = Some(dialog);
    if at_once { go(app) } else { vec![Effect::Redraw] }
}

/// The user's word is given.
fn go(app: &mut App) -> Vec<Effect> {
    let Some(dialog) = app.kill.as_mut().filter(|dialog| dialog.may_go()) else {
        return vec![Effect::Redraw];
    };
    dialog.phase = Phase::Running(Vec::new());
    app.marks.clear();
    vec![Effect::Kill(dialog.order.clone()), Effect::Redraw]
}

fn press(app: &mut App, event: KeyEvent, context: Context<'_>) -> Vec<Effect> {
    let key = Key::of(event);
    // Whatever is open, this one leaves.
    if key == Key::LEAVE {
        return vec![Effect::Quit];
    }
    if app.kill.is_some() {
        return press_in_kill(app, key);
    }
    if app.choosing {
        return choose(app, key, context);
    }
    if app.prompt.is_some() {
        return press_in_prompt(app, key, context);
    }
    app.message = None;
    let place = match app.page {
        Page::NoGpu(_) => Place::WithoutGpu,
        _ => Place::WithGpu,
    };
    match app.settings.keys.action_at(key, place) {
        Some(action) => commands::act(app, action, Some(key), context),
        None => Vec::new(),
    }
}

fn press_in_kill(app: &mut App, key: Key) -> Vec<Effect> {
    let Some(dialog) = &mut app.kill else { return Vec::new() };
    if dialog.phase != Phase::Asking {
        let running = matches!(dialog.phase, Phase::Running(_));
        return match key.code {
            KeyCode::Esc if running => vec![Effect::CancelKill],
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | ' ') if !running => {
                app.kill = None;
                vec![Effect::Redraw]
            }
            KeyCode::Char('y') if !running => copy_next_command(app),
            _ => Vec::new(),
        };
    }
    let typing = dialog.typed.as_ref().is_some_and(|typed| !typed.is_given());
    match key.code {
        KeyCode::Esc => app.kill = None,
        KeyCode::Enter if !typing => return go(app),
        KeyCode::Char('y') if !typing && dialog.typed.is_none() => return go(app),
        KeyCode::Char('q' | 'n') if dialog.typed.is_none() => app.kill = None,
        KeyCode::Char('d') if dialog.typed.is_none() => return dry_run(app),
        KeyCode::Backspace => {
            if let Some(typed) = &mut dialog.typed {
                typed.entered.pop();
            }
        }
        KeyCode::Char(c) => {
            if let Some(typed) = &mut dialog.typed
                && typed.entered.len() < 64
            {
                typed.entered.push(c);
            }
        }
        _ => return Vec::new(),
    }
    vec![Effect::Redraw]
}

/// Says what would be done, and does nothing.
fn dry_run(app: &mut App) -> Vec<Effect> {
    if let Some(dialog) = app.kill.take() {
        let pids: Vec<String> =
            dialog.order.targets.iter().map(|target| target.id.pid.to_string()).collect();
        app.say(format!("dry run: nothing sent. In a shell: vramlens kill {}", pids.join(" ")));
    }
    vec![Effect::Redraw]
}

fn copy_next_command(app: &App) -> Vec<Effect> {
    let Some(Phase::Done { proof, .. }) = app.kill.as_ref().map(|dialog| &dialog.phase) else {
        return Vec::new();
    };
    let line = proof.remaining.last().map(|line| app.hosts.command_here(line));
    line.map(|line| vec![Effect::Copy(line)]).unwrap_or_default()
}

fn choose(app: &mut App, key: Key, context: Context<'_>) -> Vec<Effect> {
    app.choosing = false;
    let chosen = PRESETS.iter().find(|preset| key.code == KeyCode::Char(preset.0));
    match chosen {
        Some((_, preset, _)) => commands::plan_kill(app, Some(*preset), context),
        None => vec![Effect::Redraw],
    }
}

fn press_in_prompt(app: &mut App, key: Key, context: Context<'_>) -> Vec<Effect> {
    let Some(prompt) = &mut app.prompt else { return Vec::new() };
    let kind = prompt.kind;
    match key.code {
        KeyCode::Esc => {
            app.prompt = None;
            if kind == PromptKind::Filter {
                app.filter = Filter::default();
            }
            return vec![Effect::Redraw];
        }
        KeyCode::Enter => return entered(app, context),
        KeyCode::Backspace => {
            prompt.text.pop();
        }
        KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => prompt.text.clear(),
        KeyCode::Char(c)
            if key.modifiers.is_empty() && prompt.text.len() + c.len_utf8() <= PROMPT_BYTES =>
        {
            prompt.text.push(c);
        }
        _ => return Vec::new(),
    }
    if kind == PromptKind::Filter {
        app.filter = Filter::parse(&prompt.text);
    }
    vec![Effect::Redraw]
}

fn entered(app: &mut App, context: Context<'_>) -> Vec<Effect> {
    let Some(prompt) = app.prompt.take() else { return Vec::new() };
    let text = prompt.text.trim().to_owned();
    let effect = match prompt.kind {
        PromptKind::Filter => {
            app.message = None;
            if let Some(complaint) = app.filter.complaints.first() {
                let text = format!("{complaint}: looked for as text");
                app.message = Some(super::app::Message { text, error: true });
            }
            None
        }
        PromptKind::Time => return super::time::go_to(app, &text, context),
        PromptKind::Explain => (!text.is_empty()).then_some(Effect::Explain(text)),
        PromptKind::Recording => (!text.is_empty()).then_some(Effect::OpenRecording(text)),
    };
    effect.into_iter().chain([Effect::Redraw]).collect()
}

fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    // Pasted text is never taken for keys: it goes into the open line or opens `explain`.
    if app.kill.is_some() || app.choosing {
        return Vec::new();
    }
    let prompt =
        app.prompt.get_or_insert_with(|| Prompt { kind: PromptKind::Explain, text: String::new() });
    let lines = prompt.kind == PromptKind::Explain;
    for c in text.replace("\r\n", "\n").chars() {
        if prompt.text.len() + c.len_utf8() > PROMPT_BYTES {
            break;
        }
        let breaks = matches!(c, '\n' | '\r' | '\t');
        match c {
            '\r' if lines => prompt.text.push('\n'),
            _ if breaks && !lines => prompt.text.push(' '),
            _ if !c.is_control() || (breaks && lines) => prompt.text.push(c),
            _ => {}
        }
    }
    if prompt.kind == PromptKind::Filter {
        app.filter = Filter::parse(&prompt.text);
    }
    vec![Effect::Redraw]
}

/// Where a step in time leads from the moment that is shown.
pub(super) fn seek(app: &mut App, to: Seek) -> Vec<Effect> {
    app.position = match to {
        Seek::Live => Position::Live,
        Seek::At(ms) => Position::At(ms),
    };
    vec![Effect::Seek(to), Effect::Redraw]
}

/// The tab that a number names: 1 is the first.
pub(super) fn tab_of(number: u32) -> Option<Tab> {
    Tab::ALL.get((number as usize).checked_sub(1)?).copied()
}

/// The number that a key of [`Action::Gpu`] means: its digit; of any other key its place among them.
pub(super) fn digit_of(app: &App, key: Option<Key>) -> Option<u32> {
    let key = key?;
    let digit = match key.code {
        KeyCode::Char(c) => c.to_digit(10),
        _ => None,
    };
    let place = || app.settings.keys.position(Action::Gpu, key);
    digit.or_else(|| place().and_then(|n| u32::try_from(n).ok()))
}

/// By how many rows an action moves the selection, where `page` of them are seen.
pub(super) fn step_of(action: Action, page: usize) -> Option<isize> {
    let page = isize::try_from(page).unwrap_or(isize::MAX);
    match action {
        Action::Up => Some(-1),
        Action::Down => Some(1),
        Action::PageUp => Some(-page),
        Action::PageDown => Some(page),
        Action::Top => Some(isize::MIN),
        Action::Bottom => Some(isize::MAX),
        _ => None,
    }
}
