//! Walks the structures that hold the blocks: sets, tables, pools.

use std::collections::{HashMap, HashSet};

use crate::allocator::blocks::{Block, BlockState, Picture};
use crate::allocator::known::{Ahead, Places};
use crate::allocator::layout::{OBJECT_BYTES, Pools, SET_BYTES, TABLE_BYTES, is_table};
use crate::allocator::memory::{Fault, Window};
use crate::allocator::view::View;

/// Private pools of one device; a CUDA graph needs one.
const MANY_POOLS: u64 = 1 << 16;
/// No block is larger; 2^18 of this size do not overflow a sum.
const MOST_BLOCK_BYTES: u64 = 1 << 45;
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

/// Walks all blocks of the object at `base`, of which `copy` was just read. `places` is what the last
/// walk met, and then what this one did.
///
/// # Errors
/// [`Fault::Changed`] where the structures moved meanwhile, and what the limits or the system say.
pub fn walk(
    window: &Window<'_>,
    base: u64,
    copy: &[u8],
    pools: Pools,
    places: &mut Places,
) -> Result<Picture, Fault> {
    let ahead = Ahead::read(window, places)?;
    let mut met = Vec::new();
    let view = View(copy);
    let mut all = own_pools(base, view, pools)?;
    let private = pools_of_graphs(window, view, pools)?;
    let private_pools = private.len() as u64 / 2;
    all.extend(private);

    let mut limit = u64::from(window.limits().blocks);
    let mut free: Vec<(u64, Pool)> = Vec::new();
    let mut unmapped = 0;
    for pool in &all {
        let found = set(window, &ahead, pool.free, &mut limit, &mut met)?;
        free.extend(found.into_iter().map(|block| (block, *pool)));
        // Where there is one set only, it is the free blocks.
        unmapped += if pools.sets >= 2 { pool.unmapped } else { 0 };
    }
    let active = table(window, view, pools.active, (16, 1), limit)?;

    let known: HashMap<u64, Pool> = all.iter().map(|pool| (pool.at, *pool)).collect();
    let Some(first) = free.first().map(|row| row.0).or_else(|| active.first().copied()) else {
        return Ok(Picture::of(&[], private_pools, unmapped));
    };
    let at = pool_offset(window, first, &known)?;
    let addresses: Vec<u64> = free.iter().map(|row| row.0).chain(active.iter().copied()).collect();
    let width = at + 40;
    let bytes = ahead.scattered(&addresses, width)?;
    let mut blocks = Vec::with_capacity(addresses.len());
    for (index, (raw, &address)) in bytes.chunks_exact(width).zip(&addresses).enumerate() {
        let owner = free.get(index).map(|row| row.1.at);
        let block = parse_block(View(raw), address, at, &known, pools.sets >= 2, owner);
        blocks.push(block.ok_or_else(|| {
            let which = if owner.is_some() { "free" } else { "active" };
            window.note(|| format!("walk: a block of the {which} ones is none: {:x?}", words(raw)));
            Fault::Changed
        })?);
    }
    met.extend(addresses);
    *places = Places::of(met);
    Ok(Picture::of(&blocks, private_pools, unmapped))
}

/// A block, of which `pool` is the offset of the word that names its pool: the size and the
/// requested size lie before it; the address, allocated, mapped, the neighbours behind it. `free`
/// is the pool in whose set of free blocks it was.
fn parse_block(
    raw: View<'_>,
    at: u64,
    pool: usize,
    known: &HashMap<u64, Pool>,
    has_mapped: bool,
    free: Option<u64>,
) -> Option<Block> {
    let flag = |at: usize| raw.byte(at).filter(|&byte| byte <= 1).map(|byte| byte == 1);
    let allocated = flag(pool + 16)?;
    let mapped = if has_mapped { flag(pool + 17)? } else { true };
    let owner = known.get(&raw.word(pool)?)?;
    let size = raw.word(pool - 16)?;
    let state = match (free, allocated) {
        (Some(pool), false) if pool == owner.at => BlockState::Free,
        (Some(_), _) => return None,
        (None, true) => BlockState::Used,
        (None, false) => BlockState::Awaited,
    };
    (mapped && (1..MOST_BLOCK_BYTES).contains(&size)).then_some(Block {
        at,
        size,
        requested: raw.word(pool - 8)?,
        state,
        private: owner.private,
        small: owner.small,
        previous: raw.word(pool + 24)?,
        next: raw.word(pool + 32)?,
    })
}

