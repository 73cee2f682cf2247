//! The models of the oracle, tensor by tensor.

use super::Writer;

/// The usual keys.
pub struct Dims {
    pub arch: &'static str,
    pub layers: u64,
    pub embd: u64,
    pub ff: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub head: u64,
    pub vocab: u64,
    pub context: u64,
}

pub fn keys(d: &Dims) -> Writer {
    let mut w = Writer::new(d.arch);
    let key = |name: &str| format!("{}.{name}", d.arch);
    w.int(&key("block_count"), d.layers)
        .int(&key("context_length"), d.context)
        .int(&key("embedding_length"), d.embd)
        .int(&key("feed_forward_length"), d.ff)
        .int(&key("attention.head_count"), d.heads)
        .int(&key("attention.head_count_kv"), d.kv_heads)
        .int(&key("attention.key_length"), d.head)
        .int(&key("attention.value_length"), d.head)
        .int(&key("vocab_size"), d.vocab);
    w
}

fn embeddings(w: &mut Writer, d: &Dims, kind: &str, output: Option<&str>) {
    w.tensor("token_embd.weight", kind, &[d.embd, d.vocab]);
    w.tensor("output_norm.weight", "F32", &[d.embd]);
    if let Some(kind) = output {
        w.tensor("output.weight", kind, &[d.embd, d.vocab]);
    }
}

fn attention(w: &mut Writer, d: &Dims, i: u64, kind: &str) {
    let (q, kv) = (d.heads * d.head, d.kv_heads * d.head);
    w.tensor(&format!("blk.{i}.attn_norm.weight"), "F32", &[d.embd]);
    w.tensor(&format!("blk.{i}.attn_q.weight"), kind, &[d.embd, q]);
    w.tensor(&format!("blk.{i}.attn_k.weight"), kind, &[d.embd, kv]);
    w.tensor(&format!("blk.{i}.attn_v.weight"), kind, &[d.embd, kv]);
    w.tensor(&format!("blk.{i}.attn_output.weight"), kind, &[q, d.embd]);
}

fn qk_norm(w: &mut Writer, d: &Dims, i: u64) {
    w.tensor(&format!("blk.{i}.attn_q_norm.weight"), "F32", &[d.head]);
    w.tensor(&format!("blk.{i}.attn_k_norm.weight"), "F32", &[d.head]);
}

fn feed_forward(w: &mut Writer, d: &Dims, i: u64, kind: &str) {
    w.tensor(&format!("blk.{i}.ffn_gate.weight"), kind, &[d.embd, d.ff]);
    w.tensor(&format!("blk.{i}.ffn_up.weight"), kind, &[d.embd, d.ff]);
    w.tensor(&format!("blk.{i}.ffn_down.weight"), kind, &[d.ff, d.embd]);
}

fn experts(w: &mut Writer, embd: u64, i: u64, kind: &str, count: u64, ff: u64) {
    w.tensor(&format!("blk.{i}.ffn_gate_inp.weight"), "F32", &[embd, count]);
    w.tensor(&format!("blk.{i}.ffn_gate_exps.weight"), kind, &[embd, ff, count]);
    w.tensor(&format!("blk.{i}.ffn_up_exps.weight"), kind, &[embd, ff, count]);
    w.tensor(&format!("blk.{i}.ffn_down_exps.weight"), kind, &[ff, embd, count]);
}

/// A plain decoder: `tied`, with norms of queries and keys, with Gemma's two norms more.
pub fn dense(d: &Dims, tied: bool, norms: bool, post: bool) -> Writer {
    let mut w = keys(d);
    embeddings(&mut w, d, if tied { "Q6_K" } else { "Q4_K" }, (!tied).then_some("Q6_K"));
    for i in 0..d.layers {
        attention(&mut w, d, i, "Q4_K");
        if norms {
            qk_norm(&mut w, d, i);
        }
        w.tensor(&format!("blk.{i}.ffn_norm.weight"), "F32", &[d.embd]);
        if post {
            w.tensor(&format!("blk.{i}.post_attention_norm.weight"), "F32", &[d.embd]);
            w.tensor(&format!("blk.{i}.post_ffw_norm.weight"), "F32", &[d.embd]);
        }
        feed_forward(&mut w, d, i, "Q4_K");
    }
    w
}

const fn dims(
    arch: &'static str,
    [layers, embd, ff, heads, kv_heads, head, vocab, context]: [u64; 8],
) -> Dims {
    Dims { arch, layers, embd, ff, heads, kv_heads, head, vocab, context }
}

