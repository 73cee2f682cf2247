//! Driver calls in a process of their own (`--isolate`): one that hangs in the kernel is left
//! behind, and one that the driver's library takes down with it is replaced. The view goes on.

pub mod child;
pub mod wire;

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use self::wire::{Call, Reply, Request};
use crate::ids::Stamp;
use crate::sample::{Tick, signal_words};
use crate::source::{Progress, Source, SourceError, Wants};

/// Processes that hang and cannot be ended, at the most; no other is started then.
const MOST_STUCK: usize = 3;
/// How long a call may take, in intervals.
const INTERVALS: u64 = 10;
/// And in milliseconds: a GPU without persistence mode takes seconds to start.
const PATIENCE_MS: (u64, u64) = (5_000, 60_000);
/// Between two processes, in milliseconds.
const PAUSE_MS: (u64, u64) = (500, 30_000);
/// How long a process that has closed its pipe may take to end.
const END: Duration = Duration::from_millis(500);
/// What is shown before a process has named a call.
const ASKED: &str = "its own process";

/// How the process is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The program; this one.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Between two looks, in milliseconds.
    pub interval_ms: u64,
}

/// A source in a process of its own.
pub struct Isolated {
    plan: Plan,
    progress: Arc<Progress>,
    running: Option<Running>,
    /// Ended by KILL and not gone: they wait in the kernel.
    stuck: Vec<Child>,
    /// The call that hangs, since it first did.
    hangs: Option<Call>,
    pause_ms: u64,
    next_start_ms: u64,
    seq: u64,
    last: Option<SourceError>,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    replies: Receiver<Reply>,
}

/// What came of a request.
enum Outcome {
    Answer(Reply),
    Hangs,
    Died,
}

impl Isolated {
    /// Starts nothing yet: the first look does.
    pub const fn new(plan: Plan, progress: Arc<Progress>) -> Self {
        Self {
            plan,
            progress,
            running: None,
            stuck: Vec::new(),
            hangs: None,
            pause_ms: 0,
            next_start_ms: 0,
            seq: 0,
            last: None,
        }
    }

    /// A process to ask, started where there is none.
    fn running(&mut self, now: Stamp) -> Result<Running, SourceError> {
        if let Some(running) = self.running.take() {
            return Ok(running);
        }
        if let Some(error) = &self.last
            && now.boot_ms < self.next_start_ms
        {
            return Err(error.clone());
        }
        self.reap();
        if self.stuck.len() >= MOST_STUCK {
            return Err(SourceError::Hangs(format!(
                "{} processes hang in the driver and cannot be ended: no other is started before \
                 one of them is gone",
                self.stuck.len()
            )));
        }
        let started = self.plan.start().map_err(|error| {
            SourceError::Died(format!("no process for the driver can be started: {error}"))
        });
        match &started {
            Ok(running) => self.progress.set_apart(running.child.id()),
            Err(error) => self.pause(error.clone(), now),
        }
        started
    }

    fn reap(&mut self) {
        self.stuck.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Leaves the driver alone for a while, longer after each failure.
    fn pause(&mut self, error: SourceError, now: Stamp) {
        self.pause_ms = (self.pause_ms * 2).clamp(PAUSE_MS.0, PAUSE_MS.1);
        self.next_start_ms = now.boot_ms + self.pause_ms;
        self.progress.set_apart(0);
        self.last = Some(error);
    }

    /// Sends a request and waits for what comes of it.
    fn ask(&mut self, running: &mut Running, wants: Wants, now: Stamp) -> Outcome {
        let Wants { pcie, process_utilization, details } = wants;
        let wake = self.progress.take_wake();
        let request = Request { pcie, process_utilization, details, wake };
        if self.hangs.is_none() {
            self.progress.enter(ASKED, None, now.boot_ms);
        }
        // At most one request is under way: the pipe has room for it whatever the child does.
        if wire::write(&mut running.requests, &request).is_err() {
            return Outcome::Died;
        }
        let patience = self.plan.patience();
        let mut end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match running.replies.recv_timeout(left) {
                Ok(Reply::Call(call)) => {
                    // Each call has as long as that.
                    end = Instant::now() + patience;
                    self.show(&call);
                }
                Ok(answer) => return Outcome::Answer(answer),
                Err(RecvTimeoutError::Timeout) => return Outcome::Hangs,
                Err(RecvTimeoutError::Disconnected) => return Outcome::Died,
            }
        }
    }

