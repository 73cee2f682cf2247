//! Objects in the memory of this process that another one reads while they change.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words that stay where they are for ever.
#[derive(Clone, Copy)]
pub struct Object(&'static [AtomicU64]);

impl Object {
    /// Zeros.
    pub fn new(bytes: usize) -> Self {
        Self(Box::leak((0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()))
    }

    /// A text with its zero.
    pub fn text(text: &str) -> Self {
        let object = Self::new(text.len() + 1);
        object.put_bytes(0, text.as_bytes());
        object
    }

    pub fn at(self) -> u64 {
        self.0.as_ptr() as u64
    }

    pub fn put(self, offset: usize, word: u64) {
        assert_eq!(offset % 8, 0);
        self.0[offset / 8].store(word, Ordering::Release);
    }

    pub fn put_bytes(self, offset: usize, bytes: &[u8]) {
        for (n, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.put(offset + n * 8, u64::from_le_bytes(word));
        }
    }
}

/// Nodes of a `std::set`, used again and again as an allocator would.
#[derive(Default)]
pub struct Nodes(Vec<Object>);

impl Nodes {
    /// Another node for later, somewhere among those that wait.
    pub fn prepare(&mut self, place: impl FnOnce(u64) -> u64) {
        self.0.push(Object::new(40));
        let (last, other) = (self.0.len() - 1, place(self.0.len() as u64) as usize);
        self.0.swap(last, other);
    }

    /// Writes a set of these values with its header at `offset` of `object`.
    pub fn write(&mut self, object: Object, offset: usize, values: &[u64]) {
        while self.0.len() < values.len() {
            self.0.push(Object::new(40));
        }
        let header = object.at() + offset as u64 + 8;
        let at = |n: usize| if n < values.len() { self.0[n].at() } else { 0 };
        for (n, value) in values.iter().enumerate() {
            let parent = if n == 0 { header } else { at((n - 1) / 2) };
            for (word, number) in
                [1, parent, at(2 * n + 1), at(2 * n + 2), *value].iter().enumerate()
            {
                self.0[n].put(word * 8, *number);
            }
        }
        let ends = if values.is_empty() { [0, header, header] } else { [at(0); 3] };
        // The comparator has no state: whatever was there.
        object.put(offset, 0x00c0_ffee_dead_beef);
        object.put(offset + 8, 0);
        for (n, word) in ends.iter().enumerate() {
            object.put(offset + 16 + n * 8, *word);
        }
        object.put(offset + 40, values.len() as u64);
    }
}

/// The entries of a `ska` table.
#[derive(Default)]
pub struct Table {
    entries: Option<(Object, usize)>,
}

impl Table {
    const LOOKUPS: usize = 7;

    /// Writes a table of these rows (words behind the distance) at `offset` of `object`.
    pub fn write(&mut self, object: Object, offset: usize, words: usize, rows: &[Vec<u64>]) {
        let entry = 8 + words * 8;
        let slots = (rows.len() * 2).next_power_of_two().max(8);
        let (entries, slots) = match self.entries {
            Some(old) if old.1 >= slots => old,
            _ => *self.entries.insert((Object::new((slots + Self::LOOKUPS) * entry), slots)),
        };
        for slot in 0..slots + Self::LOOKUPS {
            let row = (slot % 2 == 1).then(|| rows.get(slot / 2)).flatten();
            entries.put(slot * entry, if row.is_some() { slot as u64 % 7 } else { 0xff });
            for (n, word) in row.into_iter().flatten().enumerate() {
                entries.put(slot * entry + 8 + n * 8, *word);
            }
        }
        Self::header(object, offset, entries.at(), slots, rows.len());
    }

    /// Only the header, as of a table that was never used.
    pub fn empty(object: Object, offset: usize) {
        Self::header(object, offset, 0, 1, 0);
    }

    fn header(object: Object, offset: usize, entries: u64, slots: usize, count: usize) {
        let shift = 64 - u64::from(slots.trailing_zeros().max(1));
        let policy = 0x3f00_0000_u64 << 32 | (Self::LOOKUPS as u64) << 8 | shift;
        for (n, word) in [entries, slots as u64 - 1, policy, count as u64].iter().enumerate() {
            object.put(offset + n * 8, *word);
        }
    }
}
