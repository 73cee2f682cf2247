//! Every family of models: caches and states by hand against those from the header and from
//! `config.json`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod fit_gen;

use std::io::Cursor;

use fit_gen::Writer;
use serde_json::json;
use vramlens::model::gguf::Gguf;
use vramlens::model::kv::{CacheSettings, slope, total};
use vramlens::model::shape::Shape;
use vramlens::model::{shape_of_config, shape_of_gguf};

fn gguf(arch: &str, ints: &[(&str, u64)], arrays: &[(&str, Vec<u64>)]) -> Shape {
    let mut w = Writer::new(arch);
    for (key, value) in ints {
        w.int(&format!("{arch}.{key}"), *value);
    }
    for (key, values) in arrays {
        w.array(&format!("{arch}.{key}"), values);
    }
    shape_of_gguf(&Gguf::read(Cursor::new(w.bytes().0)).unwrap()).unwrap()
}

/// Cache at 4096 tokens and state of one sequence, in bytes.
fn bytes(shape: &Shape) -> (u64, u64) {
    let t = total(shape, &CacheSettings::new(4096));
    (t.full + t.window, t.state)
}

const BASE: [(&str, u64); 3] =
    [("embedding_length", 2048), ("attention.head_count", 16), ("feed_forward_length", 4096)];

fn with(more: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    BASE.iter().chain(more).copied().collect()
}

fn mamba() -> [(&'static str, u64); 4] {
    [
        ("ssm.conv_kernel", 4),
        ("ssm.inner_size", 4096),
        ("ssm.state_size", 128),
        ("ssm.group_count", 1),
    ]
}

#[test]
fn hybrids_of_gguf() {
    // Granite-hybrid: 40 layers, four with attention; Mamba-2 in the others.
    let kv: Vec<u64> = (0..40).map(|i| if i % 10 == 5 { 4 } else { 0 }).collect();
    let ssm = mamba();
    let state = (3 * (4096 + 2 * 128) + 128 * 4096) * 4;
    for arch in ["granitehybrid", "jamba"] {
        let ints = with(&[("block_count", 40)]).into_iter().chain(ssm).collect::<Vec<_>>();
        let shape = gguf(arch, &ints, &[("attention.head_count_kv", kv.clone())]);
        assert_eq!(bytes(&shape), (4 * 4096 * 4 * 128 * 4, 36 * state), "{arch}");
    }
    // Falcon-H1 has both in every layer.
    let ints = with(&[("block_count", 8), ("attention.head_count_kv", 2)])
        .into_iter()
        .chain(ssm)
        .collect::<Vec<_>>();
    assert_eq!(bytes(&gguf("falcon-h1", &ints, &[])), (8 * 4096 * 2 * 128 * 4, 8 * state));
    // Mamba has no cache.
    let ints = with(&[("block_count", 8)]).into_iter().chain(ssm).collect::<Vec<_>>();
    assert_eq!(bytes(&gguf("mamba2", &ints, &[])), (0, 8 * state));
}

#[test]
fn other_states_of_gguf() {
    let ssm = mamba();
    let state = (3 * (4096 + 2 * 128) + 128 * 4096) * 4;
    // Nemotron-H: Mamba, attention, feed-forward only.
    let ints: Vec<(&str, u64)> =
        [("embedding_length", 2048), ("attention.head_count", 16), ("block_count", 3)]
            .into_iter()
            .chain(ssm)
            .collect();
    let arrays =
        [("attention.head_count_kv", vec![0, 8, 0]), ("feed_forward_length", vec![0, 0, 4096])];
    assert_eq!(bytes(&gguf("nemotron_h", &ints, &arrays)), (4096 * 8 * 128 * 4, state));
    // LFM2: short convolutions.
    let ints = with(&[("block_count", 4), ("shortconv.l_cache", 3)]);
    let shape = gguf("lfm2", &ints, &[("attention.head_count_kv", vec![0, 0, 8, 0])]);
    assert_eq!(bytes(&shape), (4096 * 8 * 128 * 4, 3 * 2048 * 2 * 4));
    // RWKV.
    let ints = with(&[("block_count", 4), ("wkv.head_size", 64), ("token_shift_count", 2)]);
    assert_eq!(bytes(&gguf("rwkv7", &ints, &[])), (0, 4 * 2048 * (2 + 64) * 4));
    // Kimi-Linear: delta attention with every fourth layer latent.
    let ints = with(&[
        ("block_count", 4),
        ("kda.head_dim", 128),
        ("ssm.conv_kernel", 4),
        ("attention.kv_lora_rank", 512),
        ("attention.key_length_mla", 192),
        ("attention.value_length_mla", 128),
        ("rope.dimension_count", 64),
    ]);
    let shape = gguf("kimi-linear", &ints, &[("attention.head_count_kv", vec![0, 0, 0, 1])]);
    assert_eq!(bytes(&shape), (4096 * 576 * 2, 3 * (128 * 128 * 16 + 9 * 16 * 128) * 4));
    // Qwen3-Next.
    let ints = [
        ("block_count", 48),
        ("embedding_length", 2048),
        ("attention.head_count", 16),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 256),
        ("attention.value_length", 256),
        ("feed_forward_length", 5120),
        ("ssm.conv_kernel", 4),
        ("ssm.inner_size", 4096),
        ("ssm.state_size", 128),
        ("ssm.group_count", 16),
        ("full_attention_interval", 4),
    ];
    let shape = gguf("qwen3next", &ints, &[]);
    assert_eq!(bytes(&shape).0, 12 * 4096 * 2 * 256 * 4);
    assert!((bytes(&shape).1 as f64 / 1_048_576.0 - 75.4).abs() < 0.05);
}

