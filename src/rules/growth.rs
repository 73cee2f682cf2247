//! "It fails after ten minutes": what grows, and when the GPU is full.

use super::common::{
    Answer, about, device, fix, gathered, not_told, room, software_key, uses_torch,
};
use super::per_holder::per_holder;
use super::{Finding, Outcome, Rule, Severity, served};
use crate::analyze::workload::Software;
use crate::analyze::{GpuView, Growth, Holder, View};
use crate::oom::When;
use crate::sample::Why;
use crate::units::{Bytes, age};

/// The rule.
pub struct Grows;

const KEY: &str = "growth";
/// A process younger than this is still loading, in milliseconds.
const LOADING_MS: u64 = 120_000;
/// Growth that fills a GPU later than this is not worth a line, in milliseconds.
const FAR_MS: u64 = 24 * 3_600_000;
/// Growth that fills it sooner is a warning, in milliseconds.
const NEAR_MS: u64 = 3_600_000;
/// And sooner than this nothing else matters, in milliseconds.
const NOW_MS: u64 = 10 * 60_000;

impl Rule for Grows {
    fn key(&self) -> &'static str {
        KEY
    }

    fn number(&self) -> u8 {
        0
    }

    fn check(&self, view: &View) -> Outcome {
        match per_holder(view, |holder, gpu| one(view, holder, gpu)) {
            Outcome::Hit(findings) => Outcome::Hit(findings),
            other => {
                let together = gathered(view.gpus.iter().map(together));
                match (&together, &other) {
                    (Outcome::Hit(_), _) | (_, Outcome::Clear) => together,
                    _ => other,
                }
            }
        }
    }
}

/// A GPU that fills although none of its holders grows steadily by itself: many that each take a
/// little, or somebody who is not listed.
fn together(gpu: &GpuView) -> Answer {
    let label = gpu.sample.label();
    let shared = gpu.ledger.get().is_some_and(|ledger| ledger.unified);
    if gpu.sample.mig_enabled.get() == Some(true) {
        return Answer::Clear;
    }
    let (per_minute, full) = match gpu.growth {
        Growth::NotYet if room(gpu).is_none() => return not_told(gpu),
        Growth::NotYet => {
            return Answer::NotYet(format!("GPU {label} has not been watched for long"));
        }
        Growth::Trend { per_minute, full_in_ms, .. } if per_minute.0 > 0.0 => {
            (per_minute, full_in_ms)
        }
        _ => return Answer::Clear,
    };
    let Some([earliest, likely, _]) = full else { return not_told(gpu) };
    if likely >= NEAR_MS {
        return Answer::Clear;
    }
    let rate = Bytes(per_minute.0 as u64);
    let earliest = format!("at the earliest in {}", age(earliest));
    let nobody = "no process grows steadily by itself: many do, or one that is not listed";
    let (what, evidence) = if shared {
        let whose = format!("GPU {label} has no memory of its own, but the host's");
        let programs = "programs on the processor take of it, too".to_owned();
        ("host memory".to_owned(), vec![whose, earliest, programs])
    } else {
        (format!("GPU {label}"), vec![earliest, nobody.to_owned()])
    };
    Answer::Hit(Finding {
        rule: KEY,
        fix_number: 0,
        severity: urgency(likely),
        gpu: Some(gpu.sample.index),
        pid: None,
        headline: format!("{what} fills by {rate} a minute: full in {}", age(likely)),
        evidence,
        fixes: Vec::new(),
    })
}

const fn urgency(full_in_ms: u64) -> Severity {
    match full_in_ms {
        0..NOW_MS => Severity::Critical,
        NOW_MS..NEAR_MS => Severity::Warning,
        _ => Severity::Notice,
    }
}

