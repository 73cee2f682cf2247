//! Several machines by real `ssh`: a real `sshd` each, the real program at both ends, stand-in
//! drivers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "remote/asked.rs"]
mod asked;
#[path = "support/fake.rs"]
mod fake;
#[path = "remote/farm.rs"]
mod farm;
#[path = "remote/fuzz.rs"]
mod fuzz;
#[path = "remote/holders.rs"]
mod holders;
#[path = "remote/hostile.rs"]
mod hostile;
#[path = "remote/killing.rs"]
mod killing;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use std::path::Path;
use std::sync::Arc;

use farm::{Farm, lives, peak_bytes, until};
use pty::Term;
use serde_json::Value;
use vramlens::analyze::timeline::Timeline;
use vramlens::history::History;
use vramlens::runtime::options::Options;
use vramlens::runtime::remote::Setup;
use vramlens::runtime::remote::fleet::Fleet;
use vramlens::sample::GapCause;
use vramlens::ui::hosts::HostState;

const GIB: u64 = 1 << 30;

/// One GPU with so much used by nobody.
pub fn used(gib: u64) -> String {
    format!("[[gpu]]\nunaccounted = {}\n", gib * GIB)
}

/// The view of these machines on a terminal.
pub fn show(farm: &Farm, hosts: &[&str], args: &[&str], (rows, columns): (u16, u16)) -> Term {
    let mut words: Vec<&str> = hosts.iter().flat_map(|host| ["--host", host]).collect();
    words.extend(args);
    let environment = farm.environment();
    let environment: Vec<(&str, &Path)> =
        environment.iter().map(|(name, value)| (*name, value.as_path())).collect();
    Term::start(&words, &environment, rows, columns)
}

/// The line of a machine in the overview.
pub fn line<'t>(text: &'t str, host: &str) -> &'t str {
    let named = |line: &&str| line.trim_start_matches(['▸', ' ']).starts_with(host);
    text.lines().skip(1).find(named).unwrap_or_default()
}

#[test]
fn two_machines_are_shown_one_goes_away_and_comes_back() {
    let boxes = [("box1", &*used(35)), ("box2", &*used(70))];
    let Some(mut farm) = Farm::new(&boxes) else { return };
    let mut term = show(&farm, &["box1", "box2"], &["--interval", "200ms"], (24, 100));
    let both =
        |text: &str| line(text, "box1").contains("25%") && line(text, "box2").contains("50%");
    let text = term.wait("the figures of both", both);
    assert!(text.lines().next().unwrap().contains("box1"), "{text}");
    assert!(text.contains("35.0"), "{text}");
    assert!(line(&text, "box1").starts_with('▸'), "{text}");
    term.send("h");
    term.wait("box2 selected", |text| {
        line(text, "box2").starts_with('▸') && text.contains("70.0") && !text.contains("35.0 ")
    });

    farm.stop("box2");
    let text = term.wait("box2 away", |text| line(text, "box2").contains("away"));
    assert!(line(&text, "box1").contains("live"), "{text}");
    assert!(text.contains("70.0"), "what was last seen of it stays: {text}");
    term.wait("why", |text| text.lines().last().unwrap().contains("onnection"));
    // The other one goes on.
    farm.fake("box1").change(&used(105));
    term.wait("box1 goes on", |text| line(text, "box1").contains("75%"));

    farm.start("box2");
    farm.fake("box2").change(&used(7));
    term.send("R");
    term.wait("box2 is back", |text| {
        line(text, "box2").contains("live") && line(text, "box2").contains(" 5%")
    });
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    for name in ["box1", "box2"] {
        let pids = farm.far_pids(name);
        assert!(!pids.is_empty());
        until("no far end is left", || !pids.iter().any(|pid| lives(*pid)));
    }
}

#[test]
fn a_near_end_that_dies_leaves_nobody_behind() {
    let Some(farm) = Farm::new(&[("box1", &used(35))]) else { return };
    let mut term = show(&farm, &["box1", "local"], &["--interval", "200ms"], (24, 80));
    term.wait("its figures", |text| line(text, "box1").contains("live"));
    let started = children(term.pid());
    assert_eq!(started.len(), 2, "ssh, and this machine's own");
    term.signal(nix::sys::signal::Signal::SIGKILL);
    assert_ne!(term.exit_code(), 0);
    let all = [started, farm.far_pids("box1")].concat();
    until("nobody is left", || !all.iter().any(|pid| lives(*pid)));
}

