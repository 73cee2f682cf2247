//! What `run --json` says when a command has ended: one object in one line, the last that `run`
//! writes to standard error. The rules of [`crate::report::json`] hold.

use serde::Serialize;

use crate::oom::Explanation;
use crate::report::RedactCommand;
use crate::report::clean::clean;
use crate::report::json::{self, GrowthJson, ProcessRef, SCHEMA, Snapshot};
use crate::report::postmortem::{Facts, Peak};
use crate::report::triage::{FindingJson, finding_json};
use crate::rules::{Finding, Fit};

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunJson {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program.
    pub version: &'static str,
    /// The code that a shell gives for the command's end.
    pub exit_code: u8,
    /// The signal that ended it; `null` where it ended by itself.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub ran_ms: u64,
    /// `ended`, `survived_gpu_oom`, `gpu_oom`, `perhaps_gpu_oom`, `host_oom`.
    pub outcome: &'static str,
    /// The most that it held; `null` where nothing was seen.
    pub peak: Option<PeakJson>,
    /// The highest figures of its allocators that could be read.
    pub allocators: Vec<AllocatorPeakJson>,
    /// How the memory of its largest process moved up to the end; `null` where none was seen.
    pub growth: Option<GrowthJson>,
    /// Why there are no figures; `null` where there are.
    pub not_measured: Option<String>,
    /// Faults that the driver reported while it ran, by NVIDIA's number, each once.
    pub xid: Vec<u64>,
    /// What its error means, as `explain --json` has it; `null` where it printed none that is known.
    pub explanation: Option<Explanation>,
    /// The GPU whose memory ran out; `null` where none did.
    pub gpu: Option<u32>,
    /// What to do, after an error.
    pub findings: Vec<FindingJson>,
    /// Whether the request that failed would have been had after that; `null` where it is not known.
    pub fit: Option<Fit>,
    /// The machine before the end, after an error.
    pub before: Option<Snapshot>,
}

/// What a command held at the most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeakJson {
    /// In all.
    pub bytes: u64,
    /// In how many processes.
    pub processes: usize,
    /// By GPU.
    pub gpus: Vec<GpuPeakJson>,
}

/// The part of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GpuPeakJson {
    /// The driver's number.
    pub gpu: u32,
    /// So much.
    pub bytes: u64,
}

/// One process's allocator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocatorPeakJson {
    /// The process.
    #[serde(flatten)]
    pub process: ProcessRef,
    /// Peak of what lived in tensors.
    pub allocated_bytes: u64,
    /// Peak of what was taken from the driver.
    pub reserved_bytes: u64,
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// As a shell tells it.
    pub exit_code: u8,
    /// By a signal.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub ran_ms: u64,
    /// See [`RunJson::outcome`].
    pub outcome: &'static str,
}

impl RunJson {
    /// Of a command about which nothing else is known.
    pub const fn new(ending: Ending) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            exit_code: ending.exit_code,
            signal: ending.signal,
            ran_ms: ending.ran_ms,
            outcome: ending.outcome,
            peak: None,
            allocators: Vec::new(),
            growth: None,
            not_measured: None,
            xid: Vec::new(),
            explanation: None,
            gpu: None,
            findings: Vec::new(),
            fit: None,
            before: None,
        }
    }

    /// With what was measured.
    #[must_use]
    pub fn measured(mut self, facts: &Facts<'_>) -> Self {
        self.peak = facts.peak.map(peak);
        self.allocators = facts
            .allocators
            .iter()
            .map(|(id, peak)| AllocatorPeakJson {
                process: ProcessRef::from(*id),
                allocated_bytes: peak.allocated.0,
                reserved_bytes: peak.reserved.0,
            })
            .collect();
        let holders = facts.view.map_or(&[][..], |view| &view.holders).iter();
        let own = holders.filter(|holder| facts.members.contains(&holder.pid));
        let largest = own.max_by_key(|holder| holder.bytes.get());
        self.growth = largest.map(|holder| json::growth(&holder.growth));
        self
    }

    /// With what an error leaves to be said.
    #[must_use]
    pub fn after(
        mut self,
        facts: &Facts<'_>,
        findings: &[Finding],
        fit: Option<Fit>,
        redact: RedactCommand,
    ) -> Self {
        let gpu = facts
            .view
            .zip(facts.gpu)
            .and_then(|(view, uuid)| view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid));
        self.gpu = gpu.map(|gpu| gpu.sample.index.0);
        self.findings = findings.iter().map(finding_json).collect();
        self.fit = fit.map(|mut fit| {
            for step in &mut fit.steps {
                step.headline = clean(&step.headline);
                step.line = step.line.as_deref().map(clean);
            }
            fit
        });
        self.before = facts.view.map(|view| Snapshot::new(view, redact));
        self
    }
}

fn peak(peak: &Peak) -> PeakJson {
    let gpus = peak.gpus.iter().map(|(gpu, bytes)| GpuPeakJson { gpu: gpu.0, bytes: bytes.0 });
    PeakJson { bytes: peak.bytes.0, processes: peak.processes, gpus: gpus.collect() }
}
