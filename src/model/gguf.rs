//! The header of a GGUF file: versions 1 to 3, both byte orders. Tensor data is never read.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Seek};

use super::error::{ModelError, excerpt};
use super::ggml::GgmlType;
use super::read::Bounded;

/// Most metadata pairs that are taken.
const MAX_PAIRS: u64 = 65_536;
/// Most tensors that are taken.
const MAX_TENSORS: u64 = 1 << 20;
/// Longest array that is kept as numbers; longer ones (vocabularies) only have a length.
const KEPT_ITEMS: u64 = 4096;
/// Longest key and longest tensor name.
const MAX_NAME: u64 = 65_535;

/// A metadata value, as far as sizing needs it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any whole number.
    Int(i128),
    /// Any fraction.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// Text; `None` where it was too long to keep.
    Text(Option<String>),
    /// An array: its length, and its numbers where they are few.
    Array {
        /// How many items.
        len: u64,
        /// Numbers and truth values of a short array; empty for texts and long ones.
        items: Vec<i128>,
    },
}

/// One tensor as the header describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensor {
    /// Its name. Hostile text.
    pub name: String,
    /// Its shape; the first entry is the length of a row.
    pub shape: Vec<u64>,
    /// Number of its type.
    pub type_id: u32,
    /// Its type, where it is known here.
    pub known: Option<GgmlType>,
    /// Where its data begins, from the start of the data.
    pub offset: u64,
    /// Bytes of its data; `None` where the type is unknown and the file too short to tell.
    pub bytes: Option<u64>,
}

impl GgufTensor {
    /// Number of values.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, n| product.saturating_mul(*n))
    }
}

/// What the header of one file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Gguf {
    /// Format version, 1 to 3.
    pub version: u32,
    /// Whether numbers are stored big-endian.
    pub big_endian: bool,
    /// Metadata.
    pub values: BTreeMap<String, Value>,
    /// Tensors in the file's order.
    pub tensors: Vec<GgufTensor>,
    /// Where data begins, in bytes from the start.
    pub data_start: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
}

impl Gguf {
    /// Reads a header. Nothing is allocated on the word of a length alone.
    pub fn read<R: Read + Seek>(file: R) -> Result<Self, ModelError> {
        let mut from = Bounded::new(file)?;
        let magic: [u8; 4] = from.array("the magic number")?;
        if &magic != b"GGUF" {
            return Err(ModelError::UnknownFormat { what: "this is no GGUF file".to_owned() });
        }
        let mut version = from.u32("the version")?;
        if version != 0 && version.trailing_zeros() >= 16 {
            from.big_endian = true;
            version = version.swap_bytes();
        }
        if !(1..=3).contains(&version) {
            return Err(ModelError::Version(version));
        }
        let mut header = Header { from, short: version == 1 };
        let tensors = header.size("the number of tensors")?;
        let pairs = header.size("the number of metadata pairs")?;
        let values = header.pairs(pairs)?;
        let tensors = header.tensors(tensors)?;
        let alignment = alignment(&values)?;
        let from = header.from;
        let data_start = from.at().next_multiple_of(alignment);
        let mut gguf = Self {
            version,
            big_endian: from.big_endian,
            values,
            tensors,
            data_start,
            file_bytes: from.len(),
        };
        gguf.check_offsets(alignment)?;
        Ok(gguf)
    }

    /// Sizes tensors of unknown types by where the next one begins, and refuses overlaps.
    fn check_offsets(&mut self, alignment: u64) -> Result<(), ModelError> {
        let data = self.file_bytes.checked_sub(self.data_start);
        let mut order: Vec<usize> = (0..self.tensors.len()).collect();
        order.sort_by_key(|i| self.tensors.get(*i).map_or(0, |t| t.offset));
        let offsets: Vec<Option<u64>> =
            order.iter().skip(1).map(|i| self.tensors.get(*i).map(|t| t.offset)).collect();
        for (place, index) in order.iter().enumerate() {
            let next = offsets.get(place).copied().flatten();
            let Some(tensor) = self.tensors.get_mut(*index) else { continue };
            let name = || excerpt(&tensor.name);
            if !tensor.offset.is_multiple_of(alignment) {
                return Err(ModelError::malformed(format!("tensor {} is not aligned", name())));
            }
            match tensor.bytes {
                None => {
                    let end = next.or(data);
                    tensor.bytes = end.and_then(|end| end.checked_sub(tensor.offset));
                }
                Some(bytes) => {
                    let end = tensor.offset.checked_add(bytes);
                    let overlaps = end.is_none_or(|end| next.is_some_and(|next| next < end));
                    if overlaps {
                        let what = format!("tensor {} overlaps the next one", name());
                        return Err(ModelError::malformed(what));
                    }
                }
            }
        }
        Ok(())
    }

