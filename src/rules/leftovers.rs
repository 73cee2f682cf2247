//! Fix 3: what really holds the memory, and which of it nobody wants.

use std::collections::BTreeMap;

use super::common::{Answer, gathered, gpu_of, label_of, unasked};
use super::{Finding, Fix, Outcome, Provenance, Rule, Saving, Severity};
use crate::analyze::{Class, ExpectedBytes, GpuView, Holder, View, Weight, freed_by};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::sample::{Reading, Why};
use crate::units::{Bytes, age};

/// Idle holders of less are not worth a line.
const WORTH_ASKING: Bytes = Bytes::gib(1);
/// Pids in a headline; more are counted.
const NAMED: usize = 4;

/// The rule.
pub struct Leftovers;

const KEY: &str = "leftovers";

impl Rule for Leftovers {
    fn key(&self) -> &'static str {
        KEY
    }

    fn number(&self) -> u8 {
        3
    }

    fn check(&self, view: &View) -> Outcome {
        if view.gpus.is_empty() {
            return Outcome::NotYet("the driver has not answered yet".to_owned());
        }
        if view.procs_age_ms.is_none() {
            return Outcome::NotYet("the processes have not been looked at yet".to_owned());
        }
        if view.gpus.iter().all(|gpu| gpu.sample.processes.value().is_none()) {
            return Outcome::CannotTell("the driver lists no processes here".to_owned());
        }
        let mut findings = zombies(view);
        findings.extend(view.holders.iter().filter_map(|holder| keeper_unknown(view, holder)));
        findings.extend(view.holders.iter().filter_map(|holder| stuck(view, holder)));
        findings.extend(view.gpus.iter().filter_map(unaccounted));
        findings.extend(view.holders.iter().filter_map(|holder| idle(view, holder)));
        if !findings.is_empty() {
            return Outcome::Hit(findings);
        }
        let rows = view.holders.iter().filter_map(|holder| doubt(view, holder));
        gathered(rows.chain(unasked(view)).chain(view.gpus.iter().filter_map(ledger_unknown)))
    }
}

/// Why it cannot be said of a holder that somebody wants it.
fn doubt(view: &View, holder: &Holder) -> Option<Answer> {
    let pid = holder.pid;
    let untold = holder.bytes.value().is_none();
    match holder.verdict.class {
        Class::Orphan => {
            let text = format!("{pid} has lost its launcher and may still be at work");
            Some(Answer::NotYet(text))
        }
        Class::Ghost | Class::Reused if untold && holder.survivors.is_empty() => {
            Some(Answer::CannotTell(format!("what is left of {pid} is not told")))
        }
        Class::Idle | Class::IdleServer | Class::Suspended if untold => {
            Some(Answer::CannotTell(format!("what {pid} holds while it is idle is not told")))
        }
        // Who is in no list, or was not looked at, is told of elsewhere.
        Class::Unknown if holder.listed && holder.id.is_some() => {
            let why = gpu_of(view, holder)?.sample.process_utilization.why();
            Some(why.filter(|why| *why != Why::NotYet).map_or_else(
                || Answer::NotYet(format!("whether {pid} is at work is not known yet")),
                |why| Answer::CannotTell(format!("whether {pid} is at work: {}", why.words())),
            ))
        }
        _ => None,
    }
}

/// Memory that is nobody's cannot be told from a ledger that is not there.
fn ledger_unknown(gpu: &GpuView) -> Option<Answer> {
    let (label, why) = (gpu.sample.label(), gpu.ledger.why()?.words());
    let split = gpu.sample.mig.is_none() && gpu.sample.mig_enabled.get() == Some(true);
    (!split).then(|| Answer::CannotTell(format!("where the memory of GPU {label} is: {why}")))
}

