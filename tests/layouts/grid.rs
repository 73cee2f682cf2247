//! Text from outside in the grid: what this program counts as a column must be one where it is
//! shown. Each row has a column of numbers behind the hostile text; a mark is put on its first
//! digit by position, and must hit it.

use std::process::Command;
use std::time::{Duration, Instant};

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use vramlens::analyze::View;
use vramlens::ui::columns::Columns;

use crate::paper::{COLOUR, app, drawn, text};
use crate::scenes;

const SIZE: (u16, u16) = (100, 50);
/// The first pid; all have five digits.
const FIRST: u32 = 70_001;

/// Command lines that other programs have stumbled over.
const HOSTILE: [&str; 26] = [
    "plain.py",
    "訓練/模型.py --名前=猫",
    "한국어 모델.py",
    "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} jamo",
    "ｆｕｌｌｗｉｄｔｈ ﾊﾝｶｸ",
    "🐈 cat 🚀 rocket",
    "👨\u{200d}👩\u{200d}👧\u{200d}👦 family",
    "🏳\u{fe0f}\u{200d}🌈 flag of colours",
    "🇩🇪🇯🇵🇧🇷 flags",
    "🇩 half a flag",
    "1\u{fe0f}\u{20e3} keycap",
    "❤\u{fe0f} heart ❤ heart",
    "👍🏽 👩🏿\u{200d}🚀 skin",
    "e\u{301}clair na\u{308}ive",
    "z\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}algo",
    "\u{301}\u{302}begins with marks",
    "हिन्दी क्षि मॉडल",
    "ไทย น้ำ ภาษา",
    "العربية نموذج",
    "עברית מוֹדֶל",
    "a\u{202e}gpj.exe\u{202c} bidi \u{2067}x\u{2069}",
    "\x1b[2J\x1b[31m\x1b]0;title\x07 escape",
    "tab\tnew\nline\rreturn\u{8}back",
    "zero\u{200b}width\u{feff}s\u{ad}oft\u{2060}",
    "\u{9b}31m c1 \u{85} \u{7f}",
    "①②③ ±× αβγ … “quotes” ambiguous",
];

fn view() -> View {
    let mut view = scenes::one_gpu();
    view.holders = HOSTILE
        .iter()
        .zip(FIRST..)
        .map(|(command, pid)| scenes::holder(0, pid, command, &[command], 300))
        .collect();
    view
}

/// The table with numbers behind the words.
fn table() -> Buffer {
    let mut app = app(&COLOUR);
    app.sort.by = vramlens::fields::FieldId::Pid;
    app.sort.reversed = true;
    app.settings.columns = Columns::parse(["user:14", "command:40", "pid"]).unwrap();
    drawn(&app, &view(), &[], SIZE).0
}

fn bytes(buffer: &Buffer) -> Vec<u8> {
    let mut out = Vec::new();
    let mut backend = CrosstermBackend::new(&mut out);
    let blank = Buffer::empty(buffer.area);
    backend.draw(blank.diff(buffer).into_iter()).unwrap();
    out
}

/// Rows with a pid and the column of its first digit, counted by this program.
fn pids(buffer: &Buffer) -> Vec<(u16, u16, u32)> {
    let digits = |x: u16, y: u16| -> Option<u32> {
        let word: String = (x..x + 5).map(|x| buffer[(x, y)].symbol()).collect();
        word.parse().ok().filter(|pid| (FIRST..FIRST + HOSTILE.len() as u32).contains(pid))
    };
    let rows = 0..buffer.area.height;
    let found: Vec<_> = rows
        .filter_map(|y| (0..buffer.area.width - 5).find_map(|x| Some((x, y, digits(x, y)?))))
        .collect();
    assert!(found.len() >= 20, "{}", text(buffer));
    found
}

#[test]
fn hostile_text_keeps_the_grid_in_a_terminals_parser() {
    let buffer = table();
    let cells = |n: u16| std::num::NonZeroU16::new(n).unwrap();
    let mut parser = vt100::Parser::new(cells(SIZE.1), cells(SIZE.0), 0);
    parser.process(&bytes(&buffer));
    for (x, y, pid) in pids(&buffer) {
        let shown: String =
            (x..x + 5).map(|x| parser.screen().cell(y, x).unwrap().contents().to_owned()).collect();
        let command = HOSTILE[(pid - FIRST) as usize];
        assert_eq!(shown, pid.to_string(), "{command:?} moves what stands behind it");
    }
}

/// A tmux of its own, which ends with the test.
struct Tmux(tempfile::TempDir);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Option<String> {
        let socket = self.0.path().join("tmux");
        let out = Command::new("tmux")
            .args(["-f", "/dev/null", "-u", "-S"])
            .arg(socket)
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn hostile_text_keeps_the_grid_in_tmux() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return println!("there is no tmux here");
    }
    let buffer = table();
    let mut all = bytes(&buffer);
    let mut expected = Vec::new();
    for (x, y, pid) in pids(&buffer) {
        all.extend(format!("\x1b[{};{}H@", y + 1, x + 1).bytes());
        expected.push((format!("@{:04}", pid % 10_000), pid));
    }
    all.extend(format!("\x1b[{};1HEND", SIZE.1).bytes());
    let tmux = Tmux(tempfile::tempdir().unwrap());
    let file = tmux.0.path().join("screen");
    std::fs::write(&file, all).unwrap();
    let show = format!("stty -echo; cat '{}'; exec sleep 60", file.display());
    let (columns, rows) = (SIZE.0.to_string(), SIZE.1.to_string());
    let started = tmux.run(&["new-session", "-d", "-x", &columns, "-y", &rows, &show]);
    assert!(started.is_some(), "tmux does not start");
    let end = Instant::now() + Duration::from_secs(20);
    let shown = loop {
        let shown = tmux.run(&["capture-pane", "-p"]).unwrap_or_default();
        if shown.contains("END") {
            break shown;
        }
        assert!(Instant::now() < end, "tmux shows nothing:\n{shown}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let moved: Vec<_> = expected
        .iter()
        .filter(|(marked, _)| !shown.contains(marked.as_str()))
        .map(|(_, pid)| format!("{:?}", HOSTILE[(pid - FIRST) as usize]))
        .collect();
    assert!(moved.is_empty(), "{}\nmove what stands behind them:\n{shown}", moved.join("\n"));
}
