//! Machines that are not like the others: what is said of a GPU that sleeps, of memory that is
//! shared with the host, of Windows' driver. In text, in JSON, and by the whole program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
#[allow(unused_imports, reason = "each test file uses a part of it")]
mod scenes;
#[path = "report/schema.rs"]
mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fake::Fake;
use jiff::tz::TimeZone;
use pty::Term;
use serde_json::Value;
use tempfile::TempDir;
use vramlens::analyze::{View, select};
use vramlens::ids::GpuUuid;
use vramlens::report::json::Snapshot;
use vramlens::report::triage::Triage;
use vramlens::report::{Style, text, triage};
use vramlens::rules;
use vramlens::sample::redact;
use vramlens::units::Bytes;

fn report(view: &View) -> String {
    let style = Style { width: 80, whole: false, ascii: false, time_zone: TimeZone::UTC, redact };
    triage::text(view, &[], &style)
}

#[test]
fn a_report_of_memory_that_is_shared_with_the_host() {
    insta::assert_snapshot!(report(&scenes::shared()));
}

#[test]
fn a_report_of_gpus_that_sleep() {
    insta::assert_snapshot!(report(&scenes::resting()));
}

/// One that sleeps is there, and one whose UUID nobody knows may be the one that is meant.
#[test]
fn what_sleeps_or_cannot_be_named_is_not_missing() {
    let nowhere = |view: &View, name: &str| select::nowhere(view, &[name.to_owned()]);
    let mut view = scenes::resting();
    assert_eq!(nowhere(&view, "0"), None);
    assert_eq!(nowhere(&view, "3").as_deref(), Some("there is no GPU 3; there are 0, 1 and 2"));
    assert!(nowhere(&view, "GPU-ffff").is_some());
    view.gpus[0].sample.uuid = GpuUuid::unknown(&"0000:1b:00.0");
    assert_eq!(nowhere(&view, "GPU-ffff"), None);
    assert!(nowhere(&view, "3").is_some());
    // Nobody has said yet which there are.
    assert_eq!(nowhere(&scenes::nothing(), "3"), None);
}

#[test]
fn a_report_over_windows_says_once_what_cannot_be_known() {
    let report = report(&scenes::windows());
    assert_eq!(report.matches("WSL2").count(), 1, "{report}");
    insta::assert_snapshot!(report);
}

#[test]
fn what_would_fit_into_shared_memory_is_what_the_machine_has_left() {
    let view = scenes::shared();
    let answer = |gib| rules::would_it_fit(&view, Bytes::gib(gib), &[]);
    assert!(answer(30).contains("fit on GPU 0 now: 65.4 GiB are free"), "{}", answer(30));
    assert_ne!(answer(30), answer(200));
    let unknown = rules::would_it_fit(&scenes::resting(), Bytes::gib(3), &[]);
    assert!(unknown.contains("GPU 2"), "{unknown}");
}

#[test]
fn their_json_is_described() {
    let schema = serde_json::from_str(include_str!("../assets/snapshot.schema.json")).unwrap();
    for view in [scenes::shared(), scenes::resting(), scenes::windows(), scenes::unified()] {
        let whole = serde_json::to_value(Triage::new(&view, &[], redact)).unwrap();
        schema::check(&schema, &whole);
        let style =
            Style { width: 80, whole: false, ascii: true, time_zone: TimeZone::UTC, redact };
        assert!(text::frame(&view, &style).is_ascii());
    }
    let shared = serde_json::to_value(Snapshot::new(&scenes::shared(), redact)).unwrap();
    let ledger = &shared["gpus"][0]["ledger"];
    let part = |name: &str| ledger[name].as_u64().unwrap();
    assert_eq!(ledger["unified"], true);
    let sum = part("processes_bytes") + part("host_bytes") + part("free_bytes");
    assert_eq!(sum, part("total_bytes"));
    let resting = serde_json::to_value(Snapshot::new(&scenes::resting(), redact)).unwrap();
    assert_eq!(resting["gpus"][0]["memory"]["total_bytes"]["absent"], "asleep");
    assert_eq!(resting["gpus"][1]["memory"]["total_bytes"]["absent"], "let_sleep");
}

