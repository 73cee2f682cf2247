//! Figures that no machine has, from a far end that lies: whatever they are, the view of them is
//! made, judged and drawn.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use proptest::prelude::*;
use proptest::sample::Index;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};
use vramlens::analyze::{Moment, View};
use vramlens::history::History;
use vramlens::record::{Arrival, Stream};
use vramlens::rules;
use vramlens::runtime::options::blank;
use vramlens::ui::{App, Context, draw_on};

/// The numbers in a line, each at its place.
fn numbers<'v>(value: &'v mut Value, found: &mut Vec<&'v mut Value>) {
    match value {
        Value::Number(_) => found.push(value),
        Value::Array(list) => list.iter_mut().for_each(|one| numbers(one, found)),
        Value::Object(map) => map.values_mut().for_each(|one| numbers(one, found)),
        _ => {}
    }
}

fn recorded() -> (String, Vec<Value>) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/v1.vrt");
    let text = zstd::decode_all(&std::fs::read(file).unwrap()[..]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_owned();
    let ticks =
        lines.filter(|line| line.starts_with("{\"gpus\"") || line.starts_with("{\"procs\""));
    (header, ticks.map(|line| serde_json::from_str(line).unwrap()).take(6).collect())
}

fn extreme() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(u32::MAX)),
        Just(json!(i64::MAX)),
        Just(json!(u64::MAX)),
        Just(json!(u64::MAX - 1)),
        Just(json!(u64::MAX / 2)),
        Just(json!(1.0e308)),
        Just(json!(-1)),
        any::<u64>().prop_map(|n| json!(n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_figure_breaks_the_view(
        changes in proptest::collection::vec((any::<Index>(), any::<Index>(), extreme()), 1..12),
    ) {
        let (header, mut lines) = recorded();
        for (line, place, value) in changes {
            let mut found = Vec::new();
            let count = lines.len();
            numbers(&mut lines[line.index(count)], &mut found);
            let count = found.len();
            *found[place.index(count)] = value;
        }
        let lines = lines.iter().map(Value::to_string);
        let stream = std::iter::once(header).chain(lines).collect::<Vec<_>>().join("\n");
        let mut history = History::new();
        for arrival in Stream::new(stream.as_bytes()) {
            if let Ok(Arrival::Tick(tick)) = arrival {
                history.push(&tick);
            }
        }
        let Some(latest) = history.latest() else { return Ok(()) };
        let moment = blank(latest, 1000);
        for moment in [Moment { at_boot_ms: Some(latest.boot_ms), ..moment.clone() }, moment] {
            let view = View::build(&history, &moment);
            let findings = rules::run(&view);
            let area = Rect::new(0, 0, 160, 50);
            let mut buffer = Buffer::empty(area);
            let context = Context { view: &view, history: &history, findings: &findings };
            draw_on(&mut buffer, area, &App::default(), context);
        }
    }
}
