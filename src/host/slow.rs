//! Reads that can hang. `cmdline`, `environ` and `maps` of a process wait for locks that a thread
//! of it may hold while it hangs in the kernel, and a user's name may come from a dead network. They
//! are made on a thread that is abandoned when it does not answer in time.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::host::root::{self, Root};
use crate::host::{environment, models};
use crate::ids::Pid;
use crate::sample::{EnvVar, Reading, Why};
use crate::units::Bytes;

const CMDLINE_LIMIT: usize = 16 << 10;
const MOST_ARGUMENTS: usize = 512;
const ENVIRON_LIMIT: usize = 256 << 10;
const MAPS_LIMIT: u64 = 16 << 20;
const MOST_MODELS: usize = 64;
/// Abandoned threads that may wait in the kernel at a time. With more, nothing is asked any more
/// until one returns.
const MOST_ABANDONED: usize = 4;
/// Answers that wait to be taken.
const AHEAD: usize = 64;
/// So many questions are handed over while others are still being gathered, so often at the most.
const AT_ONCE: usize = 16;
const BATCHES: usize = 256;
/// Names of users come from libraries of the system, which are not frugal.
const STACK: usize = 512 << 10;

/// What is wanted of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Want {
    pub arguments: bool,
    pub environment: bool,
    pub maps: bool,
    pub written: bool,
}

impl Want {
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    Process(Pid, Want),
    User(u32),
}

/// Its answer; what was not wanted is `None`.
#[derive(Debug)]
pub(super) enum Answer {
    Process(Pid, Box<Facts>),
    User(u32, Reading<String>),
}

/// Facts of a process.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub arguments: Option<Reading<Vec<String>>>,
    pub environment: Option<Reading<Vec<EnvVar>>>,
    pub mapped: Option<Reading<Mapped>>,
    pub written: Option<Reading<Bytes>>,
}

/// What a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mapped {
    pub models: Vec<String>,
    /// Mappings of NVIDIA's devices, by name: the file's numbers are not in `maps`.
    pub devices: u32,
}

/// What became of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Answer),
    /// It hangs.
    Hung(Job),
}

struct Worker {
    ask: SyncSender<Vec<Job>>,
    answers: Receiver<Answer>,
}

/// The helper thread and the time it gets.
pub(super) struct Slow {
    root: Root,
    worker: Option<Worker>,
    abandoned: Arc<AtomicUsize>,
    /// Questions without an outcome, and how many of them, from the first, the thread has.
    waiting: VecDeque<Job>,
    handed_over: usize,
    /// Answers that came while others were being gathered: the thread need not wait for room.
    answered: Vec<Answer>,
    /// How long one question may take.
    pub patience: Duration,
}

impl Slow {
    pub fn new(root: &Root, patience: Duration) -> Self {
        Self {
            root: root.clone(),
            worker: None,
            abandoned: Arc::new(AtomicUsize::new(0)),
            waiting: VecDeque::new(),
            handed_over: 0,
            answered: Vec::new(),
            patience,
        }
    }

    /// A question for the next [`Slow::ask`]. Where there are many of them, the thread begins at once.
    pub fn begin(&mut self, job: Job) {
        self.waiting.push_back(job);
        if self.waiting.len() - self.handed_over >= AT_ONCE {
            self.hand_over();
            let answers = self.worker.iter().flat_map(|worker| worker.answers.try_iter());
            let before = self.answered.len();
            self.answered.extend(answers);
            let count = self.answered.len() - before;
            self.waiting.drain(..count);
            self.handed_over -= count;
        }
    }

