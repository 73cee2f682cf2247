//! One process of a plan, and what it holds: for a person and for a program.

use serde::Serialize;

use super::kill_plan::ExpectedBytes;
use crate::ids::{Pid, ProcId};
use crate::sample::{Reading, Why};
use crate::units::Bytes;

/// One process that will be ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRow {
    /// Whom.
    pub id: ProcId,
    /// Its owner's name.
    pub user: Reading<String>,
    /// What it is called: the script rather than its interpreter. Hostile text.
    pub name: String,
    /// Its memory by GPU; a survivor has that of the dead whose memory it keeps.
    pub bytes: Vec<ExpectedBytes>,
    /// Why the driver does not tell what it holds on one of its GPUs, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<Why>,
    /// Another one of the plan that has the memory which both keep counted as its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_with: Option<Pid>,
    /// Why it is in the plan. May hold hostile text.
    pub reason: String,
    /// Whether its verdict allows the one-key kill.
    pub zombie: bool,
}

impl PlanRow {
    /// On all GPUs.
    pub fn total(&self) -> Bytes {
        self.bytes.iter().map(|share| share.bytes).sum()
    }

    /// The same for a program: nothing of one whose memory another of the plan has (`shares_with`),
    /// and why not where the driver does not tell all of it.
    pub fn told(&self) -> Option<Reading<Bytes>> {
        match (self.shares_with, self.untold) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(Reading::Absent(why)),
            (None, None) => Some(Reading::Value(self.total())),
        }
    }

    /// In words; of one whose memory another of the plan has: that it is shared.
    pub fn holds(&self) -> String {
        match self.shares_with {
            // Of some GPU the driver does not tell it.
            _ if !self.bytes.is_empty() && self.untold.is_some() => format!("{}+", self.total()),
            _ if !self.bytes.is_empty() => self.total().to_string(),
            Some(_) => "shared".to_owned(),
            None => "-".to_owned(),
        }
    }

    /// Why it is in the plan, and with whom it shares. May hold hostile text.
    pub fn why(&self) -> String {
        match self.shares_with {
            Some(pid) => format!("keeps what {pid} keeps; {}", self.reason),
            None => self.reason.clone(),
        }
    }
}
