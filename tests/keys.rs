//! Keys, mouse and events: what they change, and what they ask for.

#[path = "screens/scenes.rs"]
mod scenes;

use crossterm::event::{
    Event as TermEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent,
    MouseEventKind,
};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use scenes::{NOW, Past, findings};
use vramlens::analyze::{Class, View};
use vramlens::fields::FieldId;
use vramlens::ids::{Pid, ProcId};
use vramlens::rules::Finding;
use vramlens::sample::{KillEvent, KillPreset, KillStep};
use vramlens::ui::action::{Action, Key, KeyMap};
use vramlens::ui::kill::{Phase, Proof, Typed};
use vramlens::ui::rows::Subject;
use vramlens::ui::{
    App, Context, Effect, Event, Hit, Message, Page, Position, Seek, Settings, Tab, draw_on, update,
};

/// A screen that is typed at.
struct Desk {
    app: App,
    view: View,
    findings: Vec<Finding>,
    past: Past,
    size: (u16, u16),
}

impl Desk {
    fn new(view: View) -> Self {
        let app = App::new(Settings::default());
        let mut desk =
            Self { app, view, findings: findings(), past: Past::rising_to(1119), size: (80, 24) };
        desk.draw();
        desk
    }

    fn draw(&mut self) {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        self.app.drawn = draw_on(&mut Buffer::empty(area), area, &self.app, context);
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        let context = Context { view: &self.view, history: &self.past, findings: &self.findings };
        let mut effects = update(&mut self.app, event, context);
        self.draw();
        effects.retain(|effect| !matches!(effect, Effect::Redraw | Effect::SetWants(_)));
        effects
    }

    /// `jj<enter>x`: what the last key asks for.
    fn keys(&mut self, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let key: Key = match named {
                Some((name, after)) => {
                    rest = after;
                    name.parse().unwrap()
                }
                None => {
                    rest = &rest[c.len_utf8()..];
                    c.to_string().parse().unwrap()
                }
            };
            effects = self.event(Event::Key(KeyEvent::new(key.code, key.modifiers)));
        }
        effects
    }

    fn click(&mut self, wanted: &Hit) -> Vec<Effect> {
        let hit = self.app.drawn.hits.iter().find(|(_, hit)| hit == wanted);
        let area = hit.unwrap_or_else(|| panic!("{wanted:?} is not on the screen")).0;
        self.mouse(MouseEventKind::Down(MouseButton::Left), area.x, area.y)
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
        let modifiers = KeyModifiers::NONE;
        self.event(Event::Mouse(MouseEvent { kind, column, row, modifiers }))
    }

    fn selected_pid(&self) -> Option<u32> {
        let rows = self.app.rows(&self.view);
        match rows.get(self.app.selected_in(&rows))?.subject {
            Subject::Holder(holder) => Some(holder.pid.0),
            _ => None,
        }
    }

    fn shown_pids(&self) -> Vec<u32> {
        let rows = self.app.rows(&self.view);
        let pid = |row: &vramlens::ui::rows::Row<'_>| match row.subject {
            Subject::Holder(holder) => Some(holder.pid.0),
            _ => None,
        };
        rows.iter().filter_map(pid).collect()
    }
}

fn id(pid: u32) -> ProcId {
    ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 }
}

#[test]
fn the_selection_stays_with_its_process() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.selected_pid(), Some(41233));
    desk.keys("j");
    assert_eq!(desk.selected_pid(), Some(40011));
    // It grows past the other one, and moves to the first row.
    desk.view.holders[1].bytes = vramlens::sample::Reading::Value(scenes::g(900));
    desk.event(Event::Tick);
    assert_eq!(desk.shown_pids(), [40011, 41233]);
    assert_eq!(desk.selected_pid(), Some(40011));
    // Another process with the same pid is another one: the first row is selected.
    desk.view.holders[1].id = Some(ProcId { pid: Pid(40011), start_ticks: 1 });
    desk.view.holders[1].bytes = vramlens::sample::Reading::Value(scenes::g(1));
    assert_eq!(desk.selected_pid(), Some(41233));
}

