//! Reads the allocator of a process and prints what it saw and how long it took, as JSON lines:
//! `alloc_read PID [TIMES [PAUSE_MS [quick]]] [--explain]`. With the word `ask` instead of a number
//! it reads once for every line on standard input; the line `explain` asks for reasons too.

#![allow(clippy::print_stdout)]

use std::io::BufRead;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use vramlens::allocator::{Ask, Reader};
use vramlens::ids::{Pid, ProcId, Stamp};

fn id_of(pid: &str) -> Option<ProcId> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let start_ticks = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(ProcId { pid: Pid(pid.parse().ok()?), start_ticks })
}

fn now() -> Stamp {
    let since_boot = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("a clock");
    let boot_ms = Duration::from(since_boot).as_millis() as u64;
    Stamp { boot_ms, wall_ms: boot_ms }
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let explain = arguments.iter().any(|argument| argument == "--explain");
    arguments.retain(|argument| argument != "--explain");
    let argument = |n: usize, default: &str| arguments.get(n).map_or(default, |s| s).to_owned();
    let id = id_of(&argument(0, "")).expect("usage: alloc_read PID [TIMES|ask [PAUSE_MS [quick]]]");
    let pause = Duration::from_millis(argument(2, "0").parse().expect("milliseconds"));
    let ask = Ask { blocks: argument(3, "") != "quick", ..Ask::default() };
    let mut reader = Reader::default();
    let mut once = |explain: bool| {
        let (stamp, begin) = (now(), Instant::now());
        let (sample, notes) = if explain {
            let (sample, notes) = reader.explain(id, stamp, &ask);
            (sample, Some(notes))
        } else {
            (reader.read(id, stamp, &ask), None)
        };
        let us = begin.elapsed().as_secs_f64() * 1e6;
        let mut line = json!({ "us": us, "at": stamp, "sample": sample });
        if let Some(notes) = notes {
            line["notes"] = json!(notes);
        }
        println!("{line}");
    };
    if argument(1, "1") == "ask" {
        for line in std::io::stdin().lock().lines() {
            once(explain || line.is_ok_and(|line| line == "explain"));
        }
        return;
    }
    for _ in 0..argument(1, "1").parse().expect("a number") {
        once(explain);
        std::thread::sleep(pause);
    }
}
