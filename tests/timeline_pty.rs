//! A recording on a real terminal: jumps by keys, going to a time, speeds, steps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
mod verdict_support;

use std::path::{Path, PathBuf};

use pty::Term;
use verdict_support::*;
use vramlens::record::{Form, Header, Redaction, Writer};
use vramlens::sample::{Gap, GapCause, Reading, Tick, redact};

/// Ten minutes from 23:13:20 on: a server, a run that comes after one minute and goes after four,
/// and a gap from the fifth to the seventh.
fn recording(folder: &Path) -> PathBuf {
    let path = folder.join("story.vrt");
    let header = Header::new(stamp(T0), 1_000);
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = Writer::new(file, Form::Frames, header, Redaction::secrets(redact)).unwrap();
    let named = |pid, name: &str| {
        let mut process = cuda(process(pid, "python"), &[0]);
        process.cmdline = Reading::Value(vec!["python".to_owned(), name.to_owned()]);
        process
    };
    for second in (0..300).chain(420..600) {
        let now = T0 + second * 1_000;
        if second == 420 {
            let (from, to) = (stamp(T0 + 299_000), stamp(now));
            writer.push(&Tick::Gap(Gap { from, to, cause: GapCause::Suspended })).unwrap();
        }
        let mut rows = vec![row(10, 20 * GIB)];
        if (60..240).contains(&second) {
            rows.push(row(11, 30 * GIB));
        }
        writer.push(&gpu_tick(now, vec![with_rows(gpu(0), rows)])).unwrap();
        let procs = vec![named(10, "server.py"), named(11, "train.py")];
        writer.push(&proc_tick(now + 20, host(), procs)).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn replay(folder: &Path, arguments: &[&str]) -> Term {
    let path = recording(folder);
    let arguments = [&["replay", path.to_str().unwrap()], arguments].concat();
    let term = Term::start(&arguments, &[], 24, 100);
    // The ends are known once it was read ahead.
    term.wait_for("% of 9m59s");
    term
}

#[test]
fn jumps_lead_from_marker_to_marker_and_say_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut term = replay(folder.path(), &[]);
    // What is still to come is known: it was read ahead.
    term.wait("all marks", |text| text.contains('↓') && text.contains('╌'));
    term.send("n");
    term.wait_for("train.py 11 came, up to 30.0 GiB, 23:14:20");
    term.wait_for("replay 23:14:20 · 10 % of 9m59s");
    term.send("]");
    term.wait_for("train.py 11 went, held 30.0 GiB, 23:17:20");
    term.wait_for("replay 23:17:20");
    term.send("n");
    term.wait_for("nothing is known for 2 min: the machine slept");
    term.send("n");
    term.wait_for("nothing is marked after this");
    // And back: what was played is still there.
    term.send("N");
    term.wait_for("train.py 11 went");
    term.send("[");
    term.wait_for("train.py 11 came");
    term.wait_for("replay 23:14:20");
    term.send("[");
    term.wait_for("nothing is marked before this");
}

#[test]
fn a_time_can_be_gone_to_and_what_is_no_time_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut term = replay(folder.path(), &[]);
    term.send("@23:22\r");
    term.wait_for("replay 23:22:00 · 86 %");
    term.send("@-2m\r");
    term.wait_for("replay 23:20:00 · 66 %");
    term.wait_for("Nothing is known of this moment.");
    term.send("@23:14:40\r");
    let text = term.wait_for("replay 23:14:40");
    assert!(text.contains("train.py"), "the rows are of that moment: {text}");
    term.send("@noon\r");
    term.wait_for("\"noon\" is no time: write 03:58, 03:58:11, 2026-11-30 03:58, -10m, +5m");
    term.send("@04:00\r");
    term.wait_for("04:00 is not in what is kept: 2023-11-14 23:13:20 to 2023-11-14 23:23:19");
}

#[test]
fn it_plays_faster_holds_and_steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut term = replay(folder.path(), &["--speed", "2"]);
    term.wait_for("2×");
    term.send("p");
    term.wait_for("‖ replay");
    term.send("@23:14:00\r");
    term.wait_for("‖ replay 23:14:00");
    term.send(".");
    term.wait_for("‖ replay 23:14:01");
    term.send(",,");
    term.wait_for("‖ replay 23:13:59");
    term.send("+");
    term.wait_for("8×");
    term.send("++");
    term.wait_for("60×");
    term.send("p");
    term.wait("it plays", |text| text.contains("▶ replay"));
    // A minute a second: it soon comes to its end.
    term.wait_for("the recording ends here");
    term.send("-");
    term.wait_for("8×");
}

/// What stands between the first line and the line of time.
fn body(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1).take_while(|line| !line.contains("replay "));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The moment of the third mark, once it is drawn.
fn at_third(term: &Term) -> String {
    term.wait("the third mark", |text| {
        text.contains("replay 07:44:30") && text.contains("-1.4 GiB in a minute")
    })
}

#[test]
fn a_step_back_keeps_the_verdicts_and_every_way_leads_to_one_screen() {
    let mut term = Term::start(&["--demo"], &[], 50, 160);
    term.wait_for("% of 3m05s");
    term.send("p");
    term.wait_for("‖ replay");
    let third = |term: &mut Term| {
        for words in ["came", "peak", "evaluate.py 696 went"] {
            term.send("n");
            term.wait_for(words);
        }
        at_third(term)
    };
    let played = body(&third(&mut term));
    term.send(",");
    let back = term.wait("a second before", |text| {
        text.contains("replay 07:44:29") && text.contains("+13.7 GiB in a minute")
    });
    for words in ["ghost", "zombie", "active", "2 zombies hold 18.9 GiB"] {
        assert!(back.contains(words), "{words}: {back}");
    }
    term.send("\x1b[H");
    term.wait_for("replay 07:42:47");
    assert_eq!(body(&third(&mut term)), played);
    // And from behind it.
    term.send("...");
    term.wait_for("replay 07:44:33");
    term.send("N");
    assert_eq!(body(&at_third(&term)), played);
}

#[test]
fn what_is_no_recording_opens_no_screen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "nonsense\n").unwrap();
    let missing = folder.path().join("missing.vrt");
    for (path, says) in [
        (missing.as_path(), "missing.vrt: No such file"),
        (file.as_path(), "notes.txt: not a recording"),
        (folder.path(), "is no file: vramlens replay - reads from a pipe"),
    ] {
        let mut term = Term::start(&["replay", path.to_str().unwrap()], &[], 24, 100);
        let one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        term.wait(says, |text| one(text).contains(says));
        assert_eq!(term.exit_code(), 2, "{says}");
        assert!(!term.on_alternate_screen());
    }
}
