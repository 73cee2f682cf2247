//! The lists of processes in their three forms, and the samples of use.
#![allow(unsafe_code)]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::answer::{Row, bytes, put_rows};
use crate::scenario::Process;
use crate::state::{Handle, NOT_FOUND, NOT_SUPPORTED, State, serve};

/// As many 8-byte words as a row of each form has.
const V1: usize = 2;
const V2: usize = 3;
const WIDE: usize = 4;

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// A process as its lists have it.
pub(crate) fn row(process: &Process) -> Row {
    let ids = pair(process.gi.unwrap_or(u32::MAX), process.ci.unwrap_or(u32::MAX));
    [u64::from(process.pid), bytes(process.bytes), ids, 0]
}

macro_rules! lists {
    ($($name:ident: $list:ident, $width:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, count: *mut u32, infos: *mut u64) -> u32 {
            let code = serve(stringify!($name), Some(device), |state| {
                let width: fn(&State) -> usize = $width;
                let width = width(state);
                match state.listed(device) {
                    // SAFETY: the caller's array has the room that its `count` tells.
                    Ok(listed) => unsafe { put_rows(infos, count, width, &listed.$list) },
                    Err(code) => code,
                }
            });
            if code == crate::state::INSUFFICIENT_SIZE && !count.is_null() {
                // SAFETY: not null, and the caller's. A list that is told to be too small whatever
                // its size asks for more than it got.
                unsafe { *count = (*count).saturating_add(1) };
            }
            code
        }
    )*};
}

fn v3(state: &State) -> usize {
    if state.scenario.wide_v3 { WIDE } else { V2 }
}

lists! {
    nvmlDeviceGetComputeRunningProcesses: compute, |_| V1;
    nvmlDeviceGetComputeRunningProcesses_v2: compute, |_| V2;
    nvmlDeviceGetComputeRunningProcesses_v3: compute, v3;
    nvmlDeviceGetGraphicsRunningProcesses: graphics, |_| V1;
    nvmlDeviceGetGraphicsRunningProcesses_v2: graphics, |_| V2;
    nvmlDeviceGetGraphicsRunningProcesses_v3: graphics, v3;
    nvmlDeviceGetMPSComputeRunningProcesses: mps, |_| V1;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: mps, |_| V2;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: mps, v3;
}

/// Samples after a stamp; none at all is `NOT_FOUND`, as the driver has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: Handle,
    samples: *mut u64,
    count: *mut u32,
    after: u64,
) -> u32 {
    serve("nvmlDeviceGetProcessUtilization", Some(device), |state| {
        if !matches!(state.target(device), Ok(target) if target.instance.is_none()) {
            return NOT_SUPPORTED;
        }
        let listed = match state.listed(device) {
            Ok(listed) => listed,
            Err(code) => return code,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut rows = Vec::new();
        for process in &listed.processes {
            let stamp = process.stamp.unwrap_or(now.as_micros() as u64);
            if stamp > after {
                let samples = process.sm.all().iter();
                rows.extend(samples.map(|share| sample(process.pid, stamp, *share)));
            }
        }
        if rows.is_empty() {
            return NOT_FOUND;
        }
        // SAFETY: the caller's array has the room that its `count` tells.
        unsafe { put_rows(samples, count, WIDE, &rows) }
    })
}

fn sample(pid: u32, stamp: u64, share: u32) -> Row {
    [u64::from(pid), stamp, pair(share, share / 2), 0]
}