/// The words of a block, for a note.
fn words(raw: &[u8]) -> Vec<u64> {
    raw.chunks_exact(8).filter_map(|chunk| View(chunk).word(0)).collect()
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
        .ok_or_else(|| {
            window.note(|| format!("walk: a block names no known pool: {:x?}", words(&raw)));
            Fault::Changed
        })
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
fn pools_of_graphs(window: &Window<'_>, view: View<'_>, pools: Pools) -> Result<Vec<Pool>, Fault> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let from = pools.active + TABLE_BYTES;
    for at in (from..OBJECT_BYTES - TABLE_BYTES).step_by(8) {
        if !is_table(view, at) || !view.word(at + 24).is_some_and(|n| (1..MANY_POOLS).contains(&n))
        {
            continue;
        }
        let entries = match table(window, view, at, (32, 3), MANY_POOLS) {
            Err(fault) if fault.is_final() => return Err(fault),
            entries => entries.unwrap_or_default(),
        };
        for owner in entries {
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

/// The values of a `std::set`, breadth first: one call a level. Its nodes are added to `met`.
fn set(
    window: &Window<'_>,
    ahead: &Ahead<'_>,
    root: (u64, u64),
    limit: &mut u64,
    met: &mut Vec<u64>,
) -> Result<Vec<u64>, Fault> {
    let (parent, count) = root;
    *limit = limit.checked_sub(count).ok_or(Fault::Spent)?;
    let mut values = Vec::new();
    let mut level: Vec<u64> = if parent == 0 { Vec::new() } else { vec![parent] };
    while !level.is_empty() {
        // A tree in change, or a cycle.
        if (values.len() + level.len()) as u64 > count {
            window.note(|| format!("walk: a set of {count} has more"));
            return Err(Fault::Changed);
        }
        let bytes = ahead.scattered(&level, 40)?;
        met.extend(&level);
        level.clear();
        for node in bytes.chunks_exact(40).map(View) {
            level.extend([16, 24].into_iter().filter_map(|at| node.word(at)).filter(|&n| n != 0));
            values.extend(node.word(32));
        }
    }
    if values.len() as u64 == count {
        return Ok(values);
    }
    window.note(|| format!("walk: a set of {count} has {}", values.len()));
    Err(Fault::Changed)
}

/// Word `wanted` of each used entry of a `ska` table: `entry` bytes each, of which the first is a
/// distance, negative where the entry is empty.
fn table(
    window: &Window<'_>,
    view: View<'_>,
    at: usize,
    (entry, wanted): (usize, usize),
    limit: u64,
) -> Result<Vec<u64>, Fault> {
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
        window.note(|| format!("walk: the table at {at} says {count} of {total}"));
        return Err(Fault::Changed);
    }
    if count > limit {
        return Err(Fault::Spent);
    }
    let bytes = total.checked_mul(entry as u64).and_then(|n| usize::try_from(n).ok());
    let raw = window.exact(entries, bytes.ok_or(Fault::Changed)?)?;
    let used: Vec<u64> = raw
        .chunks_exact(entry)
        .filter(|chunk| chunk.first().is_some_and(|&distance| distance < 0x80))
        .filter_map(|chunk| View(chunk).word(wanted * 8))
        .collect();
    if used.len() as u64 == count {
        return Ok(used);
    }
    window.note(|| format!("walk: the table at {at} of {count} has {}", used.len()));
    Err(Fault::Changed)
}
