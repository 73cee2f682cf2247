//! Shares of a device in the lines: as much as is free, less than now, more than now.

use crate::oom::facts;
use crate::oom::figures::Slot;
use crate::oom::judge::Case;
use crate::oom::numbers::Numbers;

/// Rounding must not take a hundredth from what is meant exactly.
const EXACT: f64 = 0.001;

/// The share of this name.
pub(super) fn value(name: &str, case: &Case, n: &Numbers) -> Option<String> {
    let get = |slot| case.figures.get(slot);
    if name == "auto" {
        return facts::version(case).filter(|v| has_auto(v)).map(|_| "auto".to_owned());
    }
    let wanted = match name {
        "share" => n.free? as f64 / n.total? as f64 - 0.005,
        // In steps of a twentieth: an exact one fails again at the next request.
        "fraction" => (needed(n)? as f64 / n.total? as f64 * 20.0).ceil() / 20.0 + EXACT,
        "lower" => {
            let usual = if case.software == "vllm" { 0.90 } else { 0.85 };
            let own = get(Slot::Utilization).map(|share| share as f64 / 1000.0);
            let less = n.aim().zip(n.total).map_or(0.0, |(aim, total)| aim as f64 / total as f64);
            own.or_else(|| vllm(case)).unwrap_or(usual) - less.max(0.05) + EXACT
        }
        "raise" if vllm(case).is_some_and(|now| now >= 0.95) => return None,
        "raise" => 0.95 + EXACT,
        "xla_lower" => {
            let now = facts::share(case, "client_mem_fraction").unwrap_or(0.90);
            (now - 0.10).min(0.80) + EXACT
        }
        "pool_lower" => {
            let now = facts::share(case, "gpu_mem_fraction")
                .or_else(|| facts::share(case, "gpu_memory_fraction"))
                .unwrap_or(0.90);
            (now - 0.10).min(0.60) + EXACT
        }
        "gpu_share" => {
            let room = n.free?.checked_sub(n.margin())?;
            (room as f64 / n.requested? as f64 * 20.0).floor() / 20.0 + EXACT
        }
        "higher" => {
            // Weights and a pool of at least 2 GiB of what was free before.
            let (weights, base) = (get(Slot::Weights)?, get(Slot::FreeBefore)?);
            (weights as f64 + 2.0 * f64::from(1 << 30)) / base as f64 + 0.05
        }
        _ => return None,
    };
    share(wanted)
}

/// Whether this version of vLLM chooses the longest context that fits itself: from 0.14.
/// <https://github.com/vllm-project/vllm/pull/29431>
fn has_auto(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    (major, minor) >= (0, 14)
}

/// What vLLM was told to take, where the log shows it.
fn vllm(case: &Case) -> Option<f64> {
    facts::share(case, "gpu_memory_utilization")
        .or_else(|| facts::share(case, "gpu-memory-utilization"))
}

/// A share in hundredths, rounded down; `None` outside of what makes sense.
fn share(value: f64) -> Option<String> {
    let value = (value * 100.0).floor() / 100.0;
    (0.05..=0.96).contains(&value).then(|| format!("{value:.2}"))
}

/// What this process's share of the device has to be, at least: what it has, what it asked for, and
/// the margin.
pub(super) fn needed(n: &Numbers) -> Option<u64> {
    let has = n.reserved.or(n.allocated).unwrap_or_default();
    let need = n.requested?.saturating_add(has).saturating_add(n.margin());
    // It can have no more than is there.
    n.free.is_none_or(|free| need <= free.saturating_add(has)).then_some(need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_for_versions_that_have_it() {
        assert!(has_auto("0.14.0") && has_auto("0.20") && has_auto("1.0"));
        assert!(!has_auto("0.13.1") && !has_auto("0.9.2"));
    }

    #[test]
    fn shares_are_rounded_down_and_kept_sensible() {
        assert_eq!(share(0.859).as_deref(), Some("0.85"));
        assert_eq!(share(1.2), None);
    }
}