    /// Asks one after the other, those that were begun first, and hands each outcome to `take`, until
    /// all are asked or `budget` is spent. What was not reached is simply not answered.
    pub fn ask(&mut self, jobs: Vec<Job>, budget: Duration, mut take: impl FnMut(Outcome)) {
        let end = Instant::now() + budget;
        self.waiting.extend(jobs);
        let mut in_time = true;
        for answer in self.answered.drain(..) {
            take(Outcome::Answered(answer));
        }
        while in_time && let Some(job) = self.waiting.front().copied() {
            self.hand_over();
            let Some(worker) = self.worker.as_ref().filter(|_| self.handed_over > 0) else { break };
            match worker.answers.recv_timeout(self.patience) {
                Ok(answer) => {
                    self.handed_over -= 1;
                    take(Outcome::Answered(answer));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.leave_behind();
                    take(Outcome::Hung(job));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.waiting.pop_front();
            in_time = Instant::now() < end;
        }
        if !self.waiting.is_empty() {
            // The rest of the answers are not waited for: their thread ends.
            self.leave_behind();
            self.waiting.clear();
        }
    }

    fn leave_behind(&mut self) {
        self.worker = None;
        self.handed_over = 0;
    }

    /// Hands over all questions at once, so that the threads need not take turns for each.
    fn hand_over(&mut self) {
        if self.handed_over == self.waiting.len() {
            return;
        }
        if self.worker.is_none() {
            self.worker = self.start();
        }
        let Some(worker) = &self.worker else { return };
        let batch = self.waiting.iter().skip(self.handed_over).copied().collect();
        // With no room the thread has enough to do; they come with the next ones.
        if worker.ask.try_send(batch).is_ok() {
            self.handed_over = self.waiting.len();
        }
    }

    fn start(&self) -> Option<Worker> {
        if self.abandoned.load(Ordering::Relaxed) > MOST_ABANDONED {
            return None;
        }
        let (ask, jobs) = sync_channel(BATCHES);
        let (answer, answers) = sync_channel(AHEAD);
        let (root, running) = (self.root.clone(), Running::new(&self.abandoned));
        let body = move || {
            let _until_it_ends = running;
            let answers = jobs.iter().flatten().map(|job| perform(&root, job));
            for one in answers {
                if answer.send(one).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("proc-slow".to_owned());
        thread.stack_size(STACK).spawn(body).ok()?;
        Some(Worker { ask, answers })
    }
}

/// Counts a thread for as long as it is there, however it ends.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn perform(root: &Root, job: Job) -> Answer {
    match job {
        Job::User(uid) => Answer::User(uid, user(uid)),
        Job::Process(pid, want) => {
            let facts = Facts {
                arguments: want.arguments.then(|| arguments(root, pid).into()),
                environment: want.environment.then(|| {
                    root::read(&root.of(pid, "environ"), ENVIRON_LIMIT)
                        .map(|bytes| environment::parse(&bytes))
                        .into()
                }),
                mapped: want.maps.then(|| maps(root, pid).into()),
                written: want.written.then(|| written(root, pid).into()),
            };
            Answer::Process(pid, Box::new(facts))
        }
    }
}

fn user(uid: u32) -> Reading<String> {
    match nix::unistd::User::from_uid(uid.into()) {
        Ok(Some(user)) => Reading::Value(user.name),
        Ok(None) => Reading::Absent(Why::NotSupported),
        Err(errno) => Reading::Absent(Why::Failed(errno as i32)),
    }
}

/// A program that renames itself leaves one string with spaces, or zero bytes at the end.
fn arguments(root: &Root, pid: Pid) -> Result<Vec<String>, Why> {
    let bytes = root::read(&root.of(pid, "cmdline"), CMDLINE_LIMIT)?;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let bytes = bytes.get(..end).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    Ok(bytes.split(|byte| *byte == 0).take(MOST_ARGUMENTS).map(root::lossy).collect())
}

fn written(root: &Root, pid: Pid) -> Result<Bytes, Why> {
    let text = root::text(&root.of(pid, "io"), 1024)?;
    text.lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))
        .and_then(|value| value.trim().parse().ok())
        .map(Bytes)
        .ok_or(Why::NotSupported)
}

fn maps(root: &Root, pid: Pid) -> Result<Mapped, Why> {
    let file = std::fs::File::open(root.of(pid, "maps")).map_err(|error| root::why(&error))?;
    let mut reader = BufReader::with_capacity(64 << 10, file.take(MAPS_LIMIT));
    let mut mapped = Mapped::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // The kernel escapes newlines in names, so a line is a mapping.
        if reader.read_until(b'\n', &mut line).map_err(|error| root::why(&error))? == 0 {
            return Ok(mapped);
        }
        let Some(slash) = memchr::memchr(b'/', &line) else { continue };
        let path = root::lossy(line.get(slash..).unwrap_or_default().trim_ascii_end());
        if path.starts_with("/dev/nvidia") {
            mapped.devices = mapped.devices.saturating_add(1);
        } else if mapped.models.len() < MOST_MODELS
            && mapped.models.last() != Some(&path)
            && models::is_model(&path)
            && !mapped.models.contains(&path)
        {
            mapped.models.push(path);
        }
    }
}
