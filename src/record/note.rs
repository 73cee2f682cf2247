//! What stands in a live stream beside ticks, and what a far end can be asked.
//!
//! A stream that is started with `record - --answer` is a conversation: requests come in as one
//! line of JSON each, answers go out as lines of the stream. Readers that do not know these kinds of
//! lines pass over them.

use serde::{Deserialize, Serialize};

use crate::ids::{GpuIndex, GpuUuid, ProcId, Stamp};
use crate::sample::{KillEvent, KillOrder, KillPreset, Reading};
use crate::units::Bytes;

/// Text that is accepted in one request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 64 << 10;
/// Targets that are accepted in one request.
pub const MAX_TARGETS: usize = 512;

/// A line of a live stream that is no tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// That the far end lives, and what it is doing.
    Pulse(Pulse),
    /// The answer to a request.
    Answer(Answer),
}

/// The state of the far end, sent about once a second whether or not the driver answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// Now, on the far end's clocks.
    pub at: Stamp,
    /// The driver call under way.
    #[serde(default)]
    pub call: Option<Call>,
    /// Ticks that were lost at the far end so far.
    #[serde(default)]
    pub dropped: u64,
    /// Why the driver cannot be asked. Hostile text for whoever reads it.
    #[serde(default)]
    pub failure: Option<String>,
}

/// A driver call under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// On which GPU.
    pub gpu: Option<GpuIndex>,
    /// Since when, in milliseconds since boot.
    pub since_boot_ms: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The request that it answers.
    pub id: u64,
    /// What is answered.
    pub what: Answered,
}

/// What a far end answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// The plan that was asked for. Nothing has been sent to anybody.
    Plan(Box<Offer>),
    /// Something happened while the plan is carried out.
    Kill(KillEvent),
    /// What came back.
    Proof(Outcome),
    /// Not done, and why.
    Refused(String),
}

/// A plan in words, made where the processes are. Every text in it is hostile for the near end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// `End 2 processes, 44.2 GiB on GPU 0,1`.
    pub title: String,
    /// Whom, in the order of the signals.
    pub rows: Vec<OfferRow>,
    /// Who is left alone, and why, one line each.
    pub refused: Vec<String>,
    /// What will be sent.
    pub note: String,
    /// The order.
    pub order: KillOrder,
    /// The word that has to be typed first.
    #[serde(default)]
    pub typed: Option<String>,
    /// What should come back.
    #[serde(default)]
    pub expected: Vec<Expected>,
}

/// One process of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferRow {
    /// Whom.
    pub id: ProcId,
    /// Its owner.
    pub user: String,
    /// Its short name.
    pub command: String,
    /// What it holds, in words.
    pub bytes: String,
    /// Why it is in the plan.
    pub reason: String,
}

/// What should come back on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Which.
    pub gpu: GpuUuid,
    /// How much.
    pub bytes: Bytes,
}

/// What came back of a plan, measured where the GPUs are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `freed 44.1 of 44.2 GiB on GPU 0`.
    pub sentence: String,
    /// Whether all of it came back.
    pub complete: bool,
    /// Whether that is not known, and nothing is known to be left.
    #[serde(default)]
    pub unknown: bool,
    /// What came back; absent where that is not known.
    pub freed: Reading<Bytes>,
    /// What did not, why, and the next command, one line each.
    pub remaining: Vec<String>,
}

/// A request: `{"id":1,"zombies":{"gpu":null}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Repeated in every answer to it.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What a far end can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The plan to end these with their jobs: a dry run.
    Plan {
        /// Whom.
        targets: Vec<ProcId>,
        /// How hard; what suits each without it.
        #[serde(default)]
        preset: Option<KillPreset>,
    },
    /// The plan to end all zombies, on one GPU or on all.
    Zombies {
        /// Which.
        #[serde(default)]
        gpu: Option<GpuIndex>,
    },
    /// Carry out the plan that answered this request: the user's word is given.
    Kill {
        /// The request's id. Only the newest plan can be carried out, and once.
        plan: u64,
        /// The word that the plan asks for.
        #[serde(default)]
        typed: Option<String>,
    },
    /// Send no further signal.
    Cancel {},
    /// How often to look, and at what.
    Look {
        /// Milliseconds between two looks.
        interval_ms: u64,
        /// Also at the traffic on the bus.
        #[serde(default)]
        pcie: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;

    #[test]
    fn requests_are_one_short_line() {
        let id = ProcId { pid: Pid(7), start_ticks: 9 };
        let cases = [
            (Ask::Zombies { gpu: None }, r#"{"id":1,"zombies":{"gpu":null}}"#),
            (Ask::Cancel {}, r#"{"id":1,"cancel":{}}"#),
            (
                Ask::Plan { targets: vec![id], preset: Some(KillPreset::Now) },
                r#"{"id":1,"plan":{"targets":[{"pid":7,"start_ticks":9}],"preset":"now"}}"#,
            ),
            (Ask::Kill { plan: 1, typed: None }, r#"{"id":1,"kill":{"plan":1,"typed":null}}"#),
        ];
        for (ask, line) in cases {
            let request = Request { id: 1, ask };
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
            assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
        }
        let short = r#"{"id":2,"kill":{"plan":1}}"#;
        assert!(serde_json::from_str::<Request>(short).is_ok());
        assert!(serde_json::from_str::<Request>(r#"{"id":2,"reboot":{}}"#).is_err());
    }
}
