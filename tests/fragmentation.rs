//! Allocator figures find their GPU, and say what of the cache is of use.
mod verdict_support;

use proptest::prelude::*;
use verdict_support::*;
use vramlens::analyze::{Fragmentation, Holder, View};
use vramlens::ids::{CudaOrdinal, GpuUuid};
use vramlens::sample::{
    AllocatorBackend, AllocatorBasis, AllocatorDevice, AllocatorSample, BlockSize, FreeBlocks,
    ProcSample, Reading, SizeClass, Why,
};
use vramlens::units::Bytes;

fn device(ordinal: u32, allocated: u64, reserved: u64, blocks: &[u64]) -> AllocatorDevice {
    let class = |size: &u64| SizeClass {
        from: Bytes(1 << (63 - size.leading_zeros())),
        count: 1,
        bytes: Bytes(*size),
    };
    let largest = Bytes(blocks.iter().copied().max().unwrap_or(0));
    AllocatorDevice {
        ordinal: CudaOrdinal(ordinal),
        allocated: Bytes(allocated),
        reserved: Bytes(reserved),
        active: Reading::Absent(Why::NotAsked),
        inactive_split: Reading::Absent(Why::NotAsked),
        requested: Reading::Absent(Why::NotAsked),
        retries: Reading::Absent(Why::NotAsked),
        ooms: Reading::Absent(Why::NotAsked),
        segments: Reading::Absent(Why::NotAsked),
        free: Reading::Value(FreeBlocks {
            count: blocks.len() as u64,
            bytes: Bytes(blocks.iter().sum()),
            largest,
            largest_request: largest,
            histogram: blocks.iter().map(class).collect(),
            sizes: Vec::new(),
            sizes_complete: false,
            private_bytes: None,
            releasable: None,
            read_at: None,
        }),
        private_pools: Reading::Absent(Why::NotAsked),
        expandable_segments: Reading::Absent(Why::NotAsked),
        peak_allocated: Reading::Absent(Why::NotAsked),
        peak_reserved: Reading::Absent(Why::NotAsked),
        gpu: None,
    }
}

fn allocates(mut process: ProcSample, devices: Vec<AllocatorDevice>) -> ProcSample {
    process.allocator = Some(Reading::Value(AllocatorSample {
        at: stamp(T0),
        basis: AllocatorBasis::Blocks,
        devices,
        backend: AllocatorBackend::Native,
    }));
    process
}

/// Process 500 on the GPUs `on` of three.
fn seen(process: ProcSample, on: &[u32]) -> View {
    let gpus: Vec<_> = (0..3)
        .map(|n| {
            let rows = if on.contains(&n) { vec![row(500, 30 * GIB)] } else { vec![] };
            with_rows(gpu(n), rows)
        })
        .collect();
    watched(3, &gpus, &host(), &[process, init()]).1
}

fn allocated(holder: &Holder) -> Option<Bytes> {
    let sample = holder.allocator.as_ref()?.value()?;
    sample.devices.first().map(|device| device.allocated)
}

fn torch() -> ProcSample {
    cuda(process(500, "python"), &[0, 1, 2])
}

#[test]
fn a_device_number_becomes_the_gpu_that_the_process_means() {
    let (a, b) = (device(0, GIB, 2 * GIB, &[]), device(1, 3 * GIB, 4 * GIB, &[]));
    let both = |variables: &[(&str, &str)]| {
        let process = env(allocates(torch(), vec![a.clone(), b.clone()]), variables);
        let view = seen(process, &[0, 2]);
        view.holders.iter().map(allocated).collect::<Vec<_>>()
    };
    let (first, second) = (Some(Bytes::gib(1)), Some(Bytes::gib(3)));
    assert_eq!(both(&[("CUDA_VISIBLE_DEVICES", "0,2")]), [first, second]);
    assert_eq!(both(&[("CUDA_VISIBLE_DEVICES", "2,0")]), [second, first]);
    assert_eq!(both(&[("CUDA_VISIBLE_DEVICES", "GPU-00000002,GPU-00000000")]), [second, first]);
    assert_eq!(both(&[]), [first, None], "device 1 would be GPU 1, where it is not listed");
    assert_eq!(both(&[("CUDA_VISIBLE_DEVICES", "GPU-0000")]), [None, None], "no clear prefix");
}

#[test]
fn one_device_on_one_gpu_needs_no_environment() {
    let process = allocates(torch(), vec![device(0, GIB, 2 * GIB, &[])]);
    let view = seen(process.clone(), &[1]);
    assert_eq!(allocated(&view.holders[0]), Some(Bytes::gib(1)));
    assert_eq!(cached(&view, 1), Reading::Value(Bytes::gib(1)));
    let view = seen(process, &[0, 1]);
    assert!(view.holders.iter().all(|holder| holder.allocator.is_none()), "it may be either");
    assert_eq!(cached(&view, 1), Reading::Absent(Why::NotAsked), "as much as nothing, or 1 GiB");
}

