//! In pipes: the bytes, the codes and the signals are those of the command.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use super::{output, run, signal, status, text, until};

#[test]
fn exit_codes_are_the_commands() {
    for code in [0, 1, 2, 3, 42, 126, 127, 255] {
        let out = output(&["--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(out.status.code(), Some(code));
    }
}

#[test]
fn a_command_that_cannot_be_started_is_told_as_a_shell_tells_it() {
    let out = output(&["--", "/nonexistent/program", "x"]);
    assert_eq!(out.status.code(), Some(127));
    assert_eq!(
        text(&out.stderr),
        "vramlens: cannot run /nonexistent/program: No such file or directory (os error 2)\n"
    );
    assert_eq!(output(&["--", "no-such-command-anywhere"]).status.code(), Some(127));
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = output(&["--", file.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(126));
    assert_eq!(output(&["--", "/"]).status.code(), Some(126));
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    for (name, code) in [("HUP", 129), ("KILL", 137), ("SEGV", 139), ("TERM", 143)] {
        let out = output(&["--", "sh", "-c", &format!("ulimit -c 0; kill -{name} $$")]);
        assert_eq!(out.status.code(), Some(code), "{name}");
    }
    // A shell's loop ends when its command dies of INT, and not when it exits with 130.
    let out = output(&["--", "sh", "-c", "kill -INT $$"]);
    assert_eq!(out.status.signal(), Some(2));
    let script =
        format!("{} run -q -- sh -c 'kill -INT $$'; echo $?", env!("CARGO_BIN_EXE_vramlens"));
    let out = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(text(&out.stdout), "130\n");
}

#[test]
fn arguments_pass_as_they_are() {
    let out = output(&["--", "printf", "%s|", "--json", "-q", "", "a b", "$HOME", "--", "é"]);
    assert_eq!(text(&out.stdout), "--json|-q||a b|$HOME|--|é|");
    let out = output(&["printf", "%s|", "--quiet", "-x"]);
    assert_eq!(text(&out.stdout), "--quiet|-x|");
}

/// Ten megabytes without a pattern, every byte value among them.
fn bytes() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend(std::iter::repeat_with(&mut next).take(1_250_000).flatten());
    bytes
}

#[test]
fn ten_megabytes_of_any_bytes_pass_unchanged_on_both_streams() {
    let bytes = bytes();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let path = file.path().to_str().unwrap();
    let out = output(&["-q", "--", "cat", path]);
    assert!(out.status.success() && out.stdout == bytes && out.stderr.is_empty());
    let out = output(&["-q", "--", "sh", "-c", "cat \"$0\" >&2", path]);
    assert!(out.status.success() && out.stderr == bytes && out.stdout.is_empty());
}

#[test]
fn input_is_the_commands_own() {
    let bytes = bytes();
    let mut child = run(&["-q", "--", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(out.stdout == bytes);
}

#[test]
fn closed_streams_do_no_harm() {
    let vramlens = env!("CARGO_BIN_EXE_vramlens");
    for streams in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("{vramlens} run -q -- sh -c 'read x; echo $?; exit 9' {streams}");
        let out = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(9), "{streams}");
    }
}

#[test]
fn streams_that_share_a_pipe_stay_in_order() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let script = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let mut child = run(&["-q", "--", "sh", "-c", script])
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut seen = String::new();
    reader.read_to_string(&mut seen).unwrap();
    let lines: Vec<String> = (0..500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(seen, lines.concat());
    assert!(status(&mut child).success());
}

#[test]
fn nothing_is_held_back() {
    let mut child = run(&["-q", "--", "sh", "-c", "printf abc; read x; printf def"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut three = [0; 3];
    let stdout = child.stdout.as_mut().unwrap();
    // It waits for a line that is sent only when these bytes have come.
    stdout.read_exact(&mut three).unwrap();
    assert_eq!(&three, b"abc");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut three).unwrap();
    assert_eq!(&three, b"def");
    assert!(status(&mut child).success());
}

#[test]
fn a_reader_that_goes_away_is_felt_by_the_command() {
    let mut child = run(&["-q", "--", "yes"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    assert_eq!(status(&mut child).code(), Some(128 + 13));
}

#[test]
fn signals_are_passed_on() {
    let script = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s; [ $s = TERM ] && exit 5\" $s; done
                  echo ready; while :; do sleep 0.02; done";
    let mut child = run(&["-q", "--", "bash", "-c", script]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "ready");
    let all = [
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGTERM,
    ];
    for sent in all {
        signal(&child, sent);
        assert_eq!(format!("SIG{}", next()), sent.as_str());
    }
    assert_eq!(status(&mut child).code(), Some(5));
}

#[test]
fn signals_that_were_ignored_stay_ignored_and_no_mask_is_left() {
    let script =
        "trap '' HUP USR1; exec \"$0\" run -q -- grep -E '^Sig(Ign|Blk)' /proc/self/status";
    let direct = "trap '' HUP USR1; exec grep -E '^Sig(Ign|Blk)' /proc/self/status";
    let with = |script: &str| {
        let out = Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_vramlens")])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(with(script), with(direct));
}

#[test]
fn what_is_left_behind_with_the_output_open_does_not_hold_it_up() {
    let mut child = run(&["-q", "--", "sh", "-c", "sleep 1000 & echo $!; exit 4"]).spawn().unwrap();
    assert_eq!(status(&mut child).code(), Some(4));
    let mut left = String::new();
    child.stdout.take().unwrap().read_to_string(&mut left).unwrap();
    let left = nix::unistd::Pid::from_raw(left.trim().parse().unwrap());
    nix::sys::signal::kill(left, Signal::SIGKILL).unwrap();
}

#[test]
fn a_stopped_command_goes_on_when_this_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let script = "while :; do echo x >> \"$0\"; sleep 0.01; done";
    // A group of its own, as a shell with job control gives it: in an orphaned one, such as that of
    // a test run by a daemon, the kernel throws TSTP away.
    let mut child = run(&["-q", "--", "sh", "-c", script, count.to_str().unwrap()])
        .process_group(0)
        .spawn()
        .unwrap();
    let size = || std::fs::metadata(&count).map_or(0, |meta| meta.len());
    until("it runs", || size() > 0);
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.trim().chars().next().unwrap()
    };
    let task = format!("/proc/{0}/task/{0}/children", child.id());
    let inner: u32 = std::fs::read_to_string(task).unwrap().trim().parse().unwrap();
    signal(&child, Signal::SIGTSTP);
    until("it stops", || state(inner) == 'T');
    signal(&child, Signal::SIGCONT);
    until("it goes on", || state(inner) != 'T');
    let before = size();
    until("it works", || size() > before);
    signal(&child, Signal::SIGTERM);
    assert_eq!(status(&mut child).code(), Some(143));
}

#[test]
fn without_a_driver_one_line_says_so() {
    let out = output(&["--", "echo", "hello"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "hello\n"));
    let said = text(&out.stderr);
    assert!(said.starts_with("vramlens: nothing was measured: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output(&["--quiet", "--", "echo"]).stderr.is_empty());
    // A line that the command left open is not written into.
    let out = output(&["--", "sh", "-c", "printf open >&2"]);
    assert!(text(&out.stderr).starts_with("open\nvramlens: "));
}
