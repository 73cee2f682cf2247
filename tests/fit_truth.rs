//! The arithmetic against what people's machines printed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod fit_gen;

use serde_json::Value as Json;
use vramlens::model::compute::{Era, OnDevice, on_gpu};
use vramlens::model::kv::{CacheSettings, total};
use vramlens::model::plan::Settings;
use vramlens::model::shape::Shape;
use vramlens::model::torch::{VllmSettings, vllm_tokens};
use vramlens::model::{diffusion, shape_of_gguf};

const TRUTH: &str = include_str!("corpus/fit/truth.json");
const MIB: f64 = 1_048_576.0;

fn points() -> Vec<Json> {
    let truth: Json = serde_json::from_str(TRUTH).unwrap();
    truth["points"].as_array().unwrap().clone()
}

/// A writer of a file's properties, by the names that they have for its architecture.
struct Properties<'p> {
    arch: &'p str,
    file: fit_gen::Writer,
}

impl Properties<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    fn put(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.file.int(&self.key(name), value);
        }
    }

    /// Layers with a window, and every sixth without.
    fn windows(&mut self, swa: &Json, layers: u64) {
        let full = |i: u64| (i + 1).is_multiple_of(6);
        let (global, window) = (&swa["kv_heads_global"], &swa["kv_heads_swa"]);
        let (global, window) = (global.as_u64().unwrap(), window.as_u64().unwrap());
        self.put("attention.key_length", swa["hd_global"].as_u64());
        self.put("attention.value_length", swa["hd_global"].as_u64());
        self.put("attention.key_length_swa", swa["hd_swa"].as_u64());
        self.put("attention.value_length_swa", swa["hd_swa"].as_u64());
        let each: Vec<u64> = (0..layers).map(|i| if full(i) { global } else { window }).collect();
        self.file.array(&self.key("attention.head_count_kv"), &each);
        let pattern: Vec<bool> = (0..layers).map(|i| !full(i)).collect();
        self.file.flags(&self.key("attention.sliding_window_pattern"), &pattern);
    }

    /// Keys and values from a latent vector, kept as it is or expanded for so many heads.
    fn latent(&mut self, mla: &Json, expanded: bool, heads: Option<u64>) {
        let part = |name: &str| mla[name].as_u64().unwrap();
        let (key, rope) = (part("qk_nope") + part("qk_rope"), part("qk_rope"));
        if expanded {
            self.put("attention.head_count_kv", heads);
            self.put("attention.key_length", Some(key));
            self.put("attention.value_length", Some(part("v_head")));
        } else {
            let rank = part("kv_lora_rank");
            self.put("attention.head_count_kv", Some(1));
            self.put("attention.key_length", Some(rank + rope));
            self.put("attention.key_length_mla", Some(key));
            self.put("attention.value_length_mla", Some(part("v_head")));
            self.put("attention.kv_lora_rank", Some(rank));
            self.put("rope.dimension_count", Some(rope));
        }
        self.put("leading_dense_block_count", Some(3));
    }
}

/// The shape that a file with these properties would have.
fn shape(point: &Json) -> Option<Shape> {
    let h = &point["hparams"];
    let arch = h["arch"].as_str()?;
    let int = |key: &str| h[key].as_u64();
    let layers = int("n_layer")?;
    let mut w = Properties { arch, file: fit_gen::Writer::new(arch) };
    w.put("block_count", Some(layers));
    w.put("embedding_length", Some(int("n_embd").unwrap_or(3840)));
    w.put("feed_forward_length", int("n_ff"));
    w.put("attention.head_count", Some(int("n_head").unwrap_or(16)));
    w.put("vocab_size", int("n_vocab"));
    w.put("expert_count", int("n_expert"));
    w.put("expert_used_count", int("n_expert_used"));
    w.put("expert_feed_forward_length", int("n_ff_exp"));
    w.put("full_attention_interval", int("full_attention_interval"));
    for part in ["conv_kernel", "state_size", "group_count", "time_step_rank", "inner_size"] {
        w.put(&format!("ssm.{part}"), h["ssm"][part].as_u64());
    }
    w.put("attention.sliding_window", h["swa"]["window"].as_u64());
    if h["swa"]["kv_heads_global"].is_u64() {
        w.windows(&h["swa"], layers);
    } else if h["mla"]["kv_lora_rank"].is_u64() {
        w.latent(&h["mla"], point["run"]["mla"].as_u64() == Some(0), int("n_head"));
    } else {
        w.put("attention.head_count_kv", int("n_head_kv"));
        w.put("attention.key_length", int("hd_k"));
        w.put("attention.value_length", int("hd_v"));
    }
    if arch.starts_with("qwen3") {
        w.file.tensor("blk.0.attn_q_norm.weight", "F32", &[128]);
    }
    let bytes = w.file.bytes().0;
    let gguf = vramlens::model::gguf::Gguf::read(std::io::Cursor::new(bytes)).unwrap();
    Some(shape_of_gguf(&gguf).unwrap())
}

