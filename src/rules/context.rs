//! Fix 1: the context, its cache and its slots.

use super::common::{Answer, WORTH, about, facts, fix, severity, shared, workload};
use super::per_holder::PerHolder;
use super::{Provenance, served};
use crate::analyze::workload::{Software, Workload};
use crate::analyze::{GpuView, Holder, View};
use crate::model::ModelFacts;
use crate::model::ggml::CacheType;
use crate::model::kv;
use crate::model::plan::Settings;
use crate::model::savings::Freed;
use crate::oom::When;
use crate::sample::Why;
use crate::units::Bytes;

const KEY: (&str, u8) = ("context", 1);
/// A context below twice this is not cut.
const LEAST_TOKENS: u64 = 2048;

/// The rule.
pub static RULE: PerHolder = PerHolder { key: KEY.0, number: KEY.1, ask: one };

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    // Other servers fill their pool whatever the context; other programs have no cache that stays.
    let workload = match workload(holder) {
        Ok(workload) if matches!(workload.software, Software::LlamaCpp | Software::Ollama) => {
            workload
        }
        Ok(_) => return Answer::Clear,
        Err(answer) => return answer,
    };
    let Some((settings, reported)) = served::llama_settings(holder, workload) else {
        let pid = holder.pid;
        return match served::silent(holder) {
            Some(Why::NotYet) => Answer::NotYet(format!("{pid} has not told its context yet")),
            _ => Answer::CannotTell(format!("{pid} was started without a context: it chose one")),
        };
    };
    if !settings.cache_on_gpu || settings.gpu_layers == 0 {
        return Answer::Clear;
    }
    let facts = match facts(view, holder) {
        Ok(facts) => facts,
        Err(answer) => return answer,
    };
    let cache = Bytes(kv::total(&facts.shape, &settings.cache).total());
    if cache < WORTH {
        return Answer::Clear;
    }
    let tokens = settings.cache.context;
    let headline = format!("{} keeps {cache} for {tokens} tokens", holder.pid);
    let mut found = about(holder, KEY, severity(gpu), headline);
    let each = Bytes(facts.bytes_per_token(&settings.cache));
    found.evidence.push(format!("{} costs {each} a token in {}", facts.name, types(&settings)));
    if let Some(context) = workload.get(crate::analyze::workload::Setting::Context) {
        found.evidence.push(format!("context {tokens}: {}", context.origin.words()));
    }
    let said = served::served(holder);
    found.evidence.extend(said.and_then(served::told));
    if settings.cache.slots > 1 {
        found.evidence.push(format!("{} sequences at once", settings.cache.slots));
    }
    found.fixes = fixes(view, holder, workload, &settings, facts);
    if reported {
        // The context is the server's word, and so is what follows from it.
        for saves in found.fixes.iter_mut().filter_map(|fix| fix.saves.as_mut()) {
            saves.provenance = Provenance::Reported;
        }
    }
    if found.fixes.is_empty() { Answer::Clear } else { Answer::Hit(found) }
}

/// Twice the tokens that the server says are in use, where that is less than half the context.
fn wanted(holder: &Holder, context: u64) -> Option<u64> {
    let said = served::served(holder)?;
    let tokens = served::wanted_tokens(said).filter(|_| served::has_spare(said) == Some(true))?;
    let tokens = tokens.max(LEAST_TOKENS).next_multiple_of(1024);
    (tokens < context / 2).then_some(tokens)
}

fn types(settings: &Settings) -> String {
    let (keys, values) = (settings.cache.keys, settings.cache.values);
    if keys == values {
        keys.name().to_owned()
    } else {
        format!("{} and {}", keys.name(), values.name())
    }
}

fn fixes(
    view: &View,
    holder: &Holder,
    workload: &Workload,
    settings: &Settings,
    facts: &ModelFacts,
) -> Vec<super::Fix> {
    let cache = &settings.cache;
    let run = facts.running(settings);
    let slots = cache.slots.max(1);
    // Ollama's variable counts a sequence, its runner's flag all of them.
    let each = if workload.software == Software::Ollama { slots } else { 1 };
    let wanted = wanted(holder, cache.context);
    let value = |name: &str| match name {
        "wanted" => wanted.map(|tokens| tokens.to_string()),
        "half" => Some((cache.context / 2 / each / 256 * 256).max(256).to_string()),
        "one_slot" => Some((cache.context / slots / 256 * 256).max(256).to_string()),
        _ => None,
    };
    let mut options: Vec<(&str, When, Freed)> = Vec::new();
    if let Some(tokens) = wanted {
        options.push(("a context of twice what is in use", When::Unused, run.context(tokens)));
    }
    if cache.context >= 2 * LEAST_TOKENS {
        options.push(("half the context", When::LongContext, run.half_context()));
    }
    if matches!(cache.keys, CacheType::F16 | CacheType::Bf16 | CacheType::F32) {
        options.push(("8 bits in the cache", When::WideCache, run.cache_type(CacheType::Q8_0)));
    }
    if slots > 1 {
        let one = |s: &mut Settings| {
            s.cache.context /= slots;
            s.cache.slots = 1;
        };
        options.push(("one sequence at a time", When::ManySlots, run.with(one)));
    }
    options.sort_by_key(|option| std::cmp::Reverse(option.2.bytes));
    let worth = options.into_iter().filter(|option| option.2.bytes >= Bytes::mib(256).0);
    let made = worth.filter_map(|(title, when, freed)| {
        fix(holder, (KEY.1, title), &[when], shared(view, holder, freed), &value)
    });
    made.collect()
}
