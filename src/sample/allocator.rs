//! What a process's caching allocator says of itself.

use serde::{Deserialize, Serialize};

use crate::ids::{CudaOrdinal, GpuUuid, Stamp};
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
    /// Which allocator it is. Only the native one has figures; of another one `devices` is empty.
    #[serde(default)]
    pub backend: AllocatorBackend,
}

/// The kinds of allocator that PyTorch can run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocatorBackend {
    /// PyTorch's own caching allocator.
    #[default]
    Native,
    /// The driver's pool (`backend:cudaMallocAsync`): its statistics are not in the process.
    CudaMallocAsync,
    /// One that the program brought along; it keeps no statistics that could be read.
    Pluggable,
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
    /// What was asked for, before rounding, of what is `active` (not only of what is allocated).
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
    /// Which GPU it is, where the process says so (torch 2.10 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuUuid>,
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
    /// By exact size, the smallest first; the largest sizes only where `sizes_complete` is false.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<BlockSize>,
    /// Whether `sizes` holds every block.
    #[serde(default)]
    pub sizes_complete: bool,
    /// Of `bytes`, in private pools (CUDA graphs): of no use to anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_bytes: Option<Bytes>,
    /// Of `bytes`, in whole segments, which `empty_cache()` gives back to the driver. Unknown with
    /// expandable segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releasable: Option<Bytes>,
    /// When the blocks were read, where that was before the counters: they moved too fast since.
    /// The same holds for segments, private pools and expandable segments of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Stamp>,
}

/// Free blocks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSize {
    /// Their size.
    pub size: Bytes,
    /// How many.
    pub count: u64,
    /// Whether a private pool owns them.
    #[serde(default)]
    pub private: bool,
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
