//! What a session is told from outside, and what it opens with that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::analyze::Moment;
use crate::analyze::alerts::AlertRules;
use crate::host::Root;
use crate::host::absence::{self, Failure};
use crate::host::power::Power;
use crate::ids::Stamp;
use crate::runtime::alerts::Actions;
use crate::runtime::clock;
use crate::runtime::isolate::{Isolated, Plan};
use crate::runtime::probing::Probing;
use crate::runtime::reload::Reload;
use crate::sample::{Absence, Tick};
use crate::source::nvml::{LIBRARY, NvmlOptions, NvmlSource};
use crate::source::{Progress, Source, SourceError, Wants};
use crate::units::Bytes;

/// What the view is told from outside.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Milliseconds between two looks.
    pub interval_ms: u64,
    /// The driver's library; empty for the usual one.
    pub library: String,
    /// Only these GPUs: indexes or beginnings of UUIDs; empty for all.
    pub gpus: Vec<String>,
    /// Without use for this long a process is idle, in milliseconds.
    pub idle_after_ms: u64,
    /// The request that fragmentation is judged by.
    pub request: Option<Bytes>,
    /// What somebody wants to start: every fix says whether it is enough for that.
    pub need: Option<Bytes>,
    /// Whether allocators are read.
    pub allocator: bool,
    /// Whether inference servers are asked about their memory.
    pub servers: bool,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// Whether a GPU that nobody uses is let go, so that it can sleep.
    pub let_sleep: bool,
    /// Whether GPUs that sleep are asked all the same, which wakes them.
    pub wake: bool,
    /// Whether the driver calls are made in a process of their own.
    pub isolate: bool,
    /// What the user wants to be told of.
    pub alerts: AlertRules,
    /// And how.
    pub alert_actions: Actions,
    /// How the settings are read again.
    pub reload: Reload,
}

impl Options {
    /// The name by which the driver's library is opened.
    pub fn library_name(&self) -> &str {
        if self.library.is_empty() { LIBRARY } else { &self.library }
    }
}

/// Makes the real probe of processes.
pub fn probe(options: &Options) -> impl FnOnce() -> Probing + Send + use<> {
    let (allocator, servers) = (options.allocator, options.servers);
    move || Probing::new(allocator, servers)
}

/// The real source: the driver, in this process or in one of its own.
pub enum Driver {
    /// In this process.
    Here(Box<NvmlSource>),
    /// In one of its own.
    Apart(Box<Isolated>),
}

impl Source for Driver {
    fn next(&mut self, now: Stamp, wants: Wants) -> Result<Option<Tick>, SourceError> {
        match self {
            Self::Here(source) => source.next(now, wants),
            Self::Apart(source) => source.next(now, wants),
        }
    }
}

/// The real source, for whoever looks for a while: it watches for faults, too.
pub fn driver(options: &Options, progress: &Arc<Progress>) -> Driver {
    opened(options, progress, true)
}

/// The real source, for a few looks.
pub fn driver_for_a_look(options: &Options, progress: &Arc<Progress>) -> Driver {
    opened(options, progress, false)
}

fn opened(options: &Options, progress: &Arc<Progress>, events: bool) -> Driver {
    if !options.isolate {
        return Driver::Here(Box::new(nvml(options, progress, events)));
    }
    let mut arguments: Vec<OsString> = ["driver", "--parent"].map(Into::into).into();
    arguments.extend([std::process::id().to_string().into(), "--library".into()]);
    arguments.push(options.library_name().into());
    arguments.extend(options.let_sleep.then(|| "--let-sleep".into()));
    arguments.extend(options.wake.then(|| "--wake".into()));
    arguments.extend(events.then(|| "--events".into()));
    let plan = Plan::of_self(arguments, options.interval_ms);
    Driver::Apart(Box::new(Isolated::new(plan, Arc::clone(progress))))
}

/// The driver, in this process.
pub fn nvml(options: &Options, progress: &Arc<Progress>, events: bool) -> NvmlSource {
    let pid_max = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    // Without /proc no pid can be judged; the kernel's own upper bound is 2^22.
    let pid_max = pid_max.and_then(|text| text.trim().parse().ok()).unwrap_or(1 << 22);
    let nvml = NvmlOptions { library: options.library_name().into(), pid_max, events };
    let source = NvmlSource::new(nvml, Arc::clone(progress), clock::now);
    if options.wake {
        return source;
    }
    let mut power = Power::new(Root::new(root()));
    source.sparing(Box::new(move || power.look()), options.let_sleep)
}

/// In debug builds `VRAMLENS_TEST_ROOT` names a tree that stands for the machine.
pub fn root() -> PathBuf {
    #[cfg(debug_assertions)]
    if let Some(root) = std::env::var_os("VRAMLENS_TEST_ROOT") {
        return root.into();
    }
    PathBuf::from("/")
}

/// What the machine shows where a driver should be.
pub fn absent(error: &SourceError, library: &str) -> Absence {
    absent_below(Path::new("/"), error, library)
}

/// As [`absent`], of a tree that stands for the machine.
pub fn absent_below(root: &Path, error: &SourceError, library: &str) -> Absence {
    let failure = match error {
        SourceError::NoLibrary(_) => Failure::NoLibrary,
        SourceError::VersionMismatch => Failure::Mismatch,
        SourceError::NoGpu => Failure::NoGpu,
        SourceError::NoPermission => Failure::NoPermission,
        _ => Failure::Other,
    };
    let detail = match error {
        SourceError::NoLibrary(detail) => detail.clone(),
        other => other.to_string(),
    };
    absence::look(root, failure, library, &detail)
}

/// The newest moment of a live session without peculiarities.
pub const fn blank(now: Stamp, interval_ms: u64) -> Moment {
    Moment {
        now,
        at_boot_ms: None,
        replay: false,
        interval_ms,
        in_flight: None,
        dropped_ticks: 0,
        idle_after_ms: 600_000,
        request: None,
    }
}