#[test]
fn moving_stops_at_both_ends_and_scrolls() {
    let mut desk = Desk::new(scenes::many(8, 6));
    desk.keys("k");
    assert_eq!(desk.app.drawn.first_row, 0);
    desk.keys("G");
    let rows = desk.app.rows(&desk.view).len();
    assert_eq!(desk.app.drawn.first_row + desk.app.drawn.rows, rows);
    desk.keys("k");
    assert_eq!(
        desk.app.drawn.first_row + desk.app.drawn.rows,
        rows,
        "it moves no more than needed"
    );
    desk.keys("g<pagedown>");
    let all = desk.app.rows(&desk.view);
    assert_eq!(desk.app.selected_in(&all), desk.app.drawn.rows);
}

#[test]
fn columns_sort_both_ways() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("S");
    assert_eq!(desk.shown_pids(), [40011, 41233]);
    desk.keys("S");
    desk.app.sort.by = FieldId::User;
    assert_eq!(desk.shown_pids(), [41233, 40011], "ana before bo");
    desk.click(&Hit::Column(FieldId::Pid));
    assert_eq!(desk.shown_pids(), [41233, 40011]);
    desk.click(&Hit::Column(FieldId::Pid));
    assert_eq!(desk.shown_pids(), [40011, 41233]);
    for _ in 0..30 {
        desk.keys("s");
    }
}

#[test]
fn a_filter_applies_while_it_is_typed_and_esc_drops_it() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("/state:zom");
    assert_eq!(desk.shown_pids(), [40011]);
    desk.keys("<enter>");
    assert_eq!(desk.app.prompt, None);
    assert_eq!(desk.shown_pids(), [40011]);
    desk.keys("<esc>");
    assert_eq!(desk.shown_pids().len(), 2);
    desk.keys("/vram>2parsecs<enter>");
    assert!(desk.app.message.as_ref().unwrap().error);
    // Keys are letters there.
    desk.keys("<esc>/qzx");
    assert_eq!(desk.app.filter.source(), "qzx");
    assert_eq!(desk.keys("<ctrl-c>"), [Effect::Quit]);
}

#[test]
fn kill_asks_for_a_plan_by_identity() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.keys("x"), [Effect::PlanKill { targets: vec![id(41233)], preset: None }]);
    assert_eq!(desk.keys("z"), [Effect::PlanZombies]);
    desk.keys(" ");
    let marked = desk.keys(" x");
    assert_eq!(marked, [Effect::PlanKill { targets: vec![id(40011), id(41233)], preset: None }]);
    desk.keys("<esc>X");
    assert!(desk.app.choosing);
    let now = Effect::PlanKill { targets: vec![id(40011)], preset: Some(KillPreset::Now) };
    desk.keys("<esc>k");
    assert_eq!(desk.keys("X3"), [now]);
}

#[test]
fn what_is_no_process_is_never_a_target() {
    let mut view = scenes::one_gpu();
    view.holders[0].id = None;
    view.holders[0].verdict.class = Class::Ghost;
    view.holders[0].survivors = vec![id(5), id(6)];
    view.holders[1].verdict.zombie = false;
    let mut desk = Desk::new(view);
    // A ghost: those who keep its memory.
    assert_eq!(desk.keys("x"), [Effect::PlanKill { targets: vec![id(5), id(6)], preset: None }]);
    desk.view.holders[0].survivors.clear();
    assert_eq!(desk.keys("x"), []);
    assert!(desk.app.message.is_some());
    assert_eq!(desk.keys("z"), []);
    // The unaccounted row.
    assert_eq!(desk.keys("Gx"), []);
}

