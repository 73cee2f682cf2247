//! Where things lie inside `DeviceCachingAllocator`, found by content.
//!
//! No table of versions is used: each part has to look like what it should be and fit its
//! neighbours, so that a version that nobody has seen is either read right or refused.

use crate::allocator::memory::{Fault, Window};
use crate::allocator::stats::{
    ARRAY_BYTES, ARRAYS, ARRAYS_BEFORE, Statistics, array_holds, array_offset, parse_array,
};
use crate::allocator::view::View;

/// Bytes copied of the object; it has 1.4 to 3.1 KiB in torch 2.0 to 2.15.
pub const OBJECT_BYTES: usize = 4096;
/// The smallest copy with everything in it.
const LEAST_BYTES: usize = 1200;
/// Bytes of a `std::set` (libstdc++): comparator, color, parent, left, right, count.
pub const SET_BYTES: usize = 48;
/// Bytes of a `ska::flat_hash_map` or set: entries, slots − 1, policy word, count.
pub const TABLE_BYTES: usize = 32;
/// More blocks in one set are none.
const MANY_BLOCKS: u64 = 1 << 24;
/// `PTHREAD_MUTEX_RECURSIVE_NP`, in glibc's mutex kind.
const RECURSIVE: u32 = 1;

/// Offsets inside the object, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first counter array.
    pub stats: usize,
    /// Bytes of a table between the sixth and the seventh array (32 since torch 2.13).
    pub gap: usize,
    /// The block pools; without them there are only statistics.
    pub pools: Option<Pools>,
    /// Whether some counter was not zero when it was found.
    pub verified: bool,
    /// Whether what lies between the arrays and the pools has the length of a known version. If
    /// not, the first two words of it need not be what they were.
    pub known_tail: bool,
}

/// From the number of retries to the first pool, sets in a pool, bytes of a pool: torch 2.0, 2.1,
/// 2.3, 2.10, 2.12, 2.13.
const KNOWN_TAILS: [(usize, usize, usize); 6] =
    [(88, 1, 64), (88, 2, 112), (112, 2, 120), (120, 2, 120), (128, 2, 120), (128, 3, 168)];

/// Where the block pools are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pools {
    /// The pool of large blocks.
    pub large: usize,
    /// The pool of small blocks.
    pub small: usize,
    /// Sets at the start of a pool: one in torch 2.0, two since 2.1, three since 2.13.
    pub sets: usize,
    /// The table of active blocks.
    pub active: usize,
}

impl Layout {
    /// Where the arrays end: the number of retries.
    pub const fn tail(&self) -> usize {
        array_offset(self.stats, self.gap, ARRAYS)
    }

    /// The counters out of a copy of the object.
    pub fn statistics(&self, copy: View<'_>) -> Option<Statistics> {
        Statistics::parse(copy, self.stats, self.gap)
    }
}

/// What a look at an object showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Something else is there.
    Other,
    /// It could be the object in the middle of a change, or one of an unknown layout: what was
    /// seen.
    Refused(Vec<u8>),
    /// The object.
    Found(Layout),
}

/// Looks at the object at `base` once.
///
/// # Errors
/// Only those that end the reading.
pub fn look(window: &Window<'_>, base: u64) -> Result<Look, Fault> {
    let mut copy = match window.some(base, OBJECT_BYTES) {
        Err(fault) if !fault.is_final() => return Ok(Look::Other),
        copy => copy?,
    };
    let view = View(&copy);
    if copy.len() < LEAST_BYTES || !begins_with_mutex(view) {
        window.note(|| format!("{base:#x}: no recursive mutex"));
        return Ok(Look::Other);
    }
    // 40 behind a glibc mutex on x86-64, 48 on aarch64.
    for stats in [40, 48, 56, 64, 32, 72, 80, 88, 96] {
        if let Some(layout) = try_at(window, base, view, stats)? {
            return Ok(Look::Found(layout));
        }
    }
    copy.truncate(LEAST_BYTES);
    Ok(Look::Refused(copy))
}

/// A recursive mutex of glibc: lock, depth, owner, users, kind; then nothing but zeros.
fn begins_with_mutex(view: View<'_>) -> bool {
    let half = |at| view.half(at).unwrap_or(u32::MAX);
    half(16) & 0x7f == RECURSIVE && half(0) <= 2 && (20..40).step_by(4).all(|at| half(at) == 0)
}