/// What it is that grows.
enum Kind {
    /// Tensors that somebody keeps.
    Leak(&'static str),
    /// The allocator's cache, by sizes that vary.
    Cache(&'static str),
    /// The cache of a generation, token by token.
    Tokens(&'static str),
    /// Something that is not known.
    Other(&'static str),
}

/// A server whose cache is full while requests wait: its memory stands still, and it fails all the
/// same.
fn full_cache(holder: &Holder) -> Option<Finding> {
    let said = served::served(holder).filter(|said| served::is_full(said))?;
    let (used, waiting) = (said.kv_used?.0, said.waiting?);
    let headline = format!("{}'s cache is {used:.0}% full and {waiting} requests wait", holder.pid);
    let mut found = about(holder, (KEY, 1), Severity::Warning, headline);
    found.evidence.extend(served::told(said));
    found.evidence.extend(served::load(said));
    found.evidence.push("requests are put off, or thrown out and computed again".to_owned());
    let title = (1, "8 bits in the cache: twice the tokens");
    found.fixes.extend(fix(holder, title, &[When::WideCache], None, &|_| None));
    Some(found)
}

/// A server that stands still may have a full cache all the same: clear only if it has answered.
fn cache_unknown(holder: &Holder) -> Answer {
    let pid = holder.pid;
    if served::served(holder).is_some_and(served::may_be_full) {
        let text =
            format!("whether requests wait for {pid}'s cache, which has no room, is not told");
        return Answer::CannotTell(text);
    }
    match served::silent(holder) {
        None => Answer::Clear,
        Some(Why::NotYet) => Answer::NotYet(format!("{pid} has not told its cache yet")),
        Some(why) => Answer::CannotTell(format!("whether {pid}'s cache is full: {}", why.words())),
    }
}

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    if let Some(found) = full_cache(holder) {
        return Answer::Hit(found);
    }
    let pid = holder.pid;
    let (per_minute, full) = match holder.growth {
        Growth::NotYet if holder.bytes.value().is_none() => {
            return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
        }
        Growth::NotYet => return Answer::NotYet(format!("{pid} has not been watched for long")),
        Growth::Trend { per_minute, full_in_ms, .. } if per_minute.0 > 0.0 => {
            (per_minute.0, full_in_ms)
        }
        _ => return cache_unknown(holder),
    };
    if holder.age_ms.get().is_some_and(|age| age < LOADING_MS) {
        return Answer::NotYet(format!("{pid} has only just started"));
    }
    let Some([earliest, likely, latest]) = full else {
        return Answer::CannotTell(format!("{pid} grows; what is free there is not known"));
    };
    if likely > FAR_MS {
        return Answer::Clear;
    }
    let rate = Bytes(per_minute as u64);
    let headline = format!("{pid} grows {rate} a minute: full in {}", age(likely));
    let kind = kind(view, holder, gpu);
    let (number, title, why, holds) = match kind {
        Kind::Leak(why) => (6, "drop what is kept", why, Some(When::Growing)),
        Kind::Cache(why) => (6, "let segments grow", why, Some(When::Fragmented)),
        Kind::Tokens(why) => (1, "a smaller cache", why, Some(When::Always)),
        Kind::Other(why) => (0, "", why, None),
    };
    let mut found = about(holder, (KEY, number), urgency(likely), headline);
    let latest = if latest > 4 * likely { "open".to_owned() } else { age(latest) };
    found.evidence.push(format!("full between {} and {latest} from now", age(earliest)));
    found.evidence.push(why.to_owned());
    let said = served::served(holder);
    found.evidence.extend(said.and_then(served::told));
    if let Some(when) = holds {
        found.fixes.extend(fix(holder, (number, title), &[when], None, &|_| None));
    }
    Answer::Hit(found)
}

fn kind(view: &View, holder: &Holder, gpu: &GpuView) -> Kind {
    let software = holder.workload.as_ref().map(|workload| workload.software);
    match software {
        Some(Software::Vllm | Software::Sglang | Software::TensorRtLlm | Software::Tgi) => {
            return Kind::Other("its cache is fixed: adapters, graphs or long inputs grow");
        }
        Some(Software::LlamaCpp | Software::Ollama) => {
            return Kind::Other("its cache is fixed: scratch grows with longer prompts, and ends");
        }
        _ => {}
    }
    let Ok(device) = device(holder, gpu) else {
        return if uses_torch(holder) || software_key(holder) == "jax" {
            Kind::Leak("its allocator could not be read: likely references that are kept")
        } else {
            Kind::Other("what grows in it cannot be seen from outside")
        };
    };
    // The GPU's allocated memory is this process's where no other allocator was read there.
    let readers = view.holders.iter().filter(|h| h.gpu == holder.gpu && device_read(h)).count();
    let grows =
        matches!(gpu.allocated_growth, Growth::Trend { per_minute, .. } if per_minute.0 > 0.0);
    let flat = matches!(gpu.allocated_growth, Growth::Steady);
    let cached = device.reserved - device.allocated;
    if readers == 1 && flat || cached.0 > device.reserved.0 / 3 && !(readers == 1 && grows) {
        return Kind::Cache("what is allocated does not grow with it: sizes vary");
    }
    if readers != 1 || !grows {
        return Kind::Other("whether tensors or the cache grow in it is not known");
    }
    if software == Some(Software::Transformers) && super::common::training(holder).is_none() {
        return Kind::Tokens("what is allocated grows: the cache of a generation, or references");
    }
    Kind::Leak("what is allocated grows: references are kept")
}

fn device_read(holder: &Holder) -> bool {
    holder.allocator.as_ref().is_some_and(|sample| sample.value().is_some())
}
