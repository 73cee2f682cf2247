//! A command under way: its output on its way through, its signals, its stops and its end.
//!
//! With a terminal on both sides the command gets a terminal of its own, a session on it, and a
//! monitor as its parent; the user's terminal is raw meanwhile, and keys pass as they are. In any
//! other case the command stays in this process's group, where the terminal's own signals reach it
//! without help, has the same standard input, and writes into a pipe, or into a terminal that
//! changes nothing.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::unistd::{getpgrp, getpid};

use crate::oom::Explanation;
use crate::runtime::child::{self, Change};
use crate::runtime::run_monitor::Told;
use crate::runtime::run_pass::{self, OnSeen, Passed};
use crate::runtime::run_seen::Watch;
use crate::runtime::run_start::{self, Started};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// With this code.
    Exited(u8),
    /// By this signal.
    Killed(i32),
}

impl How {
    /// The code that a shell gives for it.
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// A command that has ended.
pub struct Ended {
    /// How.
    pub how: How,
    /// Whether its output had an out-of-memory error.
    pub hit: bool,
    /// What its output says of lack of memory; looked for where it ended badly.
    pub message: Option<Explanation>,
    /// The last byte on a stream that shares the place of this program's messages.
    pub last: Option<u8>,
}

/// Who is who: what the measuring side needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// The command.
    pub pid: u32,
    /// The session that is the command's own.
    pub session: Option<u32>,
}

/// A running command.
pub struct Job {
    started: Started,
    signals: SignalFd,
    pending: VecDeque<siginfo>,
    ways: Vec<JoinHandle<Passed>>,
    /// Hung up at the command's end, for those who pass its output on.
    ended: Option<OwnedFd>,
    done: OwnedFd,
    how: Option<How>,
}

/// What this process waits for instead of dying of it.
fn caught() -> SigSet {
    let mut set = SigSet::empty();
    for signal in FORWARDED.into_iter().chain([
        Signal::SIGTSTP,
        Signal::SIGCONT,
        Signal::SIGWINCH,
        Signal::SIGCHLD,
    ]) {
        set.add(signal);
    }
    set
}

const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Signals that wait to be dealt with, instead of ending this process.
pub struct Caught {
    before: SigSet,
    signals: SignalFd,
}

impl Caught {
    /// Begins. Call it before there are other threads.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn begin() -> io::Result<Self> {
        let before = SigSet::thread_get_mask()?;
        let mut blocked = caught();
        if run_start::on_terminal() {
            // The inner terminal's business; this process looks before it touches the outer one.
            blocked.add(Signal::SIGTTIN);
            blocked.add(Signal::SIGTTOU);
        }
        blocked.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { before, signals: SignalFd::with_flags(&caught(), flags)? })
    }
}

impl Job {
    /// Starts the command. `watch` makes who looks at a stream; `on_seen` is called when one has
    /// found something.
    ///
    /// # Errors
    /// Where the command cannot be started, with the system's number for why; or where threads and
    /// pipes are not to be had.
    pub fn start(
        caught: Caught,
        command: &[OsString],
        watch: &dyn Fn() -> Box<dyn Watch>,
        on_seen: &OnSeen,
    ) -> io::Result<Self> {
        let (started, streams) = run_start::start(command, caught.before)?;
        let (end_in, ended) = pipe()?;
        let (done, done_out) = pipe()?;
        let mut ways = Vec::new();
        for (name, way) in streams {
            let (ended, done) = (end_in.try_clone()?, done_out.try_clone()?);
            ways.push(run_pass::spawn(name, way, ended, done, watch(), Arc::clone(on_seen))?);
        }
        let signals = caught.signals;
        let pending = VecDeque::new();
        Ok(Self { started, signals, pending, ways, ended: Some(ended), done, how: None })
    }

    /// Who runs.
    pub fn root(&self) -> Root {
        self.started.root()
    }

    /// Waits for the command's end, and for its output to be delivered.
    ///
    /// # Errors
    /// Where waiting itself fails.
    pub fn wait(mut self) -> io::Result<Ended> {
        loop {
            while let Some(info) = self.pending.pop_front() {
                self.signal(&info);
                if self.how.is_some() && is_end(&info) {
                    // Whoever reads the output does not; somebody wants this to end all the same.
                    return Ok(self.finish(false));
                }
            }
            let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            if self.how.is_some() {
                fds.push(PollFd::new(self.done.as_fd(), PollFlags::POLLIN));
            } else if let Some(control) = self.started.control() {
                fds.push(PollFd::new(control, PollFlags::POLLIN));
            }
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let came = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
            let other = fds.get(1).is_some_and(came);
            self.take_signals();
            if other && self.how.is_some() {
                return Ok(self.finish(true));
            }
            if other {
                self.told();
            }
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            self.pending.push_back(info);
        }
    }