fn try_at(
    window: &Window<'_>,
    base: u64,
    view: View<'_>,
    stats: usize,
) -> Result<Option<Layout>, Fault> {
    let first = (0..ARRAYS_BEFORE).map(|n| parse_array(view, stats + n * ARRAY_BYTES));
    let refused =
        first.into_iter().position(|array| !array.is_some_and(|array| array_holds(&array)));
    if let Some(n) = refused {
        window.note(|| format!("counters at {stats}: array {n} does not hold"));
        return Ok(None);
    }
    let gap = if is_table(view, stats + ARRAYS_BEFORE * ARRAY_BYTES) { TABLE_BYTES } else { 0 };
    let Some(statistics) = Statistics::parse(view, stats, gap) else { return Ok(None) };
    if let Some(complaint) = statistics.complaint() {
        window.note(|| format!("counters at {stats}, gap {gap}: {complaint}"));
        return Ok(None);
    }
    let verified = statistics.used();
    let mut layout = Layout { stats, gap, pools: None, verified, known_tail: false };
    let tail = layout.tail();
    // Retries, OOMs, two counters and two to six words lie between the arrays and the pools.
    let first_set = first_set(window, base, view, tail + 16)?;
    if first_set.is_some_and(|at| !(tail + 80..=tail + 176).contains(&at)) {
        window.note(|| format!("counters at {stats}: end at {tail}, first set at {first_set:?}"));
        return Ok(None);
    }
    if let Some(at) = first_set {
        layout.pools = pools(window, base, view, at)?;
        layout.known_tail = layout.pools.is_some_and(|pools| {
            KNOWN_TAILS.contains(&(at - tail, pools.sets, pools.small - pools.large))
        });
    }
    // Zeros without pools beside them are no evidence; pools in part are a change under way.
    let accepted = layout.pools.is_some() || (first_set.is_none() && layout.verified);
    if !accepted {
        window.note(|| format!("counters at {stats}: no two pools at {first_set:?}"));
    }
    Ok(accepted.then_some(layout))
}

fn first_set(
    window: &Window<'_>,
    base: u64,
    view: View<'_>,
    from: usize,
) -> Result<Option<usize>, Fault> {
    for at in (from..from + 640).step_by(8) {
        if is_set(window, base, view, at)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Two pools, large and small: sets one after the other, whether small, the owner (none).
fn pools(
    window: &Window<'_>,
    base: u64,
    view: View<'_>,
    large: usize,
) -> Result<Option<Pools>, Fault> {
    let sets = run_of_sets(window, base, view, large)?;
    let after = large + sets * SET_BYTES;
    let mut small = None;
    for at in (after + 16..=after + 64).step_by(8) {
        if is_set(window, base, view, at)? {
            small = Some(at);
            break;
        }
    }
    let Some(small) = small else { return Ok(None) };
    let end = small + sets * SET_BYTES;
    let flags = |at: usize| (view.byte(at), view.word(at + 8));
    if run_of_sets(window, base, view, small)? != sets
        || flags(after) != (Some(0), Some(0))
        || flags(end) != (Some(1), Some(0))
    {
        return Ok(None);
    }
    let active = (end..end + 96).step_by(8).find(|&at| is_table(view, at));
    Ok(active.map(|active| Pools { large, small, sets, active }))
}

fn run_of_sets(window: &Window<'_>, base: u64, view: View<'_>, at: usize) -> Result<usize, Fault> {
    let mut count = 0;
    while count < 4 && is_set(window, base, view, at + count * SET_BYTES)? {
        count += 1;
    }
    Ok(count)
}

/// Whether a `std::set` lies there. Its first word is a comparator, or junk.
fn is_set(window: &Window<'_>, base: u64, view: View<'_>, at: usize) -> Result<bool, Fault> {
    let header = base.wrapping_add(at as u64 + 8);
    let word = |n: usize| view.word(at + n * 8);
    let (Some(color), Some(parent), Some(left), Some(right), Some(count)) =
        (word(1), word(2), word(3), word(4), word(5))
    else {
        return Ok(false);
    };
    if color & 0xffff_ffff != 0 {
        return Ok(false);
    }
    if parent == 0 {
        return Ok(left == header && right == header && count == 0);
    }
    if !(1..MANY_BLOCKS).contains(&count) {
        return Ok(false);
    }
    // The parent of the root is the header.
    match window.word(parent.wrapping_add(8)) {
        Ok(back) => Ok(back == header),
        Err(fault) if fault.is_final() => Err(fault),
        Err(_) => Ok(false),
    }
}

/// Whether a `ska` table lies there, by its policy word: shift, most lookups, 0.5 as load factor.
pub fn is_table(view: View<'_>, at: usize) -> bool {
    view.word(at + 16).is_some_and(|word| {
        word >> 32 == 0x3f00_0000 && word & 0xff < 64 && (3..=64).contains(&(word >> 8 & 0xff))
    })
}
