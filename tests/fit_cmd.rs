//! The command as people see it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod fit_gen;

use std::path::Path;

use proptest::prelude::*;
use vramlens::cmd::fit::{FitGpu, FitOptions, run, run_here};
use vramlens::ids::GpuIndex;
use vramlens::rules::{Fit, Provenance, Step};
use vramlens::sample::Reading;
use vramlens::units::Bytes;

fn gpu(index: u32, name: &str, total: u64, free: u64, zombies: u64) -> FitGpu {
    FitGpu {
        index: Some(index),
        name: name.to_owned(),
        total: Bytes::gib(total),
        reserved: Bytes::mib(400),
        free: Reading::Value(Bytes::gib(free)),
        zombies: Bytes::gib(zombies),
        overhead: None,
    }
}

fn ask(options: &FitOptions, gpus: &[FitGpu]) -> (u8, String) {
    let mut out = Vec::new();
    let code = run(options, gpus, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap())
}

fn model(name: &str) -> FitOptions {
    FitOptions { model: Some(name.to_owned()), ..FitOptions::default() }
}

fn save(folder: &Path, name: &str) -> String {
    let path = fit_gen::saved(folder, name, &fit_gen::oracle_model(name));
    path.to_str().unwrap().to_owned()
}

fn llama_config() -> &'static str {
    r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
        "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,
        "max_position_embeddings":131072,"tie_word_embeddings":false}"#
}

/// Every screen that there is, by name, with the temporary folder taken out.
fn screens(ascii: bool) -> Vec<(&'static str, u8, String)> {
    let folder = tempfile::tempdir().unwrap();
    let hf = folder.path().join("Llama-3.1-8B-Instruct");
    std::fs::create_dir(&hf).unwrap();
    std::fs::write(hf.join("config.json"), llama_config()).unwrap();
    let rtx = || vec![gpu(0, "NVIDIA GeForce RTX 3090", 24, 7, 4)];
    let two = vec![gpu(0, "NVIDIA H200", 140, 60, 0), gpu(1, "NVIDIA H200", 140, 139, 0)];
    let path = |name: &str| save(folder.path(), name);
    let cases = [
        ("dense", model(&path("llama31-8b")), rtx()),
        ("experts", model(&path("qwen3-30b-a3b")), rtx()),
        ("window", FitOptions { parallel: Some(4), ..model(&path("gemma3-27b")) }, rtx()),
        ("hybrid", FitOptions { context: Some(32_768), ..model(&path("qwen36-27b")) }, two.clone()),
        ("latent", model(&path("deepseek-v3")), two.clone()),
        ("size", model("70B"), two),
        ("card", FitOptions { cards: vec![Bytes::gib(24)], ..model("8B") }, Vec::new()),
        ("none", model("8B"), Vec::new()),
        ("transformers", model(hf.to_str().unwrap()), rtx()),
        ("diffusion", model("sdxl"), rtx()),
        ("matrix", FitOptions::default(), rtx()),
    ];
    let text = |options: FitOptions, gpus: &[FitGpu]| {
        let (code, text) = ask(&FitOptions { ascii, ..options }, gpus);
        (code, text.replace(folder.path().to_str().unwrap(), "DIR"))
    };
    cases
        .into_iter()
        .map(|(name, options, gpus)| {
            let (code, text) = text(options, &gpus);
            (name, code, text)
        })
        .collect()
}

#[test]
fn every_screen_as_it_is() {
    for (name, code, text) in screens(false) {
        insta::assert_snapshot!(name, format!("{text}exit {code}\n"));
    }
}

#[test]
fn no_line_is_wider_than_80_columns() {
    use unicode_width::UnicodeWidthStr;
    for (name, _, text) in screens(false).into_iter().chain(screens(true)) {
        for line in text.lines() {
            // What is to be typed is never cut.
            let typed = ["llama-server", "vllm serve", "CUDA_DEVICE_ORDER"];
            let typed = typed.iter().any(|start| line.trim_start().starts_with(start));
            assert!(typed || line.width() <= 80, "{name}: {} {line:?}", line.width());
            assert_eq!(line.trim_end(), line, "{name}");
        }
    }
    for (name, _, text) in screens(true) {
        let strange: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert!(strange.is_empty(), "{name}: {strange:?}");
    }
}