fn finding(severity: Severity, gpu: GpuIndex, pid: Option<Pid>, headline: String) -> Finding {
    Finding {
        rule: KEY,
        fix_number: 3,
        severity,
        gpu: Some(gpu),
        pid,
        headline,
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

fn name(holder: &Holder) -> String {
    holder.process.as_ref().map_or_else(String::new, |process| process.short_name())
}

/// The facts that speak for it, each once.
fn facts(holders: &[&Holder]) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    let evidence = holders.iter().flat_map(|holder| &holder.verdict.evidence);
    for fact in evidence.filter(|fact| fact.weight == Weight::For) {
        if !facts.contains(&fact.text) {
            facts.push(fact.text.clone());
        }
    }
    facts
}

/// Zombies of one owner and process group are one leftover.
fn zombies(view: &View) -> Vec<Finding> {
    let mut groups: BTreeMap<(Option<u32>, Pid), Vec<&Holder>> = BTreeMap::new();
    for holder in view.holders.iter().filter(|holder| holder.verdict.zombie) {
        let Some(process) = &holder.process else { continue };
        groups.entry((process.uid.get(), process.group)).or_default().push(holder);
    }
    groups.values().filter_map(|holders| leftover(view, holders)).collect()
}

fn leftover(view: &View, holders: &[&Holder]) -> Option<Finding> {
    let mut ids: Vec<ProcId> = holders.iter().filter_map(|holder| holder.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let first = holders.first()?;
    let expected = freed_by(view, &ids);
    let bytes: Bytes = expected.iter().map(|part| part.bytes).sum();
    let subject = match ids.len() {
        1 => "zombie holds".to_owned(),
        count => format!("{count} zombies hold"),
    };
    let user = first.process.as_ref().and_then(|process| process.user.value());
    let headline = format!(
        "{subject} {bytes} on GPU {}: {}, pid {}{}",
        gpus(view, &expected, holders),
        name(first),
        pids(&ids),
        user.map_or_else(String::new, |user| format!(", user {user}"))
    );
    let mut found = finding(Severity::Warning, first.index, Some(first.pid), headline);
    found.evidence = facts(holders);
    found.fixes.push(end(view, first, &ids, bytes));
    Some(found)
}

fn end(view: &View, first: &Holder, ids: &[ProcId], bytes: Bytes) -> Fix {
    let uid = first.process.as_ref().and_then(|process| process.uid.get());
    let euid = view.host.as_ref().map(|host| host.euid);
    let theirs = matches!((uid, euid), (Some(uid), Some(euid)) if euid != 0 && uid != euid);
    let targets: Vec<_> = ids.iter().map(|id| id.pid.to_string()).collect();
    let sudo = if theirs { "sudo " } else { "" };
    Fix {
        title: "end it".to_owned(),
        saves: (bytes > Bytes::ZERO).then_some(Saving {
            bytes,
            low: bytes,
            high: bytes,
            provenance: Provenance::Measured,
        }),
        line: Some(format!("{sudo}vramlens kill {}", targets.join(" "))),
        cost: "what it has not saved is lost".to_owned(),
        ends: if theirs { Vec::new() } else { ids.to_vec() },
    }
}

/// The GPUs on which memory comes back, else those of the rows.
fn gpus(view: &View, expected: &[ExpectedBytes], holders: &[&Holder]) -> String {
    let mut all: Vec<&GpuUuid> = expected.iter().map(|part| &part.gpu).collect();
    if all.is_empty() {
        all = holders.iter().map(|holder| &holder.gpu).collect();
    }
    // As the view has them: by number, the instances of each in order.
    let here = view.gpus.iter().filter(|gpu| all.contains(&&gpu.sample.uuid));
    here.map(|gpu| gpu.sample.label()).collect::<Vec<_>>().join(", ")
}

fn pids(ids: &[ProcId]) -> String {
    let shown: Vec<_> = ids.iter().take(NAMED).map(|id| id.pid.to_string()).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A dead process whose memory somebody keeps who was not found.
fn keeper_unknown(view: &View, holder: &Holder) -> Option<Finding> {
    let dead = matches!(holder.verdict.class, Class::Ghost | Class::Reused);
    if !dead || !holder.survivors.is_empty() {
        return None;
    }
    let bytes = holder.bytes.get()?;
    let whose = match holder.verdict.class {
        Class::Reused => "whose number another process has now",
        _ => "which is dead",
    };
    let headline = format!(
        "{bytes} on GPU {} are listed under {}, {whose}, and who keeps them was not found",
        label_of(view, holder),
        holder.pid
    );
    let mut found = finding(Severity::Warning, holder.index, Some(holder.pid), headline);
    found.evidence = holder.verdict.evidence.iter().map(|fact| fact.text.clone()).collect();
    let unseen = holder.verdict.evidence.iter().any(|fact| fact.key == "keeper_unseen");
    found.fixes.push(Fix {
        title: if unseen {
            "look again with all rights"
        } else {
            "look again in a minute, when those who just ended have let go"
        }
        .to_owned(),
        saves: None,
        // Whoever reads a report of this has just run the command without these rights.
        line: unseen.then(|| "sudo vramlens triage".to_owned()),
        cost: "nothing".to_owned(),
        ends: Vec::new(),
    });
    Some(found)
}

/// A holder that no signal ends.
fn stuck(view: &View, holder: &Holder) -> Option<Finding> {
    if !matches!(holder.verdict.class, Class::Stuck | Class::Unkillable) {
        return None;
    }
    let held = holder.bytes.get().map_or_else(String::new, |bytes| format!(" and holds {bytes}"));
    let headline = format!(
        "{} {} cannot end{held} on GPU {}",
        holder.pid,
        name(holder),
        label_of(view, holder)
    );
    let mut found = finding(Severity::Critical, holder.index, Some(holder.pid), headline);
    let (cures, facts): (Vec<_>, Vec<_>) =
        holder.verdict.evidence.iter().partition(|fact| fact.key == "cure");
    found.evidence = facts.iter().map(|fact| fact.text.clone()).collect();
    found.fixes.extend(cures.iter().map(|cure| Fix {
        title: cure.text.clone(),
        saves: None,
        line: None,
        cost: "see there".to_owned(),
        ends: Vec::new(),
    }));
    Some(found)
}

/// Memory that is used and nobody's.
fn unaccounted(gpu: &GpuView) -> Option<Finding> {
    let likely = gpu.unaccounted_causes.first()?;
    let Reading::Value(ledger) = &gpu.ledger else { return None };
    // A list that could not be read is a cause, also where nothing is missing.
    if gpu.sample.unlisted().is_none() && !ledger.is_unattributed() {
        return None;
    }
    let index = gpu.sample.index;
    // Where it cannot be told nothing is likely.
    let likely_word = if likely.is_certain() { "" } else { "likely " };
    let whose = match gpu.sample.unlisted() {
        Some(_) => "and by whom is not known",
        None => "and no process is listed with them",
    };
    let headline = format!(
        "{} on GPU {} are used {whose}: {likely_word}{}",
        ledger.unaccounted,
        gpu.sample.label(),
        likely.text
    );
    let mut found = finding(Severity::Notice, index, likely.pids.first().copied(), headline);
    let others = gpu.unaccounted_causes.iter().skip(1);
    found.evidence = others.map(|cause| format!("else: {}", cause.text)).collect();
    Some(found)
}

/// What would come back if its owner agreed.
fn idle(view: &View, holder: &Holder) -> Option<Finding> {
    let idle = matches!(holder.verdict.class, Class::Idle | Class::IdleServer | Class::Suspended);
    let bytes = holder.bytes.get().filter(|bytes| idle && *bytes >= WORTH_ASKING)?;
    let since = holder.verdict.since_ms.map_or_else(String::new, |ms| format!(" for {}", age(ms)));
    let state = match holder.verdict.class {
        Class::Suspended => "suspended",
        Class::IdleServer => "a server without work",
        _ => "idle",
    };
    let headline = format!(
        "{} {} is {state}{since} and holds {bytes} on GPU {}",
        holder.pid,
        name(holder),
        label_of(view, holder)
    );
    let mut found = finding(Severity::Notice, holder.index, Some(holder.pid), headline);
    found.evidence = holder.verdict.evidence.iter().map(|fact| fact.text.clone()).collect();
    let line = match &holder.verdict.manager {
        Some(manager) => manager.command.clone(),
        None => format!("vramlens kill {}", holder.pid),
    };
    found.fixes.push(Fix {
        title: "ask its owner, then end it".to_owned(),
        saves: Some(Saving { bytes, low: bytes, high: bytes, provenance: Provenance::Measured }),
        line: Some(line),
        cost: "somebody may still want it".to_owned(),
        ends: Vec::new(),
    });
    Some(found)
}
