//! One monitor on one terminal, from its start to its end.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::allocations::{Counter, Counts};
use super::load::Load;
use crate::fake::Fake;

/// Texts that are on the screen once a GPU is, and once a process is: part of the GPU's name, and
/// the command of all processes.
const NEEDLES: [&str; 2] = ["H200", "sleep 1200"];
/// Of the terminal.
const ROWS: NonZero<u16> = NonZero::new(50).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(160).unwrap();
/// A pause in what is written ends a frame.
const PAUSE: Duration = Duration::from_millis(5);
/// What does not show until then never will.
const START: Duration = Duration::from_secs(10);
/// How long calls are counted.
const CALLS: Duration = Duration::from_secs(5);
/// A key that has shown nothing until then has no effect.
const DEAD_KEY: Duration = Duration::from_millis(700);

/// How long to look.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Before anything is counted.
    pub settle: Duration,
    /// That are counted.
    pub counted: Duration,
    /// Keys that are timed.
    pub keys: usize,
}

/// What a monitor costs, a second where not said otherwise.
#[derive(Debug, Default)]
pub struct Costs {
    /// CPU time, in milliseconds.
    pub cpu_ms: f64,
    /// CPU time of each thread, in milliseconds, with its name.
    pub threads: Vec<(String, f64)>,
    /// Bytes to the terminal.
    pub bytes: f64,
    /// System calls; `None` without `strace`.
    pub system_calls: Option<f64>,
    /// Calls of the driver.
    pub driver_calls: f64,
    /// Allocations and their bytes; then the bytes that were allocated at the end and not freed.
    pub allocations: Option<[f64; 2]>,
    pub live_bytes: Option<u64>,
    /// Why allocations could not be counted.
    pub not_counted: Option<String>,
    /// Resident memory and its highest, of it private and of files; what is its own share, in KiB.
    /// `None` where it could not be read.
    pub memory_kib: [Option<u64>; 5],
    /// From the start to the end of the first frame that shows a GPU, and of the first that shows a
    /// GPU and a process, in milliseconds. `None` where none did.
    pub first_ms: [Option<f64>; 2],
    /// From a key to the next bytes, in milliseconds, in order.
    pub keys_ms: Vec<f64>,
}

struct Running {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    chunks: Receiver<(Instant, Vec<u8>)>,
    bytes: u64,
    screen: vt100::Parser,
    _master: Box<dyn MasterPty + Send>,
}

/// Runs a monitor, a word of its command line each, and counts.
pub fn measure(line: &[String], fake: &Fake, load: &Load, plan: Plan) -> Result<Costs, String> {
    fake.change(&load.scenario(false));
    let began = Instant::now();
    let mut running = Running::start(line, fake, &[]);
    let mut costs = Costs { first_ms: running.first_frames(began), ..Costs::default() };
    running.pass(plan.settle);
    let pid = running.pid()?;
    let (before, bytes, at) = (cpu_ns(pid), running.bytes, Instant::now());
    running.pass(plan.counted);
    let seconds = at.elapsed().as_secs_f64();
    running.pid()?;
    for (task, name, ns) in cpu_ns(pid) {
        let known = before.iter().find(|one| one.0 == task).map_or(0, |one| one.2);
        costs.threads.push((name, (ns - known) as f64 / 1e6 / seconds));
    }
    costs.cpu_ms = costs.threads.iter().map(|thread| thread.1).sum();
    costs.bytes = (running.bytes - bytes) as f64 / seconds;
    costs.memory_kib = memory(pid);
    costs.keys_ms = running.keys(plan.keys);
    costs.system_calls = running.system_calls(pid);
    fake.change(&load.scenario(true));
    running.pass(Duration::from_secs(2));
    let calls = fake.all_calls();
    running.pass(CALLS);
    costs.driver_calls = (fake.all_calls() - calls) as f64 / CALLS.as_secs_f64();
    running.end();
    fake.change(&load.scenario(false));
    match allocations(line, fake, plan) {
        Ok((a_second, counts)) => {
            (costs.allocations, costs.live_bytes) = (Some(a_second), counts.live_bytes);
        }
        Err(why) => costs.not_counted = Some(why),
    }
    Ok(costs)
}

/// Runs it once more and counts what it allocates a second; and all that it has.
fn allocations(line: &[String], fake: &Fake, plan: Plan) -> Result<([f64; 2], Counts), String> {
    let counter = Counter::new();
    let mut running = Running::start(line, fake, &counter.environment());
    running.pass(plan.settle);
    let (before, at) = (counter.so_far(running.pid()?)?, Instant::now());
    running.pass(plan.counted);
    let (after, seconds) = (counter.so_far(running.pid()?)?, at.elapsed().as_secs_f64());
    running.end();
    let counts = after.since(before)?;
    Ok(([counts.calls, counts.bytes].map(|count| count as f64 / seconds), counts))
}

