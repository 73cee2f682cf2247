//! From the history to the view and what should be known about it, with no more work than has to be
//! done again.

use crate::analyze::{Judged, Kept, Moment, View};
use crate::history::History;
use crate::rules::{self, Finding, Wanted};

/// The rules look again after this, also where nothing that they look at has moved: some of it is
/// only the time that has passed. In milliseconds.
const RULES_MS: u64 = 5_000;

/// What is left of the last time.
#[derive(Debug, Default)]
pub struct Conclusions {
    kept: Kept,
    judged: Judged,
    ruled: Option<(u64, u64, Option<Wanted>)>,
}

impl Conclusions {
    /// The view of a moment.
    pub fn view(&mut self, history: &History, moment: &Moment) -> View {
        if moment.at_boot_ms.is_some() {
            return View::build_earlier(history, moment, &self.judged);
        }
        let view = View::build_next(history, moment, &mut self.kept);
        self.judged.follow(&view);
        view
    }

    /// The view of a moment that was gone back to: nothing is kept of it.
    pub fn view_again(&mut self, history: &History, moment: &Moment) -> View {
        View::build_next(history, moment, &mut self.kept)
    }

    /// The next findings are made anew, however little has changed.
    pub const fn anew(&mut self) {
        self.ruled = None;
    }

    /// Verdicts that are kept for looks back, and their rows: for the self-check.
    pub fn weight(&self) -> (usize, usize) {
        self.judged.weight()
    }

    /// Brings findings up to date with a view.
    pub fn rules(&mut self, view: &View, wanted: Option<Wanted>, findings: &mut Vec<Finding>) {
        let (now_ms, grounds) = (view.at.boot_ms, rules::grounds(view));
        let same = self.ruled.is_some_and(|(then_ms, known, then_wanted)| {
            known == grounds && then_wanted == wanted && now_ms.abs_diff(then_ms) < RULES_MS
        });
        if !same {
            *findings = rules::run_for(view, wanted);
            self.ruled = Some((now_ms, grounds, wanted));
        }
    }
}
