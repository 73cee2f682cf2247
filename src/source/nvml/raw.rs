//! The calls that the wrapper lacks or makes in one form only, and the handles that outlive one
//! borrow of the library. The only unsafe code of the source.
#![allow(unsafe_code)]

use std::ffi::{OsStr, c_void};

use nvml_wrapper::bitmasks::InitFlags;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

use super::fault::Fault;

/// The opened library and every handle that it gave.
pub(super) struct Library {
    nvml: Nvml,
    handles: Vec<Handle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handle(*mut c_void);

// SAFETY: the library promises thread-safety, and a handle is only a key for its calls.
unsafe impl Send for Handle {}

/// A device of the [`Library`] that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceId(usize);

/// Which list of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Compute,
    Graphics,
    Mps,
}

/// How the rows of a list are laid out, and so which function fills them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// No version in the name: 16 bytes, pid and bytes.
    V1,
    /// `_v2`, since R460: 24 bytes, with the MIG instance.
    V2,
    /// `_v3`, since R510: as `_v2`.
    V3,
    /// `_v3` of the first R535 drivers: 32 bytes, with the protected memory at the end.
    V3Wide,
}

impl Layout {
    const fn words(self) -> usize {
        match self {
            Self::V1 => 2,
            Self::V2 | Self::V3 => 3,
            Self::V3Wide => WIDEST,
        }
    }
}

/// Words of 8 bytes in the widest row. Buffers have room for it whatever the layout, so that a
/// library with another idea of the row cannot write beyond them.
const WIDEST: usize = 4;

/// A row as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawProcess {
    pub(super) pid: u32,
    pub(super) bytes: u64,
    /// All ones for none.
    pub(super) gpu_instance: u32,
    /// All ones for none.
    pub(super) compute_instance: u32,
}

/// Figures as they came; `reserved` from `_v2` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawMemory {
    pub(super) total: u64,
    pub(super) used: u64,
    pub(super) free: u64,
    pub(super) reserved: Option<u64>,
}

/// One sample of a process's use of the GPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RawSample {
    pub(super) pid: u32,
    /// In microseconds of the CPU's clock.
    pub(super) stamp: u64,
    pub(super) sm_percent: u32,
    memory_percent: u32,
    encoder_percent: u32,
    decoder_percent: u32,
}

#[cfg(test)]
impl RawSample {
    pub(super) fn of(pid: u32, sm_percent: u32) -> Self {
        Self { pid, sm_percent, ..Self::default() }
    }
}

/// An event as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEvent {
    device: Handle,
    /// A bit of the kinds of events.
    pub(super) kind: u64,
    /// For an XID its number.
    pub(super) data: u64,
    /// All ones for none.
    pub(super) gpu_instance: u32,
    /// All ones for none.
    pub(super) compute_instance: u32,
}

/// What came of a call that fills an array of the caller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filled<T> {
    /// The rows.
    Rows(Vec<T>),
    /// The array is too small; the library says that so many rows are needed.
    Short(usize),
}

/// The function, or a return with [`Fault::NoSymbol`].
macro_rules! symbol {
    ($library:expr, $name:ident) => {
        match $library.nvml.lib().$name.as_ref() {
            Ok(function) => *function,
            Err(_) => return Err(Fault::NoSymbol),
        }
    };
}

impl Library {
    pub(super) fn open(path: &OsStr, flags: InitFlags) -> Result<Self, NvmlError> {
        Ok(Self { nvml: Nvml::builder().lib_path(path).flags(flags).init()?, handles: Vec::new() })
    }

    pub(super) const fn nvml(&self) -> &Nvml {
        &self.nvml
    }

    /// Whether this library fills 32-byte rows under the name `_v3`, as the first R535 drivers do:
    /// they have confidential computing and lack the list that was made to replace the mistake.
    pub(super) fn fills_wide_rows(&self) -> bool {
        let lib = self.nvml.lib();
        lib.nvmlDeviceGetConfComputeMemSizeInfo.is_ok()
            && lib.nvmlDeviceGetRunningProcessDetailList.is_err()
    }

    pub(super) fn by_index(&mut self, index: u32) -> Result<DeviceId, Fault> {
        let handle = key(&self.nvml.device_by_index(index)?);
        self.keep(handle)
    }

    pub(super) fn by_address(&mut self, address: &str) -> Result<DeviceId, Fault> {
        let handle = key(&self.nvml.device_by_pci_bus_id(address)?);
        self.keep(handle)
    }

    pub(super) fn by_uuid(&mut self, uuid: &str) -> Result<DeviceId, Fault> {
        let handle = key(&self.nvml.device_by_uuid(uuid)?);
        self.keep(handle)
    }