#[test]
fn the_exit_code_says_whether_it_fits() {
    let card = |gib| FitOptions { cards: vec![Bytes::gib(gib)], ..model("8B") };
    assert_eq!(ask(&card(24), &[]).0, 0);
    assert_eq!(ask(&card(4), &[]).0, 1);
    let long = FitOptions { context: Some(131_072), ..card(16) };
    assert_eq!(ask(&long, &[]).0, 1);
    assert_eq!(ask(&model("8B"), &[]).0, 0, "without a GPU there is nothing to refuse");
    let mut lost = gpu(0, "lost", 24, 0, 0);
    lost.free = Reading::Absent(vramlens::sample::Why::GpuLost);
    assert!(ask(&model("8B"), &[lost]).1.contains("empty"));
}

#[test]
fn cards_that_are_not_here_are_told_apart_by_their_size() {
    let options = FitOptions { cards: vec![Bytes::gib(24), Bytes::gib(48)], ..model("8B") };
    let (_, text) = ask(&options, &[]);
    for name in ["card  24 GiB", "card  48 GiB"] {
        assert_eq!(text.matches(name).count(), 1, "{text}");
    }
}

#[test]
fn what_stays_in_host_memory_is_not_counted_on_the_gpu() {
    let options = FitOptions { gpu_layers: Some(10), cards: vec![Bytes::gib(8)], ..model("8B") };
    let (_, text) = ask(&options, &[]);
    assert!(text.contains("288 MiB"), "{text}");
    assert!(text.contains("9 of 32 layers, whole context"), "{text}");
    let words = "every further token costs 36,864 B, and 94,208 B of host memory";
    assert!(text.contains(words), "{text}");
    let host = FitOptions { no_kv_offload: true, cards: vec![Bytes::gib(24)], ..model("8B") };
    assert!(ask(&host, &[]).1.contains("costs 0 B, and 131,072 B of host memory"));
    let all = FitOptions { cards: vec![Bytes::gib(24)], ..model("8B") };
    let (_, text) = ask(&all, &[]);
    assert!(text.contains(" 32 layers keep") && text.contains("costs 131,072 B\n"), "{text}");
}

#[test]
fn a_margin_that_is_not_left_is_no_lack_of_room_for_scratch() {
    let options =
        FitOptions { margin: Some(Bytes::gib(30)), cards: vec![Bytes::gib(24)], ..model("8B") };
    let (_, text) = ask(&options, &[]);
    assert!(text.contains("~ tight") && !text.contains("scratch fits"), "{text}");
    assert!(text.contains("the margin of 30.0 GiB is not left"), "{text}");
}