/// What the whole program says of a machine made of these files, over a stand-in driver.
fn said(scenario: &str, files: &[(&str, &str)], args: &[&str]) -> String {
    let (root, fake) = (TempDir::new().unwrap(), Fake::new(scenario));
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(args)
        .env("HOME", "/nonexistent")
        .env("VRAMLENS_NVML_LIB", fake.library())
        .env("VRAMLENS_TEST_ROOT", root.path())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shared_memory_adds_up_from_the_driver_and_the_kernel_to_the_report() {
    const GIB: u64 = 1 << 30;
    let meminfo = "MemTotal:  127600748 kB\nMemFree:  1 kB\nMemAvailable: 66060288 kB\n";
    let files = [("proc/meminfo", meminfo)];
    let unified = include_str!("scenarios/unified.toml");
    for args in [&["--json"][..], &["--json", "--isolate"]] {
        let json: Value = serde_json::from_str(&said(unified, &files, args)).unwrap();
        let gpu = &json["gpus"][0];
        assert_eq!(gpu["memory"]["total_bytes"]["absent"], "not_supported");
        let part = |name: &str| gpu["ledger"][name].as_u64().unwrap();
        let held = part("processes_bytes") + part("survivors_bytes");
        assert_eq!((gpu["ledger"]["unified"].as_bool(), held), (Some(true), 20 * GIB));
        assert_eq!(part("free_bytes"), 63 * GIB);
        assert_eq!(part("total_bytes"), 127_600_748 << 10);
        assert_eq!(held + part("host_bytes") + part("free_bytes"), part("total_bytes"));
        assert_eq!(part("unaccounted_bytes"), 0);
    }
    let report = said(unified, &files, &["triage"]);
    for line in ["58.7 of 121.7 GiB used, shared with the host", "host-used", "available     63.0"]
    {
        assert!(report.contains(line), "{report}");
    }
    // Without the kernel's word there is no figure.
    assert!(said(unified, &[], &["triage"]).contains("memory: not supported here"));
}

#[test]
fn over_windows_the_whole_program_pretends_nothing() {
    let scenario = "[[gpu]]\nname = \"NVIDIA GeForce RTX 4090\"\nunaccounted = 9663676416\n\
        [[error]]\ncall = \"nvmlDeviceGetComputeRunning*\"\ncode = 3\n\
        [[error]]\ncall = \"nvmlDeviceGetGraphicsRunning*\"\ncode = 3\n";
    let by_device = [("dev/dxg", ""), ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 1 kB\n")];
    let by_kernel = [
        ("proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2\n"),
        ("usr/lib/wsl/lib/libnvidia-ml.so.1", ""),
    ];
    for files in [&by_device[..], &by_kernel] {
        let report = said(scenario, files, &["triage"]);
        assert!(report.contains("used by Windows and others: cannot be told apart"), "{report}");
        assert!(report.contains("processes        ?   not told"), "{report}");
        assert_eq!(report.matches("WSL2").count(), 1, "{report}");
        assert!(!report.contains("zombie") && !report.contains("likely"), "{report}");
        let doctor = said(scenario, files, &["doctor"]);
        assert!(doctor.contains("WSL2") && doctor.contains("Task Manager"), "{doctor}");
    }
}

/// A machine whose two GPUs sleep, over a stand-in driver that counts.
struct Asleep {
    root: TempDir,
    fake: Fake,
}

impl Asleep {
    fn new() -> Self {
        let gpu = "[[gpu]]\npersistence = false\n";
        let fake = Fake::new(&format!("count_calls = true\n{gpu}{gpu}"));
        let machine = Self { root: TempDir::new().unwrap(), fake };
        for address in ["0000:1b:00.0", "0000:1c:00.0"] {
            machine.put(address, "vendor", "0x10de\n");
            machine.put(address, "class", "0x030000\n");
            machine.put(address, "device", "0x28a0\n");
            machine.put(address, "power/control", "auto\n");
            machine.put(address, "power/runtime_status", "suspended\n");
        }
        machine
    }

    fn put(&self, address: &str, name: &str, text: &str) {
        let folder = self.root.path().join("sys/bus/pci/devices").join(address);
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
        command.args(args).env("HOME", "/nonexistent").stdin(Stdio::null());
        command.env("VRAMLENS_NVML_LIB", self.fake.library());
        command.env("VRAMLENS_TEST_ROOT", self.root.path());
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn was_called(&self) -> bool {
        self.fake.dir().join("libnvidia-ml.so.1.calls").exists()
    }
}

#[test]
fn no_command_wakes_a_gpu() {
    let machine = Asleep::new();
    let metrics = machine.root.path().join("page.prom");
    let page: &str = metrics.to_str().unwrap();
    for args in [
        &["--once"][..],
        &["--json"],
        &["triage"],
        &["--once", "--isolate"],
        &["record", "-", "--for", "1s", "--interval", "200ms"],
        &["run", "--interval", "100ms", "--", "sleep", "1"],
        &["doctor"],
    ] {
        let output = machine.output(args);
        assert!(!machine.was_called(), "{args:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let silent = matches!(args[0], "run" | "record");
        assert!(silent || said.contains("sleep"), "{args:?}: {said}{:?}", output.stderr);
        // A tree of a few files is no machine in good order.
        assert!(output.status.success() || args == ["doctor"], "{args:?}: {output:?}");
    }
    let json: Value = serde_json::from_slice(&machine.output(&["--json"]).stdout).unwrap();
    assert_eq!(json["gpus"].as_array().unwrap().len(), 2);
    assert_eq!(json["gpus"][0]["name"], "NVIDIA GPU 10de:28a0");
    assert_eq!(json["gpus"][0]["memory"]["used_bytes"]["absent"], "asleep");

    let mut server = machine
        .command(&["serve", "--interval", "200ms", "--textfile", page])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_file(&metrics, "vramlens_gpu_asleep");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!machine.was_called());
}

fn until_file(file: &PathBuf, needle: &str) {
    let end = Instant::now() + Duration::from_mins(1);
    while !std::fs::read_to_string(file).is_ok_and(|text| text.contains(needle)) {
        assert!(Instant::now() < end, "no {needle} in {}", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_view_shows_who_sleeps_and_wakes_nobody_without_a_key() {
    let machine = Asleep::new();
    let library = machine.fake.library();
    let env: [(&str, &Path); 2] =
        [("VRAMLENS_NVML_LIB", &library), ("VRAMLENS_TEST_ROOT", machine.root.path())];
    let mut term = Term::start(&["--interval", "200ms"], &env, 40, 120);
    term.wait_for("it sleeps, and is not woken for this");
    // Somebody else wakes one of them.
    machine.put("0000:1b:00.0", "power/runtime_status", "active\n");
    term.wait_for("NVIDIA H200");
    let text = term.wait_for("asleep");
    assert!(text.contains("it sleeps, and is not woken"), "{text}");
    assert_eq!(machine.fake.calls("gpu:1"), 0);
    term.send("u");
    let end = Instant::now() + Duration::from_secs(30);
    while machine.fake.calls("gpu:1") == 0 {
        assert!(Instant::now() < end, "the key woke nobody");
        std::thread::sleep(Duration::from_millis(20));
    }
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}
