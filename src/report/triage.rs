//! The headless report: ledger, holders, findings, the next commands, and what could not be seen.

use serde::Serialize;

use crate::analyze::{Freshness, View};
use crate::report::clean::{clean, clean_for, wrap};
use crate::report::json::{ProcessRef, Snapshot};
use crate::report::ledger::{self, line};
use crate::report::table::{self, Column};
use crate::report::text::{cells, head, in_order};
use crate::report::{RedactCommand, Style, opened};
use crate::rules::{Finding, Fix, Provenance, Severity};
use crate::sample::{Reading, Why};

/// The report as JSON: everything of a [`Snapshot`], and the conclusions. The same rules hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Triage {
    /// The state that they were drawn from.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// What should be known, the worst first.
    pub findings: Vec<FindingJson>,
    /// What could not be seen, in words; empty where everything could.
    pub not_seen: Vec<String>,
}

/// Something that should be known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingJson {
    /// The rule's stable key.
    pub rule: &'static str,
    /// Which of the nine fixes; 0 for none of them.
    pub fix_number: u8,
    /// `notice`, `warning`, `critical`.
    pub severity: Severity,
    /// On which GPU; `null` where it is about none.
    pub gpu: Option<u32>,
    /// About which process; `null` where it is about none.
    pub pid: Option<u32>,
    /// One line.
    pub headline: String,
    /// The facts that led to it.
    pub evidence: Vec<String>,
    /// What to do, the best first.
    pub fixes: Vec<FixJson>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FixJson {
    /// In a few words.
    pub title: String,
    /// What it would free; `null` where nobody can say.
    pub saves: Option<SavingJson>,
    /// The line to type; `null` where there is none.
    pub line: Option<String>,
    /// What it costs.
    pub cost: String,
    /// Whom the kill key would end for it.
    pub ends: Vec<ProcessRef>,
}

/// What a fix would free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SavingJson {
    /// The likely figure.
    pub bytes: u64,
    /// At least.
    pub low_bytes: u64,
    /// At most.
    pub high_bytes: u64,
    /// `measured`, `read`, `reported`, `estimated`.
    pub provenance: Provenance,
}

impl Triage {
    /// The report of a view and of what the rules say of it.
    pub fn new(view: &View, findings: &[Finding], redact: RedactCommand) -> Self {
        Self {
            snapshot: Snapshot::new(view, redact),
            findings: by_severity(findings).into_iter().map(finding_json).collect(),
            not_seen: not_seen(view),
        }
    }
}

/// Whether there is nothing to do: the exit code of a headless run hangs on it. Notices alone are
/// clean.
pub fn is_clean(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.severity == Severity::Notice)
}

const HOLDERS: [Column; 7] = [
    Column::right("GPU", 3, 6),
    Column::right("PID", 7, 10),
    Column::left("USER", 4, 12),
    Column::left("STATE", 6, 10),
    Column::right("VRAM", 5, 6),
    Column::right("AGE", 4, 4),
    Column::left("COMMAND", 7, usize::MAX),
];

/// The report as text.
pub fn text(view: &View, findings: &[Finding], style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, view, style, false);
    for gpu in &view.gpus {
        out.push('\n');
        ledger::block(&mut out, view, gpu, style);
    }
    out.push_str("\nHOLDERS\n");
    let holders = in_order(view);
    let silent = view.gpus.is_empty() && view.driver.is_none();
    if silent {
        opened::write(&mut out, view, style);
    } else if holders.is_empty() {
        out.push_str("  none\n");
    } else {
        let rows: Vec<Vec<String>> =
            holders.into_iter().map(|holder| cells(view, holder, style).to_vec()).collect();
        table::write(&mut out, &HOLDERS, &rows, style);
    }
    out.push_str("\nFINDINGS\n");
    if silent {
        let text = "cannot be told: they are drawn from what the driver says";
        for text in wrap(text, style.width.saturating_sub(2)) {
            line(&mut out, &format!("  {text}"), style);
        }
    } else if findings.is_empty() {
        out.push_str("  none\n");
    }
    for (number, finding) in by_severity(findings).into_iter().enumerate() {
        write_finding(&mut out, number + 1, finding, style);
    }
    out.push('\n');
    let unseen = not_seen(view);
    let last = if unseen.is_empty() {
        "Everything could be read.".to_owned()
    } else {
        format!("Not seen: {}.", unseen.join("; "))
    };
    for text in wrap(&clean_for(&last, style.ascii), style.width) {
        line(&mut out, &text, style);
    }
    out
}

fn by_severity(findings: &[Finding]) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

const INDENT: &str = "     ";

