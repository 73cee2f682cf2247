//! Order of findings, what they free together, and whether a wanted size fits after that.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod verdict_support;

#[path = "rule_cases/build.rs"]
#[allow(dead_code, reason = "shared by the tests of rules")]
mod build;

use build::*;
use proptest::prelude::*;
use verdict_support::table::engine;
use verdict_support::{GIB, gpu, host, init, row, watched, with_rows};
use vramlens::analyze::{Growth, View};
use vramlens::cmd::explain;
use vramlens::ids::GpuIndex;
use vramlens::rules::{
    Finding, Severity, Wanted, closest, fit_of, outcomes, overlaps, run, run_for, would_it_fit,
};
use vramlens::sample::*;
use vramlens::units::{Bytes, BytesPerMinute};

const TRAIN: &str = "python train.py --lr 1e-4 --batch_size 16";

/// A GPU of 80 GiB with 2 free: a zombie with 20, a training run with 57 that swings by 30 of
/// them and caches 6.
fn crowded() -> View {
    let trainer = {
        let mut process = allocator(runs(TRAIN), pieces(torch(200, 560, 500), 60));
        process.id.pid = vramlens::ids::Pid(700);
        process.id.start_ticks = 7000;
        process.group = vramlens::ids::Pid(700);
        process.session = vramlens::ids::Pid(700);
        process
    };
    let gpu = with_rows(gpu(0), vec![row(500, 20 * GIB), row(700, 57 * GIB)]);
    watched(5, &[gpu], &host(), &[init(), engine(), trainer]).1
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn what_frees_most_for_the_least_harm_comes_first() {
    let findings = run(&crowded());
    assert_eq!(rules(&findings), ["fragmentation", "leftovers", "checkpointing", "batch"]);
    assert!(findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
}

#[test]
fn fixes_of_the_same_bytes_overlap() {
    let findings = run(&crowded());
    let of = |rule: &str| findings.iter().find(|finding| finding.rule == rule).unwrap();
    assert!(overlaps(of("batch"), of("checkpointing")));
    assert!(!overlaps(of("batch"), of("leftovers")));
    assert!(!overlaps(of("fragmentation"), of("checkpointing")));
    let whole = Finding { pid: of("batch").pid, ..of("leftovers").clone() };
    assert!(overlaps(&whole, of("batch")) && overlaps(of("fragmentation"), &whole));
}

#[test]
fn a_size_that_fits_now_needs_no_steps() {
    let view = view(on(100), runs(TRAIN));
    let answer = would_it_fit(&view, Bytes::gib(40), &run(&view));
    assert!(answer.starts_with("40.0 GiB fit on GPU 0 now: 69.0 GiB are free"), "{answer}");
    // Only the reserve is missing.
    let answer = would_it_fit(&view, Bytes::gib(68), &run(&view));
    assert!(
        answer.starts_with("68.0 GiB do not fit on GPU 0 now: 69.0 GiB are free, and "),
        "{answer}"
    );
}

#[test]
fn steps_are_taken_until_it_fits_and_no_byte_is_counted_twice() {
    let view = crowded();
    let findings = run(&view);
    let fit = |gib| fit_of(&view, &view.gpus[0], Bytes::gib(gib), &findings).unwrap();
    let small = fit(5);
    assert_eq!(small.steps.len(), 1, "{small:?}");
    assert_eq!((small.gpu, small.missing), (GpuIndex(0), Bytes::ZERO));
    let large = fit(30);
    assert_eq!(large.steps.len(), 3, "{large:?}");
    let lines: Vec<_> = large.steps.iter().filter_map(|step| step.line.as_deref()).collect();
    assert!(lines.contains(&"vramlens kill 500"), "{lines:?}");
    let too_large = fit(70);
    assert!(too_large.steps.len() == 3 && too_large.missing > Bytes::gib(10), "{too_large:?}");
    let text = would_it_fit(&view, Bytes::gib(30), &findings);
    assert!(text.contains("30.0 GiB do not fit on GPU 0 now"), "{text}");
    assert!(text.contains("After that they fit"), "{text}");
    let text = would_it_fit(&view, Bytes::gib(70), &findings);
    assert!(text.contains("are missing, with "), "{text}");
    // What is missing is the request, less what is free and freed, and the reserve that is named.
    let freed: Bytes = too_large.steps.iter().map(|step| step.bytes).sum();
    let left = too_large.need + too_large.margin - too_large.free - freed;
    assert_eq!(too_large.missing, left);
    assert!(text.contains(&format!("with {} in reserve", too_large.margin)), "{text}");
}

#[test]
fn without_memory_figures_there_is_no_answer() {
    let answer = would_it_fit(&nothing(), Bytes::gib(1), &[]);
    assert!(answer.contains("cannot be told"), "{answer}");
}

#[test]
fn a_gpu_that_does_not_tell_its_memory_is_not_passed_over() {
    let gpus = [on(100), untold(gpu(1))];
    let procs = [init(), runs(TRAIN)];
    let view = watched(3, &gpus, &host(), &procs).1;
    let answer = would_it_fit(&view, Bytes::gib(40), &[]);
    assert!(answer.contains("fit on GPU 0 now") && answer.lines().count() == 1, "{answer}");
    let answer = would_it_fit(&view, Bytes::gib(200), &[]);
    assert!(answer.contains("Whether they fit on GPU 1 cannot be told"), "{answer}");
}

#[test]
fn an_estimate_counts_with_its_least() {
    let view = view(tight(705, 10), allocator(runs(TRAIN), torch(200, 700, 600)));
    let findings = run(&view);
    let fit = fit_of(&view, &view.gpus[0], Bytes::gib(100), &findings).unwrap();
    let least = findings.iter().flat_map(|f| &f.fixes).filter_map(|fix| fix.saves).map(|s| s.low);
    assert_eq!(fit.steps[0].bytes, least.max().unwrap());
}

const COMMANDS: [&str; 12] = [
    TRAIN,
    "llama-server -m /models/m.gguf -c 99999999 -np 3 -ctk q8_0",
    "llama-server -m /models/m.gguf -c 4096 -ngl 7",
    "ollama runner --model /models/m.gguf --ctx-size 0",
    "vllm serve /models/m.gguf --gpu-memory-utilization 0.5",
    "python chat.py --model_name_or_path /models/m.gguf",
    "python -m maxtext.train x",
    "python /opt/ComfyUI/main.py --preview-method auto",
    "python -m sglang.launch_server --model-path /models/m.gguf --mem-fraction-static 9e99",
    "./simulate",
    "Xorg",
    "python train.py --batch_size 18446744073709551615 --gradient_accumulation_steps 99999999999",
];

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), 0..100 * GIB, any::<u64>()]
}

