//! Triage and kill by the real program: real processes, their real end, and a stand-in driver whose
//! memory comes back when they are gone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use fake::Fake;
use serde_json::Value;

const GIB: u64 = 1 << 30;

/// Files that stand for the devices of a GPU.
struct Devices(tempfile::TempDir);

impl Devices {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["uvm", "control", "gpu"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn variable(&self) -> String {
        let roles = [("uvm", "uvm"), ("control", "control"), ("gpu", "0")];
        let one = |(name, role): &(&str, &str)| format!("{}={role}", self.path(name).display());
        roles.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

/// A process that has the devices open and does what `words` say.
struct Holder {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Holder {
    fn start(devices: &Devices, words: &[&str]) -> Self {
        let mut command = Command::new(example("holder"));
        for name in ["uvm", "control", "gpu"] {
            command.arg("open").arg(devices.path(name));
        }
        let mut child = command.args(words).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The pid in the next line that begins with `word`.
    fn pid_after(&mut self, word: &str) -> u32 {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it said nothing of {word}");
            if let Some(pid) = line.strip_prefix(word) {
                return pid.trim().parse().unwrap();
            }
        }
    }

    fn die(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--example", name]).status();
        assert!(built.unwrap().success());
    }
    path
}

fn vramlens(fake: &Fake, devices: &Devices, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vramlens"))
        .args(args)
        .env("VRAMLENS_NVML_LIB", fake.library())
        .env("VRAMLENS_TEST_DEVICES", devices.variable())
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error} in {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|text| !text.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")))
}

/// Ends a process with the test, so that a failed one leaves nobody behind.
struct Ended(u32);

impl Drop for Ended {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0).unwrap();
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGKILL,
        );
    }
}

/// A parent that the driver lists although it is dead, and the child that keeps its memory.
fn ghost_and_survivor(devices: &Devices) -> (Ended, u32, u32) {
    let mut parent = Holder::start(devices, &["setsid", "fork"]);
    let dead = parent.pid_after("parent ");
    let survivor = parent.pid_after("ready ");
    parent.die();
    (Ended(survivor), dead, survivor)
}

fn scenario(dead: u32, survivor: u32) -> String {
    format!(
        "follow_pids = true\n[[gpu]]\n[[gpu.process]]\npid = {dead}\nbytes = {}\nsticky = true\n\
         survivors = [{survivor}]\n",
        5 * GIB
    )
}

#[test]
fn a_survivor_is_found_ended_and_its_memory_comes_back() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = ghost_and_survivor(&devices);
    let fake = Fake::new(&scenario(dead, survivor));

    let output = vramlens(&fake, &devices, &["triage", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let holder = |pid: u32| {
        let all = report["holders"].as_array().unwrap();
        all.iter().find(|one| one["pid"] == pid).unwrap_or_else(|| panic!("{pid} in {report:#}"))
    };
    assert_eq!(holder(dead)["verdict"]["class"], "ghost");
    assert_eq!(holder(survivor)["verdict"]["class"], "survivor");
    assert_eq!(holder(survivor)["verdict"]["zombie"], true, "{report:#}");
    assert_eq!(report["findings"][0]["fixes"][0]["ends"][0]["pid"], survivor);

    let dry = vramlens(&fake, &devices, &["kill", "--zombies", "--dry-run", "--json"]);
    assert_eq!(dry.status.code(), Some(0));
    assert_eq!(json(&dry)["expected_bytes"], 5 * GIB);
    assert!(lives(survivor), "a dry run ends nobody");

    let killed = vramlens(&fake, &devices, &["kill", "--zombies", "--yes", "--json"]);
    let answer = json(&killed);
    assert_eq!(killed.status.code(), Some(0), "{answer:#}");
    assert_eq!(answer["proof"]["freed_bytes"], 5 * GIB, "{answer:#}");
    assert_eq!(answer["proof"]["complete"], true);
    assert!(!lives(survivor));

    let clean = vramlens(&fake, &devices, &["triage"]);
    assert_eq!(clean.status.code(), Some(0), "{}", String::from_utf8_lossy(&clean.stdout));
}

#[test]
fn a_dead_pid_stands_for_those_who_keep_its_memory() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = ghost_and_survivor(&devices);
    let fake = Fake::new(&scenario(dead, survivor));
    let killed = vramlens(&fake, &devices, &["kill", &dead.to_string(), "--now", "--yes"]);
    let text = String::from_utf8_lossy(&killed.stdout).into_owned();
    assert_eq!(killed.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("KILL sent {survivor}")), "{text}");
    assert!(text.contains("freed 5.0 of 5.0 GiB"), "{text}");
    assert!(!lives(survivor));
}

