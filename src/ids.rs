//! Who and what: identities that cannot be mixed up.

pub mod quick;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A process number as the kernel or the driver gives it. It may be dead or reused: nothing that
/// acts on a process takes a bare `Pid`, see [`ProcId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A process: its number and when it started, which together are never reused while the machine
/// is up. `start_ticks` is field 22 of `/proc/PID/stat`: clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcId {
    /// Its number.
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// A GPU or a MIG instance: `GPU-…` or `MIG-…`. The only identity that survives a reboot, a driver
/// reload and another order of devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuUuid(pub Arc<str>);

impl Hash for GpuUuid {
    /// Its end alone, which tells one from another: it is looked up for every row of every tick.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let bytes = self.0.as_bytes();
        let end =
            bytes.last_chunk::<8>().map_or(bytes.len() as u64, |end| u64::from_le_bytes(*end));
        state.write_u64(end);
    }
}

impl GpuUuid {
    /// From the driver's text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// In place of one that could not be read; `place` tells it from others.
    pub fn unknown(place: &dyn fmt::Display) -> Self {
        Self::new(&format!("{UNKNOWN}{place}"))
    }

    /// Whether it stands in place of one that could not be read: the GPU may get its own later.
    pub fn is_unknown(&self) -> bool {
        self.0.starts_with(UNKNOWN)
    }
}

/// How such a stand-in begins.
const UNKNOWN: &str = "GPU-unknown-";

impl fmt::Display for GpuUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The driver's number of a GPU, as `nvidia-smi` shows it. Not what CUDA calls device 0, see
/// [`CudaOrdinal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuIndex(pub u32);

impl fmt::Display for GpuIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A device number inside one CUDA process: what `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`
/// made of the driver's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CudaOrdinal(pub u32);

/// A moment on two clocks. `boot_ms` (`CLOCK_BOOTTIME`) never jumps and orders everything;
/// `wall_ms` (since 1970) is only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds since boot, suspended time counted in.
    pub boot_ms: u64,
    /// Milliseconds since 1970, UTC.
    pub wall_ms: u64,
}

impl Stamp {
    /// Milliseconds from `earlier` to this; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.boot_ms.saturating_sub(earlier.boot_ms)
    }
}
