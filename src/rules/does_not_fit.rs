//! Fix 9: a model that no setting brings onto the GPUs of this machine.

use super::Severity;
use super::common::{Answer, about, facts, fix, room, workload};
use super::per_holder::PerHolder;
use crate::analyze::workload::Software;
use crate::analyze::{Holder, View};
use crate::model::kv::{self, CacheSettings};
use crate::model::quant::named;
use crate::model::{Kind, ModelFacts};
use crate::oom::When;
use crate::units::Bytes;

const KEY: (&str, u8) = ("does_not_fit", 9);
/// The shortest context that is of use, in tokens.
const TOKENS: u64 = 2048;
/// What CUDA itself and scratch take at the least.
const BESIDE: Bytes = Bytes::mib(768);
/// Cards that are sold: GiB as bought, MiB that are usable.
const CARDS: [(u64, u64); 10] = [
    (8, 7_900),
    (12, 11_900),
    (16, 15_900),
    (24, 24_000),
    (32, 32_100),
    (48, 48_500),
    (80, 80_900),
    (96, 97_200),
    (141, 143_100),
    (180, 182_600),
];

/// The rule.
pub static RULE: PerHolder =
    PerHolder { key: KEY.0, number: KEY.1, ask: |view, holder, _| one(view, holder) };

/// The least that the model needs with everything on GPUs: 4 bits, a short context.
fn least(facts: &ModelFacts) -> Bytes {
    let stored = facts.weight_bytes();
    let quantised = named("Q4_K_M").map_or(stored, |q| q.weights(&facts.weights).file_bytes());
    let cache = kv::total(&facts.shape, &CacheSettings::new(TOKENS)).total();
    Bytes(stored.min(quantised)) + Bytes(cache) + BESIDE
}

fn one(view: &View, holder: &Holder) -> Answer {
    let workload = match workload(holder) {
        Ok(workload) => workload,
        Err(answer) => return answer,
    };
    // Only where weights may be elsewhere than on the GPU can a model run that does not fit.
    if !matches!(
        workload.software,
        Software::LlamaCpp | Software::Ollama | Software::Transformers | Software::Vllm
    ) {
        return Answer::Clear;
    }
    let whole = || view.gpus.iter().filter(|gpu| gpu.sample.mig_enabled.get() != Some(true));
    let totals: Vec<Bytes> = whole().filter_map(room).map(|(total, _)| total).collect();
    if totals.is_empty() {
        return Answer::CannotTell("the memory of the GPUs is not known".to_owned());
    }
    let facts = match facts(view, holder) {
        Ok(facts) if facts.kind == Kind::Model => facts,
        Ok(_) => return Answer::Clear,
        Err(_) if workload.model().is_none() => return Answer::Clear,
        Err(answer) => return answer,
    };
    let have: Bytes = totals.iter().copied().sum();
    let need = least(facts);
    if need <= have {
        return Answer::Clear;
    }
    let untold = whole().count() - totals.len();
    if untold > 0 {
        let pid = holder.pid;
        return Answer::CannotTell(format!(
            "{pid} needs {need}, and {untold} of the GPUs do not tell their memory"
        ));
    }
    let lacks = need - have;
    let headline = format!("{} needs {need}, all GPUs have {have}", holder.pid);
    let mut found = about(holder, KEY, Severity::Warning, headline);
    found
        .evidence
        .push(format!("{}: in 4 bits with {TOKENS} tokens, {lacks} too much", facts.name));
    let largest = totals.iter().max().copied().unwrap_or(Bytes::ZERO);
    let usable = Bytes(largest.0 / 10 * 9).0.max(1);
    let cards = need.0.div_ceil(usable);
    found.evidence.push(format!("{cards} cards of this size would hold it"));
    if let Some((size, _)) = CARDS.iter().find(|card| Bytes::mib(card.1) >= need) {
        found.evidence.push(format!("or one of {size} GB"));
    }
    found.fixes.extend(fix(holder, (KEY.1, "accept it"), &[When::Always], None, &|_| None));
    Answer::Hit(found)
}
