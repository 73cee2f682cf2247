//! Keys, mouse and events: what they change, and what they ask for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod desk;
mod fixes;
mod kill;
mod mouse;
mod others;
#[path = "../scenes/mod.rs"]
mod scenes;

use desk::Desk;
use proptest::prelude::*;
use scenes::NOW;
use vramlens::fields::FieldId;
use vramlens::ids::{Pid, ProcId};
use vramlens::ui::{Effect, Event, Hit, Page, Position, Seek, Tab};

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
fn a_process_that_is_gone_is_not_mistaken_for_its_neighbour() {
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("<enter>");
    desk.view.holders.remove(0);
    desk.event(Event::Tick);
    // The page is about nobody now, and its keys act on nobody.
    assert_eq!(desk.keys("x"), []);
    assert_eq!(desk.keys("y"), []);
    // A filter hides rows, not the page.
    let mut desk = Desk::new(scenes::one_gpu());
    desk.keys("<enter>");
    desk.app.filter = vramlens::ui::filter::Filter::parse("nobody");
    assert!(matches!(desk.keys("x")[..], [Effect::PlanKill { .. }]));
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
fn in_an_earlier_moment_nothing_is_ended_and_the_keys_say_so() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert!(desk.screen().contains("x kill") || desk.screen().contains("press z"));
    desk.keys("p");
    let words = "this is an earlier moment: End goes back to now";
    for key in ["x", "X", "z"] {
        assert_eq!(desk.keys(key), []);
        assert!(desk.screen().contains(words), "{key}: {}", desk.screen());
        assert!(!desk.app.choosing && desk.app.kill.is_none());
        desk.keys("j");
        let footer = desk.screen().lines().last().unwrap().to_owned();
        assert!(!footer.contains("x kill") && !footer.contains("press z"), "{footer}");
    }
    desk.keys("<end>");
    assert_eq!(desk.keys("z"), [Effect::PlanZombies]);
    // In a recording it is another reason.
    desk.app.recording = Some("story".to_owned());
    desk.keys("p");
    assert_eq!(desk.keys("z"), []);
    assert!(desk.screen().contains("this is a recording: nothing can be ended in it"));
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
fn the_interval_has_steps_and_ends() {
    let mut desk = Desk::new(scenes::one_gpu());
    assert_eq!(desk.keys("+"), [Effect::SetInterval(500)]);
    for _ in 0..20 {
        desk.keys("-");
    }
    assert_eq!(desk.app.settings.interval_ms, 60_000);
    assert_eq!(desk.keys("-"), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_sequence_of_keys_makes_it_panic(
        keys in prop::collection::vec(0_usize..46, 0..60),
        scene in 0_usize..4,
    ) {
        let pool = [
            "j", "k", "g", "G", "<pagedown>", "<pageup>", "<enter>", "<esc>", "f", "<tab>",
            "<backtab>", "0", "5", "a", "s", "S", "t", " ", "/", "<left>", "<right>", "<home>",
            "<end>", "p", "+", "-", "x", "X", "z", "y", "e", "w", "?", "q", "d", "r", "1", "!",
            "<backspace>", "é", "v", ":", ">", "<ctrl-u>", "T", "<ctrl-r>",
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
