//! What the view leaves undone while it is paused or nobody sees it.

use std::time::{Duration, Instant};

use crate::runtime::footprint;
use crate::runtime::live::Live;
use crate::runtime::screen::Screen;
use crate::ui::Position;

/// Without an arrival for this long the figures have visibly aged.
const AGED: Duration = Duration::from_millis(1_200);
/// While paused, the age of what is shown is brought up to date so often.
const PAUSED: Duration = Duration::from_secs(5);
/// A terminal that takes nothing for this long is seen by nobody.
const UNSEEN: Duration = Duration::from_secs(5);
/// Once it takes something again, fresh figures are waited for so long.
const REVIVED: Duration = Duration::from_millis(300);
/// After this the start is over.
const STARTED: Duration = Duration::from_secs(3);

/// The refresh interval at the least while nobody sees the screen, in milliseconds. A machine among
/// several counts as silent after 5 s.
const HIDDEN_INTERVAL_MS: u64 = 4_000;

/// How often it is worth looking.
#[derive(Debug, Default)]
pub struct Rhythm {
    /// Nobody sees the screen.
    hidden: bool,
}

impl Rhythm {
    /// The refresh interval is no shorter than this, in milliseconds, whatever the user has chosen.
    pub const fn least_ms(&self) -> u64 {
        if self.hidden { HIDDEN_INTERVAL_MS } else { 0 }
    }
}

impl Live {
    /// Whether an earlier moment of a live session is shown.
    pub fn is_paused(&self) -> bool {
        self.app.position != Position::Live && !self.is_replay()
    }

    /// Whether anybody sees the screen. Nobody does where the terminal takes nothing for a while.
    fn set_hidden(&mut self, hidden: bool) {
        if std::mem::replace(&mut self.rhythm.hidden, hidden) != hidden {
            self.pace();
            // They look at once.
            self.pair.end();
        }
    }
}

/// When the view began, until the start is over.
pub struct Idle(Option<Instant>);

impl Default for Idle {
    fn default() -> Self {
        Self(Some(Instant::now()))
    }
}

impl Idle {
    /// Does less while nobody looks, and keeps no more than is needed. `busy` where somebody waits
    /// for what comes although nobody looks.
    pub fn spare(&mut self, live: &mut Live, screen: &Screen, busy: bool) {
        let unseen = screen.stuck_for().is_some_and(|long| long >= UNSEEN);
        live.set_hidden(unseen && !busy);
        if self.0.is_some_and(|began| began.elapsed() >= STARTED) {
            self.0 = None;
            footprint::forget_the_start();
        }
    }
}

/// When the loop wakes although nothing has arrived.
pub fn wake_after(live: &Live, screen: &Screen) -> Duration {
    if live.is_paused() || !screen.ready() { PAUSED } else { AGED }
}

/// When an arrival is drawn that otherwise would be drawn after `usual`.
pub fn frame_after(live: &Live, usual: Duration) -> Duration {
    if live.is_paused() { PAUSED } else { usual }
}

/// The terminal takes frames again: how long the next one waits for fresh figures, where there have
/// been few for a while.
pub fn seen_again(live: &mut Live) -> Option<Duration> {
    let hidden = live.rhythm.hidden;
    live.set_hidden(false);
    hidden.then_some(REVIVED)
}
