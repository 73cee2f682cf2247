//! `vramlens run` over real commands, in pipes and on a real terminal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/fake.rs"]
mod fake;
#[path = "run/gpu.rs"]
mod gpu;
#[path = "run/pipes.rs"]
mod pipes;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "support/pty.rs"]
mod pty;
#[path = "run/report.rs"]
mod report;
#[path = "run/terminal.rs"]
mod terminal;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "record/ticks.rs"]
mod ticks;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "report/views.rs"]
mod views;

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_mins(1);
/// No such library: nothing is measured.
const NO_DRIVER: &str = "/nonexistent/libnvidia-ml.so.1";

/// `vramlens run …` without a driver.
fn run(args: &[&str]) -> Command {
    with_driver(Path::new(NO_DRIVER), args)
}

/// `vramlens run …` over this driver.
fn with_driver(library: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramlens"));
    command.arg("run").args(args).env("VRAMLENS_NVML_LIB", library).env("HOME", "/nonexistent");
    command.env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command to its end.
fn output(args: &[&str]) -> Output {
    run(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Waits for a condition.
fn until(what: &str, mut wished: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !wished() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for an end.
fn status(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}
