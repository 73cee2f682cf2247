//! The blocks of one device, taken together: what they add up to.

use std::collections::{BTreeMap, HashMap};

use crate::allocator::stats::{Counter, Statistics};

/// A block that holds memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its address in the process.
    pub at: u64,
    /// Its size in bytes.
    pub size: u64,
    /// What was asked for, in bytes.
    pub requested: u64,
    /// Free, in use, or awaited by a stream.
    pub state: BlockState,
    /// Whether a private pool owns it.
    pub private: bool,
    /// Whether it is in a pool of small blocks.
    pub small: bool,
    /// The neighbour below in the same segment, 0 for none.
    pub previous: u64,
    /// The neighbour above, 0 for none.
    pub next: u64,
}

/// What a block is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// In the cache.
    Free,
    /// In use.
    Used,
    /// Freed, and a stream may still work on it.
    Awaited,
}

/// A free block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeBlock {
    /// Its size in bytes.
    pub size: u64,
    /// Whether a private pool owns it: nothing else can use it.
    pub private: bool,
    /// Whether it is in a pool of small blocks, which serves requests up to 1 MiB.
    pub small: bool,
    /// Whether it is a whole segment.
    pub whole: bool,
    /// Whether its segment is expandable.
    pub expandable: bool,
}

/// All blocks at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// The free ones.
    pub free: Vec<FreeBlock>,
    /// Sizes of those in use, or awaited by a stream, together.
    pub active_bytes: u64,
    /// How many those are.
    pub active: u64,
    /// Sizes of those in use.
    pub allocated_bytes: u64,
    /// What was asked for of those in use or awaited by a stream, before rounding.
    pub requested_bytes: u64,
    /// Pieces of memory that are contiguous and mapped; what `memory_snapshot()` calls segments.
    pub segments: u64,
    /// Private pools (CUDA graphs, `MemPool`).
    pub private_pools: u64,
    /// Bytes of all blocks in them, free or not.
    pub private_bytes: u64,
    /// Pieces of address space without memory: only expandable segments have them.
    pub unmapped: u64,
}

impl Picture {
    /// Of all blocks that hold memory.
    pub fn of(blocks: &[Block], private_pools: u64, unmapped: u64) -> Self {
        let mut picture = Self { private_pools, unmapped, ..Self::default() };
        // What is no block with memory is address space without. Where there is none of it, no
        // neighbour has to be looked up.
        let listed = if unmapped > 0 { blocks } else { &[] };
        let index: HashMap<u64, usize> =
            listed.iter().enumerate().map(|(n, block)| (block.at, n)).collect();
        let expandable = in_expandable(listed, &index).into_iter().chain(std::iter::repeat(false));
        for (block, expandable) in blocks.iter().zip(expandable) {
            let first = block.previous == 0 || unmapped > 0 && !index.contains_key(&block.previous);
            picture.segments += u64::from(first);
            picture.private_bytes += if block.private { block.size } else { 0 };
            if block.state == BlockState::Free {
                let &Block { size, private, small, .. } = block;
                let whole = block.previous == 0 && block.next == 0;
                picture.free.push(FreeBlock { size, private, small, whole, expandable });
                continue;
            }
            picture.active += 1;
            picture.active_bytes += block.size;
            picture.requested_bytes = picture.requested_bytes.saturating_add(block.requested);
            if block.state == BlockState::Used {
                picture.allocated_bytes += block.size;
            }
        }
        picture
    }

    /// Together.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(|block| block.size).sum()
    }

    /// Whether the blocks add up to the counters. It proves that nothing moved during the walk,
    /// and that each field of a block is what it is taken for.
    pub fn adds_up(&self, counters: &Statistics) -> bool {
        self.complaint(counters).is_none()
    }

    /// What does not add up, if anything.
    pub fn complaint(&self, counters: &Statistics) -> Option<String> {
        let sums = [
            (self.active_bytes + self.free_bytes(), Counter::ReservedBytes),
            (self.active_bytes, Counter::ActiveBytes),
            (self.active, Counter::Active),
            (self.allocated_bytes, Counter::AllocatedBytes),
        ];
        let wrong = sums.into_iter().find(|&(sum, counter)| !equals(sum, counters, counter));
        wrong.map(|(sum, counter)| {
            format!("the blocks say {sum}, {counter:?} says {}", counters.now(counter))
        })
    }

    /// Whether `requested_bytes` of the counters is what the blocks in use or awaited say.
    pub fn confirms_requested(&self, counters: &Statistics) -> bool {
        equals(self.requested_bytes, counters, Counter::RequestedBytes)
    }

    /// Whether `inactive_split_bytes` of the counters is the free blocks that are part of a
    /// segment. Of expandable segments it counts nothing.
    pub fn confirms_split(&self, counters: &Statistics) -> bool {
        let split = self.free.iter().filter(|block| !block.whole && !block.expandable);
        equals(split.map(|block| block.size).sum(), counters, Counter::InactiveSplitBytes)
    }
}

fn equals(number: u64, counters: &Statistics, counter: Counter) -> bool {
    i64::try_from(number) == Ok(counters.now(counter))
}

/// Which blocks lie in expandable segments: those always end in address space without memory, and
/// where they have holes each part touches one.
fn in_expandable(blocks: &[Block], index: &HashMap<u64, usize>) -> Vec<bool> {
    let mut marked = vec![false; blocks.len()];
    let is_hole = |at: u64| at != 0 && !index.contains_key(&at);
    for (start, block) in blocks.iter().enumerate() {
        if !is_hole(block.previous) && !is_hole(block.next) {
            continue;
        }
        for step in [|block: &Block| block.previous, |block: &Block| block.next] {
            let mut here = Some(start);
            while let Some(n) = here {
                let known = marked.get_mut(n).map(|mark| std::mem::replace(mark, true));
                if known == Some(true) && n != start {
                    break;
                }
                let neighbour = blocks.get(n).and_then(|block| index.get(&step(block)));
                here = neighbour.copied().filter(|&next| next != start);
            }
        }
    }
    marked
}

/// The free blocks by size: (size, how many), the smallest first.
pub fn by_size(blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut sizes = BTreeMap::new();
    for size in blocks {
        *sizes.entry(size).or_insert(0) += 1;
    }
    sizes.into_iter().collect()
}
