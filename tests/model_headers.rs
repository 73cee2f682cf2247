//! Headers that are damaged, hostile, or strange.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod fit_gen;

use std::io::{Cursor, Read, Seek, SeekFrom};

use fit_gen::Writer;
use proptest::prelude::*;
use vramlens::model::gguf::{Gguf, Value};
use vramlens::model::plan::{Settings, place};
use vramlens::model::{Model, ModelError, safetensors, shape_of_gguf};

fn small(version: u32, big_endian: bool) -> Writer {
    let mut w = Writer { big_endian, version, ..Writer::default() };
    w.text("general.architecture", "llama")
        .int("llama.block_count", 2)
        .int("llama.embedding_length", 256)
        .int("llama.feed_forward_length", 512)
        .int("llama.attention.head_count", 4)
        .array("llama.attention.head_count_kv", &[2, 2])
        .int("llama.context_length", 4096)
        .texts("tokenizer.ggml.tokens", 7)
        .flags("llama.some_flags", &[true, false])
        .tensor("token_embd.weight", "F16", &[256, 7])
        .tensor("output_norm.weight", "F32", &[256])
        .tensor("blk.0.attn_q.weight", "Q4_K", &[256, 256])
        .tensor("blk.1.attn_q.weight", "Q4_K", &[256, 256]);
    w
}

/// Everything that follows a header, so that no figure in it can break the arithmetic.
fn all_the_way(bytes: Vec<u8>) -> Result<(), ModelError> {
    let gguf = Gguf::read(Cursor::new(bytes))?;
    let shape = shape_of_gguf(&gguf)?;
    let mut settings = Settings::new(1 << 30);
    settings.cache.slots = 4096;
    settings.split = vec![1, u64::MAX, 0];
    for flash in [true, false] {
        settings.compute.flash = flash;
        place(&shape, &vramlens::model::weights::Weights::default(), &settings);
    }
    Ok(())
}

#[test]
fn versions_and_byte_orders_say_the_same() {
    let read = |w: &Writer| Gguf::read(Cursor::new(w.bytes().0)).unwrap();
    let plain = read(&small(3, false));
    for (version, big_endian) in [(1, false), (2, false), (3, true), (2, true)] {
        let other = read(&small(version, big_endian));
        assert_eq!((other.version, other.big_endian), (version, big_endian));
        assert_eq!(other.values, plain.values, "version {version}, big-endian {big_endian}");
        assert_eq!(other.tensors, plain.tensors);
        assert_eq!(shape_of_gguf(&other).unwrap(), shape_of_gguf(&plain).unwrap());
    }
    assert_eq!(plain.values["tokenizer.ggml.tokens"], Value::Array { len: 7, items: Vec::new() });
    assert_eq!(plain.array_len("tokenizer.ggml.tokens"), Some(7));
}

#[test]
fn every_prefix_is_an_error() {
    for (version, big_endian) in [(1, false), (3, false), (3, true)] {
        let (bytes, _) = small(version, big_endian).bytes();
        for len in 0..bytes.len() {
            let error = all_the_way(bytes[..len].to_vec()).unwrap_err();
            assert!(!error.to_string().is_empty());
        }
        all_the_way(bytes).unwrap();
    }
}

#[test]
fn every_byte_may_be_anything() {
    for (version, big_endian) in [(1, false), (3, false), (3, true)] {
        let (bytes, _) = small(version, big_endian).bytes();
        for at in 0..bytes.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff, bytes[at] ^ 0x20] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _either = all_the_way(damaged);
            }
        }
    }
}

/// The start of a file of so many tensors and pairs, and what comes then.
fn header(tensors: u64, pairs: u64, rest: &[u8]) -> Vec<u8> {
    let (tensors, pairs) = (tensors.to_le_bytes(), pairs.to_le_bytes());
    [&b"GGUF\x03\0\0\0"[..], &tensors, &pairs, rest].concat()
}

fn text(s: &str) -> Vec<u8> {
    [&(s.len() as u64).to_le_bytes()[..], s.as_bytes()].concat()
}

fn pair(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [&text(key)[..], &kind.to_le_bytes(), value].concat()
}

