//! The signals that mean something to the live view.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The signals, as they arrive.
pub struct Signals {
    interrupt: Stream,
    terminate: Stream,
    hang_up: Stream,
    stop: Stream,
    resume: Stream,
    resize: Stream,
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn catch() -> io::Result<Self> {
        let number = |signal: nix::sys::signal::Signal| SignalKind::from_raw(signal as i32);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            stop: signal(number(nix::sys::signal::Signal::SIGTSTP))?,
            resume: signal(number(nix::sys::signal::Signal::SIGCONT))?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Signal::Quit,
            _ = self.terminate.recv() => Signal::Quit,
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.stop.recv() => Signal::Stop,
            _ = self.resume.recv() => Signal::Continue,
            _ = self.resize.recv() => Signal::Resize,
        }
    }
}

/// Stops this process as TSTP would; returns when it is continued.
pub fn stop_self() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP);
}
