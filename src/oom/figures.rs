//! The numbers of a message.

use std::collections::BTreeMap;

macro_rules! slots {
    ($($(#[$doc:meta])* $name:ident = $key:literal),* $(,)?) => {
        /// What a number is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum Slot { $($(#[$doc])* $name),* }

        impl Slot {
            /// From its name in a pattern.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name { $($key => Some(Self::$name),)* _ => None }
            }
        }
    };
}

slots! {
    /// The allocation that failed.
    Requested = "req",
    /// Capacity of the device, or of the pool that stands for it.
    Total = "total",
    /// Free on the device.
    Free = "free",
    /// In live tensors.
    Allocated = "alloc",
    /// Allocated and cached.
    Reserved = "reserved",
    /// Cached, not allocated.
    Unallocated = "unalloc",
    /// A limit below the device's.
    Allowed = "allowed",
    /// Of `Allocated`: in private pools.
    PrivatePools = "priv",
    /// This process, as the driver counts.
    ThisProcess = "this",
    /// A process's number; its bytes follow as `ProcessBytes`.
    Pid = "pid",
    /// What the process before it holds.
    ProcessBytes = "pidbytes",
    /// The device.
    Device = "dev",
    /// Outside the framework, not told apart (MPS).
    OtherAllocations = "other",
    /// Of the host.
    HostRequested = "hostreq",
    /// Of the host.
    HostAvailable = "hostfree",
    /// Resident memory of a killed process.
    HostRss = "hostrss",
    /// A container's or a job's limit.
    HostLimit = "hostlimit",
    /// KV cache that one request needs.
    KvNeeded = "kvneed",
    /// KV cache that there is room for.
    KvAvailable = "kvhave",
    /// The longest context that the program says would fit.
    SuggestedLength = "maxlen",
    /// The context that was asked for, in tokens.
    Context = "ctx",
    /// Tokens that were asked for.
    TokensNeeded = "tokneed",
    /// Tokens that there is room for.
    TokensAvailable = "tokhave",
    /// Weights on the device.
    Weights = "weights",
    /// A share of the device, in thousandths.
    Utilization = "util",
    /// The size of the reserve that an allocation exceeds.
    Reserve = "reserve",
    /// Layers on the GPU.
    Layers = "layers",
    /// Layers there are.
    LayersTotal = "layersall",
    /// Samples per step.
    Batch = "batch",
    /// Tokens per physical step.
    MicroBatch = "ubatch",
    /// The key and value cache, in bytes.
    KvBytes = "kv",
    /// The buffer of the compute graph.
    ComputeBytes = "compute",
    /// Trainable parameters.
    Parameters = "params",
    /// Free before.
    FreeBefore = "freebefore",
    /// Used on the device.
    Used = "used",
    /// Retries of the allocator.
    Retries = "retries",
    /// A pool's limit that must not be taken for the device.
    PoolLimit = "pool",
    /// A piece of the allocation that failed; the whole may stand elsewhere.
    Chunk = "chunk",
    /// A number that means nothing here.
    Ignored = "x",
}

/// A process that a message or a pasted table names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub pid: u32,
    pub bytes: Option<u64>,
}

/// The numbers of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Figures {
    values: BTreeMap<Slot, u64>,
    pub processes: Vec<Named>,
}

impl Figures {
    /// From a match, in the order of the text. The first figure of a kind stays, unless the next
    /// one is the same in plain bytes: `9.83G (10559160320 bytes)`.
    pub(super) fn of(fields: &[(Slot, Option<u64>)]) -> Self {
        let mut figures = Self::default();
        for (slot, value) in fields {
            match (slot, value) {
                (Slot::Pid, Some(pid)) => {
                    let pid = u32::try_from(*pid).unwrap_or(u32::MAX);
                    figures.processes.push(Named { pid, bytes: None });
                }
                (Slot::ProcessBytes, bytes) => {
                    if let Some(last) = figures.processes.last_mut() {
                        last.bytes = *bytes;
                    }
                }
                (slot, Some(value)) => {
                    let kept = figures.values.entry(*slot).or_insert(*value);
                    if same(*kept, *value) {
                        *kept = *value;
                    }
                }
                (_, None) => {}
            }
        }
        figures
    }

    /// A number, where it was printed.
    pub(super) fn get(&self, slot: Slot) -> Option<u64> {
        self.values.get(&slot).copied()
    }

    /// Sets a number.
    pub(super) fn set(&mut self, slot: Slot, value: u64) {
        self.values.insert(slot, value);
    }

    /// Forgets a number.
    pub(super) fn clear(&mut self, slot: Slot) {
        self.values.remove(&slot);
    }

    /// Takes over what is missing here, and what is the same number with more digits.
    pub(super) fn fill_from(&mut self, other: &Self) {
        for (slot, value) in &other.values {
            let kept = self.values.entry(*slot).or_insert(*value);
            if same(*kept, *value) && *slot == Slot::Requested {
                *kept = *value;
            }
        }
        if self.processes.is_empty() {
            self.processes.clone_from(&other.processes);
        }
    }

    /// Whether there is a number of bytes about the device.
    pub(super) fn is_sized(&self) -> bool {
        [Slot::Requested, Slot::Total, Slot::Free].iter().any(|slot| self.get(*slot).is_some())
    }
}

/// Whether two figures are one, rounded differently.
fn same(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a / 100
}
