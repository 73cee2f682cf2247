//! From one opening of the library to the next: the devices, in the driver's order, and a look at
//! all of them.

use std::ffi::OsStr;

use nvml_wrapper::bitmasks::InitFlags;

use super::SourceError;
use super::calls::Calls;
use super::fault::Fault;
use super::lists::Lists;
use super::pace::Pace;
use super::raw::{DeviceId, Library};
use super::rest::Reach;
use super::rows::Limits;
use super::subject::{Driver, Facts, Listed, Subject};
use super::{open_error, slow};
use crate::ids::{GpuIndex, GpuUuid, Stamp};
use crate::sample::{DriverInfo, GpuSample, Memory, MigInfo, Nonsense, Reading, Seldom, Why};
use crate::source::Wants;

/// How often settings, MIG instances and unsupported questions are looked at again.
const RARELY_MS: u64 = Seldom::Settings.rhythm_ms();

/// The opened driver.
pub(super) struct Session {
    library: Library,
    lists: Lists,
    pub(super) driver: DriverInfo,
    /// As the driver counts its GPUs; not asked where only some may be touched.
    count: Option<u32>,
    reach: Reach,
    subjects: Vec<Subject>,
    /// Looks so far.
    looks: u64,
}

/// What comes first in a look, since it is what people look for.
type Fast = (Reading<Memory>, Listed);

impl Session {
    /// Opens the library and finds every GPU that may be touched. One of `remembered` that is there
    /// no more is shown as lost.
    pub(super) fn open(
        path: &OsStr,
        calls: &Calls,
        reach: &Reach,
        remembered: &[(GpuIndex, Facts)],
        now: Stamp,
    ) -> Result<Self, SourceError> {
        let (library, count, mut subjects) = match reach {
            Reach::All => all(path, calls, remembered)?,
            Reach::Only(gpus) => some(path, calls, gpus)?,
        };
        let driver = driver_info(&library, calls);
        if *reach == Reach::All {
            for (index, facts) in remembered.iter().filter(|known| known.1.uuid_known) {
                if !subjects.iter().any(|subject| subject.facts.uuid == facts.uuid) {
                    let lost = Err(Fault::GPU_IS_LOST);
                    subjects.push(Subject::new(*index, lost, facts.clone()));
                }
            }
        }
        let lists = Lists::new(&library);
        let reach = reach.clone();
        let mut session = Self { library, lists, driver, count, reach, subjects, looks: 0 };
        session.refresh(calls, now);
        // From now on one after the other.
        let gpus = session.subjects.iter_mut().filter(|subject| subject.mig.is_none());
        let gpus: Vec<_> = gpus.collect();
        let apart_ms = RARELY_MS / (gpus.len() as u64).max(1);
        for (gpu, n) in gpus.into_iter().zip(1..) {
            gpu.settings_ms.1 = now.boot_ms + apart_ms * n;
        }
        Ok(session)
    }

    /// Whether the driver still has the GPUs that it had, and these are the ones that may be
    /// touched, or whether it must be opened again.
    pub(super) fn holds(&self, calls: &Calls, reach: &Reach) -> Result<bool, SourceError> {
        if self.reach != *reach {
            return Ok(false);
        }
        match self.count {
            Some(before) => Ok(count(&self.library, calls)? == before),
            None => Ok(true),
        }
    }

    /// Every GPU's index and facts, to be handed to the next session.
    pub(super) fn facts(&self) -> Vec<(GpuIndex, Facts)> {
        let gpus = self.subjects.iter().filter(|subject| subject.mig.is_none());
        gpus.map(|subject| (subject.index, subject.facts.clone())).collect()
    }

    /// Shuts the library down.
    pub(super) fn close(self, calls: &Calls) {
        calls.announce("nvmlShutdown", None, || drop(self));
    }

