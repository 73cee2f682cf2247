//! Small things on the screens that are easily lost.

use vramlens::fields::FieldId;
use vramlens::ids::GpuIndex;
use vramlens::ui::rows::Sort;

use crate::paper::{COLOUR, app, screen, text};
use crate::scenes::{self, findings};

#[test]
fn where_one_gpu_is_shown_the_fixes_are_those_of_no_other() {
    let view = scenes::many(2, 3);
    let mut found = findings();
    found[0].gpu = Some(GpuIndex(0));
    found[1].gpu = Some(GpuIndex(1));
    // About the whole machine.
    found[2].gpu = None;
    let mut app = app(&COLOUR);
    let all = text(&screen(&app, &view, &found, (120, 50)));
    assert!(all.contains("leftovers") && all.contains("fragmentation"), "{all}");
    app.scope = Some(view.gpus[1].sample.uuid.clone());
    let one = text(&screen(&app, &view, &found, (120, 50)));
    assert!(one.contains("FIXES  1 on other GPUs"), "{one}");
    assert!(one.contains("fragmentation") && one.contains("checkpointing"), "{one}");
    assert!(!one.contains("leftovers"), "{one}");
}

#[test]
fn the_mark_of_the_order_touches_no_other_title() {
    let mut app = app(&COLOUR);
    for (by, wanted) in [
        (FieldId::Vram, "VRAM▾"),
        (FieldId::Delta, "▾Δ/min FRAG"),
        (FieldId::Fragmentation, "FRAG▾ SM%"),
    ] {
        app.sort = Sort { by, ..Sort::default() };
        let shown = text(&screen(&app, &scenes::one_gpu(), &[], (80, 24)));
        assert!(shown.contains(wanted), "{by:?}\n{shown}");
    }
}

#[test]
fn a_figure_of_nothing_is_not_in_the_legend() {
    let mut view = scenes::one_gpu();
    let total = view.gpus[0].ledger.value().unwrap().total;
    assert!(total > vramlens::units::Bytes::gib(100));
    let mut changed = *view.gpus[0].ledger.value().unwrap();
    changed.free += changed.unaccounted - vramlens::units::Bytes::mib(2);
    changed.unaccounted = vramlens::units::Bytes::mib(2);
    view.gpus[0].ledger = vramlens::sample::Reading::Value(changed);
    let shown = text(&screen(&app(&COLOUR), &view, &[], (160, 50)));
    let legend = shown.lines().nth(3).unwrap();
    assert!(legend.contains("free") && !legend.contains("unaccounted"), "{legend}");
}

#[test]
fn a_dead_process_without_survivors_does_not_send_to_them() {
    let mut view = scenes::one_gpu();
    let ghost = &mut view.holders[0];
    ghost.verdict.class = vramlens::analyze::Class::Ghost;
    ghost.process = None;
    ghost.survivors.clear();
    let shown = text(&screen(&app(&COLOUR), &view, &[], (160, 50)));
    assert!(shown.contains("a dead process") && !shown.contains("see its survivors"), "{shown}");
}
