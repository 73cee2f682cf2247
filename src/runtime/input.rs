//! Keys, mouse, pastes and signals, read on a thread of their own.
//!
//! crossterm's reader spins for ever once the terminal has hung up, so that is looked for first; and
//! its event stream would do so inside the loop.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossterm::event::{self, Event};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc;

use crate::runtime::signals::{Signal, Signals};

/// What came from the terminal, or from the system on its behalf.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub enum Input {
    /// A key, the mouse, a paste.
    Event(Event),
    /// A signal.
    Signal(Signal),
    /// The terminal is gone; nothing more will come.
    Gone,
}

/// Starts reading, and catches signals from then on.
///
/// # Errors
/// Where there is no terminal to read, no signal can be caught, or no thread is to be had.
pub fn spawn() -> io::Result<mpsc::Receiver<Input>> {
    let tty: OwnedFd = if io::stdin().is_terminal() {
        io::stdin().as_fd().try_clone_to_owned()?
    } else {
        File::open("/dev/tty")?.into()
    };
    let (events, events_in) = mpsc::channel(64);
    let mut signals = Signals::catch()?;
    std::thread::Builder::new()
        .name("tty-in".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || read(&tty, &mut signals, &events))?;
    Ok(events_in)
}

fn read(tty: &OwnedFd, signals: &mut Signals, events: &mpsc::Sender<Input>) {
    loop {
        match wait(tty, signals) {
            Wait::Bytes => {}
            Wait::Signals => {
                for signal in signals.arrived() {
                    if events.blocking_send(Input::Signal(signal)).is_err() {
                        return;
                    }
                }
                continue;
            }
            Wait::Again => continue,
            Wait::HungUp => break,
        }
        loop {
            match event::poll(Duration::ZERO) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return drop(events.blocking_send(Input::Gone)),
            }
            let Ok(event) = event::read() else { break };
            if events.blocking_send(Input::Event(event)).is_err() {
                return;
            }
        }
    }
    let _ = events.blocking_send(Input::Gone);
}

enum Wait {
    Bytes,
    Signals,
    Again,
    HungUp,
}

fn wait(tty: &OwnedFd, signals: &Signals) -> Wait {
    let of = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut fds = [of(tty.as_fd()), of(signals.as_fd())];
    match poll(&mut fds, PollTimeout::NONE) {
        Err(nix::errno::Errno::EINTR) => return Wait::Again,
        Err(_) => return Wait::HungUp,
        Ok(_) => {}
    }
    let [seen, signalled] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
    if signalled.contains(PollFlags::POLLIN) {
        // First: one that hangs up says so by a signal too.
        Wait::Signals
    } else if seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
        Wait::HungUp
    } else if seen.contains(PollFlags::POLLIN) {
        Wait::Bytes
    } else {
        Wait::Again
    }
}
