//! The blocks of one device: which are free, which are in use, who owns them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::allocator::layout::{OBJECT_BYTES, Pools, SET_BYTES, TABLE_BYTES, is_table};
use crate::allocator::memory::{Fault, Window};
use crate::allocator::stats::{Counter, Statistics};
use crate::allocator::view::View;

/// Private pools of one device; a CUDA graph needs one.
const MANY_POOLS: u64 = 1 << 16;
/// No block is larger.
const BIG: u64 = 1 << 53;
/// A first look at a block.
const BLOCK_BYTES: usize = 160;

/// A pool of blocks.
#[derive(Debug, Clone, Copy)]
struct Pool {
    /// Its address: blocks name it.
    at: u64,
    /// Root and count of its first set.
    free: (u64, u64),
    /// Count of its last set.
    unmapped: u64,
    private: bool,
    small: bool,
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
    /// What was asked for of them, before rounding.
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
    /// Together.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(|block| block.size).sum()
    }

    /// Whether the blocks add up to the counters. It proves that nothing moved during the walk,
    /// and that each field of a block is what it is taken for.
    pub fn adds_up(&self, counters: &Statistics) -> bool {
        equals(self.active_bytes + self.free_bytes(), counters, Counter::ReservedBytes)
            && equals(self.active_bytes, counters, Counter::ActiveBytes)
            && equals(self.active, counters, Counter::Active)
            && equals(self.allocated_bytes, counters, Counter::AllocatedBytes)
    }

    /// Whether `requested_bytes` of the counters is what the blocks in use say.
    pub fn confirms_requested(&self, counters: &Statistics) -> bool {
        equals(self.requested_bytes, counters, Counter::RequestedBytes)
    }

    /// Whether `inactive_split_bytes` of the counters is the free blocks that are part of a
    /// segment; of expandable segments it counts nothing.
    pub fn confirms_split(&self, counters: &Statistics) -> bool {
        let split = self.free.iter().filter(|block| !block.whole).map(|block| block.size).sum();
        self.unmapped > 0 || equals(split, counters, Counter::InactiveSplitBytes)
    }
}

fn equals(number: u64, counters: &Statistics, counter: Counter) -> bool {
    i64::try_from(number) == Ok(counters.now(counter))
}

/// Walks all blocks of the object at `base`, of which `copy` was just read.
///
/// # Errors
/// [`Fault::Changed`] where the structures moved meanwhile, and what the limits or the system say.
pub fn walk(window: &Window<'_>, base: u64, copy: &[u8], pools: Pools) -> Result<Picture, Fault> {
    let view = View(copy);
    let mut all = own_pools(base, view, pools)?;
    let private = private_pools(window, view, pools)?;
    let mut picture = Picture { private_pools: private.len() as u64 / 2, ..Picture::default() };
    all.extend(private);

    let mut limit = u64::from(window.limits().blocks);
    let mut free: Vec<(u64, Pool)> = Vec::new();
    for pool in &all {
        let found = set(window, pool.free, &mut limit)?;
        free.extend(found.into_iter().map(|block| (block, *pool)));
        // Where there is one set only, it is the free blocks.
        picture.unmapped += if pools.sets >= 2 { pool.unmapped } else { 0 };
    }
    let active: Vec<u64> = table(window, view, pools.active, 16, limit)?
        .iter()
        .filter_map(|entry| View(entry).word(0))
        .collect();

    let known: HashMap<u64, Pool> = all.iter().map(|pool| (pool.at, *pool)).collect();
    let Some(first) = free.first().map(|row| row.0).or_else(|| active.first().copied()) else {
        return Ok(picture);
    };
    let at = pool_offset(window, first, &known)?;
    let addresses: Vec<u64> = free.iter().map(|row| row.0).chain(active.iter().copied()).collect();
    // In a chain, what is neither free nor active is address space without memory.
    let mapped: HashSet<u64> = addresses.iter().copied().collect();
    let width = at + 40;
    let bytes = window.scattered(&addresses, width)?;
    for (index, raw) in bytes.chunks_exact(width).enumerate() {
        let block = Block::parse(View(raw), at, pools.sets >= 2).ok_or(Fault::Changed)?;
        let pool = known.get(&block.pool).ok_or(Fault::Changed)?;
        if !mapped.contains(&block.previous) {
            picture.segments += 1;
        }
        if pool.private {
            picture.private_bytes += block.size;
        }
        match free.get(index) {
            Some(row) if block.allocated || row.1.at != block.pool => return Err(Fault::Changed),
            Some(_) => picture.free.push(FreeBlock {
                size: block.size,
                private: pool.private,
                small: pool.small,
                whole: block.previous == 0 && block.next == 0,
            }),
            None => picture.count_active(&block),
        }
    }
    Ok(picture)
}