fn any_growth() -> impl Strategy<Value = Growth> {
    let trend = (any::<f64>(), proptest::option::of(any::<[u64; 3]>())).prop_map(|(rate, full)| {
        let (per_minute, error) = (BytesPerMinute(rate), BytesPerMinute(1.0));
        Growth::Trend { per_minute, error, full_in_ms: full }
    });
    prop_oneof![Just(Growth::NotYet), Just(Growth::Steady), trend]
}

fn reading(n: u64, known: bool) -> Reading<Bytes> {
    if known { Reading::Value(Bytes(n)) } else { Reading::Absent(Why::NotSupported) }
}

/// A view in which nothing has to be sensible.
fn any_view() -> impl Strategy<Value = View> {
    let sizes = proptest::collection::vec(any_bytes(), 12);
    let flags = any::<[bool; 8]>();
    (0..COMMANDS.len(), sizes, flags, any_growth(), any_growth(), 0..4_usize).prop_map(
        |(command, n, is, growth, whole, size)| {
            let mut device = pieces(torch(480, 700, 480), 10);
            (device.allocated, device.reserved) = (Bytes(n[0]), Bytes(n[1]));
            device.peak_allocated = reading(n[2], is[0]);
            device.ooms = Reading::Value(n[3]);
            device.retries = Reading::Value(n[4]);
            if let Reading::Value(free) = &mut device.free {
                free.releasable = is[1].then_some(Bytes(n[5]));
                free.private_bytes = is[2].then_some(Bytes(n[6]));
                free.histogram[0].bytes = Bytes(n[7]);
            }
            let mut process = runs(COMMANDS[command]);
            if is[3] {
                process = allocator(process, device);
            }
            let mut row = row(PID, 1);
            row.used = reading(n[8], is[4]);
            row.kinds = ProcKinds { compute: is[5], graphics: !is[5], mps: is[6] };
            let mut view = view(with_rows(gpu(0), vec![row]), process);
            let memory = Memory {
                total: Bytes(n[9]),
                used: Bytes(n[10]),
                free: Bytes(n[11]),
                reserved: Reading::Absent(Why::NotSupported),
                api: MemoryApi::V2,
            };
            for gpu in &mut view.gpus {
                gpu.sample.memory =
                    if is[7] { Reading::Value(memory) } else { Reading::Absent(Why::Asleep) };
                gpu.allocated_growth = whole;
            }
            for holder in &mut view.holders {
                holder.growth = growth;
            }
            match size {
                0 => view,
                1 => knows(view, "/models/m.gguf", model("8B")),
                2 => knows(view, "/models/m.gguf", model("30B-A3B")),
                _ => knows(view, "/models/m.gguf", model("405B")),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_view_brings_the_rules_down_or_makes_them_promise_too_much(
        view in any_view(),
        need in any_bytes(),
    ) {
        let findings = run(&view);
        let _ = outcomes(&view);
        for finding in &findings {
            let held = view.holders.iter().find(|holder| Some(holder.pid) == finding.pid);
            let held = held.and_then(|holder| holder.bytes.get());
            for saving in finding.fixes.iter().filter_map(|fix| fix.saves) {
                prop_assert!(saving.low <= saving.bytes && saving.bytes <= saving.high);
                if let Some(held) = held {
                    prop_assert!(saving.high <= held, "{held} {finding:?}");
                }
            }
        }
        let worst = findings.iter().map(|finding| finding.severity).max();
        prop_assert!(worst.is_none_or(|worst| worst >= Severity::Notice));
        for gpu in &view.gpus {
            if let Some(fit) = fit_of(&view, gpu, Bytes(need), &findings) {
                let freed: Bytes = fit.steps.iter().map(|step| step.bytes).sum();
                let wanted = fit.need + fit.margin;
                prop_assert!(fit.free + freed + fit.missing >= wanted);
            }
        }
        prop_assert!(would_it_fit(&view, Bytes(need), &findings).ends_with(".\n"));
    }
}

#[test]
fn every_finding_says_whether_it_is_enough_by_itself() {
    let view = crowded();
    let marked = |gib| {
        let wanted = Wanted { need: Bytes::gib(gib), gpu: Some(GpuIndex(0)) };
        run_for(&view, Some(wanted))
    };
    let said = |findings: &[Finding], rule: &str| {
        let finding = findings.iter().find(|finding| finding.rule == rule).unwrap();
        finding.evidence.last().unwrap().clone()
    };
    let small = marked(10);
    assert!(said(&small, "leftovers").starts_with("enough by itself for 10.0 GiB"), "{small:?}");
    assert!(said(&small, "fragmentation").contains("that are missing for 10.0 GiB"), "{small:?}");
    // What fits already needs no word, and another GPU is another GPU.
    assert_eq!(marked(0), run(&view));
    let elsewhere = Wanted { need: Bytes::gib(10), gpu: Some(GpuIndex(1)) };
    assert_eq!(run_for(&view, Some(elsewhere)), run(&view));
    assert_eq!(closest(&view, elsewhere, &small), None);
}

#[test]
fn a_fit_in_a_few_words() {
    let view = crowded();
    let findings = run(&view);
    let words = |gib| closest(&view, Wanted::anywhere(Bytes::gib(gib)), &findings).unwrap().words();
    assert_eq!(words(0), "fits now");
    assert_eq!(words(5), "fits after one fix");
    assert_eq!(words(30), "fits after 3 fixes");
    assert!(words(70).ends_with("missing even after all fixes"));
}

/// What a process that has died said, on a card of 80 GiB.
const ERROR: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a \
                     total capacity of 80.00 GiB of which 2.00 GiB is free. Process 700 has 57.00 GiB memory \
                     in use. Including non-PyTorch memory, this process has 1.00 GiB memory in use.\n";

#[test]
fn an_error_is_explained_with_what_would_have_made_room() {
    let view = crowded();
    let mut answer = vramlens::oom::explain(ERROR.as_bytes());
    answer.join(&view);
    let said = |json| {
        let mut out = Vec::new();
        explain::write_for(&explain::Options { json }, &answer, Some(&view), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = said(false);
    let (_, room) = text.split_once("WOULD IT FIT NOW?").unwrap_or_else(|| panic!("{text}"));
    // The request, and what its process had and will want again.
    assert!(room.contains("9.0 GiB do not fit on GPU 0 now"), "{room}");
    assert!(room.contains("After that they fit"), "{room}");
    let json: serde_json::Value = serde_json::from_str(&said(true)).unwrap();
    assert_eq!(json["requested_bytes"], 8_u64 << 30);
    assert_eq!(json["fit"]["missing"], 0, "{json:#}");
    let words = json["would_it_fit"].as_str().unwrap();
    assert!(words.contains("do not fit on GPU 0 now: 2.0 GiB are free. +"), "{words}");
    assert!(!words.contains('\u{240a}'), "{words}");
    assert!(!json["fit"]["steps"].as_array().unwrap().is_empty());
    // On a machine without a GPU nothing is added.
    let mut out = Vec::new();
    explain::write_for(&explain::Options { json: true }, &answer, None, &mut out).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("would_it_fit"));
}
