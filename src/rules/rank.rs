//! The order of findings, and which of them free the same bytes.

use std::cmp::Reverse;

use super::{Finding, Fix};
use crate::units::Bytes;

/// Which part of a process's memory a fix is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    Weights,
    Cache,
    Activations,
    Cached,
    /// None: it frees nothing by itself.
    Nothing,
}

/// By rule: the part, and how much a fix hurts. Harm divides the bytes.
const TABLE: [(&str, Part, u64); 14] = [
    ("leftovers", Part::Whole, 1),
    ("preallocated", Part::Whole, 3),
    ("context", Part::Cache, 2),
    ("four_bit", Part::Weights, 3),
    ("offload", Part::Weights, 6),
    ("does_not_fit", Part::Nothing, 8),
    ("batch", Part::Activations, 3),
    ("checkpointing", Part::Activations, 2),
    ("fragmentation", Part::Cached, 1),
    ("growth", Part::Nothing, 1),
    ("consumers", Part::Whole, 2),
    ("mig_limit", Part::Nothing, 2),
    ("no_caching", Part::Nothing, 1),
    ("faults", Part::Nothing, 1),
];

fn row(rule: &str) -> (Part, u64) {
    TABLE.iter().find(|row| row.0 == rule).map_or((Part::Whole, 4), |row| (row.1, row.2))
}

/// Whether two findings free the same bytes at least in part, so that their sum would promise too
/// much: of one process, the same part of its memory, or all of it and a part.
pub fn overlaps(a: &Finding, b: &Finding) -> bool {
    let same = a.gpu == b.gpu && a.pid.is_some() && a.pid == b.pid;
    let ends = |finding: &Finding, other: &Finding| {
        let pids = finding.fixes.iter().flat_map(|fix| &fix.ends);
        pids.into_iter().any(|id| Some(id.pid) == other.pid)
    };
    let (one, other) = (row(a.rule).0, row(b.rule).0);
    let part = one == other || one == Part::Whole || other == Part::Whole;
    let nothing = one == Part::Nothing || other == Part::Nothing;
    (same && part && !nothing) || ends(a, b) || ends(b, a)
}

/// The fix of a finding that frees most for sure; among equals the surer one.
pub(super) fn best(finding: &Finding) -> Option<(&Fix, super::Saving)> {
    let savings = finding.fixes.iter().filter_map(|fix| Some((fix, fix.saves?)));
    savings.max_by_key(|(_, saving)| (saving.low, Reverse(saving.high)))
}

/// The gravest first; then bytes over harm; then those that free nothing, in the rules' order.
pub(super) fn in_order(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        let saves = finding.fixes.iter().filter_map(|fix| fix.saves).map(|saving| saving.bytes);
        let bytes = saves.max().unwrap_or(Bytes::ZERO);
        Reverse((finding.severity, bytes.0 / row(finding.rule).1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn every_rule_has_its_row() {
        for rule in RULES {
            assert!(TABLE.iter().any(|row| row.0 == rule.key()), "{}", rule.key());
        }
        assert_eq!(TABLE.len(), RULES.len());
    }
}