#[test]
fn steps_come_by_what_they_free() {
    let (_, text) = ask(&FitOptions { json: true, ..model("sdxl") }, &[]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let freed = json["steps"].as_array().unwrap().iter().map(|step| step["frees_bytes"].as_u64());
    assert!(freed.is_sorted_by(|a, b| a >= b), "{text}");
}

#[test]
fn bad_questions_are_answered_with_a_reason() {
    let mut out = Vec::new();
    for (options, part) in [
        (model("/nowhere/x.gguf"), "there is no file or folder /nowhere/x.gguf"),
        (model("what"), "neither a file nor a size"),
        (FitOptions { quant: Some("Q9".into()), ..model("8B") }, "there are F16"),
        (
            FitOptions {
                no_flash_attention: true,
                cache_type_k: Some("q8_0".parse().unwrap()),
                ..model("8B")
            },
            "needs flash attention",
        ),
    ] {
        let error = run(&options, &[], &mut out).unwrap_err();
        assert!(format!("{error:#}").contains(part), "{error:#}");
    }
}

#[test]
fn json_has_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        FitOptions { json: true, context: Some(8192), ..model(&save(folder.path(), "llama31-8b")) };
    let (_, text) = ask(&options, &[gpu(0, "NVIDIA GeForce RTX 3090", 24, 7, 4)]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["need"]["lines"][1]["bytes"], 1_073_741_824_u64);
    assert_eq!(json["need"]["lines"][1]["basis"], "exact");
    assert_eq!(json["placement"]["gpus"][0]["cache_full"], 1_073_741_824_u64);
    assert!(json["placement"]["gpus"][0]["compute"]["layer"].is_u64());
    assert_eq!(json["placement"]["all_layers"], 33);
    assert_eq!(json["verdicts"][0]["fits"], "yes");
    assert_eq!(json["verdicts"][1]["when"], "without zombies");
    assert_eq!(json["fits"], true);
    assert!(json["compute_by_era"]["old"].as_u64() > json["compute_by_era"]["new"].as_u64());
    let (_, text) = ask(&FitOptions { json: true, ..FitOptions::default() }, &[]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["blocks"].as_array().unwrap().len(), 3);
}

#[test]
fn hostile_names_stay_on_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = fit_gen::oracle_model("llama32-3b");
    w.text("general.name", "nice\u{1b}[2J\nmodel\u{202e}gpj");
    let path = fit_gen::saved(folder.path(), "a b\u{1b}[31m'c", &w);
    for color in [false, true] {
        let options = FitOptions { color, ..model(path.to_str().unwrap()) };
        let (_, text) = ask(&options, &[gpu(0, "evil\u{1b}]0;x\u{7}", 24, 20, 0)]);
        let plain = regexless_strip(&text);
        assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain:?}");
        assert!(!plain.contains('\u{202e}'));
        assert!(text.lines().any(|line| line.contains("$'") && line.contains("\\x1b[31m")));
    }
}

/// Our own colours taken out: the escape, `[`, digits, `m`.
fn regexless_strip(text: &str) -> String {
    let mut out = text.to_owned();
    for code in ["0", "1", "2", "31", "32", "33"] {
        out = out.replace(&format!("\u{1b}[{code}m"), "");
    }
    out
}

