//! The driver, through its management library NVML.

mod calls;
mod events;
mod fault;
mod lists;
mod others;
mod pace;
mod raw;
mod rest;
mod rows;
mod session;
mod slow;
mod subject;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use nvml_wrapper::error::NvmlError;

use self::calls::Calls;
use self::events::Watch;
use self::fault::Fault;
use self::rest::{Reach, Rest};
use self::session::Session;
use self::subject::Facts;
use super::{Eyes, Progress, Source, SourceError, Wants};
use crate::ids::{GpuIndex, Stamp};
use crate::sample::{DriverInfo, GpuSample, GpuTick, Nonsense, Reading, Tick, Why, XidReport};

/// The name under which every driver package installs the library.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// The longest time between two attempts to open the library.
const LONGEST_WAIT_MS: u64 = 30_000;
/// The shortest.
const SHORTEST_WAIT_MS: u64 = 1_000;

/// What to open, and what to believe.
#[derive(Debug, Clone)]
pub struct NvmlOptions {
    /// A name that the loader finds, or a path.
    pub library: OsString,
    /// `/proc/sys/kernel/pid_max`: a pid above it is no process of this machine.
    pub pid_max: u32,
    /// Whether faults that the driver reports (XID) are watched for: of use to whoever looks for a
    /// while.
    pub events: bool,
}

/// Reads every GPU through NVML. The library is opened by the first [`Source::next`], so that an
/// opening that hangs does so on the source's own thread, announced like every other call.
pub struct NvmlSource {
    options: NvmlOptions,
    calls: Calls,
    session: Option<Session>,
    /// GPUs of earlier sessions: one that is missing in the next is lost and not forgotten.
    remembered: Vec<(GpuIndex, Facts)>,
    seq: u64,
    pause: Pause,
    /// Which GPUs may be touched.
    rest: Rest,
    /// What the newest session said of the driver.
    driver: Option<DriverInfo>,
    /// Until when an answer of a single device that calls for a new session is not obeyed.
    obey_from_ms: u64,
    events: Events,
    /// Whether this look is at GPUs that sleep, too: the user asked for it.
    waking: bool,
    /// Whether the next one has to be.
    wake_due: bool,
    /// Whether the session is to be closed as soon as nobody else has the library open.
    lets_go: bool,
}

/// Whether events are watched for.
enum Events {
    Off,
    /// Begins with the first GPU that is seen.
    Wanted,
    On(Watch),
}

impl Events {
    /// Whether nobody else has the library open: only then does closing it close it.
    fn let_go(&mut self, now: Stamp) -> bool {
        match self {
            Self::On(watch) => watch.let_go(now.boot_ms),
            Self::Off | Self::Wanted => true,
        }
    }

    /// Tells what came since the last look, and goes on with the GPUs of this one unless it was told
    /// to let go. One that sleeps is left alone.
    fn report(
        &mut self,
        gpus: &[GpuSample],
        goes_on: bool,
        library: &OsStr,
        clock: fn() -> Stamp,
    ) -> XidReport {
        if matches!(self, Self::Wanted) {
            let watch = Watch::spawn(library.to_owned(), clock);
            *self = watch.map_or(Self::Off, Self::On);
        }
        let Self::On(watch) = self else { return XidReport::default() };
        let silent = |gpu: &GpuSample| gpu.mig.is_some() || gpu.memory.why() == Some(Why::Asleep);
        let awake = gpus.iter().filter(|gpu| !silent(gpu));
        let target = |gpu: &GpuSample| (gpu.uuid.clone(), gpu.pci_bus_id.value().cloned());
        if goes_on {
            watch.want(awake.map(target).collect());
        }
        watch.report(clock().boot_ms)
    }
}

/// How long the library is left alone after an opening that failed.
#[derive(Debug, Default)]
struct Pause {
    until_ms: u64,
    length_ms: u64,
    error: Option<SourceError>,
}

impl NvmlSource {
    /// Announces its calls on `progress` and stamps them with `clock`.
    pub fn new(options: NvmlOptions, progress: Arc<Progress>, clock: fn() -> Stamp) -> Self {
        let events = if options.events { Events::Wanted } else { Events::Off };
        Self {
            events,
            options,
            calls: Calls::new(progress, clock),
            session: None,
            remembered: Vec::new(),
            seq: 0,
            pause: Pause::default(),
            rest: Rest::default(),
            driver: None,
            obey_from_ms: 0,
            waking: false,
            wake_due: false,
            lets_go: false,
        }
    }

    /// Wakes no GPU that sleeps, as `eyes` see it; with `let_sleep` it also lets go of one that
    /// nobody has used for a minute.
    #[must_use]
    pub fn sparing(mut self, eyes: Eyes, let_sleep: bool) -> Self {
        self.rest = Rest::new(eyes, let_sleep);
        self
    }

    fn open(&mut self, reach: &Reach, now: Stamp) -> Result<Session, SourceError> {
        if let Some(error) = &self.pause.error
            && now.boot_ms < self.pause.until_ms
        {
            return Err(error.clone());
        }
        self.calls.reopen();
        let library = &self.options.library;
        let opened = Session::open(library, &self.calls, reach, &self.remembered, now);
        match &opened {
            Ok(session) => {
                self.driver = Some(session.driver.clone());
                self.pause = Pause::default();
                self.remember(session.facts());
            }
            Err(error) => self.pause.after(error, now),
        }
        opened
    }

