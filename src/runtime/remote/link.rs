//! The connection to one machine, on threads of its own: started, read, waited for, started again.

use std::io::{self, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::record::{Arrival, ReadError, Request, Stream};
use crate::runtime::remote::backoff::Backoff;
use crate::runtime::remote::inbox::{Came, Inbox, LinkState};
use crate::runtime::remote::{Host, Setup};

/// Requests that wait at the most for a link that does not drain.
const REQUESTS: usize = 16;
/// Bytes that are kept of standard error.
const SAID: usize = 4096;
/// Lines of a stream in a second, beyond which it is read no faster. Ten looks a second of both
/// kinds, and what a kill of hundreds says.
const LINES_PER_SECOND: u32 = 250;
/// How long a program may take to end after its stream has.
const LEAVES: Duration = Duration::from_secs(2);
/// How long its last words are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// A stream that lasted this long was there.
const STEADY: Duration = Duration::from_mins(1);
const STACK: usize = 512 << 10;

/// A link, seen from the loop.
pub struct Link {
    /// What came.
    pub inbox: Arc<Inbox>,
    control: Arc<Control>,
}

#[derive(Default)]
struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    retry: bool,
    child: Option<Child>,
    requests: Option<SyncSender<Vec<u8>>>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a request cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no link.
    #[error("there is no connection")]
    Away,
    /// It does not drain.
    #[error("the connection does not drain")]
    Full,
}

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(host: Host, setup: Arc<Setup>, bell: Arc<Notify>) -> io::Result<Self> {
        let inbox = Arc::new(Inbox::new(bell));
        let control = Arc::new(Control::default());
        let worker =
            Worker { host, setup, inbox: Arc::clone(&inbox), control: Arc::clone(&control) };
        thread::Builder::new()
            .name("link".to_owned())
            .stack_size(STACK * 4)
            .spawn(move || worker.run())?;
        Ok(Self { inbox, control })
    }

    /// Sends a request, without waiting.
    ///
    /// # Errors
    /// Where there is no link, or it does not drain.
    pub fn send(&self, request: &Request) -> Result<(), SendError> {
        let mut line = serde_json::to_vec(request).map_err(|_unwritable| SendError::Away)?;
        line.push(b'\n');
        let state = self.control.lock();
        let Some(requests) = &state.requests else { return Err(SendError::Away) };
        requests.try_send(line).map_err(|error| match error {
            TrySendError::Full(_) => SendError::Full,
            TrySendError::Disconnected(_) => SendError::Away,
        })
    }

    /// Tries again now; what is under way is given up.
    pub fn retry(&self) {
        let mut state = self.control.lock();
        state.retry = true;
        if let Some(child) = &mut state.child {
            // The thread that reads its output reaps it.
            let _ = child.kill();
        }
        drop(state);
        self.control.changed.notify_all();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.inbox.close();
        let mut state = self.control.lock();
        state.closed = true;
        // Its standard input ends, and with that the far end.
        state.requests = None;
        if let Some(child) = &mut state.child {
            // The thread that reads its output reaps it; nothing waits for it here.
            let _ = child.kill();
        }
        self.control.changed.notify_all();
    }
}

struct Worker {
    host: Host,
    setup: Arc<Setup>,
    inbox: Arc<Inbox>,
    control: Arc<Control>,
}

/// How a stream has ended.
struct Ended {
    why: String,
    /// Whether it had begun.
    begun: bool,
    /// Whether the far end does not know what it was asked for.
    older: bool,
}

impl Worker {
    fn run(self) {
        let mut backoff = Backoff::default();
        let mut answers = true;
        while self.inbox.put(Came::Link(LinkState::Connecting)) {
            let began = Instant::now();
            self.control.lock().retry = false;
            let ended = self.session(answers);
            if ended.older && answers {
                answers = false;
                continue;
            }
            answers = true;
            if ended.begun && began.elapsed() >= STEADY {
                backoff.reset();
            }
            let wait = backoff.wait();
            let retry_at = Instant::now() + wait;
            if !self.inbox.put(Came::Link(LinkState::Away { why: ended.why, retry_at })) {
                return;
            }
            if self.pause(wait) {
                backoff.reset();
            }
        }
    }