fn cached(view: &View, gpu: usize) -> Reading<Bytes> {
    view.gpus[gpu].ledger.get().expect("a ledger").cached
}

#[test]
fn what_is_cached_is_absent_where_no_allocator_could_be_read() {
    let mut refused = torch();
    refused.allocator = Some(Reading::Absent(Why::NoPermission));
    let view = seen(refused, &[1]);
    assert_eq!(cached(&view, 1), Reading::Absent(Why::NoPermission));
    assert_eq!(cached(&view, 0), Reading::Value(Bytes::ZERO), "nobody is there");
}

#[test]
fn the_process_knows_best_which_gpu_it_means() {
    let mut own = device(0, GIB, 2 * GIB, &[]);
    own.gpu = Some(uuid(2));
    let view = seen(allocates(torch(), vec![own.clone()]), &[0, 2]);
    let found: Vec<_> = view.holders.iter().map(allocated).collect();
    assert_eq!(found, [None, Some(Bytes::gib(1))]);
    own.gpu = Some(GpuUuid::new("GPU-elsewhere"));
    let view = seen(allocates(torch(), vec![own]), &[0, 2]);
    assert!(view.holders.iter().all(|holder| holder.allocator.is_none()));
}

#[test]
fn exact_sizes_count_and_private_pools_do_not() {
    let mut exact = device(0, 10 * GIB, 20 * GIB, &[8 * GIB, 2 * GIB]);
    let Reading::Value(free) = &mut exact.free else { panic!("no blocks") };
    let block = |gib, private| BlockSize { size: Bytes::gib(gib), count: 1, private };
    free.sizes = vec![block(3, false), block(7, true)];
    free.sizes_complete = true;
    let view = seen(allocates(torch(), vec![exact]), &[0]);
    let Fragmentation::Blocks { reusable, fragmented, .. } = view.holders[0].fragmentation else {
        panic!("no blocks")
    };
    assert_eq!((reusable, fragmented), (Bytes::gib(3), Bytes::gib(7)));
}

#[test]
fn allocated_memory_is_in_the_chart_of_its_gpu() {
    let process = allocates(torch(), vec![device(0, GIB, 2 * GIB, &[])]);
    let gpus: Vec<_> = (0..2)
        .map(|n| with_rows(gpu(n), if n == 1 { vec![row(500, 30 * GIB)] } else { vec![] }))
        .collect();
    let (history, _) = watched(10, &gpus, &host(), &[process]);
    let chart = |gpu: &GpuUuid| history.gpu_chart(gpu, T0 + 5_000, T0 + 9_000, 1)[0];
    assert_eq!(chart(&uuid(1)).unwrap().allocated, Some(Bytes::gib(1)));
    assert_eq!(chart(&uuid(0)).unwrap().allocated, None);
}

#[test]
fn what_is_cached_is_of_use_only_in_blocks_that_are_large_enough() {
    let process = allocates(torch(), vec![device(0, 10 * GIB, 20 * GIB, &[8 * GIB, 2 * GIB])]);
    let view = seen(process, &[0]);
    assert_eq!(
        view.holders[0].fragmentation,
        Fragmentation::Blocks {
            cached: Bytes::gib(10),
            reusable: Bytes::gib(10),
            fragmented: Bytes::ZERO,
            request: Bytes::gib(2),
            largest_request: Bytes::gib(8),
        }
    );
    let scattered: Vec<u64> = vec![GIB / 4; 40];
    let process = allocates(torch(), vec![device(0, 10 * GIB, 20 * GIB, &scattered)]);
    let Fragmentation::Blocks { reusable, fragmented, .. } =
        seen(process, &[0]).holders[0].fragmentation
    else {
        panic!("no blocks")
    };
    assert_eq!((reusable, fragmented), (Bytes::ZERO, Bytes::gib(10)));
}

#[test]
fn without_blocks_only_the_cache_is_known_and_without_figures_nothing() {
    let mut totals = device(0, 10 * GIB, 20 * GIB, &[]);
    totals.free = Reading::Absent(Why::UnknownLayout);
    let view = seen(allocates(torch(), vec![totals]), &[0]);
    let cached = Fragmentation::CachedOnly { cached: Bytes::gib(10) };
    assert_eq!(view.holders[0].fragmentation, cached);
    assert_eq!(seen(torch(), &[0]).holders[0].fragmentation, Fragmentation::None);
}

proptest! {
    #[test]
    fn cache_is_always_reusable_or_fragmented(
        allocated in any::<u64>(),
        reserved in any::<u64>(),
        blocks in prop::collection::vec(1..u64::MAX / 64, 0..20),
    ) {
        let process = allocates(torch(), vec![device(0, allocated, reserved, &blocks)]);
        let view = seen(process, &[0]);
        let Fragmentation::Blocks { cached, reusable, fragmented, .. } =
            view.holders[0].fragmentation else { panic!("no blocks") };
        prop_assert_eq!(reusable.0 + fragmented.0, cached.0);
        prop_assert_eq!(cached.0, reserved.saturating_sub(allocated));
    }
}