impl Running {
    fn start(line: &[String], fake: &Fake, more: &[(&str, OsString)]) -> Self {
        let mut command = CommandBuilder::from_argv(line.iter().map(OsString::from).collect());
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        command.env("HOME", fake.dir());
        command.env("XDG_CONFIG_HOME", fake.dir());
        command.env("VRAMLENS_NVML_LIB", fake.library());
        command.env("LD_LIBRARY_PATH", fake.dir());
        for (name, value) in more {
            command.env(name, value);
        }
        command.cwd(fake.dir());
        let size =
            PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (to, chunks) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n) = reader.read(&mut buffer) {
                let chunk = buffer.get(..n).unwrap_or_default().to_vec();
                if n == 0 || to.send((Instant::now(), chunk)).is_err() {
                    return;
                }
            }
        });
        let writer = pair.master.take_writer().unwrap();
        let screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        Self { child, writer, chunks, bytes: 0, screen, _master: pair.master }
    }

    /// Its pid, if it still runs.
    fn pid(&mut self) -> Result<u32, String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.pass(PAUSE);
            let screen = self.screen.screen().contents();
            return Err(format!("it has ended ({status}): {}", screen.trim_end()));
        }
        self.child.process_id().ok_or_else(|| "it has no pid".to_owned())
    }

    fn next(&mut self, wait: Duration) -> Result<(Instant, Vec<u8>), RecvTimeoutError> {
        let (at, chunk) = self.chunks.recv_timeout(wait)?;
        self.bytes += chunk.len() as u64;
        Ok((at, chunk))
    }

    /// When the first frame with a GPU was complete, and the first with a process too.
    fn first_frames(&mut self, began: Instant) -> [Option<f64>; 2] {
        let (mut last, mut found) = (None, [None; 2]);
        while let Some(left) = (began + START).checked_duration_since(Instant::now()) {
            match (self.next(if last.is_some() { PAUSE } else { left }), last) {
                (Ok((at, chunk)), _) => {
                    self.screen.process(&chunk);
                    last = Some(at);
                }
                (Err(RecvTimeoutError::Timeout), Some(end)) => {
                    let text = self.screen.screen().contents();
                    let shown = NEEDLES.iter().take_while(|needle| text.contains(**needle)).count();
                    let ms = end.duration_since(began).as_secs_f64() * 1e3;
                    found.iter_mut().take(shown).for_each(|first| *first = first.or(Some(ms)));
                    if shown == NEEDLES.len() {
                        break;
                    }
                    last = None;
                }
                _ => break,
            }
        }
        found
    }

    /// Lets it run and reads what it writes.
    fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.next(left) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Presses down and up, at uneven moments.
    fn keys(&mut self, count: usize) -> Vec<f64> {
        let mut times = Vec::new();
        for n in 0..count {
            self.pass(Duration::from_millis(130 + (n as u64 * 37) % 90));
            let key: &[u8] = if n % 2 == 0 { b"\x1b[B" } else { b"\x1b[A" };
            let pressed = Instant::now();
            self.writer.write_all(key).unwrap();
            self.writer.flush().unwrap();
            if let Ok((at, _)) = self.next(DEAD_KEY) {
                times.push(at.saturating_duration_since(pressed).as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        times
    }

    fn system_calls(&mut self, pid: u32) -> Option<f64> {
        let mut command = Command::new("strace");
        command.args(["-f", "-c"]);
        command.args(family(pid).iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
        let strace = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let strace = strace.spawn().ok()?;
        self.pass(CALLS);
        let raw = nix::unistd::Pid::from_raw(strace.id().cast_signed());
        nix::sys::signal::kill(raw, nix::sys::signal::Signal::SIGINT).ok()?;
        let output = strace.wait_with_output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let total = text.lines().find(|line| line.trim_end().ends_with("total"))?;
        // Share, seconds, microseconds a call, calls.
        let calls: f64 = total.split_ascii_whitespace().nth(3)?.parse().ok()?;
        Some(calls / CALLS.as_secs_f64())
    }

    fn end(mut self) {
        let _ = self.writer.write_all(b"q");
        let _ = self.writer.flush();
        self.pass(Duration::from_millis(300));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process, its children, theirs, and so on.
fn family(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children = lists.flat_map(|list| {
        list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    std::iter::once(pid).chain(children.flat_map(family)).collect()
}

/// Each thread's number, name and time on a processor, in nanoseconds.
fn cpu_ns(pid: u32) -> Vec<(String, String, u64)> {
    let of = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
        Some((task.file_name().into_string().ok()?, name.trim().to_owned(), ns))
    };
    let lists = family(pid).into_iter().map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")));
    lists.flatten().flatten().filter_map(|task| of(task.ok()?)).collect()
}

/// Of the whole family; the highest is the sum of each one's highest.
fn memory(pid: u32) -> [Option<u64>; 5] {
    let of = |pid: u32| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        let (status, share) = (read("status").ok(), read("smaps_rollup").ok());
        let figure = |text: &Option<String>, name: &str| {
            let line = text.as_ref()?.lines().find(|line| line.starts_with(name))?;
            line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let of_status =
            ["VmRSS:", "VmHWM:", "RssAnon:", "RssFile:"].map(|name| figure(&status, name));
        let [resident, highest, private, of_files] = of_status;
        [resident, highest, private, of_files, figure(&share, "Pss:")]
    };
    let all: Vec<_> = family(pid).into_iter().map(of).collect();
    std::array::from_fn(|n| all.iter().map(|one| one[n]).sum())
}
