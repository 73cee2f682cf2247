//! Every theme, drawn: which style stands where, at two sizes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

#[allow(dead_code)]
#[path = "screens/paper.rs"]
mod paper;
mod scenes;

use std::fmt::Write;

use insta::assert_snapshot;
use paper::{screen, text};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use scenes::findings;
use vramlens::ui::App;
use vramlens::ui::Settings;
use vramlens::ui::theme::{BUILT_IN, Depth, Look, TERMINAL, built_in};

const SIZES: [(u16, u16); 2] = [(80, 24), (160, 50)];

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(TERMINAL).chain(BUILT_IN.iter().map(|row| row.0))
}

fn drawn(name: &str, depth: Depth, size: (u16, u16)) -> Buffer {
    let look = Look::themed(built_in(name).unwrap().theme, depth, false);
    let app = App::new(Settings { look, utc_offset_s: 3600, ..Settings::default() });
    screen(&app, &scenes::one_gpu(), &findings(), size)
}

/// `#cdd3de on #171b22 bold`.
fn style(cell: &Cell) -> String {
    let colour = |colour: Color| colour.to_string().to_lowercase();
    let mut words = colour(cell.fg);
    if cell.bg != Color::Reset {
        let _ = write!(words, " on {}", colour(cell.bg));
    }
    for (name, _) in cell.modifier.iter_names() {
        let _ = write!(words, " {}", name.to_lowercase());
    }
    words
}

/// The styles of a screen, a letter for each, and for each row how many cells have which. What
/// cannot be seen of a blank does not count.
fn map(buffer: &Buffer) -> String {
    let mut legend: Vec<String> = Vec::new();
    let mut rows = String::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, usize)> = Vec::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let words = style(cell);
            let plain = cell.symbol() == " " && !cell.modifier.contains(Modifier::REVERSED);
            let behind = |n: usize| {
                legend[n].split(" on ").nth(1).map(|w| w.split(' ').next().unwrap().to_owned())
            };
            let own = words.split(" on ").nth(1).map(|w| w.split(' ').next().unwrap().to_owned());
            if let Some((count, last)) = runs.last_mut()
                && (legend[*last] == words || (plain && behind(*last) == own))
            {
                *count += 1;
                continue;
            }
            let n = legend.iter().position(|known| *known == words).unwrap_or_else(|| {
                legend.push(words);
                legend.len() - 1
            });
            runs.push((1, n));
        }
        let letter = |n: usize| char::from_u32('a' as u32 + n as u32).unwrap();
        let runs: Vec<_> = runs.iter().map(|(count, n)| format!("{count}{}", letter(*n))).collect();
        let _ = writeln!(rows, "{y:>2}  {}", runs.join(" "));
    }
    let mut out = String::new();
    for (n, words) in legend.iter().enumerate() {
        let _ = writeln!(out, "{}  {words}", char::from_u32('a' as u32 + n as u32).unwrap());
    }
    out + "\n" + &rows
}

#[test]
fn every_theme_looks_as_it_was_looked_at() {
    for name in names() {
        for size in SIZES {
            let buffer = drawn(name, Depth::True, size);
            assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), map(&buffer));
        }
    }
}

#[test]
fn colours_change_no_character() {
    for size in SIZES {
        let plain = text(&drawn(TERMINAL, Depth::None, size));
        for name in names() {
            for depth in [Depth::Ansi, Depth::Indexed, Depth::True] {
                assert_eq!(text(&drawn(name, depth, size)), plain, "{name} {depth:?}");
            }
        }
    }
}

#[test]
fn a_terminal_gets_only_colours_that_it_has() {
    for name in names() {
        for (depth, fits) in [
            (Depth::None, (|colour| colour == Color::Reset) as fn(Color) -> bool),
            (Depth::Ansi, |colour| !matches!(colour, Color::Rgb(..) | Color::Indexed(_))),
            (Depth::Indexed, |colour| !matches!(colour, Color::Rgb(..))),
        ] {
            let buffer = drawn(name, depth, (80, 24));
            let foreign = buffer.content.iter().find(|cell| !(fits(cell.fg) && fits(cell.bg)));
            assert_eq!(foreign, None, "{name} {depth:?}");
        }
    }
}

#[test]
fn a_theme_has_its_ground_everywhere_and_the_terminals_has_none() {
    for name in names() {
        let buffer = drawn(name, Depth::True, (160, 50));
        let bare = buffer.content.iter().filter(|cell| cell.bg == Color::Reset).count();
        let all = buffer.content.len();
        assert_eq!(bare, if name == TERMINAL { all } else { 0 }, "{name}");
    }
}

/// The few rows of a screen in which a meaning stands have it twice: as a colour, and as a word or
/// a sign.
#[test]
fn without_any_colour_nothing_is_lost() {
    let shown = text(&drawn(TERMINAL, Depth::None, (160, 50)));
    for cue in ["▸", "zombie", "active", "unacct", "live", "press z"] {
        assert!(shown.contains(cue), "{cue} is missing:\n{shown}");
    }
}
