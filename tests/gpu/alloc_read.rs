//! Reads the allocator of a process and prints what it saw and how long it took, as JSON lines:
//! `alloc_read PID [TIMES [PAUSE_MS [quick]]]`. With the word `ask` instead of a number it reads
//! once for every line on standard input.

#![allow(clippy::print_stdout)]

use std::io::BufRead;
use std::time::{Duration, Instant};

use serde_json::json;
use vramlens::allocator::{Ask, Reader};
use vramlens::ids::{Pid, ProcId, Stamp};

fn id_of(pid: &str) -> Option<ProcId> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let start_ticks = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(ProcId { pid: Pid(pid.parse().ok()?), start_ticks })
}

fn now() -> Stamp {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = uptime.split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
    let boot_ms = (seconds * 1000.0) as u64;
    Stamp { boot_ms, wall_ms: boot_ms }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize, default: &str| arguments.get(n).map_or(default, |s| s).to_owned();
    let id = id_of(&argument(0, "")).expect("usage: alloc_read PID [TIMES|ask [PAUSE_MS [quick]]]");
    let pause = Duration::from_millis(argument(2, "0").parse().expect("milliseconds"));
    let ask = Ask { blocks: argument(3, "") != "quick", ..Ask::default() };
    let mut reader = Reader::default();
    let mut once = || {
        let (stamp, begin) = (now(), Instant::now());
        let sample = reader.read(id, stamp, &ask);
        let us = begin.elapsed().as_secs_f64() * 1e6;
        println!("{}", json!({ "us": us, "at": stamp, "sample": sample }));
    };
    if argument(1, "1") == "ask" {
        for _line in std::io::stdin().lock().lines() {
            once();
        }
        return;
    }
    for _ in 0..argument(1, "1").parse().expect("a number") {
        once();
        std::thread::sleep(pause);
    }
}
