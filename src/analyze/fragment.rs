//! What of an allocator's cache is of use for the next request.

use super::Fragmentation;
use crate::history::gpu_of_device;
use crate::ids::GpuUuid;
use crate::sample::{
    AllocatorDevice, AllocatorSample, BlockSize, FreeBlocks, GpuSample, ProcSample, Reading, Why,
};
use crate::units::Bytes;

/// The allocator's figures for one GPU: those devices of it that belong there.
pub fn for_gpu(
    process: &ProcSample,
    gpu: &GpuUuid,
    gpus: &[GpuSample],
    listed: &[&GpuUuid],
) -> Option<Reading<AllocatorSample>> {
    let sample = match process.allocator.as_ref()? {
        Reading::Value(sample) => sample,
        Reading::Absent(why) => return Some(Reading::Absent(*why)),
    };
    if sample.devices.is_empty() {
        // Another allocator than the native one has no figures, and a name.
        return Some(Reading::Value(sample.clone()));
    }
    let count = sample.devices.len();
    let here = |device: &&AllocatorDevice| {
        gpu_of_device(device, process, gpus, listed, count).as_ref() == Some(gpu)
    };
    let devices: Vec<_> = sample.devices.iter().filter(here).cloned().collect();
    (!devices.is_empty()).then_some(Reading::Value(AllocatorSample {
        at: sample.at,
        backend: sample.backend,
        basis: sample.basis,
        devices,
    }))
}

/// Reserved and not allocated.
pub fn cached(sample: Option<&Reading<AllocatorSample>>) -> Reading<Bytes> {
    let of = |sample: &AllocatorSample| {
        sample.devices.iter().map(|device| device.reserved - device.allocated).sum()
    };
    sample.map_or(Reading::Absent(Why::NotAsked), |sample| sample.as_ref().map(of))
}

/// What of the cache a request of `request` bytes can use.
pub fn of_allocator(
    sample: Option<&Reading<AllocatorSample>>,
    request: Option<Bytes>,
) -> Fragmentation {
    let devices = sample.and_then(Reading::value).map(|sample| sample.devices.as_slice());
    let Some([device]) = devices else { return Fragmentation::None };
    let cached = device.reserved - device.allocated;
    let Reading::Value(free) = &device.free else { return Fragmentation::CachedOnly { cached } };
    let request = request.unwrap_or(Bytes(device.reserved.0 / 10));
    let reusable = usable(free, request);
    let reusable = reusable.min(cached);
    Fragmentation::Blocks {
        cached,
        reusable,
        fragmented: cached - reusable,
        request,
        largest_request: free.largest_request,
    }
}

/// Bytes in free blocks that are large enough. Blocks of private pools are of no use to others.
fn usable(free: &FreeBlocks, request: Bytes) -> Bytes {
    if free.sizes_complete {
        let fits = |block: &&BlockSize| block.size >= request && !block.private;
        let bytes = |block: &BlockSize| Bytes(block.size.0.saturating_mul(block.count));
        return free.sizes.iter().filter(fits).map(bytes).sum();
    }
    // Of a class that the request falls into only the largest block is known to fit.
    let classes = free.histogram.iter().filter(|class| class.from >= request);
    let usable: Bytes = classes.map(|class| class.bytes).sum();
    if usable == Bytes::ZERO && free.largest_request.max(free.largest) >= request {
        return free.largest.max(free.largest_request);
    }
    usable - free.private_bytes.unwrap_or(Bytes::ZERO)
}