    /// A whole number, of whichever width it was stored in. Of an array: its first item.
    pub fn int(&self, key: &str) -> Option<u64> {
        match self.values.get(key)? {
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Float(n) if *n >= 0.0 && n.fract() == 0.0 => Some(*n as u64),
            Value::Bool(b) => Some(u64::from(*b)),
            Value::Array { items, .. } => items.first().and_then(|n| u64::try_from(*n).ok()),
            _ => None,
        }
    }

    /// Numbers of an array; of a single number: that one.
    pub fn ints(&self, key: &str) -> Option<Vec<u64>> {
        let clamp = |n: &i128| u64::try_from((*n).max(0)).unwrap_or(u64::MAX);
        match self.values.get(key)? {
            Value::Array { items, .. } if !items.is_empty() => {
                Some(items.iter().map(clamp).collect())
            }
            Value::Int(n) => Some(vec![clamp(n)]),
            Value::Bool(b) => Some(vec![u64::from(*b)]),
            _ => None,
        }
    }

    /// Text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => text.as_deref(),
            _ => None,
        }
    }

    /// Length of an array.
    pub fn array_len(&self, key: &str) -> Option<u64> {
        match self.values.get(key)? {
            Value::Array { len, .. } => Some(*len),
            _ => None,
        }
    }
}

fn alignment(values: &BTreeMap<String, Value>) -> Result<u64, ModelError> {
    match values.get("general.alignment") {
        None => Ok(32),
        Some(Value::Int(n)) => u64::try_from(*n)
            .ok()
            .filter(|n| n.is_power_of_two() && *n <= 1 << 30)
            .ok_or_else(|| ModelError::malformed("the alignment is no power of two")),
        Some(_) => Err(ModelError::malformed("the alignment is no number")),
    }
}

struct Header<R> {
    from: Bounded<R>,
    /// Version 1 has 32-bit counts.
    short: bool,
}

impl<R: Read + Seek> Header<R> {
    fn size(&mut self, what: &'static str) -> Result<u64, ModelError> {
        if self.short { self.from.u32(what).map(u64::from) } else { self.from.u64(what) }
    }

    fn name(&mut self, what: &'static str) -> Result<String, ModelError> {
        let len = self.size(what)?;
        self.from.check_count(len, 1, MAX_NAME, what)?;
        let bytes = self.from.bytes(len, what)?;
        if bytes.is_empty() {
            return Err(ModelError::malformed(format!("{what} is empty")));
        }
        String::from_utf8(bytes)
            .map_err(|_bytes| ModelError::malformed(format!("{what} is no UTF-8")))
    }

    fn pairs(&mut self, count: u64) -> Result<BTreeMap<String, Value>, ModelError> {
        let count = self.from.check_count(count, 9, MAX_PAIRS, "the number of metadata pairs")?;
        let mut values = BTreeMap::new();
        for _ in 0..count {
            let key = self.name("a metadata key")?;
            let type_id = self.from.u32("the type of a metadata value")?;
            let value = self.value(type_id)?;
            if values.insert(key.clone(), value).is_some() {
                let what = format!("the key {} is there twice", excerpt(&key));
                return Err(ModelError::malformed(what));
            }
        }
        Ok(values)
    }

    fn value(&mut self, type_id: u32) -> Result<Value, ModelError> {
        const WHAT: &str = "a metadata value";
        match type_id {
            8 => {
                let len = self.size("the length of a text")?;
                self.from.text(len, "a text").map(Value::Text)
            }
            9 => self.items(),
            6 => {
                let bits = self.from.u32(WHAT)?;
                Ok(Value::Float(f64::from(f32::from_bits(bits))))
            }
            12 => self.from.u64(WHAT).map(|bits| Value::Float(f64::from_bits(bits))),
            7 => self.from.array::<1>(WHAT).map(|[b]| Value::Bool(b != 0)),
            _ => self.number(type_id).map(Value::Int),
        }
    }

