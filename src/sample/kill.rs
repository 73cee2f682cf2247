//! An order to end processes, and what came of it. Plain data, so that the pure side plans it, the
//! host side carries it out and a recording can show it.

use serde::{Deserialize, Serialize};

use crate::ids::{ProcId, Stamp};
use crate::sample::Reading;

/// Whom to end, and how. Fixed before the first signal: reparenting hides children afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillOrder {
    /// In the order in which they are signalled: the root of a job first.
    pub targets: Vec<KillTarget>,
    /// How hard.
    pub preset: KillPreset,
}

/// One process to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillTarget {
    /// Whom. Checked again after its pidfd is open.
    pub id: ProcId,
    /// Its owner when it was shown; another one now means that it is somebody else.
    pub uid: Reading<u32>,
    /// Its short name, for messages.
    pub comm: String,
    /// Whether it must have an NVIDIA device open at the moment of the signal. A launcher of the
    /// same job need not.
    pub must_hold_device: bool,
}

/// How hard to end a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillPreset {
    /// INT, 15 s, TERM, 60 s, then ask: it may be saving.
    Gentle,
    /// TERM (and CONT where it is stopped), 5 s, KILL.
    Zombie,
    /// KILL.
    Now,
    /// One signal by number, once.
    Signal(i32),
}

/// Something that happened while an order was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillEvent {
    /// Milliseconds since the order began.
    pub after_ms: u64,
    /// Whom it concerns; `None` for the order as a whole.
    pub id: Option<ProcId>,
    /// What happened.
    pub what: KillStep,
}

/// What this program did to a process, as it stands in a recording beside what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillMark {
    /// When.
    pub at: Stamp,
    /// What.
    pub what: KillMarked,
}

/// What can be marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillMarked {
    /// A signal was sent.
    Signal {
        /// To whom.
        id: ProcId,
        /// What it is called; empty where that is not known. Hostile text.
        name: String,
        /// Its number.
        signal: i32,
    },
    /// An order is carried out, and this came back, in words: `freed 44.1 of 44.2 GiB on GPU 0`.
    /// Hostile text.
    Outcome(String),
}

/// What can happen to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillStep {
    /// A signal was sent.
    Sent(i32),
    /// It has ended.
    Gone,
    /// It had ended before.
    AlreadyGone,
    /// The pid is somebody else's now; nothing was sent.
    Reused,
    /// It no longer fits what was shown (owner, device, shield); nothing was sent.
    Refused(String),
    /// Not ours to signal.
    Denied,
    /// It lives after everything that the preset allows, and this is what it waits in, where the
    /// kernel says so; absent where it cannot be told which of its threads waits.
    StillThere(Reading<Option<String>>),
    /// Everything that can be done has been done.
    Finished,
}

/// `TERM` for 15; `signal 40` for one without a name.
pub fn signal_name(signal: i32) -> String {
    named(signal).map_or_else(|| signal_words(signal), ToOwned::to_owned)
}

/// `signal TERM` for 15, `signal 40` for one without a name: for a sentence.
pub fn signal_words(signal: i32) -> String {
    named(signal).map_or_else(|| format!("signal {signal}"), |name| format!("signal {name}"))
}

/// As `kill` takes it, without SIG.
fn named(signal: i32) -> Option<&'static str> {
    let known = nix::sys::signal::Signal::try_from(signal).ok()?;
    Some(known.as_str().trim_start_matches("SIG"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_one_name_each() {
        for (signal, name) in [(1, "HUP"), (2, "INT"), (9, "KILL"), (11, "SEGV"), (18, "CONT")] {
            assert_eq!(signal_name(signal), name);
            assert_eq!(signal_words(signal), format!("signal {name}"));
        }
        // Real-time signals have numbers only.
        for (signal, words) in [(40, "signal 40"), (0, "signal 0"), (-1, "signal -1")] {
            assert_eq!(
                (signal_name(signal).as_str(), signal_words(signal).as_str()),
                (words, words)
            );
        }
    }
}
