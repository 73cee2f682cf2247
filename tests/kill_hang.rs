//! A driver that hangs once the user has given the word: the process ends, and what came back is not
//! known. By the real program on a real terminal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "remote/holders.rs"]
mod holders;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::path::Path;
use std::process::{Command, Stdio};

use fake::Fake;
use holders::{Devices, Holder, with_process};
use pty::Term;
use serde_json::Value;

const UNKNOWN: &str = "the driver does not answer: what came back is not known";
const HANGS: &str = "[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\n";

fn start(fake: &Fake, devices: &Devices, args: &[&str]) -> Term {
    let devices = devices.variable();
    let environment: [(&str, &Path); 2] =
        [("VRAMLENS_NVML_LIB", &fake.library()), ("VRAMLENS_TEST_DEVICES", Path::new(&devices))];
    Term::start(args, &environment, 24, 100)
}

#[test]
fn the_command_says_that_it_is_not_known() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fake = Fake::new(&with_process(pid));
    let mut term = start(&fake, &devices, &["kill", &pid.to_string(), "--now"]);
    term.wait_for("to go on:");
    // No look ends from here on; what was seen before waits to be taken.
    fake.change(&(with_process(pid) + HANGS));
    term.send("y\n");
    term.wait_for(&format!("{pid} gone after"));
    let text = term.wait_for(UNKNOWN);
    assert!(text.contains("→ vramlens triage"), "{text}");
    assert!(!text.contains("freed"), "{text}");
    assert_eq!(term.exit_code(), 4);
}

#[test]
fn the_dialog_says_that_it_is_not_known() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fake = Fake::new(&with_process(pid));
    let mut term = start(&fake, &devices, &["--interval", "100ms"]);
    term.wait_for("holder open");
    term.send("x");
    term.wait_for("End 1 process, 2.0 GiB on GPU 0");
    fake.change(&(with_process(pid) + HANGS));
    term.wait_for("stalled in nvmlDeviceGetMemoryInfo");
    term.send("y");
    term.wait_for("gone after");
    let text = term.wait_for(UNKNOWN);
    assert!(text.contains("vramlens triage") && !text.contains("has not ended"), "{text}");
    assert!(!text.contains("freed"), "{text}");
    // It can be left, and the view goes on.
    term.send("\x1b");
    term.wait("the dialog is gone", |text| !text.contains(UNKNOWN));
    fake.change(&with_process(pid));
    term.wait("it answers again", |text| !text.contains("stalled"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_list_that_fails_makes_it_unknown_for_a_script_too() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fails = "[[error]]\ncall = \"nvmlDeviceGetGraphicsRunningProcesses*\"\ncode = 4\n";
    let fake = Fake::new(&(with_process(pid) + fails));
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["kill", &pid.to_string(), "--now", "--yes", "--json"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .env("VRAMLENS_TEST_DEVICES", devices.variable())
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let proof = &answer["proof"];
    assert_eq!(proof["freed_bytes"]["absent"], "no_permission", "{answer:#}");
    assert_eq!((&proof["complete"], &proof["unknown"]), (&false.into(), &true.into()));
    assert_eq!(proof["remaining"].as_array().unwrap().len(), 0, "{answer:#}");
    let sentence = proof["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("graphics processes could not be read (no permission)"),
        "{sentence}"
    );
    assert_eq!(output.status.code(), Some(4));
}
