//! The fuzz targets over stored inputs and over changed ones, from a fixed seed: what needs no
//! instrumented build and no time. `tests/fuzz/` has the programs for a longer run, which found the
//! inputs in `tests/fuzz/corpus`: the fewest that reach what libFuzzer reached.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "fit_gen/mod.rs"]
mod fit_gen;
#[path = "fuzz/targets.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small generator of numbers (xorshift), so that every run makes the same changes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// What often breaks a reader: ends of ranges, controls of a terminal, marks of forms.
const PIECES: [&[u8]; 20] = [
    b"\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"18446744073709551616",
    b"-1",
    b"1e999",
    b"NaN",
    b"\x1b[2J",
    b"\x1b]0;x\x07",
    "\u{202e}".as_bytes(),
    "\u{200b}".as_bytes(),
    b"{",
    b"[",
    b"\"",
    b"\r\n\r\n",
    b"GiB",
    b"%s%n",
    b"../../",
    b"\n\n",
    b"\xf0\x9f",
];

fn change(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() + 1);
        let to = (at + random.below(24)).min(out.len());
        match random.below(7) {
            0 => out.truncate(at),
            1 if at < out.len() => out[at] ^= 1 << random.below(8),
            2 if at < out.len() => out[at] = random.next() as u8,
            3 => drop(out.drain(at..to)),
            4 => {
                let copy = out[at..to].to_vec();
                let times = 1 + random.below(50);
                out.splice(at..at, copy.repeat(times));
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                out.splice(at..at, piece.iter().copied());
            }
        }
    }
    out
}

fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map(|all| all.flatten().map(|file| file.path()).filter(|path| path.is_file()).collect())
        .unwrap_or_default();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn small_gguf() -> Vec<u8> {
    let mut w = fit_gen::Writer { version: 3, ..fit_gen::Writer::default() };
    w.text("general.architecture", "llama")
        .int("llama.block_count", 2)
        .int("llama.embedding_length", 256)
        .int("llama.attention.head_count", 4)
        .array("llama.attention.head_count_kv", &[2, 2])
        .texts("tokenizer.ggml.tokens", 7)
        .tensor("token_embd.weight", "F16", &[256, 7])
        .tensor("blk.0.attn_q.weight", "Q4_K", &[256, 256]);
    w.bytes().0
}

/// What a target is begun with, besides what is stored for it.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let plain = || {
        let recording = files("tests/recordings").remove(0);
        let text = zstd::decode_all(&recording[..]).unwrap();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').take(12).collect();
        lines.concat()
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut all: Vec<Vec<u8>> = match name {
        "oom_text" => files("tests/corpus/oom"),
        "gguf" => vec![small_gguf()],
        "safetensors" => {
            let header = br#"{"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}"#;
            vec![[&(header.len() as u64).to_le_bytes()[..], header, &[0; 12]].concat()]
        }
        "model_config" => texts(&[
            r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
               "num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,
               "intermediate_size":14336,"torch_dtype":"bfloat16","head_dim":128}"#,
            r#"{"model_type":"qwen2_moe","num_experts":64,"num_experts_per_tok":8,
               "text_config":{"hidden_size":2048},"quantization_config":{"bits":4}}"#,
        ]),
        "configuration" => vec![std::fs::read("config.example.toml").unwrap()],
        "theme" => files("assets/themes"),
        "recording" => vec![files("tests/recordings").remove(0), plain()],
        "remote_stream" => vec![plain()],
        "proc_files" => texts(&[
            "\x004000 (a b) S 1 4000 4000 0 -1 4194304 0 0 0 0 1 2 0 0 20 0 1 0 5000 1 2 3\n",
            "\u{1}Name:\ta\nUid:\t0\t0\t0\t0\nNSpid:\t4000\t7\nSigIgn:\t00000002\n",
            "\u{2}python\0train.py\0--token\0x\0",
            "\u{3}CUDA_VISIBLE_DEVICES=0\0PATH=/bin\0",
            "\u{4}0::/system.slice/docker-0123456789abcdef.scope\n12:cpu:/x\n",
            "\u{6}7f0000000000-7f0000001000 r-xp 00000000 08:01 12 /usr/lib/libcuda.so\n",
        ]),
        "maps" => texts(&[
            "7f0000000000-7f0000001000 rw-p 00000000 08:01 12 /usr/lib/libc10_cuda.so (deleted)\n",
        ]),
        "http_request" => texts(&[
            "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t0ken\r\n\
             Accept: application/openmetrics-text;version=1.0.0;q=0.5\r\n\r\n",
            "POST /-/reload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ]),
        "server_answers" => texts(&[
            "\0# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{m=\"x\"} 0.5\n",
            "\u{1}sglang:token_usage 0.3\n",
            "\u{2}{\"default_generation_settings\":{\"n_ctx\":4096},\"total_slots\":4}",
            "\u{3}{\"models\":[{\"name\":\"a\",\"size\":5,\"size_vram\":4}]}",
            "\u{4}{\"devices\":[{\"vram_total\":5,\"vram_free\":4,\"torch_vram_total\":3}]}",
        ]),
        "command_line" => texts(&["vllm\0--api-key=x\0https://u:p@h/?token=a\0Bearer\0a"]),
        "moment" => texts(&["03:58", "03:58:11", "2026-11-30 03:58", "-10m", "+5m"]),
        "filter" => texts(&["user:ana state:zombie vram>2G !python gpu:0"]),
        other => panic!("{other} has no seeds"),
    };
    all.extend(files(&format!("tests/fuzz/corpus/{name}")));
    all
}

/// Runs of one target at the most, and how long they may take on a slow machine.
const RUNS: usize = 1_500;
const WITHIN: Duration = Duration::from_secs(5);

#[test]
fn no_input_breaks_a_reader() {
    std::env::set_current_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut broken = Vec::new();
    for (name, target) in targets::TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name}");
        let mut random = Random(0x1234_5678_9abc_def1);
        let (begun, mut runs) = (Instant::now(), 0);
        let mut inputs: Vec<Vec<u8>> = seeds.clone();
        inputs.push(Vec::new());
        while runs < RUNS && (runs < seeds.len() || begun.elapsed() < WITHIN) {
            let input = inputs.pop().unwrap_or_else(|| {
                let seed = &seeds[random.below(seeds.len())];
                change(seed, &mut random)
            });
            runs += 1;
            let one = Instant::now();
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                broken.push(format!("{name}: {}", input.escape_ascii()));
                break;
            }
            assert!(one.elapsed() < Duration::from_secs(30), "{name} hangs on {}", input.len());
        }
        eprintln!("{name}: {runs} inputs in {:?}", begun.elapsed());
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_target_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in targets::TARGETS {
        let program = folder.join(format!("fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(program).unwrap();
        assert!(text.contains(&format!("targets::{name}(data)")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

#[test]
fn every_target_has_a_small_corpus() {
    const MOST: u64 = 1 << 20;
    const LONGEST: u64 = 64 << 10;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut all = 0;
    for (name, _) in targets::TARGETS {
        let lengths: Vec<u64> = std::fs::read_dir(folder.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert!(!lengths.is_empty() && lengths.iter().all(|length| *length <= LONGEST), "{name}");
        all += lengths.iter().sum::<u64>();
    }
    assert!(all <= MOST, "{all} bytes");
}
