//! Builders of the views that rules are asked about. Everything but growth and models comes from
//! ticks, the way a live view does.

use vramlens::analyze::{Growth, View};
use vramlens::model::{Format, Kind};
use vramlens::model::{ModelFacts, template};
use vramlens::sample::*;
use vramlens::units::{Bytes, BytesPerMinute};

use crate::verdict_support::{
    GIB, cuda, env, gpu, host, init, process, row, stamp, watched, with_rows,
};
use vramlens::ids::CudaOrdinal;

pub const PID: u32 = 500;

/// `tenths` of a GiB.
pub const fn g(tenths: u64) -> Bytes {
    Bytes(tenths * GIB / 10)
}

/// A GPU of 80 GiB on which 500 holds so many tenths of a GiB.
pub fn on(tenths: u64) -> GpuSample {
    with_rows(gpu(0), vec![row(PID, g(tenths).0)])
}

/// The same, with `free` tenths free: somebody who is not listed has the rest.
pub fn tight(tenths: u64, free: u64) -> GpuSample {
    let mut gpu = on(tenths);
    if let Reading::Value(memory) = &mut gpu.memory {
        memory.free = g(free);
        memory.used = memory.total - memory.free - memory.reserved.get().unwrap_or_default();
    }
    gpu
}

/// 500 as a training run of PyTorch.
pub fn trainer() -> ProcSample {
    runs("python train.py --lr 1e-4 --batch_size 16 --gradient_accumulation_steps 2")
}

/// 500 with this command line and an environment that says nothing.
pub fn runs(command: &str) -> ProcSample {
    let words: Vec<&str> = command.split_whitespace().collect();
    let name = words[0].rsplit('/').next().unwrap();
    let name: String = name.chars().take(15).collect();
    let process = cuda(process(PID, &name), &[0]);
    env(crate::verdict_support::args(process, &words), &[])
}

pub fn with_env(process: ProcSample, variables: &[(&str, &str)]) -> ProcSample {
    env(process, variables)
}

/// The view after a few seconds of this.
pub fn view(gpu: GpuSample, process: ProcSample) -> View {
    watched(3, &[gpu], &host(), &[init(), process]).1
}

pub fn nothing() -> View {
    View::build(&vramlens::history::History::new(), &crate::verdict_support::moment(10))
}

/// The same beside a second GPU that does not say who is on it.
pub fn beside_blind(gpu: GpuSample, process: ProcSample) -> View {
    let mut second = crate::verdict_support::gpu(1);
    second.processes = Reading::Absent(Why::NotSupported);
    watched(3, &[gpu, second], &host(), &[init(), process]).1
}

/// The GPU without its memory.
pub fn untold(mut gpu: GpuSample) -> GpuSample {
    gpu.memory = Reading::Absent(Why::NotSupported);
    gpu
}

/// The view in which the driver does not tell what 500 holds.
pub fn bytes_untold(mut view: View) -> View {
    view.holders[0].bytes = Reading::Absent(Why::NotSupported);
    view
}

/// A Python program whose arguments may not be read.
pub fn mute() -> ProcSample {
    let mut process = runs("python train.py");
    process.cmdline = Reading::Absent(Why::NoPermission);
    process
}

pub fn blind(process: ProcSample) -> View {
    let mut gpu = gpu(0);
    gpu.processes = Reading::Absent(Why::NotSupported);
    view(gpu, process)
}

/// The allocator of one device, tenths of a GiB: allocated, reserved, peak of allocated.
pub fn torch(allocated: u64, reserved: u64, peak: u64) -> AllocatorDevice {
    AllocatorDevice {
        ordinal: CudaOrdinal(0),
        allocated: g(allocated),
        reserved: g(reserved),
        active: Reading::Value(g(allocated)),
        inactive_split: Reading::Absent(Why::NotAsked),
        requested: Reading::Absent(Why::NotAsked),
        retries: Reading::Value(0),
        ooms: Reading::Value(0),
        segments: Reading::Value(40),
        free: Reading::Absent(Why::UnknownLayout),
        private_pools: Reading::Value(Bytes::ZERO),
        expandable_segments: Reading::Value(false),
        peak_allocated: Reading::Value(g(peak)),
        peak_reserved: Reading::Value(g(reserved)),
        gpu: None,
    }
}

/// All that is cached lies in blocks of 64 MiB, of which so many tenths are whole segments.
pub fn pieces(device: AllocatorDevice, releasable: u64) -> AllocatorDevice {
    blocks(device, Bytes::mib(64), releasable)
}

/// All that is cached lies in blocks of this size.
pub fn blocks(mut device: AllocatorDevice, size: Bytes, releasable: u64) -> AllocatorDevice {
    let bytes = device.reserved - device.allocated;
    let count = bytes.0 / size.0;
    device.free = Reading::Value(FreeBlocks {
        count,
        bytes,
        largest: size,
        largest_request: size,
        histogram: vec![SizeClass { from: size, count, bytes }],
        sizes: vec![BlockSize { size, count, private: false }],
        sizes_complete: true,
        private_bytes: Some(Bytes::ZERO),
        releasable: Some(g(releasable)),
        read_at: None,
    });
    device
}

pub fn allocator(mut process: ProcSample, device: AllocatorDevice) -> ProcSample {
    process.allocator = Some(Reading::Value(AllocatorSample {
        at: stamp(1),
        basis: AllocatorBasis::Blocks,
        devices: vec![device],
        backend: AllocatorBackend::Native,
    }));
    process
}

pub fn no_allocator(mut process: ProcSample, why: Why) -> ProcSample {
    process.allocator = Some(Reading::Absent(why));
    process
}

/// The facts of a typical model of a size, in 16 bits.
pub fn model(size: &str) -> ModelFacts {
    let (_, shape, weights) = template::of_size(size).unwrap();
    ModelFacts {
        name: size.to_owned(),
        format: Format::Gguf,
        kind: Kind::Model,
        quant: None,
        exact: true,
        shape,
        weights,
    }
}

/// The same in 4 bits.
pub fn small(size: &str) -> ModelFacts {
    let mut facts = model(size);
    facts.weights = vramlens::model::quant::named("Q4_K_M").unwrap().weights(&facts.weights);
    facts
}

pub fn knows(mut view: View, path: &str, facts: ModelFacts) -> View {
    view.models.insert(path.to_owned(), Reading::Value(facts));
    view
}

pub fn cannot_read(mut view: View, path: &str) -> View {
    view.models.insert(path.to_owned(), Reading::Absent(Why::NoPermission));
    view
}

/// 500 grows by so many tenths of a GiB a minute, and fills the GPU after so many minutes.
pub fn growing(mut view: View, tenths: u64, minutes: Option<u64>) -> View {
    let per_minute = BytesPerMinute(g(tenths).0 as f64);
    let ms = |n: u64| n * 60_000;
    let growth = Growth::Trend {
        per_minute,
        error: BytesPerMinute(per_minute.0 / 50.0),
        full_in_ms: minutes.map(|n| [ms(n) * 9 / 10, ms(n), ms(n) * 12 / 10]),
    };
    view.holders[0].growth = growth;
    view.gpus[0].allocated_growth = growth;
    view
}

pub fn steady(mut view: View) -> View {
    view.holders[0].growth = Growth::Steady;
    view.gpus[0].growth = Growth::Steady;
    view
}