    /// One look at everything: memory and processes of all devices first, then the rest. With `all`
    /// nothing waits for its turn.
    pub(super) fn look(
        &mut self,
        calls: &Calls,
        pid_max: u32,
        (wants, all): (Wants, bool),
        now: Stamp,
    ) -> (Vec<GpuSample>, Nonsense) {
        let mut nonsense = Nonsense::default();
        let pace = Pace::new(self.looks, now.boot_ms, all);
        self.looks += 1;
        let driver = Driver { library: &self.library, calls };
        let mut fast: Vec<Fast> = Vec::with_capacity(self.subjects.len());
        for (place, subject) in self.subjects.iter_mut().enumerate() {
            subject.begin();
            let memory = subject.memory(driver, &mut nonsense);
            let lists = (&mut self.lists, Limits { pid_max, total: None });
            let known = (memory, pace.of(place));
            fast.push((memory, subject.processes(driver, lists, known, &mut nonsense)));
        }
        let samples = self
            .subjects
            .iter_mut()
            .zip(fast)
            .enumerate()
            .map(|(place, (subject, (memory, processes)))| {
                slow::complete(subject, driver, (wants, pace.of(place)), memory, processes)
            })
            .collect();
        self.refresh(calls, now);
        (samples, nonsense)
    }

    /// Reads what changes rarely, of every GPU whose time has come. Slow, so it comes after a look:
    /// what it finds shows in the next.
    fn refresh(&mut self, calls: &Calls, now: Stamp) {
        let due = |subject: &Subject| subject.mig.is_none() && now.boot_ms >= subject.settings_ms.1;
        if !self.subjects.iter().any(due) {
            return;
        }
        let mut known = std::mem::take(&mut self.subjects).into_iter().peekable();
        while let Some(mut gpu) = known.next() {
            // Its instances stand behind it.
            let is_instance = |subject: &Subject| subject.mig.is_some();
            let instances = std::iter::from_fn(|| known.next_if(is_instance)).collect();
            if due(&gpu) {
                let found = self.look_again(calls, now, &mut gpu);
                self.subjects.push(gpu);
                self.subjects.extend(same_again(found, instances));
            } else {
                self.subjects.push(gpu);
                self.subjects.extend(instances);
            }
        }
    }

    /// Reads what changes rarely of one GPU; gives its MIG instances.
    fn look_again(&mut self, calls: &Calls, now: Stamp, gpu: &mut Subject) -> Vec<Subject> {
        find_again(&mut self.library, calls, &self.reach, gpu);
        gpu.forget_silence();
        gpu.begin();
        slow::settings(gpu, Driver { library: &self.library, calls });
        gpu.settings_ms = (now.boot_ms, now.boot_ms + RARELY_MS);
        find_instances(&mut self.library, calls, gpu)
    }
}

type Opened = (Library, Option<u32>, Vec<Subject>);

fn library(path: &OsStr, calls: &Calls, flags: InitFlags) -> Result<Library, SourceError> {
    let call = if flags.is_empty() { "nvmlInit_v2" } else { "nvmlInitWithFlags" };
    calls.announce(call, None, || Library::open(path, flags)).map_err(|e| open_error(path, e))
}

/// Every GPU, by its number.
fn all(
    path: &OsStr,
    calls: &Calls,
    remembered: &[(GpuIndex, Facts)],
) -> Result<Opened, SourceError> {
    let mut library = library(path, calls, InitFlags::empty())?;
    let count = count(&library, calls)?;
    if count == 0 {
        return Err(SourceError::NoGpu);
    }
    let subjects =
        (0..count).map(|index| subject(&mut library, calls, GpuIndex(index), remembered)).collect();
    Ok((library, Some(count), subjects))
}

