//! A real view on a real terminal, for two hundred refreshes: it neither grows nor leaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

use fake::Fake;
use pty::Term;

fn status(pid: i32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// What is open.
fn names(pid: i32) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let mut all: Vec<_> = all.filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
    all.sort();
    all
}

/// Open files. Those of `/proc` are open only for the time of a read: the fewest of many looks.
fn files(pid: i32) -> usize {
    let count = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    (0..200).map(|_| count()).min().unwrap()
}

#[test]
fn a_view_of_two_hundred_refreshes_neither_grows_nor_leaks() {
    let machine = "count_calls = true\n[generate]\ngpus = 4\nprocs = 8\n\
                   [[burst]]\nprocs = 30\nevery_ms = 300\nfor_ms = 100\n";
    let fake = Fake::new(machine);
    let mut term =
        Term::start(&["--interval", "100ms"], &[("VRAMLENS_NVML_LIB", &fake.library())], 50, 160);
    term.wait_for("NVIDIA H200");
    let looks = || fake.calls("nvmlDeviceGetMemoryInfo_v2") / 4;
    let until = |term: &Term, goal: u64| {
        let mut before = looks();
        while before < goal {
            // As long as the picture changes it has not stopped.
            let next = (before + 40).min(goal);
            term.wait("more looks", |_| looks() >= next);
            before = next;
        }
    };
    let (start, keys) = (looks(), ["?", "q", "\r", "q", "f", "q", "s", "a"]);
    until(&term, start + 50);
    // Every page once: what is opened at first use is open then.
    for key in keys {
        term.send(key);
        let next = looks() + 3;
        until(&term, next);
    }
    let (files_before, memory_before) = (files(term.pid()), status(term.pid(), "VmRSS:"));
    for (n, key) in keys.iter().cycle().take(32).enumerate() {
        term.send(key);
        until(&term, start + 50 + n as u64 * 5);
    }
    until(&term, start + 250);
    let (files_after, memory_after) = (files(term.pid()), status(term.pid(), "VmRSS:"));
    eprintln!(
        "{memory_before} kB, then {memory_after} kB; {files_before} files, then {files_after}"
    );
    let open = names(term.pid());
    assert!(files_after <= files_before, "{files_before} files, then {files_after}: {open:?}");
    assert!(memory_after < memory_before + 6_000, "{memory_before} kB, then {memory_after} kB");
}
