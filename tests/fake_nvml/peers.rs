//! Functions that `vramlens` never calls and other monitors need, so that they can be measured on
//! the same stand-in.
#![allow(unsafe_code)]

use crate::answer::put;
use crate::exports::{nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2, nvmlInit_v2};
use crate::state::{Handle, NOT_SUPPORTED, serve};

/// The first form of each, in which btop asks; counted as the second.
#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> u32 {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount(count: *mut u32) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { nvmlDeviceGetCount_v2(count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex(index: u32, device: *mut Handle) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { nvmlDeviceGetHandleByIndex_v2(index, device) }
}

/// One number, the same for every GPU.
macro_rules! constants {
    ($($name:ident($($selector:ident)?): $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, $($selector: u32,)? answer: *mut u32) -> u32 {
            serve(stringify!($name), Some(device), |_state| {
                $(let _ = $selector;)?
                // SAFETY: the caller's variable.
                unsafe { put(answer, $answer) }
            })
        }
    )*};
}

constants! {
    nvmlDeviceGetMaxPcieLinkGeneration(): Ok(5);
    nvmlDeviceGetMaxPcieLinkWidth(): Ok(16);
    nvmlDeviceGetCurrPcieLinkGeneration(): Ok(5);
    nvmlDeviceGetCurrPcieLinkWidth(): Ok(16);
    nvmlDeviceGetFanSpeed(): Err(NOT_SUPPORTED);
    nvmlDeviceGetTemperatureThreshold(_threshold): Ok(90);
    nvmlDeviceGetMaxClockInfo(_clock): Ok(1980);
    nvmlDeviceGetPowerManagementLimit(): Ok(700_000);
    nvmlDeviceGetPowerState(): Ok(0);
    nvmlDeviceGetComputeMode(): Ok(0);
    nvmlDeviceGetDisplayActive(): Ok(0);
}

/// Two numbers.
macro_rules! pairs {
    ($($name:ident: $first:expr, $second:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, first: *mut u32, second: *mut u32) -> u32 {
            serve(stringify!($name), Some(device), |_state| {
                // SAFETY: the caller's variables.
                unsafe { put(first, $first).max(put(second, $second)) }
            })
        }
    )*};
}

pairs! {
    // A share of the time, and how long it was sampled in microseconds.
    nvmlDeviceGetEncoderUtilization: Ok(0), Ok(167_000);
    nvmlDeviceGetDecoderUtilization: Ok(0), Ok(167_000);
    // Windows alone has it.
    nvmlDeviceGetDriverModel: Err(NOT_SUPPORTED), Err(NOT_SUPPORTED);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: Handle,
    _corrected: u32,
    _since: u32,
    count: *mut u64,
) -> u32 {
    serve("nvmlDeviceGetTotalEccErrors", Some(device), |_state| {
        // SAFETY: the caller's variable.
        unsafe { put(count, Ok(0)) }
    })
}
