//! XID events: what the numbers mean, and what was seen of them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::history::History;
use crate::ids::{GpuUuid, Stamp};
use crate::sample::{GpuSample, Reading, Why, XidEvent};

/// Whose fault it is, which is what decides what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Nothing is broken: a record of something that was mended, or the echo of another fault.
    Nobody,
    /// A program; the GPU is fine.
    Program,
    /// The GPU, its links or its firmware: it does not work rightly until it is reset or replaced.
    Gpu,
}

/// What a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The number.
    pub code: u64,
    /// Whose fault it mostly is.
    pub blame: Blame,
    /// What happened.
    pub meaning: &'static str,
    /// What to do.
    pub advice: &'static str,
}

const fn xid(code: u64, blame: Blame, meaning: &'static str, advice: &'static str) -> Xid {
    Xid { code, blame, meaning, advice }
}

const RERUN: &str = "the program that did it has ended or must: look for its bug, run it again";
const SANITIZE: &str = "look for the bug in the program: compute-sanitizer finds the kernel";
const RESET: &str = "reset the GPU (nvidia-smi --gpu-reset) or reboot; replace it if it comes back";

/// The numbers that matter for memory and for whether a GPU can be used at all. Meanings follow
/// NVIDIA's catalogue, <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>.
pub const XIDS: &[Xid] = &[
    xid(13, Blame::Program, "a kernel ran out of bounds or was illegal", SANITIZE),
    xid(31, Blame::Program, "a program touched memory that is not its own", SANITIZE),
    xid(32, Blame::Program, "the commands that a program sent were invalid", RERUN),
    xid(43, Blame::Program, "a program's work failed and was stopped", RERUN),
    xid(
        45,
        Blame::Nobody,
        "work was removed: after a fault, or on exit",
        "look at what came before it",
    ),
    xid(46, Blame::Gpu, "the GPU stopped processing", RESET),
    xid(48, Blame::Gpu, "an ECC error in memory that was not corrected", RESET),
    xid(61, Blame::Gpu, "the GPU's power controller stopped", RESET),
    xid(62, Blame::Gpu, "the GPU's power controller halted", RESET),
    xid(
        63,
        Blame::Nobody,
        "faulty memory was found and is mapped out",
        "it takes effect with the next reset of the GPU",
    ),
    xid(64, Blame::Gpu, "faulty memory was found and stays in use", RESET),
    xid(68, Blame::Program, "the video decoder met an error", RERUN),
    xid(69, Blame::Program, "a program used the graphics engine wrongly", RERUN),
    xid(
        74,
        Blame::Gpu,
        "an NVLink connection failed",
        "nvidia-smi nvlink -e counts its errors; reset the GPUs that it joins",
    ),
    xid(
        79,
        Blame::Gpu,
        "the GPU has fallen off the bus",
        "check power, cooling and seat of the card; reboot",
    ),
    xid(92, Blame::Nobody, "many ECC errors were corrected", "watch whether 48 or 64 follow"),
    xid(
        94,
        Blame::Program,
        "an ECC error hit one program, which must end",
        "run that program again; reset the GPU when it is idle",
    ),
    xid(95, Blame::Gpu, "an ECC error hit every program on the GPU", RESET),
    xid(109, Blame::Gpu, "switching between programs took too long", RESET),
    xid(119, Blame::Gpu, "the GPU's firmware (GSP) does not answer", RESET),
    xid(120, Blame::Gpu, "the GPU's firmware (GSP) failed", RESET),
    xid(
        121,
        Blame::Nobody,
        "an error on the link to the CPU was corrected",
        "watch whether it comes back",
    ),
    xid(140, Blame::Gpu, "an ECC error could not be recovered from", RESET),
    xid(143, Blame::Gpu, "the GPU could not be initialised", RESET),
    xid(
        154,
        Blame::Gpu,
        "the driver wants the GPU reset, or a reboot",
        "nvidia-smi -q shows it as GPU Recovery Action",
    ),
];

