//! What the whole program costs, beside other monitors: `cargo bench --bench macro -- [OPTION…]`.
//!
//! Each monitor runs on a terminal of its own over the stand-in driver, one after the other, with
//! the same GPUs and the same real processes. CPU time is that of all threads by the scheduler's
//! clock (`/proc/PID/task/*/schedstat`); system calls are counted by `strace`, where it is there, and
//! driver calls by the stand-in, each in a stretch of its own, since counting costs. How long a start
//! takes is told twice: until a frame shows a GPU, and until one shows the command of a process too;
//! a pause of 5 ms ends a frame.
//!
//! ```text
//! --peer NAME=PATH     another monitor, as often as wanted; the first one is what ratios are to
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

use std::path::PathBuf;
use std::time::Duration;

use fake::Fake;
use monitor::load::{Load, Size};
use monitor::measure::{Plan, measure};
use monitor::table;

/// A monitor to run.
struct Monitor {
    name: String,
    path: PathBuf,
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
            match measure(&monitor.path, &fake, &load, options.plan) {
                Ok(costs) => rows.push((monitor.name.clone(), costs)),
                Err(why) => println!("{} at {size}: {why}", monitor.name),
            }
        }
        println!("\n{size}, a refresh a second, 160x50\n{}", table::render(&rows));
    }
}

fn options() -> Options {
    let own =
        || Monitor { name: "vramlens".to_owned(), path: env!("CARGO_BIN_EXE_vramlens").into() };
    let mut options = Options {
        monitors: vec![own()],
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
                let (name, path) = text.split_once('=').expect("NAME=PATH");
                options.monitors.push(Monitor { name: name.to_owned(), path: path.into() });
            }
            "--program" => options.monitors[0].path = value().into(),
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
