//! A tree of files that looks like `/proc` to a probe, and real processes for it to look at.
#![allow(dead_code, reason = "each test crate uses another part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's support fails with the test")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vramlens::host::{DeviceRole, Options, Probe, StandIn};
use vramlens::ids::{Pid, Stamp};
use vramlens::sample::{ProcSample, ProcTick};

/// A moment, in milliseconds since boot.
pub const fn at(boot_ms: u64) -> Stamp {
    Stamp { boot_ms, wall_ms: 1_700_000_000_000 + boot_ms }
}

/// The process with this pid.
pub fn of(tick: &ProcTick, pid: u32) -> Option<&ProcSample> {
    tick.procs.iter().find(|sample| sample.id.pid == Pid(pid)).map(|sample| &**sample)
}

/// Pids of a tick.
pub fn pids(tick: &ProcTick) -> Vec<u32> {
    tick.procs.iter().map(|sample| sample.id.pid.0).collect()
}

/// The tree.
pub struct Tree {
    dir: TempDir,
}

impl Tree {
    pub fn new() -> Self {
        // Thousands of small files: in memory where that is to be had.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let tree = Self { dir };
        tree.write("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-uvm\n");
        tree.write("proc/sys/kernel/hostname", "box\n");
        tree.write(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n",
        );
        for (name, _) in DEVICES {
            tree.write(&format!("dev/{name}"), "");
        }
        tree.write("dev/null", "");
        tree
    }

    pub fn path(&self, rest: &str) -> PathBuf {
        self.dir.path().join(rest)
    }

    pub fn write(&self, rest: &str, text: impl AsRef<[u8]>) {
        let path = self.path(rest);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn link(&self, rest: &str, target: impl AsRef<Path>) {
        let path = self.path(rest);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    pub fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.path(&format!("proc/{pid}"))).unwrap();
    }

    pub fn options(&self) -> Options {
        let stand_ins = DEVICES
            .iter()
            .map(|(name, role)| StandIn { path: self.path(&format!("dev/{name}")), role: *role })
            .collect();
        Options { stand_ins, ..Options::default() }
    }

    pub fn probe(&self) -> Probe {
        Probe::new(self.dir.path(), self.options())
    }

    /// One look of a new probe.
    pub fn look(&self, listed: &[u32]) -> ProcTick {
        let listed: Vec<Pid> = listed.iter().copied().map(Pid).collect();
        self.probe().look(at(1_000_000), &listed)
    }

    /// Puts a process there, or changes it.
    pub fn put(&self, process: &Process) {
        let dir = format!("proc/{}", process.pid);
        self.write(&format!("{dir}/stat"), process.stat(process.pid, process.state));
        self.write(&format!("{dir}/status"), process.status());
        self.write(&format!("{dir}/cmdline"), process.command.join("\0") + "\0");
        self.write(&format!("{dir}/environ"), process.environment.join("\0") + "\0");
        self.write(&format!("{dir}/cgroup"), &process.cgroup);
        self.write(&format!("{dir}/io"), format!("write_bytes: {}\n", process.written));
        self.write(&format!("{dir}/maps"), &process.maps);
        self.write(&format!("{dir}/wchan"), &process.wait_channel);
        let leader_fds = self.path(&format!("{dir}/fd"));
        let _ = fs::remove_dir_all(&leader_fds);
        fs::create_dir_all(&leader_fds).unwrap();
        let zombie = process.state == 'Z';
        let mut threads = vec![(process.pid, process.state)];
        threads.extend(process.other_threads.iter().copied());
        for (tid, state) in threads {
            let task = format!("{dir}/task/{tid}");
            self.write(&format!("{task}/stat"), process.stat(tid, state));
            self.write(&format!("{task}/wchan"), &process.wait_channel);
            fs::create_dir_all(self.path(&format!("{task}/fd"))).unwrap();
            if tid != process.pid || !zombie {
                self.open_all(&format!("{task}/fd"), process);
            }
        }
        if !zombie {
            self.open_all(&format!("{dir}/fd"), process);
        }
    }

