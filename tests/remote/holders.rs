//! Processes that hold the stand-in devices.

// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

const GIB: u64 = 1 << 30;
const NAMES: [(&str, &str); 3] = [("uvm", "uvm"), ("control", "control"), ("gpu", "0")];

/// Files that stand for the devices of a GPU.
pub struct Devices(TempDir);

impl Devices {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for (name, _) in NAMES {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        Self(folder)
    }

    /// The value of `VRAMLENS_TEST_DEVICES`.
    pub fn variable(&self) -> String {
        let one =
            |(name, role): &(&str, &str)| format!("{}={role}", self.0.path().join(name).display());
        NAMES.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

/// A process that has the devices open.
pub struct Holder {
    child: Child,
    said: BufReader<ChildStdout>,
    others: Vec<u32>,
}

impl Holder {
    /// Starts one that leads a session of its own.
    pub fn start(devices: &Devices, words: &[&str]) -> Self {
        let mut command = Command::new(program());
        for (name, _) in NAMES {
            command.arg("open").arg(devices.0.path().join(name));
        }
        let mut child = command.args(words).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said, others: Vec::new() }
    }

    /// The pid in the next line that begins with `word`.
    pub fn pid_after(&mut self, word: &str) -> u32 {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it said nothing of {word}");
            if let Some(pid) = line.strip_prefix(word) {
                return pid.trim().parse().unwrap();
            }
        }
    }

    /// A parent that the driver lists although it is dead, and the child that keeps its memory.
    pub fn ghost(devices: &Devices) -> (Self, u32, u32) {
        let mut parent = Self::start(devices, &["setsid", "fork"]);
        let dead = parent.pid_after("parent ");
        let survivor = parent.pid_after("ready ");
        parent.others.push(survivor);
        parent.child.kill().unwrap();
        parent.child.wait().unwrap();
        (parent, dead, survivor)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in &self.others {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(*pid).unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples/holder");
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--example", "holder"]).status();
        assert!(built.unwrap().success());
    }
    path
}

/// A driver that lists a dead process whose memory `survivor` keeps.
pub fn with_ghost(dead: u32, survivor: u32) -> String {
    format!(
        "follow_pids = true\n[[gpu]]\n[[gpu.process]]\npid = {dead}\nbytes = {}\nsticky = true\n\
         survivors = [{survivor}]\n",
        5 * GIB
    )
}

/// A driver that lists a living process.
pub fn with_process(pid: u32) -> String {
    let bytes = 2 * GIB;
    format!("follow_pids = true\n[[gpu]]\n[[gpu.process]]\npid = {pid}\nbytes = {bytes}\n")
}

/// When a process started, in clock ticks since boot.
pub fn start_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}