fn settings(point: &Json) -> Option<Settings> {
    let run = &point["run"];
    let mut s = Settings::new(run["n_ctx"].as_u64()?);
    let tool = point["tool"].as_str().unwrap();
    let era = point["compute_era"].as_str().unwrap_or("logits_for_all");
    s.compute.era = if tool.contains("ik_llama") {
        Era::IkLlama
    } else if era.contains("limited") {
        Era::Limited
    } else {
        Era::AllLogits
    };
    s.cache = CacheSettings {
        slots: run["n_seq"].as_u64().unwrap_or(1),
        ubatch: run["n_ubatch"].as_u64().unwrap_or(512),
        full_window: run["swa_full"].as_bool().unwrap_or(false),
        mla_values: point["id"] == "t018",
        ..s.cache
    };
    if let Some(kind) = run["ctk"].as_str() {
        s.cache.keys = kind.parse().unwrap();
        s.cache.values = run["ctv"].as_str().map_or(s.cache.keys, |v| v.parse().unwrap());
    }
    s.compute.flash = run["fa"].as_u64() != Some(0);
    Some(s)
}

#[test]
fn caches_are_exact() {
    let mut checked = 0;
    for point in points() {
        let Some((shape, s)) = shape(&point).zip(settings(&point)) else { continue };
        let id = point["id"].as_str().unwrap();
        let measured = &point["measured"];
        let bytes = total(&shape, &s.cache);
        let mib = |n: u64| n as f64 / MIB;
        // Printed with none to two digits.
        let check = |what: &str, ours: u64, theirs: &Json, unit: f64| {
            let Some(theirs) = theirs.as_f64() else { return 0 };
            let rough = if theirs.fract() == 0.0 && theirs > 300.0 { 0.51 } else { 0.011 };
            assert!(
                (mib(ours) / unit - theirs).abs() <= rough,
                "{id} {what}: {} for {theirs}",
                mib(ours)
            );
            1
        };
        let cache = bytes.full + bytes.window;
        if !point["tool"].as_str().unwrap().contains("stimator") {
            checked += check("kv", cache, &measured["kv_mib"], 1.0);
        }
        checked += check("global", bytes.full, &measured["kv_global_mib"], 1.0);
        checked += check("window", bytes.window, &measured["kv_swa_mib"], 1.0);
        checked += check("state", bytes.state, &measured["rs_mib"], 1.0);
    }
    println!("caches and states: {checked} figures, all exact");
    assert!(checked >= 40, "{checked}");
}

/// Points whose buffers hold things that their record does not describe.
const UNEXPLAINED: [&str; 3] = ["t015", "t022", "t051"];

#[test]
fn compute_buffers() {
    let mut errors: Vec<(f64, String)> = Vec::new();
    for point in points() {
        let Some((shape, s)) = shape(&point).zip(settings(&point)) else { continue };
        let run = &point["run"];
        let id = point["id"].as_str().unwrap();
        let odd = run["override"].is_string()
            || run["n_gpu"].is_u64()
            || run["cpu_moe"].is_boolean()
            || run["ngl"].as_u64().is_none_or(|n| n < shape.layers.len() as u64)
            || point["hparams"]["n_embd"].is_null()
            || point["tool"].as_str().unwrap().contains("Hexagon");
        let Some(measured) = point["measured"]["compute_gpu_mib"][0].as_f64() else { continue };
        if odd {
            continue;
        }
        let device = OnDevice {
            layers: shape.layers.len() as u64,
            output: true,
            all_layers: true,
            pipeline: 1,
            ..OnDevice::default()
        };
        let ours = on_gpu(&shape, &s.cache, &s.compute, &device).bytes() as f64 / MIB;
        let error = (ours / measured - 1.0) * 100.0;
        let text = format!("{id} {} {ours:.2} for {measured} {error:+.2} %", point["model"]);
        println!("{text}");
        if !UNEXPLAINED.contains(&id) {
            errors.push((error.abs(), text));
        }
    }
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |q: f64| errors[((errors.len() - 1) as f64 * q).round() as usize].0;
    println!(
        "compute: n {}  median {:.2} %  p95 {:.2} %  worst {}",
        errors.len(),
        at(0.5),
        at(0.95),
        errors.last().unwrap().1
    );
    assert!(at(0.5) <= 3.0 && at(0.95) <= 10.0);
}

