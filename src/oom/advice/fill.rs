//! The numbers in the lines: how many tokens, layers, samples, which share.

use super::lines::{Row, When};
use super::{Saves, present, shares};
use crate::model::quant;
use crate::oom::clues::Mark;
use crate::oom::diagnose::{Diagnosis, Finding, show};
use crate::oom::figures::Slot;
use crate::oom::judge::Case;
use crate::oom::numbers::{Numbers, Other};
use crate::oom::signatures::Stage;

/// The largest `max_split_size_mb` that is advised.
const SPLIT_MAX: u64 = 256;
/// Bits that 4-bit weights save of 16: NF4 with its scales takes 4.5.
const FOUR_BIT_SAVES: f64 = 1.0 - 4.5 / 16.0;

/// What a cache of 8 bits with its scales takes of one of 16.
const EIGHT_BIT_CACHE: f64 = 8.5 / 16.0;

/// What a fix would free.
pub(super) fn saves(
    row: &Row,
    case: &Case,
    n: &Numbers,
    finding: &Finding,
) -> Option<(u64, Saves)> {
    let get = |slot| case.figures.get(slot);
    match row.fix {
        1 => {
            let cache = get(Slot::KvNeeded)
                .or_else(|| {
                    (case.stage == Stage::Kv && case.software != "vllm")
                        .then_some(n.requested)
                        .flatten()
                })
                .or(get(Slot::KvBytes))?;
            // A pool takes its share whatever the context. Elsewhere half the context is what the
            // line says, with eight bits only where the cache has sixteen.
            let grows = matches!(case.software, "llama.cpp" | "ollama" | "koboldcpp");
            let bits = if row.when == When::WideCache { EIGHT_BIT_CACHE } else { 1.0 };
            (grows && get(Slot::KvAvailable).is_none() && present::context_known(case))
                .then_some(((cache as f64 * (1.0 - 0.5 * bits)) as u64, Saves::About))
        }
        2 if matches!(case.software, "llama.cpp" | "koboldcpp") => {
            let smaller = smaller(case, n)?;
            Some((n.requested?.saturating_sub(smaller.1), Saves::About))
        }
        2 if matches!(case.software, "ollama" | "sglang") => None,
        2 if case.stage == Stage::Optimizer => {
            let each = state_less(case, n).filter(|_| row.software != "deepspeed")?;
            Some((get(Slot::Parameters)?.saturating_mul(each), Saves::About))
        }
        2 => {
            let weights = get(Slot::Weights).or(if case.stage == Stage::Weights {
                n.allocated
            } else {
                None
            })?;
            let half = matches!(row.when, When::Float32 | When::HfFloat32);
            let part = if half { 0.5 } else { FOUR_BIT_SAVES };
            Some(((weights as f64 * part) as u64, Saves::About))
        }
        3 if case.has(Mark::Jetson) => n.rest_of_system().map(|bytes| (bytes, Saves::AtMost)),
        3 if n.held_by_others > 0 => Some((n.held_by_others, Saves::AtMost)),
        6 if finding.diagnosis == Diagnosis::Fragmentation => {
            n.unallocated.map(|bytes| (bytes, Saves::AtMost))
        }
        8 => {
            let sum = |which: fn(&Other) -> bool| -> u64 {
                n.others.iter().filter(|other| which(other)).filter_map(|other| other.bytes).sum()
            };
            // Without a desktop what shows it goes, too.
            let bytes =
                if n.nothing_to_close() { sum(Other::desktop) } else { sum(|o| o.closable) };
            (bytes > 0).then_some((bytes, Saves::AtMost))
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
        "factor" => batch(case, n)?.1,
        "accumulation" => batch(case, n)?.1.saturating_mul(case.accumulation?),
        // Below the request, and above the 20 MiB that the allocator asks for. A request that was
        // seen once need not be the one that comes again: no more than running processes are told.
        "split" => ((n.requested? >> 20).saturating_sub(1) / 32 * 32).clamp(32, SPLIT_MAX),
        "state_less" => state_less(case, n)?,
        // A limit for one device leaves the others out.
        "fit_gib" if get(Slot::Device).is_some_and(|device| device > 0) => return None,
        "fit_gib" => {
            let ours = n.total?.saturating_sub(n.held_by_others);
            (ours >> 30).checked_sub(2).filter(|gib| *gib > 0)?
        }
        "layers_percent" => {
            let percent =
                u128::from(room_for_weights(case, n)?) * 100 / u128::from(n.requested?.max(1));
            u64::try_from(percent).ok().filter(|percent| (1..100).contains(percent))?
        }
        "quota_mib" => (shares::needed(n)? >> 20).div_ceil(512) * 512,
        "half_cache" => {
            let (need, have) = (get(Slot::KvNeeded)? / 2, get(Slot::KvAvailable)?);
            return (need <= have).then(|| show(need));
        }
        "or_lora" if case.has(Mark::Lora) => return Some(String::new()),
        "or_lora" => return Some("; or LoRA on a 4-bit base".to_owned()),
        "smaller" => return smaller(case, n).map(|(name, _)| name.to_owned()),
        "smaller_needs" => return smaller(case, n).map(|(_, bytes)| show(bytes)),
        "least_needs" => {
            let weights = n.requested.filter(|_| case.stage == Stage::Weights)?;
            let (_, least) = quantised(weights).last()?;
            return (least > room_for_weights(case, n)?).then(|| show(least));
        }
        _ => return shares::value(name, case, n).or_else(|| present::value(name, case)),
    };
    Some(number.to_string())
}

/// Bytes a parameter that states of 8 bits save: `AdamW` keeps two in the type of the parameters.
/// What a step has allocated tells that type: weights, gradients and states of 16 bits take 8 bytes,
/// of 32 bits weights and gradients alone. `None` where parts of them are elsewhere.
fn state_less(case: &Case, n: &Numbers) -> Option<u64> {
    let parted = [Mark::DeepSpeed, Mark::Multirank, Mark::Lora, Mark::Adam8];
    if parted.iter().any(|mark| case.has(*mark)) {
        return None;
    }
    if case.has(Mark::Float32) {
        return Some(6);
    }
    let (allocated, parameters) = (n.allocated?, case.figures.get(Slot::Parameters)?);
    match allocated / parameters.max(1) {
        0..8 => Some(2),
        8 => None,
        _ => Some(6),
    }
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

/// What is free for weights: without the buffers beside them, and the margin.
fn room_for_weights(case: &Case, n: &Numbers) -> Option<u64> {
    let beside = case.figures.get(Slot::ComputeBytes).unwrap_or(512 << 20) + n.margin();
    n.free?.checked_sub(beside)
}

/// Weights in 4 bits in the smaller quantisations, the largest first, in bytes.
fn quantised(now: u64) -> impl Iterator<Item = (&'static str, u64)> {
    const NOW: &str = "Q4_K_M";
    let bits = quant::GGUF_QUANTS.iter().find(|q| q.name == NOW).map_or(1, |q| q.layers);
    let bytes = move |q: &quant::Quant| {
        u64::try_from(u128::from(now) * u128::from(q.layers) / u128::from(bits)).unwrap_or(now)
    };
    let smaller = quant::GGUF_QUANTS.iter().filter(move |q| q.layers < bits);
    smaller.map(move |q| (q.name, bytes(q)))
}

/// The largest quantisation below 4 bits that fits, and its bytes.
fn smaller(case: &Case, n: &Numbers) -> Option<(&'static str, u64)> {
    let room = room_for_weights(case, n)?;
    let weights =
        n.requested.filter(|_| case.stage == Stage::Weights && case.has(Mark::FourBit))?;
    quantised(weights).find(|(_, bytes)| *bytes <= room)
}

/// Layers whose weights and cache fit into what is free.
fn layers(case: &Case, n: &Numbers) -> Option<u64> {
    let get = |slot| case.figures.get(slot);
    let all = get(Slot::LayersTotal).or(get(Slot::Layers))?;
    let weights = get(Slot::Weights).or(n.requested)?;
    let room = room_for_weights(case, n)?;
    let each = (weights + get(Slot::KvBytes).unwrap_or_default()) / all.max(1);
    Some(room / each.max(1)).filter(|layers| *layers > 0 && *layers < all)
}

/// The largest batch that can fit by the figures and divides the batch there is, and by what: so
/// many steps keep the effective batch. An upper bound: weights do not shrink with the batch.
fn batch(case: &Case, n: &Numbers) -> Option<(u64, u64)> {
    let batch = case.batch?;
    let (Some(allocated), Some(requested), Some(missing)) = (n.allocated, n.requested, n.aim())
    else {
        return divided(batch, batch / 2);
    };
    let all = allocated + requested;
    let fits = u128::from(batch) * u128::from(all.checked_sub(missing)?) / u128::from(all.max(1));
    divided(batch, u64::try_from(fits).ok()?)
}

/// The largest part of at most `most`, and how often it is in `batch`; `None` where only far
/// smaller ones divide it.
fn divided(batch: u64, most: u64) -> Option<(u64, u64)> {
    let steps = (2..=8).find(|steps| batch.is_multiple_of(*steps) && batch / steps <= most)?;
    Some((batch / steps, steps)).filter(|(part, _)| part.saturating_mul(4) >= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_context_is_a_whole_number_of_blocks() {
        assert_eq!(half(65_536), Some(32_768));
        assert_eq!(half(300), None);
    }

    #[test]
    fn a_smaller_batch_keeps_the_effective_one() {
        assert_eq!(divided(96, 92), Some((48, 2)));
        assert_eq!(divided(192, 185), Some((96, 2)));
        assert_eq!(divided(9, 8), Some((3, 3)));
        assert_eq!(divided(97, 92), None, "a prime");
        assert_eq!(divided(1, 0), None);
        assert_eq!(divided(4, 1), Some((1, 4)));
    }
}