#[test]
fn an_encoder_is_added_and_the_card_in_use_calibrates() {
    let folder = tempfile::tempdir().unwrap();
    let mut w = fit_gen::Writer::new("clip");
    w.text("general.type", "mmproj").tensor("v.blk.0.attn_q.weight", "F16", &[1024, 65_536]);
    let encoder = fit_gen::saved(folder.path(), "mmproj", &w);
    let encoder = encoder.to_str().unwrap().to_owned();
    let path = save(folder.path(), "llama32-3b");
    let with = FitOptions { json: true, mmproj: Some(encoder.clone()), ..model(&path) };
    let mut card = gpu(0, "NVIDIA GeForce RTX 3090", 24, 20, 0);
    card.overhead = Some(Bytes::mib(173));
    let json: serde_json::Value = serde_json::from_str(&ask(&with, &[card.clone()]).1).unwrap();
    assert_eq!(json["placement"]["gpus"][0]["projector"], 256_u64 << 20);
    let lines = json["need"]["lines"].as_array().unwrap();
    let cuda = lines.iter().find(|line| line["key"] == "cuda_context").unwrap();
    assert_eq!((&cuda["basis"], &cuda["bytes"]), (&"measured".into(), &(173_u64 << 20).into()));
    let (code, text) = ask(&model(&encoder), &[card]);
    assert!(code == 0 && text.contains("--mmproj"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a file claims, and whatever is asked, there is an answer or an error.
    #[test]
    fn any_file_has_an_answer(
        figures in proptest::collection::vec(any::<u64>(), 12),
        tensors in proptest::collection::vec((0u64..6, any::<u64>(), any::<u64>()), 0..8),
        (context, parallel, ubatch, layers) in any::<(u64, u64, u64, u64)>(),
        arch in "(llama|gemma3|deepseek2|qwen35|mamba2|strange)",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut w = fit_gen::Writer::new(&arch);
        let names = [
            "block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
            "attention.key_length", "feed_forward_length", "expert_count", "expert_used_count",
            "attention.sliding_window", "context_length", "ssm.inner_size", "ssm.state_size",
        ];
        for (name, n) in names.iter().zip(&figures) {
            let n = if *name == "block_count" { n % 90 } else { n >> (n % 64) };
            w.long(&format!("{arch}.{name}"), n);
        }
        for (i, (layer, a, b)) in tensors.iter().enumerate() {
            let (a, b) = ((a >> (a % 64)) % (1 << 28), (b >> (b % 64)) % (1 << 28));
            w.strange_tensor(&format!("blk.{layer}.t{i}"), 200, &[a, b]);
        }
        let path = folder.path().join("x.gguf");
        // The header alone: the data is not there.
        std::fs::write(&path, w.bytes().0).unwrap();
        let options = FitOptions {
            context: Some(context), parallel: Some(parallel), ubatch: Some(ubatch),
            gpu_layers: Some(layers), cards: vec![Bytes::gib(24), Bytes::gib(80)],
            ..model(path.to_str().unwrap())
        };
        for json in [false, true] {
            let _either = run(&FitOptions { json, ..options.clone() }, &[], &mut Vec::new());
        }
        let config: serde_json::Map<_, _> = [
            "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
            "intermediate_size", "num_experts", "num_experts_per_tok", "sliding_window",
            "max_position_embeddings", "vocab_size", "kv_lora_rank",
        ]
        .iter()
        .zip(&figures)
        .map(|(name, n)| {
            let n = if *name == "num_hidden_layers" { n % 90 } else { n >> (n % 64) };
            ((*name).to_owned(), n.into())
        })
        .collect();
        std::fs::write(folder.path().join("config.json"), serde_json::Value::Object(config).to_string()).unwrap();
        let options = FitOptions { model: Some(folder.path().to_str().unwrap().to_owned()), ..options };
        let _either = run(&options, &[], &mut Vec::new());
    }
}

/// A GPU on which a zombie has 4 of 24 GiB, and what ending it leaves.
fn room(need: Bytes) -> Fit {
    let (free, bytes) = (Bytes::gib(7), Bytes::gib(4));
    let step = Step {
        headline: "1 zombie holds 4.0 GiB".to_owned(),
        line: Some("vramlens kill 500".to_owned()),
        bytes,
        provenance: Provenance::Measured,
    };
    let missing = need.saturating_sub(free + bytes);
    let (gpu, label) = (GpuIndex(0), "0".to_owned());
    Fit { gpu, label, need, free, margin: Bytes::mib(491), steps: vec![step], missing }
}

#[test]
fn what_does_not_fit_now_comes_with_what_would_make_room() {
    let gpus = [gpu(0, "NVIDIA GeForce RTX 3090", 24, 7, 4)];
    let ask = |options: &FitOptions| {
        let mut out = Vec::new();
        let code = run_here(options, &gpus, &|need| Some(room(need)), &mut out).unwrap();
        (code, String::from_utf8(out).unwrap())
    };
    let (code, text) = ask(&model("32B"));
    assert_eq!(code, 1, "{text}");
    let (_, room) = text.split_once("TO MAKE ROOM").unwrap_or_else(|| panic!("{text}"));
    assert!(room.contains("vramlens kill 500") && room.contains("are missing"), "{room}");
    let json = FitOptions { json: true, ..model("32B") };
    let answer: serde_json::Value = serde_json::from_str(&ask(&json).1).unwrap();
    assert_eq!(answer["make_room"]["steps"][0]["line"], "vramlens kill 500");
    // What fits needs none.
    let small = FitOptions { json: true, ..model("8B") };
    let (code, text) = ask(&small);
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, answer.get("make_room")), (0, None), "{text}");
}
