//! The process between: it leads the session on the inner terminal and is the command's parent, as
//! a shell would be, so that job control works there. It tells what becomes of the command, and
//! does what it is told.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, tcsetpgrp};

use crate::runtime::child::{self, Change};

/// What the monitor tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The command runs under this number.
    Started(i32),
    /// It cannot be started: the system's number for why.
    Failed(i32),
    /// A signal has stopped it.
    Stopped(i32),
    /// It has ended with this code.
    Exited(i32),
    /// This signal has ended it.
    Killed(i32),
}

/// What the monitor is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Send the command this signal.
    Signal(i32),
    /// Let it go on, with the terminal.
    Foreground,
    /// Let it go on, without the terminal.
    Background,
}

/// One byte for what it is, four for its number.
type Frame = [u8; 5];

impl Told {
    const fn frame(self) -> Frame {
        let (kind, n) = match self {
            Self::Started(n) => (1, n),
            Self::Failed(n) => (2, n),
            Self::Stopped(n) => (3, n),
            Self::Exited(n) => (4, n),
            Self::Killed(n) => (5, n),
        };
        frame(kind, n)
    }

    /// The next one; `None` where the monitor is gone.
    pub fn read(from: &mut impl Read) -> Option<Self> {
        let (kind, n) = read_frame(from)?;
        match kind {
            1 => Some(Self::Started(n)),
            2 => Some(Self::Failed(n)),
            3 => Some(Self::Stopped(n)),
            4 => Some(Self::Exited(n)),
            5 => Some(Self::Killed(n)),
            _ => None,
        }
    }
}

impl Order {
    /// Sends it. A monitor that is gone has told so, or will be missed.
    pub fn send(self, to: &mut impl Write) {
        let (kind, n) = match self {
            Self::Signal(n) => (1, n),
            Self::Foreground => (2, 0),
            Self::Background => (3, 0),
        };
        let _ = to.write_all(&frame(kind, n));
    }

    fn read(from: &mut impl Read) -> Option<Self> {
        let (kind, n) = read_frame(from)?;
        match kind {
            1 => Some(Self::Signal(n)),
            2 => Some(Self::Foreground),
            3 => Some(Self::Background),
            _ => None,
        }
    }
}

const fn frame(kind: u8, n: i32) -> Frame {
    let number = n.to_le_bytes();
    [kind, number[0], number[1], number[2], number[3]]
}

fn read_frame(from: &mut impl Read) -> Option<(u8, i32)> {
    let mut bytes = Frame::default();
    from.read_exact(&mut bytes).ok()?;
    let [kind, number @ ..] = bytes;
    Some((kind, i32::from_le_bytes(number)))
}

/// Runs the command on the terminal that is standard input; `control` is the number of the socket
/// to whoever started this. Returns when the command has ended.
///
/// # Errors
/// Where the socket or the terminal is not there.
pub fn run(control: RawFd, command: &[OsString]) -> io::Result<()> {
    let mut control = UnixStream::from(child::adopt(control)?);
    let before = SigSet::thread_get_mask()?;
    let mut blocked = SigSet::all();
    // What a fault raises is not to be held back.
    for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGABRT]
    {
        blocked.remove(fault);
    }
    blocked.thread_block()?;
    let signals = SignalFd::with_flags(&blocked, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    rustix::process::setsid()?;
    let tty = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::process::ioctl_tiocsctty(&tty)?;
    let mut what = Command::new(command.first().ok_or(io::ErrorKind::InvalidInput)?);
    what.args(command.iter().skip(1));
    what.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    match child::spawn(&mut what, before, Some(tty.try_clone()?)) {
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(Errno::EIO as i32);
            control.write_all(&Told::Failed(number).frame())
        }
        Ok(started) => {
            let pid = Pid::from_raw(i32::try_from(started.id()).unwrap_or(0));
            control.write_all(&Told::Started(pid.as_raw()).frame())?;
            Monitor { control, signals, tty, pid, foreground: true, stopped: false }.watch()
        }
    }
}

struct Monitor {
    control: UnixStream,
    signals: SignalFd,
    tty: OwnedFd,
    /// The command, not reaped before its end is told: the number is its own.
    pid: Pid,
    foreground: bool,
    stopped: bool,
}

impl Monitor {
    fn watch(mut self) -> io::Result<()> {
        loop {
            let mut fds = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let came = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
            let (signal, order) = (came(&fds[0]), came(&fds[1]));
            if signal && self.look()? {
                return Ok(());
            }
            if order && !self.obey() {
                // Whoever started this is dead, and the terminal with it.
                let _ = kill(self.pid, Signal::SIGHUP);
                let _ = kill(self.pid, Signal::SIGCONT);
                return Ok(());
            }
        }
    }

    /// What has become of the command. True at its end.
    fn look(&mut self) -> io::Result<bool> {
        while let Ok(Some(_)) = self.signals.read_signal() {}
        loop {
            let told = match child::change(self.pid.as_raw()) {
                Change::Nothing => return Ok(false),
                Change::Stopped(signal) => {
                    self.stopped(signal)?;
                    continue;
                }
                Change::Exited(code) => Told::Exited(code),
                Change::Killed(signal) => Told::Killed(signal),
                Change::Lost => Told::Exited(1),
            };
            // Others may still be on the terminal: the end of the session's leader is not to end
            // what has the terminal.
            let _ = tcsetpgrp(&self.tty, nix::unistd::getpid());
            self.control.write_all(&told.frame())?;
            return Ok(true);
        }
    }

    fn stopped(&mut self, signal: i32) -> io::Result<()> {
        let wants_terminal = signal == Signal::SIGTTIN as i32 || signal == Signal::SIGTTOU as i32;
        if wants_terminal && self.foreground {
            // It had given the terminal to a child of its own, which is gone.
            self.take_terminal();
            return Ok(());
        }
        self.stopped = true;
        self.control.write_all(&Told::Stopped(signal).frame())
    }

    /// Does as told; no when nobody is there any more.
    fn obey(&mut self) -> bool {
        match Order::read(&mut self.control) {
            Some(Order::Signal(number)) => {
                if let Ok(signal) = Signal::try_from(number) {
                    let _ = kill(self.pid, signal);
                }
            }
            Some(Order::Foreground) => {
                if self.stopped || !self.foreground {
                    self.take_terminal();
                } else {
                    let _ = killpg(self.pid, Signal::SIGCONT);
                }
                (self.foreground, self.stopped) = (true, false);
            }
            Some(Order::Background) => {
                (self.foreground, self.stopped) = (false, false);
                let _ = tcsetpgrp(&self.tty, nix::unistd::getpid());
                let _ = killpg(self.pid, Signal::SIGCONT);
            }
            None => return false,
        }
        true
    }

    fn take_terminal(&self) {
        let _ = tcsetpgrp(&self.tty, self.pid);
        let _ = killpg(self.pid, Signal::SIGCONT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_arrives() {
        let all = [
            Told::Started(4242),
            Told::Failed(2),
            Told::Stopped(20),
            Told::Exited(255),
            Told::Killed(9),
        ];
        for told in all {
            assert_eq!(Told::read(&mut &told.frame()[..]), Some(told));
        }
        assert_eq!(Told::read(&mut &[9, 0, 0, 0, 0][..]), None);
        assert_eq!(Told::read(&mut &[1, 0][..]), None);
        for order in [Order::Signal(15), Order::Foreground, Order::Background] {
            let mut bytes = Vec::new();
            order.send(&mut bytes);
            assert_eq!(Order::read(&mut &bytes[..]), Some(order));
        }
    }
}
