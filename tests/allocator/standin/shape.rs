//! How each generation of torch lays out its allocator.

/// Offsets and sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub torch: &'static str,
    /// Of the vector of devices in the native allocator.
    pub vector: usize,
    /// A table in the middle of the counters.
    pub gap: usize,
    /// From the number of retries to the first pool.
    pub tail: usize,
    /// Sets in a pool.
    pub sets: usize,
    /// Words behind the owner of a pool.
    pub pool_extra: usize,
    /// Of the pool in a block.
    pub block_pool: usize,
    /// `cudaDeviceProp` behind the active blocks.
    pub has_prop: bool,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// Ways in which a later version might differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    /// Another array before the bytes of active blocks.
    MoreArrays,
    /// Peak before current.
    PeakFirst,
    /// Split bytes and requested bytes have changed places.
    SplitAndRequested,
    /// Allocated bytes and reserved bytes have changed places.
    AllocatedAndReserved,
    /// Far more words before the pools.
    LongTail,
    /// One more counter before the number of retries.
    MoreStats,
    /// Another mutex.
    OtherMutex,
    /// Sets that count elsewhere.
    OtherSets,
    /// Blocks without their pool.
    NoPoolInBlock,
    /// The size of a block lies elsewhere.
    SizeElsewhere,
    /// The table of active blocks is of another kind.
    OtherTable,
    /// Four numbers of unsigned 32 bits.
    NarrowCounters,
}

impl Shape {
    const fn new(torch: &'static str, vector: usize, tail: usize) -> Self {
        Self {
            torch,
            vector,
            gap: 0,
            tail,
            sets: 2,
            pool_extra: 8,
            block_pool: 64,
            has_prop: false,
            wrong: Wrong::Nothing,
        }
    }

    pub const fn pool_bytes(&self) -> usize {
        self.sets * 48 + 16 + self.pool_extra
    }

    pub const fn wrong(self, wrong: Wrong) -> Self {
        Self { wrong, ..self }
    }
}

/// The generations, as measured on the released libraries.
pub const GENERATIONS: [Shape; 8] = [
    Shape { sets: 1, pool_extra: 0, ..Shape::new("2.0", 0x50, 88) },
    Shape { pool_extra: 0, ..Shape::new("2.1", 0x50, 88) },
    Shape { pool_extra: 0, ..Shape::new("2.2", 0x3ee0, 88) },
    Shape::new("2.3", 0x57f0, 112),
    Shape::new("2.5", 0x5838, 112),
    Shape { has_prop: true, ..Shape::new("2.10", 0x5838, 120) },
    Shape { has_prop: true, block_pool: 72, ..Shape::new("2.11", 0x5838, 120) },
    Shape { has_prop: true, block_pool: 72, gap: 32, sets: 3, ..Shape::new("2.13", 0x5838, 128) },
];
