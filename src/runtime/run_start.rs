//! How a command is started, by what its standard streams are.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::runtime::child;
use crate::runtime::run_job::Root;
use crate::runtime::run_monitor::{Order, Told};
use crate::runtime::run_pass::{Gate, Way, spawn_keys};
use crate::runtime::run_terminal::{Outer, Pty, copy_size, stdin_is_foreground};

/// The ways of a command's output, by the names of their threads.
pub type Streams = Vec<(&'static str, Way)>;

/// A command that was started.
pub enum Started {
    /// On this process's terminal and in its group.
    Plain(Plain),
    /// On a terminal of its own.
    Inner(Box<Inner>),
}

/// A child of this process.
pub struct Plain {
    /// Its number, its own until it is reaped.
    pub pid: i32,
    /// The terminal that its output goes through, where that is one.
    master: Option<OwnedFd>,
}

/// A child of the monitor.
pub struct Inner {
    /// To the monitor.
    pub control: UnixStream,
    monitor: Child,
    pid: i32,
    outer: Outer,
    master: OwnedFd,
    keys: Arc<Gate>,
}

impl Inner {
    /// The terminal is the shell's again.
    pub fn hand_back(&mut self) {
        self.keys.set(false);
        self.outer.leave();
    }
}

impl Started {
    /// Who runs.
    pub fn root(&self) -> Root {
        let unsigned = |pid: i32| u32::try_from(pid).unwrap_or(0);
        match self {
            Self::Plain(plain) => Root { pid: unsigned(plain.pid), session: None },
            Self::Inner(inner) => {
                Root { pid: unsigned(inner.pid), session: Some(inner.monitor.id()) }
            }
        }
    }

    /// Where the monitor tells of the command; `None` where there is no monitor.
    pub fn control(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(_) => None,
            Self::Inner(inner) => Some(inner.control.as_fd()),
        }
    }

    /// Sends the command a signal.
    pub fn send(&mut self, signal: Signal) {
        match self {
            Self::Plain(plain) => {
                let _ = kill(Pid::from_raw(plain.pid), signal);
            }
            Self::Inner(inner) => Order::Signal(signal as i32).send(&mut inner.control),
        }
    }

    /// Lets the command go on, with the terminal where this process has it.
    pub fn go_on(&mut self) {
        match self {
            Self::Plain(plain) => {
                let _ = kill(Pid::from_raw(plain.pid), Signal::SIGCONT);
            }
            Self::Inner(inner) if inner.outer.is_foreground() => {
                let _ = inner.outer.enter();
                inner.outer.copy_size(&inner.master);
                inner.keys.set(true);
                Order::Foreground.send(&mut inner.control);
            }
            Self::Inner(inner) => Order::Background.send(&mut inner.control),
        }
    }

    /// The user's terminal has another size.
    pub fn resize(&mut self) {
        match self {
            // The kernel has told the command, perhaps before the size was right.
            Self::Plain(Plain { pid, master: Some(master) }) => {
                if let Some(outer) = terminal_out() {
                    copy_size(outer, master);
                    let _ = kill(Pid::from_raw(*pid), Signal::SIGWINCH);
                }
            }
            Self::Plain(_) => {}
            Self::Inner(inner) => inner.outer.copy_size(&inner.master),
        }
    }

    /// The command has ended: keys are the shell's.
    pub fn shut(&self) {
        if let Self::Inner(inner) = self {
            inner.keys.set(false);
        }
    }

    /// Everything is delivered.
    pub fn finish(self) {
        if let Self::Inner(mut inner) = self {
            inner.outer.leave();
            // It ends right after it has told of the command's end.
            let _ = inner.monitor.wait();
        }
    }
}

/// Whether the command gets a terminal of its own.
pub fn on_terminal() -> bool {
    io::stdout().is_terminal() && in_foreground()
}

/// Whether this process has its terminal.
pub fn in_foreground() -> bool {
    stdin_is_foreground()
}

/// Starts the command with `mask` as its blocked signals.
///
/// # Errors
/// Where it cannot be started, with the system's number for why.
pub fn start(command: &[OsString], mask: SigSet) -> io::Result<(Started, Streams)> {
    if on_terminal()
        && let Ok(pty) = Pty::like(io::stdin())
        && let Ok(outer) = Outer::open()
    {
        return start_inner(command, mask, pty, outer);
    }
    start_plain(command, mask)
}

