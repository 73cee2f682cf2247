//! Draws a moment of a recording as an SVG: how the README's picture is made.
//!
//! `cargo run --example picture -- assets/demo.vrt 150 100x30 assets/screen.svg`, with the name of a
//! theme behind it for another one, of a depth (16, 256, 24) for fewer colours, and of a page.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a tool for whoever builds it")]

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vramlens::analyze::{Moment, View};
use vramlens::history::History;
use vramlens::record::Reader;
use vramlens::rules;
use vramlens::ui::theme::{Depth, Look, built_in};
use vramlens::ui::{self, App, Context, Page, picture};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recording, seconds, size, out, rest @ ..] = arguments.as_slice() else {
        panic!("usage: picture RECORDING SECONDS COLUMNSxROWS OUT.svg [THEME [DEPTH [PAGE]]]");
    };
    let theme = built_in(rest.first().map_or("terminal", |name| name)).unwrap().theme;
    let depth = match rest.get(1).map(String::as_str) {
        Some("16") => Depth::Ansi,
        Some("256") => Depth::Indexed,
        _ => Depth::True,
    };
    let (columns, rows) = size.split_once('x').unwrap();
    let area = Rect::new(0, 0, columns.parse().unwrap(), rows.parse().unwrap());
    let mut history = History::new();
    let mut now = None;
    for tick in Reader::new(std::fs::File::open(recording).unwrap()).unwrap() {
        let tick = tick.unwrap();
        let first = *now.get_or_insert(tick.at());
        if tick.at().since(first) > seconds.parse::<u64>().unwrap() * 1000 {
            break;
        }
        history.push(&tick);
    }
    let moment = Moment {
        now: history.latest().unwrap(),
        at_boot_ms: None,
        replay: false,
        interval_ms: 1000,
        in_flight: None,
        dropped_ticks: 0,
        idle_after_ms: 600_000,
        request: None,
    };
    let view = View::build(&history, &moment);
    let findings = rules::run(&view);
    let look = Look::themed(theme, depth, false);
    let mut app = App::new(ui::Settings { look, chart_ms: 240_000, ..ui::Settings::default() });
    app.page = match rest.get(2).map(String::as_str) {
        Some("help") => Page::Help,
        Some("fixes") => Page::Fixes,
        Some("detail") => Page::Detail(ui::Tab::Allocator),
        _ => Page::Main,
    };
    let mut buffer = Buffer::empty(area);
    ui::draw_on(
        &mut buffer,
        area,
        &app,
        Context { view: &view, history: &history, findings: &findings },
    );
    std::fs::write(out, picture::svg(&buffer)).unwrap();
}
