//! The line of time and stacked charts on the screen, over a history made of ticks.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use crossterm::event::{KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use verdict_support::*;
use vramlens::analyze::View;
use vramlens::analyze::timeline::Timeline;
use vramlens::history::{History, StackPoint};
use vramlens::ids::Pid;
use vramlens::runtime::replaying::{Past, Replaying};
use vramlens::ui::action::Key;
use vramlens::ui::theme::Look;
use vramlens::ui::time::{ChartForm, Play};
use vramlens::ui::{
    App, Context, Effect, Event, Hit, PlayStep, Position, Seek, Settings, draw_on, update,
};
use vramlens::units::Bytes;

/// A session of ten minutes: process 11 comes in the second minute and goes in the fifth.
struct Desk {
    app: App,
    history: History,
    line: Timeline,
    rest: Replaying,
}

impl Desk {
    fn new(look: &Look) -> Self {
        let settings = Settings { look: *look, utc_offset_s: 0, ..Settings::default() };
        let (mut history, mut line) = (History::new(), Timeline::new());
        for second in 0..600 {
            let mut rows = vec![row(10, 20 * GIB)];
            if (60..240).contains(&second) {
                rows.push(row(11, 30 * GIB));
                rows.push(row(12, 5 * GIB));
            }
            let tick = gpu_tick(T0 + second * 1_000, vec![with_rows(gpu(0), rows)]);
            history.push(&tick);
            line.follow(&history);
        }
        Self { app: App::new(settings), history, line, rest: Replaying::default() }
    }

    fn view(&self) -> View {
        let mut moment = moment(T0 + 599_000);
        moment.replay = self.app.play.is_some();
        if let Position::At(at) = self.app.position {
            moment.at_boot_ms = Some(at);
        }
        View::build(&self.history, &moment)
    }

    fn screen(&mut self, size: (u16, u16)) -> String {
        let area = Rect::new(0, 0, size.0, size.1);
        let mut buffer = Buffer::empty(area);
        let (view, past) = (self.view(), Past::new(&self.history, &self.line, &self.rest));
        let context = Context { view: &view, history: &past, findings: &[] };
        self.app.drawn = draw_on(&mut buffer, area, &self.app, context);
        let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
        (0..size.1).map(line).collect()
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        let (view, past) = (self.view(), Past::new(&self.history, &self.line, &self.rest));
        let context = Context { view: &view, history: &past, findings: &[] };
        let mut effects = update(&mut self.app, event, context);
        effects.retain(|effect| !matches!(effect, Effect::Redraw | Effect::SetWants(_)));
        effects
    }

    fn keys(&mut self, keys: &[&str]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for key in keys {
            let key: Key = key.parse().unwrap();
            effects = self.event(Event::Key(KeyEvent::new(key.code, key.modifiers)));
        }
        effects
    }

    fn said(&self) -> &str {
        &self.app.message.as_ref().unwrap().text
    }
}

const AT: fn(u64) -> Effect = |second| Effect::Seek(Seek::At(T0 + second * 1_000));

#[test]
fn in_a_session_jumps_look_back_and_lead_to_now_again() {
    let mut desk = Desk::new(&Look::new(false, false));
    assert_eq!(desk.keys(&["N"]), [AT(240)]);
    assert_eq!(desk.said(), "pid 11 went, held 30.0 GiB; pid 12 went, held 5.0 GiB, 23:17:20");
    assert_eq!(desk.keys(&["N"]), [AT(60)]);
    assert_eq!(
        desk.said(),
        "peak of GPU 0: 55.0 GiB; pid 11 came, up to 30.0 GiB, 23:14:20 (and 1 more then)"
    );
    assert_eq!(desk.keys(&["["]), []);
    assert_eq!(desk.said(), "nothing is marked before this");
    assert_eq!(desk.keys(&["]"]), [AT(240)]);
    assert_eq!(desk.keys(&["n"]), []);
    assert_eq!(desk.said(), "nothing is marked after this");
    assert_eq!(desk.keys(&["end"]), [Effect::Seek(Seek::Live)]);
    // A time as it is typed; what lies behind the newest moment is now.
    assert_eq!(desk.keys(&["@", "-", "5", "m", "enter"]), [AT(299)]);
    assert_eq!(desk.keys(&["@", "+", "1", "0", "s", "enter"]), [AT(309)]);
    assert_eq!(desk.keys(&["@", "2", "3", ":", "1", "4", "enter"]), [AT(40)]);
    assert_eq!(desk.keys(&["@", "+", "1", "h", "enter"]), [Effect::Seek(Seek::Live)]);
    assert_eq!(desk.keys(&["@", "x", "enter"]), []);
    assert!(desk.said().starts_with("\"x\" is no time"), "{}", desk.said());
    // Keys that come faster than frames all count.
    assert_eq!(desk.keys(&["p", ",", ",", ",", "."]), [AT(597)]);
}

#[test]
fn a_recording_runs_ahead_to_what_has_not_been_played() {
    let mut desk = Desk::new(&Look::new(false, false));
    let end = stamp(T0 + 7_199_000);
    desk.app.play = Some(Play { ends: Some((stamp(T0), end)), ..Play::at_speed(1.0) });
    let run = |second: u64| Effect::Play(PlayStep::RunTo(T0 + second * 1_000));
    let live = Effect::Seek(Seek::Live);
    assert_eq!(desk.keys(&["@", "+", "1", "h", "enter"]), [live.clone(), run(4_199)]);
    assert!(desk.app.play.unwrap().paused);
    assert_eq!(desk.keys(&["p"]), [Effect::Play(PlayStep::AsSet)]);
    assert!(!desk.app.play.unwrap().paused);
    assert_eq!(desk.keys(&["right"]), [run(609)]);
    assert_eq!(desk.keys(&["."]), [Effect::Play(PlayStep::Sample)]);
    assert!(desk.app.play.unwrap().paused, "a step holds");
    for (key, speed) in [("+", 2.0), ("+", 8.0), ("+", 60.0), ("+", 60.0), ("-", 8.0)] {
        desk.keys(&[key]);
        assert!((desk.app.play.unwrap().speed - speed).abs() < 0.01, "{key} {speed}");
    }
    assert_eq!(desk.app.settings.interval_ms, 1_000, "the interval is another thing");
    assert_eq!(desk.keys(&["N"]), [AT(240)]);
    assert_eq!(desk.keys(&["end"]), [live]);
}

