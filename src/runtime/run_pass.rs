//! The bytes of a command on their way: read, written, and only then looked at.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::runtime::run_seen::Watch;

/// As much as a pipe holds.
const CHUNK: usize = 64 << 10;
/// More than a pipe or a terminal holds: whatever the command wrote before it ended is within the
/// first so many bytes after its end.
const HELD: usize = 1 << 20;

/// One way of bytes.
pub struct Way {
    /// Where they come from.
    pub from: OwnedFd,
    /// Where they go.
    pub to: OwnedFd,
    /// Whether a terminal stands between, which may hand bytes on a moment after they were written.
    pub terminal: bool,
}

/// What has come of one way.
pub struct Passed {
    /// Who has looked at the bytes.
    pub watch: Box<dyn Watch>,
    /// Whether an out-of-memory error went by.
    pub hit: bool,
    /// The last byte.
    pub last: Option<u8>,
}

/// Called when an out-of-memory error has just gone by.
pub type OnSeen = Arc<dyn Fn() + Send + Sync>;

/// Starts to pass bytes on, until the writers are gone; once `ended` hangs up, until nothing is
/// left of what the command wrote. `done` is closed at the end.
///
/// # Errors
/// Where no thread is to be had.
pub fn spawn(
    name: &str,
    way: Way,
    ended: OwnedFd,
    done: OwnedFd,
    watch: Box<dyn Watch>,
    on_seen: OnSeen,
) -> io::Result<JoinHandle<Passed>> {
    let pass = Pass { way, ended, watch, on_seen, hit: false, last: None, after_end: None };
    std::thread::Builder::new().name(name.to_owned()).stack_size(512 * 1024).spawn(move || {
        let passed = pass.run();
        drop(done);
        passed
    })
}

struct Pass {
    way: Way,
    ended: OwnedFd,
    watch: Box<dyn Watch>,
    on_seen: OnSeen,
    hit: bool,
    last: Option<u8>,
    /// Bytes since the command ended.
    after_end: Option<usize>,
}

impl Pass {
    fn run(mut self) -> Passed {
        let mut buffer = vec![0; CHUNK];
        while self.wait() {
            let n = match nix::unistd::read(&self.way.from, &mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(Errno::EINTR | Errno::EAGAIN) => continue,
                // A terminal whose other side is closed; nothing more will come of others either.
                Err(_) => break,
            };
            let bytes = buffer.get(..n).unwrap_or_default();
            if write_all(self.way.to.as_fd(), bytes).is_err() {
                // Nobody reads: the command shall know, as it would without anything between.
                break;
            }
            self.last = bytes.last().copied();
            if self.watch.feed(bytes) {
                self.hit = true;
                (self.on_seen)();
            }
            if let Some(sum) = &mut self.after_end {
                *sum += n;
            }
        }
        drop(self.way);
        Passed { watch: self.watch, hit: self.hit, last: self.last }
    }

    /// Waits for bytes. No when none will come that are worth the wait.
    fn wait(&mut self) -> bool {
        loop {
            if self.after_end.is_some_and(|sum| sum >= HELD) {
                return false;
            }
            let from = PollFd::new(self.way.from.as_fd(), PollFlags::POLLIN);
            let ended = PollFd::new(self.ended.as_fd(), PollFlags::POLLIN);
            let mut fds = [from, ended];
            // Once it has hung up there is nothing more to learn of that one.
            let (watched, limit) = match self.after_end {
                None => (2, PollTimeout::NONE),
                Some(_) if self.way.terminal => (1, PollTimeout::from(30_u8)),
                Some(_) => (1, PollTimeout::ZERO),
            };
            match poll(fds.get_mut(..watched).unwrap_or_default(), limit) {
                Ok(0) => return false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
            let came = |fd: Option<&PollFd<'_>>| {
                fd.and_then(PollFd::revents).is_some_and(|events| !events.is_empty())
            };
            let (bytes, end) = (came(fds.first()), came(fds.get(1)));
            if end {
                self.after_end = Some(0);
            }
            if bytes {
                return true;
            }
        }
    }
}

/// Also where somebody made the output non-blocking.
fn write_all(out: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match nix::unistd::write(out, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut fds = [PollFd::new(out, PollFlags::POLLOUT)];
                let _ = poll(&mut fds, PollTimeout::NONE);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether keys are the command's at present.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Opens or shuts it.
    pub fn set(&self, open: bool) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
        self.changed.notify_all();
    }

    fn is_open(&self) -> bool {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.changed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts to pass keys on from standard input. The thread is never joined: it ends with the program.
///
/// # Errors
/// Where no thread is to be had.
pub fn spawn_keys(to: OwnedFd, gate: Arc<Gate>) -> io::Result<()> {
    let from = io::stdin().as_fd().try_clone_to_owned()?;
    let thread = std::thread::Builder::new().name("pass-in".to_owned()).stack_size(128 * 1024);
    thread.spawn(move || pass_keys(&from, &to, &gate)).map(drop)
}

fn pass_keys(from: &OwnedFd, to: &OwnedFd, gate: &Gate) {
    let mut buffer = [0; 4096];
    loop {
        gate.wait();
        let mut fds = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            continue;
        }
        // What was typed meanwhile may be the shell's.
        if !gate.is_open() {
            continue;
        }
        match nix::unistd::read(from, &mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                if write_all(to.as_fd(), buffer.get(..n).unwrap_or_default()).is_err() {
                    return;
                }
            }
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            // In the background, since a moment.
            Err(Errno::EIO) if !gate.is_open() => {}
            Err(_) => return,
        }
    }
}

/// Ends the line that the command left open, so that a report begins on one of its own.
pub fn end_line(last: Option<u8>) {
    if last.is_some_and(|byte| byte != b'\n') {
        let _ = io::stderr().write_all(b"\n");
    }
}
