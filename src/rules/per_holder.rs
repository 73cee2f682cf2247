//! Rules that ask each process by itself.

use super::common::{Answer, gathered, living, subject, unasked, unseen};
use super::{Outcome, Rule};
use crate::analyze::{GpuView, Holder, View};

/// A rule of which all but the question is the same as of others.
pub struct PerHolder {
    /// Its stable key.
    pub(super) key: &'static str,
    /// Which of the nine fixes.
    pub(super) number: u8,
    /// What it says of one process on one GPU.
    pub(super) ask: fn(&View, &Holder, &GpuView) -> Answer,
}

impl Rule for PerHolder {
    fn key(&self) -> &'static str {
        self.key
    }

    fn number(&self) -> u8 {
        self.number
    }

    fn check(&self, view: &View) -> Outcome {
        per_holder(view, |holder, gpu| (self.ask)(view, holder, gpu))
    }
}

/// Asks a rule about every holder that may be advised; a hit outweighs doubts. What a hit shows begins
/// with whom it is about.
pub(super) fn per_holder(view: &View, ask: impl Fn(&Holder, &GpuView) -> Answer) -> Outcome {
    if let Some(outcome) = unseen(view) {
        return outcome;
    }
    let answers = living(view).map(|(holder, gpu)| match ask(holder, gpu) {
        Answer::Hit(mut finding) => {
            finding.evidence.insert(0, subject(holder, gpu));
            Answer::Hit(finding)
        }
        other => other,
    });
    gathered(answers.chain(unasked(view)))
}