    /// What was left out of a session is not forgotten.
    fn remember(&mut self, facts: Vec<(GpuIndex, Facts)>) {
        let old = std::mem::replace(&mut self.remembered, facts);
        for known in old.into_iter().filter(|(_, facts)| facts.uuid_known) {
            if !self.remembered.iter().any(|(_, facts)| facts.uuid == known.1.uuid) {
                self.remembered.push(known);
            }
        }
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            self.remember(session.facts());
            session.close(&self.calls);
        }
    }

    /// A session with the GPUs that the driver has now.
    fn session(&mut self, reach: &Reach, now: Stamp) -> Result<Session, SourceError> {
        if let Some(session) = &self.session {
            let holds = session.holds(&self.calls, reach) == Ok(true);
            self.lets_go = !holds;
            // While somebody else has the library open, closing it would change nothing: until it is
            // let go this look is as good as the last.
            if !holds && self.events.let_go(now) {
                self.close();
            } else if !holds {
                // The user's word is kept for the look that can follow it.
                self.wake_due = self.waking;
            }
        }
        if let Some(session) = self.session.take() {
            return Ok(session);
        }
        self.lets_go = false;
        self.open(reach, now)
    }

    fn look(&mut self, reach: &Reach, wants: Wants, now: Stamp) -> Result<GpuTick, SourceError> {
        let mut tick = GpuTick {
            seq: self.seq,
            at: now,
            took_ms: 0,
            driver_calls: 0,
            driver: self.driver.clone().unwrap_or_else(unasked),
            gpus: Vec::new(),
            nonsense: Nonsense::default(),
            xid: XidReport::default(),
        };
        if *reach == Reach::Only(Vec::new()) {
            // Not even the library is opened while every GPU sleeps.
            self.events.let_go(now);
            self.close();
        } else {
            let mut session = self.session(reach, now)?;
            (tick.gpus, tick.nonsense) =
                session.look(&self.calls, self.options.pid_max, (wants, self.waking), now);
            tick.driver = session.driver.clone();
            self.session = Some(session);
            if self.calls.ended().is_none() {
                let clock = self.calls.clock();
                let (goes_on, library) = (!self.lets_go, &self.options.library);
                tick.xid = self.events.report(&tick.gpus, goes_on, library, clock);
            }
        }
        Ok(tick)
    }

    /// Adds the GPUs that were left alone, and lets go of those that nobody has used for long.
    fn rest(&mut self, tick: &mut GpuTick, now: Stamp) {
        let aside = self.rest.left_alone(&self.remembered);
        if self.rest.looked(&tick.gpus, now.boot_ms) {
            self.events.let_go(now);
            self.close();
        }
        if !aside.is_empty() {
            tick.gpus.extend(aside);
            tick.gpus.sort_by_key(|gpu| gpu.index);
        }
    }
}

/// A driver that was never asked, since all GPUs sleep.
const fn unasked() -> DriverInfo {
    DriverInfo {
        version: Reading::Absent(Why::Asleep),
        cuda: Reading::Absent(Why::Asleep),
        nvml: Reading::Absent(Why::Asleep),
    }
}

impl Source for NvmlSource {
    fn next(&mut self, now: Stamp, wants: Wants) -> Result<Option<Tick>, SourceError> {
        let began = self.calls.now();
        self.calls.begin(now);
        let asked = self.calls.take_wake();
        self.waking = asked | std::mem::take(&mut self.wake_due);
        let reach = self.rest.reach(now.boot_ms, self.waking);
        let mut tick = self.look(&reach, wants, now)?;
        // One device alone may call for a new session for ever: it gets one, and then not before
        // a while has passed, so that it cannot take the others down.
        let ended = self.calls.ended().is_some() && now.boot_ms >= self.obey_from_ms;
        if ended && self.events.let_go(now) {
            self.obey_from_ms = now.boot_ms + LONGEST_WAIT_MS;
            self.close();
            tick = self.look(&reach, wants, now)?;
        }
        self.rest(&mut tick, now);
        self.seq += 1;
        tick.took_ms = self.calls.now().since(began) as u32;
        tick.driver_calls = self.calls.made();
        Ok(Some(Tick::Gpus(tick)))
    }
}

impl Drop for NvmlSource {
    fn drop(&mut self) {
        self.close();
    }
}

impl Pause {
    /// Doubles with every failure.
    fn after(&mut self, error: &SourceError, now: Stamp) {
        self.length_ms = (self.length_ms * 2).clamp(SHORTEST_WAIT_MS, LONGEST_WAIT_MS);
        self.until_ms = now.boot_ms + self.length_ms;
        self.error = Some(error.clone());
    }
}

/// Why the library could not be opened.
fn open_error(path: &OsStr, error: NvmlError) -> SourceError {
    let path = path.display();
    match error {
        NvmlError::LibloadingError(error) => SourceError::NoLibrary(error.to_string()),
        NvmlError::FailedToLoadSymbol(symbol) => {
            SourceError::NoLibrary(format!("{path} is not the driver's library: {symbol}"))
        }
        other => source_error("nvmlInit_v2", other.into()),
    }
}

/// A fault of a call without which nothing else can be asked.
fn source_error(call: &'static str, fault: Fault) -> SourceError {
    match fault {
        Fault::Code(9) => SourceError::NoDriver,
        Fault::Code(18) => SourceError::VersionMismatch,
        Fault::Code(4 | 17) => SourceError::NoPermission,
        Fault::Code(12) => SourceError::NoLibrary(format!("{call} misses a library of its own")),
        Fault::Code(code) => SourceError::Driver { call, code },
        Fault::NoSymbol => SourceError::NoLibrary(format!("the library has no {call}")),
        Fault::Nonsense | Fault::Spared => SourceError::Driver { call, code: 999 },
    }
}
