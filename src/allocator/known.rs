//! What the last walk met, read again at once: the nodes of the sets lie scattered over the heap, and
//! to follow them level by level costs more than to copy the heap between them.

use crate::allocator::memory::{Fault, Window};

/// Bytes that are kept of each place: a node has 40, a block 104 or 112 that matter.
const WIDTH: usize = 112;

/// Places of the last walk, sorted.
#[derive(Debug, Clone, Default)]
pub struct Places(Vec<u64>);

impl Places {
    /// These, in any order.
    pub fn of(mut places: Vec<u64>) -> Self {
        places.sort_unstable();
        places.dedup();
        Self(places)
    }
}

/// Memory in which the places that are known were copied beforehand. What is stale in it is found
/// by what the blocks add up to, as with any copy.
pub struct Ahead<'a> {
    window: &'a Window<'a>,
    at: &'a [u64],
    bytes: Vec<u8>,
}

impl<'a> Ahead<'a> {
    /// Copies what is at the places. Where one is gone nothing is known.
    ///
    /// # Errors
    /// Only those that end the reading.
    pub fn read(window: &'a Window<'a>, places: &'a Places) -> Result<Self, Fault> {
        match window.scattered(&places.0, WIDTH) {
            Ok(bytes) => Ok(Self { window, at: &places.0, bytes }),
            Err(fault) if fault.is_final() => Err(fault),
            Err(_) => Ok(Self { window, at: &[], bytes: Vec::new() }),
        }
    }

    /// `len` bytes from each address, in the order of the addresses.
    ///
    /// # Errors
    /// As those of the memory where an address is not known.
    pub fn scattered(&self, addresses: &[u64], len: usize) -> Result<Vec<u8>, Fault> {
        if len > WIDTH || self.at.is_empty() {
            return self.window.scattered(addresses, len);
        }
        let mut out = vec![0; addresses.len() * len];
        let (mut missing, mut holes) = (Vec::new(), Vec::new());
        for (hole, &address) in out.chunks_exact_mut(len).zip(addresses) {
            let index = self.at.binary_search(&address).ok();
            let known = index.and_then(|n| self.bytes.get(n * WIDTH..n * WIDTH + len));
            if let Some(known) = known {
                hole.copy_from_slice(known);
            } else {
                missing.push(address);
                holes.push(hole);
            }
        }
        let read = self.window.scattered(&missing, len)?;
        for (hole, read) in holes.into_iter().zip(read.chunks_exact(len)) {
            hole.copy_from_slice(read);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::memory::{Limits, ProcessMemory};
    use crate::allocator::view::View;
    use crate::ids::Pid;

    #[test]
    fn what_is_known_and_what_is_not_come_in_the_order_asked() {
        let memory = ProcessMemory::new(Pid(std::process::id()));
        let window = Window::new(&memory, Limits::PATIENT, &[]);
        let numbers: Vec<u64> = (0..4000).collect();
        let at = |n: u64| numbers.as_ptr() as u64 + n * 8;
        let places = Places::of((0..2000).rev().map(at).chain([at(7)]).collect());
        let ahead = Ahead::read(&window, &places).unwrap();
        let wanted: Vec<u64> = (0..3000).map(|n| n * 7919 % 3000).chain([3001, 0]).collect();
        let addresses: Vec<u64> = wanted.iter().copied().map(at).collect();
        for len in [8, 40, 112, 120] {
            let bytes = ahead.scattered(&addresses, len).unwrap();
            let got = (0..wanted.len()).map(|n| View(&bytes).word(n * len).unwrap());
            assert!(got.eq(wanted.iter().copied()));
        }
        // Places that are gone are none.
        let gone = Places::of(vec![at(0), 0x2000]);
        let ahead = Ahead::read(&window, &gone).unwrap();
        assert_eq!(ahead.scattered(&[at(5)], 8), Ok(5_u64.to_le_bytes().to_vec()));
        assert_eq!(ahead.scattered(&[0x2000], 8), Err(Fault::Unmapped(0x2000)));
    }
}
