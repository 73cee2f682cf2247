//! The value of `PYTORCH_CUDA_ALLOC_CONF`: `key:value,key:[a:b,c:d]`.

use super::{Judged, Setting, does};

/// PyTorch stops with an error at the first use of CUDA where it does not understand the value.
struct Key {
    name: &'static str,
    judge: fn(&str) -> Judged,
}

const fn key(name: &'static str, judge: fn(&str) -> Judged) -> Key {
    Key { name, judge }
}

/// The keys of torch 2.0 to 2.15.
const KEYS: [Key; 17] = [
    key("backend", backend),
    key("expandable_segments", expandable),
    key("max_split_size_mb", max_split),
    key("garbage_collection_threshold", garbage),
    key("roundup_power2_divisions", roundup),
    key("max_non_split_rounding_mb", |value| {
        above_20(value, "how much larger than asked an unsplit block may be, in MiB")
    }),
    key("large_segment_size_mb", |value| {
        number(value, 1, "size of new segments of the large pool, in MiB (torch 2.11 and later)")
    }),
    key("per_process_memory_fraction", fraction),
    key("throw_on_cudamalloc_oom", |value| {
        truth(value, "a failed allocation of the driver is an error at once")
    }),
    key("expandable_segments_reserve", reserve),
    key("expandable_segments_reserve_by_class", reserve),
    key("release_lock_on_cudamalloc", |value| {
        truth(value, "other threads go on while the driver is asked for memory")
    }),
    key("graph_capture_record_stream_reuse", |value| {
        truth(value, "memory of streams is reused while a CUDA graph is captured")
    }),
    key("pinned_use_cuda_host_register", |value| truth(value, "pins host memory after the fact")),
    key("pinned_num_register_threads", |value| number(value, 1, "threads that pin host memory")),
    key("pinned_use_background_threads", |value| {
        truth(value, "looks after pinned memory in the background")
    }),
    key("pinned_reserve_segment_size_mb", |value| {
        number(value, 0, "pinned host memory taken at the start, in MiB")
    }),
];

/// Keys that only the native allocator has.
const NATIVE_ONLY: [&str; 5] = [
    "expandable_segments",
    "max_split_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "max_non_split_rounding_mb",
];

/// One setting for each key of the value.
pub fn settings(name: &'static str, value: &str) -> Vec<Setting> {
    // Spaces are skipped wherever they stand.
    let value: String = value.chars().filter(|c| *c != ' ').collect();
    let mut settings: Vec<Setting> = entries(&value)
        .into_iter()
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (key, value) = entry.split_once(':').unwrap_or((entry, ""));
            let Judged { problem, effect, already_does } = judge(key, value);
            let (key, value) = (Some(key.to_owned()), value.to_owned());
            Setting { name, key, value, problem, effect, already_does }
        })
        .collect();
    relate(&mut settings);
    settings
}

fn judge(key: &str, value: &str) -> Judged {
    match KEYS.iter().find(|known| known.name == key) {
        Some(known) => (known.judge)(value),
        None => does("nothing that is known")
            .but("is no key of torch 2.0 to 2.15: those stop with an error when CUDA starts"),
    }
}

/// What one key means for another.
fn relate(settings: &mut [Setting]) {
    let value = |key: &str, settings: &[Setting]| {
        settings.iter().find(|row| row.key.as_deref() == Some(key)).map(|row| row.value.clone())
    };
    let is_async = value("backend", settings).as_deref() == Some("cudaMallocAsync");
    let limited = value("per_process_memory_fraction", settings).is_some();
    for row in settings.iter_mut().filter(|row| row.problem.is_none()) {
        let key = row.key.as_deref().unwrap_or("");
        if is_async && NATIVE_ONLY.contains(&key) {
            row.problem = Some("is ignored with backend:cudaMallocAsync".to_owned());
            row.already_does = None;
        } else if key == "garbage_collection_threshold" && !limited {
            "gives old cached blocks back above this part of the allowed memory; it acts only if \
             the program limits its memory (set_per_process_memory_fraction)"
                .clone_into(&mut row.effect);
        }
    }
}

/// The parts between commas that are not in brackets.
fn entries(value: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    value
        .split(move |c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        })
        .collect()
}

fn backend(value: &str) -> Judged {
    match value {
        "native" => does("PyTorch's own caching allocator"),
        "cudaMallocAsync" => does("the driver's pool, without statistics in the process").fix(6),
        _ => does("which allocator is used").but("is neither native nor cudaMallocAsync"),
    }
}

fn truth(value: &str, what: &str) -> Judged {
    match value {
        "True" => does(&format!("{what}: on")),
        "False" => does(&format!("{what}: off")),
        _ => does(what).but("has to be True or False, with a capital"),
    }
}

fn expandable(value: &str) -> Judged {
    let judged = truth(value, "segments that grow: far less fragmentation");
    if value == "True" { judged.fix(6) } else { judged }
}

fn number(value: &str, least: u64, what: &str) -> Judged {
    match value.parse::<u64>() {
        Ok(number) if number >= least => does(what),
        Ok(_) => does(what).but(&format!("has to be {least} or more")),
        Err(_) => does(what).but("is not a whole number"),
    }
}

fn above_20(value: &str, what: &str) -> Judged {
    match value.parse::<u64>() {
        Ok(0..=20) => does(what).but("has to be more than 20"),
        Ok(_) => does(what),
        Err(_) => does(what).but("is not a whole number"),
    }
}

fn max_split(value: &str) -> Judged {
    let judged = above_20(value, "larger blocks are not split: less fragmentation, more waste");
    if judged.problem.is_none() { judged.fix(6) } else { judged }
}

fn between_0_and_1(value: &str, what: &str, one: bool) -> Judged {
    match value.parse::<f64>() {
        Ok(part) if part > 0.0 && (part < 1.0 || one && part <= 1.0) => does(what),
        _ => does(what).but("has to be between 0 and 1"),
    }
}

fn garbage(value: &str) -> Judged {
    between_0_and_1(value, "gives old cached blocks back above this part of its limit", false)
}

fn fraction(value: &str) -> Judged {
    between_0_and_1(value, "the program takes at the most this part of the GPU's memory", true)
}

fn reserve(_value: &str) -> Judged {
    does(
        "address space that expandable segments keep (torch 2.15); a reserve below a request \
          fails it although memory is free",
    )
}

/// `8`, or `[256:1,512:2,>:8]`.
fn roundup(value: &str) -> Judged {
    let judged = does("fewer different sizes: good for changing lengths, costs some memory");
    let power = |text: &str| text.parse::<u64>().is_ok_and(|n| n == 0 || n.is_power_of_two());
    let step = |entry: &str| {
        entry.split_once(':').is_some_and(|(size, divisions)| {
            (size == ">" || size != "0" && power(size)) && power(divisions)
        })
    };
    let list = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if list.map_or_else(|| power(value), |list| list.split(',').all(step)) {
        judged.fix(6)
    } else {
        judged.but("sizes and divisions have to be powers of two")
    }
}