/// The models of the oracle.
pub fn oracle_model(name: &str) -> Writer {
    match name {
        "llama31-8b" => {
            let d = dims("llama", [32, 4096, 14336, 32, 8, 128, 128_256, 131_072]);
            dense(&d, false, false, false)
        }
        "llama32-3b" => dense(
            &dims("llama", [28, 3072, 8192, 24, 8, 128, 128_256, 131_072]),
            true,
            false,
            false,
        ),
        "llama2-7b" => {
            dense(&dims("llama", [32, 4096, 11008, 32, 32, 128, 32000, 4096]), false, false, false)
        }
        "qwen3-4b" => {
            dense(&dims("qwen3", [36, 2560, 9728, 32, 8, 128, 151_936, 40960]), true, true, false)
        }
        "gemma3-27b" => {
            let d = dims("gemma3", [62, 5376, 21504, 32, 16, 128, 262_208, 131_072]);
            let mut w = dense(&d, true, true, true);
            w.int("gemma3.attention.sliding_window", 1024);
            w
        }
        "gpt-oss-20b" => gpt_oss(),
        "qwen3-30b-a3b" => qwen3_moe(),
        "qwen36-27b" => qwen35(),
        "deepseek-v3" => deepseek(),
        other => panic!("{other}"),
    }
}

fn qwen3_moe() -> Writer {
    let d = dims("qwen3moe", [48, 2048, 6144, 32, 4, 128, 151_936, 40960]);
    let mut w = keys(&d);
    w.int("qwen3moe.expert_count", 128).int("qwen3moe.expert_used_count", 8);
    w.int("qwen3moe.expert_feed_forward_length", 768);
    embeddings(&mut w, &d, "Q4_K", Some("Q6_K"));
    for i in 0..d.layers {
        attention(&mut w, &d, i, "Q4_K");
        qk_norm(&mut w, &d, i);
        w.tensor(&format!("blk.{i}.ffn_norm.weight"), "F32", &[d.embd]);
        experts(&mut w, d.embd, i, "Q4_K", 128, 768);
    }
    w
}

fn gpt_oss() -> Writer {
    let d = dims("gpt-oss", [24, 2880, 2880, 64, 8, 64, 201_088, 131_072]);
    let mut w = keys(&d);
    w.int("gpt-oss.expert_count", 32).int("gpt-oss.expert_used_count", 4);
    w.int("gpt-oss.expert_feed_forward_length", 2880);
    w.int("gpt-oss.attention.sliding_window", 128);
    embeddings(&mut w, &d, "Q8_0", Some("Q8_0"));
    for i in 0..d.layers {
        attention(&mut w, &d, i, "Q8_0");
        experts(&mut w, d.embd, i, "MXFP4", 32, 2880);
        w.tensor(&format!("blk.{i}.post_attention_norm.weight"), "F32", &[d.embd]);
        w.tensor(&format!("blk.{i}.attn_q.bias"), "F32", &[4096]);
        w.tensor(&format!("blk.{i}.attn_k.bias"), "F32", &[512]);
        w.tensor(&format!("blk.{i}.attn_v.bias"), "F32", &[512]);
        w.tensor(&format!("blk.{i}.attn_output.bias"), "F32", &[d.embd]);
        w.tensor(&format!("blk.{i}.attn_sinks.weight"), "F32", &[64]);
        w.tensor(&format!("blk.{i}.ffn_gate_inp.bias"), "F32", &[32]);
        for kind in ["gate", "up", "down"] {
            w.tensor(&format!("blk.{i}.ffn_{kind}_exps.bias"), "F32", &[2880, 32]);
        }
    }
    w
}

