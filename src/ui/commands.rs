//! What each action does.

use super::action::{Action, Group, Key};
use super::app::{App, Context, Page, Prompt, PromptKind, Tab};
use super::event::Effect;
use super::filter::Filter;
use super::rows::{Row, RowKey, Subject};
use super::time;
use super::update::{digit_of, step_of, tab_of};
use crate::fields::FieldId;
use crate::ids::ProcId;
use crate::sample::KillPreset;

/// Columns that can be sorted by, in the order in which `s` goes through them.
pub const SORT_ORDER: [FieldId; 9] = [
    FieldId::Vram,
    FieldId::Delta,
    FieldId::Fragmentation,
    FieldId::Sm,
    FieldId::Age,
    FieldId::State,
    FieldId::User,
    FieldId::Pid,
    FieldId::Gpu,
];

const INTERVALS_MS: [u64; 9] = [100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// Does what an action says. `key` is the one that was pressed, for actions that several keys
/// share.
pub fn act(app: &mut App, action: Action, key: Option<Key>, context: Context<'_>) -> Vec<Effect> {
    if let Some(step) = step_of(action, app.drawn.rows.max(1)) {
        return step_by(app, step, context);
    }
    if action.row().group == Group::Time {
        return time::act(app, action, context);
    }
    if app.is_earlier() && acts_on_now(action) {
        return earlier(app);
    }
    match action {
        Action::Quit if matches!(app.page, Page::Main | Page::NoGpu(_)) => {
            return vec![Effect::Quit];
        }
        Action::Quit | Action::Leave => leave(app),
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Repaint],
        Action::Reload => return vec![Effect::Reload],
        Action::Theme => super::look::next_theme(app),
        Action::Demo | Action::Open if !matches!(app.page, Page::NoGpu(_)) => {
            app.say("there is a GPU: start vramlens --demo or vramlens replay FILE for that");
        }
        Action::Demo => return vec![Effect::StartDemo],
        Action::Open => {
            app.prompt = Some(Prompt { kind: PromptKind::Recording, text: String::new() });
        }
        Action::Snapshot => return vec![Effect::SaveSnapshot],
        Action::Look => return vec![Effect::Look],
        Action::Cost => app.shows_cost = !app.shows_cost,
        Action::Help => open(app, Page::Help),
        Action::Fixes => open(app, Page::Fixes),
        Action::Detail => detail(app, context),
        Action::NextGpu | Action::PreviousGpu => next(app, action == Action::NextGpu, context),
        Action::Gpu => numbered(app, key, context),
        Action::AllGpus => app.scope = None,
        Action::NextHost | Action::PreviousHost | Action::RetryHost => return hosts(app, action),
        Action::Sort => next_sort(app),
        Action::Reverse => app.sort.reversed = !app.sort.reversed,
        Action::Tree => app.tree = !app.tree,
        Action::Filter => {
            let text = app.filter.source().to_owned();
            app.prompt = Some(Prompt { kind: PromptKind::Filter, text });
        }
        Action::Explain => {
            app.prompt = Some(Prompt { kind: PromptKind::Explain, text: String::new() });
        }
        Action::Mark => mark(app, context),
        Action::Copy => return copy(app, context),
        Action::Dismiss => dismiss(app, context),
        Action::Restore => restore(app),
        Action::Kill => return plan_kill(app, None, context),
        Action::KillChoose => app.choosing = true,
        Action::KillZombies => return zombies(app, context),
        Action::Stacked => app.stacked = !app.stacked,
        // Those that move and those of time are taken above.
        _ => {}
    }
    vec![Effect::Redraw]
}

/// What is of no use in an earlier moment: whom it names may be anybody now.
const fn acts_on_now(action: Action) -> bool {
    matches!(action, Action::Kill | Action::KillChoose | Action::KillZombies | Action::Look)
}

fn earlier(app: &mut App) -> Vec<Effect> {
    if app.recording.is_some() {
        app.say("this is a recording: nothing can be ended in it");
        return vec![Effect::Redraw];
    }
    let key = app.settings.keys.label(Action::Live, true);
    app.say(format!("this is an earlier moment: {key} goes back to now"));
    vec![Effect::Redraw]
}

fn hosts(app: &mut App, action: Action) -> Vec<Effect> {
    if app.hosts.lines.is_empty() {
        app.say("this shows one machine: start vramlens with --host user@box for others");
        return vec![Effect::Redraw];
    }
    let effect = match action {
        Action::RetryHost => Effect::RetryHost,
        _ => Effect::SelectHost(app.hosts.step(action == Action::NextHost)),
    };
    vec![effect, Effect::Redraw]
}

