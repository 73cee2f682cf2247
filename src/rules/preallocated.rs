//! Memory that is held by design: frameworks and servers that take their share at the start.

use super::common::{
    Answer, WORTH, about, already, facts, fix, not_told, room, saving, whole, workload,
};
use super::per_holder::PerHolder;
use super::{Fix, Provenance, Severity, served};
use crate::analyze::workload::{Setting, Software, Workload};
use crate::analyze::{GpuView, Holder, View};
use crate::oom::When;
use crate::sample::{ServerSample, Why};
use crate::units::Bytes;

/// It is about who holds memory, as fix 3 is.
const KEY: (&str, u8) = ("preallocated", 3);
/// Before that a server is still loading, in milliseconds.
const LOADING_MS: u64 = 30_000;
/// What a server needs besides weights and cache.
const BESIDE: u64 = 3 << 29;

/// The rule.
pub static RULE: PerHolder = PerHolder { key: KEY.0, number: KEY.1, ask: one };

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
    let workload = match workload(holder) {
        Ok(workload) => workload,
        Err(answer) => return answer,
    };
    let Some(taker) = TAKERS.iter().find(|t| t.software == workload.software) else {
        return Answer::Clear;
    };
    let pid = holder.pid;
    if holder.age_ms.get().is_some_and(|age| age < LOADING_MS) {
        return Answer::NotYet(format!("{pid} is still loading"));
    }
    // Of a GPU without memory of its own these take a share of the machine's.
    let Some((total, _)) = room(gpu) else { return not_told(gpu) };
    let Some(held) = holder.bytes.get() else {
        return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
    };
    let share =
        workload.get(Setting::MemoryFraction).and_then(|f| f.value.trim().parse::<f64>().ok());
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    let expected = share.unwrap_or(f64::from(taker.share) / 100.0) * total.0 as f64;
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
    let share = share.unwrap_or(f64::from(taker.share) / 100.0);
    let said = served::served(holder);
    found.evidence.push(match said.and_then(served::told) {
        Some(told) => told,
        None if served::silent(holder) == Some(Why::NotYet) => {
            "its own interface has not answered yet".to_owned()
        }
        None => "how much of it is in use is not seen from outside".to_owned(),
    });
    found.evidence.extend(said.and_then(served::load));
    let card = Card { total, share };
    match said.and_then(|said| Some((said, served::has_spare(said)?))) {
        Some((_, false)) => found.evidence.push("it needs the cache that it has".to_owned()),
        Some((said, true)) => found.fixes = by_report(view, holder, workload, said, card),
        None => found.fixes.extend(by_arithmetic(view, holder, workload, card)),
    }
    Answer::Hit(found)
}

/// Half of what the cache is thought to have.
fn by_arithmetic(view: &View, holder: &Holder, workload: &Workload, card: Card) -> Option<Fix> {
    let pool = half_pool(view, holder, workload).filter(|_| card.share > 0.1);
    let value = |name: &str| {
        let less = pool? as f64 / card.total.0 as f64;
        let new = ((card.share - less) * 100.0).floor() / 100.0;
        (name == "share" && new >= 0.05).then(|| format!("{new:.2}"))
    };
    let saves =
        pool.and_then(|half| saving(holder, [half / 10 * 8, half, half], Provenance::Estimated));
    fix(holder, (KEY.1, "a smaller share"), &[When::Preallocated], saves, &value)
}

/// The card, and which share of it was taken.
#[derive(Clone, Copy)]
struct Card {
    total: Bytes,
    share: f64,
}

/// Of what the server reports as not in use: a smaller share, and where one long request must fit
/// in the cache, a shorter one with it.
fn by_report(
    view: &View,
    holder: &Holder,
    workload: &Workload,
    said: &ServerSample,
    card: Card,
) -> Vec<Fix> {
    let Ok(facts) = facts(view, holder) else { return Vec::new() };
    let (Some(pool), Some(tokens), Some(wanted)) =
        (served::pool(said, workload, facts), said.kv_tokens, served::wanted_tokens(said))
    else {
        return Vec::new();
    };
    let least = tokens / 10;
    let longest = served::longest(workload, facts);
    let shorter = wanted.max(least).max(4096).next_multiple_of(1024);
    let rows = [
        ((KEY.1, "a smaller share"), When::Preallocated, wanted.max(least).max(longest)),
        ((1, "a shorter context and a smaller share"), When::Unused, shorter),
    ];
    let mut fixes = Vec::new();
    let mut before = Bytes::ZERO;
    for (title, when, keep) in rows {
        let Some((new, freed)) = card.without(pool, tokens, keep) else { continue };
        // A second line must free clearly more than the first.
        if freed < before + WORTH {
            continue;
        }
        let value = |name: &str| match name {
            "share" => Some(format!("{new:.2}")),
            "wanted" => Some(shorter.to_string()),
            _ => None,
        };
        // The reserve of the driver and of graphs moves a little with it.
        let saves = saving(holder, [freed.0 / 20 * 19, freed.0, freed.0], Provenance::Reported);
        fixes.extend(fix(holder, title, &[when], saves, &value));
        before = freed;
    }
    fixes
}

impl Card {
    /// The share with which so many of the pool's tokens are left, in hundredths rounded up, and
    /// what that frees.
    fn without(self, pool: u64, tokens: u64, keep: u64) -> Option<(f64, Bytes)> {
        let spare = tokens.checked_sub(keep)? as f64 / tokens.max(1) as f64 * pool as f64;
        let new = ((self.share - spare / self.total.0 as f64) * 100.0).ceil() / 100.0;
        let freed = (self.share - new) * self.total.0 as f64;
        (new >= 0.05 && freed > 0.0).then_some((new, Bytes(freed as u64)))
    }
}

/// Half of the cache that lies beside the weights, where both are known.
fn half_pool(view: &View, holder: &Holder, workload: &Workload) -> Option<u64> {
    if !matches!(workload.software, Software::Vllm | Software::Sglang) {
        return None;
    }
    let facts = facts(view, holder).ok()?;
    let cards = workload.number(Setting::TensorParallel).unwrap_or(1).max(1);
    let all = whole(view, holder)?;
    let weights = Bytes((facts.weight_bytes() / cards).saturating_add(BESIDE));
    let pool = holder.bytes.get()?.min(all).checked_sub(weights)?;
    (pool >= Bytes::gib(2)).then_some(pool.0 / 2)
}
