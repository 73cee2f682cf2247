//! Earlier moments: what is shown of one, and where it comes from. The moment at which a session was
//! held is kept as it was; a moment of a recording is made again from its ticks; of a session it is
//! what the history and the verdicts of then tell.

use super::Live;
use super::feed::Feed;
use crate::analyze::{Freshness, Moment, View};
use crate::ids::Stamp;
use crate::rules::Finding;
use crate::sample::Tick;
use crate::ui::Position;

/// A tick stands for the time behind it, for no longer than this, in milliseconds.
const TICK_MS: u64 = 1_000;

/// What was shown when the present was left.
pub(super) struct Held {
    view: View,
    findings: Vec<Finding>,
}

impl Held {
    fn new(view: &View, findings: &[Finding]) -> Self {
        let mut view = view.clone();
        let gpus = view.gpus.iter_mut().map(|gpu| &mut gpu.freshness);
        for freshness in gpus.chain([&mut view.freshness]) {
            if *freshness == Freshness::Live {
                *freshness = Freshness::Past;
            }
        }
        // Nothing of it is acted on: it is not current, however it was.
        if !matches!(view.freshness, Freshness::Replay) {
            view.freshness = Freshness::Past;
        }
        Self { view, findings: findings.to_vec() }
    }
}

impl Live {
    /// Shows an earlier moment that needs no view of its own, or waits for one. No where the view is
    /// to be built.
    pub(super) fn shows_earlier(&mut self) -> bool {
        let Position::At(at_ms) = self.app.position else {
            (self.held, self.replaying.rewound) = (None, None);
            return false;
        };
        if self.rewinds() {
            self.held = None;
            return !self.replaying.is_at(at_ms);
        }
        let held = self.held.get_or_insert_with(|| Held::new(&self.view, &self.findings));
        if held.view.at.boot_ms != at_ms || held.view.gpus.is_empty() {
            return false;
        }
        self.view.clone_from(&held.view);
        self.findings.clone_from(&held.findings);
        true
    }

    /// Whether earlier moments are made again from ticks.
    fn rewinds(&self) -> bool {
        self.is_replay() && self.replaying.rewinder.is_some()
    }

    /// The view of the moment that is shown.
    pub(super) fn built(&mut self) -> View {
        let mut moment = self.moment();
        let again = self.replaying.rewound.as_ref();
        let Some((at_ms, history)) =
            again.and_then(|again| Some((again.at_ms, again.history.as_ref()?)))
        else {
            return self.conclusions.view(&self.history, &moment);
        };
        if !self.history.knows(at_ms) {
            // What was known before a gap is not what was in it.
            return View::build(&self.history, &moment);
        }
        moment.at_boot_ms = None;
        // Until the next tick it is the moment of the last one, as it is where that was played.
        let last = history.latest().filter(|last| at_ms.wrapping_sub(last.boot_ms) < TICK_MS);
        moment.now = last.unwrap_or_else(|| self.stamp(at_ms));
        self.conclusions.view_again(history, &moment)
    }

    /// A moment of the recording or session by its time since boot.
    fn stamp(&self, boot_ms: u64) -> Stamp {
        let latest = self.history.latest().unwrap_or(self.now);
        let wall_ms = (latest.wall_ms + boot_ms).saturating_sub(latest.boot_ms);
        Stamp { boot_ms, wall_ms }
    }

    /// A moment of the recording has been made again. Where another is shown by now it is nothing.
    pub fn rewound(&mut self, found: crate::runtime::replaying::Rewound) {
        if self.replaying.takes(&found) && self.app.position == Position::At(found.at_ms) {
            self.replaying.rewound = Some(found);
            self.age();
        }
    }

    /// Asks for the moment that is to be shown, where it has to be made again.
    pub fn rewind(&mut self) {
        if let (Position::At(at_ms), Some(rewinder)) = (self.app.position, &self.replaying.rewinder)
            && !self.replaying.is_at(at_ms)
        {
            rewinder.ask(at_ms);
        }
    }

    /// The view of now, whatever is shown.
    pub fn present(&mut self) -> View {
        if !self.is_paused() {
            self.rebuild();
            return self.view.clone();
        }
        let moment = Moment { at_boot_ms: None, ..self.moment() };
        let mut view = self.conclusions.view(&self.history, &moment);
        crate::analyze::select::keep(&mut view, &self.options.gpus);
        view
    }

    /// While an earlier moment is shown, verdicts are still reached and kept.
    pub(super) fn follow_unseen(&mut self, of_processes: bool) {
        if of_processes && self.is_paused() && matches!(self.feed, Feed::Driver { .. }) {
            let moment = Moment { at_boot_ms: None, ..self.moment() };
            self.conclusions.view(&self.history, &moment);
        }
    }
}

/// Whether a tick is a look at the processes.
pub(super) const fn is_look(tick: &Tick) -> bool {
    matches!(tick, Tick::Procs(_))
}
