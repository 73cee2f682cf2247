//! The signals that mean something to the live view.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// INT or TERM: quit.
    Quit,
    /// HUP: the terminal is going away; quit without a word.
    HangUp,
    /// TSTP: give the terminal back and stop.
    Stop,
    /// CONT: take the terminal again.
    Continue,
    /// WINCH: the terminal has another size.
    Resize,
}

/// What each of them is to the system.
const CAUGHT: [(nix::sys::signal::Signal, Signal); 6] = [
    (SIGINT, Signal::Quit),
    (SIGTERM, Signal::Quit),
    (SIGHUP, Signal::HangUp),
    (SIGTSTP, Signal::Stop),
    (SIGCONT, Signal::Continue),
    (SIGWINCH, Signal::Resize),
];

/// The signals, as they arrive: readable when one has.
pub struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn catch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let numbers = CAUGHT.map(|(number, _)| number as i32);
        SignalDelivery::with_pipe(read, write, SignalOnly, numbers).map(Self)
    }

    /// Those that have arrived since it was last asked, each once, the most urgent first.
    pub fn arrived(&mut self) -> Vec<Signal> {
        let meaning = |number: i32| CAUGHT.iter().find(|row| row.0 as i32 == number);
        let arrived = self.0.pending().filter_map(meaning);
        let mut arrived: Vec<Signal> = arrived.map(|row| row.1).collect();
        arrived.sort_unstable();
        arrived.dedup();
        arrived
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

/// Stops this process as TSTP would; returns when it is continued.
pub fn stop_self() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn what_arrives_together_is_told_once_and_in_the_order_of_urgency() {
        let mut signals = Signals::catch().unwrap();
        for signal in [SIGWINCH, SIGCONT, SIGWINCH] {
            nix::sys::signal::raise(signal).unwrap();
        }
        let mut readable = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut readable, PollTimeout::from(10_000_u16)), Ok(1));
        assert_eq!(signals.arrived(), [Signal::Continue, Signal::Resize]);
        assert_eq!(signals.arrived(), []);
    }
}
