//! The numbers in the lines: how many tokens, layers, samples, which share.

use super::Saves;
use crate::oom::diagnose::{Diagnosis, Finding};
use crate::oom::figures::Slot;
use crate::oom::judge::Case;
use crate::oom::numbers::Numbers;
use crate::oom::signatures::Stage;

/// Bits that 4-bit weights save of 16: NF4 with its scales takes 4.5.
const FOUR_BIT_SAVES: f64 = 1.0 - 4.5 / 16.0;

/// What a fix would free.
pub(super) fn saves(fix: u8, case: &Case, n: &Numbers, finding: &Finding) -> Option<(u64, Saves)> {
    let get = |slot| case.figures.get(slot);
    match fix {
        1 => {
            let cache = get(Slot::KvNeeded)
                .or_else(|| {
                    (case.stage == Stage::Kv && case.software != "vllm")
                        .then_some(n.requested)
                        .flatten()
                })
                .or(get(Slot::KvBytes))?;
            // A pool takes its share whatever the context. Elsewhere half the context and eight
            // bits instead of sixteen are what the line says.
            let grows = matches!(case.software, "llama.cpp" | "ollama" | "koboldcpp");
            (grows && get(Slot::KvAvailable).is_none())
                .then_some(((cache as f64 * (1.0 - 0.5 * 0.531)) as u64, Saves::About))
        }
        2 if matches!(case.software, "llama.cpp" | "ollama" | "koboldcpp" | "sglang") => None,
        2 if case.stage == Stage::Optimizer => {
            get(Slot::Parameters).map(|parameters| (parameters.saturating_mul(6), Saves::About))
        }
        2 => {
            let weights = get(Slot::Weights).or(if case.stage == Stage::Weights {
                n.allocated
            } else {
                None
            })?;
            Some(((weights as f64 * FOUR_BIT_SAVES) as u64, Saves::About))
        }
        3 if n.held_by_others > 0 => Some((n.held_by_others, Saves::AtMost)),
        6 if finding.diagnosis == Diagnosis::Fragmentation => {
            n.unallocated.map(|bytes| (bytes, Saves::AtMost))
        }
        8 => {
            let desktop: u64 =
                n.others.iter().filter(|other| other.desktop).filter_map(|other| other.bytes).sum();
            (desktop > 0).then_some((desktop, Saves::AtMost))
        }
        _ => None,
    }
}

/// The line with its numbers; `None` where one of them is not known.
pub(super) fn filled(line: &str, case: &Case, n: &Numbers) -> Option<String> {
    filled_with(line, &|name| value(name, case, n))
}

/// The line with what `value` says of its `{name}`s.
pub(super) fn filled_with(line: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}').filter(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        }) else {
            out.push_str(before);
            out.push('{');
            rest = after;
            continue;
        };
        out.push_str(before);
        out.push_str(&value(name)?);
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

fn value(name: &str, case: &Case, n: &Numbers) -> Option<String> {
    let get = |slot| case.figures.get(slot);
    let number = match name {
        "fits" => get(Slot::SuggestedLength).or_else(|| fitting_context(case))?,
        "half" => half(get(Slot::Context)?)?,
        "half_tokens" => half(get(Slot::TokensNeeded)?)?,
        "layers" => layers(case, n)?,
        "batch_new" => batch(case, n)?.0,
        "accumulation" => batch(case, n)?.1,
        // Just below the request, and above the 20 MiB that the allocator asks for.
        "split" => ((n.requested? >> 20).saturating_sub(1) / 32 * 32).max(32),
        "fit_gib" => (n.total? >> 30).checked_sub(2).filter(|gib| *gib > 0)?,
        "share" => {
            let (free, total) = (n.free?, n.total?);
            return share(free as f64 / total as f64 - 0.005);
        }
        "lower" => {
            let now = get(Slot::Utilization).map_or(0.85, |share| share as f64 / 1000.0);
            return share(now - 0.05);
        }
        "higher" => {
            // Weights and a pool of at least 2 GiB of what was free before.
            let (weights, base) = (get(Slot::Weights)?, get(Slot::FreeBefore)?);
            return share((weights as f64 + 2.0 * f64::from(1 << 30)) / base as f64 + 0.05);
        }
        _ => return None,
    };
    Some(number.to_string())
}

/// A share in hundredths, rounded down; `None` outside of what makes sense.
fn share(value: f64) -> Option<String> {
    let value = (value * 100.0).floor() / 100.0;
    (0.05..=0.96).contains(&value).then(|| format!("{value:.2}"))
}

fn half(value: u64) -> Option<u64> {
    Some(value / 2 / 256 * 256).filter(|half| *half >= 256)
}

/// The longest context that the cache has room for, down to a block of 16.
fn fitting_context(case: &Case) -> Option<u64> {
    let get = |slot| case.figures.get(slot);
    if let Some(tokens) = get(Slot::TokensAvailable).filter(|_| case.stage == Stage::Kv) {
        return Some(tokens / 16 * 16).filter(|tokens| *tokens > 0);
    }
    let (need, have, context) =
        (get(Slot::KvNeeded)?, get(Slot::KvAvailable)?, get(Slot::Context)?);
    let tokens = u128::from(context) * u128::from(have) / u128::from(need.max(1));
    u64::try_from(tokens / 16 * 16).ok().filter(|tokens| *tokens > 0)
}

/// Layers whose weights and cache fit into what is free.
fn layers(case: &Case, n: &Numbers) -> Option<u64> {
    let get = |slot| case.figures.get(slot);
    let all = get(Slot::LayersTotal).or(get(Slot::Layers))?;
    let weights = get(Slot::Weights).or(n.requested)?;
    let beside = get(Slot::ComputeBytes).unwrap_or(512 << 20) + n.margin();
    let room = n.free?.checked_sub(beside)?;
    let each = (weights + get(Slot::KvBytes).unwrap_or_default()) / all.max(1);
    Some(room / each.max(1)).filter(|layers| *layers > 0 && *layers < all)
}

/// The largest batch that can fit by the figures, and the steps that keep the effective batch. An
/// upper bound: weights do not shrink with the batch.
fn batch(case: &Case, n: &Numbers) -> Option<(u64, u64)> {
    let batch = case.batch?;
    let (allocated, requested, missing) = (n.allocated?, n.requested?, n.deficit()?);
    let all = allocated + requested;
    let fits = u128::from(batch) * u128::from(all.checked_sub(missing)?) / u128::from(all.max(1));
    let fits = u64::try_from(fits).ok().filter(|fits| *fits > 0 && *fits < batch)?;
    Some((fits, batch.div_ceil(fits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down_and_kept_sensible() {
        assert_eq!(share(0.859).as_deref(), Some("0.85"));
        assert_eq!(share(1.2), None);
        assert_eq!(half(65_536), Some(32_768));
        assert_eq!(half(300), None);
    }
}
