//! Settings that are read again while the program runs: on HUP, or by key. Files can hang, so they
//! are read on a thread of their own; a configuration with a mistake changes nothing.

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::runtime::alerts::Notifier;
use crate::runtime::live::{Answer, Live};
use crate::runtime::options::Options;
use crate::runtime::screen::Screen;
use crate::ui::{self, Event, Message};

/// Settings as they are now.
#[derive(Debug, Clone)]
pub struct Reloaded {
    /// For the screen.
    pub ui: ui::Settings,
    /// For the rest.
    pub options: Options,
    /// The settings that differ and take effect with the next start only.
    pub later: Vec<String>,
}

/// The new settings, or what is wrong with them.
pub type Outcome = Result<Box<Reloaded>, String>;

/// How settings are read again; the default knows no way.
#[derive(Clone, Default)]
pub struct Reload {
    read: Option<Arc<dyn Fn() -> Outcome + Send + Sync>>,
    reading: Arc<AtomicBool>,
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reload({})", self.read.is_some())
    }
}

impl Reload {
    /// By this function, which may wait.
    pub fn new(read: impl Fn() -> Outcome + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)), reading: Arc::default() }
    }

    /// Begins to read; `done` hears the outcome on another thread. False where it is being read
    /// already, or cannot be.
    pub fn begin(&self, done: impl FnOnce(Outcome) + Send + 'static) -> bool {
        let Some(read) = self.read.clone() else { return false };
        if self.reading.swap(true, Ordering::SeqCst) {
            return false;
        }
        let reading = Arc::clone(&self.reading);
        let thread = std::thread::Builder::new().name("settings".to_owned()).spawn(move || {
            let outcome = read();
            reading.store(false, Ordering::SeqCst);
            done(outcome);
        });
        if thread.is_err() {
            self.reading.store(false, Ordering::SeqCst);
        }
        thread.is_ok()
    }
}

/// Begins to read the settings of a live view again.
pub fn begin(live: &mut Live) {
    let to = live.answer_to.clone();
    let begun = live.options().reload.clone().begin(move |outcome| {
        let _ = to.blocking_send(Answer::Settings(outcome));
    });
    if !begun {
        live.app.say("the configuration is being read already");
    }
}

/// What a live view makes of the outcome.
pub fn take(
    outcome: Outcome,
    live: &mut Live,
    notifier: &mut Notifier,
    screen: &mut Screen,
) -> Vec<Event> {
    let new = match outcome {
        Ok(new) => new,
        Err(wrong) => {
            log::warn!("{wrong}");
            return vec![Event::Message(Message {
                text: format!("not read: {wrong}"),
                error: true,
            })];
        }
    };
    let Reloaded { ui, options, later } = *new;
    let mut message = Message { text: said(&later), error: false };
    let now = live.options();
    if (now.alerts, &now.alert_actions) != (options.alerts, &options.alert_actions) {
        match Notifier::spawn(options.alerts, options.alert_actions.clone()) {
            Ok(new) => *notifier = new,
            Err(error) => message = Message { text: format!("alerts: {error}"), error: true },
        }
    }
    if now.mouse != options.mouse {
        screen.set_mouse(options.mouse);
    }
    let (interval_ms, reload) = (now.interval_ms, now.reload.clone());
    // The interval comes by its own effect: a key may have changed it since.
    live.set_options(Options { interval_ms, reload, ..options });
    vec![Event::Settings(Box::new(ui)), Event::Message(message)]
}

/// What is said of settings that were read.
pub fn said(later: &[String]) -> String {
    if later.is_empty() {
        return "the configuration was read again".to_owned();
    }
    format!("the configuration was read again; with the next start: {}", later.join(", "))
}

/// Whether there still is a terminal: a HUP is then a word from outside, and not its end. Never
/// waits.
pub fn terminal_is_there() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    out.is_terminal()
        && poll(&mut fds, PollTimeout::ZERO).is_ok()
        && !fds[0].revents().is_some_and(|seen| seen.intersects(gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn one_reading_at_a_time() {
        let (go, wait) = channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let reload = Reload::new(move || {
            wait.lock().unwrap().recv().unwrap();
            Err("config.toml:3: no".to_owned())
        });
        let (done, outcome) = channel();
        let again = done.clone();
        assert!(reload.begin(move |outcome| done.send(outcome).unwrap()));
        assert!(!reload.begin(|_| panic!("the first is still reading")));
        go.send(()).unwrap();
        assert_eq!(outcome.recv().unwrap().unwrap_err(), "config.toml:3: no");
        assert!(reload.begin(move |outcome| again.send(outcome).unwrap()));
        go.send(()).unwrap();
        outcome.recv().unwrap().unwrap_err();
        assert!(!Reload::default().begin(|_| panic!("there is no way")));
    }
}
