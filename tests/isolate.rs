//! `--isolate`: the driver is asked in a process of its own. The figures are the same, a driver
//! that hangs or crashes takes nothing down, and nobody is left at the end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake::Fake;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pty::Term;
use serde_json::Value;

const TWO: &str = "[[gpu]]\nprocess = [{ pid = 9001, bytes = 1073741824, sm = 40 }]\n[[gpu]]\n";
const HANGS: &str = "[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\ngpu = 1\n";
const CRASHES: &str = "[[crash]]\ncall = \"nvmlDeviceGetTemperature*\"\ngpu = 1\n";

/// The processes that ask this stand-in for somebody else.
fn askers(fake: &Fake) -> Vec<i32> {
    let library = fake.library();
    let library = library.to_str().unwrap();
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<i32>().ok());
    let asks = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.contains(&b"driver".as_slice()) && words.contains(&library.as_bytes())
    };
    pids.filter(asks).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn nobody_is_left(fake: &Fake) {
    until("the process that asks has ended", || askers(fake).is_empty());
}

fn start(fake: &Fake, args: &[&str]) -> Term {
    let all = [&["--isolate", "--interval", "200ms"], args].concat();
    Term::start(&all, &[("VRAMLENS_NVML_LIB", &fake.library())], 24, 120)
}

/// What does not change from one moment to the next.
fn figures(fake: &Fake, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(args)
        .env("VRAMLENS_NVML_LIB", fake.library())
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let mut value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let holders = value["holders"].as_array().unwrap();
    let keys = ["gpu", "pid", "bytes", "kind", "listed", "sm_percent"];
    let holders: Vec<Vec<Value>> =
        holders.iter().map(|holder| keys.map(|key| holder[key].clone()).into()).collect();
    // Whether a holder lives hangs on when it was looked for; ages on when the look was.
    for gpu in value["gpus"].as_array_mut().unwrap() {
        for key in ["ledger", "counts", "details_age_ms", "lists_age_ms", "settings_age_ms"] {
            gpu.as_object_mut().unwrap().remove(key);
        }
    }
    serde_json::json!({ "gpus": value["gpus"].take(), "holders": holders })
}

#[test]
fn the_figures_are_those_without_it() {
    let fake = Fake::new(TWO);
    for args in [&["--json"][..], &["triage", "--json"]] {
        let here = figures(&fake, args);
        let apart = figures(&fake, &[args, &["--isolate"]].concat());
        assert_eq!(here, apart, "{args:?}");
        assert_eq!(here["gpus"].as_array().unwrap().len(), 2);
        assert_eq!(here["holders"][0][1], 9001);
        nobody_is_left(&fake);
    }
}

#[test]
fn what_the_driver_refuses_is_said_as_without_it() {
    let fake = Fake::new("[[gpu]]\n[[error]]\ncall = \"nvmlInit_v2\"\ncode = 18\n");
    for args in [&["--once"][..], &["--once", "--isolate"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
            .args(args)
            .env("VRAMLENS_NVML_LIB", fake.library())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("of another version than the kernel module"), "{said}");
    }
    nobody_is_left(&fake);
}

#[test]
fn a_driver_that_hangs_is_left_behind_and_the_view_goes_on() {
    let fake = Fake::new(TWO);
    let mut term = start(&fake, &[]);
    term.wait_for("live");
    let first = askers(&fake);
    assert_eq!(first.len(), 1);
    fake.change(&format!("{TWO}{HANGS}"));
    term.wait_for("stalled in nvmlDeviceGetMemoryInfo_v2 on GPU 1");
    term.wait_for("its process was left behind");
    until("another process", || askers(&fake).iter().any(|pid| !first.contains(pid)));
    // Keys work meanwhile.
    term.send("?");
    term.wait_for("THE BAR");
    term.send("?");
    fake.change(TWO);
    term.wait_for("live");
    assert!(!askers(&fake).contains(&first[0]));
    // What was said of it is not true any longer.
    term.wait("no complaint", |text| !text.contains("left behind"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    nobody_is_left(&fake);
}

#[test]
fn a_crash_of_the_library_is_said_and_another_process_goes_on() {
    let fake = Fake::new(TWO);
    let mut term = start(&fake, &[]);
    term.wait_for("live");
    fake.change(&format!("{TWO}{CRASHES}"));
    term.wait_for("ended by signal SEGV");
    fake.change(TWO);
    term.wait("live again", |text| text.contains("live") && !text.contains("stalled"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    nobody_is_left(&fake);
}

#[test]
fn it_ends_with_its_parent_however_that_ends() {
    let fake = Fake::new(&format!("{TWO}{HANGS}"));
    // In the middle of a call, where the end of its input is not seen.
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["triage", "--isolate"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("a process that asks", || !askers(&fake).is_empty());
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    nobody_is_left(&fake);
}

#[test]
fn a_hang_ends_a_report_with_its_own_code() {
    let fake = Fake::new(&format!("{TWO}{HANGS}"));
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["--once", "--isolate"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("stalled in nvmlDeviceGetMemoryInfo_v2 on GPU 1"), "{said}");
    assert_eq!(output.status.code(), Some(4));
    nobody_is_left(&fake);
}

#[test]
fn a_recording_and_metrics_come_from_there_too() {
    let fake = Fake::new(TWO);
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["record", "-", "--isolate", "--for", "1s", "--interval", "200ms"])
        .env("VRAMLENS_NVML_LIB", fake.library())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ticks: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line.get("gpus").cloned())
        .collect();
    assert!(ticks.len() >= 2, "{text}");
    let counted: Vec<_> = ticks.iter().map(|tick| tick["seq"].as_u64().unwrap()).collect();
    assert_eq!(counted, (0..counted.len() as u64).collect::<Vec<_>>());
    nobody_is_left(&fake);

    let file = fake.dir().join("vramlens.prom");
    let mut server = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(["serve", "--isolate", "--interval", "200ms", "--textfile"])
        .arg(&file)
        .env("VRAMLENS_NVML_LIB", fake.library())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let page = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    until("a page", || page(&file).contains("vramlens_gpu_memory_used_bytes"));
    kill(Pid::from_raw(i32::try_from(server.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(server.wait().unwrap().success());
    nobody_is_left(&fake);
}

#[test]
fn the_own_cost_is_shown_on_demand() {
    let fake = Fake::new(TWO);
    let mut term = start(&fake, &[]);
    term.wait_for("live");
    assert!(!term.text().contains("calls "));
    term.send("c");
    let text = term.wait("rates", |text| text.contains("B/s") || text.contains("K/s"));
    let line = text.lines().last().unwrap();
    for title in ["CPU ", "memory ", "driver ", "calls ", "tty ", "lost 0"] {
        assert!(line.contains(title), "{line}");
    }
    term.send("c");
    term.wait("the keys again", |text| !text.contains("lost 0"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}
