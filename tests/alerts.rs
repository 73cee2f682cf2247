//! Alerts: told once, told again only after the cause has clearly gone, and carried out without a
//! shell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "record/ticks.rs"]
mod ticks;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "report/views.rs"]
mod views;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use vramlens::analyze::alerts::{AlertKind, AlertRules, Alerts, Threshold};
use vramlens::analyze::xid::{self, XidSeen};
use vramlens::analyze::{Freshness, Growth, View};
use vramlens::runtime::alerts::{Actions, Notifier};
use vramlens::sample::Reading;
use vramlens::units::{Bytes, BytesPerMinute, Percent};

/// The view of a second with so many per cent of 100 GiB used.
fn used(second: u64, percent: f64) -> View {
    let mut view = views::busy();
    view.at = ticks::stamp(second * 1_000);
    view.holders.clear();
    if let Reading::Value(ledger) = &mut view.gpus[0].ledger {
        ledger.total = Bytes::gib(100);
        ledger.used = Bytes((Bytes::gib(1).0 as f64 * percent) as u64);
    }
    view
}

fn kinds(alerts: &mut Alerts, view: &View) -> Vec<AlertKind> {
    alerts.look(view).into_iter().map(|alert| alert.kind).collect()
}

fn rules() -> AlertRules {
    AlertRules {
        vram_above: Some(Threshold::Percent(Percent(90.0))),
        full_within_ms: Some(600_000),
        zombie: true,
        gpu_lost: true,
        xid: true,
    }
}

#[test]
fn without_rules_nothing_is_told() {
    let mut alerts = Alerts::new(AlertRules::default());
    assert!(alerts.look(&used(0, 100.0)).is_empty());
    assert!(alerts.look(&views::busy()).is_empty());
}

#[test]
fn memory_above_the_bound_is_told_once_and_armed_again_well_below() {
    let mut alerts = Alerts::new(rules());
    let told: Vec<usize> = [89.0, 91.0, 95.0, 89.0, 91.0, 84.0, 91.0, 92.0]
        .into_iter()
        .enumerate()
        .map(|(second, percent)| kinds(&mut alerts, &used(second as u64, percent)).len())
        .collect();
    assert_eq!(told, [0, 1, 0, 0, 0, 0, 1, 0]);
    let mut alerts =
        Alerts::new(AlertRules { vram_above: Some(Threshold::Bytes(Bytes::gib(90))), ..rules() });
    let alert = alerts.look(&used(0, 91.0)).remove(0);
    assert_eq!(alert.text, "GPU 0: 91.0 GiB of 100.0 GiB used (91%)");
    assert_eq!(alert.kind.key(), "vram_above");
}

#[test]
fn a_gpu_that_fills_is_told_once_while_it_does() {
    let mut alerts = Alerts::new(rules());
    let mut at = |second: u64, minutes: Option<u64>| {
        let mut view = used(second, 50.0);
        view.gpus[0].growth = minutes.map_or(Growth::Steady, |minutes| Growth::Trend {
            per_minute: BytesPerMinute(1e9),
            error: BytesPerMinute(1e7),
            full_in_ms: Some([minutes * 50_000, minutes * 60_000, minutes * 70_000]),
        });
        kinds(&mut alerts, &view).len()
    };
    assert_eq!(at(0, Some(30)), 0);
    assert_eq!(at(1, Some(9)), 1);
    assert_eq!(at(2, Some(15)), 0);
    assert_eq!(at(3, None), 0);
    // It flickers: still the same one.
    assert_eq!(at(10, Some(8)), 0);
    assert_eq!(at(11, None), 0);
    assert_eq!(at(60, None), 0);
    assert_eq!(at(61, Some(8)), 1);
}

