//! Processes that end between any two reads. Whatever the order of the reads is, what is left of a
//! process at some moment is one of the sets of its files: all of them are tried.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::Value;
use vramlens::host::{Options, Probe};
use vramlens::ids::Pid;
use vramlens::sample::{ProcSample, ProcTick};

use crate::procs::{Process, Tree, at, of};

const FILES: [&str; 10] =
    ["stat", "status", "cmdline", "environ", "cgroup", "io", "maps", "wchan", "fd", "task"];

fn process() -> Process {
    Process::cuda(4000, "trainer").with(|process| {
        process.command = ["python", "train.py", "--epochs", "3"].map(ToOwned::to_owned).into();
        process.environment = vec!["CUDA_VISIBLE_DEVICES=0".to_owned()];
        process.written = 4096;
        process.other_threads = vec![(4001, 'S')];
    })
}

/// A tree in which of the process only these files are left.
fn left(of: usize) -> Tree {
    let tree = Tree::new();
    tree.put(&process());
    take(&tree, of);
    tree
}

fn take(tree: &Tree, keep: usize) {
    for (n, name) in FILES.iter().enumerate() {
        let path = tree.path(&format!("proc/4000/{name}"));
        if keep & (1 << n) == 0 {
            let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            gone.unwrap();
        }
    }
}

fn leaves(value: &Value, place: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                leaves(value, &format!("{place}/{key}"), found);
            }
        }
        other => drop(found.insert(place.to_owned(), other.clone())),
    }
}

fn facts(sample: &ProcSample) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    leaves(&serde_json::to_value(sample).unwrap(), "", &mut found);
    found
}

/// Each figure and text is the true one, or there is none.
fn check(tick: &ProcTick, truth: &BTreeMap<String, Value>, case: &str) {
    let Some(sample) = of(tick, 4000) else { return };
    for (place, value) in facts(sample) {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        let absent = place.contains("absent") || place.contains("Absent") || value.is_null();
        // The reason for which no thread is said not to hang.
        let absent = absent || place == "/threads_unread";
        // What a file says of a process and no file names otherwise.
        let same = truth.get(&place) == Some(&value);
        assert!(same || empty || absent || value.is_boolean(), "{case}: {place} is {value}");
    }
}

#[test]
fn whatever_is_left_of_a_process_is_read_rightly() {
    let whole = (1 << FILES.len()) - 1;
    let tree = left(whole);
    let first = facts(of(&tree.look(&[4000]), 4000).unwrap());
    let mut probe = tree.probe();
    probe.look(at(1_000_000), &[Pid(4000)]);
    let second = facts(of(&probe.look(at(1_001_000), &[Pid(4000)]), 4000).unwrap());
    for keep in 0..=whole {
        let case = format!(
            "{:?}",
            FILES
                .iter()
                .enumerate()
                .filter(|(n, _)| keep & (1 << n) != 0)
                .map(|(_, f)| f)
                .collect::<Vec<_>>()
        );
        let tree = left(whole);
        let mut probe = tree.probe();
        // Seen whole before; then it ends.
        probe.look(at(1_000_000), &[Pid(4000)]);
        take(&tree, keep);
        check(&probe.look(at(1_001_000), &[Pid(4000)]), &second, &format!("later {case}"));
        // Never seen before.
        check(&tree.look(&[4000]), &first, &format!("at first {case}"));
    }
}

#[test]
fn looks_among_processes_that_come_and_go_are_sound() {
    let done = AtomicBool::new(false);
    let newest = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut quiet = Command::new("true");
                let quiet = quiet.stdin(Stdio::null()).stdout(Stdio::null());
                if let Ok(mut child) = quiet.spawn() {
                    newest.store(child.id(), Ordering::Relaxed);
                    let _ = child.wait();
                }
            }
        });
        let mut probe = Probe::new("/", Options::default());
        let own = Pid(std::process::id());
        for n in 0..60 {
            let pid = newest.load(Ordering::Relaxed);
            let listed: Vec<Pid> = (pid..pid + 8).map(Pid).chain([own]).collect();
            let tick = probe.look(at(1_000_000 + n * 1000), &listed);
            assert!(of(&tick, own.0).is_some(), "its own process was lost at look {n}");
        }
        done.store(true, Ordering::Relaxed);
    });
}
