//! Writes headers of models that exist nowhere: sparse files, as large as the real ones.
#![allow(dead_code)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use vramlens::model::ggml::GgmlType;

mod models;
#[allow(unused_imports)]
pub use models::*;

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
