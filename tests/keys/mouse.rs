//! The mouse, by what is seen on the screen rather than by what the program knows of it.

use crossterm::event::{MouseButton, MouseEventKind};
use vramlens::fields::FieldId;
use vramlens::ui::action::KeyMap;
use vramlens::ui::{Effect, Event, Hit, Page, Tab};

use crate::desk::Desk;
use crate::scenes;

const LEFT: MouseEventKind = MouseEventKind::Down(MouseButton::Left);

impl Desk {
    /// Clicks on the first cell of a text in the last line that has it.
    fn click_text(&mut self, text: &str) -> Vec<Effect> {
        let screen = self.screen();
        let (row, line) =
            screen.lines().enumerate().filter(|(_, line)| line.contains(text)).last().unwrap();
        let column = line.split(text).next().unwrap().chars().count();
        self.mouse(LEFT, column as u16, row as u16)
    }
}

#[test]
fn a_click_selects_and_a_second_one_opens() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.selected_pid(), Some(41233));
    desk.click_text("40011 bo");
    assert_eq!(desk.selected_pid(), Some(40011));
    assert_eq!(desk.app.page, Page::Main);
    desk.click_text("40011 bo");
    assert_eq!(desk.app.page, Page::Detail(Tab::Verdict));
}

#[test]
fn the_wheel_moves_the_selection_and_scrolls_a_page() {
    let mut desk = Desk::new(scenes::many(8, 6));
    let pids = desk.shown_pids();
    desk.mouse(MouseEventKind::ScrollDown, 40, 12);
    assert_eq!(desk.selected_pid(), Some(pids[3]));
    desk.mouse(MouseEventKind::ScrollUp, 40, 12);
    assert_eq!(desk.selected_pid(), Some(pids[0]));
    desk.mouse(MouseEventKind::ScrollUp, 40, 12);
    assert_eq!(desk.selected_pid(), Some(pids[0]), "no further than the first");
    desk.keys("?");
    desk.mouse(MouseEventKind::ScrollDown, 40, 12);
    assert_eq!(desk.app.scroll, 3);
}

#[test]
fn a_click_on_a_column_head_sorts_and_a_second_one_turns_round() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.click_text("USER");
    assert_eq!((desk.app.sort.by, desk.app.sort.reversed), (FieldId::User, false));
    desk.click_text("USER");
    assert_eq!((desk.app.sort.by, desk.app.sort.reversed), (FieldId::User, true));
    desk.click_text("COMMAND");
    assert_eq!((desk.app.sort.by, desk.app.sort.reversed), (FieldId::Command, false));
}

#[test]
fn a_click_on_the_footer_presses_the_key_wherever_that_is_bound() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.click_text("press z"), [Effect::PlanZombies]);
    assert!(matches!(desk.click_text("x kill")[..], [Effect::PlanKill { .. }]));
    desk.click_text("⏎ detail");
    assert_eq!(desk.app.page, Page::Detail(Tab::Verdict));
    desk.click_text("esc leave");
    assert_eq!(desk.app.page, Page::Main);
    desk.app.settings.keys = KeyMap::with(&[("kill".to_owned(), vec!["f8".to_owned()])]).unwrap();
    desk.event(Event::Tick);
    assert!(matches!(desk.click_text("F8 kill")[..], [Effect::PlanKill { .. }]));
    // An action without a key is not offered.
    desk.app.settings.keys = KeyMap::with(&[("kill".to_owned(), Vec::new())]).unwrap();
    desk.event(Event::Tick);
    assert!(!desk.screen().lines().last().unwrap().contains("kill"));
}

#[test]
fn a_click_chooses_a_gpu_a_tab_and_a_fix() {
    let mut desk = Desk::new(scenes::many(4, 2));
    desk.click(&Hit::Gpu(scenes::uuid(2)));
    assert_eq!(desk.app.scope, Some(scenes::uuid(2)));
    desk.click(&Hit::Gpu(scenes::uuid(2)));
    assert_eq!(desk.app.scope, None, "the same one again: all of them");
    let mut desk = Desk::new(scenes::one_gpu());
    desk.click(&Hit::Finding(0));
    assert_eq!(desk.app.page, Page::Fixes);
    desk.keys("<esc><enter>");
    desk.click_text("workload");
    assert_eq!(desk.app.page, Page::Detail(Tab::Workload));
}

#[test]
fn other_buttons_and_empty_places_do_nothing() {
    let mut desk = Desk::new(scenes::one_gpu());
    let before = desk.screen();
    for kind in [
        MouseEventKind::Down(MouseButton::Right),
        MouseEventKind::Up(MouseButton::Left),
        MouseEventKind::Drag(MouseButton::Left),
        MouseEventKind::Moved,
    ] {
        assert_eq!(desk.mouse(kind, 10, 9), []);
    }
    assert_eq!(desk.mouse(LEFT, 999, 999), []);
    assert_eq!(desk.screen(), before);
}
