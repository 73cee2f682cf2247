//! The allocator's counters of one device (`DeviceStats`), and what always holds between them.

use crate::allocator::view::View;

/// Bytes of one counter array: all, small pool, large pool; four signed words each.
pub const ARRAY_BYTES: usize = 96;
/// Counter arrays in front of the place where newer versions put a table.
pub const ARRAYS_BEFORE: usize = 6;
/// All of them.
pub const ARRAYS: usize = 9;
/// 8 PiB: above it a count of bytes is no count of bytes.
const BIG: i64 = 1 << 53;
/// More retries than that are none.
const MANY: i64 = 1 << 40;

/// The first is never more than the second. The requested bytes of a block that a stream still
/// awaits are not given back yet, unlike its allocated bytes: they may exceed those.
const ORDERED: [(Counter, Counter); 5] = [
    (Counter::RequestedBytes, Counter::ActiveBytes),
    (Counter::AllocatedBytes, Counter::ActiveBytes),
    (Counter::ActiveBytes, Counter::ReservedBytes),
    (Counter::InactiveSplitBytes, Counter::ReservedBytes),
    (Counter::Allocation, Counter::Active),
];

/// The counter arrays, in the order of memory (constant in torch 2.0 to 2.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Blocks in use.
    Allocation,
    /// Segments from the driver.
    Segment,
    /// Blocks in use or awaited by a stream.
    Active,
    /// Free pieces of split segments.
    InactiveSplit,
    /// Bytes in use.
    AllocatedBytes,
    /// Bytes from the driver.
    ReservedBytes,
    /// Bytes in use or awaited by a stream.
    ActiveBytes,
    /// Bytes of free pieces of split segments.
    InactiveSplitBytes,
    /// Bytes asked for, before rounding, of blocks in use or awaited by a stream.
    RequestedBytes,
}

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Now.
    pub current: i64,
    /// The most so far, or since a reset.
    pub peak: i64,
    /// All additions so far, or since a reset.
    pub allocated: i64,
    /// All subtractions so far, or since a reset.
    pub freed: i64,
}

/// A counter for all, the small pool and the large pool.
pub type StatArray = [Stat; 3];

/// All counters of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// By [`Counter`].
    pub arrays: [StatArray; ARRAYS],
    /// Times that the cache was emptied to retry.
    pub retries: i64,
    /// Out-of-memory errors.
    pub ooms: i64,
}

impl Statistics {
    /// From a copy of the object: the arrays begin at `start`, `gap` bytes lie before the seventh.
    pub fn parse(copy: View<'_>, start: usize, gap: usize) -> Option<Self> {
        let mut arrays = [StatArray::default(); ARRAYS];
        for (index, array) in arrays.iter_mut().enumerate() {
            *array = parse_array(copy, array_offset(start, gap, index))?;
        }
        let tail = array_offset(start, gap, ARRAYS);
        Some(Self { arrays, retries: copy.signed(tail)?, ooms: copy.signed(tail + 8)? })
    }

    /// One array.
    pub const fn array(&self, counter: Counter) -> &StatArray {
        &self.arrays[counter as usize]
    }

    /// All pools, now.
    pub const fn now(&self, counter: Counter) -> i64 {
        self.array(counter)[0].current
    }

    /// All pools, peak.
    pub const fn peak(&self, counter: Counter) -> i64 {
        self.array(counter)[0].peak
    }

    /// Whether the device was ever used, as far as the counters tell.
    pub fn used(&self) -> bool {
        self.peak(Counter::ReservedBytes) > 0 || self.array(Counter::Allocation)[0].allocated > 0
    }

    /// Whether these numbers can be the counters of an allocator at rest.
    pub fn plausible(&self) -> bool {
        self.complaint().is_none()
    }

    /// What they break of what always holds, if anything.
    pub fn complaint(&self) -> Option<String> {
        if let Some(index) = self.arrays.iter().position(|array| !array_holds(array)) {
            return Some(format!("array {index} does not hold: {:?}", self.arrays.get(index)?));
        }
        // What holds at any time holds for the peaks too: they are reset together.
        for (when, of) in [("now", Self::now as fn(&Self, Counter) -> i64), ("peak", Self::peak)] {
            let broken = ORDERED.iter().find(|row| of(self, row.0) > of(self, row.1));
            if let Some(&(less, more)) = broken {
                let (a, b) = (of(self, less), of(self, more));
                return Some(format!("{when}: {less:?} {a} > {more:?} {b}"));
            }
        }
        let now = |counter| self.now(counter);
        let words = [self.retries, self.ooms];
        // Not the other way round: before 2.13 expandable segments are not counted.
        if now(Counter::Segment) > 0 && now(Counter::ReservedBytes) == 0 {
            Some("segments without bytes".to_owned())
        } else if (now(Counter::Active) > 0) != (now(Counter::ActiveBytes) > 0) {
            Some("active blocks without bytes, or bytes without blocks".to_owned())
        } else if words.iter().any(|word| !(0..MANY).contains(word)) {
            Some(format!("retries and out-of-memory errors: {words:?}"))
        } else {
            None
        }
    }
}

/// Where array `index` begins.
pub const fn array_offset(start: usize, gap: usize, index: usize) -> usize {
    start + index * ARRAY_BYTES + if index >= ARRAYS_BEFORE { gap } else { 0 }
}

/// The array at `at`.
pub fn parse_array(copy: View<'_>, at: usize) -> Option<StatArray> {
    let mut array = StatArray::default();
    for (index, stat) in array.iter_mut().enumerate() {
        let word = |n: usize| copy.signed(at + index * 32 + n * 8);
        *stat = Stat { current: word(0)?, peak: word(1)?, allocated: word(2)?, freed: word(3)? };
    }
    Some(array)
}

/// Whether the first number of three is the sum of the others, and so on. That a current value is
/// the additions less the subtractions is not asked for: a reset of the accumulated counters
/// breaks it.
pub fn array_holds(array: &StatArray) -> bool {
    let [all, small, large] = array;
    let sane = |stat: &Stat| {
        0 <= stat.current
            && stat.current <= stat.peak
            && stat.peak < BIG
            && stat.allocated >= 0
            && stat.freed >= 0
    };
    let sum = |field: fn(&Stat) -> i64| {
        field(small).checked_add(field(large)).is_some_and(|sum| sum == field(all))
    };
    array.iter().all(sane)
        && sum(|stat| stat.current)
        && sum(|stat| stat.allocated)
        && sum(|stat| stat.freed)
        && small.peak.max(large.peak) <= all.peak
        && all.peak <= small.peak + large.peak
}