fn open(app: &mut App, page: Page) {
    app.page = if app.page == page { Page::Main } else { page };
    app.scroll = 0;
}

/// One thing back: the page, then marks, then the filter, then the GPU.
fn leave(app: &mut App) {
    if !matches!(app.page, Page::Main | Page::NoGpu(_)) {
        open(app, Page::Main);
    } else if !app.marks.is_empty() {
        app.marks.clear();
    } else if !app.filter.is_empty() {
        app.filter = Filter::default();
    } else {
        app.scope = None;
    }
}

fn detail(app: &mut App, context: Context<'_>) {
    match app.page {
        Page::Main => {
            let rows = app.rows(context.view);
            if let Some(row) = rows.get(app.selected_in(&rows)) {
                app.selected = Some(row.key());
                open(app, Page::Detail(Tab::Verdict));
            }
        }
        Page::Help | Page::Text { .. } | Page::Detail(_) => open(app, Page::Main),
        Page::Fixes | Page::NoGpu(_) => {}
    }
}

fn step_by(app: &mut App, step: isize, context: Context<'_>) -> Vec<Effect> {
    match app.page {
        Page::Main => {
            let rows = app.rows(context.view);
            let last = rows.len().saturating_sub(1);
            let to = app.selected_in(&rows).saturating_add_signed(step).min(last);
            app.selected = rows.get(to).map(Row::key);
        }
        Page::Fixes => {
            let last = app.findings(context).len().saturating_sub(1);
            app.finding = app.finding.min(last).saturating_add_signed(step).min(last);
        }
        _ => {
            let scroll = app.scroll.min(app.drawn.overflow).saturating_add_signed(step);
            app.scroll = scroll.min(app.drawn.overflow);
        }
    }
    vec![Effect::Redraw]
}

/// The next tab in the detail, the next GPU elsewhere; behind the last one all of them.
fn next(app: &mut App, forward: bool, context: Context<'_>) {
    if let Page::Detail(tab) = app.page {
        let by = if forward { 1 } else { Tab::ALL.len() - 1 };
        (app.page, app.scroll) = (Page::Detail(tab.step(by)), 0);
        return;
    }
    let gpus = &context.view.gpus;
    let now =
        app.scope.as_ref().and_then(|scope| gpus.iter().position(|gpu| gpu.sample.uuid == *scope));
    let to = match (now, forward) {
        (None, true) => Some(0),
        (None, false) => gpus.len().checked_sub(1),
        (Some(n), true) => Some(n + 1),
        (Some(n), false) => n.checked_sub(1),
    };
    app.scope = to.and_then(|n| gpus.get(n)).map(|gpu| gpu.sample.uuid.clone());
}

fn numbered(app: &mut App, key: Option<Key>, context: Context<'_>) {
    let Some(number) = digit_of(app, key) else { return };
    if matches!(app.page, Page::Detail(_)) {
        if let Some(tab) = tab_of(number) {
            (app.page, app.scroll) = (Page::Detail(tab), 0);
        }
        return;
    }
    match context.view.gpus.iter().find(|gpu| gpu.sample.index.0 == number) {
        Some(gpu) if app.scope.as_ref() == Some(&gpu.sample.uuid) => app.scope = None,
        Some(gpu) => app.scope = Some(gpu.sample.uuid.clone()),
        None => app.say(format!("there is no GPU {number}")),
    }
}

fn next_sort(app: &mut App) {
    let now = SORT_ORDER.iter().position(|field| *field == app.sort.by);
    let next = now.map_or(0, |n| (n + 1) % SORT_ORDER.len());
    sort_by(app, SORT_ORDER[next]);
}

/// Sorts by a column; by the same one again: the other way round.
pub fn sort_by(app: &mut App, field: FieldId) {
    let again = app.sort.by == field && !app.sort.reversed;
    (app.sort.by, app.sort.reversed) = (field, again);
}

fn mark(app: &mut App, context: Context<'_>) {
    let rows = app.rows(context.view);
    let at = app.selected_in(&rows);
    let Some(row) = rows.get(at) else { return };
    if let Subject::Holder(holder) = row.subject {
        let key = row.key();
        if holder.id.is_none() {
            app.say(format!("{} is not a process that can be ended", holder.pid));
        } else if !app.marks.remove(&key) {
            app.marks.insert(key);
        }
    }
    app.selected = rows.get((at + 1).min(rows.len() - 1)).map(Row::key);
}

