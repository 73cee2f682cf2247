//! What the view leaves undone while it is paused or nobody sees it.

use std::time::{Duration, Instant};

use crate::runtime::live::Live;
use crate::runtime::screen::Screen;
use crate::runtime::{footprint, journal};
use crate::ui::Position;

/// Without an arrival for this long the figures have visibly aged.
const AGED: Duration = Duration::from_millis(1_200);
/// While paused, the age of what is shown is brought up to date so often.
const PAUSED: Duration = Duration::from_secs(5);
/// A terminal that takes nothing for this long is seen by nobody.
const UNSEEN: Duration = Duration::from_secs(5);
/// Where nobody is attached, a view that has begun or was given a key is drawn for so long: a
/// program may read it (`tmux capture-pane`).
const TOUCHED: Duration = Duration::from_secs(10);
/// Once it is seen again, fresh figures are waited for so long.
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

    /// Whether anybody sees the screen. Nobody does where the terminal takes nothing for a while, and
    /// where nobody is attached to the multiplexer.
    fn set_hidden(&mut self, hidden: bool) {
        if std::mem::replace(&mut self.rhythm.hidden, hidden) != hidden {
            self.pace();
            // They look at once.
            self.pair.end();
        }
    }

    /// What the log should say is looked for also where nothing is drawn.
    fn keep_log(&mut self) {
        if journal::is_kept() {
            self.age();
            self.rebuild();
        }
    }
}

/// What is known of who looks.
pub struct Idle {
    /// When the view began, until the start is over.
    began: Option<Instant>,
    /// When it began, or was given the last key.
    touched: Instant,
    /// Nobody is attached to the multiplexer.
    detached: bool,
    /// No frame is made.
    rests: bool,
    /// But one more, which says so.
    says_so: bool,
    /// Before this no frame is made unless fresh figures have come.
    held: Option<Instant>,
}

impl Default for Idle {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            began: Some(now),
            touched: now,
            detached: false,
            rests: false,
            says_so: false,
            held: None,
        }
    }
}

impl Idle {
    /// Does less while nobody looks, and keeps no more than is needed. `busy` where somebody waits
    /// for what comes although nobody looks. Gives whether a frame is wanted, the last one.
    pub fn spare(&mut self, live: &mut Live, screen: &Screen, busy: bool) -> bool {
        let rests = self.detached && self.touched.elapsed() >= TOUCHED;
        let begins = rests && !self.rests;
        if begins {
            (self.rests, self.says_so, live.app.unattended) = (true, true, true);
            live.age();
        }
        let unseen = screen.stuck_for().is_some_and(|long| long >= UNSEEN) || self.rests;
        live.set_hidden(unseen && !busy);
        if self.began.is_some_and(|began| began.elapsed() >= STARTED) {
            self.began = None;
            footprint::forget_the_start();
        }
        if !self.draws(screen) {
            live.keep_log();
        }
        begins
    }

    /// Whether a frame can be made.
    pub fn draws(&self, screen: &Screen) -> bool {
        (!self.rests || self.says_so) && screen.ready()
    }

    /// A frame was made.
    pub const fn drawn(&mut self) {
        self.says_so = false;
    }

    /// Whether anybody is attached to the multiplexer, as it is now. Gives when a frame is due, where
    /// there have been none.
    pub fn attached(&mut self, live: &mut Live, attached: bool) -> Option<Instant> {
        self.detached = !attached;
        if attached { self.revive(live) } else { None }
    }

    /// Somebody, or a program, pressed a key. Gives the same.
    pub fn touched(&mut self, live: &mut Live) -> Option<Instant> {
        if self.detached {
            self.touched = Instant::now();
        }
        self.revive(live)
    }

    /// The terminal takes frames again. Gives the same.
    pub fn drained(&mut self, live: &mut Live) -> Option<Instant> {
        let hidden = live.rhythm.hidden && !self.rests;
        hidden.then(|| self.wake(live))
    }

    fn revive(&mut self, live: &mut Live) -> Option<Instant> {
        (self.says_so, live.app.unattended) = (false, false);
        std::mem::take(&mut self.rests).then(|| {
            live.age();
            self.wake(live)
        })
    }

    /// Figures that are some seconds old would be called stalled: they wait for new ones.
    fn wake(&mut self, live: &mut Live) -> Instant {
        let now = Instant::now();
        if !live.rhythm.hidden {
            return now;
        }
        live.set_hidden(false);
        *self.held.insert(now + REVIVED)
    }

    /// Fresh figures have come.
    pub const fn looked(&mut self) {
        self.held = None;
    }

    /// When a frame is made that is wanted `at` a moment.
    pub fn not_before(&self, at: Instant) -> Instant {
        self.held.map_or(at, |held| at.max(held))
    }

    /// When the loop wakes although nothing has arrived.
    pub fn wake_after(&self, live: &Live, screen: &Screen) -> Duration {
        if live.is_paused() || !self.draws(screen) { PAUSED } else { AGED }
    }
}

/// When an arrival is drawn that otherwise would be drawn after `usual`.
pub fn frame_after(live: &Live, usual: Duration) -> Duration {
    if live.is_paused() { PAUSED } else { usual }
}