    fn finish(self, delivered: bool) -> Ended {
        let how = self.how.unwrap_or(How::Exited(1));
        let mut ended = Ended { how, hit: false, message: None, last: None };
        let ways = self.ways.into_iter().filter(|way| delivered || way.is_finished());
        for passed in ways.filter_map(|way| way.join().ok()) {
            ended.hit |= passed.hit;
            ended.last = passed.last.or(ended.last);
            if how == How::Exited(0) {
                continue;
            }
            let message = passed.watch.finish();
            let weight = |message: &Explanation| (message.is_gpu_oom, message.occurrences);
            if message.as_ref().map(weight) > ended.message.as_ref().map(weight) {
                ended.message = message;
            }
        }
        self.started.finish();
        ended
    }

    fn signal(&mut self, info: &siginfo) {
        let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed()) else { return };
        match signal {
            Signal::SIGCHLD => self.look(),
            Signal::SIGWINCH => self.started.resize(),
            Signal::SIGCONT => self.started.go_on(),
            Signal::SIGTSTP => {
                if !self.reached(info) {
                    self.started.send(signal);
                }
                if self.started.control().is_none() {
                    self.stop(Signal::SIGTSTP);
                }
            }
            _ if !self.reached(info) => self.started.send(signal),
            _ => {}
        }
    }

    /// Whether the command got the signal too: the terminal's keys signal its whole foreground
    /// group. What somebody sends to this process alone is passed on; who signals the whole group by
    /// hand signals the command twice, which is better than not at all.
    fn reached(&self, info: &siginfo) -> bool {
        self.started.control().is_none() && info.ssi_code > 0
    }

    /// What has become of a command that is this process's own child.
    fn look(&mut self) {
        let Started::Plain(plain) = &self.started else {
            return;
        };
        if self.how.is_some() {
            return;
        }
        match child::change(plain.pid) {
            Change::Nothing => {}
            Change::Stopped(signal) => self.mirror(signal),
            Change::Exited(code) => self.end(exited(code)),
            Change::Killed(signal) => self.end(How::Killed(signal)),
            Change::Lost => self.end(How::Exited(1)),
        }
    }

    fn told(&mut self) {
        let Started::Inner(inner) = &mut self.started else { return };
        match Told::read(&mut inner.control) {
            Some(Told::Stopped(signal)) => {
                inner.hand_back();
                self.mirror(signal);
            }
            Some(Told::Exited(code)) => self.end(exited(code)),
            Some(Told::Killed(signal)) => self.end(How::Killed(signal)),
            Some(Told::Started(_) | Told::Failed(_)) => {}
            // Only a KILL does that to the monitor; its terminal takes the command along.
            None => self.end(How::Killed(Signal::SIGKILL as i32)),
        }
    }

    fn end(&mut self, how: How) {
        self.how = Some(how);
        self.started.shut();
        self.ended = None;
    }

    /// The command has stopped: so does this, that the shell sees what it would see without it.
    fn mirror(&mut self, signal: i32) {
        self.take_signals();
        if self.is_continued() {
            // What stopped it is over already, and it is about to hear of that.
            return;
        }
        let inner = self.started.control().is_some();
        let Ok(mut signal) = Signal::try_from(signal) else { return };
        if signal == Signal::SIGSTOP {
            // Somebody else's doing, unless it is the one on the terminal.
            if !inner && !run_start::in_foreground() {
                return;
            }
            signal = Signal::SIGTSTP;
        }
        let continued = self.stop(signal);
        if inner && !continued && run_start::in_foreground() {
            // Nobody is there to continue it: the kernel stops no such group.
            self.started.go_on();
        }
    }

    /// Stops this process as the signal does by itself. True where it was stopped and continued.
    fn stop(&mut self, signal: Signal) -> bool {
        let set = SigSet::from(signal);
        if self.started.control().is_some() {
            // As a key would: all who were started with this one.
            let _ = killpg(getpgrp(), signal);
        } else {
            let _ = kill(getpid(), signal);
        }
        let was = SigSet::thread_get_mask();
        let _ = set.thread_unblock();
        if let Ok(was) = was {
            let _ = was.thread_set_mask();
        }
        self.take_signals();
        self.is_continued()
    }

    fn is_continued(&self) -> bool {
        self.pending.iter().any(|info| info.ssi_signo == Signal::SIGCONT as u32)
    }
}

fn exited(code: i32) -> How {
    How::Exited(u8::try_from(code & 0xff).unwrap_or(1))
}

fn is_end(info: &siginfo) -> bool {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT]
        .iter()
        .any(|signal| info.ssi_signo == *signal as u32)
}

/// Dies of INT where the command did: a shell's loop ends by that, and by no exit code.
pub fn die_of_interrupt() {
    let _ = SigSet::from(Signal::SIGINT).thread_unblock();
    let _ = nix::sys::signal::raise(Signal::SIGINT);
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}