fn copy(app: &mut App, context: Context<'_>) -> Vec<Effect> {
    let findings = app.findings(context);
    let line = findings.get(app.finding).filter(|_| app.page == Page::Fixes);
    let line = line
        .and_then(|finding| finding.fixes.iter().find_map(|fix| fix.line.clone()))
        .map(|line| app.hosts.command_here(&line));
    let text = line.or_else(|| {
        let rows = app.rows(context.view);
        let holder = app.subject_of_page(context.view, &rows);
        holder.filter(|_| app.page != Page::Fixes).map(|holder| holder.pid.to_string())
    });
    if let Some(text) = text {
        app.say(format!("copied: {text}"));
        return vec![Effect::Copy(text), Effect::Redraw];
    }
    app.say("there is nothing to copy here");
    vec![Effect::Redraw]
}

/// Sends the selected fix away: on the page of fixes the one in full, else the first of the pane.
fn dismiss(app: &mut App, context: Context<'_>) {
    let findings = app.findings(context);
    let rows = app.rows(context.view);
    let chosen = match app.page {
        Page::Fixes => findings.get(app.finding.min(findings.len().saturating_sub(1))).copied(),
        Page::Main | Page::Detail(_) => {
            let holder = app.subject_of_page(context.view, &rows);
            let pid = holder.map(|holder| holder.pid);
            let own = findings.iter().find(|finding| finding.pid.is_some() && finding.pid == pid);
            own.or_else(|| findings.first().filter(|_| app.page == Page::Main)).copied()
        }
        _ => None,
    };
    let Some(finding) = chosen else { return app.say("there is no fix here") };
    let about = match (finding.pid, finding.gpu) {
        (Some(pid), _) => format!(" for {pid}"),
        (None, Some(gpu)) => format!(" for GPU {gpu}"),
        (None, None) => String::new(),
    };
    let text = if app.dismissed.add(context.view, finding) {
        let key = app.settings.keys.label(Action::Restore, true);
        format!("{} stays away{about}: {key} brings it back", finding.rule)
    } else {
        "too many fixes stay away already".to_owned()
    };
    app.finding = app.finding.min(app.findings(context).len().saturating_sub(1));
    app.say(text);
}

fn restore(app: &mut App) {
    let text = match app.dismissed.clear() {
        0 => "no fix was sent away".to_owned(),
        1 => "one fix is back".to_owned(),
        n => format!("{n} fixes are back"),
    };
    app.say(text);
}

/// Asks for a plan to end the marked processes, or the selected one.
pub fn plan_kill(app: &mut App, preset: Option<KillPreset>, context: Context<'_>) -> Vec<Effect> {
    let rows = app.rows(context.view);
    let chosen: Vec<&crate::analyze::Holder> = if app.marks.is_empty() {
        app.subject_of_page(context.view, &rows).into_iter().collect()
    } else {
        let marked = |holder: &&_| app.marks.contains(&RowKey::of(holder));
        context.view.holders.iter().filter(marked).collect()
    };
    let mut targets: Vec<ProcId> = chosen.iter().filter_map(|holder| holder.id).collect();
    // A ghost is nobody: those who keep its memory are.
    targets.extend(chosen.iter().flat_map(|holder| &holder.survivors));
    targets.sort_unstable();
    targets.dedup();
    if targets.is_empty() {
        app.say(match chosen.first() {
            Some(holder) => format!("{}: no process that can be ended is known", holder.pid),
            None => "no process is selected".to_owned(),
        });
        return vec![Effect::Redraw];
    }
    app.zombies_asked = false;
    vec![Effect::PlanKill { targets, preset }]
}

fn zombies(app: &mut App, context: Context<'_>) -> Vec<Effect> {
    if context.view.holders.iter().any(|holder| holder.verdict.zombie) {
        app.zombies_asked = true;
        return vec![Effect::PlanZombies];
    }
    app.say("there is no zombie");
    vec![Effect::Redraw]
}

/// Another refresh interval.
pub(super) fn interval(app: &mut App, faster: bool) -> Vec<Effect> {
    let now = app.settings.interval_ms;
    let next = if faster {
        INTERVALS_MS.iter().rev().find(|ms| **ms < now)
    } else {
        INTERVALS_MS.iter().find(|ms| **ms > now)
    };
    match next {
        Some(ms) => {
            app.settings.interval_ms = *ms;
            vec![Effect::SetInterval(*ms), Effect::Redraw]
        }
        None => Vec::new(),
    }
}
