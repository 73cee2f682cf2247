//! Settings in the lines that go on from what the log shows: less than now, or more.

use crate::oom::facts;
use crate::oom::figures::Slot;
use crate::oom::judge::Case;

/// Which way a setting has to go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Half of what it is, and no more than usual.
    Down,
    /// Twice what it is, and no less than usual.
    Up,
}

/// The name in the lines, how logs call it in lower case, what is usual, and the way.
type Setting = (&'static str, &'static [&'static str], u64, Way);

static SETTINGS: &[Setting] = &[
    ("seqs", &["max_num_seqs", "max-num-seqs"], 64, Way::Down),
    ("batched_tokens", &["max_num_batched_tokens", "max-num-batched-tokens"], 2048, Way::Down),
    ("running", &["max_running_requests", "max-running-requests"], 16, Way::Down),
    ("chunk", &["chunked_prefill_size", "chunked-prefill-size"], 2048, Way::Down),
    ("graph_bs", &["cuda_graph_max_bs", "cuda-graph-max-bs"], 32, Way::Down),
    ("total_tokens", &["max_total_tokens", "max-total-tokens"], 4096, Way::Down),
    ("prefill_tokens", &["max_batch_prefill_tokens", "max-batch-prefill-tokens"], 4096, Way::Down),
    ("ubatch", &["n_ubatch"], 256, Way::Down),
    ("batch_tokens", &["n_batch"], 512, Way::Down),
    ("texture_pool", &["r.streaming.poolsize"], 3000, Way::Down),
    ("workers", &["num_workers", "num-workers", "workers"], 2, Way::Down),
    ("cpu_offload", &["cpu_offload_gb", "cpu-offload-gb"], 8, Way::Up),
    ("reserve_vram", &["reserve-vram"], 1, Way::Up),
    ("map_count", &["max_map_count"], 1 << 20, Way::Up),
];

/// Sizes in GiB: the name in the lines, how logs call it, what is usual, and the bytes of a number
/// without a unit.
type Size = (&'static str, &'static [&'static str], u64, u64);

static SIZES: &[Size] = &[
    ("shm", &["shm-size", "shm_size"], 8, 1),
    ("pod", &["\"memory\"", "memory:", "memory="], 32, 1),
    ("slurm", &["mem="], 128, 1 << 20),
];

/// How a context is called.
const CONTEXT: [&str; 7] = [
    "context-length",
    "context_length",
    "contextlength",
    "num_ctx",
    "ctx-size",
    "n_ctx",
    "kvsize:",
];

/// The type of a cache of 8 bits.
const FP8: &str = "fp8";
/// A context where nothing is known of it, in tokens.
const USUAL_CONTEXT: u64 = 8192;

/// The setting of this name, from what the log shows of it.
pub(super) fn value(name: &str, case: &Case) -> Option<String> {
    match name {
        "context" => return context(case),
        // What has 8 bits already does not get fewer by it.
        "fp_eight" => return (!facts::narrow_cache(case)).then(|| FP8.to_owned()),
        _ => {}
    }
    if let Some((_, keys, usual, way)) = SETTINGS.iter().find(|row| row.0 == name) {
        let now = facts::setting(case, keys);
        return moved(now, *usual, *way, u64::from(name != "workers")).map(|n| n.to_string());
    }
    let (_, keys, usual, unit) = SIZES.iter().find(|row| row.0 == name)?;
    let now = facts::size(case, keys, *unit).map(|bytes| bytes.div_ceil(1 << 30));
    moved(now, *usual, Way::Up, 1).map(|gib| gib.to_string())
}

/// The setting of this name where nothing is known of what it is now.
pub(super) fn usual(name: &str) -> Option<String> {
    if name == "fp_eight" {
        return Some(FP8.to_owned());
    }
    let found = SETTINGS.iter().find(|row| row.0 == name).map(|row| row.2);
    found.or_else(|| (name == "context").then_some(USUAL_CONTEXT)).map(|number| number.to_string())
}

/// Whether the log shows the context.
pub(super) fn context_known(case: &Case) -> bool {
    context_now(case).is_some()
}

fn context_now(case: &Case) -> Option<u64> {
    let printed = case.figures.get(Slot::Context);
    printed.or_else(|| facts::setting(case, &CONTEXT))
}

/// Half of the context that there is, in blocks of 256.
fn context(case: &Case) -> Option<String> {
    let half = match context_now(case) {
        Some(now) => now / 2 / 256 * 256,
        None if case.software == "ollama" => 4096,
        None => USUAL_CONTEXT,
    };
    (half >= 256).then(|| half.to_string())
}

fn moved(now: Option<u64>, usual: u64, way: Way, least: u64) -> Option<u64> {
    match (now, way) {
        (None, _) => Some(usual),
        (Some(now), Way::Down) => {
            Some(usual.min(now / 2)).filter(|less| *less >= least && *less < now)
        }
        (Some(now), Way::Up) => Some(usual.max(now.saturating_mul(2))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_goes_the_way_that_helps() {
        assert_eq!(moved(None, 64, Way::Down, 1), Some(64));
        assert_eq!(moved(Some(256), 64, Way::Down, 1), Some(64));
        assert_eq!(moved(Some(16), 64, Way::Down, 1), Some(8));
        assert_eq!(moved(Some(1), 64, Way::Down, 1), None, "there is no less");
        assert_eq!(moved(Some(1), 2, Way::Down, 0), Some(0));
        assert_eq!(moved(Some(64), 32, Way::Up, 1), Some(128));
        assert_eq!(moved(Some(4), 32, Way::Up, 1), Some(32));
    }
}
