//! The screens: drawn into a buffer, compared with what was looked at before. And the keys: what
//! they change and ask for.

#[path = "screens/scenes.rs"]
mod scenes;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use scenes::{Past, findings};
use vramlens::analyze::View;
use vramlens::rules::Finding;
use vramlens::ui::theme::Look;
use vramlens::ui::{App, Context, Page, Settings, Tab, draw_on};

/// A screen as text, a line for each row.
fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut skip = 0;
        let mut line = String::new();
        for x in 0..buffer.area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = vramlens::sample::text::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn app(look: Look) -> App {
    App::new(Settings { look, utc_offset_s: 3600, ..Settings::default() })
}

fn screen(app: &App, view: &View, findings: &[Finding], size: (u16, u16)) -> Buffer {
    let area = Rect::new(0, 0, size.0, size.1);
    let mut buffer = Buffer::empty(area);
    let mut past = Past::rising_to(1119);
    past.solid = Some(scenes::g(900));
    let context = Context { view, history: &past, findings };
    draw_on(&mut buffer, area, app, context);
    buffer
}

/// A scene and a page by name, for a look at a real terminal.
fn scene(name: &str) -> (View, App) {
    let mut app = app(Look::new(true, false));
    let view = match name {
        "8" => scenes::many(8, 6),
        "16" => scenes::many(16, 25),
        "mig" => scenes::mig(),
        "stalled" => scenes::stalled(),
        "lost" => scenes::lost(),
        "unified" => scenes::unified(),
        "nothing" => scenes::nothing(),
        _ => scenes::one_gpu(),
    };
    match name {
        "help" => app.page = Page::Help,
        "fixes" => app.page = Page::Fixes,
        "kill" => app.kill = Some(scenes::dialog()),
        "nogpu" => app.page = Page::NoGpu(scenes::no_gpu()),
        _ => {}
    }
    if let Some(tab) = Tab::ALL.into_iter().find(|tab| tab.title() == name) {
        app.page = Page::Detail(tab);
    }
    (view, app)
}

/// `LOOK=kill,80,24 cargo test --test screens -- --ignored --nocapture look` prints one screen;
/// `mono` and `ascii` may follow.
#[test]
#[ignore = "prints a screen to be looked at"]
fn look() {
    let wish = std::env::var("LOOK").unwrap_or_else(|_| "one,80,24".to_owned());
    let parts: Vec<&str> = wish.split(',').collect();
    let number = |n: usize| parts.get(n).and_then(|n| n.parse().ok()).unwrap_or(80);
    let (view, mut app) = scene(parts[0]);
    let (mono, ascii) = (parts.contains(&"mono"), parts.contains(&"ascii"));
    app.settings.look = Look::new(!mono && !ascii, ascii);
    let buffer = screen(&app, &view, &findings(), (number(1), number(2)));
    let mut out = Vec::new();
    let mut backend = ratatui::backend::CrosstermBackend::new(&mut out);
    let cells: Vec<_> = (0..buffer.area.height)
        .flat_map(|y| (0..buffer.area.width).map(move |x| (x, y)))
        .map(|(x, y)| (x, y, &buffer[(x, y)]))
        .collect();
    ratatui::backend::Backend::draw(&mut backend, cells.into_iter()).unwrap();
    drop(backend);
    let bottom = format!("\x1b[{};1H", buffer.area.height);
    println!("\x1b[2J{}{bottom}", String::from_utf8_lossy(&out));
}
