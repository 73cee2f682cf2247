//! GPUs, the mouse, pasted text, other keys.

use crossterm::event::{
    Event as TermEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use vramlens::ui::action::{Action, KeyMap};
use vramlens::ui::kill::Phase;
use vramlens::ui::{Context, Effect, Event, Hit, Message, Page, update};

use crate::desk::Desk;
use crate::scenes;

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
