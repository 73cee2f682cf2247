//! One GPU or MIG instance that is asked: what is known of it for good, and what was learned about
//! which questions it can answer.

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;

use super::calls::Calls;
use super::fault::Fault;
use super::lists::{self, Lists};
use super::others::Others;
use super::pace::Pace;
use super::raw::{DeviceId, Library, List, RawMemory, RawProcess};
use super::rows::{self, Limits};
use super::slow::InTurns;
use crate::ids::{GpuIndex, GpuUuid};
use crate::sample::{GpuProc, Memory, MigInfo, Nonsense, Reading, UnreadLists, Why};
use crate::units::{Bytes, Milliwatts};

/// The library and the door to it.
#[derive(Clone, Copy)]
pub(super) struct Driver<'a> {
    pub(super) library: &'a Library,
    pub(super) calls: &'a Calls,
}

/// What does not change while the driver is loaded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    pub(super) uuid: GpuUuid,
    /// Whether the driver told the uuid, so that the GPU can be found again by it.
    pub(super) uuid_known: bool,
    pub(super) name: Reading<String>,
    pub(super) minor: Reading<u32>,
    pub(super) pci_bus_id: Reading<String>,
}

impl Facts {
    /// Of a GPU that cannot be asked.
    pub(super) fn unknown(index: GpuIndex, why: Why) -> Self {
        Self {
            uuid: GpuUuid::unknown(&index),
            uuid_known: false,
            name: Reading::Absent(why),
            minor: Reading::Absent(why),
            pci_bus_id: Reading::Absent(why),
        }
    }
}

/// What an administrator changes now and then: read every few seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    pub(super) power_limit: Reading<Milliwatts>,
    pub(super) mig_enabled: Reading<bool>,
    pub(super) persistence: Reading<bool>,
}

impl Settings {
    pub(super) const fn absent(why: Why) -> Self {
        Self {
            power_limit: Reading::Absent(why),
            mig_enabled: Reading::Absent(why),
            persistence: Reading::Absent(why),
        }
    }
}

/// A call, and what selects among its answers.
type Question = (&'static str, u32);

/// One thing to ask.
pub(super) struct Subject {
    pub(super) index: GpuIndex,
    pub(super) facts: Facts,
    pub(super) mig: Option<MigInfo>,
    /// How to ask it, or why that is not possible.
    pub(super) handle: Result<DeviceId, Fault>,
    pub(super) settings: Settings,
    /// When they were read, and when they are to be read again, in milliseconds since boot.
    pub(super) settings_ms: (u64, u64),
    /// Set by the first answer of a look that says so; nothing more is asked then.
    lost: bool,
    /// Calls, with what selects among their answers, that this device or driver does not support.
    silent: Vec<(Question, Fault)>,
    total: Option<Bytes>,
    rooms: [usize; 3],
    sample_room: usize,
    window: Window,
    pub(super) in_turns: InTurns,
    others: Others,
}

/// From where on samples of use count. The driver takes one every 140 ms or so, and an answer
/// without any means idle: a look that follows the last too soon counts the same samples again.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// Samples count that are later than this stamp of the driver's.
    after: u64,
    /// The greatest stamp so far.
    newest: u64,
    began_boot_ms: u64,
}

impl Window {
    const SHORTEST_MS: u64 = 500;

    /// Moves on to what has come since the last look.
    fn advance(&mut self, now_boot_ms: u64) {
        if now_boot_ms.saturating_sub(self.began_boot_ms) >= Self::SHORTEST_MS {
            self.began_boot_ms = now_boot_ms;
            self.after = self.newest;
        }
    }
}

/// What its lists say, and which of them are missing.
pub(super) type Listed = (Reading<Vec<GpuProc>>, UnreadLists);

impl Subject {
    pub(super) fn new(index: GpuIndex, handle: Result<DeviceId, Fault>, facts: Facts) -> Self {
        let why = handle.err().map_or(Why::NotYet, Fault::why);
        Self {
            index,
            facts,
            mig: None,
            handle,
            settings: Settings::absent(why),
            settings_ms: (0, 0),
            lost: false,
            silent: Vec::new(),
            total: None,
            rooms: [lists::START; 3],
            sample_room: lists::START,
            window: Window::default(),
            in_turns: InTurns::default(),
            others: Others::default(),
        }
    }

    /// The same, reached by a new handle.
    pub(super) fn with_handle(self, handle: Result<DeviceId, Fault>) -> Self {
        Self { handle, silent: Vec::new(), ..self }
    }

    /// When its settings were read, where any is there and that was before this look.
    pub(super) fn settings_earlier(&self, pace: Pace) -> Option<u64> {
        let Settings { power_limit, mig_enabled, persistence } = self.settings;
        let known = power_limit.value().is_some()
            || mig_enabled.value().is_some()
            || persistence.value().is_some();
        (known && !self.lost && self.settings_ms.0 != pace.at_ms()).then_some(self.settings_ms.0)
    }

    /// Since when a list that was not asked at this look is taken to be empty.
    pub(super) fn lists_earlier(&self, pace: Pace) -> Option<u64> {
        self.others.earlier(pace)
    }

