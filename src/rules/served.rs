//! What inference servers report of their own cache, for the rules that would else have to guess.

use crate::analyze::Holder;
use crate::analyze::workload::{Setting, Workload};
use crate::model::ModelFacts;
use crate::model::kv::CacheSettings;
use crate::sample::{Reading, ServerSample, ServerSoftware, Why};

/// A cache that is fuller than this has nothing to give, in hundredths.
const NEEDED_PERCENT: f64 = 45.0;
/// A cache that is fuller than this makes requests wait, or throws them out, in hundredths.
const FULL_PERCENT: f64 = 90.0;

/// What the server of a holder says of its cache; `None` where it is no server, or does not answer.
pub(super) fn served(holder: &Holder) -> Option<&ServerSample> {
    holder.server.as_ref()?.value()
}

/// Why a server that is known said nothing: one that will be asked again, or does not tell.
pub(super) fn silent(holder: &Holder) -> Option<Why> {
    holder.server.as_ref()?.why()
}

/// `its cache has room for 112400 tokens, 12% in use now (reported by vLLM)`.
pub(super) fn told(said: &ServerSample) -> Option<String> {
    let room = said.kv_tokens.map(|tokens| format!("room for {tokens} tokens"));
    let used = said.kv_used.map(|used| format!("{:.0}% in use now", used.0));
    let both: Vec<String> = room.into_iter().chain(used).collect();
    let name = said.software.name();
    (!both.is_empty()).then(|| format!("its cache has {} (reported by {name})", both.join(", ")))
}

/// `3 requests run, 12 wait (reported by vLLM)`.
pub(super) fn load(said: &ServerSample) -> Option<String> {
    let running = said.running?;
    let waiting = said.waiting.map(|waiting| format!(", {waiting} wait")).unwrap_or_default();
    Some(format!("{running} requests run{waiting} (reported by {})", said.software.name()))
}

/// Whether it could do with less, as far as this moment shows.
pub(super) fn has_spare(said: &ServerSample) -> Option<bool> {
    let needed = said.kv_used.map(|used| f64::from(used.0) >= NEEDED_PERCENT);
    let waits = said.waiting.map(|waiting| waiting > 0);
    // Either alone says that it has none to spare.
    if needed == Some(true) || waits == Some(true) {
        return Some(false);
    }
    Some(!(needed? || waits?))
}

/// Whether requests wait because the cache has no room.
pub(super) fn is_full(said: &ServerSample) -> bool {
    is_used_up(said) && said.waiting.is_some_and(|waiting| waiting > 0)
}

/// Whether the cache has no room, where it is not told if anybody waits for it.
pub(super) fn may_be_full(said: &ServerSample) -> bool {
    is_used_up(said) && said.waiting.is_none()
}

fn is_used_up(said: &ServerSample) -> bool {
    said.kv_used.is_some_and(|used| f64::from(used.0) >= FULL_PERCENT)
}

/// Tokens that are in the cache now; twice as many are left to be on the safe side.
pub(super) fn wanted_tokens(said: &ServerSample) -> Option<u64> {
    let used = f64::from(said.kv_used?.0) / 100.0;
    Some((said.kv_tokens? as f64 * used * 2.0).ceil() as u64)
}

/// The longest request that the server takes, in tokens: the cache must have room for one.
pub(super) fn longest(workload: &Workload, facts: &ModelFacts) -> u64 {
    workload.number(Setting::Context).unwrap_or(facts.shape.context_max)
}

/// Bytes of the cache on one card: the reported tokens times what one costs. `None` for servers
/// whose cache is not laid out by tokens.
pub(super) fn pool(said: &ServerSample, workload: &Workload, facts: &ModelFacts) -> Option<u64> {
    if !matches!(said.software, ServerSoftware::Vllm | ServerSoftware::Sglang) {
        return None;
    }
    let cards = workload.number(Setting::TensorParallel).unwrap_or(1).max(1);
    let each = facts.bytes_per_token(&CacheSettings::new(longest(workload, facts).max(1)));
    Some(said.kv_tokens?.checked_mul(each)? / cards)
}

/// The settings of llama.cpp with the context and the slots that the server reports, where it was
/// started without.
pub(super) fn llama_settings(
    holder: &Holder,
    workload: &Workload,
) -> Option<(crate::model::plan::Settings, bool)> {
    if let Some(settings) = workload.llama_settings() {
        return Some((settings, false));
    }
    let said = match holder.server.as_ref()? {
        Reading::Value(said) if said.software == ServerSoftware::LlamaCpp => said,
        _ => return None,
    };
    let tokens = said.kv_tokens.filter(|n| (1..=1 << 30).contains(n))?;
    let mut settings = workload.llama_settings_of(tokens)?;
    settings.cache.slots = said.slots.unwrap_or(settings.cache.slots).clamp(1, 4096);
    Some((settings, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Stamp;
    use crate::units::Percent;

    fn said(used: f32, waiting: Option<u64>) -> ServerSample {
        ServerSample {
            at: Stamp { boot_ms: 1, wall_ms: 1 },
            software: ServerSoftware::Vllm,
            port: 8000,
            kv_used: Some(Percent(used)),
            kv_tokens: None,
            running: Some(3),
            waiting,
            slots: None,
            models: Vec::new(),
            devices: Vec::new(),
        }
    }

    #[test]
    fn requests_that_are_not_counted_are_not_none() {
        assert_eq!(has_spare(&said(12.0, None)), None);
        assert_eq!(has_spare(&said(95.0, None)), Some(false));
        assert_eq!(has_spare(&said(12.0, Some(0))), Some(true));
        assert!(may_be_full(&said(99.0, None)) && !may_be_full(&said(99.0, Some(0))));
        assert!(!may_be_full(&said(12.0, None)));
        assert_eq!(has_spare(&said(12.0, Some(2))), Some(false));
        assert!(!is_full(&said(95.0, None)) && is_full(&said(95.0, Some(1))));
        assert_eq!(load(&said(12.0, None)).unwrap(), "3 requests run (reported by vLLM)");
        assert_eq!(
            load(&said(12.0, Some(2))).unwrap(),
            "3 requests run, 2 wait (reported by vLLM)"
        );
    }
}
