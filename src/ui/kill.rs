//! The kill dialog: what would be ended, the user's word, what happened, and the proof.

use crate::ids::ProcId;
use crate::sample::{KillEvent, KillOrder, KillPreset, KillStep, Reading, signal_name};

/// What the user is asked, and then shown. Filled from a plan outside of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// `End 2 processes, 44.2 GiB on GPU 0,1`.
    pub title: String,
    /// Whom, the first to be signalled first.
    pub rows: Vec<DialogRow>,
    /// Who is left out, and why, one line each.
    pub refused: Vec<String>,
    /// What will be sent: `TERM, then KILL after 5 s.`
    pub note: String,
    /// The order to carry out. Empty targets: there is nothing to confirm.
    pub order: KillOrder,
    /// For protected processes: the word to type first.
    pub typed: Option<Typed>,
    /// How far it is.
    pub phase: Phase,
}

/// One line of the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogRow {
    /// Its identity; `None` for something that is only shown.
    pub id: Option<ProcId>,
    /// As the driver gives it.
    pub pid: u32,
    /// Its user. Hostile text.
    pub user: String,
    /// Its command. Hostile text.
    pub command: String,
    /// What it holds, in words.
    pub bytes: String,
    /// Why it is here: `zombie: launcher 39980 gone`. Hostile text.
    pub note: String,
}

/// A confirmation that a single key cannot give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Typed {
    /// What has to be typed.
    pub word: String,
    /// What has been typed.
    pub entered: String,
}

impl Typed {
    /// Whether the word stands there.
    pub fn is_given(&self) -> bool {
        self.word == self.entered
    }
}

/// How far a kill is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// The user is asked.
    #[default]
    Asking,
    /// Signals are under way: what happened so far.
    Running(Vec<String>),
    /// Everything is done and proven.
    Done {
        /// What happened.
        steps: Vec<String>,
        /// `freed 44.1 of 44.2 GiB`.
        proof: Proof,
    },
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proof {
    /// `freed 44.1 of 44.2 GiB`.
    pub sentence: String,
    /// Whether all of it came back.
    pub complete: bool,
    /// Whether that is not known, and nothing is known to be left.
    pub unknown: bool,
    /// What did not, why, and the next command, one line each. Hostile text.
    pub remaining: Vec<String>,
}

/// A choice of how hard, for `X`.
pub const PRESETS: [(char, KillPreset, &str); 5] = [
    ('1', KillPreset::Gentle, "INT, after 15 s TERM, after 60 s ask: it may be saving"),
    ('2', KillPreset::Zombie, "TERM, after 5 s KILL"),
    ('3', KillPreset::Now, "KILL at once"),
    ('4', KillPreset::Signal(1), "HUP, once"),
    ('5', KillPreset::Signal(10), "USR1, once: some trainers save on it"),
];

impl Dialog {
    /// Whether `y` may be pressed now.
    pub fn may_go(&self) -> bool {
        self.phase == Phase::Asking
            && !self.order.targets.is_empty()
            && self.typed.as_ref().is_none_or(Typed::is_given)
    }

    /// Takes an event of the running order.
    pub fn happened(&mut self, event: &KillEvent) {
        let steps = match &mut self.phase {
            Phase::Running(steps) | Phase::Done { steps, .. } => steps,
            Phase::Asking => return,
        };
        // An order of hundreds must not grow for ever: the last ones count.
        if steps.len() >= 256 {
            steps.remove(0);
        }
        steps.push(words(event));
    }

    /// Takes the proof.
    pub fn proven(&mut self, proof: Proof) {
        let steps = match std::mem::take(&mut self.phase) {
            Phase::Running(steps) | Phase::Done { steps, .. } => steps,
            Phase::Asking => Vec::new(),
        };
        self.phase = Phase::Done { steps, proof };
    }
}

/// An event in words: `41233 gone after 0.3 s`.
pub fn words(event: &KillEvent) -> String {
    let who = event.id.map(|id| format!("{} ", id.pid)).unwrap_or_default();
    let after = event.after_ms as f64 / 1000.0;
    match &event.what {
        KillStep::Sent(signal) => format!("{} sent {who}", signal_name(*signal)).trim_end().into(),
        KillStep::Gone => format!("{who}gone after {after:.1} s"),
        KillStep::AlreadyGone => format!("{who}was already gone"),
        KillStep::Reused => format!("{who}is another process now: nothing sent"),
        KillStep::Refused(why) => format!("{who}refused: {why}"),
        KillStep::Denied => format!("{who}not yours to signal"),
        KillStep::StillThere(waits) => {
            let waits = match waits {
                Reading::Value(None) => String::new(),
                Reading::Value(Some(wait)) => format!(", waits in {wait}"),
                Reading::Absent(why) => {
                    format!(", which of its threads waits cannot be told: {}", why.words())
                }
            };
            format!("{who}still there after {after:.1} s{waits}")
        }
        KillStep::Finished => format!("all done after {after:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;
    use crate::sample::Why;

    #[test]
    fn what_one_that_stays_waits_in_is_told_or_why_it_is_not() {
        let said = |waits| {
            let id = Some(ProcId { pid: Pid(41), start_ticks: 1 });
            words(&KillEvent { id, after_ms: 5_000, what: KillStep::StillThere(waits) })
        };
        assert_eq!(said(Reading::Value(None)), "41 still there after 5.0 s");
        let waits = Reading::Value(Some("nvidia_ioctl".to_owned()));
        assert_eq!(said(waits), "41 still there after 5.0 s, waits in nvidia_ioctl");
        let text =
            "41 still there after 5.0 s, which of its threads waits cannot be told: no permission";
        assert_eq!(said(Reading::Absent(Why::NoPermission)), text);
    }
}
