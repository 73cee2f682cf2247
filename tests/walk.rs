//! A walk through the whole interface by keys, on a pseudo-terminal and in tmux: every page comes,
//! and every one leads back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::process::Command;
use std::time::{Duration, Instant};

use pty::Term;

/// What is pressed, as tmux calls it and as a terminal sends it, and what is seen then.
const WALK: [(&str, &str, &str); 22] = [
    ("?", "?", "esc leave"),
    ("Escape", "\x1b", "⏎ detail"),
    ("j", "j", "COMMAND"),
    ("Enter", "\r", "verdict"),
    ("Tab", "\t", "▸2 allocator"),
    ("4", "4", "▸4 history"),
    ("q", "q", "⏎ detail"),
    ("f", "f", "esc leave"),
    ("Escape", "\x1b", "⏎ detail"),
    ("/", "/", "filter:"),
    ("v", "v", "filter: v"),
    ("Escape", "\x1b", "⏎ detail"),
    ("t", "t", "tree"),
    ("t", "t", "COMMAND"),
    ("T", "T", "theme harbor"),
    ("T", "T", "theme ember"),
    ("e", "e", "error message"),
    ("Escape", "\x1b", "⏎ detail"),
    ("p", "p", "‖"),
    ("End", "\x1b[F", "▶"),
    ("C-r", "\x12", "read again"),
    ("S", "S", "VRAM▴"),
];

#[test]
fn on_a_pseudo_terminal() {
    let mut term = Term::start(&["--demo"], &[], 30, 110);
    term.wait_for("COMMAND");
    term.wait_for("serve.py");
    for (name, bytes, seen) in WALK {
        term.send(bytes);
        term.wait(&format!("{seen:?} after {name}"), |text| text.contains(seen));
    }
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

/// A tmux of its own, which ends with the test.
struct Tmux(tempfile::TempDir);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Option<String> {
        let out = Command::new("tmux")
            .args(["-f", "/dev/null", "-u", "-S"])
            .arg(self.0.path().join("tmux"))
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/nonexistent")
            .output()
            .ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn wait(&self, what: &str, seen: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let shown = self.run(&["capture-pane", "-p"]).unwrap_or_default();
            if shown.contains(seen) {
                return;
            }
            assert!(Instant::now() < end, "{what}: no {seen:?}. The screen:\n{shown}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn in_tmux() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return println!("there is no tmux here");
    }
    let tmux = Tmux(tempfile::tempdir().unwrap());
    let program = format!("exec '{}' --demo", env!("CARGO_BIN_EXE_vramlens"));
    tmux.run(&["new-session", "-d", "-x", "110", "-y", "30", &program]).unwrap();
    // A lone escape is passed on at once.
    tmux.run(&["set-option", "-s", "escape-time", "0"]);
    tmux.wait("the first page", "serve.py");
    for (name, _, seen) in WALK {
        tmux.run(&["send-keys", name]).unwrap();
        tmux.wait(name, seen);
    }
    // The theme is the one that was chosen by key.
    let coloured = tmux.run(&["capture-pane", "-e", "-p"]).unwrap();
    assert!(coloured.contains("\x1b[48;"), "the ground of the theme is there:\n{coloured}");
    tmux.run(&["send-keys", "q"]);
    let end = Instant::now() + Duration::from_secs(20);
    while tmux.run(&["has-session"]).is_some() {
        assert!(Instant::now() < end, "it does not leave");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Without a terminal the demo is a frame of its recording, not of this machine's driver.
#[test]
fn the_demo_is_printed_where_there_is_no_terminal() {
    let vramlens = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
        command.arg("--demo").args(more).env("VRAMLENS_NVML_LIB", "/nonexistent");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = vramlens(&[]);
    assert!(text.contains("a moment of a recording") && text.contains("serve.py"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&vramlens(&["--json"])).unwrap();
    assert_eq!(json["gpus"][0]["name"], "NVIDIA H200");
}
