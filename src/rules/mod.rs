//! The nine fixes as pure functions of the view.

mod activations;
mod common;
mod consumers;
mod context;
mod does_not_fit;
mod faults;
mod fits;
mod four_bit;
mod fragmentation;
mod grounds;
mod growth;
mod leftovers;
mod limits;
mod offload;
mod per_holder;
mod preallocated;
mod rank;
mod served;

pub use fits::{Fit, Step, Wanted, closest, fit_of, mark, would_it_fit};
pub use grounds::grounds;
pub use rank::overlaps;

use serde::Serialize;

use crate::analyze::View;
use crate::ids::{GpuIndex, Pid, ProcId};
use crate::units::Bytes;

/// Something that should be known, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's stable key, `leftovers`.
    pub rule: &'static str,
    /// Which of the nine fixes, 0 for none of them.
    pub fix_number: u8,
    /// How bad.
    pub severity: Severity,
    /// On which GPU.
    pub gpu: Option<GpuIndex>,
    /// About which process.
    pub pid: Option<Pid>,
    /// One line. May hold hostile text.
    pub headline: String,
    /// The facts that led to it, one line each. May hold hostile text.
    pub evidence: Vec<String>,
    /// What to do, the best first.
    pub fixes: Vec<Fix>,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Notice,
    /// Memory is wasted.
    Warning,
    /// Nothing works until it is mended.
    Critical,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fix {
    /// In a few words.
    pub title: String,
    /// What it would free.
    pub saves: Option<Saving>,
    /// The exact line to type, where there is one.
    pub line: Option<String>,
    /// What it costs.
    pub cost: String,
    /// Whom the kill key would end for it.
    pub ends: Vec<ProcId>,
}

/// Bytes that a fix would free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Saving {
    /// The likely figure.
    pub bytes: Bytes,
    /// At least.
    pub low: Bytes,
    /// At most.
    pub high: Bytes,
    /// Where the figure comes from.
    pub provenance: Provenance,
}

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// By the driver or the kernel.
    Measured,
    /// From the process.
    Read,
    /// By a server's interface.
    Reported,
    /// Arithmetic.
    Estimated,
}

/// The outcome of a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It does not apply.
    Clear,
    /// It applies.
    Hit(Vec<Finding>),
    /// It needs more samples.
    NotYet(String),
    /// It cannot be decided here, and why.
    CannotTell(String),
}

/// One of the nine fixes.
pub trait Rule: Sync {
    /// Its stable key.
    fn key(&self) -> &'static str;
    /// Which of the nine fixes.
    fn number(&self) -> u8;
    /// Whether it applies.
    fn check(&self, view: &View) -> Outcome;
}

/// Every rule. Help, reports and `run` come from this table.
pub static RULES: &[&dyn Rule] = &[
    &context::RULE,
    &four_bit::RULE,
    &leftovers::Leftovers,
    &activations::SMALLER_STEP,
    &offload::RULE,
    &fragmentation::RULE,
    &activations::CHECKPOINTING,
    &consumers::Consumers,
    &does_not_fit::RULE,
    &growth::Grows,
    &preallocated::RULE,
    &limits::OTHER_LIMIT,
    &limits::NO_CACHING,
    &faults::Faults,
];

/// What all rules say of a view, by key: for whoever asks why there is no finding.
pub fn outcomes(view: &View) -> Vec<(&'static str, Outcome)> {
    RULES.iter().map(|rule| (rule.key(), rule.check(view))).collect()
}

/// The same, each with whether its fix is enough for what is wanted.
pub fn run_for(view: &View, wanted: Option<Wanted>) -> Vec<Finding> {
    let mut findings = run(view);
    if let Some(wanted) = wanted {
        mark(view, wanted, &mut findings);
    }
    findings
}

/// Every finding, the worst first; among equals the one that frees most for the least harm.
pub fn run(view: &View) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES
        .iter()
        .flat_map(|rule| match rule.check(view) {
            Outcome::Hit(findings) => findings,
            Outcome::Clear | Outcome::NotYet(_) | Outcome::CannotTell(_) => Vec::new(),
        })
        .collect();
    rank::in_order(&mut findings);
    findings
}