    /// The MIG instance in a slot of a GPU.
    pub(super) fn instance(&mut self, gpu: DeviceId, slot: u32) -> Result<DeviceId, Fault> {
        let handle = key(&self.device(gpu).mig_device_by_index(slot)?);
        self.keep(handle)
    }

    /// The wrapper's view of a device.
    pub(super) fn device(&self, id: DeviceId) -> Device<'_> {
        // SAFETY: the handle came from this very library, which is open while `self` lives.
        unsafe { Device::new(self.handles[id.0].0.cast(), &self.nvml) }
    }

    fn keep(&mut self, handle: Handle) -> Result<DeviceId, Fault> {
        if handle.0.is_null() {
            return Err(Fault::Nonsense);
        }
        let known = self.handles.iter().position(|kept| *kept == handle);
        Ok(DeviceId(known.unwrap_or_else(|| {
            self.handles.push(handle);
            self.handles.len() - 1
        })))
    }

    /// `nvmlDeviceGetMemoryInfo_v2`: used without reserved.
    pub(super) fn memory_v2(&self, id: DeviceId) -> Result<RawMemory, Fault> {
        #[repr(C)]
        struct Figures {
            version: u32,
            total: u64,
            reserved: u64,
            free: u64,
            used: u64,
        }
        let ask = symbol!(self, nvmlDeviceGetMemoryInfo_v2);
        let version = size_of::<Figures>() as u32 | 2 << 24;
        let mut got = Figures { version, total: 0, reserved: 0, free: 0, used: 0 };
        // SAFETY: the handle is of this library; `got` has the layout and the version word of the
        // structure that the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), (&raw mut got).cast()) })?;
        let Figures { total, reserved, free, used, .. } = got;
        Ok(RawMemory { total, used, free, reserved: Some(reserved) })
    }

    /// `nvmlDeviceGetMemoryInfo`: used with reserved.
    pub(super) fn memory_v1(&self, id: DeviceId) -> Result<RawMemory, Fault> {
        #[repr(C)]
        struct Figures {
            total: u64,
            free: u64,
            used: u64,
        }
        let ask = symbol!(self, nvmlDeviceGetMemoryInfo);
        let mut got = Figures { total: 0, free: 0, used: 0 };
        // SAFETY: the handle is of this library; `got` has the layout that the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), (&raw mut got).cast()) })?;
        Ok(RawMemory { total: got.total, used: got.used, free: got.free, reserved: None })
    }

    /// One list of processes, with room for so many.
    pub(super) fn processes(
        &self,
        id: DeviceId,
        (list, layout): (List, Layout),
        room: usize,
    ) -> Result<Filled<RawProcess>, Fault> {
        use Layout::{V1, V2, V3, V3Wide};
        let mut words = vec![0_u64; room * WIDEST];
        let mut count = room as u32;
        let (device, rows) = (self.handles[id.0].0, words.as_mut_ptr());
        macro_rules! fill {
            ($name:ident) => {{
                let ask = symbol!(self, $name);
                // SAFETY: the handle is of this library; `rows` has room for `count` rows of the
                // widest layout, aligned to 8 bytes.
                unsafe { ask(device.cast(), &raw mut count, rows.cast()) }
            }};
        }
        let code = match (list, layout) {
            (List::Compute, V1) => fill!(nvmlDeviceGetComputeRunningProcesses),
            (List::Compute, V2) => fill!(nvmlDeviceGetComputeRunningProcesses_v2),
            (List::Compute, V3 | V3Wide) => fill!(nvmlDeviceGetComputeRunningProcesses_v3),
            (List::Graphics, V1) => fill!(nvmlDeviceGetGraphicsRunningProcesses),
            (List::Graphics, V2) => fill!(nvmlDeviceGetGraphicsRunningProcesses_v2),
            (List::Graphics, V3 | V3Wide) => fill!(nvmlDeviceGetGraphicsRunningProcesses_v3),
            (List::Mps, V1) => fill!(nvmlDeviceGetMPSComputeRunningProcesses),
            (List::Mps, V2) => fill!(nvmlDeviceGetMPSComputeRunningProcesses_v2),
            (List::Mps, V3 | V3Wide) => fill!(nvmlDeviceGetMPSComputeRunningProcesses_v3),
        };
        filled(code, count, |count| {
            words.chunks_exact(layout.words()).take(count.min(room)).map(process).collect()
        })
    }

    /// `nvmlDeviceGetProcessUtilization`: the samples after a stamp, with room for so many.
    pub(super) fn utilization_samples(
        &self,
        id: DeviceId,
        after: u64,
        room: usize,
    ) -> Result<Filled<RawSample>, Fault> {
        let ask = symbol!(self, nvmlDeviceGetProcessUtilization);
        let mut samples = vec![RawSample::default(); room];
        let mut count = room as u32;
        let rows = samples.as_mut_ptr().cast();
        // SAFETY: the handle is of this library; `rows` has room for `count` structures of the
        // layout that the function fills.
        let code = unsafe { ask(self.handles[id.0].0.cast(), rows, &raw mut count, after) };
        filled(code, count, |count| {
            samples.truncate(count);
            samples
        })
    }

    /// A set for events; none of a library that cannot take it back, where the wrapper would panic.
    pub(super) fn event_set(&self) -> Result<EventSet<'_>, Fault> {
        symbol!(self, nvmlEventSetFree);
        Ok(self.nvml.create_event_set()?)
    }

    /// `nvmlEventSetWait_v2`: the next event of the set, or [`Fault::TIMEOUT`] after so long. The
    /// wrapper's own call leaves out the instances of MIG.
    pub(super) fn next_event(
        &self,
        set: &EventSet<'_>,
        timeout_ms: u32,
    ) -> Result<RawEvent, Fault> {
        #[repr(C)]
        struct Event {
            device: *mut c_void,
            kind: u64,
            data: u64,
            gpu_instance: u32,
            compute_instance: u32,
        }
        let wait = symbol!(self, nvmlEventSetWait_v2);
        let none = u32::MAX;
        let (device, kind, data) = (std::ptr::null_mut(), 0, 0);
        let mut got = Event { device, kind, data, gpu_instance: none, compute_instance: none };
        // SAFETY: the set is of this library and open while borrowed; `got` has the layout of the
        // structure that the function fills.
        Fault::check(unsafe { wait(set.handle(), (&raw mut got).cast(), timeout_ms) })?;
        let Event { device, kind, data, gpu_instance, compute_instance } = got;
        Ok(RawEvent { device: Handle(device), kind, data, gpu_instance, compute_instance })
    }

    /// Whether an event is about a device: its handle says so even when the device is lost.
    pub(super) fn is_about(&self, event: &RawEvent, id: DeviceId) -> bool {
        self.handles[id.0] == event.device
    }

    /// Why the clocks are not higher, with the bits that the wrapper does not know.
    pub(super) fn clocks_event_reasons(&self, id: DeviceId) -> Result<u64, Fault> {
        let ask = symbol!(self, nvmlDeviceGetCurrentClocksEventReasons);
        let mut bits = 0;
        // SAFETY: the handle is of this library; `bits` is what the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), &raw mut bits) })?;
        Ok(bits)
    }

    /// The same by its name before R535.
    pub(super) fn clocks_throttle_reasons(&self, id: DeviceId) -> Result<u64, Fault> {
        let ask = symbol!(self, nvmlDeviceGetCurrentClocksThrottleReasons);
        let mut bits = 0;
        // SAFETY: the handle is of this library; `bits` is what the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), &raw mut bits) })?;
        Ok(bits)
    }

    /// Of a MIG instance's handle.
    pub(super) fn gpu_instance(&self, id: DeviceId) -> Result<u32, Fault> {
        let ask = symbol!(self, nvmlDeviceGetGpuInstanceId);
        let mut number = 0;
        // SAFETY: the handle is of this library; `number` is what the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), &raw mut number) })?;
        Ok(number)
    }

    /// Of a MIG instance's handle.
    pub(super) fn compute_instance(&self, id: DeviceId) -> Result<u32, Fault> {
        let ask = symbol!(self, nvmlDeviceGetComputeInstanceId);
        let mut number = 0;
        // SAFETY: the handle is of this library; `number` is what the function fills.
        Fault::check(unsafe { ask(self.handles[id.0].0.cast(), &raw mut number) })?;
        Ok(number)
    }
}

fn key(device: &Device<'_>) -> Handle {
    // SAFETY: the handle is only kept; it is used with the library that gave it, while open.
    Handle(unsafe { device.handle() }.cast())
}

fn filled<T>(
    code: u32,
    count: u32,
    rows: impl FnOnce(usize) -> Vec<T>,
) -> Result<Filled<T>, Fault> {
    match Fault::check(code) {
        Ok(()) => Ok(Filled::Rows(rows(count as usize))),
        Err(Fault::INSUFFICIENT_SIZE) => Ok(Filled::Short(count as usize)),
        Err(fault) => Err(fault),
    }
}

/// The driver exists for little-endian machines only: the first field of a word is its low half.
fn process(words: &[u64]) -> RawProcess {
    let instances = words.get(2).copied().unwrap_or(u64::MAX);
    RawProcess {
        pid: words[0] as u32,
        bytes: words[1],
        gpu_instance: instances as u32,
        compute_instance: (instances >> 32) as u32,
    }
}
