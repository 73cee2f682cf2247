//! The lists of processes in their three forms, and the samples of use.
#![allow(unsafe_code)]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::answer::{bytes, put_rows};
use crate::scenario::Process;
use crate::state::{Handle, NOT_FOUND, NOT_SUPPORTED, State, serve};

/// As many 8-byte words as a row of each form has.
const V1: usize = 2;
const V2: usize = 3;
const WIDE: usize = 4;

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn row(process: &Process, words: usize) -> Vec<u64> {
    let ids = pair(process.gi.unwrap_or(u32::MAX), process.ci.unwrap_or(u32::MAX));
    let mut row = vec![u64::from(process.pid), bytes(process.bytes), ids, 0];
    row.truncate(words);
    row
}

fn rows(state: &mut State, device: Handle, kind: char, words: usize) -> Result<Vec<Vec<u64>>, u32> {
    let listed = state.listed(device)?;
    let of_kind = listed.iter().filter(|process| process.kinds.contains(kind));
    Ok(of_kind.map(|process| row(process, words)).collect())
}

macro_rules! lists {
    ($($name:ident: $kind:literal, $words:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: Handle, count: *mut u32, infos: *mut u64) -> u32 {
            let code = serve(stringify!($name), Some(device), |state| {
                let words: fn(&State) -> usize = $words;
                let words = words(state);
                match rows(state, device, $kind, words) {
                    // SAFETY: the caller's array has the room that its `count` tells.
                    Ok(rows) => unsafe { put_rows(infos, count, &rows) },
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
    nvmlDeviceGetComputeRunningProcesses: 'C', |_| V1;
    nvmlDeviceGetComputeRunningProcesses_v2: 'C', |_| V2;
    nvmlDeviceGetComputeRunningProcesses_v3: 'C', v3;
    nvmlDeviceGetGraphicsRunningProcesses: 'G', |_| V1;
    nvmlDeviceGetGraphicsRunningProcesses_v2: 'G', |_| V2;
    nvmlDeviceGetGraphicsRunningProcesses_v3: 'G', v3;
    nvmlDeviceGetMPSComputeRunningProcesses: 'M', |_| V1;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: 'M', |_| V2;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: 'M', v3;
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
        for process in &listed {
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
        unsafe { put_rows(samples, count, &rows) }
    })
}

fn sample(pid: u32, stamp: u64, share: u32) -> Vec<u64> {
    vec![u64::from(pid), stamp, pair(share, share / 2), 0]
}