fn start_plain(command: &[OsString], mask: SigSet) -> io::Result<(Started, Streams)> {
    let mut what = Command::new(command.first().ok_or(io::ErrorKind::InvalidInput)?);
    what.args(command.iter().skip(1)).stdin(Stdio::inherit());
    let mut streams = Streams::new();
    let mut master = None;
    let out = Side::of(&io::stdout())?;
    let inner = out.open(&mut streams, "pass-out")?;
    let err = Side::of(&io::stderr())?;
    if same(&out.to, &err.to) {
        // One way for both where both end in one place: they stay in order.
        what.stderr(inner.try_clone()?);
    } else {
        what.stderr(err.open(&mut streams, "pass-err")?);
    }
    what.stdout(inner);
    for (_, way) in streams.iter().filter(|(_, way)| way.terminal) {
        master = Some(way.from.try_clone()?);
    }
    let child = child::spawn(&mut what, mask, None)?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    Ok((Started::Plain(Plain { pid, master }), streams))
}

/// One of this process's outputs.
struct Side {
    to: OwnedFd,
    terminal: bool,
}

impl Side {
    fn of(stream: &(impl AsFd + IsTerminal)) -> io::Result<Self> {
        Ok(Self { to: stream.as_fd().try_clone_to_owned()?, terminal: stream.is_terminal() })
    }

    /// Opens a way to it; gives the command's end.
    fn open(&self, streams: &mut Streams, name: &'static str) -> io::Result<OwnedFd> {
        let pty = self.terminal.then(|| Pty::transparent(&self.to));
        let (from, inner, terminal) = if let Some(Ok(pty)) = pty {
            (pty.master, pty.slave, true)
        } else {
            // Without a terminal to be had, a terminal's command does with a pipe.
            let (from, inner) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            (from, inner, false)
        };
        streams.push((name, Way { from, to: self.to.try_clone()?, terminal }));
        Ok(inner)
    }
}

/// The monitor is this program once more.
fn start_inner(
    command: &[OsString],
    mask: SigSet,
    pty: Pty,
    mut outer: Outer,
) -> io::Result<(Started, Streams)> {
    let (mut control, theirs) = UnixStream::pair()?;
    // A program that was replaced since it started has a name no more, and is still there.
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let program = program.unwrap_or_else(|| "/proc/self/exe".into());
    let mut monitor = Command::new(program);
    fcntl_setfd(&theirs, FdFlags::empty())?;
    monitor.arg("run").arg("--monitor").arg(theirs.as_raw_fd().to_string()).arg("--").args(command);
    monitor.stdin(pty.slave.try_clone()?).stdout(pty.slave.try_clone()?);
    let mut streams = Streams::new();
    streams.push((
        "pass-out",
        Way {
            from: pty.master.try_clone()?,
            to: io::stdout().as_fd().try_clone_to_owned()?,
            terminal: true,
        },
    ));
    let err = Side::of(&io::stderr())?;
    if err.terminal {
        monitor.stderr(pty.slave.try_clone()?);
    } else {
        monitor.stderr(err.open(&mut streams, "pass-err")?);
    }
    outer.enter()?;
    let mut monitor_child = child::spawn(&mut monitor, mask, None)?;
    // This side's copies would keep the terminal open after everybody on it is gone.
    drop((theirs, pty.slave, monitor));
    let pid = match Told::read(&mut control) {
        Some(Told::Started(pid)) => pid,
        Some(Told::Failed(number)) => {
            let _ = monitor_child.wait();
            return Err(io::Error::from_raw_os_error(number));
        }
        _ => {
            let status = monitor_child.wait()?;
            return Err(io::Error::other(format!("the process between has ended: {status}")));
        }
    };
    let keys = Arc::new(Gate::default());
    keys.set(true);
    spawn_keys(pty.master.try_clone()?, Arc::clone(&keys))?;
    let inner = Inner { control, monitor: monitor_child, pid, outer, master: pty.master, keys };
    Ok((Started::Inner(Box::new(inner)), streams))
}

/// Standard output or error, whichever is a terminal.
fn terminal_out() -> Option<OwnedFd> {
    let out = io::stdout();
    if out.is_terminal() {
        return out.as_fd().try_clone_to_owned().ok();
    }
    let err = io::stderr();
    err.is_terminal().then(|| err.as_fd().try_clone_to_owned().ok()).flatten()
}

/// Whether two descriptors are of the same pipe, file or terminal.
fn same(a: impl AsFd, b: impl AsFd) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev),
        _ => false,
    }
}
