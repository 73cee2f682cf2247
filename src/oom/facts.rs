//! Small facts from around a message: the batch, the version, the settings.

use super::clues::Mark;
use super::judge::Case;
use super::lines::Line;

/// Samples per step, as the last line before the message that says it.
pub(super) fn batch(lines: &[Line], until: usize) -> Option<u64> {
    const KEYS: [&str; 12] = [
        "train_micro_batch_size_per_gpu\": ",
        "train_micro_batch_size_per_gpu=",
        "train_micro_batch_size_per_gpu: ",
        "per device = ",
        "batch_size=",
        "batch-size ",
        "batch_size ",
        "--batch ",
        "batch=",
        " bs ",
        "--bs ",
        "batch ",
    ];
    numbered(lines, until, &KEYS)
}

/// Steps whose gradients make one step of the optimizer, as the log says it.
pub(super) fn accumulation(lines: &[Line], until: usize) -> Option<u64> {
    const KEYS: [&str; 7] = [
        "gradient accumulation steps = ",
        "gradient_accumulation_steps\": ",
        "gradient_accumulation_steps=",
        "gradient_accumulation_steps ",
        "gradient_accumulation_steps: ",
        "accumulate_grad_batches=",
        "grad_accum=",
    ];
    numbered(lines, until, &KEYS)
}

/// The number behind one of the keys, in the last line that has one.
fn numbered(lines: &[Line], until: usize, keys: &[&str]) -> Option<u64> {
    // Sums over several steps or devices say nothing of one step.
    const SUMS: [&str; 4] = ["effective", "global", "total", "train"];
    let is_sum = |before: &str| {
        let before = before.trim_end_matches([' ', '_', '-']);
        SUMS.iter().any(|word| before.ends_with(word)) && !before.ends_with("device_train")
    };
    lines.get(..until)?.iter().rev().find_map(|line| {
        let lower = line.full.to_ascii_lowercase();
        keys.iter().find_map(|key| {
            let mut rests = behind(&lower, key).filter(|(before, _)| !is_sum(before));
            let whole = rests.find_map(|(_, rest)| whole(rest));
            whole.filter(|number| (1..=1 << 20).contains(number))
        })
    })
}

/// What stands before and behind each place of a key.
fn behind<'a>(line: &'a str, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let places = memchr::memmem::find_iter(line.as_bytes(), key.as_bytes());
    let ends: Vec<(usize, usize)> = places.map(|at| (at, at + key.len())).collect();
    ends.into_iter().filter_map(move |(at, end)| Some((line.get(..at)?, line.get(end..)?)))
}

/// A number that a text begins with, and that is no part of another word.
fn whole(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let mut next = text.chars().skip(digits.len());
    let (first, second) = (next.next(), next.next());
    let more = match first {
        Some('.') => second.is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric() || c == '/',
        None => false,
    };
    digits.parse().ok().filter(|_| !more)
}

/// What stands between the name of a setting and its value.
const BETWEEN: [char; 6] = ['=', ':', ' ', '\'', '"', '\t'];

/// A setting as the last line that has it shows it: `key=16`, `'key': 16`, `--key 16`.
pub(super) fn setting(case: &Case, keys: &[&str]) -> Option<u64> {
    case.digest.lines.iter().rev().find_map(|line| {
        let lower = line.full.to_ascii_lowercase();
        keys.iter().find_map(|key| {
            behind(&lower, key).find_map(|(_, rest)| {
                let value = rest.trim_start_matches(BETWEEN);
                whole(value).filter(|_| value.len() < rest.len())
            })
        })
    })
}

/// A size in bytes that a setting gives: `key=16g`, `"key":"64Gi"`; a number without a unit has
/// `unit` bytes each.
pub(super) fn size(case: &Case, keys: &[&str], unit: u64) -> Option<u64> {
    case.digest.lines.iter().rev().find_map(|line| {
        let lower = line.full.to_ascii_lowercase();
        keys.iter().find_map(|key| {
            behind(&lower, key).find_map(|(before, rest)| {
                let own = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
                let value = rest.trim_start_matches(BETWEEN);
                let digits = value.bytes().take_while(u8::is_ascii_digit).count();
                let (number, after) = value.split_at_checked(digits)?;
                let each = match after.bytes().next() {
                    Some(b'k') => 1 << 10,
                    Some(b'm') => 1 << 20,
                    Some(b'g') => 1 << 30,
                    Some(b't') => 1 << 40,
                    Some(byte) if byte.is_ascii_alphanumeric() || byte == b'.' => return None,
                    _ => unit,
                };
                number.parse::<u64>().ok()?.checked_mul(each).filter(|size| own && *size > 0)
            })
        })
    })
}

/// Whether the log shows a cache of keys and values of fewer than 16 bits.
pub(super) fn narrow_cache(case: &Case) -> bool {
    const KEYS: [&str; 9] = [
        "k (",
        "v (",
        "-ctk ",
        "--cache-type-k ",
        "type_k = '",
        "ollama_kv_cache_type",
        "kvcachetype:",
        "kv_cache_dtype",
        "kv-cache-dtype",
    ];
    case.digest.lines.iter().any(|line| {
        let lower = line.full.to_ascii_lowercase();
        KEYS.iter().any(|key| {
            behind(&lower, key).any(|(_, rest)| {
                let value = rest.trim_start_matches(BETWEEN);
                ["q8", "q5", "q4", "iq4", "fp8"].iter().any(|narrow| value.starts_with(narrow))
            })
        })
    })
}