#[test]
fn denoisers_as_logged() {
    for point in points() {
        let Some(measured) = point["measured"]["denoiser_compute_mib"].as_f64() else { continue };
        let name = point["model"].as_str().unwrap();
        let side: u64 = point["run"]["resolution"]
            .as_str()
            .unwrap()
            .split('x')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let flash = point["run"]["fa"].as_u64() == Some(1);
        let image = diffusion::Image { width: side, height: side, flash, ..Default::default() };
        let ours = diffusion::denoiser_scratch(name, &image).unwrap() as f64 / MIB;
        assert!((ours / measured - 1.0).abs() < 0.01, "{name} {side}: {ours} for {measured}");
    }
    let image = diffusion::Image { vae_f32: true, ..Default::default() };
    assert_eq!(diffusion::vae_scratch(&image), 6656 << 20);
}

/// Whole-GPU figures of one card at six settings: one constant for CUDA explains them all.
#[test]
fn totals_as_nvidia_smi_shows_them() {
    const WEIGHTS: f64 = 6390.0;
    const CUDA: f64 = 172.5;
    let mut errors = Vec::new();
    for point in points() {
        let smi = point["measured"]["used_nvidia_smi_mib"].as_f64();
        let Some(smi) = smi.filter(|_| point["model"] == "gemma4-12b") else { continue };
        let (shape, mut s) = (shape(&point).unwrap(), settings(&point).unwrap());
        let shape = Shape { ff: 15_360, head_k: 256, qk_norm: true, ..shape };
        s.compute.cuda = false;
        let device = OnDevice {
            layers: 48,
            output: true,
            all_layers: true,
            pipeline: 1,
            ..OnDevice::default()
        };
        let scratch = on_gpu(&shape, &s.cache, &s.compute, &device).bytes();
        let ours = WEIGHTS + CUDA + (total(&shape, &s.cache).total() + scratch) as f64 / MIB;
        println!("{} {ours:.1} for {smi}", point["id"]);
        errors.push((ours / smi - 1.0).abs() * 100.0);
    }
    assert!(errors.len() >= 4 && errors.iter().all(|e| *e < 0.3), "{errors:?}");
}

/// Tokens that vLLM finds room for, from the bytes that it had.
#[test]
fn tokens_of_vllm() {
    let mut checked = 0;
    for point in points() {
        let measured = &point["measured"];
        let Some(gib) = measured["kv_available_gib"].as_f64() else { continue };
        let blocks = measured["kv_blocks"].as_f64().map(|n| n * 16.0);
        let Some(tokens) = blocks.or(measured["kv_tokens"].as_f64()) else { continue };
        let Some(shape) = shape(&point).filter(|s| s.window == 0) else { continue };
        let parallel = point["run"]["tp"].as_u64().unwrap_or(1);
        let settings = VllmSettings { tensor_parallel: parallel, ..VllmSettings::new(8192) };
        let ours = vllm_tokens(&shape, &settings, (gib * 1024.0 * MIB) as u64) as f64;
        println!("{} {ours} for {tokens}", point["id"]);
        assert!((ours / tokens - 1.0).abs() < 0.015, "{}: {ours} for {tokens}", point["id"]);
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
}

/// Nothing on the GPU, and the output projection copied there all the same (t025): a log shows
/// the copy and the logits.
#[test]
fn the_cpu_lends_its_output_to_the_gpu() {
    let point = points().into_iter().find(|p| p["id"] == "t025").unwrap();
    let (shape, s) = (shape(&point).unwrap(), settings(&point).unwrap());
    let q8 = |values: u64| values / 32 * 34;
    let device = OnDevice {
        largest_on_cpu: q8(5120 * 13_824),
        output_on_cpu: q8(5120 * 32_000),
        pipeline: 1,
        ..OnDevice::default()
    };
    let ours = on_gpu(&shape, &s.cache, &s.compute, &device).bytes() as f64 / MIB;
    let measured = point["measured"]["compute_gpu_mib"][0].as_f64().unwrap();
    assert!((ours / measured - 1.0).abs() < 0.01, "{ours} for {measured}");
}