#[test]
fn windows_and_shared_layers_of_gguf() {
    // gemma3n: twenty layers own a cache, every fifth is full.
    let ints = with(&[
        ("block_count", 30),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 256),
        ("attention.value_length", 256),
        ("attention.sliding_window", 512),
    ]);
    let token = 2 * 256 * 4;
    assert_eq!(bytes(&gguf("gemma3n", &ints, &[])).0, (4 * 4096 + 16 * 1024) * token);
    // gemma4 shares the last layers.
    let more = [
        ("attention.shared_kv_layers", 10),
        ("attention.key_length_swa", 128),
        ("attention.value_length_swa", 128),
    ];
    let ints: Vec<_> = ints.into_iter().chain(more).collect();
    let pattern: Vec<u64> = (0..30).map(|i| u64::from(i % 6 != 5)).collect();
    let shape = gguf("gemma4", &ints, &[("attention.sliding_window_pattern", pattern)]);
    assert_eq!(bytes(&shape).0, (3 * 4096) * token + 17 * 1024 * token / 2);
    // deci (Nemotron-Ultra): layers without attention.
    let kv: Vec<u64> = (0..162).map(|i| if i < 64 { 8 } else { 0 }).collect();
    let ints = [
        ("block_count", 162),
        ("embedding_length", 16384),
        ("attention.key_length", 128),
        ("attention.value_length", 128),
    ];
    let shape = gguf(
        "deci",
        &ints,
        &[("attention.head_count_kv", kv), ("attention.head_count", vec![128; 162])],
    );
    assert_eq!(bytes(&shape).0, 64 * 4096 * 8 * 128 * 4);
}

#[test]
fn families_that_keep_all_nothing_or_something_else() {
    // Phi-3 carries a window and keeps everything.
    let ints = with(&[("block_count", 2), ("attention.sliding_window", 2047)]);
    assert_eq!(gguf("phi3", &ints, &[]).window_layers(), 0);
    // Encoders keep nothing.
    assert_eq!(bytes(&gguf("bert", &with(&[("block_count", 12)]), &[])), (0, 0));
    // A sparse indexer has keys of its own; layers that guess ahead are not counted.
    let ints = with(&[
        ("block_count", 5),
        ("nextn_predict_layers", 1),
        ("attention.kv_lora_rank", 512),
        ("attention.key_length_mla", 192),
        ("attention.value_length_mla", 128),
        ("rope.dimension_count", 64),
        ("attention.head_count_kv", 1),
        ("attention.indexer.key_length", 128),
    ]);
    let shape = gguf("deepseek32", &ints, &[]);
    assert_eq!((shape.layers.len(), bytes(&shape).0), (4, 4 * 4096 * (576 + 128) * 2));
    // Files of before that keep expanded keys and values.
    let ints = with(&[
        ("block_count", 1),
        ("attention.kv_lora_rank", 512),
        ("attention.key_length", 192),
        ("attention.value_length", 128),
    ]);
    assert_eq!(bytes(&gguf("deepseek2", &ints, &[])).0, 4096 * 16 * (192 + 128) * 2);
}

#[test]
fn bytes_a_token_from_config_json() {
    let cases: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("corpus/fit/configs.json")).unwrap();
    for case in &cases {
        let shape = shape_of_config(&case["config"]).unwrap();
        let token = slope(&shape, &CacheSettings::new(4096));
        assert_eq!(Some(token), case["bytes_per_token"].as_u64(), "{}", case["name"]);
    }
    assert!(cases.len() >= 17);
}

#[test]
fn states_and_experts_from_config_json() {
    let config = json!({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
        "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512});
    let shape = shape_of_config(&config).unwrap();
    assert!((bytes(&shape).1 as f64 / 1_048_576.0 - 75.4).abs() < 0.05);
    let experts = shape.experts.unwrap();
    assert_eq!((experts.count, experts.used, experts.shared_ff), (512, 10, 512));
    let dense = json!({"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 4,
        "n_routed_experts": 8, "first_k_dense_replace": 2});
    let with = shape_of_config(&dense).unwrap().layers.iter().filter(|l| l.experts).count();
    assert_eq!(with, 3);
}

#[test]
fn configurations_that_lie() {
    for config in [
        json!([]),
        json!({}),
        json!({"hidden_size": 64}),
        json!({"hidden_size": 64, "num_hidden_layers": 1_000_000}),
        json!({"hidden_size": 18_446_744_073_709_551_615_u64, "num_hidden_layers": 2}),
        json!({"hidden_size": -5, "num_hidden_layers": 2}),
        json!({"text_config": {"text_config": {"text_config": {"text_config": {}}}}}),
    ] {
        assert!(shape_of_config(&config).is_err(), "{config}");
    }
}
