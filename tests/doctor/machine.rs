//! A machine made of files, and what `vramlens doctor` says of it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::host::{Root, doctor};
use vramlens::report::doctor::{Answer, Line, Patient, examine};
use vramlens::runtime::clock;
use vramlens::runtime::options::blank;
use vramlens::sample::MachineFacts;

use crate::fake::Fake;

pub const ONE: &str = "[[gpu]]\nprocess = [{ pid = 9001, bytes = 1073741824 }]\n";
pub const CAP_ALL: &str = "CapEff:\t000001ffffffffff\n";
pub const CAP_NONE: &str = "CapEff:\t0000000000000000\n";

/// A machine with one GPU, its driver, and every right.
pub struct Machine(pub TempDir);

impl Machine {
    pub fn bare() -> Self {
        let machine = Self(TempDir::new().unwrap());
        machine.put("proc/modules", "");
        machine.put("proc/self/mounts", "proc /proc proc rw,relatime 0 0\n");
        machine.put("proc/self/cgroup", "0::/user.slice\n");
        machine.put("proc/self/status", CAP_ALL);
        machine.put("proc/sys/kernel/yama/ptrace_scope", "1\n");
        machine.link("proc/self/ns/pid", "pid:[4026531836]");
        machine
    }

    pub fn good() -> Self {
        let machine = Self::bare();
        machine.put("proc/modules", "nvidia 1 2 nvidia_uvm, Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n");
        machine.put("sys/module/nvidia/version", "580.159.04\n");
        machine.put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04", "");
        for name in ["nvidiactl", "nvidia-uvm", "nvidia0"] {
            machine.put(&format!("dev/{name}"), "");
        }
        machine.gpu("0000:1b:00.0", "nvidia");
        machine
    }

    pub fn gpu(&self, address: &str, driver: &str) {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.put(&format!("{folder}/vendor"), "0x10de\n");
        self.put(&format!("{folder}/class"), "0x030200\n");
        self.put(&format!("{folder}/power/control"), "on\n");
        self.put(&format!("{folder}/power/runtime_status"), "active\n");
        self.link(&format!("{folder}/driver"), &format!("/sys/bus/pci/drivers/{driver}"));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn put(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn link(&self, name: &str, to: &str) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        symlink(to, path).unwrap();
        self
    }

    pub fn remove(&self, name: &str) -> &Self {
        std::fs::remove_file(self.path(name)).unwrap();
        self
    }

    /// What the program says, and its exit code.
    pub fn asked(&self, library: &Path, args: &[&str]) -> (Value, i32) {
        let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
            .args(["doctor", "--json"])
            .args(args)
            .env("VRAMLENS_NVML_LIB", library)
            .env("VRAMLENS_TEST_ROOT", self.0.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let json = serde_json::from_str(&text);
        let json = json.unwrap_or_else(|_| panic!("{text}{:?}", output.stderr));
        (json, output.status.code().unwrap())
    }

    pub fn over(&self, scenario: &str) -> (Value, i32) {
        let fake = Fake::new(scenario);
        self.asked(&fake.library(), &[])
    }

    /// Without a driver's word.
    pub fn facts(&self) -> MachineFacts {
        doctor::read(&Root::new(self.0.path()))
    }
}

/// The state, and what is said with its mends, of one line.
pub fn line(report: &Value, key: &str) -> (String, String) {
    let lines = report["lines"].as_array().unwrap();
    let Some(line) = lines.iter().find(|line| line["key"] == key) else {
        return ("none".to_owned(), String::new());
    };
    let mends = line["mend"].as_array().unwrap().iter().map(|mend| mend.as_str().unwrap());
    let text =
        mends.fold(line["found"].as_str().unwrap().to_owned(), |all, mend| all + "\n" + mend);
    (line["state"].as_str().unwrap().to_owned(), text)
}

#[track_caller]
pub fn says(report: &Value, key: &str, state: &str, words: &[&str]) {
    let (found, text) = line(report, key);
    assert_eq!(found, state, "{key}: {text}\n{report:#}");
    for word in words {
        assert!(text.contains(word), "{key}: {word:?} is not in {text:?}");
    }
}

pub fn unasked(facts: &MachineFacts) -> Vec<Line> {
    let view = View::build(&History::new(), &blank(clock::now(), 1000));
    examine(&Patient { machine: facts, driver: &Answer::NotAsked, view: &view })
}

pub fn of<'a>(lines: &'a [Line], key: &str) -> &'a Line {
    lines.iter().find(|line| line.key == key).unwrap()
}
