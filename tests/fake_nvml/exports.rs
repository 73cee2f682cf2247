//! The functions of the library that are not about processes.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use crate::answer::{bytes, put, put_text};
use crate::scenario::RawMemory;
use crate::state::{
    Handle, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, State, Target, handle, serve,
    with_scenario,
};

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> u32 {
    serve("nvmlInit_v2", None, |state| {
        state.attached = true;
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(flags: u32) -> u32 {
    serve("nvmlInitWithFlags", None, |state| {
        state.attached |= flags & 2 == 0;
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> u32 {
    serve("nvmlShutdown", None, |state| {
        state.shut_down();
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(_code: u32) -> *const c_char {
    c"an error of the stand-in".as_ptr()
}

macro_rules! system_texts {
    ($($name:ident: $get:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(text: *mut c_char, length: u32) -> u32 {
            serve(stringify!($name), None, |state| {
                let get: fn(&State) -> &str = $get;
                // SAFETY: the caller's buffer has the length that it tells.
                unsafe { put_text(text, length, get(state)) }
            })
        }
    )*};
}

system_texts! {
    nvmlSystemGetDriverVersion: |state| &state.scenario.driver;
    nvmlSystemGetNVMLVersion: |state| &state.scenario.nvml;
}

macro_rules! system_numbers {
    ($($name:ident -> $type:ty: $get:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(number: *mut $type) -> u32 {
            serve(stringify!($name), None, |state| {
                let get: fn(&State) -> $type = $get;
                // SAFETY: the caller's number.
                unsafe { put(number, Ok(get(state))) }
            })
        }
    )*};
}

system_numbers! {
    nvmlSystemGetCudaDriverVersion -> i32: |state| state.scenario.cuda;
    nvmlSystemGetCudaDriverVersion_v2 -> i32: |state| state.scenario.cuda;
    nvmlDeviceGetCount_v2 -> u32: |state| state.scenario.gpu.len() as u32;
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: u32,
    device: *mut Handle,
) -> u32 {
    serve("nvmlDeviceGetHandleByIndex_v2", Some(handle(index, None)), |_state| {
        // SAFETY: the caller's handle.
        unsafe { put(device, Ok(handle(index, None))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    address: *const c_char,
    device: *mut Handle,
) -> u32 {
    if address.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, and a C string of the caller's.
    let wanted = unsafe { CStr::from_ptr(address) }.to_string_lossy().to_lowercase();
    // The driver takes a domain of four digits and of eight.
    let short = |text: &str| text.to_lowercase().trim_start_matches('0').to_owned();
    let index = with_scenario(|scenario| {
        scenario.gpu.iter().position(|gpu| short(&gpu.pci) == short(&wanted))
    });
    let found = index.map(|index| handle(index as u32, None));
    serve("nvmlDeviceGetHandleByPciBusId_v2", found, |state| {
        let knows = state.attached || !state.scenario.no_attach_knows_none;
        // SAFETY: the caller's handle.
        unsafe { put(device, found.filter(|_| knows).ok_or(NOT_FOUND)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut Handle) -> u32 {
    serve("nvmlDeviceGetHandleByUUID", None, |state| {
        if uuid.is_null() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: not null, and a C string of the caller's.
        let wanted = unsafe { CStr::from_ptr(uuid) }.to_bytes();
        let gpus = &state.scenario.gpu;
        let found = gpus.iter().position(|gpu| !gpu.lost && gpu.uuid.as_bytes() == wanted);
        let found = found.map(|index| handle(index as u32, None)).ok_or(NOT_FOUND);
        // SAFETY: the caller's handle.
        unsafe { put(device, found) }
    })
}

macro_rules! device_texts {
    ($($name:ident: $get:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, text: *mut c_char, length: u32) -> u32 {
            serve(stringify!($name), Some(device), |state| {
                let get: for<'a> fn(Target<'a>) -> &'a str = $get;
                match state.target(device) {
                    // SAFETY: the caller's buffer has the length that it tells.
                    Ok(target) => unsafe { put_text(text, length, get(target)) },
                    Err(code) => code,
                }
            })
        }
    )*};
}

device_texts! {
    nvmlDeviceGetUUID: |at| at.instance.map_or(&at.gpu.uuid, |instance| &instance.uuid);
    nvmlDeviceGetName: |at| at.instance.map_or(&at.gpu.name, |instance| &instance.name);
}

/// Functions of a device with one answer.
macro_rules! getters {
    ($($name:ident -> $type:ty: $get:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, answer: *mut $type) -> u32 {
            serve(stringify!($name), Some(device), |state| {
                let get: fn(Target<'_>, u32) -> Result<$type, u32> = $get;
                let wobble = state.wobble();
                // SAFETY: the caller's variable.
                unsafe { put(answer, state.target(device).and_then(|target| get(target, wobble))) }
            })
        }
    )*};
}

getters! {
    nvmlDeviceGetIndex -> u32: |at, _| Ok(at.index);
    nvmlDeviceGetMinorNumber -> u32: |at, _| Ok(at.gpu.minor.unwrap_or(at.index));
    nvmlDeviceGetPciInfo_v3 -> PciInfo: |at, _| Ok(PciInfo::of(&at));
    nvmlDeviceGetUtilizationRates -> [u32; 2]: |at, wobble| {
        whole(&at)?;
        let [sm, memory] = at.gpu.utilization.ok_or(NOT_SUPPORTED)?;
        Ok([(sm + at.wobbles(wobble)).min(100), memory])
    };
    nvmlDeviceGetPowerUsage -> u32: |at, wobble| {
        whole(&at)?;
        Ok(at.gpu.power_mw.ok_or(NOT_SUPPORTED)? + 1000 * at.wobbles(wobble))
    };
    nvmlDeviceGetEnforcedPowerLimit -> u32: |at, _| {
        whole(&at)?;
        at.gpu.power_limit_mw.ok_or(NOT_SUPPORTED)
    };
    nvmlDeviceGetCurrentClocksThrottleReasons -> u64: |at, _| Ok(at.gpu.throttle);
    nvmlDeviceGetCurrentClocksEventReasons -> u64: |at, _| Ok(at.gpu.throttle);
    nvmlDeviceGetPerformanceState -> u32: |at, _| Ok(at.gpu.performance_state);
    nvmlDeviceGetPersistenceMode -> u32: |at, _| Ok(u32::from(at.gpu.persistence));
    nvmlDeviceGetMaxMigDeviceCount -> u32: |at, _| {
        Ok(if at.gpu.mig.is_some() { 7 } else { 0 })
    };
    nvmlDeviceGetGpuInstanceId -> u32: |at, _| {
        at.instance.map(|instance| instance.gi).ok_or(INVALID_ARGUMENT)
    };
    nvmlDeviceGetComputeInstanceId -> u32: |at, _| {
        at.instance.map(|instance| instance.ci).ok_or(INVALID_ARGUMENT)
    };
    nvmlDeviceIsMigDeviceHandle -> u32: |at, _| Ok(u32::from(at.instance.is_some()));
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle -> Handle: |at, _| Ok(handle(at.index, None));
    // Their presence alone matters: by them a driver's row layout is told.
    nvmlDeviceGetConfComputeMemSizeInfo -> u64: |_, _| Err(NOT_SUPPORTED);
    nvmlDeviceGetRunningProcessDetailList -> u64: |_, _| Err(NOT_SUPPORTED);
}

/// Functions of a device whose answer a number selects.
macro_rules! selectors {
    ($($name:ident -> $type:ty: $get:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, selector: u32, answer: *mut $type) -> u32 {
            serve(stringify!($name), Some(device), |state| {
                let get: fn(Target<'_>, u32) -> Result<$type, u32> = $get;
                // SAFETY: the caller's variable.
                unsafe { put(answer, state.target(device).and_then(|target| get(target, selector))) }
            })
        }
    )*};
}

selectors! {
    nvmlDeviceGetTemperature -> u32: |at, _| {
        whole(&at)?;
        at.gpu.temperature.ok_or(NOT_SUPPORTED)
    };
    // 1 is the multiprocessors', 2 the memory's.
    nvmlDeviceGetClockInfo -> u32: |at, which| {
        let [sm, memory] = at.gpu.clocks.ok_or(NOT_SUPPORTED)?;
        Ok(if which == 2 { memory } else { sm })
    };
    nvmlDeviceGetFanSpeed_v2 -> u32: |at, _| at.gpu.fan.ok_or(NOT_SUPPORTED);
    // 0 is what the GPU sends, 1 what it receives.
    nvmlDeviceGetPcieThroughput -> u32: |at, which| {
        let [rx, tx] = at.gpu.pcie.ok_or(NOT_SUPPORTED)?;
        Ok(if which == 0 { tx } else { rx })
    };
    nvmlDeviceGetMigDeviceHandleByIndex -> Handle: |at, slot| {
        match at.gpu.instance.get(slot as usize) {
            Some(_) if at.gpu.mig == Some(true) => Ok(handle(at.index, Some(slot))),
            _ => Err(NOT_FOUND),
        }
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: Handle,
    current: *mut u32,
    pending: *mut u32,
) -> u32 {
    serve("nvmlDeviceGetMigMode", Some(device), |state| {
        let mode = state.target(device).and_then(|at| at.gpu.mig.ok_or(NOT_SUPPORTED));
        let mode = mode.map(u32::from);
        // SAFETY: the caller's variables.
        unsafe { put(current, mode).max(put(pending, mode)) }
    })
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: *mut MemoryV2) -> u32 {
    const ARGUMENT_VERSION_MISMATCH: u32 = 25;
    serve("nvmlDeviceGetMemoryInfo_v2", Some(device), |state| {
        // SAFETY: null, or the caller's structure.
        let Some(memory) = (unsafe { memory.as_mut() }) else { return INVALID_ARGUMENT };
        if memory.version != size_of::<MemoryV2>() as u32 | 2 << 24 {
            return ARGUMENT_VERSION_MISMATCH;
        }
        let figures = match figures(state, device) {
            Ok(figures) => figures,
            Err(code) => return code,
        };
        memory.total = bytes(figures.total);
        memory.reserved = bytes(figures.reserved);
        memory.free = bytes(figures.free);
        memory.used = bytes(figures.used);
        SUCCESS
    })
}

/// The old call: total, free, and used with what is reserved.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: Handle, memory: *mut [u64; 3]) -> u32 {
    serve("nvmlDeviceGetMemoryInfo", Some(device), |state| {
        let old = figures(state, device).map(|figures| {
            let used = bytes(figures.used).saturating_add(bytes(figures.reserved));
            [bytes(figures.total), bytes(figures.free), used]
        });
        // SAFETY: the caller's structure of three figures.
        unsafe { put(memory, old) }
    })
}

fn figures(state: &mut State, device: Handle) -> Result<RawMemory, u32> {
    let used = state.listed(device)?.held;
    let target = state.target(device)?;
    if target.gpu.unified {
        return Err(NOT_SUPPORTED);
    }
    if let (Some(raw), None) = (target.gpu.raw_memory, target.instance) {
        return Ok(raw);
    }
    let (total, reserved, unaccounted) = target.sizes();
    let used = used.saturating_add(unaccounted).min(total - reserved).max(0);
    Ok(RawMemory { total, reserved, used, free: total - reserved - used })
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    legacy_bus_id: [u8; 16],
    numbers: [u32; 5],
    bus_id: [u8; 32],
}

impl PciInfo {
    fn of(target: &Target<'_>) -> Self {
        let mut bus_id = [0; 32];
        let text = target.gpu.pci.as_bytes();
        let length = text.len().min(bus_id.len() - 1);
        bus_id[..length].copy_from_slice(&text[..length]);
        Self { legacy_bus_id: [0; 16], numbers: [0; 5], bus_id }
    }
}

/// Sensors belong to the whole GPU.
fn whole(target: &Target<'_>) -> Result<(), u32> {
    if target.instance.is_some() { Err(NOT_SUPPORTED) } else { Ok(()) }
}

impl Target<'_> {
    fn wobbles(&self, by: u32) -> u32 {
        if self.gpu.wobble { by } else { 0 }
    }
}

impl State {
    /// Up and down from 0 to 20 and back.
    fn wobble(&self) -> u32 {
        let second = self.began.elapsed().as_secs() as u32;
        second % 21
    }
}