/// Some GPUs, by their address, so that no other is touched. Of driver 580 a library that attaches
/// none by itself knows none: then they are not read, since the usual opening would wake the others.
/// A library without the flag is older than GPUs that sleep.
fn some(path: &OsStr, calls: &Calls, gpus: &[(GpuIndex, String)]) -> Result<Opened, SourceError> {
    const CALL: &str = "nvmlDeviceGetHandleByPciBusId_v2";
    let mut library = library(path, calls, InitFlags::NO_ATTACH)
        .or_else(|_| library(path, calls, InitFlags::empty()))?;
    let mut subjects = Vec::with_capacity(gpus.len());
    for (index, address) in gpus {
        let handle = calls.make(CALL, Some(*index), || library.by_address(address));
        let handle = handle.map_err(|fault| match fault {
            Fault::NOT_FOUND => Fault::Spared,
            other => other,
        });
        let facts = match handle {
            Ok(id) => facts(Driver { library: &library, calls }, *index, id),
            Err(fault) => Facts::unknown(*index, fault.why()),
        };
        subjects.push(Subject::new(*index, handle, facts));
    }
    Ok((library, None, subjects))
}

fn count(library: &Library, calls: &Calls) -> Result<u32, SourceError> {
    const CALL: &str = "nvmlDeviceGetCount_v2";
    calls
        .make(CALL, None, || library.nvml().device_count())
        .map_err(|fault| super::source_error(CALL, fault))
}

fn driver_info(library: &Library, calls: &Calls) -> DriverInfo {
    let nvml = library.nvml();
    let version = calls.make("nvmlSystemGetDriverVersion", None, || nvml.sys_driver_version());
    let own = calls.make("nvmlSystemGetNVMLVersion", None, || nvml.sys_nvml_version());
    // This one opens the CUDA library.
    let cuda =
        calls.make("nvmlSystemGetCudaDriverVersion_v2", None, || nvml.sys_cuda_driver_version());
    let cuda = cuda.map(|number| format!("{}.{}", number / 1000, number % 1000 / 10));
    DriverInfo {
        version: version.map_err(Fault::why).into(),
        cuda: cuda.map_err(Fault::why).into(),
        nvml: own.map_err(Fault::why).into(),
    }
}

fn subject(
    library: &mut Library,
    calls: &Calls,
    index: GpuIndex,
    remembered: &[(GpuIndex, Facts)],
) -> Subject {
    const CALL: &str = "nvmlDeviceGetHandleByIndex_v2";
    let handle = calls.make(CALL, Some(index), || library.by_index(index.0));
    let facts = match handle {
        Ok(id) => facts(Driver { library, calls }, index, id),
        Err(fault) => Facts::unknown(index, fault.why()),
    };
    if facts.uuid_known {
        return Subject::new(index, handle, facts);
    }
    let known = remembered.iter().find(|known| known.0 == index && known.1.uuid_known);
    Subject::new(index, handle, known.map_or(facts, |known| known.1.clone()))
}

/// What is true for good of a device. A GPU that cannot tell its uuid is not lost sight of.
fn facts(driver: Driver<'_>, index: GpuIndex, id: DeviceId) -> Facts {
    let Driver { library, calls } = driver;
    let (device, gpu) = (library.device(id), Some(index));
    let uuid = calls.make("nvmlDeviceGetUUID", gpu, || device.uuid());
    let name = calls.make("nvmlDeviceGetName", gpu, || device.name());
    let minor = calls.make("nvmlDeviceGetMinorNumber", gpu, || device.minor_number());
    let pci = calls.make("nvmlDeviceGetPciInfo_v3", gpu, || device.pci_info());
    let uuid = uuid.ok().filter(|uuid| !uuid.is_empty());
    let unknown = Facts::unknown(index, Why::NotYet).uuid;
    Facts {
        uuid_known: uuid.is_some(),
        uuid: uuid.map_or(unknown, |uuid| GpuUuid::new(&uuid)),
        name: name.map_err(Fault::why).into(),
        minor: minor.map_err(Fault::why).into(),
        pci_bus_id: pci.map(|pci| pci.bus_id).map_err(Fault::why).into(),
    }
}