#[test]
fn the_dialog_goes_from_plan_to_proof() {
    let mut desk = Desk::new(scenes::one_gpu());
    let dialog = scenes::dialog();
    desk.event(Event::Plan(dialog.clone()));
    // Other keys do nothing behind it.
    assert_eq!(desk.keys("jz?"), []);
    assert_eq!(desk.app.page, Page::Main);
    assert_eq!(desk.keys("y"), [Effect::Kill(dialog.order.clone())]);
    assert_eq!(desk.keys("y"), [], "once");
    let happened = |what| KillEvent { after_ms: 300, id: Some(id(40011)), what };
    desk.event(Event::Kill(happened(KillStep::Sent(15))));
    desk.event(Event::Kill(happened(KillStep::Gone)));
    let Phase::Running(steps) = &desk.app.kill.as_ref().unwrap().phase else { panic!("running") };
    assert_eq!(steps, &["TERM sent 40011", "40011 gone after 0.3 s"]);
    assert_eq!(desk.keys("<esc>"), [Effect::CancelKill]);
    let remaining = vec!["sudo kill -9 40012".to_owned()];
    let sentence = "freed 22.1 of 44.2 GiB".to_owned();
    desk.event(Event::Proof(Proof { sentence, complete: false, remaining }));
    assert_eq!(desk.keys("y"), [Effect::Copy("sudo kill -9 40012".into())]);
    desk.keys("<esc>");
    assert_eq!(desk.app.kill, None);
}

#[test]
fn a_dry_run_and_leaving_send_nothing() {
    let mut desk = Desk::new(scenes::one_gpu());
    for keys in ["d", "<esc>", "n", "q"] {
        desk.event(Event::Plan(scenes::dialog()));
        assert_eq!(desk.keys(keys), [], "{keys}");
        assert_eq!(desk.app.kill, None, "{keys}");
    }
    let mut nobody = scenes::dialog();
    nobody.order.targets.clear();
    desk.event(Event::Plan(nobody));
    assert_eq!(desk.keys("y"), []);
}

#[test]
fn a_protected_process_needs_its_word() {
    let mut desk = Desk::new(scenes::one_gpu());
    let mut dialog = scenes::dialog();
    dialog.typed = Some(Typed { word: "Xyd".into(), entered: String::new() });
    desk.event(Event::Plan(dialog.clone()));
    assert_eq!(desk.keys("y<enter>"), []);
    assert_eq!(desk.keys("<backspace>Xyd"), []);
    assert_eq!(desk.keys("<enter>"), [Effect::Kill(dialog.order)]);
}

#[test]
fn without_confirmation_only_zombies_go_at_once() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.app.settings.confirm_kill = false;
    let mut clean = scenes::dialog();
    clean.refused.clear();
    assert_eq!(desk.event(Event::Plan(clean.clone())), [Effect::Kill(clean.order.clone())]);
    desk.app.kill = None;
    clean.order.preset = KillPreset::Now;
    assert_eq!(desk.event(Event::Plan(clean)), []);
    desk.app.kill = None;
    // Somebody is left out: that has to be seen.
    assert_eq!(desk.event(Event::Plan(scenes::dialog())), []);
}

#[test]
fn time_goes_back_and_forth_within_what_is_kept() {
    let mut desk = Desk::new(scenes::one_gpu());
    let now = NOW.boot_ms;
    assert_eq!(desk.keys("<right>"), []);
    assert_eq!(desk.keys("<left>"), [Effect::Seek(Seek::At(now - 10_000))]);
    desk.view.at.boot_ms = now - 10_000;
    assert_eq!(desk.keys("<right>"), [Effect::Seek(Seek::Live)]);
    desk.view.at.boot_ms = now;
    assert_eq!(desk.keys("p"), [Effect::Seek(Seek::At(now))]);
    assert_eq!(desk.app.position, Position::At(now));
    assert_eq!(desk.keys("p"), [Effect::Seek(Seek::Live)]);
    assert_eq!(desk.keys("<home>"), [Effect::Seek(Seek::At(desk.past.oldest_ms))]);
    desk.view.at.boot_ms = desk.past.oldest_ms;
    assert_eq!(desk.keys("<left>"), [Effect::Seek(Seek::At(desk.past.oldest_ms))]);
    assert_eq!(desk.keys("<end>"), [Effect::Seek(Seek::Live)]);
}