    fn open_all(&self, dir: &str, process: &Process) {
        for (n, file) in process.files.iter().enumerate() {
            let target =
                if file.starts_with("dev/") { self.path(file) } else { PathBuf::from(file) };
            self.link(&format!("{dir}/{n}"), target);
        }
    }
}

/// Stand-ins of a [`Tree`].
pub const DEVICES: [(&str, DeviceRole); 5] = [
    ("nvidiactl", DeviceRole::Control),
    ("nvidia-uvm", DeviceRole::Uvm),
    ("nvidia0", DeviceRole::Gpu(0)),
    ("nvidia1", DeviceRole::Gpu(1)),
    ("renderD128", DeviceRole::Drm),
];

/// A process of a [`Tree`].
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: u32,
    pub comm: String,
    pub state: char,
    pub parent: u32,
    pub group: i64,
    pub session: i64,
    pub tty: i32,
    pub flags: u64,
    pub cpu_ticks: u64,
    pub start_ticks: u64,
    pub uid: u32,
    pub namespace_pids: Vec<u32>,
    pub tracer: u32,
    pub pending: u64,
    pub command: Vec<String>,
    pub environment: Vec<String>,
    pub cgroup: String,
    pub written: u64,
    pub maps: String,
    pub wait_channel: String,
    /// Number n of the list is descriptor n. `dev/…` lies in the tree.
    pub files: Vec<String>,
    pub other_threads: Vec<(u32, char)>,
}

impl Process {
    /// A sleeping leader of its own group and session, child of 1.
    pub fn new(pid: u32, comm: &str) -> Self {
        Self {
            pid,
            comm: comm.to_owned(),
            state: 'S',
            parent: 1,
            group: i64::from(pid),
            session: i64::from(pid),
            tty: 0,
            flags: 0x40_0000,
            cpu_ticks: 100,
            start_ticks: 1000 + u64::from(pid),
            uid: 1000,
            namespace_pids: vec![pid],
            tracer: 0,
            pending: 0,
            command: vec![comm.to_owned()],
            environment: Vec::new(),
            cgroup: "0::/user.slice/user-1000.slice/session-7.scope\n".to_owned(),
            written: 0,
            maps: String::new(),
            wait_channel: "0".to_owned(),
            files: ["dev/null"; 3].map(ToOwned::to_owned).to_vec(),
            other_threads: Vec::new(),
        }
    }

    /// One with a CUDA context on GPU 0.
    pub fn cuda(pid: u32, comm: &str) -> Self {
        Self::new(pid, comm).open(&["dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia0"])
    }

    pub fn open(mut self, files: &[&str]) -> Self {
        self.files.extend(files.iter().map(|file| (*file).to_owned()));
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Below `parent`, in the group and session of `leader`.
    pub fn below(self, parent: u32, leader: u32) -> Self {
        self.with(|process| {
            process.parent = parent;
            process.group = i64::from(leader);
            process.session = i64::from(leader);
        })
    }

    fn stat(&self, tid: u32, state: char) -> String {
        format!(
            "{tid} ({}) {state} {} {} {} {} -1 {} 0 0 0 0 {} 0 0 0 20 0 {} 0 {} 1000000 250 184467 \
             1 1 0 0 0 0 0 0\n",
            self.comm,
            self.parent,
            self.group,
            self.session,
            self.tty,
            self.flags,
            self.cpu_ticks,
            1 + self.other_threads.len(),
            self.start_ticks,
        )
    }

    fn status(&self) -> String {
        let mut text = format!("Name:\t{}\nTgid:\t{}\n", self.comm.escape_default(), self.pid);
        let uid = self.uid;
        let _ = writeln!(text, "TracerPid:\t{}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}", self.tracer);
        let pids: Vec<_> = self.namespace_pids.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "NSpid:\t{}", pids.join("\t"));
        let _ =
            writeln!(text, "SigPnd:\t{:016x}\nShdPnd:\t0\nSigIgn:\t2\nSigCgt:\t4000", self.pending);
        text
    }
}
