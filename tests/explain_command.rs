//! The two commands: what they print, and what they end with.

#![allow(clippy::unwrap_used, reason = "helpers of tests, not tests themselves")]

use vramlens::cmd::{explain, fixes};

fn run(json: bool, input: &[u8]) -> (u8, String) {
    let mut out = Vec::new();
    let code = explain::run(&explain::Options { json }, input, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn the_exit_code_says_what_it_was() {
    let gpu = b"RuntimeError: CUDA error: out of memory\n";
    assert_eq!(run(false, gpu).0, 1);
    assert_eq!(run(false, b"trainer exited with code 137\n").0, 0);
    assert_eq!(run(false, b"RuntimeError: CUDA error: device-side assert triggered\n").0, 0);
    let (code, text) = run(false, b"all is well\nError: something \x1b[31mred\n\n");
    assert_eq!(code, 2);
    assert!(text.contains("The nearest line:") && text.contains("something red"), "{text}");
    assert!(text.contains("PyTorch") && text.contains("looked for"));
    assert_eq!(run(true, b"").0, 2);
}

#[test]
fn the_keys_of_the_json_are_stable() {
    let (_, text) = run(true, b"RuntimeError: CUDA error: out of memory\n");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in [
        "software",
        "is_gpu_oom",
        "device",
        "requested_bytes",
        "total_bytes",
        "free_bytes",
        "allocated_bytes",
        "reserved_bytes",
        "reserved_unallocated_bytes",
        "this_process_bytes",
        "other_processes",
        "diagnosis",
        "cause",
        "short_bytes",
        "deficit_bytes",
        "refused_with_room",
        "fixes",
        "occurrences",
    ] {
        assert!(answer.get(key).is_some(), "{key}");
    }
    assert!(answer["fixes"].as_array().unwrap().iter().all(serde_json::Value::is_u64));
}

#[test]
fn the_ledger_adds_up() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/oom");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let answer = vramlens::oom::explain(&std::fs::read(&path).unwrap());
        let Some(ledger) = answer.ledger else { continue };
        let sum: u64 = ledger.entries.iter().filter_map(|entry| entry.bytes).sum();
        assert_eq!(sum, ledger.sum_bytes, "{path:?}");
        if let Some(total) = ledger.total_bytes {
            assert!(sum + (64 << 20) >= total, "{path:?}");
            assert_eq!(ledger.over_bytes, sum.saturating_sub(total), "{path:?}");
        }
        seen += 1;
    }
    assert!(seen > 25, "{seen}");
}

#[test]
fn what_is_set_already_is_not_advised_again() {
    let text = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nseqlen 10\nTraceback (most recent call last):\n  File \"t.py\", line 3, in forward\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 79.11 GiB of which 2.64 GiB is free. Including non-PyTorch memory, this process has 76.46 GiB memory in use. Of the allocated memory 61.28 GiB is allocated by PyTorch, and 13.97 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";
    let answer = vramlens::oom::explain(text.as_bytes());
    assert_eq!(answer.settings, ["expandable_segments:True"]);
    assert!(answer.advice.iter().all(|advice| !advice.line.contains("expandable_segments:True")));
    let without = text.split_once('\n').unwrap().1;
    let answer = vramlens::oom::explain(without.as_bytes());
    assert!(answer.settings.is_empty());
    assert!(answer.advice.iter().any(|advice| advice.line.contains("expandable_segments:True")));
}

#[test]
fn every_fix_is_printed_and_an_unknown_one_is_named() {
    let print = |which: Option<&str>| {
        let mut out = Vec::new();
        let options = fixes::Options { which: which.map(str::to_owned), json: false };
        let code = fixes::run(&options, std::io::empty(), &mut out);
        code.map(|code| (code, String::from_utf8(out).unwrap()))
    };
    let (code, list) = print(None).unwrap();
    assert_eq!((code, list.lines().filter(|line| line.starts_with("  ")).count()), (0, 12));
    assert!(print(Some("7")).unwrap().1.contains("use_reentrant"));
    assert!(print(Some("desktop")).unwrap().1.starts_with("# Fix 8"));
    let error = print(Some("99")).unwrap_err().to_string();
    assert!(error.contains("no such fix; there are 1 to 12"), "{error}");
}

#[test]
fn a_line_of_the_kernel_about_a_fault_is_put_into_words() {
    let line = b"[  12.3] NVRM: Xid (PCI:0000:1b:00): 31, pid=4242, name=python, Ch 00000008\n";
    let (_, text) = run(true, line);
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        answer["first"]["meaning"], "a program touched memory that is not its own",
        "{text}"
    );
    let (_, text) = run(true, b"NVRM: Xid (PCI:0000:1b:00): x, 99999999999999999999999\n");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_ne!(answer["first"]["meaning"], serde_json::Value::Null, "{text}");
}
