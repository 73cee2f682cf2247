//! Fix 8: what the desktop has on the GPU.

use super::common::{Answer, gathered, gpu_of, severity, unasked, unseen};
use super::{Finding, Fix, Outcome, Provenance, Rule, Saving};
use crate::analyze::{GpuView, Holder, View, shows_screen};
use crate::oom::{When, line_for};
use crate::units::Bytes;

/// The rule.
pub struct Consumers;

const KEY: &str = "consumers";
const NUMBER: u8 = 8;
/// A desktop of less is not worth closing.
const LEAST: Bytes = Bytes::mib(256);
/// Programs named in the evidence.
const NAMED: usize = 5;

impl Rule for Consumers {
    fn key(&self) -> &'static str {
        KEY
    }

    fn number(&self) -> u8 {
        NUMBER
    }

    fn check(&self, view: &View) -> Outcome {
        if let Some(outcome) = unseen(view) {
            return outcome;
        }
        let drawing: Vec<&Holder> = view.holders.iter().filter(|holder| draws(holder)).collect();
        let answers = view.gpus.iter().map(|gpu| desktop(view, gpu, &drawing));
        gathered(answers.chain(unasked(view)))
    }
}

/// Programs of the screen, not those that compute and draw besides.
fn draws(holder: &Holder) -> bool {
    holder.listed && holder.kinds.graphics && !holder.kinds.compute && holder.id.is_some()
}

fn desktop(view: &View, gpu: &GpuView, drawing: &[&Holder]) -> Answer {
    let same = |holder: &&&Holder| {
        gpu_of(view, holder).is_some_and(|its| its.sample.uuid == gpu.sample.uuid)
    };
    let mut here: Vec<(&Holder, Bytes)> = drawing
        .iter()
        .filter(same)
        .filter_map(|holder| Some((*holder, holder.bytes.get()?)))
        .collect();
    let untold = drawing.iter().filter(same).count() - here.len();
    here.sort_by_key(|(holder, bytes)| (std::cmp::Reverse(*bytes), holder.pid));
    let sum = |keep: bool| -> Bytes {
        let guarded = |h: &Holder| h.process.as_deref().is_none_or(shows_screen);
        here.iter().filter(|(h, _)| keep || !guarded(h)).map(|(_, bytes)| *bytes).sum()
    };
    let (all, closing) = (sum(true), sum(false));
    if all < LEAST && untold > 0 {
        let label = gpu.sample.label();
        let text =
            format!("the driver does not tell what the desktop's programs hold on GPU {label}");
        return Answer::CannotTell(text);
    }
    if all < LEAST {
        return Answer::Clear;
    }
    let programs = if here.len() == 1 { "program holds" } else { "programs hold" };
    let label = gpu.sample.label();
    let row = |(holder, bytes): &(&Holder, Bytes)| {
        let comm = holder.process.as_ref().map_or("", |process| process.comm.as_str());
        format!("{} {comm} {bytes}", holder.pid)
    };
    let mut evidence: Vec<String> = here.iter().take(NAMED).map(row).collect();
    if here.len() > NAMED {
        evidence.push(format!("and {} more", here.len() - NAMED));
    }
    match untold {
        0 => {}
        1 => evidence.push("1 more holds an amount that the driver does not tell".to_owned()),
        n => evidence.push(format!("{n} more hold amounts that the driver does not tell")),
    }
    let mut fixes = Vec::new();
    fixes.extend(fix("close what can be closed", When::Always, closing));
    fixes.extend(fix("no desktop at all", When::Desktop, all));
    Answer::Hit(Finding {
        rule: KEY,
        fix_number: NUMBER,
        severity: severity(gpu),
        gpu: Some(gpu.sample.index),
        pid: None,
        headline: format!("{} desktop {programs} {all} on GPU {label}", here.len()),
        evidence,
        fixes,
    })
}

fn fix(title: &str, when: When, bytes: Bytes) -> Option<Fix> {
    let (line, cost) = line_for(NUMBER, "*", &[when], &|_| None)?;
    (bytes > Bytes::ZERO).then(|| Fix {
        title: title.to_owned(),
        // A few buffers stay with the screen itself.
        saves: Some(Saving {
            bytes,
            low: Bytes(bytes.0 / 10 * 8),
            high: bytes,
            provenance: Provenance::Measured,
        }),
        line: Some(line),
        cost: cost.to_owned(),
        ends: Vec::new(),
    })
}