#[test]
fn gpus_are_chosen_by_number_tab_and_click() {
    let mut desk = Desk::new(scenes::many(3, 2));
    desk.keys("1");
    assert_eq!(desk.app.scope, Some(scenes::uuid(1)));
    assert_eq!(desk.shown_pids().len(), 2);
    desk.keys("<tab>");
    assert_eq!(desk.app.scope, Some(scenes::uuid(2)));
    desk.keys("<tab>");
    assert_eq!(desk.app.scope, None);
    desk.keys("<backtab>a");
    assert_eq!(desk.app.scope, None);
    desk.keys("9");
    assert_eq!(desk.app.message.as_ref().unwrap().text, "there is no GPU 9");
    desk.click(&Hit::Gpu(scenes::uuid(0)));
    assert_eq!(desk.app.scope, Some(scenes::uuid(0)));
}

#[test]
fn the_detail_has_tabs_and_leads_back() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("<enter>");
    assert_eq!(desk.app.page, Page::Detail(Tab::Verdict));
    desk.keys("<tab>");
    assert_eq!(desk.app.page, Page::Detail(Tab::Allocator));
    desk.keys("4");
    assert_eq!(desk.app.page, Page::Detail(Tab::History));
    desk.click(&Hit::Tab(Tab::Environment));
    assert_eq!(desk.app.page, Page::Detail(Tab::Environment));
    assert_eq!(desk.keys("q"), [], "it leads back first");
    assert_eq!(desk.app.page, Page::Main);
    assert_eq!(desk.keys("q"), [Effect::Quit]);
}

#[test]
fn help_scrolls_no_further_than_its_end() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("?G");
    assert!(desk.app.drawn.overflow > 0);
    assert_eq!(desk.app.scroll, desk.app.drawn.overflow);
    desk.keys("gk?");
    assert_eq!((desk.app.scroll, &desk.app.page), (0, &Page::Main));
}

#[test]
fn fixes_can_be_copied() {
    let mut desk = Desk::new(scenes::one_gpu());
    let line = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    assert_eq!(desk.keys("fjy"), [Effect::Copy(line.into())]);
    assert_eq!(desk.keys("jy"), [], "it has no line");
    assert_eq!(desk.keys("<esc>y"), [Effect::Copy("41233".into())]);
}

#[test]
fn the_mouse_selects_scrolls_and_presses() {
    let mut desk = Desk::new(scenes::many(8, 6));
    let (area, hit) = desk
        .app
        .drawn
        .hits
        .iter()
        .filter(|(_, hit)| matches!(hit, Hit::Row(_)))
        .nth(2)
        .cloned()
        .unwrap();
    desk.click(&hit);
    let Hit::Row(key) = hit else { unreachable!() };
    assert_eq!(desk.app.selected, Some(key));
    desk.mouse(MouseEventKind::ScrollDown, 1, 1);
    let rows = desk.app.rows(&desk.view);
    assert_eq!(desk.app.selected_in(&rows), 5);
    drop(rows);
    assert_eq!(desk.click(&Hit::Do(Action::KillZombies)), [Effect::PlanZombies]);
    assert_eq!(desk.click(&Hit::Do(Action::Quit)), [Effect::Quit]);
    // Behind a dialog nothing can be clicked.
    desk.event(Event::Plan(scenes::dialog()));
    assert_eq!(desk.mouse(MouseEventKind::Down(MouseButton::Left), area.x, area.y), []);
}

