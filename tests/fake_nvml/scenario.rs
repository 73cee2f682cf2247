//! What the scenario file can say.

use serde::Deserialize;

const GIB: i64 = 1 << 30;

/// The whole file. Sizes are in bytes, -1 is the driver's "not available".
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) driver: String,
    pub(crate) nvml: String,
    /// `13000` for 13.0.
    pub(crate) cuda: i32,
    /// Counts reloads of the driver: after a change every call answers UNINITIALIZED until the
    /// library is initialised again.
    pub(crate) reloads: u32,
    /// The `_v3` lists fill 32-byte rows, as those of the first R535 drivers.
    pub(crate) wide_v3: bool,
    /// A process that is dead or a zombie in `/proc` is listed no more.
    pub(crate) follow_pids: bool,
    /// How long the memory of a dead process stays, with `follow_pids`.
    pub(crate) free_after_ms: u64,
    pub(crate) count_calls: bool,
    /// Opened so that it attaches no GPU it knows none, as the library of driver 580.
    pub(crate) no_attach_knows_none: bool,
    /// How often the scenario's file is looked at; 0 is at every call. For measurements: a look costs
    /// more than most answers.
    pub(crate) reread_ms: u64,
    pub(crate) gpu: Vec<Gpu>,
    pub(crate) error: Vec<Failure>,
    pub(crate) stall: Vec<Stall>,
    pub(crate) crash: Vec<Stall>,
    pub(crate) burst: Vec<Burst>,
    /// XID events, delivered once each and in order.
    pub(crate) event: Vec<Event>,
    pub(crate) generate: Option<Generate>,
}

/// An XID event.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    #[serde(default)]
    pub(crate) gpu: u32,
    pub(crate) xid: u64,
    pub(crate) gi: Option<u32>,
    pub(crate) ci: Option<u32>,
}

/// Many equal GPUs, behind those that are listed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generate {
    pub(crate) gpus: u32,
    pub(crate) procs: u32,
    #[serde(default = "first_pid")]
    pub(crate) first_pid: u32,
    /// Of one process.
    #[serde(default = "process_bytes")]
    pub(crate) bytes: i64,
}

/// A GPU.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Gpu {
    /// Empty: made from the index.
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) minor: Option<u32>,
    /// Empty: made from the index.
    pub(crate) pci: String,
    pub(crate) total: i64,
    pub(crate) reserved: i64,
    /// Used by nobody who is listed.
    pub(crate) unaccounted: i64,
    /// Unified memory: there is none of its own to tell of.
    pub(crate) unified: bool,
    /// Figures that are given out as they stand.
    pub(crate) raw_memory: Option<RawMemory>,
    /// Of the multiprocessors and of the memory, in percent.
    pub(crate) utilization: Option<[u32; 2]>,
    pub(crate) temperature: Option<u32>,
    pub(crate) power_mw: Option<u32>,
    pub(crate) power_limit_mw: Option<u32>,
    /// Of the multiprocessors and of the memory, in MHz.
    pub(crate) clocks: Option<[u32; 2]>,
    pub(crate) throttle: u64,
    pub(crate) performance_state: u32,
    pub(crate) fan: Option<u32>,
    /// To and from the GPU, in KiB a second.
    pub(crate) pcie: Option<[u32; 2]>,
    pub(crate) persistence: bool,
    /// Whether MIG mode is on; without a word the GPU knows no MIG.
    pub(crate) mig: Option<bool>,
    /// Off the bus: every call answers `GPU_IS_LOST`.
    pub(crate) lost: bool,
    /// Figures change from second to second.
    pub(crate) wobble: bool,
    /// The card has no events.
    pub(crate) no_events: bool,
    pub(crate) process: Vec<Process>,
    pub(crate) instance: Vec<Instance>,
}

/// A MIG instance. Its processes are in its GPU's lists too.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Instance {
    pub(crate) uuid: String,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) gi: u32,
    pub(crate) ci: u32,
    pub(crate) total: i64,
    #[serde(default)]
    pub(crate) reserved: i64,
    #[serde(default)]
    pub(crate) process: Vec<Process>,
}

/// Answers of the memory calls.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMemory {
    pub(crate) total: i64,
    pub(crate) reserved: i64,
    pub(crate) free: i64,
    pub(crate) used: i64,
}

