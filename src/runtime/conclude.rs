//! From the history to the view and what should be known about it, with no more work than has to be
//! done again.

use crate::analyze::{Kept, Moment, View};
use crate::history::History;
use crate::rules::{self, Finding, Wanted};

/// The rules look again after this, also where nothing that they look at has moved: some of it is
/// only the time that has passed. In milliseconds.
const RULES_MS: u64 = 5_000;

/// What is left of the last time.
#[derive(Debug, Default)]
pub struct Conclusions {
    kept: Kept,
    ruled: Option<(u64, u64, Option<Wanted>)>,
}

impl Conclusions {
    /// The view of a moment.
    pub fn view(&mut self, history: &History, moment: &Moment) -> View {
        View::build_next(history, moment, &mut self.kept)
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
