//! Real processes: the helper `holder`, started, watched and surely ended.
#![allow(dead_code, reason = "each test crate uses another part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's support fails with the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::{NamedTempFile, TempPath};
use vramlens::host::{DeviceRole, Options, Root, StandIn, identify};
use vramlens::ids::{Pid, ProcId, Stamp};

/// Long enough for any machine; nothing waits for it to pass.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Waits until `condition` holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Now, on both clocks.
pub fn now() -> Stamp {
    let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let boot_ms = boot.tv_sec * 1000 + boot.tv_nsec / 1_000_000;
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Stamp {
        boot_ms: u64::try_from(boot_ms).unwrap(),
        wall_ms: u64::try_from(wall.as_millis()).unwrap(),
    }
}

/// A file that stands in for a device.
pub struct Device(TempPath);

impl Device {
    pub fn new() -> Self {
        // Closed again: the test itself must not be a holder.
        let path = NamedTempFile::new().unwrap().into_temp_path();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&path, everybody).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub fn stand_ins(&self) -> Vec<StandIn> {
        vec![StandIn { path: self.0.to_path_buf(), role: DeviceRole::Uvm }]
    }

    pub fn options(&self) -> Options {
        Options { stand_ins: self.stand_ins(), ..Options::default() }
    }
}

/// Where the helper lies; built where a single test is run without it.
pub fn program() -> PathBuf {
    static BUILT: Once = Once::new();
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples/holder");
    BUILT.call_once(|| {
        if !path.exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let built =
                Command::new(cargo).args(["build", "--example", "holder"]).status().unwrap();
            assert!(built.success());
        }
    });
    path
}

/// A running helper and those it has forked. All are ended with the test.
pub struct Holder {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Everybody who has said something, in order.
    pub pids: Vec<u32>,
}

impl Holder {
    /// Starts one and waits until `count` processes of it have said that they are there.
    pub fn start(words: &[&str], count: usize) -> Self {
        let mut child = Command::new(program())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut holder = Self { child, lines, pids: Vec::new() };
        while holder.pids.len() < count {
            let line = holder.line();
            let (_, pid) = line.split_once(' ').unwrap_or_else(|| panic!("{words:?}: {line}"));
            holder.pids.push(pid.trim().parse().unwrap());
        }
        holder
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Lets one that awaits a line go on.
    pub fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// The first process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One of its children.
    pub fn child(&self) -> u32 {
        let first = self.pid();
        *self.pids.iter().find(|pid| **pid != first).expect("it has a child")
    }

    pub fn id(&self) -> ProcId {
        id(self.pid())
    }

    /// Ends the first process and reaps it.
    pub fn kill_first(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Reaps the first process, which has ended.
    pub fn status(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.pids.iter().filter(|pid| **pid != self.child.id()) {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(*pid).unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Who has this number now.
pub fn id(pid: u32) -> ProcId {
    *identify(&Root::machine(), Pid(pid)).value().unwrap_or_else(|| panic!("{pid} is not there"))
}

/// Its state letter, or `None` where it is gone.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether it lives: is there, and no zombie.
pub fn lives(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}
