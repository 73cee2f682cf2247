//! Every rule with cases that hit, that are clear, that need more samples, that cannot be told.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod verdict_support;

#[path = "rule_cases/build.rs"]
#[allow(dead_code, reason = "shared by the tests of rules")]
mod build;
#[path = "rule_cases/fragmentation.rs"]
mod fragmentation;
#[path = "rule_cases/growth.rs"]
mod growth;
#[path = "rule_cases/limits.rs"]
mod limits;
#[path = "rule_cases/models.rs"]
mod models;
#[path = "rule_cases/served.rs"]
mod served;
#[path = "rule_cases/shared.rs"]
mod shared;
#[path = "rule_cases/steps.rs"]
mod steps;

use std::collections::BTreeSet;

use vramlens::analyze::View;
use vramlens::rules::{Finding, Outcome, RULES, outcomes, run};
use vramlens::sample::text;
use vramlens::units::Bytes;

/// What a rule must say.
pub enum Expect {
    /// A finding with this headline; its first line to type begins so; it frees so many tenths of
    /// a GiB, from and to. No line and no bytes where they are empty.
    Hit(&'static str, &'static str, [u64; 2]),
    Clear,
    /// With this in the reason.
    NotYet(&'static str),
    CannotTell(&'static str),
}

pub struct Case {
    pub rule: &'static str,
    pub name: &'static str,
    pub view: fn() -> View,
    pub expect: Expect,
}

pub const fn case(
    rule: &'static str,
    name: &'static str,
    view: fn() -> View,
    expect: Expect,
) -> Case {
    Case { rule, name, view, expect }
}

fn all() -> Vec<Case> {
    let mut all = fragmentation::cases();
    all.extend(steps::cases());
    all.extend(growth::cases());
    all.extend(models::cases());
    all.extend(limits::cases());
    all.extend(served::cases());
    all.extend(shared::cases());
    all
}

fn check(view: &View, rule: &str) -> Outcome {
    outcomes(view).into_iter().find(|outcome| outcome.0 == rule).unwrap().1
}

#[test]
fn every_case_ends_as_its_row_says() {
    let mut wrong = Vec::new();
    for case in all() {
        let outcome = check(&(case.view)(), case.rule);
        if let Err(why) = matches(&outcome, &case.expect) {
            wrong.push(format!("{}: {}: {why}\n    {outcome:?}", case.rule, case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn matches(outcome: &Outcome, expect: &Expect) -> Result<(), String> {
    match (outcome, expect) {
        (Outcome::Clear, Expect::Clear) => Ok(()),
        (Outcome::NotYet(why), Expect::NotYet(part))
        | (Outcome::CannotTell(why), Expect::CannotTell(part)) => {
            if why.contains(part) {
                Ok(())
            } else {
                Err(format!("no {part:?} in it"))
            }
        }
        (Outcome::Hit(findings), Expect::Hit(headline, line, bytes)) => {
            let [finding] = findings.as_slice() else { return Err("not one finding".to_owned()) };
            hit(finding, headline, line, *bytes)
        }
        _ => Err("another outcome".to_owned()),
    }
}

fn hit(finding: &Finding, headline: &str, line: &str, [from, to]: [u64; 2]) -> Result<(), String> {
    if finding.headline != headline {
        return Err(format!("{:?} is not {headline:?}", finding.headline));
    }
    let fix = finding.fixes.first();
    let first = fix.and_then(|fix| fix.line.as_deref()).unwrap_or_default();
    if !first.starts_with(line) || line.is_empty() != first.is_empty() {
        return Err(format!("the line is {first:?}"));
    }
    let bytes = fix.and_then(|fix| fix.saves).map_or(Bytes::ZERO, |saving| saving.bytes);
    if bytes < build::g(from) || bytes > build::g(to) {
        return Err(format!("it frees {bytes}"));
    }
    Ok(())
}

/// Outcomes that a rule cannot have, and why.
const NEVER: [(&str, &str); 0] = [];

#[test]
fn no_rule_lacks_a_case_of_each_outcome() {
    let mut have: BTreeSet<(&str, &str)> = BTreeSet::new();
    for case in all() {
        have.insert((
            case.rule,
            match case.expect {
                Expect::Hit(..) => "hit",
                Expect::Clear => "clear",
                Expect::NotYet(_) => "not yet",
                Expect::CannotTell(_) => "cannot tell",
            },
        ));
    }
    let mut lacking = Vec::new();
    // Rule 3 has a file of tests of its own.
    for rule in RULES.iter().filter(|rule| rule.key() != "leftovers") {
        for outcome in ["hit", "clear", "not yet", "cannot tell"] {
            let key = (rule.key(), outcome);
            if !have.contains(&key) && !NEVER.contains(&key) {
                lacking.push(key);
            }
        }
    }
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn findings_name_their_subject_and_fit_into_eighty_columns() {
    for case in all() {
        for finding in run(&(case.view)()) {
            if finding.rule == "leftovers" {
                continue;
            }
            let wide = text::width(&finding.headline);
            assert!(wide <= 56, "{wide}: {}", finding.headline);
            assert_eq!(finding.gpu.map(|gpu| gpu.0), Some(0), "{finding:?}");
            let named =
                finding.pid.is_none_or(|pid| finding.evidence[0].contains(&pid.to_string()));
            assert!(named, "{finding:?}");
            assert!(finding.fixes.iter().all(|fix| fix.ends.is_empty()), "{finding:?}");
        }
    }
}

#[test]
fn no_finding_promises_more_than_its_process_holds() {
    for case in all() {
        let view = (case.view)();
        for finding in run(&view) {
            let Some(pid) = finding.pid else { continue };
            let held: Bytes = view
                .holders
                .iter()
                .filter(|holder| holder.pid == pid && Some(holder.index) == finding.gpu)
                .filter_map(|holder| holder.bytes.get())
                .sum();
            for saving in finding.fixes.iter().filter_map(|fix| fix.saves) {
                assert!(saving.low <= saving.bytes && saving.bytes <= saving.high, "{finding:?}");
                assert!(saving.high <= held, "{held}: {finding:?}");
            }
        }
    }
}
