//! The header of a safetensors file.

use std::io::{Read, Seek};

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::{ModelError, excerpt};
use super::read::Bounded;

/// Longest header that the format allows, in bytes.
const MAX_HEADER: u64 = 100_000_000;

/// Bits a value, by the name of the type.
pub const DTYPES: [(&str, u64); 22] = [
    ("BOOL", 8),
    ("U8", 8),
    ("I8", 8),
    ("F8_E5M2", 8),
    ("F8_E4M3", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("I16", 16),
    ("U16", 16),
    ("F16", 16),
    ("BF16", 16),
    ("I32", 32),
    ("U32", 32),
    ("F32", 32),
    ("I64", 64),
    ("U64", 64),
    ("F64", 64),
    ("C64", 64),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("F4", 4),
];

/// One tensor of a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeTensor {
    /// Its name. Hostile text.
    pub name: String,
    /// Name of its type, as in the file.
    pub dtype: String,
    /// Its shape, the last entry is the length of a row.
    pub shape: Vec<u64>,
    /// Bytes of its data.
    pub bytes: u64,
    /// Where its data begins, from the start of the data.
    pub offset: u64,
}

#[derive(serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// Tensors in the file's order of data.
pub fn read<R: Read + Seek>(file: R) -> Result<Vec<SafeTensor>, ModelError> {
    let mut from = Bounded::new(file)?;
    let len = from.u64("the length of the header")?;
    from.check_count(len, 1, MAX_HEADER, "the length of the header")?;
    let json = from.bytes(len, "the header")?;
    if json.first() != Some(&b'{') {
        return Err(ModelError::UnknownFormat { what: "this is no safetensors file".to_owned() });
    }
    let mut tensors = parse(&json)?;
    tensors.sort_by_key(|t| (t.offset, t.bytes));
    let mut at = 0;
    for tensor in &tensors {
        if tensor.offset != at {
            let what = format!("the data of {} does not follow on", excerpt(&tensor.name));
            return Err(ModelError::malformed(what));
        }
        at += tensor.bytes;
    }
    Ok(tensors)
}

fn parse(json: &[u8]) -> Result<Vec<SafeTensor>, ModelError> {
    let mut de = serde_json::Deserializer::from_slice(json);
    let entries = de
        .deserialize_map(Entries)
        .and_then(|entries| de.end().map(|()| entries))
        .map_err(|e| ModelError::malformed(format!("the header is no such JSON ({e})")))?;
    let mut names = std::collections::HashSet::new();
    let mut tensors = Vec::new();
    for (name, entry) in entries {
        let bad = |why: &str| ModelError::malformed(format!("tensor {} {why}", excerpt(&name)));
        if !names.insert(name.clone()) {
            return Err(bad("is there twice"));
        }
        let (begin, end) = entry.data_offsets;
        let bytes = end.checked_sub(begin).ok_or_else(|| bad("ends before it begins"))?;
        let elements = entry.shape.iter().try_fold(1_u64, |product, n| product.checked_mul(*n));
        let bits = DTYPES.iter().find(|row| row.0 == entry.dtype).map(|row| row.1);
        // A type that is not known here is sized by its offsets.
        if let Some(bits) = bits {
            let expected = elements.and_then(|n| n.checked_mul(bits));
            if expected != bytes.checked_mul(8) {
                return Err(bad("has another size than its shape says"));
            }
        } else if elements.is_none() {
            return Err(bad("has an impossible shape"));
        }
        let Entry { dtype, shape, .. } = entry;
        tensors.push(SafeTensor { name, dtype, shape, bytes, offset: begin });
    }
    Ok(tensors)
}

/// The entries of the header; a plain map would lose doubled names.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, Entry)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else {
                entries.push((name, map.next_value()?));
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn file(json: &str) -> Cursor<Vec<u8>> {
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(json.as_bytes());
        Cursor::new(bytes)
    }

    #[test]
    fn a_header_is_read_without_its_data() {
        let json = r#"{"__metadata__":{"format":"pt"},
            "b":{"dtype":"BF16","shape":[4,2],"data_offsets":[4,20]},
            "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  "#;
        let tensors = read(file(json)).unwrap();
        assert_eq!(tensors.len(), 2);
        assert_eq!((tensors[1].name.as_str(), tensors[1].bytes), ("b", 16));
    }

    #[test]
    fn lies_are_refused() {
        let one = |entry: &str| read(file(&format!(r#"{{"a":{entry}}}"#)));
        assert!(one(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,4]}"#).is_err());
        assert!(one(r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#).is_err(), "a hole");
        assert!(one(r#"{"dtype":"F32","shape":[1],"data_offsets":[8,4]}"#).is_err());
        let huge = r#"{"dtype":"F32","shape":[9999999999,9999999999],"data_offsets":[0,4]}"#;
        assert!(one(huge).is_err());
        let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
            "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
        assert!(read(file(twice)).is_err());
        assert!(read(Cursor::new(u64::MAX.to_le_bytes().to_vec())).is_err());
        assert!(read(file(&"[".repeat(10_000))).is_err());
    }
}