    fn number(&mut self, type_id: u32) -> Result<i128, ModelError> {
        const WHAT: &str = "a number";
        let big = self.from.big_endian;
        let short = |bytes: [u8; 2]| {
            if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        Ok(match type_id {
            0 | 7 => i128::from(self.from.array::<1>(WHAT)?[0]),
            1 => i128::from(self.from.array::<1>(WHAT)?[0].cast_signed()),
            2 => i128::from(short(self.from.array(WHAT)?)),
            3 => i128::from(short(self.from.array(WHAT)?).cast_signed()),
            4 => i128::from(self.from.u32(WHAT)?),
            5 => i128::from(self.from.u32(WHAT)?.cast_signed()),
            6 => f32::from_bits(self.from.u32(WHAT)?) as i128,
            10 => i128::from(self.from.u64(WHAT)?),
            11 => i128::from(self.from.u64(WHAT)?.cast_signed()),
            12 => f64::from_bits(self.from.u64(WHAT)?) as i128,
            other => {
                return Err(ModelError::malformed(format!("metadata type {other} does not exist")));
            }
        })
    }

    fn items(&mut self) -> Result<Value, ModelError> {
        const WHAT: &str = "the length of an array";
        let type_id = self.from.u32("the type of an array")?;
        let text = if self.short { 4 } else { 8 };
        let width = match type_id {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 => text,
            10..=12 => 8,
            _ => return Err(ModelError::malformed(format!("an array of type {type_id}"))),
        };
        let len = self.size(WHAT)?;
        self.from.check_count(len, width, u64::MAX, WHAT)?;
        let mut items = Vec::new();
        if type_id == 8 {
            for _ in 0..len {
                let bytes = self.size("the length of a text")?;
                self.from.skip(bytes, "a text")?;
            }
        } else if len <= KEPT_ITEMS {
            for _ in 0..len {
                items.push(self.number(type_id)?);
            }
        } else {
            self.from.skip(len.saturating_mul(width), "an array")?;
        }
        Ok(Value::Array { len, items })
    }

    fn tensors(&mut self, count: u64) -> Result<Vec<GgufTensor>, ModelError> {
        let least = if self.short { 21 } else { 25 };
        let count = self.from.check_count(count, least, MAX_TENSORS, "the number of tensors")?;
        let mut names = HashSet::new();
        let mut tensors = Vec::new();
        for _ in 0..count {
            let tensor = self.tensor()?;
            if !names.insert(tensor.name.clone()) {
                let what = format!("the tensor {} is there twice", excerpt(&tensor.name));
                return Err(ModelError::malformed(what));
            }
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    fn tensor(&mut self) -> Result<GgufTensor, ModelError> {
        let name = self.name("a tensor's name")?;
        let bad = |why: &str| ModelError::malformed(format!("tensor {} {why}", excerpt(&name)));
        let dims = self.from.u32("the number of dimensions")?;
        if dims > 4 {
            return Err(bad("has more than four dimensions"));
        }
        let mut shape = Vec::new();
        for _ in 0..dims {
            shape.push(self.size("a dimension")?);
        }
        let type_id = self.from.u32("a tensor's type")?;
        let offset = self.from.u64("a tensor's offset")?;
        let product = shape.iter().try_fold(1_u64, |product, n| product.checked_mul(*n));
        if product.is_none_or(|n| n > i64::MAX as u64) || shape.iter().any(|n| *n > i64::MAX as u64)
        {
            return Err(bad("has an impossible shape"));
        }
        let known = GgmlType::of(type_id);
        let rows = shape.iter().skip(1).fold(1_u64, |product, n| product.saturating_mul(*n));
        let bytes = match known {
            None => None,
            Some(known) => {
                let row = shape.first().copied().unwrap_or(1);
                let bytes = known.row_bytes(row).and_then(|row| row.checked_mul(rows));
                Some(bytes.ok_or_else(|| bad("has rows that are no whole number of blocks"))?)
            }
        };
        Ok(GgufTensor { name, shape, type_id, known, offset, bytes })
    }
}
