//! One snapshot as JSON: a public contract. `assets/snapshot.schema.json` says the same to a
//! machine.
//!
//! - `schema` is [`SCHEMA`]. Within one number keys are only added; a key that is renamed, removed
//!   or changes its meaning makes a new number. Read what you know, ignore the rest.
//! - **An object is always there with all its keys. Only a leaf can be absent**, and then it is
//!   `{"absent": "why"}` with a reason of [`Why`]: never 0, never a guess. `jq`'s `numbers` and
//!   `strings` leave absent ones out: `.gpus[].memory.used_bytes | numbers`.
//! - `null` means: does not apply (`mig` of a whole GPU, `manager` of a process without one).
//! - The unit is the end of the name: `_bytes`, `_ms`, `_percent`, `_milliwatts`, `_celsius`,
//!   `_megahertz`, `_bytes_per_second`, `_bytes_per_minute`.
//! - A process is `pid` and `start` together: `start` is in clock ticks since boot, field 22 of
//!   `/proc/PID/stat`. A pid alone may be dead or somebody else's.
//! - The ledger adds up, in bytes, where it is not absent:
//!   `total + shared = processes + survivors + unaccounted + reserved + free`; an absent
//!   `reserved_bytes` (driver before R510) counts as 0 there, since `used` then includes it.
//! - Commands have their secrets taken out, and no text holds a control character.

mod gpu;
mod holder;
mod server;

use jiff::Timestamp;
use serde::Serialize;

use crate::analyze::{DriverCost, Freshness, Growth, View};
use crate::ids::{ProcId, Stamp};
use crate::report::RedactCommand;
use crate::report::clean::clean;
use crate::report::opened::names;
use crate::sample::{ProcSample, Reading, Why};
use crate::units::{Bytes, Percent};

pub(super) use holder::command;

pub use gpu::{Gpu, LedgerJson, MemoryJson};
pub use server::ServerJson;

pub use holder::{AllocatorJson, HolderJson, VerdictJson};

/// The number of this contract.
pub const SCHEMA: u32 = 1;

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program.
    pub version: &'static str,
    /// The moment, RFC 3339 in UTC.
    pub at: Reading<String>,
    /// The moment, in milliseconds since 1970.
    pub at_ms: u64,
    /// How current it is.
    pub freshness: FreshnessJson,
    /// The machine.
    pub host: Host,
    /// GPUs and MIG instances, in the driver's order, an instance behind its GPU.
    pub gpus: Vec<Gpu>,
    /// Who holds memory, or may: what the driver lists, and who it does not list.
    pub holders: Vec<HolderJson>,
    /// Who has a GPU's devices open while the driver has told of no GPU; empty as soon as it has.
    pub device_users: Vec<DeviceUserJson>,
    /// What could be seen.
    pub scan: Scan,
    /// Age of the driver's answers, in milliseconds.
    pub gpus_age_ms: Reading<u64>,
    /// Age of the kernel's answers, in milliseconds.
    pub procs_age_ms: Reading<u64>,
    /// Samples that were lost inside this program.
    pub dropped_ticks: u64,
    /// What asking the driver cost.
    pub driver_cost: Cost,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: Reading<String>,
    /// The driver's version.
    pub driver: Reading<String>,
    /// The newest CUDA version that the driver can run.
    pub cuda: Reading<String>,
    /// The version of the driver's library.
    pub nvml: Reading<String>,
    /// Whether pids are those of the machine; in another PID namespace the driver's pids can be
    /// strangers.
    pub host_pid_namespace: Reading<bool>,
    /// The container's runtime, `null` outside of containers.
    pub container: Option<String>,
    /// The user id that asked.
    pub euid: Reading<u32>,
}

/// What a scan of `/proc` covered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scan {
    /// Processes that exist.
    pub processes: Reading<u32>,
    /// Processes whose open files could not be read.
    pub unreadable: Reading<u32>,
}

/// A process that has a GPU's devices open while the driver does not answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceUserJson {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Its owner's name.
    pub user: Reading<String>,
    /// Its owner.
    pub uid: Reading<u32>,
    /// What it holds: never known here, for only the driver tells it.
    pub bytes: Reading<u64>,
    /// The device files that it has open, as they are called below `/dev`.
    pub devices: Vec<String>,
    /// Its command line, secrets taken out; the short name where arguments cannot be read.
    pub command: String,
}

/// What asking the driver cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Time in the driver, in milliseconds.
    pub took_ms: Reading<u32>,
    /// Calls.
    pub calls: Reading<u32>,
}

/// How current a figure is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreshnessJson {
    /// `live`, `stalled`, `replay`, `past`, `lost`, `starting`.
    pub state: &'static str,
    /// The driver call that hangs; `null` unless stalled and known.
    pub call: Option<String>,
    /// On which GPU; likewise.
    pub gpu: Option<u32>,
    /// For how long, in milliseconds; `null` unless stalled.
    pub stalled_ms: Option<u64>,
}

/// How memory moves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GrowthJson {
    /// `not_yet`, `steady` (within noise), `changing`, `trend`.
    pub kind: &'static str,
    /// The change; 0 where it is steady.
    pub bytes_per_minute: Reading<f64>,
    /// The standard error of a trend.
    pub error_bytes_per_minute: Reading<f64>,
    /// When the GPU is full at that slope: `null` unless that can be said.
    pub full_in_ms: Option<FullIn>,
}

