//! Tables by identity. They are made anew with every tick, and the standard library's hash, which
//! withstands keys that somebody chose to collide, was a ninth of the work of a view. These keys are
//! numbers that the kernel gave and names that the driver gave: nobody chooses enough of them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set.
pub type Set<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// Multiplies, and folds the product: what differs in any bit differs in all of them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Quick(u64);

/// 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        let wide = u128::from(self.0.rotate_left(23) ^ n ^ ODD) * u128::from(ODD);
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{GpuUuid, Pid};
    use std::hash::Hash;

    /// How many of `keys` share the lowest bits, by which a table of 1024 places them, at the most.
    fn crowd<K: Hash>(keys: impl Iterator<Item = K>) -> usize {
        let mut places = [0; 1024];
        for key in keys {
            let mut hash = Quick::default();
            key.hash(&mut hash);
            places[hash.finish() as usize % 1024] += 1;
        }
        places.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn numbers_in_a_row_and_names_that_differ_at_their_end_are_spread() {
        // Of 1024 that are thrown at random about six share a place.
        assert!(crowd((0..1024).map(Pid)) < 12);
        assert!(crowd((0..1024).map(|n| Pid(n << 10))) < 12);
        let uuid = |n: u32| GpuUuid::new(&format!("GPU-5a8f0000-0000-0000-0000-{n:012}"));
        assert!(crowd((0..1024).map(uuid)) < 12);
        assert!(crowd((0..1024).map(|n| (uuid(n / 64), Pid(n % 64)))) < 12);
    }
}
