//! Functions that `vramlens` never calls and other monitors need, so that they can be measured on
//! the same stand-in.
#![allow(unsafe_code)]

use crate::answer::put;
use crate::state::{Handle, NOT_SUPPORTED, serve};

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
}

/// A share of the time, and how long it was sampled in microseconds.
macro_rules! shares {
    ($($name:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, share: *mut u32, period: *mut u32) -> u32 {
            serve(stringify!($name), Some(device), |_state| {
                // SAFETY: the caller's variables.
                unsafe { put(share, Ok(0)).max(put(period, Ok(167_000))) }
            })
        }
    )*};
}

shares! {
    nvmlDeviceGetEncoderUtilization;
    nvmlDeviceGetDecoderUtilization;
}
