//! What stands where something is not known, not now or not here.

use vramlens::analyze::{Class, Evidence, Freshness, View, Weight};
use vramlens::fields::gpu_label;
use vramlens::sample::{Reading, Why};
use vramlens::ui::{Page, Position};
use vramlens::units::Bytes;

use crate::paper::{ASCII, COLOUR, app, screen, show, styles, text};
use crate::scenes;

/// One holder is new: the driver lists it, and `/proc` was not read since.
fn with_a_new_one() -> View {
    let mut view = scenes::one_gpu();
    let new = &mut view.holders[0];
    (new.process, new.id, new.age_ms) = (None, None, Reading::Absent(Why::NotYet));
    new.verdict = scenes::verdict(Class::Unknown);
    let text = "it was listed after the last look at the processes".to_owned();
    new.verdict.evidence = vec![Evidence { key: "not_looked", weight: Weight::Neutral, text }];
    view
}

#[test]
fn who_is_new_is_not_looked_at_yet() {
    let view = with_a_new_one();
    let drawn = screen(&app(&COLOUR), &view, &[], (120, 40));
    let row = |text: &str| text.lines().find(|line| line.starts_with('▸')).unwrap().to_owned();
    assert!(row(&text(&drawn)).contains("not looked at yet"), "{}", text(&drawn));
    let dim = styles(&drawn);
    assert!(dim.lines().any(|run| run.contains("notlookedatyet")), "{dim}");
    // Whoever was looked at and does not show a command is another matter.
    let mut unread = with_a_new_one();
    unread.holders[0].verdict.evidence.clear();
    let all = show(&COLOUR, &unread, (120, 40));
    assert!(!all.contains("not looked at yet") && row(&all).contains("unknown"), "{all}");
}

#[test]
fn the_end_of_a_recording_is_no_present() {
    let mut view = scenes::one_gpu();
    let mut app = app(&ASCII);
    app.position = Position::At(view.at.boot_ms);
    view.freshness = Freshness::Past;
    let footer = |app: &vramlens::ui::App, view: &View| {
        text(&screen(app, view, &[], (120, 24))).lines().next_back().unwrap().to_owned()
    };
    assert!(footer(&app, &view).contains("End live"), "{}", footer(&app, &view));
    app.recording = Some("day.vrt".into());
    view.freshness = Freshness::Replay;
    let words = footer(&app, &view);
    assert!(words.contains("End go on") && !words.contains("live"), "{words}");
}

#[test]
fn the_help_explains_several_events_in_one_cell() {
    let mut app = app(&COLOUR);
    app.page = Page::Help;
    let all = text(&screen(&app, &scenes::one_gpu(), &[], (120, 120)));
    assert!(all.contains("◆2") && all.contains("so many events in one cell"), "{all}");
}

#[test]
fn a_rule_stands_under_its_columns() {
    let mut app = app(&COLOUR);
    let lines = ["  process 7    20.0 GiB", "               --------", "device         24.0 GiB"];
    let lines = lines.map(str::to_owned).to_vec();
    app.page = Page::Text { title: "what the error says".into(), lines: lines.clone() };
    let all = text(&screen(&app, &scenes::one_gpu(), &[], (80, 24)));
    for line in &lines {
        assert!(all.lines().any(|drawn| drawn == format!(" {line}")), "{line:?} in\n{all}");
    }
    // An indent of any length leaves room for the text.
    let far = format!("{}far", " ".repeat(5_000));
    app.page = Page::Text { title: "t".into(), lines: vec![far] };
    assert!(text(&screen(&app, &scenes::one_gpu(), &[], (80, 24))).contains("far"));
}

#[test]
fn the_title_of_the_fixes_names_an_instance() {
    let view = scenes::mig();
    let mut app = app(&COLOUR);
    let gpu = &view.gpus[1];
    app.fit = vramlens::rules::fit_of(&view, gpu, Bytes::gib(1), &[]);
    let words = format!("on GPU {}: ", gpu_label(&gpu.sample));
    let all = text(&screen(&app, &view, &scenes::findings(), (120, 40)));
    assert!(words.contains("0:1") && all.contains(&words), "{all}");
}
