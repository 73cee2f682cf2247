//! The library that counts what a program allocates, on programs whose allocations are known.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "bench/monitor/allocations.rs"]
mod allocations;
#[path = "support/fake.rs"]
mod fake;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use allocations::{Counter, Counts};
use tempfile::TempDir;

/// The program, built with these options.
fn built(dir: &TempDir, options: &[&str]) -> PathBuf {
    let rustc = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let program = dir.path().join("probe");
    let status = Command::new(rustc.unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "-O", "-o"])
        .arg(&program)
        .args(options)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/count_alloc/probe.rs"))
        .status();
    assert!(status.unwrap().success());
    program
}

struct Probe {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    counter: Counter,
}

impl Probe {
    fn start(program: &Path, before: &[&str]) -> Self {
        let counter = Counter::new();
        let mut line = before.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
        let mut command = Command::new(line.next().unwrap());
        command.args(line).envs(counter.environment());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut probe = Self { child, to, from: BufReader::new(from), counter };
        // Its buffers for what it reads and writes.
        probe.does("nothing");
        probe
    }

    fn does(&mut self, what: &str) {
        writeln!(self.to, "{what}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }

    fn so_far(&self) -> Result<Counts, String> {
        self.counter.so_far(self.child.id())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_allocation_is_counted_once_and_what_is_freed_is_gone() {
    let dir = TempDir::new().unwrap();
    let program = built(&dir, &[]);
    // A program that another one makes way for is counted as one.
    for before in [&[][..], &["env"]] {
        let mut probe = Probe::start(&program, before);
        let start = probe.so_far().unwrap();
        probe.does("nothing");
        assert_eq!(probe.so_far().unwrap(), start);
        probe.does("allocate");
        let full = probe.so_far().unwrap();
        let counts = full.since(start).unwrap();
        assert_eq!(counts.calls, 1000 + 10 + 5 + 3);
        // A block of 100 bytes has room for 104.
        let bytes = 1000 * 100 + 10 * (5000 - 104) + 5 * 4096 + 3 * 640;
        assert_eq!(counts.bytes, bytes);
        let live = full.live_bytes.unwrap() - start.live_bytes.unwrap();
        assert!(live >= bytes && live < bytes + 10_000, "{live} of {bytes}");
        probe.does("free");
        let end = probe.so_far().unwrap();
        assert_eq!((end.calls, end.bytes), (full.calls, full.bytes));
        assert_eq!(end.live_bytes, start.live_bytes);
    }
}

#[test]
fn what_cannot_be_counted_is_not_0() {
    let dir = TempDir::new().unwrap();
    let program = built(&dir, &["-C", "target-feature=+crt-static"]);
    let why = Probe::start(&program, &[]).so_far().unwrap_err();
    assert!(why.contains("is it static?"), "{why}");
    let program = built(&dir, &["--cfg", "named"]);
    let why = Probe::start(&program, &[]).so_far().unwrap_err();
    assert_eq!(why, "probe has an allocator of its own");
    let program = built(&dir, &["--cfg", "own"]);
    let mut probe = Probe::start(&program, &[]);
    let start = probe.so_far().unwrap();
    probe.does("allocate");
    let why = probe.so_far().unwrap().since(start).unwrap_err();
    assert_eq!(why, "nothing is allocated by the C library");
}
