//! Faults that the driver reported (XID), and GPUs that it has lost: why a run ended that did not run
//! out of memory, and when a GPU cannot be trusted.

use super::{Finding, Fix, Outcome, Rule, Severity};
use crate::analyze::xid::{self, Blame, XidSeen};
use crate::analyze::{Freshness, GpuView, View};
use crate::sample::Why;
use crate::units::age;

/// The rule.
pub struct Faults;

const KEY: &str = "faults";
/// The fault of a program is told of for so long, in milliseconds.
const PROGRAM_MS: u64 = 15 * 60_000;
/// The XID of a GPU that is reached no more.
const FALLEN_OFF: u64 = 79;
/// One of the GPU for so long.
const GPU_MS: u64 = 24 * 3_600_000;

impl Rule for Faults {
    fn key(&self) -> &'static str {
        KEY
    }

    fn number(&self) -> u8 {
        0
    }

    fn check(&self, view: &View) -> Outcome {
        let whole = || view.gpus.iter().filter(|gpu| gpu.sample.mig.is_none());
        if whole().next().is_none() {
            return Outcome::NotYet("the driver has not answered yet".to_owned());
        }
        let findings: Vec<_> = whole().filter_map(|gpu| one(gpu).or_else(|| lost(gpu))).collect();
        if !findings.is_empty() {
            return Outcome::Hit(findings);
        }
        // A GPU that is watched and shows none says more than one that is not.
        let why = whole().find_map(|gpu| Some((gpu.sample.index, gpu.xids.watched.why()?)));
        match why {
            None => Outcome::Clear,
            Some((gpu, Why::NotYet)) => {
                Outcome::NotYet(format!("the faults of GPU {gpu} are not watched yet"))
            }
            Some((gpu, why)) => Outcome::CannotTell(format!(
                "whether GPU {gpu} had faults: {}",
                if why == Why::NotAsked { "nobody watched".to_owned() } else { why.words() }
            )),
        }
    }
}

/// The gravest fault of a GPU that still matters; of equals the newest.
fn one(gpu: &GpuView) -> Option<Finding> {
    let matters = |seen: &&XidSeen| match seen.xid.blame {
        Blame::Gpu => seen.age_ms <= GPU_MS,
        Blame::Program | Blame::Nobody => seen.age_ms <= PROGRAM_MS,
    };
    let recent = || gpu.xids.recent.iter().filter(matters);
    let worst = recent().map(|seen| seen.xid.blame).max()?;
    let seen = recent().find(|seen| seen.xid.blame == worst)?;
    let (index, code, xid) = (gpu.sample.index, seen.xid.code, seen.xid);
    let mut evidence: Vec<String> =
        recent().skip_while(|other| *other != seen).skip(1).take(4).map(told).collect();
    if let (Some(part), _) = seen.instance {
        evidence.insert(0, format!("in GPU instance {part}"));
    }
    evidence.insert(0, format!("on GPU {index}, {} ago", age(seen.age_ms)));
    evidence.push("the kernel's log names the process: dmesg | grep -i xid".to_owned());
    Some(Finding {
        rule: KEY,
        fix_number: 0,
        severity: match worst {
            Blame::Gpu => Severity::Critical,
            Blame::Program => Severity::Warning,
            Blame::Nobody => Severity::Notice,
        },
        gpu: Some(index),
        pid: None,
        headline: format!("XID {code}: {}", xid.meaning),
        evidence,
        fixes: vec![Fix {
            title: xid.advice.to_owned(),
            saves: None,
            line: None,
            cost: String::new(),
            ends: Vec::new(),
        }],
    })
}

/// One that the driver cannot reach any more, where no XID says why: one look sees that as well.
fn lost(gpu: &GpuView) -> Option<Finding> {
    if gpu.freshness != Freshness::Lost {
        return None;
    }
    let index = gpu.sample.index;
    Some(Finding {
        rule: KEY,
        fix_number: 0,
        severity: Severity::Critical,
        gpu: Some(index),
        pid: None,
        headline: format!("GPU {index} is lost: the driver cannot reach it"),
        evidence: vec![
            "every call answers that the GPU is lost".to_owned(),
            "the kernel's log says more: dmesg | grep -i xid".to_owned(),
        ],
        fixes: vec![Fix {
            title: xid::meaning(FALLEN_OFF).advice.to_owned(),
            saves: None,
            line: None,
            cost: String::new(),
            ends: Vec::new(),
        }],
    })
}

fn told(seen: &XidSeen) -> String {
    format!("XID {} {} ago: {}", seen.xid.code, age(seen.age_ms), seen.xid.meaning)
}