#[test]
fn pasted_text_is_explained_and_never_taken_for_keys() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.event(Event::Paste("q\x1b[31mCUDA out of\r\nmemory\x07".into())), []);
    assert_eq!(desk.keys("<enter>"), [Effect::Explain("q[31mCUDA out of\nmemory".into())]);
    desk.keys("/");
    desk.event(Event::Paste("user:ana\nx".into()));
    assert_eq!(desk.app.filter.source(), "user:ana x");
    desk.keys("<esc>");
    desk.event(Event::Plan(scenes::dialog()));
    assert_eq!(desk.event(Event::Paste("y".into())), []);
    assert_eq!(desk.app.kill.as_ref().unwrap().phase, Phase::Asking);
}

#[test]
fn the_interval_has_steps_and_ends() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.keys("+"), [Effect::SetInterval(500)]);
    for _ in 0..20 {
        desk.keys("-");
    }
    assert_eq!(desk.app.settings.interval_ms, 60_000);
    assert_eq!(desk.keys("-"), []);
}

#[test]
fn without_a_gpu_there_is_a_demo() {
    let mut desk = Desk::new(scenes::nothing());
    desk.event(Event::NoGpu(scenes::no_gpu()));
    assert_eq!(desk.keys("d"), [Effect::StartDemo]);
    assert_eq!(desk.keys("ra.vrt<enter>"), [Effect::OpenRecording("a.vrt".into())]);
    assert_eq!(desk.keys("q"), [Effect::Quit]);
    desk.event(Event::Gpus);
    assert_eq!(desk.app.page, Page::Main);
}

#[test]
fn slow_figures_are_asked_for_once() {
    let mut desk = Desk::new(scenes::one_gpu());
    let context = Context { view: &desk.view, history: &desk.past, findings: &desk.findings };
    let effects = update(&mut desk.app, Event::Tick, context);
    let wants = effects.iter().filter(|effect| matches!(effect, Effect::SetWants(_)));
    assert_eq!(wants.count(), 1);
    let context = Context { view: &desk.view, history: &desk.past, findings: &desk.findings };
    assert_eq!(update(&mut desk.app, Event::Tick, context), [Effect::Redraw]);
}

#[test]
fn other_keys_can_be_set() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.app.settings.keys =
        KeyMap::with(&[("quit".to_owned(), vec!["ctrl-q".to_owned()])]).unwrap();
    assert_eq!(desk.keys("q"), []);
    assert_eq!(desk.keys("<ctrl-q>"), [Effect::Quit]);
    assert_eq!(desk.keys("<ctrl-c>"), [Effect::Quit], "this one always leaves");
}

#[test]
fn a_released_key_does_nothing_and_messages_go_with_the_next_one() {
    let mut desk = Desk::new(scenes::one_gpu());
    let mut released = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    released.kind = KeyEventKind::Release;
    assert_eq!(desk.event(Event::Key(released)), []);
    desk.event(Event::Message(Message { text: "saved".into(), error: false }));
    assert!(desk.app.message.is_some());
    desk.keys("j");
    assert_eq!(desk.app.message, None);
    // The terminal library's own events are what the program gets.
    let TermEvent::Key(key) = TermEvent::Key(KeyEvent::from(KeyCode::Char('q'))) else { return };
    assert_eq!(desk.event(Event::Key(key)), [Effect::Quit]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_sequence_of_keys_makes_it_panic(
        keys in prop::collection::vec(0_usize..44, 0..60),
        scene in 0_usize..4,
    ) {
        let pool = [
            "j", "k", "g", "G", "<pagedown>", "<pageup>", "<enter>", "<esc>", "f", "<tab>",
            "<backtab>", "0", "5", "a", "s", "S", "t", " ", "/", "<left>", "<right>", "<home>",
            "<end>", "p", "+", "-", "x", "X", "z", "y", "e", "w", "?", "q", "d", "r", "1", "!",
            "<backspace>", "é", "v", ":", ">", "<ctrl-u>",
        ];
        let view = match scene {
            0 => scenes::nothing(),
            1 => scenes::one_gpu(),
            2 => scenes::many(4, 3),
            _ => scenes::mig(),
        };
        let mut desk = Desk::new(view);
        for key in keys {
            desk.keys(pool[key]);
        }
    }
}
