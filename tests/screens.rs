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
use vramlens::ui::{App, Context, Settings, draw_on};

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

#[test]
#[ignore = "prints screens to be looked at"]
fn look() {
    let app = app(Look::new(true, false));
    let ascii = self::app(Look::new(false, true));
    let show = |name: &str, app: &App, view: &View, size| {
        eprintln!("=== {name} {size:?}\n{}", text(&screen(app, view, &findings(), size)));
    };
    for size in [(40, 10), (80, 24), (120, 40), (160, 50)] {
        show("one", &app, &scenes::one_gpu(), size);
        show("one", &ascii, &scenes::one_gpu(), size);
    }
    for size in [(40, 10), (80, 24), (160, 50)] {
        show("8", &app, &scenes::many(8, 6), size);
        show("16", &app, &scenes::many(16, 25), size);
        show("mig", &app, &scenes::mig(), size);
        show("stalled", &app, &scenes::stalled(), size);
        show("lost", &app, &scenes::lost(), size);
        show("unified", &app, &scenes::unified(), size);
    }
}