/// Looks again for a GPU that could not be asked: after a reset it is a new one to the library.
fn find_again(library: &mut Library, calls: &Calls, reach: &Reach, gpu: &mut Subject) {
    if gpu.handle.is_ok() && !gpu.is_lost() {
        return;
    }
    let at = Some(gpu.index);
    let found = if let Some(address) = reach.address(gpu.index) {
        calls.make("nvmlDeviceGetHandleByPciBusId_v2", at, || library.by_address(address))
    } else if gpu.facts.uuid_known {
        let uuid = gpu.facts.uuid.clone();
        calls.make("nvmlDeviceGetHandleByUUID", at, || library.by_uuid(&uuid.0))
    } else {
        calls.make("nvmlDeviceGetHandleByIndex_v2", at, || library.by_index(gpu.index.0))
    };
    let Ok(id) = found else { return };
    gpu.handle = found;
    if !gpu.facts.uuid_known {
        gpu.facts = facts(Driver { library, calls }, gpu.index, id);
    }
}

/// The MIG instances of a GPU in MIG mode.
fn find_instances(library: &mut Library, calls: &Calls, gpu: &Subject) -> Vec<Subject> {
    const CALL: &str = "nvmlDeviceGetMigDeviceHandleByIndex";
    /// No GPU has more than seven slices; a driver's own number is not trusted far beyond.
    const MOST: u32 = 64;
    let (Ok(id), Some(true)) = (gpu.handle, gpu.settings.mig_enabled.get()) else {
        return Vec::new();
    };
    let at = Some(gpu.index);
    let slots = calls
        .make("nvmlDeviceGetMaxMigDeviceCount", at, || library.device(id).mig_device_count())
        .unwrap_or_default();
    let mut found = Vec::new();
    for slot in 0..slots.min(MOST) {
        // NOT_FOUND is an empty slot.
        let Ok(instance) = calls.make(CALL, at, || library.instance(id, slot)) else { continue };
        let driver = Driver { library, calls };
        let mut own = instance_facts(driver, gpu, instance, slot);
        let number = |call, read: fn(&Library, DeviceId) -> Result<u32, Fault>| {
            let answer = calls.make(call, at, || read(driver.library, instance));
            Reading::from(answer.map_err(Fault::why))
        };
        own.mig = Some(MigInfo {
            parent: gpu.facts.uuid.clone(),
            gpu_instance: number("nvmlDeviceGetGpuInstanceId", Library::gpu_instance),
            compute_instance: number("nvmlDeviceGetComputeInstanceId", Library::compute_instance),
        });
        found.push(own);
    }
    found
}

/// Keeps what was learned of instances that are still there.
fn same_again(found: Vec<Subject>, known: Vec<Subject>) -> Vec<Subject> {
    let mut known: Vec<_> = known.into_iter().map(Some).collect();
    let again = |instance: Subject| {
        let same = |known: &&mut Option<Subject>| {
            known.as_ref().is_some_and(|known| known.facts.uuid == instance.facts.uuid)
        };
        match known.iter_mut().find(same).and_then(Option::take) {
            Some(known) => known.with_handle(instance.handle),
            None => instance,
        }
    };
    found.into_iter().map(again).collect()
}

fn instance_facts(driver: Driver<'_>, gpu: &Subject, id: DeviceId, slot: u32) -> Subject {
    let Driver { library, calls } = driver;
    let (device, at) = (library.device(id), Some(gpu.index));
    let uuid = calls.make("nvmlDeviceGetUUID", at, || device.uuid()).ok();
    let name = calls.make("nvmlDeviceGetName", at, || device.name());
    let unknown = || format!("MIG-unknown-{}-{slot}", gpu.index);
    let facts = Facts {
        uuid_known: uuid.is_some(),
        uuid: GpuUuid::new(&uuid.unwrap_or_else(unknown)),
        name: name.map_err(Fault::why).into(),
        // An instance is reached through its GPU's device file.
        minor: gpu.facts.minor,
        pci_bus_id: gpu.facts.pci_bus_id.clone(),
    };
    Subject::new(gpu.index, Ok(id), facts)
}
