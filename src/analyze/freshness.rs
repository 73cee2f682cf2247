//! How current what is shown is.

use super::{Freshness, Moment};
use crate::history::History;
use crate::sample::{Gap, GapCause, GpuSample, Why};

/// Facts younger than this are never called stale, in milliseconds.
const PATIENCE_MS: u64 = 2_000;

/// Of the view as a whole.
pub fn of_view(history: &History, moment: &Moment) -> Freshness {
    let patience = PATIENCE_MS.max(moment.interval_ms.saturating_mul(2));
    let in_flight = moment.in_flight.as_ref().and_then(|(call, gpu, since)| {
        let for_ms = moment.now.boot_ms.saturating_sub(*since);
        (for_ms > patience).then(|| (call.clone(), *gpu, for_ms))
    });
    let stalled = |age: u64| match in_flight.clone() {
        Some((call, gpu, for_ms)) => Freshness::Stalled { call: Some(call), gpu, for_ms },
        None => match last_stall(history) {
            Some((call, gpu)) => Freshness::Stalled { call: Some(call), gpu, for_ms: age },
            None => Freshness::Stalled { call: None, gpu: None, for_ms: age },
        },
    };
    if moment.at_boot_ms.is_some() {
        return if moment.replay { Freshness::Replay } else { Freshness::Past };
    }
    let Some(tick) = history.gpu_tick() else {
        return if in_flight.is_some() { stalled(0) } else { Freshness::Starting };
    };
    if moment.replay {
        return Freshness::Replay;
    }
    let age = moment.now.since(tick.at);
    if age > patience { stalled(age) } else { Freshness::Live }
}

/// The stall that the newest gap names, while nothing has arrived since.
fn last_stall(history: &History) -> Option<(String, Option<crate::ids::GpuIndex>)> {
    let newest: Option<&Gap> = history.gaps().next_back().filter(|_| history.in_gap());
    match &newest?.cause {
        GapCause::Stall { call, gpu } => Some((call.clone(), *gpu)),
        _ => None,
    }
}

/// Of one GPU.
pub fn of_gpu(sample: &GpuSample, view: &Freshness) -> Freshness {
    let lost = [sample.memory.why(), sample.processes.why(), sample.utilization.why()];
    if lost.contains(&Some(Why::GpuLost)) { Freshness::Lost } else { view.clone() }
}