fn qwen35() -> Writer {
    let d = dims("qwen35", [64, 5120, 17408, 24, 4, 256, 248_320, 262_144]);
    let mut w = keys(&d);
    w.int("qwen35.full_attention_interval", 4)
        .int("qwen35.ssm.conv_kernel", 4)
        .int("qwen35.ssm.state_size", 128)
        .int("qwen35.ssm.group_count", 16)
        .int("qwen35.ssm.time_step_rank", 48)
        .int("qwen35.ssm.inner_size", 6144);
    embeddings(&mut w, &d, "Q4_K", Some("Q6_K"));
    for i in 0..d.layers {
        w.tensor(&format!("blk.{i}.attn_norm.weight"), "F32", &[d.embd]);
        w.tensor(&format!("blk.{i}.post_attention_norm.weight"), "F32", &[d.embd]);
        feed_forward(&mut w, &d, i, "Q4_K");
        if (i + 1) % 4 == 0 {
            w.tensor(&format!("blk.{i}.attn_q.weight"), "Q4_K", &[d.embd, 2 * 24 * 256]);
            w.tensor(&format!("blk.{i}.attn_k.weight"), "Q4_K", &[d.embd, 1024]);
            w.tensor(&format!("blk.{i}.attn_v.weight"), "Q4_K", &[d.embd, 1024]);
            w.tensor(&format!("blk.{i}.attn_output.weight"), "Q4_K", &[6144, d.embd]);
            qk_norm(&mut w, &d, i);
        } else {
            w.tensor(&format!("blk.{i}.attn_qkv.weight"), "Q4_K", &[d.embd, 10240]);
            w.tensor(&format!("blk.{i}.attn_gate.weight"), "Q4_K", &[d.embd, 6144]);
            w.tensor(&format!("blk.{i}.ssm_conv1d.weight"), "F32", &[4, 10240]);
            w.tensor(&format!("blk.{i}.ssm_dt.bias"), "F32", &[48]);
            w.tensor(&format!("blk.{i}.ssm_a"), "F32", &[48]);
            w.tensor(&format!("blk.{i}.ssm_alpha.weight"), "Q4_K", &[d.embd, 48]);
            w.tensor(&format!("blk.{i}.ssm_beta.weight"), "Q4_K", &[d.embd, 48]);
            w.tensor(&format!("blk.{i}.ssm_norm.weight"), "F32", &[128]);
            w.tensor(&format!("blk.{i}.ssm_out.weight"), "Q4_K", &[6144, d.embd]);
        }
    }
    w
}

fn deepseek() -> Writer {
    let d = dims("deepseek2", [61, 7168, 18432, 128, 1, 576, 129_280, 163_840]);
    let mut w = Writer::new("deepseek2");
    for (key, value) in [
        ("block_count", 61),
        ("context_length", 163_840),
        ("embedding_length", 7168),
        ("feed_forward_length", 18432),
        ("attention.head_count", 128),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 576),
        ("attention.value_length", 512),
        ("attention.key_length_mla", 192),
        ("attention.value_length_mla", 128),
        ("attention.kv_lora_rank", 512),
        ("attention.q_lora_rank", 1536),
        ("rope.dimension_count", 64),
        ("leading_dense_block_count", 3),
        ("expert_count", 256),
        ("expert_used_count", 8),
        ("expert_shared_count", 1),
        ("expert_feed_forward_length", 2048),
        ("vocab_size", 129_280),
    ] {
        w.int(&format!("deepseek2.{key}"), value);
    }
    embeddings(&mut w, &d, "Q4_K", Some("Q6_K"));
    for i in 0..d.layers {
        let b = |name: &str| format!("blk.{i}.{name}.weight");
        w.tensor(&b("attn_norm"), "F32", &[7168]).tensor(&b("ffn_norm"), "F32", &[7168]);
        w.tensor(&b("attn_q_a"), "Q4_K", &[7168, 1536]).tensor(&b("attn_q_a_norm"), "F32", &[1536]);
        w.tensor(&b("attn_q_b"), "Q4_K", &[1536, 128 * 192]);
        w.tensor(&b("attn_kv_a_mqa"), "Q4_K", &[7168, 576]);
        w.tensor(&b("attn_kv_a_norm"), "F32", &[512]);
        w.tensor(&b("attn_k_b"), "Q8_0", &[128, 512, 128]);
        w.tensor(&b("attn_v_b"), "Q8_0", &[512, 128, 128]);
        w.tensor(&b("attn_output"), "Q4_K", &[16384, 7168]);
        if i < 3 {
            feed_forward(&mut w, &d, i, "Q4_K");
        } else {
            experts(&mut w, 7168, i, "Q4_K", 256, 2048);
            w.tensor(&format!("blk.{i}.exp_probs_b.bias"), "F32", &[256]);
            w.tensor(&b("ffn_gate_shexp"), "Q4_K", &[7168, 2048]);
            w.tensor(&b("ffn_up_shexp"), "Q4_K", &[7168, 2048]);
            w.tensor(&b("ffn_down_shexp"), "Q4_K", &[2048, 7168]);
        }
    }
    w
}
