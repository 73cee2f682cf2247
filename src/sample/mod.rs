//! What was read, before anything was concluded: plain data that is kept, recorded and replayed.
//!
//! Rules of the recording: fields are only ever added, as `Option` or with a default; never
//! renamed, never retyped.

mod absence;
mod allocator;
mod called;
mod gap;
mod gpu;
mod kill;
mod lists;
mod machine;
pub mod nearest;
mod power;
mod proc;
mod reading;
mod redact;
mod server;
pub mod text;
mod xid;

use serde::{Deserialize, Serialize};

pub use absence::Absence;
pub use allocator::*;
pub use gap::{Gap, GapCause};
pub use gpu::{
    DriverInfo, Earlier, GpuProc, GpuSample, GpuTick, Memory, MemoryApi, MigInfo, Nonsense, Pcie,
    ProcKinds, Seldom, Throttle, Utilization,
};
pub use kill::{
    KillEvent, KillMark, KillMarked, KillOrder, KillPreset, KillStep, KillTarget, signal_name,
    signal_words,
};
pub use lists::UnreadLists;
pub use machine::{
    Access, CAP_KILL, CAP_SYS_PTRACE, DeviceFile, LibraryFile, MachineFacts, ModuleFacts, PciGpu,
};
pub use power::{PciPower, RuntimeState, pci_address};
pub use proc::{
    Container, EnvVar, HostFacts, HostMemory, NvidiaFds, ProcSample, ProcState, ProcTick,
    ScanReport, Signals,
};
pub use reading::{Reading, Why};
pub use redact::redact;
pub use server::{ServedDevice, ServedModel, ServerSample, ServerSoftware};
pub use xid::{WatchedGpu, XidEvent, XidReport};

/// One arrival. GPU facts and host facts come from different threads and never wait for each
/// other; the view joins them and shows the age of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tick {
    /// The driver's answers about every GPU.
    Gpus(GpuTick),
    /// The kernel's answers about the processes.
    Procs(ProcTick),
    /// Something is missing here, and why.
    Gap(Gap),
    /// This program has ended somebody, or tried to. Nothing was looked at.
    Kill(KillMark),
}

impl Tick {
    /// When the look began; of a gap, the moment from which there is data again.
    pub const fn at(&self) -> crate::ids::Stamp {
        match self {
            Self::Gpus(tick) => tick.at,
            Self::Procs(tick) => tick.at,
            Self::Gap(gap) => gap.to,
            Self::Kill(mark) => mark.at,
        }
    }
}