#[test]
fn each_zombie_is_told_once() {
    let mut alerts = Alerts::new(rules());
    let at = |second: u64, pids: &[u32]| {
        let mut view = used(second, 10.0);
        let sample = view.gpus[0].sample.clone();
        for pid in pids {
            let bytes = Reading::Value(Bytes::gib(3));
            let mut holder = views::holder(&sample, *pid, bytes, &["python", "a\u{1b}[2J.py"]);
            holder.verdict.zombie = true;
            view.holders.push(holder);
        }
        view
    };
    let told = alerts.look(&at(0, &[7]));
    assert_eq!((told.len(), told[0].pid.map(|pid| pid.0)), (1, Some(7)));
    assert!(
        told[0].text.starts_with("GPU 0: zombie 7 holds 3.0 GiB: python a"),
        "{}",
        told[0].text
    );
    assert_eq!(kinds(&mut alerts, &at(1, &[7])).len(), 0);
    assert_eq!(kinds(&mut alerts, &at(2, &[7, 8])), [AlertKind::Zombie]);
    // A look without it is no end of it.
    assert_eq!(kinds(&mut alerts, &at(3, &[])).len(), 0);
    assert_eq!(kinds(&mut alerts, &at(4, &[7, 8])).len(), 0);
    assert_eq!(kinds(&mut alerts, &at(60, &[])).len(), 0);
    assert_eq!(kinds(&mut alerts, &at(61, &[7])).len(), 1);
}

#[test]
fn a_lost_gpu_is_told_once_whether_it_says_so_or_is_not_there() {
    let mut alerts = Alerts::new(rules());
    assert!(alerts.look(&used(0, 10.0)).is_empty());
    let mut lost = used(1, 10.0);
    lost.gpus[0].freshness = Freshness::Lost;
    assert_eq!(kinds(&mut alerts, &lost), [AlertKind::GpuLost]);
    lost.at = ticks::stamp(2_000);
    assert!(alerts.look(&lost).is_empty());
    let mut gone = used(3, 10.0);
    gone.gpus.clear();
    assert!(alerts.look(&gone).is_empty());
    assert!(alerts.look(&used(40, 10.0)).is_empty());
    let mut gone = used(80, 10.0);
    gone.gpus.clear();
    assert_eq!(kinds(&mut alerts, &gone), [AlertKind::GpuLost]);
}

#[test]
fn only_what_is_live_counts() {
    let mut alerts = Alerts::new(rules());
    for freshness in [
        Freshness::Replay,
        Freshness::Past,
        Freshness::Starting,
        Freshness::Stalled { call: None, gpu: None, for_ms: 9_000 },
    ] {
        let mut view = used(0, 99.0);
        view.freshness = freshness;
        assert!(alerts.look(&view).is_empty());
    }
    assert_eq!(alerts.look(&used(1, 99.0)).len(), 1);
    // A driver that did not answer for a while does not make old news new.
    assert!(alerts.look(&used(500, 99.0)).is_empty());
}

proptest! {
    #[test]
    fn one_is_never_told_twice_without_a_clear_fall_between(
        shares in proptest::collection::vec(0.0..100.0_f64, 1..60),
    ) {
        let mut alerts = Alerts::new(rules());
        let mut armed = true;
        for (second, share) in shares.into_iter().enumerate() {
            let told = !alerts.look(&used(second as u64, share)).is_empty();
            let view = used(second as u64, share);
            let ledger = view.gpus[0].ledger.get().unwrap();
            let exact = ledger.used.percent_of(ledger.total).unwrap().0;
            prop_assert_eq!(told, armed && exact > 90.0);
            armed = if exact > 90.0 { false } else { armed || exact <= 85.0 };
        }
    }
}