fn tensor(name: &str, dims: u32, ne: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let ne: Vec<u8> = ne.iter().flat_map(|n| n.to_le_bytes()).collect();
    let (dims, kind) = (dims.to_le_bytes(), kind.to_le_bytes());
    [&text(name)[..], &dims, &ne, &kind, &offset.to_le_bytes()].concat()
}

#[test]
fn hostile_headers_are_refused_with_a_reason() {
    let huge = u64::MAX.to_le_bytes();
    let array =
        |kind: u32, len: u64| [kind.to_le_bytes().to_vec(), len.to_le_bytes().to_vec()].concat();
    let align = |n: u32| pair("general.alignment", 4, &n.to_le_bytes());
    let twice = [pair("a", 4, &[0; 4]), pair("a", 4, &[0; 4])].concat();
    let two = |a: Vec<u8>, b: Vec<u8>| [a, b].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("not gguf", b"GGML\x03\0\0\0".to_vec()),
        ("version 0", b"GGUF\0\0\0\0".to_vec()),
        ("version 4", b"GGUF\x04\0\0\0".to_vec()),
        ("2^63 pairs", header(0, 1 << 63, &[])),
        ("2^40 tensors", header(1 << 40, 0, &[])),
        ("key of 2^64", header(0, 1, &huge)),
        ("empty key", header(0, 1, &pair("", 4, &[0; 4]))),
        ("key no UTF-8", header(0, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 0xff, 4, 0, 0, 0, 0, 0, 0, 0])),
        ("value type 13", header(0, 1, &pair("a", 13, &[0; 8]))),
        ("text of 2^64", header(0, 1, &pair("a", 8, &huge))),
        ("array of arrays", header(0, 1, &pair("a", 9, &array(9, 1)))),
        ("array of 2^62", header(0, 1, &pair("a", 9, &array(10, 1 << 62)))),
        ("texts of 2^62", header(0, 1, &pair("a", 9, &array(8, 1 << 62)))),
        ("alignment 0", header(0, 1, &align(0))),
        ("alignment 33", header(0, 1, &align(33))),
        ("key twice", header(0, 2, &twice)),
        ("five dimensions", header(1, 0, &tensor("t", 5, &[1; 5], 0, 0))),
        ("dimension -1", header(1, 0, &tensor("t", 1, &[u64::MAX], 0, 0))),
        ("product too large", header(1, 0, &tensor("t", 2, &[1 << 40, 1 << 40], 0, 0))),
        ("no whole block", header(1, 0, &tensor("t", 1, &[100], 12, 0))),
        ("not aligned", header(1, 0, &tensor("t", 1, &[32], 0, 7))),
        ("name twice", header(2, 0, &two(tensor("t", 1, &[8], 0, 0), tensor("t", 1, &[8], 0, 32)))),
        ("overlap", header(2, 0, &two(tensor("t", 1, &[64], 0, 0), tensor("u", 1, &[8], 0, 32)))),
        ("end of the offsets", header(1, 0, &tensor("t", 1, &[64], 0, u64::MAX - 31))),
    ];
    for (what, bytes) in cases {
        let error = Gguf::read(Cursor::new(bytes)).expect_err(what).to_string();
        assert!(error.len() > 10 && !error.contains('\u{1b}'), "{what}: {error}");
        println!("{what}: {error}");
    }
}

/// A cache of no bytes would be a guess.
#[test]
fn a_header_without_heads_is_refused() {
    let header = |heads: Option<&[u64]>| {
        let mut w = Writer { version: 3, ..Writer::default() };
        w.text("general.architecture", "llama")
            .int("llama.block_count", 3)
            .int("llama.embedding_length", 256)
            .int("llama.feed_forward_length", 512);
        if let Some(heads) = heads {
            w.int("llama.attention.head_count", 4).array("llama.attention.head_count_kv", heads);
        }
        shape_of_gguf(&Gguf::read(Cursor::new(w.bytes().0)).unwrap())
    };
    assert_eq!(header(Some(&[2, 2, 2])).unwrap().layers.len(), 3);
    let said = header(None).unwrap_err().to_string();
    assert!(said.contains("number of heads"), "{said}");
    let said = header(Some(&[2, 2])).unwrap_err().to_string();
    assert!(said.contains("llama.attention.head_count_kv of layers 2 to 2"), "{said}");
}

