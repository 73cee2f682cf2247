//! Layouts: every size keeps what matters, nothing jumps when numbers change, and no text from
//! outside breaks the grid, in the parser of a terminal and in tmux.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

#[path = "layouts/grid.rs"]
mod grid;
#[allow(dead_code)]
#[path = "screens/paper.rs"]
mod paper;
mod scenes;

use paper::{ASCII, COLOUR, app, drawn, text};
use proptest::prelude::*;
use ratatui::layout::Rect;
use scenes::findings;
use vramlens::analyze::{Growth, View};
use vramlens::sample::text::width;
use vramlens::sample::{Reading, Utilization};
use vramlens::ui::columns::Columns;
use vramlens::ui::{App, Hit};
use vramlens::units::{Bytes, BytesPerMinute, Celsius, Milliwatts, Percent};

const HEIGHTS: [u16; 8] = [10, 13, 16, 18, 24, 37, 50, 100];

/// What nobody should have to look for.
fn has_the_essential(shown: &str, view: &View, size: (u16, u16)) {
    let at = format!("{}x{}:\n{shown}", size.0, size.1);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), usize::from(size.1), "{at}");
    for line in &lines {
        assert!(width(line) <= usize::from(size.0), "wider than the screen at {at}");
    }
    let bar = lines.iter().any(|line| {
        ["██", "▒▒", "##", "oo"].iter().any(|bar| line.contains(bar)) && line.contains('%')
    });
    assert!(bar, "no bar with its share at {at}");
    if size.0 >= 60 && view.gpus.len() == 1 {
        assert!(shown.contains(" of 139.8G"), "no total at {at}");
    }
    let mut holders: Vec<_> = view.holders.iter().collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes.get().unwrap_or_default()));
    let pid = holders[0].pid.to_string();
    let row = lines.iter().find(|line| line.starts_with(['▸', '>']) && line.contains(&pid));
    let bytes = holders[0].bytes.get().unwrap().short();
    assert!(row.is_some_and(|row| row.contains(&bytes)), "no first holder at {at}");
    let footer = lines.last().unwrap().trim_end();
    assert!(footer.ends_with('q') || footer.ends_with("q quit"), "no way out at {at}");
    assert!(footer.contains('?'), "no help at {at}");
    assert!(footer.contains('z'), "no word of the zombie at {at}");
}

#[test]
fn every_size_from_40x10_to_300x100_keeps_what_matters() {
    let one = scenes::one_gpu();
    let eight = scenes::many(8, 6);
    let mut ascii = app(&ASCII);
    ascii.selected = None;
    let unicode = app(&COLOUR);
    for columns in 40..=300 {
        for (n, rows) in HEIGHTS.into_iter().enumerate() {
            let size = (columns, rows);
            // The two looks take turns: a character is as wide in both.
            let app = if (usize::from(columns) + n) % 2 == 0 { &unicode } else { &ascii };
            has_the_essential(&text(&drawn(app, &one, &findings(), size).0), &one, size);
            if columns % 7 == 0 {
                has_the_essential(&text(&drawn(app, &eight, &findings(), size).0), &eight, size);
            }
        }
    }
}

#[test]
fn a_wider_screen_never_shows_fewer_columns() {
    for mig in [false, true] {
        let mut before = 0;
        for width in 20..=300 {
            let now = Columns::default().place(width, mig).len();
            assert!(now >= before, "{now} columns of {width}");
            before = now;
        }
        assert_eq!(before, Columns::usual().count());
    }
}

#[test]
fn chosen_columns_are_drawn_as_they_were_chosen() {
    let mut app = app(&COLOUR);
    app.settings.columns = Columns::parse(["vram", "command:30", "kind", "user:12"]).unwrap();
    let shown = text(&drawn(&app, &scenes::one_gpu(), &findings(), (80, 24)).0);
    let head = shown.lines().find(|line| line.contains("COMMAND")).unwrap();
    let words: Vec<_> = head.split_whitespace().collect();
    assert_eq!(words, ["VRAM▾", "COMMAND", "KIND", "USER"]);
    let row = shown.lines().find(|line| line.starts_with('▸')).unwrap();
    assert!(row.contains("86.1G  python train.py"), "{row}");
    assert!(!shown.contains("STATE"), "{shown}");
}

/// Where everything stands that can be clicked in the table, and where the GPU's figures do.
fn places(app: &App, view: &View, size: (u16, u16)) -> (Vec<Rect>, Vec<(usize, &'static str)>) {
    let (buffer, drawn) = drawn(app, view, &findings(), size);
    let table = |hit: &Hit| matches!(hit, Hit::Column(_) | Hit::Row(_));
    let hits = drawn.hits.iter().filter(|(_, hit)| table(hit)).map(|(area, _)| *area).collect();
    let shown = text(&buffer);
    let line = shown.lines().nth(1).unwrap().to_owned();
    let figures = ["GPU 0", "util", "%", "°C", " W "];
    let at = |word: &&'static str| line.split_once(word).map(|cut| (cut.0.chars().count(), *word));
    (hits, figures.iter().filter_map(at).collect())
}

fn with_numbers(view: &mut View, numbers: &[u64; 8]) {
    let [bytes, age, sm, growth, rss, power, temperature, util] = *numbers;
    for (n, holder) in (1_u64..).zip(&mut view.holders) {
        holder.bytes = Reading::Value(Bytes(bytes / n));
        holder.age_ms = Reading::Value(age / n);
        holder.sm = Reading::Value(Percent((sm % 101) as f32));
        let per_minute = BytesPerMinute((growth / n) as f64 - 1e12);
        holder.growth = Growth::Changing { per_minute };
        holder.peak = holder.bytes;
        if let Some(process) = &mut holder.process {
            std::sync::Arc::make_mut(process).rss = Reading::Value(Bytes(rss / n));
        }
    }
    let sample = &mut view.gpus[0].sample;
    sample.power = Reading::Value(Milliwatts(power % 1_200_000));
    sample.temperature = Reading::Value(Celsius((temperature % 120) as _));
    let percent = |n: u64| Percent((n % 101) as f32);
    sample.utilization =
        Reading::Value(Utilization { sm: percent(util), memory: percent(util / 7) });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_jumps_when_numbers_change(
        first in prop::array::uniform8(0_u64..2_000_000_000_000),
        second in prop::array::uniform8(0_u64..2_000_000_000_000),
        size in (40_u16..300, prop::sample::select(HEIGHTS.to_vec())),
    ) {
        let mut app = app(&COLOUR);
        // The order of rows is the user's wish and not the layout's.
        app.sort.by = vramlens::fields::FieldId::Pid;
        let mut view = scenes::one_gpu();
        with_numbers(&mut view, &first);
        let before = places(&app, &view, size);
        with_numbers(&mut view, &second);
        prop_assert_eq!(before, places(&app, &view, size));
    }

    #[test]
    fn chosen_columns_fit_every_size(
        words in prop::sample::subsequence(
            vec!["gpu", "pid:9", "user:3", "state", "vram", "delta", "frag", "sm", "age", "cpu",
                 "rss", "peak", "unit:30", "command", "kind"], 1..15).prop_shuffle(),
        size in (1_u16..300, 1_u16..60),
    ) {
        let mut app = app(&COLOUR);
        app.settings.columns = Columns::parse(words).unwrap();
        let shown = text(&drawn(&app, &scenes::mig(), &findings(), size).0);
        for line in shown.lines() {
            prop_assert!(width(line) <= usize::from(size.0), "{shown}");
        }
    }
}