/// The share of the device that a setting gives, as the log shows it: `key=0.97`, `'key': 0.97`.
pub(super) fn share(case: &Case, key: &str) -> Option<f64> {
    case.digest.lines.iter().find_map(|line| {
        let lower = line.full.to_ascii_lowercase();
        let (_, rest) = lower.split_once(key)?;
        let number = rest.trim_start_matches(['=', ':', ' ', '\'', '"']);
        let text: String =
            number.chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(8).collect();
        let share: f64 = text.parse().ok()?;
        (0.0..=1.0).contains(&share).then_some(share)
    })
}

/// Words that a version follows, and whose.
static VERSIONS: &[(&str, &[&str])] = &[
    ("torch ", &["pytorch", "pytorch-rocm", "pytorch-mps", "diffusers", "comfyui"]),
    ("torch-", &["pytorch", "pytorch-rocm"]),
    ("torch==", &["pytorch", "pytorch-rocm"]),
    ("pytorch version: ", &["pytorch", "comfyui"]),
    ("vllm api server version ", &["vllm"]),
    ("vllm version ", &["vllm"]),
    ("llm engine (v", &["vllm"]),
    ("vllm==", &["vllm"]),
    ("ollama version is ", &["ollama"]),
    ("build: ", &["llama.cpp"]),
    ("hashcat (v", &["hashcat"]),
    ("blender ", &["blender"]),
    ("nccl version ", &["nccl"]),
    ("[tensorrt v", &["tensorrt"]),
    ("sglang==", &["sglang"]),
    ("jax==", &["jax"]),
    ("tensorflow version: ", &["tensorflow"]),
];

/// The version that the log prints.
pub(super) fn version(case: &Case) -> Option<String> {
    case.digest.lines.iter().find_map(|line| {
        let lower = line.full.to_ascii_lowercase();
        VERSIONS.iter().filter(|(_, whose)| whose.contains(&case.software)).find_map(|(lead, _)| {
            let (_, rest) = lower.split_once(lead)?;
            let text = rest.trim_start();
            let version: String =
                text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(16).collect();
            let version = version.trim_end_matches('.').to_owned();
            let plausible = version.starts_with(|c: char| c.is_ascii_digit())
                && (version.contains('.') || matches!(*lead, "build: " | "[tensorrt v"));
            plausible.then_some(version)
        })
    })
}

/// The versions that word the message like this.
pub(super) fn wording(case: &Case) -> Option<&'static str> {
    let event = case.event()?;
    let lines = case
        .digest
        .lines
        .get(event.line..=event.last_line + 4)
        .or_else(|| case.digest.lines.get(event.line..))?;
    let text: String = lines.iter().flat_map(|line| line.full.split_whitespace()).collect();
    let says = |words: &str| {
        let squeezed: String = words.split_whitespace().collect();
        text.contains(&squeezed)
    };
    Some(match event.signature.id {
        "torch.cuda" | "torch.hip" if says("cached)") => "1.0 to 1.3",
        "torch.cuda" | "torch.hip" if says("reserved in total") && says("OutOfMemoryError") => {
            "1.13 to 2.0"
        }
        "torch.cuda" | "torch.hip" if says("reserved in total") && says("max_split_size_mb") => {
            "1.8 to 1.12"
        }
        "torch.cuda" | "torch.hip" if says("reserved in total") => "1.4 to 1.7",
        "torch.cuda" if says("total capacty") => "2.1",
        "torch.cuda" if says("try setting PYTORCH_ALLOC_CONF") => "2.10",
        "torch.cuda" if says("expandable-segment reserve") => "2.15 or later",
        "torch.cuda" if says("docs.pytorch.org") => "2.11 or later",
        "torch.cuda" if says("torch.cuda.OutOfMemoryError") => "2.2 to 2.3",
        "torch.cuda" if says("torch.OutOfMemoryError") => "2.4 to 2.9",
        "torch.cuda" if says("has a total capacity") => "2.2 or later",
        "torch.nvml" => "2.1 to 2.13",
        "driver.cuda_driver" => "2.7 or later",
        _ => return None,
    })
}

/// Where it runs, where that matters.
pub(super) fn platform(case: &Case) -> Option<&'static str> {
    [
        (Mark::Wsl, "wsl2"),
        (Mark::Jetson, "jetson"),
        (Mark::Windows, "windows"),
        (Mark::Rocm, "rocm"),
        (Mark::Mig, "mig"),
    ]
    .into_iter()
    .find(|(mark, _)| case.has(*mark))
    .map(|(_, name)| name)
}

/// What is set already, as the log shows it.
pub(super) fn settings(case: &Case) -> Vec<&'static str> {
    [
        (Mark::ExpandableOn, "expandable_segments:True"),
        (Mark::NoCaching, "PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
        (Mark::AsyncBackend, "backend:cudaMallocAsync"),
        (Mark::CheckpointingOn, "gradient checkpointing"),
        (Mark::FourBit, "4-bit weights"),
    ]
    .into_iter()
    .filter(|(mark, _)| case.has(*mark))
    .map(|(_, name)| name)
    .collect()
}