    /// Starts a new look.
    pub(super) fn begin(&mut self) {
        self.lost = self.handle.is_err_and(Fault::is_lost);
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Questions that were not supported may be asked again.
    pub(super) fn forget_silence(&mut self) {
        self.silent.clear();
    }

    /// Keeps what a fault says of the device.
    fn note(&mut self, fault: Fault, question: Question) -> Fault {
        self.lost |= fault.is_lost();
        if fault.why() == Why::NotSupported || fault == Fault::NoSymbol {
            self.silent.push((question, fault));
        }
        fault
    }

    /// Whom to ask, unless it is known that there is no answer.
    fn may_ask(&self, question: Question) -> Result<DeviceId, Fault> {
        if self.lost {
            return Err(Fault::GPU_IS_LOST);
        }
        match self.silent.iter().find(|silent| silent.0 == question) {
            Some(silent) => Err(silent.1),
            None => self.handle,
        }
    }

    /// Asks one question.
    pub(super) fn ask<T, E: Into<Fault>>(
        &mut self,
        driver: Driver<'_>,
        question: Question,
        ask: impl FnOnce(&Library, DeviceId) -> Result<T, E>,
    ) -> Result<T, Fault> {
        let id = self.may_ask(question)?;
        driver
            .calls
            .make(question.0, Some(self.index), || ask(driver.library, id))
            .map_err(|fault| self.note(fault, question))
    }

    /// The same, by a function of the wrapper.
    pub(super) fn read<T>(
        &mut self,
        driver: Driver<'_>,
        question: Question,
        ask: impl FnOnce(Device<'_>) -> Result<T, NvmlError>,
    ) -> Reading<T> {
        self.ask(driver, question, |library, id| ask(library.device(id))).map_err(Fault::why).into()
    }

    /// Its memory: `_v2`, or the old call where that is missing, not supported, or wrong.
    pub(super) fn memory(
        &mut self,
        driver: Driver<'_>,
        nonsense: &mut Nonsense,
    ) -> Reading<Memory> {
        const V2: &str = "nvmlDeviceGetMemoryInfo_v2";
        const V1: &str = "nvmlDeviceGetMemoryInfo";
        let mut believed = |raw: RawMemory| {
            rows::memory(raw).ok_or_else(|| {
                nonsense.bad_memory += 1;
                Fault::Nonsense
            })
        };
        let newer = self.ask(driver, (V2, 0), Library::memory_v2).and_then(&mut believed);
        let memory = match newer {
            Err(fault) if older_may_know(fault) => {
                self.ask(driver, (V1, 0), Library::memory_v1).and_then(&mut believed)
            }
            answer => answer,
        };
        if let Ok(memory) = &memory {
            self.total = Some(memory.total);
        }
        memory.map_err(Fault::why).into()
    }

    /// Every process of its three lists, once, and which lists are missing. Absent without the compute
    /// list; another list that fails leaves its processes out.
    pub(super) fn processes(
        &mut self,
        driver: Driver<'_>,
        (lists, limits): (&mut Lists, Limits),
        (memory, pace): (Reading<Memory>, Pace),
        nonsense: &mut Nonsense,
    ) -> Listed {
        let mut unread = UnreadLists::default();
        let limits = Limits { total: self.total, ..limits };
        let compute = match self.list(driver, lists, List::Compute, limits) {
            Ok(rows) => rows,
            Err(fault) => {
                // Without the compute list the rest would pass for all there is.
                self.others = Others::default();
                return (Reading::Absent(fault.why()), unread);
            }
        };
        self.others.compare(memory, &compute);
        let mut got = vec![(List::Compute, compute)];
        let others = [(List::Graphics, &mut unread.graphics), (List::Mps, &mut unread.mps)];
        for (list, failed) in others {
            if !self.others.is_due(list, pace) {
                continue;
            }
            let answer = self.list(driver, lists, list, limits);
            self.others.keep(list, &answer, pace);
            match answer.map_err(Fault::why) {
                Ok(rows) => got.push((list, rows)),
                Err(Why::GpuLost) => {
                    self.others = Others::default();
                    return (Reading::Absent(Why::GpuLost), UnreadLists::default());
                }
                // A driver without such a list has nobody in it.
                Err(Why::NotSupported | Why::OldDriver) => {}
                Err(why) => *failed = Some(why),
            }
        }
        nonsense.failed_lists += unread.count();
        (Reading::Value(rows::merge(&got, limits, nonsense)), unread)
    }

    fn list(
        &mut self,
        driver: Driver<'_>,
        lists: &mut Lists,
        list: List,
        limits: Limits,
    ) -> Result<Vec<RawProcess>, Fault> {
        const ANY: &str = "nvmlDeviceGet*RunningProcesses";
        let question = (ANY, list as u32);
        let device = (self.may_ask(question)?, self.index);
        let room = &mut self.rooms[list as usize];
        lists
            .read((driver.library, driver.calls), device, list, room, limits)
            .map_err(|fault| self.note(fault, question))
    }

    /// Each process's use of the multiprocessors since the last look; whether that can be sampled.
    pub(super) fn sample_processes(
        &mut self,
        driver: Driver<'_>,
        processes: &mut [GpuProc],
    ) -> Reading<()> {
        let mut room = self.sample_room;
        self.window.advance(driver.calls.at().boot_ms);
        let after = self.window.after;
        let answer = lists::fill(&mut room, |room| {
            self.ask(driver, ("nvmlDeviceGetProcessUtilization", 0), |library, id| {
                library.utilization_samples(id, after, room)
            })
        });
        self.sample_room = room;
        let samples = match answer {
            Ok(samples) => samples,
            // Every process was idle.
            Err(Fault::NOT_FOUND) => Vec::new(),
            Err(fault) => {
                let why = fault.why();
                for process in processes {
                    process.sm = Reading::Absent(why);
                }
                return Reading::Absent(why);
            }
        };
        let stamps = samples.iter().map(|sample| sample.stamp);
        self.window.newest = stamps.fold(self.window.newest, u64::max);
        rows::spread(&samples, processes);
        Reading::Value(())
    }
}

fn older_may_know(fault: Fault) -> bool {
    fault.wants_older() || matches!(fault, Fault::NOT_SUPPORTED | Fault::Nonsense)
}