/// When a GPU is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FullIn {
    /// At the steepest slope that the samples allow.
    pub earliest: u64,
    /// At the likely one.
    pub likely: u64,
    /// At the flattest.
    pub latest: u64,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProcessRef {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl From<ProcId> for ProcessRef {
    fn from(id: ProcId) -> Self {
        Self { pid: id.pid.0, start: id.start_ticks }
    }
}

impl Snapshot {
    /// A view as JSON. `redact` takes secrets out of the arguments of a command.
    pub fn new(view: &View, redact: RedactCommand) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            at: rfc3339(view.at),
            at_ms: view.at.wall_ms,
            freshness: freshness(&view.freshness),
            host: host(view),
            gpus: view.gpus.iter().map(|one| gpu::gpu(view, one)).collect(),
            holders: view.holders.iter().map(|one| holder::holder(view, one, redact)).collect(),
            device_users: view.device_users.iter().map(|one| device_user(one, redact)).collect(),
            scan: Scan {
                processes: or_not_yet(view.scan.map(|scan| scan.processes)),
                unreadable: or_not_yet(view.scan.map(|scan| scan.unreadable)),
            },
            gpus_age_ms: or_not_yet(view.gpus_age_ms),
            procs_age_ms: or_not_yet(view.procs_age_ms),
            dropped_ticks: view.dropped_ticks,
            driver_cost: Cost {
                took_ms: or_not_yet(view.driver_cost.map(|cost: DriverCost| cost.took_ms)),
                calls: or_not_yet(view.driver_cost.map(|cost| cost.calls)),
            },
        }
    }
}

/// What it holds only the driver could tell, and that does not answer.
fn device_user(process: &ProcSample, redact: RedactCommand) -> DeviceUserJson {
    DeviceUserJson {
        pid: process.id.pid.0,
        start: process.id.start_ticks,
        user: process.user.as_ref().map(|user| clean(user)),
        uid: process.uid,
        bytes: Reading::Absent(Why::TimedOut),
        devices: process.devices.value().map(names).unwrap_or_default(),
        command: command(process, redact),
    }
}

fn host(view: &View) -> Host {
    let driver = or_not_yet(view.driver.as_ref());
    let host = or_not_yet(view.host.as_ref());
    let text = |reading: Reading<&String>| reading.map(|text| clean(text));
    Host {
        name: text(host.and_then(|host| host.hostname.as_ref())),
        driver: text(driver.and_then(|driver| driver.version.as_ref())),
        cuda: text(driver.and_then(|driver| driver.cuda.as_ref())),
        nvml: text(driver.and_then(|driver| driver.nvml.as_ref())),
        host_pid_namespace: host.and_then(|host| host.host_pid_namespace),
        container: host
            .value()
            .and_then(|host| host.container.as_ref())
            .map(|container| clean(&container.runtime)),
        euid: host.map(|host| host.euid),
    }
}

fn freshness(freshness: &Freshness) -> FreshnessJson {
    let plain = |state| FreshnessJson { state, call: None, gpu: None, stalled_ms: None };
    match freshness {
        Freshness::Live => plain("live"),
        Freshness::Replay => plain("replay"),
        Freshness::Past => plain("past"),
        Freshness::Lost => plain("lost"),
        Freshness::Starting => plain("starting"),
        Freshness::Stalled { call, gpu, for_ms } => FreshnessJson {
            state: "stalled",
            call: call.as_deref().map(clean),
            gpu: gpu.map(|gpu| gpu.0),
            stalled_ms: Some(*for_ms),
        },
    }
}

pub(super) fn growth(growth: &Growth) -> GrowthJson {
    let (kind, slope, error, full_in_ms) = match *growth {
        Growth::NotYet => ("not_yet", None, None, None),
        Growth::Steady => ("steady", Some(0.0), None, None),
        Growth::Changing { per_minute } => ("changing", Some(per_minute.0), None, None),
        Growth::Trend { per_minute, error, full_in_ms } => {
            ("trend", Some(per_minute.0), Some(error.0), full_in_ms)
        }
    };
    GrowthJson {
        kind,
        bytes_per_minute: slope.map_or(Reading::Absent(Why::NotYet), finite),
        error_bytes_per_minute: error.map_or(Reading::Absent(Why::NotYet), finite),
        full_in_ms: full_in_ms.map(|[earliest, likely, latest]| FullIn {
            earliest,
            likely,
            latest,
        }),
    }
}

fn rfc3339(at: Stamp) -> Reading<String> {
    let ms = i64::try_from(at.wall_ms).ok();
    let time = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or(Reading::Absent(Why::Nonsense), |time| Reading::Value(format!("{time:.3}")))
}

fn or_not_yet<T>(value: Option<T>) -> Reading<T> {
    value.map_or(Reading::Absent(Why::NotYet), Reading::Value)
}

fn bytes(reading: Reading<Bytes>) -> Reading<u64> {
    reading.map(|bytes| bytes.0)
}

fn percent(reading: Reading<Percent>) -> Reading<f64> {
    // Through decimal digits: 97.3 must not become 97.30000305175781.
    reading.and_then(|percent| finite(percent.0.to_string().parse().unwrap_or(f64::NAN)))
}

/// JSON has no infinity.
const fn finite(value: f64) -> Reading<f64> {
    if value.is_finite() { Reading::Value(value) } else { Reading::Absent(Why::Nonsense) }
}
