//! What is missing from a series of ticks, and why.

use serde::{Deserialize, Serialize};

use crate::ids::{GpuIndex, Stamp};

/// A stretch of time without data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// The last moment that was covered.
    pub from: Stamp,
    /// The first that is covered again.
    pub to: Stamp,
    /// Why.
    pub cause: GapCause,
}

/// Why data is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// The driver did not answer.
    Stall {
        /// The call that hung.
        call: String,
        /// On which GPU, where the call names one.
        gpu: Option<GpuIndex>,
    },
    /// This many ticks found a full channel.
    Dropped(u32),
    /// The recording is damaged there.
    Damaged,
    /// The machine slept, or the program was stopped.
    Suspended,
    /// The far end of a stream was away.
    Away,
}
