//! Earlier moments: what is shown of one, and where it comes from. The moment at which a session was
//! held is kept as it was; a moment of a recording is made again from its ticks; of a session it is
//! what the history and the verdicts of then tell.

use super::Live;
use crate::analyze::{Freshness, Moment, View};
use crate::ids::Stamp;
use crate::rules::{self, Finding, Fit, Wanted};
use crate::runtime::journal;
use crate::ui::{App, Position};

/// A tick stands for the time behind it, for no longer than this, in milliseconds.
const TICK_MS: u64 = 1_000;

/// What was shown when the present was left.
pub(super) struct Held {
    view: View,
    findings: Vec<Finding>,
    fit: Option<Fit>,
    /// What the findings and the fit were asked for.
    wanted: Option<Wanted>,
}

impl Held {
    fn new(view: &View, findings: &[Finding], app: &App) -> Self {
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
        let (fit, wanted) = (app.fit.clone(), app.wanted_size);
        Self { view, findings: findings.to_vec(), fit, wanted }
    }

    /// Something else is wanted than when it was held.
    fn ask(&mut self, wanted: Option<Wanted>) {
        if self.wanted != wanted {
            self.findings = rules::run_for(&self.view, wanted);
            self.fit = wanted.and_then(|w| rules::closest(&self.view, w, &self.findings));
            self.wanted = wanted;
        }
    }
}

impl Live {
    /// Shows an earlier moment that needs no view of its own, or waits for one. No where the view is
    /// to be built.
    pub(super) fn shows_earlier(&mut self) -> bool {
        let Position::At(at_ms) = self.app.position else {
            self.replaying.rewound = None;
            if self.held.take().is_some() {
                self.conclusions.anew();
            }
            return false;
        };
        if self.rewinds() {
            self.held = None;
            return !self.replaying.is_at(at_ms);
        }
        // Findings of one moment are none of another, however much alike the two are.
        self.conclusions.anew();
        let (view, findings, app) = (&self.view, &self.findings, &mut self.app);
        let held = self.held.get_or_insert_with(|| Held::new(view, findings, app));
        if held.view.at.boot_ms != at_ms || held.view.gpus.is_empty() {
            return false;
        }
        held.ask(app.wanted_size);
        app.fit.clone_from(&held.fit);
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

    /// While an earlier moment of a session is shown, the view of now: verdicts are still reached and
    /// kept, and what the log should say is said. `None` where it is `wanted` by nobody.
    pub fn unseen(&mut self, wanted: bool) -> Option<View> {
        if !self.is_paused() || !(wanted || journal::is_kept()) {
            return None;
        }
        let view = self.present();
        journal::look(&view);
        Some(view)
    }
}