#[test]
fn unknown_types_are_sized_by_their_offsets() {
    let mut w = small(3, false);
    w.strange_tensor("blk.1.attn_k.weight", 144, &[256, 256]);
    w.strange_tensor("blk.1.attn_v.weight", 999, &[256, 256]);
    let folder = tempfile::tempdir().unwrap();
    let path = fit_gen::saved(folder.path(), "strange", &w);
    let model = Model::open(path.to_str().unwrap()).unwrap();
    assert!(model.exact_weights);
    assert_eq!(model.weights.by_type["type 144"], 256 * 256 * 5 / 8);
    assert_eq!(model.weights.by_type["type 999"], 256 * 256 * 5 / 8);
}

/// Counts what is read.
struct Counting<R>(R, std::rc::Rc<std::cell::Cell<u64>>);

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read(buffer)?;
        self.1.set(self.1.get() + n as u64);
        Ok(n)
    }
}

impl<R: Seek> Seek for Counting<R> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn only_the_header_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = fit_gen::saved(folder.path(), "deepseek", &fit_gen::oracle_model("deepseek-v3"));
    let file = std::fs::File::open(&path).unwrap();
    assert!(file.metadata().unwrap().len() > 300 << 30);
    let read = std::rc::Rc::default();
    Gguf::read(Counting(file, std::rc::Rc::clone(&read))).unwrap();
    assert!(read.get() < 512 << 10, "{} bytes", read.get());
}

#[test]
fn a_set_of_400_gb_and_its_missing_parts() {
    let folder = tempfile::tempdir().unwrap();
    let part = |n: u64| folder.path().join(format!("big-{n:05}-of-00009.gguf"));
    for n in 1..=9 {
        let mut w =
            if n == 1 { small(3, false) } else { Writer { version: 3, ..Writer::default() } };
        w.int("split.no", n - 1).int("split.count", 9);
        for i in 0..60 {
            w.tensor(&format!("blk.{}.ffn_up_exps.weight", i + n * 60), "Q8_0", &[7168, 2048, 48]);
        }
        w.save(&part(n));
    }
    let begin = std::time::Instant::now();
    let model = Model::open(part(4).to_str().unwrap()).unwrap();
    let gib = model.weights.file_bytes() >> 30;
    println!("{gib} GiB in {} parts answered in {:?}", model.files, begin.elapsed());
    assert_eq!(model.files, 9);
    assert!(gib > 370);
    std::fs::remove_file(part(3)).unwrap();
    std::fs::remove_file(part(1)).unwrap();
    let error = Model::open(part(2).to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("7 of 9") && error.contains("big-00001-of-00009.gguf"), "{error}");
}

#[test]
fn safetensors_survive_every_byte() {
    let json =
        br#"{"__metadata__":{"a":"b"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}"#;
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    for len in 0..bytes.len() {
        assert!(safetensors::read(Cursor::new(bytes[..len].to_vec())).is_err());
    }
    for at in 0..bytes.len() {
        for value in [0, 1, b'"', b'{', b'9', 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _either = safetensors::read(Cursor::new(damaged));
        }
    }
    assert_eq!(safetensors::read(Cursor::new(bytes)).unwrap()[0].bytes, 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn noise_is_survived(noise in proptest::collection::vec(any::<u8>(), 0..600), version in 1u32..4) {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(noise);
        let _either = all_the_way(bytes);
    }

    #[test]
    fn any_figures_are_survived(
        values in proptest::collection::vec(any::<u64>(), 22),
        arch in "(llama|gemma3|deepseek2|qwen35|jamba|rwkv7|kimi-linear|falcon-h1|nemotron_h|bert)",
        layers in 0u64..200,
    ) {
        let mut w = Writer::new(&arch);
        let names = [
            "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
            "attention.key_length", "attention.value_length", "attention.sliding_window", "expert_count",
            "expert_used_count", "expert_feed_forward_length", "attention.kv_lora_rank",
            "attention.key_length_mla", "attention.value_length_mla", "rope.dimension_count",
            "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.group_count", "kda.head_dim",
            "wkv.head_size", "context_length", "nextn_predict_layers",
        ];
        w.long(&format!("{arch}.block_count"), layers);
        for (name, value) in names.iter().zip(values) {
            w.long(&format!("{arch}.{name}"), value >> (value % 64));
        }
        let _either = all_the_way(w.bytes().0);
    }
}
