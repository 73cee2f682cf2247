//! Many small pieces at once.

use super::{Fault, MAX_PIECES, Piece, USER_SPACE, Window};

/// Pieces closer together than this are copied as one: a piece of its own costs the kernel as much
/// as copying some kilobytes, and no page lies wholly in such a gap.
const JOINED_GAP: u64 = 2048;
/// Where joined pieces would cost too much of what was granted.
const POOR_GAP: u64 = 64;
/// What is copied before it is sorted: it stays in the processor's cache.
const CHUNK_BYTES: usize = 256 << 10;

impl Window<'_> {
    /// `len` bytes from each address, in the order of the addresses. Neighbours are read together.
    pub fn scattered(&self, addresses: &[u64], len: usize) -> Result<Vec<u8>, Fault> {
        let wide = |at: &&u64| !USER_SPACE.contains(&at.saturating_add(len as u64));
        if let Some(&address) = addresses.iter().find(wide) {
            return Err(Fault::Unmapped(address));
        }
        let mut order: Vec<(u64, usize)> = addresses.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut runs = join(&order, len, JOINED_GAP);
        let bytes: u64 = runs.iter().map(|run| run.piece.len as u64).sum();
        if bytes > self.bytes.get() / 2 {
            runs = join(&order, len, POOR_GAP);
        }
        let (mut rest, mut left) = (runs.as_slice(), order.as_slice());
        if (addresses.len() as u64).saturating_mul(len as u64) > self.bytes.get() {
            return Err(Fault::Spent);
        }
        let mut out = vec![0; addresses.len() * len];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(group(rest));
            rest = later;
            let pieces: Vec<Piece> = now.iter().map(|run| run.piece).collect();
            let bytes = self.pieces(&pieces)?;
            let mut start = 0;
            for run in now {
                let (inside, after) = left.split_at_checked(run.count).ok_or(Fault::Changed)?;
                left = after;
                for &(address, index) in inside {
                    let from = start + (address - run.piece.at) as usize;
                    let source = bytes.get(from..from + len).ok_or(Fault::Changed)?;
                    let target = out.get_mut(index * len..(index + 1) * len);
                    target.ok_or(Fault::Changed)?.copy_from_slice(source);
                }
                start += run.piece.len;
            }
        }
        Ok(out)
    }
}

/// Neighbours, and how many of the addresses they are.
struct Run {
    piece: Piece,
    count: usize,
}

fn join(order: &[(u64, usize)], len: usize, gap: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &(at, _) in order {
        let end = at + len as u64;
        match runs.last_mut() {
            Some(Run { piece, count })
                if at <= piece.at + piece.len as u64 + gap
                    && end - piece.at <= CHUNK_BYTES.max(len) as u64 =>
            {
                piece.len = piece.len.max((end - piece.at) as usize);
                *count += 1;
            }
            _ => runs.push(Run { piece: Piece { at, len }, count: 1 }),
        }
    }
    runs
}

/// How many runs are read by the next call: one at the least.
fn group(runs: &[Run]) -> usize {
    let mut bytes = 0;
    let fits = |run: &&Run| {
        bytes += run.piece.len;
        bytes <= CHUNK_BYTES
    };
    runs.iter().take(MAX_PIECES).take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, ProcessMemory};
    use super::*;
    use crate::allocator::view::View;
    use crate::ids::Pid;

    #[test]
    fn scattered_pieces_come_back_in_the_order_asked() {
        let memory = ProcessMemory::new(Pid(std::process::id()));
        let window = Window::new(&memory, Limits::PATIENT, &[]);
        let numbers: Vec<u64> = (0..5000).collect();
        let base = numbers.as_ptr() as u64;
        let wanted: Vec<u64> = (0..2000).map(|n| (n * 7919) % 5000).chain([4999, 0, 0]).collect();
        let addresses: Vec<u64> = wanted.iter().map(|n| base + n * 8).collect();
        let bytes = window.scattered(&addresses, 8).unwrap();
        let got: Vec<u64> = (0..wanted.len()).map(|n| View(&bytes).word(n * 8).unwrap()).collect();
        assert_eq!(got, wanted);
    }

    #[test]
    fn pieces_far_apart_and_long_rows_of_them_are_read() {
        let memory = ProcessMemory::new(Pid(std::process::id()));
        let numbers: Vec<u64> = (0..200_000).collect();
        let base = numbers.as_ptr() as u64;
        for (step, granted) in [(1, 96 << 20), (20, 96 << 20), (20, 2 << 20), (600, 96 << 20)] {
            let time = std::time::Duration::from_mins(1);
            let limits = Limits { bytes: granted, time, ..Limits::default() };
            let window = Window::new(&memory, limits, &[]);
            let wanted: Vec<u64> =
                (0..200_000 / step as u64).rev().map(|n| n * step as u64).collect();
            let addresses: Vec<u64> = wanted.iter().map(|n| base + n * 8).collect();
            let bytes = window.scattered(&addresses, 8).unwrap();
            let got = (0..wanted.len()).map(|n| View(&bytes).word(n * 8).unwrap());
            assert!(got.eq(wanted.iter().copied()), "{step}");
        }
    }
}
