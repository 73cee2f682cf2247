//! Event sets: what the scenario lists is delivered once, in order, to whoever waits.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::answer::put;
use crate::scenario::Event;
use crate::state::{
    Handle, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, State, handle, locked, serve,
};

const TIMEOUT: u32 = 10;
/// `nvmlEventTypeXidCriticalError`.
const XID: u64 = 8;

/// `nvmlEventData_t`.
#[repr(C)]
struct Data {
    device: Handle,
    kind: u64,
    number: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetCreate(set: *mut usize) -> u32 {
    serve("nvmlEventSetCreate", None, |state| {
        state.sets.push(Some(Vec::new()));
        // SAFETY: the caller's variable.
        unsafe { put(set, Ok(state.sets.len())) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: usize) -> u32 {
    serve("nvmlEventSetFree", None, |state| match state.set(set) {
        Some(taken) => {
            *taken = None;
            SUCCESS
        }
        None => INVALID_ARGUMENT,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSupportedEventTypes(device: Handle, kinds: *mut u64) -> u32 {
    serve("nvmlDeviceGetSupportedEventTypes", Some(device), |state| {
        let known = state.target(device).map(|at| if at.gpu.no_events { 0 } else { XID | 1 });
        // SAFETY: the caller's variable.
        unsafe { put(kinds, known) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(device: Handle, kinds: u64, set: usize) -> u32 {
    serve("nvmlDeviceRegisterEvents", Some(device), |state| {
        if kinds != XID {
            return NOT_SUPPORTED;
        }
        match state.set(set) {
            Some(Some(devices)) => {
                devices.push(device);
                SUCCESS
            }
            _ => INVALID_ARGUMENT,
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetWait_v2(set: usize, data: *mut Data, timeout_ms: u32) -> u32 {
    let end = Instant::now() + Duration::from_millis(u64::from(timeout_ms));
    let began = serve("nvmlEventSetWait_v2", None, |state| match state.set(set) {
        Some(Some(_)) => SUCCESS,
        _ => INVALID_ARGUMENT,
    });
    if began != SUCCESS {
        return began;
    }
    loop {
        // The lock is given up between two looks: the other thread asks meanwhile.
        if let Some(event) = locked(|state| state.next_event(set)) {
            // SAFETY: the caller's structure.
            return unsafe { put(data, Ok(event)) };
        }
        if Instant::now() >= end {
            return TIMEOUT;
        }
        // As seldom as the scenario is read: a benchmark counts what this costs.
        let pause = locked(|state| Duration::from_millis(state.scenario.reread_ms.max(5)));
        std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
    }
}

impl State {
    fn set(&mut self, set: usize) -> Option<&mut Option<Vec<Handle>>> {
        self.sets.get_mut(set.checked_sub(1)?)
    }

    /// The next event of the scenario that is due, where its device is in the set.
    fn next_event(&mut self, set: usize) -> Option<Data> {
        let event = self.scenario.event.get(self.delivered)?.clone();
        let Event { gpu, xid, gi, ci } = event;
        let device = handle(gpu, None);
        if !self.set(set)?.as_ref()?.contains(&device) {
            return None;
        }
        self.delivered += 1;
        let none = u32::MAX;
        Some(Data {
            device,
            kind: XID,
            number: xid,
            gpu_instance: gi.unwrap_or(none),
            compute_instance: ci.unwrap_or(none),
        })
    }
}