impl Picture {
    fn count_active(&mut self, block: &Block) {
        self.active += 1;
        self.active_bytes += block.size;
        if block.allocated {
            self.allocated_bytes += block.size;
            self.requested_bytes = self.requested_bytes.saturating_add(block.requested);
        }
    }
}

/// The fields of a `Block` that matter, relative to the one that names its pool: size and
/// requested size before it; address, allocated, mapped, previous and next behind it.
struct Block {
    size: u64,
    requested: u64,
    pool: u64,
    allocated: bool,
    previous: u64,
    next: u64,
}

impl Block {
    fn parse(raw: View<'_>, pool: usize, has_mapped: bool) -> Option<Self> {
        let flag = |at: usize| raw.byte(at).filter(|&byte| byte <= 1).map(|byte| byte == 1);
        let mapped = if has_mapped { flag(pool + 17)? } else { true };
        let block = Self {
            size: raw.word(pool - 16)?,
            requested: raw.word(pool - 8)?,
            pool: raw.word(pool)?,
            allocated: flag(pool + 16)?,
            previous: raw.word(pool + 24)?,
            next: raw.word(pool + 32)?,
        };
        // Two hundred thousand blocks of this size do not overflow a sum.
        let sane = mapped && (1..BIG >> 18).contains(&block.size);
        sane.then_some(block)
    }
}

/// The one word of a block that names a pool (64 in torch 2.0 to 2.10, 72 since 2.11).
fn pool_offset(
    window: &Window<'_>,
    block: u64,
    known: &HashMap<u64, Pool>,
) -> Result<usize, Fault> {
    let raw = window.some(block, BLOCK_BYTES)?;
    (40..BLOCK_BYTES - 40)
        .step_by(8)
        .find(|&at| View(&raw).word(at).is_some_and(|word| known.contains_key(&word)))
        .ok_or(Fault::Changed)
}

fn pool_at(at: u64, view: View<'_>, offset: usize, sets: usize, private: bool) -> Option<Pool> {
    let root = |set: usize| {
        let header = offset + set * SET_BYTES;
        Some((view.word(header + 16)?, view.word(header + 40)?))
    };
    let small = view.byte(offset + sets * SET_BYTES).filter(|&byte| byte <= 1)? == 1;
    Some(Pool { at, free: root(0)?, unmapped: root(sets - 1)?.1, private, small })
}

fn own_pools(base: u64, view: View<'_>, pools: Pools) -> Result<Vec<Pool>, Fault> {
    [pools.large, pools.small]
        .into_iter()
        .map(|offset| {
            pool_at(base.wrapping_add(offset as u64), view, offset, pools.sets, false)
                .ok_or(Fault::Changed)
        })
        .collect()
}

