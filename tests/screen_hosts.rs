//! The overview of several machines, drawn into a buffer and compared with what was looked at before.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]
#![allow(dead_code, reason = "the paper knows more than this crate uses")]

#[path = "screens/paper.rs"]
mod paper;
mod scenes;

use insta::assert_snapshot;
use paper::{ASCII, COLOUR, MONO, app, drawn, screen, styles, text};
use ratatui::style::Color;
use scenes::{findings, g};
use vramlens::ui::hosts::{HostLine, HostState, Hosts};
use vramlens::ui::theme::Look;
use vramlens::ui::{App, Hit};

fn host(name: &str, state: HostState) -> HostLine {
    HostLine {
        name: name.to_owned(),
        state,
        gpus: 1,
        told: 1,
        used: g(1125),
        total: g(1398),
        age_ms: Some(400),
        ..HostLine::default()
    }
}

fn away(for_ms: u64, why: &str, retry_in_ms: Option<u64>) -> HostState {
    HostState::Away { for_ms, why: why.to_owned(), retry_in_ms }
}

fn five() -> Vec<HostLine> {
    let refused = "Connection refused (port 22)";
    vec![
        HostLine { zombies: 1, findings: 2, ..host("ana@gpubox", HostState::Live) },
        HostLine {
            gpus: 8,
            told: 8,
            used: g(10_900),
            total: g(11_184),
            zombies: 3,
            findings: 12,
            ..host("bo@a-rather-long-name.example.com", HostState::Live)
        },
        HostLine { age_ms: Some(130_000), ..host("box3", away(125_000, refused, Some(11_200))) },
        HostLine { older: true, ..host("box4", HostState::Live) },
        host("local", HostState::Stalled { for_ms: 12_000 }),
    ]
}

fn many() -> Vec<HostLine> {
    let mut lines = five();
    lines.extend((6..50).map(|n| host(&format!("box{n}"), HostState::Live)));
    let hostile = "\u{1b}[2J\u{202e}evil\u{9b}31m\nnewline".repeat(9);
    lines[7].state = HostState::NoGpu { why: hostile.clone() };
    lines[8] = host(&hostile, HostState::Connecting);
    lines
}

fn with(look: &Look, lines: Vec<HostLine>, selected: usize) -> App {
    let mut app = app(look);
    app.hosts = Hosts { lines, selected };
    app
}

fn show(app: &App, size: (u16, u16)) -> String {
    text(&screen(app, &scenes::one_gpu(), &findings(), size))
}

#[test]
fn a_line_for_each_machine_above_the_selected_one() {
    let app = with(&COLOUR, five(), 0);
    assert_snapshot!("hosts_80x24", show(&app, (80, 24)));
    assert_snapshot!("hosts_160x50", show(&app, (160, 50)));
    assert_snapshot!("hosts_40x12", show(&app, (40, 12)));
    let ascii = show(&with(&ASCII, five(), 0), (80, 24));
    assert!(ascii.is_ascii(), "{ascii}");
    assert_snapshot!("hosts_80x24_ascii", ascii);
    assert_eq!(show(&with(&MONO, five(), 0), (80, 24)), show(&app, (80, 24)));
}

/// A sum over some of the GPUs says that it is one.
#[test]
fn a_sum_that_lacks_a_gpu_says_so() {
    let partial =
        |state| HostLine { gpus: 4, told: 3, zombies: 1, findings: 2, ..host("box", state) };
    let none = HostLine { gpus: 4, told: 0, used: g(0), total: g(0), ..host("b", HostState::Live) };
    let lines = vec![
        partial(HostState::Live),
        none,
        partial(HostState::Stalled { for_ms: 12_000 }),
        partial(away(125_000, "refused", None)),
    ];
    let app = with(&COLOUR, lines, 1);
    let row = |size, n: usize| show(&app, size).lines().nth(n).unwrap().trim_end().to_owned();
    let wide = row((110, 24), 1);
    assert!(wide.contains("4 GPU █") && wide.contains("80% of 139.8G 3 of 4 tell"), "{wide}");
    assert!(row((110, 24), 2).contains("memory unknown"), "{}", row((110, 24), 2));
    assert!(
        row((110, 24), 4).contains("80% of 139.8G, 3 of 4 tell, 0s old"),
        "{}",
        row((110, 24), 4)
    );
    assert!(row((80, 24), 1).contains("80% of 139.8G 3 of 4 tell"), "{}", row((80, 24), 1));
    assert!(row((60, 24), 1).contains("3/4 GPU"), "{}", row((60, 24), 1));
    let all = with(&COLOUR, five(), 0);
    assert!(!show(&all, (110, 24)).contains("tell"));
}

#[test]
fn colours_have_a_second_cue() {
    let size = (110, 24);
    let colour = screen(&with(&COLOUR, five(), 1), &scenes::one_gpu(), &findings(), size);
    assert_snapshot!("hosts_110x24_styles", styles(&colour));
    let mono = screen(&with(&MONO, five(), 1), &scenes::one_gpu(), &findings(), size);
    assert!(mono.content.iter().all(|cell| cell.fg == Color::Reset));
    assert_eq!(text(&mono), text(&colour));
}

#[test]
fn a_machine_that_is_away() {
    let refused = "Connection refused (port 22)";
    let lines = vec![host("box3", away(125_000, refused, None))];
    let mut one = with(&COLOUR, lines, 0);
    let nothing = scenes::nothing();
    assert_snapshot!("host_away_80x24", text(&screen(&one, &nothing, &[], (80, 24))));
    // What was seen of it stays, and the header says of when.
    let shown = show(&one, (80, 24));
    assert!(shown.lines().next().unwrap().contains("away for 2 min"), "{shown}");
    assert!(shown.lines().last().unwrap().contains("Connection refused"), "{shown}");
    one.hosts.lines[0].state = HostState::Connecting;
    let text = text(&screen(&one, &nothing, &[], (80, 24)));
    assert!(text.contains("Connecting to box3."), "{text}");
}

#[test]
fn many_machines_are_a_window_and_a_sum() {
    for selected in 0..49 {
        for size in [(80, 24), (160, 50), (40, 10), (20, 5), (1, 1)] {
            let shown = show(&with(&COLOUR, many(), selected), size);
            assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown}");
        }
    }
    let app = with(&COLOUR, many(), 8);
    assert_snapshot!("hosts_many_80x24", show(&app, (80, 24)));
    let (_, drawn) = drawn(&app, &scenes::one_gpu(), &findings(), (80, 24));
    let clicks = drawn.hits.iter().filter_map(|(area, hit)| match hit {
        Hit::Host(n) => Some((area.y, *n)),
        _ => None,
    });
    assert_eq!(clicks.collect::<Vec<_>>(), [(1, 7), (2, 8), (3, 9)]);
}