/// A numbered finding with its evidence and fixes.
pub(super) fn write_finding(out: &mut String, number: usize, finding: &Finding, style: &Style) {
    let room = style.width.saturating_sub(INDENT.len());
    let headline = wrap(&clean_for(&finding.headline, style.ascii), room);
    for (at, text) in headline.iter().enumerate() {
        let lead = if at == 0 { format!("{number:>3}  ") } else { INDENT.to_owned() };
        line(out, &format!("{lead}{text}"), style);
    }
    let evidence = clean_for(&finding.evidence.join(", "), style.ascii);
    for text in wrap(&evidence, room) {
        line(out, &format!("{INDENT}{text}"), style);
    }
    for fix in &finding.fixes {
        write_fix(out, fix, style);
    }
}

/// A line to type is never cut and never broken: it is there to be pasted.
fn write_fix(out: &mut String, fix: &Fix, style: &Style) {
    let arrow = if style.ascii { "->" } else { "→" };
    let saves = fix.saves.map(|saves| format!("frees about {}", saves.bytes));
    if let Some(command) = &fix.line {
        let mut text = format!("{INDENT}{arrow} {}", clean(command));
        if let Some(saves) = saves {
            // A comment in a shell, so that it may be pasted along.
            let with = format!("{text}   # {saves}");
            if with.chars().count() <= style.width {
                text = with;
            }
        }
        out.push_str(&text);
        out.push('\n');
        return;
    }
    let title = clean_for(&fix.title, style.ascii);
    let text = saves.map_or_else(|| title.clone(), |saves| format!("{title} ({saves})"));
    let room = style.width.saturating_sub(INDENT.len() + 2);
    for (at, text) in wrap(&text, room).iter().enumerate() {
        let lead = if at == 0 { arrow } else { " " };
        line(out, &format!("{INDENT}{lead} {text}"), style);
    }
}

/// What cannot be known under WSL2.
const WINDOWS: &str = "who holds the memory (WSL2: the driver of Windows lists no process and no \
    program of Windows; its Task Manager shows them)";

/// What could not be seen, one thing a text.
pub fn not_seen(view: &View) -> Vec<String> {
    let mut unseen = Vec::new();
    let root = view.host.as_ref().is_some_and(|host| host.euid == 0);
    match view.scan {
        None => unseen.push("the machine's processes (/proc was not read)".to_owned()),
        Some(scan) if scan.unreadable > 0 => {
            let n = scan.unreadable;
            let processes = if n == 1 { "process" } else { "processes" };
            unseen.push(if root {
                format!("the open files of {n} {processes}")
            } else {
                format!("{n} {processes} of other users (run with sudo to read them)")
            });
        }
        Some(_) => {}
    }
    let host = view.host.as_ref();
    if host.is_some_and(|host| host.host_pid_namespace == Reading::Value(false)) {
        unseen.push("processes outside of this container (run on the host)".to_owned());
    }
    let wsl = host.is_some_and(|host| host.wsl);
    if wsl {
        unseen.push(WINDOWS.to_owned());
    }
    for gpu in &view.gpus {
        let name = ledger::gpu_name(gpu);
        let lists = gpu.sample.processes.why().filter(|why| !(wsl && *why == Why::NotSupported));
        unseen.extend(lists.map(|why| format!("the processes of {name} ({})", why.words())));
        let memory = gpu.ledger.why();
        unseen.extend(memory.map(|why| format!("the memory of {name} ({})", why.words())));
    }
    if let Freshness::Stalled { call, gpu, .. } = &view.freshness {
        unseen.push(opened::silence(view, call.as_deref(), *gpu));
    }
    if view.freshness == Freshness::Starting {
        unseen.push("what the driver says: it has not answered".to_owned());
    }
    unseen
}

pub(super) fn finding_json(finding: &Finding) -> FindingJson {
    FindingJson {
        rule: finding.rule,
        fix_number: finding.fix_number,
        severity: finding.severity,
        gpu: finding.gpu.map(|gpu| gpu.0),
        pid: finding.pid.map(|pid| pid.0),
        headline: clean(&finding.headline),
        evidence: finding.evidence.iter().map(|text| clean(text)).collect(),
        fixes: finding.fixes.iter().map(fix_json).collect(),
    }
}

fn fix_json(fix: &Fix) -> FixJson {
    FixJson {
        title: clean(&fix.title),
        saves: fix.saves.map(|saves| SavingJson {
            bytes: saves.bytes.0,
            low_bytes: saves.low.0,
            high_bytes: saves.high.0,
            provenance: saves.provenance,
        }),
        line: fix.line.as_deref().map(clean),
        cost: clean(&fix.cost),
        ends: fix.ends.iter().map(|id| ProcessRef::from(*id)).collect(),
    }
}
