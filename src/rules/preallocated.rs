//! Memory that is held by design: frameworks and servers that take their share at the start.

use super::common::{Answer, about, already, facts, fix, per_holder, saving, whole};
use super::{Outcome, Provenance, Rule, Severity};
use crate::analyze::workload::{Setting, Software, Workload};
use crate::analyze::{GpuView, Holder, View};
use crate::oom::When;
use crate::units::Bytes;

/// The rule.
pub struct Preallocated;

/// It is about who holds memory, as fix 3 is.
const KEY: (&str, u8) = ("preallocated", 3);
/// Before that a server is still loading, in milliseconds.
const LOADING_MS: u64 = 30_000;
/// What a server needs besides weights and cache.
const BESIDE: u64 = 3 << 29;

impl Rule for Preallocated {
    fn key(&self) -> &'static str {
        KEY.0
    }

    fn number(&self) -> u8 {
        KEY.1
    }

    fn check(&self, view: &View) -> Outcome {
        per_holder(view, |holder, gpu| one(view, holder, gpu))
    }
}

/// Who takes what, and unless which variable says otherwise.
struct Taker {
    software: Software,
    /// Its share where none is set, in hundredths of the card.
    share: u32,
    why: &'static str,
    /// Variables with which it may not; none where it always does.
    unless: &'static [&'static str],
}

const fn taker(
    software: Software,
    share: u32,
    why: &'static str,
    unless: &'static [&'static str],
) -> Taker {
    Taker { software, share, why, unless }
}

const TAKERS: [Taker; 5] = [
    taker(
        Software::Jax,
        75,
        "JAX takes its share at the first use",
        &["XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR"],
    ),
    taker(
        Software::TensorFlow,
        95,
        "TensorFlow takes nearly all at the first use",
        &["TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"],
    ),
    taker(Software::Vllm, 90, "vLLM fills its share with the cache", &[]),
    taker(Software::Sglang, 88, "SGLang fills its share with the cache", &[]),
    taker(Software::TensorRtLlm, 90, "TensorRT-LLM fills what was free with the cache", &[]),
];

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let Some(workload) = &holder.workload else { return Answer::Clear };
    let Some(taker) = TAKERS.iter().find(|t| t.software == workload.software) else {
        return Answer::Clear;
    };
    let pid = holder.pid;
    if holder.age_ms.get().is_some_and(|age| age < LOADING_MS) {
        return Answer::NotYet(format!("{pid} is still loading"));
    }
    let (Some(held), Some(memory)) = (holder.bytes.get(), gpu.sample.memory.get()) else {
        return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
    };
    let share =
        workload.get(Setting::MemoryFraction).and_then(|f| f.value.trim().parse::<f64>().ok());
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    let expected = share.unwrap_or(f64::from(taker.share) / 100.0) * memory.total.0 as f64;
    // One that holds far less does not preallocate, whatever it is.
    if (held.0 as f64) < expected * 0.6 {
        return Answer::Clear;
    }
    if !taker.unless.is_empty() {
        let environment = holder.process.as_ref().and_then(|p| p.environment.as_ref());
        if environment.is_none_or(|read| read.value().is_none()) {
            return Answer::CannotTell(format!("the environment of {pid} was not read"));
        }
        if taker.unless.iter().any(|name| already(holder, KEY.1, name)) {
            return Answer::Clear;
        }
    }
    let name = workload.software.name();
    let headline = format!("{pid} holds {held} by design: {name}");
    let mut found = about(holder, KEY, Severity::Notice, headline);
    found.evidence.push(taker.why.to_owned());
    found.evidence.push(match workload.get(Setting::MemoryFraction) {
        Some(set) => format!("share {} ({})", set.value, set.origin.words()),
        None => format!("share {:.2}, its default", f64::from(taker.share) / 100.0),
    });
    found.evidence.push("how much of it is in use is not seen from outside".to_owned());
    let share = share.unwrap_or(f64::from(taker.share) / 100.0);
    let pool = half_pool(view, holder, workload).filter(|_| share > 0.1);
    let value = |name: &str| {
        let less = pool? as f64 / memory.total.0 as f64;
        let new = ((share - less) * 100.0).floor() / 100.0;
        (name == "share" && new >= 0.05).then(|| format!("{new:.2}"))
    };
    let saves =
        pool.and_then(|half| saving(holder, [half / 10 * 8, half, half], Provenance::Estimated));
    let title = (KEY.1, "a smaller share");
    found.fixes.extend(fix(holder, title, &[When::Preallocated], saves, &value));
    Answer::Hit(found)
}

/// Half of the cache that lies beside the weights, where both are known.
fn half_pool(view: &View, holder: &Holder, workload: &Workload) -> Option<u64> {
    if !matches!(workload.software, Software::Vllm | Software::Sglang) {
        return None;
    }
    let facts = facts(view, holder).ok()?;
    let cards = workload.number(Setting::TensorParallel).unwrap_or(1).max(1);
    let all = whole(view, holder).max(holder.bytes.get()?);
    let weights = Bytes((facts.weight_bytes() / cards).saturating_add(BESIDE));
    let pool = holder.bytes.get()?.min(all).checked_sub(weights)?;
    (pool >= Bytes::gib(2)).then_some(pool.0 / 2)
}
