//! What the whole program costs, beside other monitors: `cargo bench --bench macro -- [OPTION…]`.
//!
//! Each monitor runs on a terminal of its own over the stand-in driver, one after the other, with
//! the same GPUs and the same real processes. CPU time is that of all threads by the scheduler's
//! clock (`/proc/PID/task/*/schedstat`); system calls are counted by `strace`, where it is there, and
//! driver calls by the stand-in, each in a stretch of its own, since counting costs. Allocations are
//! counted in a run of its own, by a library that stands before the C library's (`count_alloc/`); of
//! a program that is static or has an allocator of its own they are *not counted*; Python is told to
//! do without its own (`PYTHONMALLOC`). What the stand-in allocates for its answers is among them.
//! CPU, memory and calls are those of the program and its children. How long a start takes is told
//! twice: until a frame shows a GPU (`H200`), and until one shows the command of a process too; a
//! pause of 5 ms ends a frame.
//!
//! On a machine with other work every new process there is one to look at: `unshare --pid --fork
//! --mount-proc cargo bench --bench macro -- …` has none but the bench's own.
//!
//! A peer is a command line, split at spaces; what needs quotes is put into a script that ends in
//! `exec`, since a shell that waits would be counted with it. Each is to refresh once a second:
//! `nvitop=/venv/bin/nvitop -m full --interval 1`, or `btop=/usr/local/bin/btop -c /tmp/btop.conf -f
//! sleep` with `update_ms = 1000` and `shown_boxes = "gpu0 proc"` in that file (a btop without
//! `GPU_SUPPORT` shows none). They find the stand-in by `LD_LIBRARY_PATH`.
//!
//! ```text
//! --peer NAME=COMMAND LINE   another monitor, as often as wanted; each has vramlens's ratio to it
//! --program PATH       instead of the one that cargo built
//! --sizes 1x3,8x64     GPUs x processes; 8x64+5000 has so many other processes beside
//! --settle 20          seconds before anything is counted: caches fill and intervals grow
//!                      (5,000 others have just been started: give it 200 for what they cost at rest)
//! --seconds 20         seconds that are counted
//! --keys 60            keys whose way to the screen is timed
//! ```

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "../support/fake.rs"]
mod fake;
mod monitor;

use std::time::Duration;

use fake::Fake;
use monitor::load::{Load, Size};
use monitor::measure::{Plan, measure};
use monitor::table;

/// A monitor to run.
struct Monitor {
    name: String,
    /// A word each.
    line: Vec<String>,
}

struct Options {
    monitors: Vec<Monitor>,
    sizes: Vec<Size>,
    plan: Plan,
}

fn main() {
    let options = options();
    for size in &options.sizes {
        let load = Load::start(*size);
        let fake = Fake::new(&load.scenario(false));
        let mut rows = Vec::new();
        for monitor in &options.monitors {
            match measure(&monitor.line, &fake, &load, options.plan) {
                Ok(costs) => rows.push((monitor.name.clone(), costs)),
                Err(why) => println!("{} at {size}: {why}", monitor.name),
            }
        }
        println!("\n{size}, a refresh a second, 160x50\n{}", table::render(&rows));
    }
}

fn options() -> Options {
    let own = vec![env!("CARGO_BIN_EXE_vramlens").to_owned()];
    let mut options = Options {
        monitors: vec![Monitor { name: "vramlens".to_owned(), line: own }],
        sizes: "1x3,8x64,16x400,8x64+5000".split(',').map(Size::of).collect(),
        plan: Plan { settle: Duration::from_secs(20), counted: Duration::from_secs(20), keys: 60 },
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} wants a value"));
        let seconds = |text: String| Duration::from_secs(text.parse().unwrap());
        match word.as_str() {
            "--peer" => {
                let text = value();
                let (name, line) = text.split_once('=').expect("NAME=COMMAND LINE");
                let line = line.split_ascii_whitespace().map(ToOwned::to_owned).collect();
                options.monitors.push(Monitor { name: name.to_owned(), line });
            }
            "--program" => options.monitors[0].line = vec![value()],
            "--sizes" => options.sizes = value().split(',').map(Size::of).collect(),
            "--settle" => options.plan.settle = seconds(value()),
            "--seconds" => options.plan.counted = seconds(value()),
            "--keys" => options.plan.keys = value().parse().unwrap(),
            // Cargo says that this is a benchmark.
            "--bench" => {}
            other => panic!("{other} is no option; see the head of tests/bench/macro.rs"),
        }
    }
    options
}
