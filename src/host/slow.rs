//! Reads that can hang. `cmdline`, `environ` and `maps` of a process wait for locks that a thread
//! of it may hold while it hangs in the kernel, and a user's name may come from a dead network. They
//! are made on a thread that is abandoned when it does not answer in time.

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
    /// How long one question may take.
    pub patience: Duration,
}

impl Slow {
    pub fn new(root: &Root, patience: Duration) -> Self {
        Self {
            root: root.clone(),
            worker: None,
            abandoned: Arc::new(AtomicUsize::new(0)),
            patience,
        }
    }

    /// Asks one after the other and hands each outcome to `take`, until all are asked or `budget`
    /// is spent. What was not reached is simply not answered.
    pub fn ask(&mut self, jobs: &[Job], budget: Duration, mut take: impl FnMut(Outcome)) {
        let end = Instant::now() + budget;
        let mut left = jobs;
        while !left.is_empty() && Instant::now() < end {
            let Some(answered) = self.batch(left, end, &mut take) else { return };
            left = left.get(answered..).unwrap_or_default();
        }
    }

    /// Hands all questions over at once, so that the threads need not take turns for each. Gives
    /// how many are done with: fewer where one hangs, which is the last of them.
    fn batch(
        &mut self,
        jobs: &[Job],
        end: Instant,
        take: &mut impl FnMut(Outcome),
    ) -> Option<usize> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.start()?,
        };
        worker.ask.send(jobs.to_vec()).ok()?;
        for (n, job) in jobs.iter().enumerate() {
            if n > 0 && Instant::now() >= end {
                // The rest of the answers are not waited for: their thread ends.
                return None;
            }
            match worker.answers.recv_timeout(self.patience) {
                Ok(answer) => take(Outcome::Answered(answer)),
                Err(RecvTimeoutError::Timeout) => {
                    take(Outcome::Hung(*job));
                    return Some(n + 1);
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.worker = Some(worker);
        Some(jobs.len())
    }

    fn start(&self) -> Option<Worker> {
        if self.abandoned.load(Ordering::Relaxed) > MOST_ABANDONED {
            return None;
        }
        let (ask, jobs) = sync_channel(1);
        let (answer, answers) = sync_channel(AHEAD);
        let (root, running) = (self.root.clone(), Arc::clone(&self.abandoned));
        running.fetch_add(1, Ordering::Relaxed);
        let body = move || {
            let answers = jobs.iter().flatten().map(|job| perform(&root, job));
            for one in answers {
                if answer.send(one).is_err() {
                    break;
                }
            }
            running.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = std::thread::Builder::new().name("proc-slow".to_owned());
        let spawned = thread.stack_size(STACK).spawn(body);
        if spawned.is_err() {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Worker { ask, answers })
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Want = Want { arguments: true, environment: true, maps: true, written: true };

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir_all(root.path("proc/7")).unwrap();
        (dir, root)
    }

    #[test]
    fn facts_are_read() {
        let (_dir, root) = tree();
        std::fs::write(root.of(Pid(7), "cmdline"), b"python\0train.py\0\0\0").unwrap();
        std::fs::write(root.of(Pid(7), "environ"), b"RANK=3\0HOME=/x\0").unwrap();
        std::fs::write(root.of(Pid(7), "io"), "rchar: 9\nwrite_bytes: 4096\n").unwrap();
        std::fs::write(
            root.of(Pid(7), "maps"),
            "7f0-7f1 r--p 0 fe:0 9 /m/a.gguf\n7f1-7f2 r--p 0 fe:0 9 /m/a.gguf\n\
             7f2-7f3 rw-s 0 0:6 9    /dev/nvidia0\n7f3-7f4 rw-p 0 0:0 0 [heap]\n",
        )
        .unwrap();
        let mut slow = Slow::new(&root, Duration::from_secs(5));
        let mut seen = 0;
        slow.ask(&[Job::Process(Pid(7), ALL)], Duration::from_secs(5), |outcome| {
            let Outcome::Answered(Answer::Process(Pid(7), facts)) = outcome else {
                panic!("{outcome:?}")
            };
            let arguments = ["python", "train.py"].map(ToOwned::to_owned).to_vec();
            assert_eq!(facts.arguments, Some(Reading::Value(arguments)));
            assert_eq!(facts.environment.unwrap().value().unwrap()[0].value, "3");
            assert_eq!(facts.written, Some(Reading::Value(Bytes(4096))));
            let mapped = Mapped { models: vec!["/m/a.gguf".to_owned()], devices: 1 };
            assert_eq!(facts.mapped, Some(Reading::Value(mapped)));
            seen += 1;
        });
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_hanging_read_is_given_up_and_the_next_one_answers() {
        let (_dir, root) = tree();
        std::fs::create_dir_all(root.path("proc/8")).unwrap();
        std::fs::write(root.of(Pid(8), "cmdline"), b"sh\0").unwrap();
        // Opening a FIFO that nobody writes to waits for ever.
        let fifo = root.of(Pid(7), "cmdline");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut slow = Slow::new(&root, Duration::from_millis(50));
        let want = Want { arguments: true, ..Want::default() };
        let jobs = [Job::Process(Pid(7), want), Job::Process(Pid(8), want)];
        let mut outcomes = Vec::new();
        slow.ask(&jobs, Duration::from_secs(20), |outcome| outcomes.push(outcome));
        assert!(matches!(outcomes[0], Outcome::Hung(Job::Process(Pid(7), _))), "{outcomes:?}");
        assert!(matches!(outcomes[1], Outcome::Answered(Answer::Process(Pid(8), _))));
        // However often it hangs, the number of waiting threads is bounded.
        for _ in 0..10 {
            slow.ask(&jobs[..1], Duration::from_secs(20), |_| {});
        }
        assert!(slow.abandoned.load(Ordering::Relaxed) <= MOST_ABANDONED + 1);
        // Once they return, questions are answered again.
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut answered = false;
        while !answered && Instant::now() < deadline {
            drop(std::fs::OpenOptions::new().read(true).write(true).open(&fifo));
            slow.ask(&jobs[1..], Duration::from_secs(1), |outcome| {
                answered = matches!(outcome, Outcome::Answered(_));
            });
        }
        assert!(answered);
    }

    #[test]
    fn real_processes_and_users_answer() {
        let mut slow = Slow::new(&Root::machine(), Duration::from_secs(5));
        let own = Pid(std::process::id());
        let mut count = 0;
        let jobs = [Job::Process(own, ALL), Job::User(0)];
        slow.ask(&jobs, Duration::from_secs(10), |outcome| {
            match outcome {
                Outcome::Answered(Answer::Process(pid, facts)) => {
                    assert_eq!(pid, own);
                    assert!(facts.arguments.unwrap().value().is_some_and(|list| !list.is_empty()));
                    assert!(facts.mapped.unwrap().value().is_some());
                }
                Outcome::Answered(Answer::User(uid, name)) => {
                    assert_eq!((uid, name), (0, Reading::Value("root".to_owned())));
                }
                Outcome::Hung(job) => panic!("{job:?}"),
            }
            count += 1;
        });
        assert_eq!(count, 2);
    }
}
