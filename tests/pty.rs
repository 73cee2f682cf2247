//! The live view on a real terminal, over the stand-in driver.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::path::Path;

use fake::Fake;
use nix::sys::signal::Signal;
use pty::Term;

const ONE: &str = include_str!("scenarios/one.toml");

fn start(fake: &Fake, args: &[&str], rows: u16, columns: u16) -> Term {
    Term::start(args, &[("VRAMLENS_NVML_LIB", &fake.library())], rows, columns)
}

fn shown(fake: &Fake) -> Term {
    let term = start(fake, &[], 24, 80);
    term.wait_for("NVIDIA H200");
    term
}

/// What a shell finds after the program has gone.
fn assert_given_back(term: &Term) {
    term.wait("the main screen", |_| !term.on_alternate_screen());
    assert!(!term.cursor_hidden(), "the cursor is still hidden");
    assert!(term.is_cooked(), "the terminal is still raw");
}

#[test]
fn it_shows_the_gpu_and_gives_the_terminal_back() {
    let fake = Fake::new(ONE);
    let mut term = shown(&fake);
    let text = term.wait_for("driver 580.159.04");
    assert!(text.contains("of 140.0G"), "{text}");
    assert!(term.on_alternate_screen() && term.cursor_hidden() && !term.is_cooked());
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    assert_given_back(&term);
}

/// The rows of the processes and the fixes: what is between the two rules, and below.
fn rows_of(text: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| !line.contains("PID"));
    rows.take(16).take_while(|line| !line.contains('‖')).map(str::to_owned).collect()
}

#[test]
fn holding_a_moment_changes_nothing_of_it() {
    // It has ended and was reaped: the driver lists who is dead.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    let fake = Fake::new(&ONE.replace("pid = 20011", &format!("pid = {pid}")));
    let mut term = shown(&fake);
    let before = term.wait("both verdicts", |text| text.matches("ghost").count() == 2);
    // For some seconds, so that there is a moment to go back to.
    let clock =
        |text: &str| text.lines().next().unwrap().trim_end().rsplit(' ').next().map(str::to_owned);
    let mut last = clock(&before);
    for _ in 0..3 {
        last = clock(&term.wait("the next second", |text| clock(text) != last));
    }
    term.send("p");
    let shown = term.wait_for("‖ paused");
    let [before, held] = [&before, &shown].map(|text| rows_of(text));
    let ghost = |rows: &[String]| rows.iter().find(|row| row.contains(&pid)).cloned();
    assert!(ghost(&held).unwrap().contains("ghost"), "{held:#?}");
    assert_eq!(ghost(&held), ghost(&before));
    // Keys that act on the present say why they do not.
    for key in ["z", "x", "X"] {
        term.send(key);
        let text = term.wait_for("this is an earlier moment: End goes back to now");
        assert!(!text.contains("x kill"), "{text}");
        term.send("\x1b[B");
        term.wait("the words are gone", |text| !text.contains("this is an earlier moment"));
    }
    // A step back is judged as it was.
    let line = |text: &str| {
        text.lines().find_map(|line| line.get(..13)?.strip_prefix(" ‖ ").map(str::to_owned))
    };
    term.send(",");
    let back =
        term.wait("a second before", |text| line(text).is_some() && line(text) != line(&shown));
    assert!(ghost(&rows_of(&back)).is_some_and(|row| row.contains("ghost")), "{back}");
    term.send("\x1b[F");
    term.wait_for("● live");
}

#[test]
fn what_a_pasted_error_wants_is_said_to_be_the_error_s() {
    let fake = Fake::new(ONE);
    let mut term = start(&fake, &[], 60, 120);
    term.wait_for("NVIDIA H200");
    let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a \
                   total capacity of 79.11 GiB of which 1.00 GiB is free.";
    term.send(&format!("\u{1b}[200~{message}\u{1b}[201~\r"));
    term.wait_for("GPU 0 is another card than the message's of 79.1 GiB");
    term.send("\u{1b}");
    term.wait_for("the error's 3.0 GiB on GPU 0");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 130)] {
        let fake = Fake::new(ONE);
        let mut term = shown(&fake);
        term.signal(signal);
        assert_eq!(term.exit_code(), code, "{signal}");
        assert_given_back(&term);
    }
}

#[test]
fn ctrl_c_quits_at_once() {
    let fake = Fake::new(ONE);
    let mut term = shown(&fake);
    term.send("\x03");
    assert_eq!(term.exit_code(), 0);
    assert_given_back(&term);
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let fake = Fake::new(ONE);
    let mut term = shown(&fake);
    term.hang_up();
    assert_ne!(term.exit_code(), 101, "it must not panic");
}