    /// Waits; yes where the user wants it tried now.
    fn pause(&self, wait: Duration) -> bool {
        let quiet = |state: &mut State| !state.closed && !state.retry;
        let state = self.control.lock();
        let waited = self.control.changed.wait_timeout_while(state, wait, quiet);
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0.retry)
    }

    /// One connection, from its start to its end.
    fn session(&self, answers: bool) -> Ended {
        let mut command = self.host.command(&self.setup, answers);
        let program = command.get_program().to_string_lossy().into_owned();
        let started =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                let why = format!("{program} cannot be started: {error}");
                return Ended { why, begun: false, older: false };
            }
        };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (requests, requests_in) = sync_channel(REQUESTS);
        {
            let mut state = self.control.lock();
            if state.closed {
                let _ = child.kill();
                let _ = child.wait();
                return Ended { why: String::new(), begun: false, older: false };
            }
            (state.child, state.requests) = (Some(child), Some(requests));
        }
        let said = Arc::new(Mutex::new(Vec::new()));
        let listener = stderr.and_then(|stderr| {
            let to = Arc::clone(&said);
            spawn("said", move || listen(stderr, &to))
        });
        if let Some(stdin) = stdin {
            spawn("ask", move || ask(stdin, &requests_in));
        }
        let (begun, error) = stdout.map_or((false, None), |stdout| self.read(stdout, answers));
        let code = self.leave();
        // Its last words come a moment later; a process that outlives it may keep them open.
        let end = Instant::now() + LAST_WORDS;
        while listener.as_ref().is_some_and(|one| !one.is_finished()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        let said = String::from_utf8_lossy(&lock(&said)).into_owned();
        let older = !begun && code == Some(2) && said.contains("--answer");
        let why = why(&said, error.as_ref(), code, begun);
        Ended { why, begun, older }
    }

    /// Reads the stream to its end; whether it has begun, and what was wrong with it.
    fn read(&self, stdout: impl Read, answers: bool) -> (bool, Option<ReadError>) {
        let (mut begun, mut second, mut lines) = (false, Instant::now(), 0);
        for arrival in Stream::new(stdout) {
            let goes_on = match arrival {
                Err(error) => return (begun, Some(error)),
                Ok(Arrival::Header(header)) => {
                    begun = true;
                    let older = Came::Link(LinkState::Older);
                    self.inbox.put(Came::Header(header)) && (answers || self.inbox.put(older))
                }
                Ok(Arrival::Tick(tick)) => {
                    self.inbox.tick(tick);
                    !self.inbox.is_closed()
                }
                Ok(Arrival::Note(note)) => self.inbox.put(Came::Note(note)),
            };
            if !goes_on {
                return (begun, None);
            }
            lines += 1;
            if second.elapsed() >= Duration::from_secs(1) {
                (second, lines) = (Instant::now(), 0);
            } else if lines > LINES_PER_SECOND {
                thread::sleep(Duration::from_secs(1).saturating_sub(second.elapsed()));
            }
        }
        (begun, None)
    }

    /// Lets the program end, or ends it; gives its exit code.
    fn leave(&self) -> Option<i32> {
        let end = Instant::now() + LEAVES;
        let mut state = self.control.lock();
        state.requests = None;
        loop {
            let closed = state.closed;
            let child = state.child.as_mut()?;
            match child.try_wait() {
                Ok(None) if Instant::now() < end && !closed => {}
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    state.child = None;
                    return None;
                }
                Ok(Some(status)) => {
                    state.child = None;
                    return status.code();
                }
                Err(_) => return None,
            }
            drop(state);
            thread::sleep(Duration::from_millis(20));
            state = self.control.lock();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    // Without a thread the far end's words, or requests, are missing; its figures still come.
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).ok()
}

fn lock(said: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the end of what the program says.
fn listen(mut stderr: impl Read, to: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut bytes) {
        let mut said = lock(to);
        said.extend_from_slice(bytes.get(..count).unwrap_or_default());
        let excess = said.len().saturating_sub(SAID);
        said.drain(..excess);
    }
}

fn ask(mut stdin: impl Write, requests: &Receiver<Vec<u8>>) {
    for line in requests {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Why it is away, in words that say what to do where that is known.
fn why(said: &str, error: Option<&ReadError>, code: Option<i32>, begun: bool) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let shown = |line: &str| crate::sample::text::clean(line).chars().take(300).collect::<String>();
    match (error, code) {
        (Some(error @ ReadError::Schema(_)), _) => format!("{error}"),
        (Some(ReadError::Io(error)), _) => format!("its stream cannot be read: {error}"),
        (_, Some(126 | 127)) if !begun => {
            "vramlens cannot be started there: install it, or name its path in [remote] command"
                .to_owned()
        }
        (_, Some(3)) => lines.next().map_or_else(|| "no GPU can be read there".to_owned(), shown),
        _ => match (lines.next_back(), code) {
            (Some(line), _) => shown(&brief(line)),
            (None, _) if error.is_some() => "what it sends is no recording".to_owned(),
            (None, Some(code)) if code != 0 => format!("it ended with exit code {code}"),
            (None, _) => "the connection ended".to_owned(),
        },
    }
}

/// What ssh says, without what is known: which program says it, and of which machine.
fn brief(line: &str) -> String {
    let parts = line.strip_prefix("ssh: connect to host ").and_then(|rest| {
        let (port, why) = rest.split_once(" port ")?.1.split_once(": ")?;
        Some(format!("{why} (port {port})"))
    });
    parts.unwrap_or_else(|| line.strip_prefix("ssh: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_made_clean_or_what_to_do() {
        let last = "Warning: x\r\nssh: connect to host box port 22: Connection refused\r\n\n";
        assert_eq!(why(last, None, Some(255), false), "Connection refused (port 22)");
        assert_eq!(why("ssh: no route\n", None, Some(255), false), "no route");
        assert_eq!(why("a\x1b[2Jb\n", None, Some(255), false), "a␛[2Jb");
        assert!(why("sh: vramlens: not found\n", None, Some(127), false).contains("[remote]"));
        assert_eq!(why("No GPU.\nhint\n", None, Some(3), false), "No GPU.");
        assert_eq!(why("", None, Some(1), true), "it ended with exit code 1");
        assert_eq!(why("", None, None, true), "the connection ended");
        let none = Some(&ReadError::NotARecording);
        assert_eq!(why("", none, Some(0), false), "what it sends is no recording");
    }
}