#[test]
fn the_line_shows_where_and_what_in_unicode_and_ascii() {
    let mut desk = Desk::new(&Look::new(false, false));
    assert!(!desk.screen((80, 24)).contains('↑'), "at the newest moment there is none");
    desk.keys(&["N", "N"]);
    let shown = desk.screen((80, 24));
    let line = shown.lines().nth(22).unwrap();
    assert!(line.starts_with(" ‖ 23:14:20 · 8 min ago  "), "{line}");
    assert!(line.contains("◆3") && line.contains("↓2"), "the count stands behind: {line}");
    assert_eq!(desk.app.drawn.hits.iter().filter(|hit| matches!(hit.1, Hit::Time(_))).count(), 54);
    assert!(!desk.screen((40, 10)).contains(" · 8 min ago"), "no room, no line");
    let mut ascii = Desk::new(&Look::new(false, true));
    ascii.keys(&["N", "N"]);
    for size in [(80, 24), (160, 50)] {
        let shown = ascii.screen(size);
        assert!(shown.is_ascii(), "{shown}");
        assert!(shown.contains("*3") && shown.contains("v2"), "{shown}");
    }
    // A click goes there.
    desk.screen((80, 24));
    let hits = &desk.app.drawn.hits;
    let (area, _) = hits.iter().find(|hit| hit.1 == Hit::Time(T0 + 240_000)).unwrap().clone();
    let click = crossterm::event::MouseEvent {
        kind: crossterm::event::MouseEventKind::Down(crossterm::event::MouseButton::Left),
        column: area.x,
        row: area.y,
        modifiers: KeyModifiers::NONE,
    };
    assert_eq!(desk.event(Event::Mouse(click)), [AT(240)]);
}

#[test]
fn stacked_charts_have_the_patterns_of_the_bar() {
    for ascii in [false, true] {
        let mut desk = Desk::new(&Look::new(false, ascii));
        desk.keys(&["@", "2", "3", ":", "1", "7", "enter", "v"]);
        let shown = desk.screen((160, 50));
        let [first, second, third] = if ascii { ["#", "=", "%"] } else { ["█", "▓", "▌"] };
        let rows: Vec<&str> = shown.lines().skip(4).take(7).collect();
        // 30 GiB, 20 GiB and 5 GiB of 80 in seven rows: the largest is at the bottom.
        assert!(rows[6].trim_end().trim_end_matches('0').trim_end().ends_with(first), "{shown}");
        assert!(rows[3].contains(second), "{shown}");
        assert!(!rows[0].contains(third) && rows[2].contains(third), "{shown}");
        desk.keys(&["v"]);
        assert!(!desk.screen((160, 50)).lines().nth(7).unwrap().contains(second));
    }
    let mut blocks = Desk::new(&Look::new(false, false));
    blocks.app.settings.chart = ChartForm::Block;
    let shown = blocks.screen((160, 50));
    assert!(!shown.chars().any(|c| ('\u{2800}'..='\u{28ff}').contains(&c)), "{shown}");
}

#[test]
fn a_stack_sums_to_what_is_used_and_knows_no_figure_in_a_gap() {
    let desk = Desk::new(&Look::new(false, false));
    let span = (T0, T0 + 600_000);
    let stack = desk.history.gpu_stack(&uuid(0), span, 100, &[Pid(11)]);
    assert_eq!(stack.len(), 100);
    let at = |n: usize| stack[n].as_ref().unwrap();
    assert_eq!((at(5).named[0], at(5).others), (Bytes::ZERO, Bytes::gib(20)));
    assert_eq!((at(20).named[0], at(20).others), (Bytes::gib(30), Bytes::gib(25)));
    assert_eq!((at(90).used(), at(90).unaccounted), (Bytes::gib(20), Bytes::ZERO));
    let chart = desk.history.gpu_chart(&uuid(0), span.0, span.1, 100);
    for (point, column) in chart.iter().zip(&stack) {
        assert_eq!(point.map(|point| point.used), column.as_ref().map(StackPoint::used));
    }
    let before = desk.history.gpu_stack(&uuid(0), (T0 - 60_000, T0), 10, &[]);
    assert!(before.iter().all(Option::is_none));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_sequence_of_keys_of_time_makes_it_panic(
        keys in prop::collection::vec(0_usize..KEYS.len(), 0..40),
        size in (1_u16..220, 1_u16..70),
        replay in any::<bool>(),
        ascii in any::<bool>(),
    ) {
        let mut desk = Desk::new(&Look::new(true, ascii));
        let ends = Some((stamp(T0), stamp(T0 + 7_000_000)));
        desk.app.play = replay.then(|| Play { ends, ..Play::at_speed(3.0) });
        for key in keys {
            desk.keys(&[KEYS[key]]);
            desk.screen(size);
        }
    }
}

const KEYS: [&str; 19] = [
    "n", "N", "[", "]", "@", ".", ",", "+", "-", "p", "left", "right", "home", "end", "v", "enter",
    "esc", "1", ":",
];