    /// Says which call is under way. One that already hung in the process before hangs since then.
    fn show(&self, call: &Call) {
        let same = |old: &&Call| old.name == call.name && old.gpu == call.gpu;
        let since = self
            .hangs
            .as_ref()
            .filter(same)
            .map_or(call.since_boot_ms, |old| old.since_boot_ms.min(call.since_boot_ms));
        self.progress.enter(wire::known(&call.name), call.gpu, since);
    }

    /// Ends a process that hangs, without waiting for it.
    fn leave_behind(&mut self, running: Running, now: Stamp) -> SourceError {
        if let Some(call) = self.progress.current() {
            self.hangs = Some(Call::from(&call));
        }
        let Running { mut child, .. } = running;
        let _ = child.kill();
        self.stuck.push(child);
        self.reap();
        let call = self.hangs.as_ref().map_or_else(String::new, |call| {
            let gpu = call.gpu.map(|gpu| format!(" on GPU {gpu}")).unwrap_or_default();
            format!(" in {}{gpu}", call.name)
        });
        let error = SourceError::Hangs(format!(
            "the driver hangs{call}: its process was left behind, another is tried"
        ));
        self.pause(error.clone(), now);
        error
    }

    /// Says how a process ended that nobody had told to.
    fn mourn(&mut self, running: Running, now: Stamp) -> SourceError {
        let Running { mut child, requests, .. } = running;
        drop(requests);
        let end = Instant::now() + END;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => break None,
            }
        };
        let how = if let Some(status) = status {
            match (status.signal(), status.code()) {
                (Some(signal), _) => format!("ended by {}", signal_words(signal)),
                (None, Some(code)) => format!("ended with code {code}"),
                (None, None) => "ended".to_owned(),
            }
        } else {
            let _ = child.kill();
            self.stuck.push(child);
            "closed its pipe".to_owned()
        };
        self.hangs = None;
        self.progress.leave();
        let error = SourceError::Died(format!(
            "the process that asks the driver {how}: another takes its place"
        ));
        self.pause(error.clone(), now);
        error
    }
}

impl Source for Isolated {
    fn next(&mut self, now: Stamp, wants: Wants) -> Result<Option<Tick>, SourceError> {
        let mut running = self.running(now)?;
        match self.ask(&mut running, wants, now) {
            Outcome::Hangs => Err(self.leave_behind(running, now)),
            Outcome::Died => Err(self.mourn(running, now)),
            Outcome::Answer(answer) => {
                self.running = Some(running);
                self.progress.leave();
                (self.hangs, self.last, self.pause_ms) = (None, None, 0);
                match answer {
                    Reply::Gpus(mut tick) => {
                        // One count over all processes, and one clock.
                        (tick.seq, tick.at) = (self.seq, now);
                        self.seq += 1;
                        Ok(Some(Tick::Gpus(tick)))
                    }
                    Reply::Failed(failure) => Err(failure.into()),
                    Reply::Call(_) => Ok(None),
                }
            }
        }
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        let running = self.running.take().map(|running| running.child);
        for mut child in running.into_iter().chain(self.stuck.drain(..)) {
            // What cannot be ended now ends with the call that it hangs in.
            let _ = child.kill();
            let _ = child.try_wait();
        }
    }
}

