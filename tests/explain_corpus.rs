//! Every file of the corpus: figures, diagnosis and first fix as its answers say.

#![allow(clippy::unwrap_used, reason = "helpers of tests, not tests themselves")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use vramlens::oom;

/// A printed figure may be rounded by this much, in bytes.
const ROUNDING: i128 = 4096;

/// Our key, the key of the answers.
const FIGURES: &[(&str, &str)] = &[
    ("requested_bytes", "requested_bytes"),
    ("total_bytes", "total_bytes"),
    ("free_bytes", "free_bytes"),
    ("allocated_bytes", "allocated_bytes"),
    ("reserved_bytes", "reserved_bytes"),
    ("reserved_unallocated_bytes", "reserved_unallocated_bytes"),
    ("allowed_bytes", "allowed_bytes"),
    ("private_pools_bytes", "private_pools_bytes"),
    ("this_process_bytes", "process_in_use_bytes"),
];

/// Keys that only some answers have.
const EXTRA: &[&str] = &[
    "implied_other_bytes",
    "other_allocations_bytes",
    "requested_host_bytes",
    "available_host_bytes",
    "host_rss_bytes",
    "kv_needed_bytes",
    "kv_available_bytes",
    "kv_tokens_needed",
    "kv_tokens_available",
    "suggested_max_len",
    "weights_bytes",
    "platform",
];

fn corpus() -> (BTreeMap<String, Value>, std::path::PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/oom");
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let files = answers["files"].as_object().unwrap().clone().into_iter().collect();
    (files, folder)
}

fn same(got: &Value, want: &Value) -> bool {
    match (got.as_i64(), want.as_i64()) {
        (Some(got), Some(want)) => (i128::from(got) - i128::from(want)).abs() <= ROUNDING,
        _ => got == want,
    }
}

fn check(name: &str, got: &Value, want: &Value, wrong: &mut String) {
    let derived: Vec<&str> =
        want["derived_fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut differ = |key: &str, got: &Value, want: &Value| {
        writeln!(wrong, "{name}: {key} is {got}, should be {want}").unwrap();
    };
    for key in ["software", "is_gpu_oom", "device"] {
        if got[key] != want[key] {
            differ(key, &got[key], &want[key]);
        }
    }
    for (key, answer) in FIGURES {
        let may_lack = derived.contains(answer) && got[*key].is_null();
        if !may_lack && !same(&got[*key], &want[*answer]) {
            differ(key, &got[*key], &want[*answer]);
        }
    }
    for key in EXTRA {
        if let Some(answer) = want.get(key)
            && !same(&got[*key], answer)
        {
            differ(key, &got[*key], answer);
        }
    }
    let processes =
        (got["other_processes"].as_array().unwrap(), want["other_processes"].as_array().unwrap());
    let alike = processes.0.len() == processes.1.len()
        && processes.0.iter().zip(processes.1).all(|(got, want)| {
            got["pid"] == want["pid"]
                && same(&got["bytes"], &want["bytes"])
                && got.get("self_likely") == want.get("self_likely")
        });
    if !alike {
        differ("other_processes", &got["other_processes"], &want["other_processes"]);
    }
    if got["diagnosis"] != want["diagnosis"] {
        differ("diagnosis", &got["diagnosis"], &want["diagnosis"]);
    }
    if got["fixes"].get(0) != want["fixes"].get(0) {
        differ("fixes", &got["fixes"], &want["fixes"]);
    }
}

#[test]
fn every_file_is_explained_as_its_answer_says() {
    let (files, folder) = corpus();
    let mut wrong = String::new();
    for (name, want) in &files {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let got = serde_json::to_value(oom::explain(&bytes)).unwrap();
        check(name, &got, want, &mut wrong);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(files.len() > 70);
}

/// A log of megabytes around a message: the answer is the same as without it.
#[test]
fn every_file_is_explained_alike_in_a_long_log() {
    let (files, folder) = corpus();
    let mut noise = String::new();
    for line in 0..9_000 {
        writeln!(
            noise,
            "{line:08} the quick brown fox jumps over the lazy dog, {} times",
            line * 7 % 13
        )
        .unwrap();
    }
    let mut wrong = String::new();
    for name in files.keys() {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        if bytes.starts_with(&[0xFF, 0xFE]) {
            continue;
        }
        let alone = oom::explain(&bytes);
        let after = noise.as_bytes().get(..100_000).unwrap_or_default();
        let around = [noise.as_bytes(), &bytes, b"\n", after].concat();
        let got = oom::explain(&around);
        for (key, one, two) in [
            ("software", alone.software.to_owned(), got.software.to_owned()),
            ("diagnosis", format!("{:?}", alone.diagnosis), format!("{:?}", got.diagnosis)),
            (
                "requested",
                format!("{:?}", alone.requested_bytes),
                format!("{:?}", got.requested_bytes),
            ),
            ("total", format!("{:?}", alone.total_bytes), format!("{:?}", got.total_bytes)),
            ("free", format!("{:?}", alone.free_bytes), format!("{:?}", got.free_bytes)),
            (
                "others",
                format!("{:?}", alone.other_processes),
                format!("{:?}", got.other_processes),
            ),
            ("fixes", format!("{:?}", alone.fixes), format!("{:?}", got.fixes)),
            ("times", alone.occurrences.to_string(), got.occurrences.to_string()),
        ] {
            if one != two {
                writeln!(wrong, "{name}: {key} is {two} in a long log, {one} alone").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