/// What is said of a number that the table has not.
const UNKNOWN: Xid = xid(
    0,
    Blame::Gpu,
    "a fault that this version has no words for",
    "look it up in NVIDIA's catalogue of Xid errors",
);

/// What a number means; for one that is not in the table a row that says so.
pub fn meaning(code: u64) -> Xid {
    let known = XIDS.iter().find(|xid| xid.code == code);
    known.map_or(Xid { code, ..UNKNOWN }, |xid| *xid)
}

/// Events of one GPU that are told one by one.
pub const RECENT: usize = 16;

/// What was seen on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Xids {
    /// Whether they are watched, or why not.
    pub watched: Reading<()>,
    /// The last ones, the newest first.
    pub recent: Vec<XidSeen>,
    /// How many since the start, by number.
    pub counts: BTreeMap<u64, u64>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XidSeen {
    /// When.
    pub at: Stamp,
    /// How long before the moment that is shown, in milliseconds.
    pub age_ms: u64,
    /// What.
    pub xid: Xid,
    /// In which MIG instance: GPU instance and compute instance.
    pub instance: (Option<u32>, Option<u32>),
}

impl Xids {
    /// Of a GPU of which nobody said anything.
    pub const fn unwatched() -> Self {
        Self {
            watched: Reading::Absent(Why::NotAsked),
            recent: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// The newest that is not older than `within_ms`.
    pub fn newest(&self, within_ms: u64) -> Option<&XidSeen> {
        self.recent.first().filter(|seen| seen.age_ms <= within_ms)
    }
}

/// What was seen on a GPU, or in a MIG instance, up to a moment.
pub(super) fn of(history: &History, gpu: &GpuSample, at_ms: u64) -> Xids {
    let tick = history.gpu_tick();
    let (uuid, mine) = place(gpu);
    let watched = tick.and_then(|tick| tick.xid.watched.iter().find(|row| row.gpu == *uuid));
    let mut seen = Xids {
        watched: watched.map_or(Reading::Absent(Why::NotAsked), |row| row.state),
        ..Xids::unwatched()
    };
    for event in history.xids().filter(|event| event.gpu == *uuid && mine(event)).rev() {
        // An event arrives between two looks: the look that brings it may be stamped before it.
        if event.at.boot_ms > at_ms.saturating_add(LATE_MS) || seen.recent.len() >= RECENT {
            continue;
        }
        seen.recent.push(XidSeen {
            at: event.at,
            age_ms: at_ms.saturating_sub(event.at.boot_ms),
            xid: meaning(event.code),
            instance: (event.gpu_instance, event.compute_instance),
        });
    }
    if gpu.mig.is_none() {
        seen.counts = history.xid_counts(uuid).collect();
    }
    seen
}

/// An event may be this much younger than the look that brings it, in milliseconds.
const LATE_MS: u64 = 2_000;

/// Under which GPU the events are kept, and which of them are meant.
fn place(gpu: &GpuSample) -> (&GpuUuid, impl Fn(&XidEvent) -> bool) {
    let own = gpu.mig.as_ref().map(|mig| mig.gpu_instance.get());
    let mine = move |event: &XidEvent| match own {
        // A fault of the whole GPU is one of each instance.
        Some(own) => event.gpu_instance.is_none() || event.gpu_instance == own,
        None => true,
    };
    (gpu.mig.as_ref().map_or(&gpu.uuid, |mig| &mig.parent), mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_says_something() {
        assert!(XIDS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for row in XIDS {
            assert!(!row.meaning.ends_with('.') && !row.advice.ends_with('.'), "{}", row.code);
            assert!(row.meaning.len() <= 46, "{}", row.meaning);
        }
        assert_eq!(meaning(31).blame, Blame::Program);
        assert_eq!((meaning(777).code, meaning(777).blame), (777, Blame::Gpu));
    }
}