impl Plan {
    /// This program, by its own file.
    pub fn of_self(arguments: Vec<OsString>, interval_ms: u64) -> Self {
        // By its name where it still has one, so that lists of processes show it.
        let named = std::env::current_exe().ok().filter(|path| path.exists());
        let program = named.map_or_else(|| "/proc/self/exe".into(), OsString::from);
        Self { program, arguments, interval_ms }
    }

    fn patience(&self) -> Duration {
        let ms = self.interval_ms.saturating_mul(INTERVALS).clamp(PATIENCE_MS.0, PATIENCE_MS.1);
        Duration::from_millis(ms)
    }

    fn start(&self) -> io::Result<Running> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The driver's library writes there when it likes.
            .stderr(Stdio::null())
            // Keys of the terminal are not for it.
            .process_group(0)
            .spawn()?;
        let (Some(requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (to, replies) = sync_channel(4);
        let reader = std::thread::Builder::new().name("isolated".to_owned());
        if let Err(error) = reader.spawn(move || read(output, &to)) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        Ok(Running { child, requests, replies })
    }
}

/// Takes lines until there are no more, or one is none.
fn read(output: ChildStdout, to: &SyncSender<Reply>) {
    let mut lines = BufReader::new(output);
    while let Ok(Some(reply)) = wire::read(&mut lines) {
        if to.send(reply).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Stamp = Stamp { boot_ms: 1_000_000, wall_ms: 0 };

    fn shell(script: &str) -> Isolated {
        let plan = Plan {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            interval_ms: 1,
        };
        Isolated::new(plan, Arc::default())
    }

    fn refusal(source: &mut Isolated, now: Stamp) -> SourceError {
        source.next(now, Wants::default()).unwrap_err()
    }

    #[test]
    fn the_end_of_a_process_is_told_and_the_next_is_not_started_at_once() {
        for (script, how) in [
            ("exit 3", "ended with code 3"),
            ("kill -SEGV $$", "ended by signal SEGV"),
            ("read line; echo nonsense; exec sleep 600", "closed its pipe"),
            ("exec sleep 600 >&-", "closed its pipe"),
        ] {
            let mut source = shell(script);
            let error = refusal(&mut source, NOW);
            assert!(matches!(&error, SourceError::Died(text) if text.contains(how)), "{error}");
            // Within the pause nobody is asked.
            assert_eq!(refusal(&mut source, NOW), error);
            assert_eq!(source.pause_ms, PAUSE_MS.0);
            let later = Stamp { boot_ms: NOW.boot_ms + PAUSE_MS.0, ..NOW };
            refusal(&mut source, later);
            assert_eq!(source.pause_ms, 2 * PAUSE_MS.0);
            assert_eq!(source.progress.current(), None);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        let mut source = shell("");
        source.plan.program = "/nowhere/vramlens".into();
        assert!(refusal(&mut source, NOW).to_string().contains("can be started"));
    }

    #[test]
    fn a_counted_few_hang_at_the_most() {
        let mut source = shell("exit 3");
        for _ in 0..MOST_STUCK {
            source.stuck.push(Command::new("sleep").arg("600").spawn().unwrap());
        }
        let error = refusal(&mut source, NOW);
        assert!(matches!(&error, SourceError::Hangs(text) if text.contains("3 processes")));
        assert_eq!(source.pause_ms, 0, "one was started");
        // One of them is gone: another may be started.
        source.stuck[0].kill().unwrap();
        source.stuck[0].wait().unwrap();
        assert!(matches!(refusal(&mut source, NOW), SourceError::Died(_)));
        for child in &mut source.stuck {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_patience_follows_the_interval_within_bounds() {
        let of = |interval_ms| {
            Plan { program: OsString::new(), arguments: Vec::new(), interval_ms }.patience()
        };
        assert_eq!(of(100), Duration::from_secs(5));
        assert_eq!(of(1_000), Duration::from_secs(10));
        assert_eq!(of(3_600_000), Duration::from_mins(1));
    }
}