fn until(mut wished: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !wished() {
        assert!(Instant::now() < end, "not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn script(folder: &Path, text: &str) -> String {
    let path = folder.join("told");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_command_gets_the_text_as_one_argument_and_nothing_is_expanded() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let told = script(
        folder.path(),
        "printf '%s|' \"$@\" > \"$1.new\"; env | grep ^VRAMLENS_ALERT | sort >> \"$1.new\"; mv \"$1.new\" \"$1\"",
    );
    let command = vec![told, out.to_str().unwrap().to_owned(), "$HOME; x".to_owned()];
    let log = folder.path().join("log");
    let log_to = Some(log.clone());
    let actions = Actions { command, log: log_to, bell: true, osc9: true, ..Actions::default() };
    let mut notifier = Notifier::spawn(rules(), actions).unwrap();
    let bytes = notifier.look(&used(0, 95.0));
    assert_eq!(bytes, b"\x1b]9;vramlens: GPU 0: 95.0 GiB of 100.0 GiB used (95%)\x1b\\\x07");
    until(|| out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    let line = "vramlens: GPU 0: 95.0 GiB of 100.0 GiB used (95%)";
    let (arguments, environment) = text.rsplit_once('|').unwrap();
    assert_eq!(arguments, format!("{}|$HOME; x|{line}", out.display()));
    let names: Vec<&str> = environment.lines().filter_map(|l| l.split('=').next()).collect();
    assert_eq!(
        names,
        [
            "VRAMLENS_ALERT",
            "VRAMLENS_ALERT_GPU",
            "VRAMLENS_ALERT_GPU_UUID",
            "VRAMLENS_ALERT_PID",
            "VRAMLENS_ALERT_TEXT"
        ]
    );
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.ends_with("Z vram_above GPU 0: 95.0 GiB of 100.0 GiB used (95%)\n"), "{logged}");
}

#[test]
fn hostile_text_reaches_no_terminal_and_no_log_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let actions = Actions { log: Some(log.clone()), osc9: true, ..Actions::default() };
    let mut notifier = Notifier::spawn(rules(), actions).unwrap();
    let mut view = used(0, 10.0);
    let sample = view.gpus[0].sample.clone();
    let bytes = Reading::Value(Bytes::gib(3));
    let mut holder = views::holder(
        &sample,
        7,
        bytes,
        &["x\u{1b}]0;owned\u{7}\n2026 fake\u{9c}\u{9b}31m\u{202e}\u{2028}"],
    );
    holder.verdict.zombie = true;
    view.holders.push(holder);
    let bytes = notifier.look(&view);
    let inside = &bytes[4..bytes.len() - 2];
    let inside = std::str::from_utf8(inside).unwrap();
    // C1 ends such a request as well, and the direction of text hides what is said.
    let bad = |c: char| c.is_control() || "\u{202e}\u{2028}".contains(c);
    assert!(!inside.chars().any(bad), "{inside:?}");
    assert!(inside.contains("x␛]0;owned␇␊2026 fake"), "{inside}");
    until(|| std::fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n')));
    let logged = std::fs::read_to_string(&log).unwrap();
    assert_eq!(logged.lines().count(), 1, "{logged}");
    assert!(!logged.trim_end().chars().any(bad), "{logged:?}");
}

#[test]
fn a_command_is_told_of_hostile_text_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let told = script(
        folder.path(),
        "printf '%s|%s' \"$2\" \"$VRAMLENS_ALERT_TEXT\" > \"$1.new\"; mv \"$1.new\" \"$1\"",
    );
    let command = vec![told, out.to_str().unwrap().to_owned()];
    let actions = Actions { command, bell: true, osc777: true, ..Actions::default() };
    let mut notifier = Notifier::spawn(rules(), actions).unwrap();
    let mut view = used(0, 10.0);
    let sample = view.gpus[0].sample.clone();
    let name = "a;b\u{1b}\\\u{9c}\n\u{202e}";
    let mut holder = views::holder(&sample, 7, Reading::Value(Bytes::gib(3)), &[name]);
    holder.verdict.zombie = true;
    view.holders.push(holder);
    let bytes = String::from_utf8(notifier.look(&view)).unwrap();
    let inside = bytes.strip_prefix("\x1b]777;notify;vramlens;").unwrap();
    let inside = inside.strip_suffix("\x1b\\\u{7}").unwrap();
    assert!(inside.ends_with("a,b␛\\\u{fffd}␊\u{fffd}"), "{inside:?}");
    until(|| out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.ends_with("a;b␛\\\u{fffd}␊\u{fffd}"), "{text:?}");
    assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
}

#[test]
fn a_command_that_hangs_holds_nothing_up_and_the_surplus_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let told = script(folder.path(), "exec sleep 1000");
    let actions = Actions { command: vec![told], ..Actions::default() };
    let mut notifier = Notifier::spawn(rules(), actions).unwrap();
    for round in 0..40 {
        assert_eq!(notifier.look(&used(2 * round, 95.0)), b"");
        notifier.look(&used(2 * round + 1, 10.0));
    }
    // One runs, sixteen wait.
    assert!((22..=24).contains(&notifier.dropped()), "{}", notifier.dropped());
}

