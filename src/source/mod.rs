//! Where ticks come from: the driver, a recording, a pipe. First in the chain.

pub mod nvml;
pub mod replay;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ids::{GpuIndex, Stamp};
use crate::sample::{PciPower, Tick};

/// Looks at the power of all GPUs without the driver, and without waking one.
pub type Eyes = Box<dyn FnMut() -> Vec<PciPower> + Send>;

/// What the view shows now, so that slow calls are made only for somebody who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Traffic on the bus: 20 ms a counter.
    pub pcie: bool,
    /// Per-process use of the multiprocessors: 2 ms a GPU.
    pub process_utilization: bool,
    /// Clocks, performance state and fan: four calls a GPU.
    pub details: bool,
}

impl Wants {
    /// Everything that can be read, for one look that is kept.
    pub const ALL: Self = Self { pcie: true, process_utilization: true, details: true };
}

/// A driver call under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// The function of the driver's library.
    pub call: &'static str,
    /// On which GPU, where it is about one.
    pub gpu: Option<GpuIndex>,
    /// Since when, in milliseconds since boot.
    pub since_boot_ms: u64,
}

/// The place where a source says which call it is about to make, so that another thread can name
/// the one that hangs.
#[derive(Debug, Default)]
pub struct Progress {
    in_flight: Mutex<Option<InFlight>>,
    look: AtomicBool,
    apart: AtomicU32,
}

impl Progress {
    /// Says that `call` begins.
    pub fn enter(&self, call: &'static str, gpu: Option<GpuIndex>, since_boot_ms: u64) {
        *self.lock() = Some(InFlight { call, gpu, since_boot_ms });
    }

    /// Says that it has returned.
    pub fn leave(&self) {
        *self.lock() = None;
    }

    /// The call under way.
    pub fn current(&self) -> Option<InFlight> {
        self.lock().clone()
    }

    /// Wants one look at GPUs that are let sleep, by a user's word.
    pub fn wake(&self) {
        self.look.store(true, Ordering::Relaxed);
    }

    /// Whether that was wanted since the last time.
    pub fn take_wake(&self) -> bool {
        self.look.swap(false, Ordering::Relaxed)
    }

    /// Says which process makes the calls, where it is not this one; 0 for none.
    pub fn set_apart(&self, pid: u32) {
        self.apart.store(pid, Ordering::Relaxed);
    }

    /// The process that makes the calls, where it is not this one.
    pub fn apart(&self) -> Option<u32> {
        Some(self.apart.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<InFlight>> {
        self.in_flight.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Gives ticks. Blocking by design: it runs on a thread of its own, which is never joined, since a
/// driver call can hang in the kernel for ever.
pub trait Source: Send {
    /// The next tick; waits until it is due at `due` (a live source reads at once). `None` at the
    /// end of a recording.
    fn next(&mut self, now: Stamp, wants: Wants) -> Result<Option<Tick>, SourceError>;
}

/// Why there are no ticks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No library to ask.
    #[error("the driver's library cannot be loaded: {0}")]
    NoLibrary(String),
    /// The library is there, the kernel module is not.
    #[error("the NVIDIA kernel module is not loaded")]
    NoDriver,
    /// Upgraded while loaded.
    #[error(
        "the driver's library and its kernel module are of different versions: reboot, or reload the module"
    )]
    VersionMismatch,
    /// The driver answers, and there is no GPU.
    #[error("the driver reports no GPU")]
    NoGpu,
    /// It may not be asked.
    #[error("no permission to ask the driver")]
    NoPermission,
    /// Any other answer.
    #[error("the driver answered {call} with error {code}")]
    Driver {
        /// The function.
        call: &'static str,
        /// The library's number for it.
        code: i32,
    },
    /// The process that asks the driver hangs.
    #[error("{0}")]
    Hangs(String),
    /// The process that asks the driver has ended.
    #[error("{0}")]
    Died(String),
    /// The recording or stream cannot be read.
    #[error("{0}")]
    Stream(String),
}