/// The processes that a process has started.
fn children(of: i32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let pids: String = lists.collect();
    pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn one_machine_needs_no_overview_and_is_named_in_the_header() {
    let Some(farm) = Farm::new(&[("box1", &used(35))]) else { return };
    let mut term = show(&farm, &["box1"], &["--interval", "200ms"], (24, 80));
    let text = term.wait("its figures", |text| text.contains("35.0"));
    let header = text.lines().next().unwrap();
    assert!(header.contains("box1") && header.contains("live"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("GPU 0"), "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn what_cannot_be_reached_says_why_and_what_to_do() {
    let Some(farm) = Farm::new(&[("box1", &used(1)), ("box2", &used(1))]) else { return };
    farm.runs("box1", "exec /nonexistent/vramlens");
    farm.runs("box2", "echo '{\"header\":{\"schema\":\"9.0\"}}'; cat > /dev/null");
    let mut term = show(&farm, &["box1", "box2"], &[], (24, 160));
    term.wait("no program", |text| line(text, "box1").contains("install it"));
    term.wait("another schema", |text| line(text, "box2").contains("schema 9.0"));
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn a_driver_that_hangs_or_is_missing_there_is_named() {
    let stalled = "[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\ngpu = 0\n";
    let Some(farm) = Farm::new(&[("box1", "[[gpu]]\n"), ("box2", "[[gpu]]\n")]) else { return };
    farm.records("box2", "export VRAMLENS_NVML_LIB=/nonexistent/libnvidia-ml.so.1");
    let mut term = show(&farm, &["box1", "box2"], &["--interval", "200ms"], (24, 120));
    term.wait("box1 live", |text| line(text, "box1").contains("live"));
    farm.fake("box1").change(stalled);
    term.wait_for("stalled in nvmlDeviceGetMemoryInfo");
    term.wait("stalled in the overview", |text| line(text, "box1").contains("stalled"));
    let text = term.wait("no GPU", |text| line(text, "box2").contains("no GPU"));
    assert!(line(&text, "box2").contains("/nonexistent/libnvidia-ml.so.1"), "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    let pids = farm.far_pids("box1");
    until("a far end ends although its driver hangs", || !pids.iter().any(|pid| lives(*pid)));
}

/// A far end of the first version: it knows no `--answer`, and writes what that version wrote.
/// `ticks` of them, three a second.
pub fn first_version(ticks: u32) -> String {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/v1.vrt");
    let text = zstd::decode_all(&std::fs::read(recorded).unwrap()[..]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let header = text.lines().find(|line| line.starts_with("{\"header\"")).unwrap();
    assert!(header.contains("\"schema\":\"1.0\""), "{header}");
    let tick = |kind: &str| {
        let start = format!("{{\"{kind}\"");
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap();
        let mut tick: Value = serde_json::from_str(line).unwrap();
        tick[kind]["at"] = serde_json::json!({ "boot_ms": "NOW", "wall_ms": 1 });
        tick.to_string().replace("\"NOW\"", "'$now'")
    };
    let (gpus, procs) = (tick("gpus"), tick("procs"));
    format!(
        "case \"$*\" in *--answer*) echo \"error: unexpected argument '--answer' found\" >&2; exit 2;; \
         esac\necho '{header}'\nn=0\nwhile [ $n -lt {ticks} ]; do n=$((n + 1)); \
         read -r up rest < /proc/uptime; now=${{up%.*}}000; \
         echo '{gpus}' || exit; echo '{procs}'; sleep 0.3; done"
    )
}

#[test]
fn an_older_version_is_shown_and_says_that_nothing_can_be_ended_through_it() {
    let Some(farm) = Farm::new(&[("box1", &used(35)), ("box2", &used(1))]) else { return };
    farm.runs("box2", &first_version(10_000));
    let mut term = show(&farm, &["box2", "box1"], &["--interval", "300ms"], (24, 100));
    let text = term.wait("an older version", |text| {
        line(text, "box2").contains("older") && text.contains("GPU 0")
    });
    assert!(text.lines().next().unwrap().contains("older version"), "{text}");
    term.send("jx");
    let text = term.wait_for("older version of vramlens: nothing can be ended");
    assert!(line(&text, "box2").contains("older"), "{text}");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
    let pids = farm.far_pids("box2");
    assert!(pids.len() >= 2, "it was asked with --answer first");
    until("its far end is gone", || !pids.iter().any(|pid| lives(*pid)));
}

/// The exit code of a command, and all that it wrote.
pub fn output(farm: &Farm, args: &[&str]) -> (i32, String) {
    let output = farm.vramlens(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text + &String::from_utf8_lossy(&output.stderr))
}

/// The machines without a view: what is kept of them.
fn kept(farm: &Farm, hosts: &[&str]) -> (Fleet, Options, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let words = |text: String| text.split(' ').map(ToOwned::to_owned).collect();
    let options = Options { interval_ms: 100, ..Options::default() };
    let setup = Setup {
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        ssh: words(format!("ssh -F {}", farm.path("ssh_config").display())),
        command: words(farm.path("far").display().to_string()),
        config: None,
        interval_ms: 100,
    };
    let fleet = Fleet::open(&Arc::new(setup), &options).unwrap();
    (fleet, options, runtime)
}

#[test]
fn the_time_away_is_a_gap_and_what_was_before_is_kept() {
    let Some(mut farm) = Farm::new(&[("box1", &used(35)), ("box2", &used(70))]) else { return };
    let (mut fleet, options, runtime) = kept(&farm, &["box1", "box2"]);
    fleet.selected = usize::MAX;
    let mut none = History::new();
    let mut wait = |what: &str, fleet: &mut Fleet, done: &dyn Fn(&Fleet) -> bool| {
        until(what, || {
            let patience = std::time::Duration::from_millis(100);
            let news =
                runtime.block_on(async { tokio::time::timeout(patience, fleet.next()).await });
            drop(news);
            fleet.take(&mut none, &mut Timeline::new(), &options);
            done(fleet)
        });
    };
    let state = |fleet: &Fleet, n: usize| {
        fleet.machines[n].line(&Options { interval_ms: 100, ..Options::default() }).state
    };
    let gaps = |fleet: &Fleet, n: usize| fleet.machines[n].seen.history.gaps().count();
    wait("both live", &mut fleet, &|fleet| {
        (0..2).all(|n| state(fleet, n) == HostState::Live && fleet.machines[n].looks().0 > 3)
    });
    let oldest = fleet.machines[1].seen.history.oldest().unwrap();
    farm.stop("box2");
    wait("box2 away", &mut fleet, &|fleet| matches!(state(fleet, 1), HostState::Away { .. }));
    let looks = fleet.machines[1].looks().0;
    farm.start("box2");
    wait("box2 live again", &mut fleet, &|fleet| {
        state(fleet, 1) == HostState::Live && fleet.machines[1].looks().0 > looks + 3
    });
    assert_eq!((gaps(&fleet, 0), gaps(&fleet, 1)), (0, 1));
    let history = &fleet.machines[1].seen.history;
    let gap = history.gaps().next().unwrap();
    assert!(gap.cause == GapCause::Away && gap.from.boot_ms < gap.to.boot_ms, "{gap:?}");
    // The wall clock is reckoned from the clock since boot, and may differ by a millisecond.
    let kept = history.oldest().map(|stamp| stamp.boot_ms);
    assert_eq!(kept, Some(oldest.boot_ms), "what was seen before is kept");
    drop(fleet);
    let pids = [farm.far_pids("box1"), farm.far_pids("box2")].concat();
    until("no far end is left", || !pids.iter().any(|pid| lives(*pid)));
}

#[test]
fn fifty_machines_are_no_burden() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ssh");
    // What ssh would pass on, once, and then a silence that ends with the near end.
    let text =
        first_version(1).replace("exit 2;;", "exit 2;; *box49*) echo 'no route' >&2; exit 255;;");
    std::fs::write(&script, format!("#!/bin/sh\n{text}\ncat > /dev/null\n")).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).unwrap();
    let names: Vec<String> = (0..50).map(|n| format!("--host=box{n}")).collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut term = Term::start(&words, &[("VRAMLENS_REMOTE_SSH", &script)], 24, 100);
    term.wait("all others", |text| {
        text.contains("47 more") && text.contains("1 away") && !text.contains("connecting")
    });
    assert!(line(&term.text(), "box0").contains("1 GPU"), "{}", term.text());
    term.send("H");
    let text = term.wait("the last one", |text| line(text, "box49").starts_with('▸'));
    assert!(line(&text, "box49").contains("no route"), "{text}");
    let peak = peak_bytes(term.pid());
    assert!(peak < 150 << 20, "{} MiB", peak >> 20);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", term.pid())).unwrap().count();
    assert!(tasks < 4 * 50, "{tasks} threads");
    term.send("q");
    assert_eq!(term.exit_code(), 0);
}