/// A row of one list or more; a second row of the same pid stands for another figure in another
/// list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) bytes: i64,
    /// Letters out of `CGM`: compute, graphics, MPS.
    #[serde(default = "compute")]
    pub(crate) kinds: String,
    /// Shares of the multiprocessors, one a sample; none is idle.
    #[serde(default)]
    pub(crate) sm: Samples,
    /// The stamp of the samples; without one they are of now.
    pub(crate) stamp: Option<u64>,
    pub(crate) gi: Option<u32>,
    pub(crate) ci: Option<u32>,
    /// Overrides `follow_pids`.
    pub(crate) follow: Option<bool>,
    /// Stays listed when it is dead: while one of its `survivors` lives, or for ever without any.
    #[serde(default)]
    pub(crate) sticky: bool,
    #[serde(default)]
    pub(crate) survivors: Vec<u32>,
}

/// `sm = 40` or `sm = [20, 60]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum Samples {
    #[default]
    Idle,
    One(u32),
    Many(Vec<u32>),
}

impl Samples {
    pub(crate) fn all(&self) -> &[u32] {
        match self {
            Self::Idle => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// A call that fails. `call` may end in `*`; without `gpu` it fails on each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) call: String,
    pub(crate) gpu: Option<u32>,
    pub(crate) code: u32,
}

/// A call that does not return while this stands in the file, or one that takes its process down.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stall {
    pub(crate) call: String,
    pub(crate) gpu: Option<u32>,
}

/// Processes that come and go together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    #[serde(default)]
    pub(crate) gpu: u32,
    pub(crate) procs: u32,
    /// They come once in this time.
    pub(crate) every_ms: u64,
    /// And stay so long.
    pub(crate) for_ms: u64,
    #[serde(default = "first_burst_pid")]
    pub(crate) first_pid: u32,
    #[serde(default = "process_bytes")]
    pub(crate) bytes: i64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            driver: "580.159.04".to_owned(),
            nvml: "13.580.159.04".to_owned(),
            cuda: 13_000,
            reloads: 0,
            wide_v3: false,
            follow_pids: false,
            free_after_ms: 0,
            count_calls: false,
            no_attach_knows_none: false,
            reread_ms: 0,
            gpu: Vec::new(),
            error: Vec::new(),
            stall: Vec::new(),
            crash: Vec::new(),
            burst: Vec::new(),
            event: Vec::new(),
            generate: None,
        }
    }
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            uuid: String::new(),
            name: "NVIDIA H200".to_owned(),
            minor: None,
            pci: String::new(),
            total: 140 * GIB,
            reserved: 644_939_776,
            unaccounted: 0,
            unified: false,
            raw_memory: None,
            utilization: Some([0, 0]),
            temperature: Some(31),
            power_mw: Some(76_000),
            power_limit_mw: Some(700_000),
            clocks: Some([345, 3201]),
            throttle: 0,
            performance_state: 0,
            fan: None,
            pcie: Some([0, 0]),
            persistence: true,
            mig: Some(false),
            lost: false,
            wobble: false,
            no_events: false,
            process: Vec::new(),
            instance: Vec::new(),
        }
    }
}

impl Scenario {
    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut scenario: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if let Some(generate) = scenario.generate.take() {
            scenario.gpu.extend((0..generate.gpus).map(|gpu| generate.gpu(gpu)));
        }
        for (index, gpu) in scenario.gpu.iter_mut().enumerate() {
            if gpu.uuid.is_empty() {
                gpu.uuid = format!("GPU-00000000-0000-0000-0000-{index:012}");
            }
            if gpu.pci.is_empty() {
                gpu.pci = format!("00000000:{:02X}:00.0", 0x1B + index);
            }
        }
        Ok(scenario)
    }
}

impl Generate {
    fn gpu(&self, gpu: u32) -> Gpu {
        let process = |n: u32| Process {
            pid: self.first_pid + gpu * self.procs + n,
            bytes: self.bytes,
            kinds: compute(),
            sm: if n.is_multiple_of(3) { Samples::One(n * 7 % 100) } else { Samples::Idle },
            stamp: None,
            gi: None,
            ci: None,
            follow: None,
            sticky: false,
            survivors: Vec::new(),
        };
        Gpu {
            utilization: Some([60, 40]),
            wobble: true,
            process: (0..self.procs).map(process).collect(),
            ..Gpu::default()
        }
    }
}

const fn first_pid() -> u32 {
    10_000
}

const fn first_burst_pid() -> u32 {
    500_000
}

const fn process_bytes() -> i64 {
    256 << 20
}

fn compute() -> String {
    "C".to_owned()
}
