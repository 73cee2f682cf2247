//! Faults that the driver reports while it is watched: XID events.

use serde::{Deserialize, Serialize};

use crate::ids::{GpuUuid, Stamp};
use crate::sample::Reading;

/// What came in since the tick before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct XidReport {
    /// Of each GPU, whether its events are watched, or why not. A GPU that is not named here is
    /// not watched: nobody asked, or the recording is of a version that did not know events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedGpu>,
    /// In the order in which they came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<XidEvent>,
    /// Events for which there was no room, since the start.
    pub lost: u64,
}

impl XidReport {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether the events of a GPU are watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedGpu {
    /// Which.
    pub gpu: GpuUuid,
    /// Absent with the reason where they are not.
    pub state: Reading<()>,
}

/// One event (`nvmlEventTypeXidCriticalError`). The driver tells the number and the place; which
/// process it was about stands in the kernel's log only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidEvent {
    /// When it arrived here.
    pub at: Stamp,
    /// On which GPU.
    pub gpu: GpuUuid,
    /// Its number; 999 where the driver does not know it. Several that come at once all carry the
    /// number of the last, as the library documents.
    pub code: u64,
    /// In which GPU instance, where MIG is on and the fault is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_instance: Option<u32>,
    /// In which compute instance, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_instance: Option<u32>,
}