#[test]
fn it_stops_and_continues_like_any_job() {
    let fake = Fake::new(ONE);
    let mut term = shown(&fake);
    for way in ["key", "signal"] {
        match way {
            "key" => term.send("\x1a"),
            _ => term.signal(Signal::SIGTSTP),
        }
        term.wait(way, |_| term.state() == Some('T'));
        assert_given_back(&term);
        term.signal(Signal::SIGCONT);
        term.wait("the other screen", |_| term.on_alternate_screen() && !term.is_cooked());
        term.wait_for("NVIDIA H200");
    }
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_storm_of_sizes_ends_in_the_right_picture() {
    let fake = Fake::new(ONE);
    let mut term = shown(&fake);
    let calm = ["vramlens", "NVIDIA H200", "of 140.0G", "COMMAND", "quit"];
    for step in 0..100_u16 {
        term.resize(1 + (step * 37) % 100, 1 + (step * 53) % 300);
    }
    term.resize(50, 160);
    let text = term.wait("160x50", |text| calm.iter().all(|part| text.contains(part)));
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    term.resize(10, 40);
    term.wait("40x10", |text| text.contains("GPU 0") && text.lines().count() <= 10);
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_terminal_that_nobody_reads_stops_nothing() {
    let fake = Fake::new(&format!("count_calls = true\n{ONE}"));
    let mut term = start(&fake, &["--interval", "100ms"], 50, 160);
    term.wait_for("NVIDIA H200");
    term.stall(true);
    let looks = |fake: &Fake| fake.calls("nvmlDeviceGetMemoryInfo_v2");
    let before = looks(&fake);
    let mut temperature = 30;
    // Every figure changes, so that there is always something to draw.
    term.wait("forty more looks", |_| {
        temperature += 1;
        fake.change(&format!(
            "count_calls = true\n{}",
            ONE.replace("temperature = 54", &format!("temperature = {}", 30 + temperature % 60))
        ));
        looks(&fake) > before + 40
    });
    fake.change(&format!(
        "count_calls = true\n{}",
        ONE.replace("temperature = 54", "temperature = 99")
    ));
    let seen = looks(&fake);
    term.wait("a look at the last figure", |_| looks(&fake) > seen + 2);
    term.stall(false);
    term.wait_for("99°C");
    term.stall(true);
    term.send("q");
    assert_eq!(term.exit_code(), 0, "a stalled terminal must not hold it up");
    term.stall(false);
}

#[test]
fn a_hung_driver_call_is_named_and_keys_still_work() {
    let fake = Fake::new("[[gpu]]\n[[gpu]]\n");
    let mut term = start(&fake, &["--interval", "100ms"], 24, 100);
    term.wait_for("NVIDIA H200");
    fake.change("[[gpu]]\n[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\ngpu = 1\n");
    let text = term.wait_for("stalled in nvmlDeviceGetMemoryInfo");
    assert!(text.contains("on GPU 1"), "{text}");
    term.send("?");
    term.wait_for("select the row above");
    term.send("q");
    term.wait("back on the main page", |text| text.contains("COMMAND"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    assert_given_back(&term);
}

#[test]
fn without_a_gpu_it_says_why_and_offers_a_recording() {
    let nowhere = Path::new("/nonexistent/libnvidia-ml.so.1");
    let mut term = Term::start(&[], &[("VRAMLENS_NVML_LIB", nowhere)], 24, 80);
    let text = term.wait_for("No NVIDIA GPU can be read on this machine");
    assert!(text.contains("/nonexistent/libnvidia-ml.so.1 not found"), "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    assert_given_back(&term);
}

#[test]
fn a_driver_that_comes_back_is_shown() {
    let fake = Fake::new("[[error]]\ncall = \"nvmlInit_v2\"\ncode = 9\n[[gpu]]\n");
    let mut term = start(&fake, &["--interval", "100ms"], 24, 80);
    term.wait_for("No NVIDIA GPU can be read on this machine");
    fake.change("[[gpu]]\n");
    term.wait_for("NVIDIA H200");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_panic_in_any_thread_gives_the_terminal_back() {
    // What it says may hold a name from outside.
    for thread in ["loop \u{1b}]0;owned\u{7}\nb", "nvml"] {
        let fake = Fake::new(ONE);
        let library = fake.library();
        let env = [("VRAMLENS_NVML_LIB", &*library), ("VRAMLENS_TEST_PANIC", Path::new(thread))];
        let mut term = Term::start(&[], &env, 24, 160);
        assert_eq!(term.exit_code(), 101, "{thread}");
        assert_given_back(&term);
        term.wait_for("a panic for the test");
        let hostile = thread.contains("owned");
        assert!(!hostile || term.text().contains("loop ␛]0;owned␇␊b"), "{}", term.text());
    }
}

#[test]
fn a_dumb_terminal_gets_one_frame_of_text() {
    let fake = Fake::new(ONE);
    let env = [("VRAMLENS_NVML_LIB", &*fake.library()), ("TERM", Path::new("dumb"))];
    let mut term = Term::start(&[], &env, 24, 80);
    assert_eq!(term.exit_code(), 0);
    let text = term.wait_for("GPU 0  NVIDIA H200");
    assert!(!term.on_alternate_screen() && text.contains("unaccounted"), "{text}");
}
