//! The log of the real program: what it keeps, who may read it, and that nothing depends on it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "support/pty.rs"]
mod pty;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fake::Fake;
use pty::Term;

const ONE: &str = "[[gpu]]\n";

fn vramlens(fake: &Fake, args: &[&str], env: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.args(args).env("VRAMLENS_NVML_LIB", fake.library()).env("HOME", "/nonexistent");
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME").stdin(Stdio::null());
    command.envs(env.iter().copied()).output().unwrap()
}

#[test]
fn a_log_is_private_and_says_what_was_started_and_how_it_ended() {
    let fake = Fake::new(ONE);
    let state = fake.dir().join("state");
    let on = [("XDG_STATE_HOME", state.as_path()), ("VRAMLENS_LOG_FILE", Path::new("on"))];
    for _ in 0..2 {
        assert_eq!(vramlens(&fake, &["triage"], &on).status.code(), Some(0));
    }
    let path = state.join("vramlens/vramlens.log");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].contains(" INFO ") && lines[0].ends_with(": triage"), "{text}");
    assert!(lines[3].ends_with("ends with 0"), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    // What only prints has nothing to log.
    vramlens(&fake, &["config"], &on);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn without_a_word_there_is_no_log() {
    let fake = Fake::new(ONE);
    let state = fake.dir().join("state");
    assert!(vramlens(&fake, &["triage"], &[("XDG_STATE_HOME", &state)]).status.success());
    assert!(!state.exists());
}

#[test]
fn it_goes_on_while_the_terminal_takes_nothing() {
    let fake = Fake::new(ONE);
    let log = fake.dir().join("x.log");
    let library = fake.library();
    let args = ["--interval", "100ms", "--log", log.to_str().unwrap()];
    let mut term = Term::start(&args, &[("VRAMLENS_NVML_LIB", &library)], 50, 160);
    term.wait_for("NVIDIA H200");
    term.stall(true);
    // Whole frames, until none finds room any more.
    for _ in 0..100 {
        term.send("\x0c");
        std::thread::sleep(Duration::from_millis(5));
    }
    fake.change("[[gpu]]\nlost = true\n");
    term.wait("a line of it", |_| std::fs::read_to_string(&log).unwrap().contains("is lost"));
    term.stall(false);
}

#[test]
fn a_mistake_in_the_configuration_is_logged() {
    let fake = Fake::new(ONE);
    let config = fake.dir().join("config.toml");
    std::fs::write(&config, "[view]\nintervall = \"2s\"\n").unwrap();
    let log = fake.dir().join("x.log");
    let args = ["triage", "--config", config.to_str().unwrap(), "--log", log.to_str().unwrap()];
    assert_eq!(vramlens(&fake, &args, &[]).status.code(), Some(2));
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.contains(" ERROR ") && text.contains("did you mean view.interval?"), "{text}");
}

#[test]
fn a_log_that_cannot_be_written_is_said_once_and_changes_nothing() {
    let fake = Fake::new(ONE);
    let plain = vramlens(&fake, &["triage"], &[]);
    for bad in ["/dev/full", "/proc/nowhere/x.log"] {
        let output = vramlens(&fake, &["triage", "--log", bad], &[]);
        assert_eq!(output.status.code(), plain.status.code());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(errors.matches("no log is kept").count(), 1, "{errors}");
        assert!(errors.contains(bad), "{errors}");
    }
}

#[test]
fn the_view_goes_on_without_its_log() {
    let fake = Fake::new(ONE);
    let library = fake.library();
    let env = [("VRAMLENS_NVML_LIB", library.as_path())];
    let mut term = Term::start(&["--log", "/dev/full"], &env, 24, 100);
    term.wait_for("no log is kept");
    term.wait_for("H200");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn an_alert_is_logged_and_told_to_the_desktop() {
    let fake = Fake::new("[[gpu]]\nprocess = [{ pid = 9001, bytes = 107374182400 }]\n");
    let folder = fake.dir();
    let (bin, told, log) = (folder.join("bin"), folder.join("told"), folder.join("x.log"));
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("notify-send");
    let text = format!("#!/bin/sh\necho \"$@\" > {0}.new; mv {0}.new {0}\n", told.display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let library = fake.library();
    let env = [
        ("VRAMLENS_NVML_LIB", library.as_path()),
        ("PATH", Path::new(&path)),
        ("VRAMLENS_ALERT_VRAM_ABOVE", Path::new("50%")),
        ("VRAMLENS_ALERT_DESKTOP", Path::new("true")),
    ];
    let mut term = Term::start(&["--log", log.to_str().unwrap()], &env, 24, 100);
    let end = Instant::now() + Duration::from_mins(1);
    while !told.exists() {
        assert!(Instant::now() < end, "nothing was told");
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = std::fs::read_to_string(told).unwrap();
    assert!(said.starts_with("--app-name=vramlens -- vramlens: GPU 0: 100.0 GiB of"), "{said}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    let kept = std::fs::read_to_string(log).unwrap();
    assert!(kept.contains(" WARN  alerts: vram_above: GPU 0: "), "{kept}");
}

#[test]
fn alerts_and_the_log_go_on_while_an_earlier_moment_is_shown() {
    let fake = Fake::new(ONE);
    let (log, library) = (fake.dir().join("x.log"), fake.library());
    let env = [
        ("VRAMLENS_NVML_LIB", library.as_path()),
        ("VRAMLENS_ALERT_XID", Path::new("true")),
        ("VRAMLENS_ALERT_BELL", Path::new("true")),
    ];
    let mut term = Term::start(&["--log", log.to_str().unwrap()], &env, 24, 100);
    term.wait_for("NVIDIA H200");
    term.wait_for("● live");
    term.send("p");
    term.wait_for("‖ paused");
    let says = |words: &str| std::fs::read_to_string(&log).unwrap().contains(words);
    fake.change("[[gpu]]\n[[event]]\nxid = 79\n");
    term.wait("the alert", |_| says("XID 79"));
    fake.change("[[gpu]]\nlost = true\n[[event]]\nxid = 79\n");
    let shown = term.wait("what was lost", |_| says("is lost"));
    assert!(shown.contains("‖ paused"), "{shown}");
}
