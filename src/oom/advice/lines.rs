//! The line to type for each fix and program, with what it costs. The first row that fits counts.

use super::{lines_model, lines_rest, lines_step};

/// A row: fix, program (`*` for any), what must hold, line, cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub fix: u8,
    pub software: &'static str,
    pub when: When,
    /// `{name}` is filled in where the figure is known; a row with an unknown figure is passed over.
    pub line: &'static str,
    pub cost: &'static str,
}

/// What must hold for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing more.
    Always,
    /// It trains.
    Training,
    /// It failed in attention.
    Attention,
    /// It failed in the loss.
    Loss,
    /// It failed while it decoded pictures.
    Decode,
    /// It failed while it recorded CUDA graphs.
    Capture,
    /// It failed while the optimizer's state was made.
    Optimizer,
    /// Its cache is in pieces.
    Fragmented,
    /// The same, of a version before expandable segments.
    FragmentedOld,
    /// The same, where the platform has no expandable segments.
    FragmentedNoVirtualMemory,
    /// It grows.
    Growing,
    /// Its arguments are those of the Trainer of transformers, and it trains.
    HfTraining,
    /// The same, and it failed in the loss.
    HfLoss,
    /// It uses transformers, and failed in attention.
    HfAttention,
    /// Its arguments are those of the Trainer, and it failed while the optimizer's state was made.
    HfOptimizer,
    /// It uses transformers, and its weights were loaded in 32 bits.
    HfFloat32,
    /// It uses transformers.
    Hf,
    /// It computes through CUDA or ROCm: not on Apple's, Intel's or `DirectX`'s devices.
    OnCuda,
    /// A step has one sample already.
    SingleSample,
    /// It failed before anything of its own was loaded.
    Startup,
    /// The token pool of a server is full.
    TokenPool,
    /// Its weights have 4 bits already.
    FourBit,
    /// It may take only a share of the device.
    ShareSet,
    /// The same, and PyTorch says so.
    TorchShare,
    /// The same, by the quota of a container.
    Vgpu,
    /// It failed in its trial run.
    Warmup,
    /// The GPU's memory is the system's.
    SharedMemory,
    /// Its own other ranks are on the same GPU.
    Siblings,
    /// It failed in a collective operation.
    Collective,
    /// A reserve of expandable segments is set.
    ReserveSet,
    /// The platform has no expandable segments.
    NoVirtualMemory,
    /// The process has too many mappings.
    MapsFull,
    /// Expandable segments are on.
    AlreadyExpandable,
    /// Flash attention is off.
    FlashOff,
    /// Its weights were loaded in 32 bits.
    Float32,
    /// Of a running process: its context is long.
    LongContext,
    /// Its cache has 16 bits, as far as is known.
    WideCache,
    /// Of a running process: its server reports a cache that is hardly used.
    Unused,
    /// Of a running process: it keeps a cache for several at once.
    ManySlots,
    /// Of a running process: its weights have 16 bits or more.
    WideWeights,
    /// Of a running process: it has taken its share in advance.
    Preallocated,
    /// Of a running process: its cache could be given back.
    Releasable,
    /// Of a running process: its experts are on the GPU.
    Experts,
    /// Of a running process: layers are on the CPU, and there is room for them.
    Room,
    /// A desktop is on the GPU; of a message: and nothing of it can be closed.
    Desktop,
    /// It runs in a slice of the GPU.
    Slice,
    /// It runs under a quota.
    Quota,
    /// Its allocator does not cache.
    NoCaching,
}

pub(super) const fn row(
    fix: u8,
    software: &'static str,
    when: When,
    line: &'static str,
    cost: &'static str,
) -> Row {
    Row { fix, software, when, line, cost }
}

/// Every row.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    lines_model::ROWS.iter().chain(lines_step::ROWS).chain(lines_rest::ROWS)
}
