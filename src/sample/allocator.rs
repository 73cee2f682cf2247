//! What a process's caching allocator says of itself.

use serde::{Deserialize, Serialize};

use crate::ids::{CudaOrdinal, Stamp};
use crate::sample::Reading;
use crate::units::Bytes;

/// The caching allocator of one process at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocatorSample {
    /// When it was read.
    pub at: Stamp,
    /// Where the figures come from.
    pub basis: AllocatorBasis,
    /// One per device that the process uses.
    pub devices: Vec<AllocatorDevice>,
}

/// Where allocator figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocatorBasis {
    /// Read from the memory of the process, statistics and blocks.
    Blocks,
    /// Read from the memory of the process, statistics only.
    Statistics,
    /// Taken from an error message.
    Message,
    /// Reported by the server's own interface.
    Reported,
}

/// The allocator's figures for one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocatorDevice {
    /// As the process numbers it.
    pub ordinal: CudaOrdinal,
    /// In tensors that live.
    pub allocated: Bytes,
    /// Taken from the driver: allocated and cached.
    pub reserved: Bytes,
    /// Allocated, or freed and still awaited by a stream.
    pub active: Reading<Bytes>,
    /// Free pieces of split segments.
    pub inactive_split: Reading<Bytes>,
    /// What was asked for, before rounding.
    pub requested: Reading<Bytes>,
    /// Times that the cache was emptied to retry.
    pub retries: Reading<u64>,
    /// Out-of-memory errors thrown.
    pub ooms: Reading<u64>,
    /// Segments held from the driver.
    pub segments: Reading<u64>,
    /// The free cached blocks.
    pub free: Reading<FreeBlocks>,
    /// Held by private pools (CUDA graphs).
    pub private_pools: Reading<Bytes>,
    /// Whether expandable segments are in use.
    pub expandable_segments: Reading<bool>,
    /// Peak of `allocated`.
    pub peak_allocated: Reading<Bytes>,
    /// Peak of `reserved`.
    pub peak_reserved: Reading<Bytes>,
}

/// The cached blocks that nobody uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FreeBlocks {
    /// How many.
    pub count: u64,
    /// Together.
    pub bytes: Bytes,
    /// The largest one.
    pub largest: Bytes,
    /// The largest request that would succeed without a new segment.
    pub largest_request: Bytes,
    /// By size: element n counts blocks of 2^n up to 2^(n+1) bytes.
    pub histogram: Vec<SizeClass>,
}

/// One class of the histogram of free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// The smallest size of the class.
    pub from: Bytes,
    /// Blocks in it.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
}
