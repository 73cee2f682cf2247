//! Writes headers of models that exist nowhere: sparse files, as large as the real ones.
#![allow(dead_code)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use vramlens::model::ggml::GgmlType;

/// A GGUF file in the making.
#[derive(Clone, Default)]
pub struct Writer {
    pub pairs: Vec<u8>,
    pub pair_count: u64,
    pub tensors: Vec<(String, Vec<u64>, u32)>,
    pub big_endian: bool,
    pub version: u32,
}

impl Writer {
    pub fn new(arch: &str) -> Self {
        let mut writer = Self { version: 3, ..Self::default() };
        writer.text("general.architecture", arch);
        writer
    }

    pub fn u16s(&self, n: u16) -> [u8; 2] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub fn u32s(&self, n: u32) -> [u8; 4] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub fn u64s(&self, n: u64) -> [u8; 8] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub fn size(&self, n: u64) -> Vec<u8> {
        if self.version == 1 { self.u32s(n as u32).to_vec() } else { self.u64s(n).to_vec() }
    }

    fn key(&mut self, key: &str, kind: u32) {
        self.pair_count += 1;
        let bytes =
            [self.size(key.len() as u64), key.as_bytes().to_vec(), self.u32s(kind).to_vec()];
        self.pairs.extend(bytes.concat());
    }

    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key, 8);
        let len = self.size(value.len() as u64);
        self.pairs.extend(len);
        self.pairs.extend(value.as_bytes());
        self
    }

    pub fn int(&mut self, key: &str, value: u64) -> &mut Self {
        self.key(key, 4);
        let bytes = self.u32s(value as u32);
        self.pairs.extend(bytes);
        self
    }

    pub fn long(&mut self, key: &str, value: u64) -> &mut Self {
        self.key(key, 10);
        let bytes = self.u64s(value);
        self.pairs.extend(bytes);
        self
    }

    pub fn array(&mut self, key: &str, values: &[u64]) -> &mut Self {
        self.key(key, 9);
        let mut bytes = self.u32s(4).to_vec();
        bytes.extend(self.size(values.len() as u64));
        for value in values {
            bytes.extend(self.u32s(*value as u32));
        }
        self.pairs.extend(bytes);
        self
    }

    pub fn flags(&mut self, key: &str, values: &[bool]) -> &mut Self {
        self.key(key, 9);
        let mut bytes = self.u32s(7).to_vec();
        bytes.extend(self.size(values.len() as u64));
        bytes.extend(values.iter().map(|b| u8::from(*b)));
        self.pairs.extend(bytes);
        self
    }

    pub fn texts(&mut self, key: &str, count: u64) -> &mut Self {
        self.key(key, 9);
        let mut bytes = self.u32s(8).to_vec();
        bytes.extend(self.size(count));
        for i in 0..count {
            let token = format!("token{i}");
            bytes.extend(self.size(token.len() as u64));
            bytes.extend(token.as_bytes());
        }
        self.pairs.extend(bytes);
        self
    }

    /// A tensor; the first dimension is the row.
    pub fn tensor(&mut self, name: &str, kind: &str, shape: &[u64]) -> &mut Self {
        let id = GgmlType::named(kind).unwrap().id;
        self.tensors.push((name.to_owned(), shape.to_vec(), id));
        self
    }

    /// A tensor of a type that is known to nobody.
    pub fn strange_tensor(&mut self, name: &str, id: u32, shape: &[u64]) -> &mut Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), id));
        self
    }

    /// The header, and how long the whole file is.
    pub fn bytes(&self) -> (Vec<u8>, u64) {
        let mut out = b"GGUF".to_vec();
        out.extend(self.u32s(self.version));
        out.extend(self.size(self.tensors.len() as u64));
        out.extend(self.size(self.pair_count));
        out.extend(&self.pairs);
        let mut offset = 0_u64;
        for (name, shape, id) in &self.tensors {
            out.extend(self.size(name.len() as u64));
            out.extend(name.as_bytes());
            out.extend(self.u32s(shape.len() as u32));
            for n in shape {
                out.extend(self.size(*n));
            }
            out.extend(self.u32s(*id));
            out.extend(self.u64s(offset));
            offset += tensor_bytes(*id, shape).next_multiple_of(32);
        }
        let len = (out.len() as u64).next_multiple_of(32) + offset;
        (out, len)
    }

    pub fn save(&self, path: &Path) {
        let (bytes, len) = self.bytes();
        let mut file = File::create(path).unwrap();
        file.write_all(&bytes).unwrap();
        file.set_len(len).unwrap();
    }
}

fn tensor_bytes(id: u32, shape: &[u64]) -> u64 {
    // What is unknown takes 5 bits a value here.
    let all: u64 = shape.iter().product();
    match GgmlType::of(id) {
        Some(kind) => kind.row_bytes(shape[0]).unwrap() * shape[1..].iter().product::<u64>(),
        None => all * 5 / 8,
    }
}

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

/// Saves a model in a folder and gives its path.
pub fn saved(folder: &Path, name: &str, writer: &Writer) -> PathBuf {
    let path = folder.join(format!("{name}.gguf"));
    writer.save(&path);
    path
}

/// Writes a safetensors file of these tensors (name, type, bits, shape), sparse.
pub fn safetensors(path: &Path, tensors: &[(&str, &str, u64, &[u64])]) {
    let mut entries = serde_json::Map::new();
    let mut at = 0;
    for (name, dtype, bits, shape) in tensors {
        let bytes = shape.iter().product::<u64>() * bits / 8;
        let entry =
            serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes]});
        entries.insert((*name).to_owned(), entry);
        at += bytes;
    }
    let json = serde_json::Value::Object(entries).to_string();
    let mut file = File::create(path).unwrap();
    file.write_all(&(json.len() as u64).to_le_bytes()).unwrap();
    file.write_all(json.as_bytes()).unwrap();
    file.set_len(8 + json.len() as u64 + at).unwrap();
}