#[test]
fn an_explanation_says_who_of_the_message_is_a_leftover_here() {
    let devices = Devices::new();
    let (_parent, dead, survivor) = ghost_and_survivor(&devices);
    let fake = Fake::new(&scenario(dead, survivor));
    let log = devices.path("train.log");
    let message = format!(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 138.00 GiB. GPU 0 has a total \
         capacity of 140.00 GiB of which 133.00 GiB is free. Process {dead} has 5.00 GiB memory in \
         use. Including non-PyTorch memory, this process has 0.50 GiB memory in use. Of the \
         allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but \
         unallocated.\n"
    );
    std::fs::write(&log, message).unwrap();
    let output = vramlens(&fake, &devices, &["explain", "--json", log.to_str().unwrap()]);
    let answer = json(&output);
    assert_eq!(output.status.code(), Some(1), "{answer:#}");
    assert_eq!(answer["other_processes"][0]["pid"], dead);
    assert_eq!(answer["live"]["gpu"], 0, "{answer:#}");
    assert_eq!(answer["live"]["reclaimable_bytes"], 5 * GIB, "{answer:#}");
    let holders = answer["live"]["holders"].as_array().unwrap();
    let row = |pid: u32| holders.iter().find(|row| row["pid"] == pid).unwrap();
    assert_eq!(row(dead)["named"], true);
    assert_eq!(row(survivor)["leftover"], true);
    let alone = vramlens(&fake, &devices, &["explain", "--json", "--alone", log.to_str().unwrap()]);
    assert!(json(&alone)["live"].is_null());
}

#[test]
fn without_a_terminal_or_a_yes_nothing_is_sent() {
    let devices = Devices::new();
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let fake = Fake::new(&format!("[[gpu]]\n[[gpu.process]]\npid = {pid}\nbytes = {}\n", 2 * GIB));
    let asked = vramlens(&fake, &devices, &["kill", &pid.to_string()]);
    assert_eq!(asked.status.code(), Some(2));
    let text = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(text.contains("there is no terminal to ask on and nothing was sent"), "{text}");
    assert!(lives(pid));
}

#[test]
fn who_holds_nothing_is_not_ended() {
    let devices = Devices::new();
    let fake = Fake::new("[[gpu]]\n");
    let mut sleeper = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let killed = vramlens(&fake, &devices, &["kill", &pid, "--yes"]);
    assert_eq!(killed.status.code(), Some(2));
    let text = String::from_utf8_lossy(&killed.stderr).into_owned();
    assert!(text.contains("has no NVIDIA device open: nothing was sent"), "{text}");
    assert!(lives(sleeper.id()));
    sleeper.kill().unwrap();
    assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
    let none = vramlens(&fake, &devices, &["kill", "--zombies", "--yes"]);
    assert_eq!(none.status.code(), Some(0));
    assert!(Path::new("/proc/self").exists());
}

#[test]
fn a_dead_child_that_nobody_has_reaped_yet_is_no_remainder() {
    let devices = Devices::new();
    // Its parent is this test, which does not take note of its end.
    let mut holder = Holder::start(&devices, &["setsid"]);
    let pid = holder.pid_after("ready ");
    let listed = format!("[[gpu.process]]\npid = {pid}\nbytes = {}\n", 2 * GIB);
    let fake = Fake::new(&format!("follow_pids = true\n[[gpu]]\n{listed}"));
    let killed = vramlens(&fake, &devices, &["kill", &pid.to_string(), "--yes"]);
    let text = String::from_utf8_lossy(&killed.stdout).into_owned();
    assert_eq!(killed.status.code(), Some(0), "{text}");
    assert!(text.contains("freed 2.0 of 2.0 GiB"), "{text}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(stat.contains(") Z "), "{stat}");
}
