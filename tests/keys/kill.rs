//! Ending processes: from the key to the proof.

use vramlens::analyze::Class;
use vramlens::sample::{KillEvent, KillPreset, KillStep};
use vramlens::ui::kill::{Phase, Proof, Typed};
use vramlens::ui::{Effect, Event, Page};

use crate::desk::{Desk, id};
use crate::scenes;

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
    desk.event(Event::Proof(Proof { sentence, complete: false, unknown: false, remaining }));
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
    desk.keys("z");
    let mut clean = scenes::dialog();
    clean.refused.clear();
    assert_eq!(desk.event(Event::Plan(clean.clone())), [Effect::Kill(clean.order.clone())]);
    desk.app.kill = None;
    // The key for one process still asks.
    desk.keys("x");
    assert_eq!(desk.event(Event::Plan(clean.clone())), []);
    desk.app.kill = None;
    desk.keys("z");
    clean.order.preset = KillPreset::Now;
    assert_eq!(desk.event(Event::Plan(clean)), []);
    desk.app.kill = None;
    // Somebody is left out: that has to be seen.
    assert_eq!(desk.event(Event::Plan(scenes::dialog())), []);
}