/// The pools of every `PrivatePool` that a table behind the active blocks names: 32-byte entries
/// of distance, two words of an id, pointer. Such an object holds a large and a small pool that
/// name it as their owner.
fn private_pools(window: &Window<'_>, view: View<'_>, pools: Pools) -> Result<Vec<Pool>, Fault> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let from = pools.active + TABLE_BYTES;
    for at in (from..OBJECT_BYTES - TABLE_BYTES).step_by(8) {
        if !is_table(view, at) || !view.word(at + 24).is_some_and(|n| (1..MANY_POOLS).contains(&n))
        {
            continue;
        }
        let entries = match table(window, view, at, 32, MANY_POOLS) {
            Err(fault) if fault.is_final() => return Err(fault),
            entries => entries.unwrap_or_default(),
        };
        for owner in entries.iter().filter_map(|entry| View(entry).word(16)) {
            if seen.insert(owner) {
                found.extend(pools_of(window, owner, pools.sets)?.into_iter().flatten());
            }
        }
    }
    Ok(found)
}

fn pools_of(window: &Window<'_>, owner: u64, sets: usize) -> Result<Option<[Pool; 2]>, Fault> {
    let end = sets * SET_BYTES;
    let raw = match window.some(owner, 48 + 2 * (end + 32)) {
        Err(fault) if fault.is_final() => return Err(fault),
        Err(_) => return Ok(None),
        Ok(raw) => raw,
    };
    let view = View(&raw);
    let mut pools = (0..raw.len().saturating_sub(end + 8)).step_by(8).filter_map(|offset| {
        let owned = view.word(offset + end + 8) == Some(owner);
        owned.then(|| pool_at(owner.wrapping_add(offset as u64), view, offset, sets, true))?
    });
    Ok(match (pools.next(), pools.next(), pools.next()) {
        (Some(large), Some(small), None) if !large.small && small.small => Some([large, small]),
        _ => None,
    })
}

/// The values of a `std::set`, breadth first: one call a level.
fn set(window: &Window<'_>, root: (u64, u64), limit: &mut u64) -> Result<Vec<u64>, Fault> {
    let (parent, count) = root;
    *limit = limit.checked_sub(count).ok_or(Fault::Spent)?;
    let mut values = Vec::new();
    let mut level: Vec<u64> = if parent == 0 { Vec::new() } else { vec![parent] };
    while !level.is_empty() {
        // A tree in change, or a cycle.
        if (values.len() + level.len()) as u64 > count {
            return Err(Fault::Changed);
        }
        let bytes = window.scattered(&level, 40)?;
        level.clear();
        for node in bytes.chunks_exact(40).map(View) {
            level.extend([16, 24].into_iter().filter_map(|at| node.word(at)).filter(|&n| n != 0));
            values.extend(node.word(32));
        }
    }
    if values.len() as u64 == count { Ok(values) } else { Err(Fault::Changed) }
}

/// The used entries of a `ska` table, without their first word: `entry` bytes each, of which the
/// first is a distance, negative where the entry is empty.
fn table(
    window: &Window<'_>,
    view: View<'_>,
    at: usize,
    entry: usize,
    limit: u64,
) -> Result<Vec<Vec<u8>>, Fault> {
    let word = |n: usize| view.word(at + n * 8).ok_or(Fault::Changed);
    let (entries, slots, policy, count) = (word(0)?, word(1)?, word(2)?, word(3)?);
    if !is_table(view, at) {
        return Err(Fault::Changed);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let total = slots.saturating_add(policy >> 8 & 0xff);
    if count > total {
        return Err(Fault::Changed);
    }
    if count > limit {
        return Err(Fault::Spent);
    }
    let bytes = total.checked_mul(entry as u64).and_then(|n| usize::try_from(n).ok());
    let raw = window.exact(entries, bytes.ok_or(Fault::Changed)?)?;
    let used: Vec<Vec<u8>> = raw
        .chunks_exact(entry)
        .filter(|chunk| chunk.first().is_some_and(|&distance| distance < 0x80))
        .filter_map(|chunk| chunk.get(8..).map(<[u8]>::to_vec))
        .collect();
    if used.len() as u64 == count { Ok(used) } else { Err(Fault::Changed) }
}

/// The free blocks by size: (size, how many), the smallest first.
pub fn by_size(blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut sizes = BTreeMap::new();
    for size in blocks {
        *sizes.entry(size).or_insert(0) += 1;
    }
    sizes.into_iter().collect()
}
