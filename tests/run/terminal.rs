//! On a terminal: a terminal stays one, keys and job control are the command's.

use std::path::Path;

use nix::sys::signal::Signal;
use portable_pty::CommandBuilder;

use super::{NO_DRIVER, until};
use crate::pty::Term;

fn start(args: &[&str]) -> Term {
    let mut all = vec!["run", "-q", "--"];
    all.extend(args);
    Term::start(&all, &[("VRAMLENS_NVML_LIB", Path::new(NO_DRIVER))], 24, 80)
}

/// A shell with job control, without anybody's settings.
fn shell() -> Term {
    let mut command = CommandBuilder::new("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.env("PS1", "ready$ ");
    command.env("TERM", "xterm-256color");
    command.env("VRAMLENS_NVML_LIB", NO_DRIVER);
    command.env("V", env!("CARGO_BIN_EXE_vramlens"));
    command.env("HOME", "/nonexistent");
    command.env_remove("XDG_CONFIG_HOME");
    command.cwd(env!("CARGO_TARGET_TMPDIR"));
    let term = Term::spawn(command, 24, 80);
    term.wait_for("ready$ ");
    term
}

/// Types a command at the prompt, on a fresh screen.
fn at_prompt(term: &mut Term, command: &str) {
    prompt(term);
    term.send("clear\r");
    term.wait("a fresh screen", |text| text.trim().lines().count() == 1 && is_prompt(text));
    term.send(command);
    term.send("\r");
}

fn prompt(term: &Term) {
    term.wait("the prompt", is_prompt);
}

/// The echo of a key that stopped a job can come late, and stands behind it then.
fn is_prompt(text: &str) -> bool {
    let last = text.trim_end().lines().next_back();
    last.is_some_and(|line| matches!(line.trim_end(), "ready$" | "ready$ ^Z"))
}

#[test]
fn all_streams_are_terminals_of_the_same_size() {
    let script = "test -t 0 && test -t 1 && test -t 2 && test -e /dev/tty && echo yes; stty size";
    let mut term = start(&["sh", "-c", script]);
    term.wait_for("yes\n24 80");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn another_size_arrives() {
    let script = "trap 'stty size; exit 6' WINCH; stty size; while :; do sleep 0.02; done";
    let mut term = start(&["bash", "-c", script]);
    term.wait_for("24 80");
    term.resize(31, 117);
    term.wait_for("31 117");
    assert_eq!(term.exit_code(), 6);
}

#[test]
fn keys_arrive_and_control_c_interrupts() {
    let script = "trap 'echo got; exit 5' INT; read x; echo \"<$x>\"; while :; do sleep 0.02; done";
    let mut term = start(&["bash", "-c", script]);
    until("raw", || !term.is_cooked());
    term.send("hello\r");
    term.wait_for("<hello>");
    term.send("\x03");
    term.wait_for("got");
    assert_eq!(term.exit_code(), 5);
    assert!(term.is_cooked());
}

#[test]
fn the_end_of_input_arrives() {
    let mut term = start(&["sh", "-c", "echo go; cat; echo over"]);
    term.wait_for("go");
    term.send("line\r");
    term.wait_for("line\nline");
    term.send("\x04");
    term.wait_for("over");
    assert_eq!(term.exit_code(), 0);
}

#[test]
fn signals_to_this_process_reach_the_command() {
    let script = "trap 'echo usr; ' USR1; trap 'echo term; exit 8' TERM; echo on; while :; do sleep 0.02; done";
    let mut term = start(&["bash", "-c", script]);
    term.wait_for("on");
    term.signal(Signal::SIGUSR1);
    term.wait_for("usr");
    term.signal(Signal::SIGTERM);
    term.wait_for("term");
    assert_eq!(term.exit_code(), 8);
    assert!(term.is_cooked());
}

#[test]
fn a_command_that_cannot_be_started_leaves_the_terminal_as_it_was() {
    let mut term = start(&["/nonexistent/program"]);
    term.wait_for("No such file");
    assert_eq!(term.exit_code(), 127);
    assert!(term.is_cooked());
}

#[test]
fn job_control_is_the_shells() {
    let mut term = shell();
    at_prompt(&mut term, "$V run -q -- bash -c 'echo begun; while read x; do echo \"<$x>\"; done'");
    term.wait_for("\nbegun");
    term.send("one\r");
    term.wait_for("<one>");
    term.send("\x1a");
    term.wait_for("Stopped");
    // The shell reads again, as ever.
    at_prompt(&mut term, "echo $((40+2))");
    term.wait_for("\n42");
    at_prompt(&mut term, "fg");
    term.wait_for("bash -c");
    term.send("two\r");
    term.wait_for("<two>");
    term.send("\x03");
    prompt(&term);
}

#[test]
fn in_the_background_it_works_until_it_wants_keys() {
    let mut term = shell();
    at_prompt(&mut term, "$V run -q -- bash -c 'echo begun; while :; do sleep 0.05; done'");
    term.wait_for("\nbegun");
    term.send("\x1a");
    term.wait_for("Stopped");
    at_prompt(&mut term, "bg");
    at_prompt(&mut term, "jobs -r");
    term.wait_for("Running");
    at_prompt(&mut term, "kill %1; wait %1; echo code=$?");
    term.wait_for("\ncode=143");
    at_prompt(&mut term, "$V run -q -- bash -c 'echo asks; sleep 0.5; read x; echo \"<$x>\"'");
    term.wait_for("\nasks");
    term.send("\x1a");
    term.wait_for("Stopped");
    at_prompt(&mut term, "bg");
    // It reads, and stops for it.
    at_prompt(&mut term, "until jobs -s | grep -q Stop; do sleep 0.05; done; echo stopped again");
    term.wait_for("\nstopped again");
    at_prompt(&mut term, "fg");
    term.wait_for("bash -c");
    term.send("late\r");
    term.wait_for("<late>");
}

#[test]
fn output_alone_on_a_terminal_keeps_it_one() {
    let mut term = shell();
    let ask = "test -t 1 && test ! -t 0 && stty size < /dev/tty";
    at_prompt(&mut term, &format!("$V run -q -- sh -c '{ask}' < /dev/null"));
    term.wait_for("\n24 80");
    at_prompt(&mut term, "echo x | $V run -q -- sh -c 'cat; test -t 2 && echo err >&2' | tr x y");
    term.wait("both", |text| text.contains("\nerr") && text.contains("\ny"));
    at_prompt(&mut term, "$V run -q -- sh -c 'echo on; exec sleep 1000' < /dev/null");
    term.wait_for("\non");
    term.send("\x03");
    at_prompt(&mut term, "$V run -q -- sh -c 'echo on; exec sleep 1000' < /dev/null");
    term.wait_for("\non");
    term.send("\x1a");
    term.wait_for("Stopped");
    at_prompt(&mut term, "fg");
    term.wait_for("sh -c");
    term.send("\x03");
    prompt(&term);
}

#[test]
fn an_interrupt_ends_a_shells_loop() {
    let mut term = shell();
    let turn = "$V run -q -- sh -c 'echo turn; exec sleep 1000' < /dev/null";
    at_prompt(&mut term, &format!("for i in 1 2 3; do {turn}; done; echo over"));
    term.wait_for("\nturn");
    term.send("\x03");
    prompt(&term);
    assert_eq!(term.text().matches("\nturn").count(), 1, "{}", term.text());
}

#[test]
fn the_code_of_an_interrupted_command_is_130() {
    let mut term = shell();
    for streams in ["", "< /dev/null"] {
        let command = "$V run -q -- sh -c 'echo on; exec sleep 1000'";
        at_prompt(&mut term, &format!("{command} {streams}"));
        term.wait_for("\non");
        term.send("\x03");
        prompt(&term);
        term.send("echo code=$?\r");
        term.wait_for("\ncode=130");
    }
}

#[test]
fn a_terminal_that_hangs_up_takes_the_command_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = "echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 1000";
    let mut term = start(&["sh", "-c", script, file.to_str().unwrap()]);
    until("it runs", || file.exists());
    let pid = std::fs::read_to_string(&file).unwrap();
    term.hang_up();
    until("it ends", || !Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_killed_watcher_takes_the_command_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = "echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 1000";
    let term = start(&["sh", "-c", script, file.to_str().unwrap()]);
    until("it runs", || file.exists());
    let pid = std::fs::read_to_string(&file).unwrap();
    term.signal(Signal::SIGKILL);
    until("it ends", || !Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_full_screen_program_has_the_terminal_to_itself() {
    let script = "import sys, termios, tty\ntty.setraw(0)\nsys.stdout.write('raw\\r\\n')\nsys.stdout.flush()\n\
                  k = sys.stdin.buffer.raw.read(1)\nsys.stdout.write('key %d\\r\\n' % k[0])\n";
    let mut term = start(&["python3", "-c", script]);
    term.wait_for("raw");
    term.send("\x03");
    term.wait_for("key 3");
    assert_eq!(term.exit_code(), 0);
}
