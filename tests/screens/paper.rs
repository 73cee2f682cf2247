//! Screens on paper: drawn into a buffer and written out.

use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use vramlens::analyze::View;
use vramlens::fields::FieldId;
use vramlens::rules::Finding;
use vramlens::sample::text::width;
use vramlens::ui::theme::Look;
use vramlens::ui::{App, Context, Drawn, Page, Settings, Tab, draw_on};

use crate::scenes::{self, Past, findings};

pub static COLOUR: Look = Look::new(true, false);
pub static MONO: Look = Look::new(false, false);
pub static ASCII: Look = Look::new(false, true);

/// A screen as text, a line for each row.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let (mut skip, mut line) = (0, String::new());
        for x in 0..buffer.area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// How a screen is coloured: for each row the stretches of one style that are not plain.
pub fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, String, String)> = Vec::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            if cell.symbol() == " " && !cell.modifier.contains(Modifier::REVERSED) {
                continue;
            }
            let mut style = String::new();
            if cell.fg != Color::Reset {
                let _ = write!(style, "{}", cell.fg.to_string().to_lowercase());
            }
            assert_eq!(cell.bg, Color::Reset, "no background is ever set");
            for (name, _) in cell.modifier.iter_names() {
                let _ = write!(style, " {}", name.to_lowercase());
            }
            match runs.last_mut() {
                Some((_, last, text)) if *last == style => text.push_str(cell.symbol()),
                _ => runs.push((x, style, cell.symbol().to_owned())),
            }
        }
        for (x, style, text) in runs.iter().filter(|run| !run.1.is_empty()) {
            let _ = writeln!(out, "{y:>2}:{x:<3} {:<14} {text}", style.trim());
        }
    }
    out
}

pub fn app(look: &Look) -> App {
    App::new(Settings { look: *look, utc_offset_s: 3600, ..Settings::default() })
}

pub fn screen(app: &App, view: &View, findings: &[Finding], size: (u16, u16)) -> Buffer {
    drawn(app, view, findings, size).0
}

pub fn drawn(app: &App, view: &View, findings: &[Finding], size: (u16, u16)) -> (Buffer, Drawn) {
    let area = Rect::new(0, 0, size.0, size.1);
    let mut buffer = Buffer::empty(area);
    let mut past = Past::rising_to(1119);
    past.solid = Some(scenes::g(900));
    let context = Context { view, history: &past, findings };
    let drawn = draw_on(&mut buffer, area, app, context);
    (buffer, drawn)
}

pub fn show(look: &Look, view: &View, size: (u16, u16)) -> String {
    text(&screen(&app(look), view, &findings(), size))
}

pub fn page(look: &Look, page: Page, size: (u16, u16)) -> String {
    let mut app = app(look);
    app.page = page;
    text(&screen(&app, &scenes::one_gpu(), &findings(), size))
}

/// `LOOK=kill,80,24 cargo test --test screens -- --ignored --nocapture look` prints one screen
/// with its colours; `mono` and `ascii` may follow.
#[test]
#[ignore = "prints a screen to be looked at"]
fn look() {
    let wish = std::env::var("LOOK").unwrap_or_else(|_| "one,80,24".to_owned());
    let parts: Vec<&str> = wish.split(',').collect();
    let number = |n: usize| parts.get(n).and_then(|n| n.parse().ok()).unwrap_or(80);
    let (mono, ascii) = (parts.contains(&"mono"), parts.contains(&"ascii"));
    let mut app = app(&Look::new(!mono && !ascii, ascii));
    let view = match parts[0] {
        "eight" => scenes::many(8, 6),
        "sixteen" => scenes::many(16, 25),
        "mig" => scenes::mig(),
        "stalled" => scenes::stalled(),
        "lost" => scenes::lost(),
        _ => scenes::one_gpu(),
    };
    match parts[0] {
        "help" => app.page = Page::Help,
        "fixes" => app.page = Page::Fixes,
        "kill" => app.kill = Some(scenes::dialog()),
        "no-gpu" => app.page = Page::NoGpu(scenes::no_gpu()),
        name => {
            if let Some(tab) = Tab::ALL.into_iter().find(|tab| tab.title() == name) {
                app.page = Page::Detail(tab);
            }
        }
    }
    let buffer = screen(&app, &view, &findings(), (number(1), number(2)));
    let mut out = Vec::new();
    let mut backend = ratatui::backend::CrosstermBackend::new(&mut out);
    let area = buffer.area;
    let places = (0..area.height).flat_map(|y| (0..area.width).map(move |x| (x, y)));
    let cells = places.map(|(x, y)| (x, y, &buffer[(x, y)]));
    ratatui::backend::Backend::draw(&mut backend, cells).unwrap();
    print!("\x1b[2J{}\x1b[{};1H", String::from_utf8_lossy(&out), area.height + 1);
}

/// `cargo test --release --test screens -- --ignored --nocapture how_long` prints what a frame
/// costs with 8 GPUs of 64 processes each.
#[test]
#[ignore = "prints a measurement"]
fn how_long_a_frame_takes() {
    let view = scenes::many(8, 64);
    for (size, sort) in [
        ((80, 24), FieldId::Vram),
        ((160, 50), FieldId::Vram),
        ((160, 50), FieldId::Command),
        ((300, 100), FieldId::Vram),
    ] {
        let mut app = app(&COLOUR);
        app.sort.by = sort;
        let rounds = 300;
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(screen(&app, &view, &findings(), size));
        }
        let each = start.elapsed() / rounds;
        println!("{size:?} by {sort:?}: {each:?}, {} holders", view.holders.len());
    }
}