#[test]
fn the_settings_say_what_to_tell() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let show = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vramlens"));
        let out = command.arg("--config").arg(&file).arg("config").output().unwrap();
        (
            out.status.code(),
            String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap(),
        )
    };
    let good = "[alert]\nvram_above = \"95%\"\nfull_within = \"10m\"\nzombie = true\n\
                command = [\"notify-send\", \"a \\\"b\"]\n";
    let (code, text) = show(good);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("95%") && text.contains("notify-send"), "{text}");
    for (bad, said) in [
        ("vram_above = \"0%\"", "off, a share such as 95% or a size such as 20GiB"),
        ("vram_above = \"120%\"", "off, a share"),
        ("full_within = \"soon\"", "off, or a time such as 10m or 2h"),
        ("command = [1, 2]", "a list of words"),
    ] {
        let (code, text) = show(&format!("[alert]\n{bad}\n"));
        assert_eq!(code, Some(2), "{bad}: {text}");
        assert!(text.contains(said), "{bad}: {text}");
    }
}

/// The first second view with a fault of this number, so many seconds ago.
fn faulty(second: u64, faults: &[(u64, u64)]) -> View {
    let mut view = used(second, 10.0);
    let seen = faults.iter().map(|(code, seconds)| XidSeen {
        at: view.at,
        age_ms: seconds * 1_000,
        xid: xid::meaning(*code),
        instance: (None, None),
    });
    view.gpus[0].xids.recent = seen.collect();
    view
}

#[test]
fn a_fault_is_told_once_by_its_number() {
    let mut alerts = Alerts::new(rules());
    let told = |alerts: &mut Alerts, view: &View| {
        let all = alerts.look(view).into_iter();
        all.map(|alert| (alert.kind.key(), alert.text)).collect::<Vec<_>>()
    };
    let first = told(&mut alerts, &faulty(0, &[(31, 0)]));
    let text = "GPU 0: XID 31: a program touched memory that is not its own".to_owned();
    assert_eq!(first, [("xid", text)]);
    // One bug gives many; another number is another fault.
    assert!(told(&mut alerts, &faulty(1, &[(31, 0), (31, 1)])).is_empty());
    assert_eq!(kinds(&mut alerts, &faulty(2, &[(79, 0), (31, 1)])), [AlertKind::Xid(79)]);
    // What was there before anybody listened is no news.
    assert!(told(&mut Alerts::new(rules()), &faulty(0, &[(48, 60)])).is_empty());
    let off = AlertRules { xid: false, ..rules() };
    assert!(told(&mut Alerts::new(off), &faulty(0, &[(48, 0)])).is_empty());
    // A while after the last one it is news again.
    assert!(told(&mut alerts, &used(60, 10.0)).is_empty());
    assert_eq!(kinds(&mut alerts, &faulty(61, &[(31, 0)])), [AlertKind::Xid(31)]);
}
