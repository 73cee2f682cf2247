//! Reading arrays whose size only the driver knows, in the newest form that this driver has.

use super::calls::Calls;
use super::fault::Fault;
use super::raw::{DeviceId, Filled, Layout, Library, List, RawProcess};
use super::rows::{self, Limits};
use crate::ids::GpuIndex;
use crate::sample::Nonsense;

/// Rows that may appear between one look and the next.
const SLACK: usize = 16;
/// The driver itself stops at 950 processes; no count of its is trusted beyond this.
const MOST: usize = 1 << 14;
/// How often an array that is too small is asked for again.
const RETRIES: u32 = 5;

/// Room to begin with.
pub(super) const START: usize = 32;

/// Fills an array, with more room where there is too little. Bounded: a driver that always wants
/// more is an error and not an endless loop.
pub(super) fn fill<T>(
    room: &mut usize,
    mut ask: impl FnMut(usize) -> Result<Filled<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut slack = SLACK;
    for _try in 0..=RETRIES {
        match ask(*room)? {
            Filled::Rows(rows) => return Ok(rows),
            Filled::Short(needed) => {
                *room = needed.max(*room).saturating_add(slack).min(MOST);
                slack *= 2;
            }
        }
    }
    *room = START;
    Err(Fault::INSUFFICIENT_SIZE)
}

/// Which form of each list this library answers.
pub(super) struct Lists {
    order: [Layout; 3],
    chosen: [usize; 3],
    doubted: [bool; 3],
}

impl Lists {
    pub(super) fn new(library: &Library) -> Self {
        let order = if library.fills_wide_rows() {
            [Layout::V2, Layout::V3Wide, Layout::V1]
        } else {
            [Layout::V3, Layout::V2, Layout::V1]
        };
        Self { order, chosen: [0; 3], doubted: [false; 3] }
    }

    /// One list of one device.
    pub(super) fn read(
        &mut self,
        (library, calls): (&Library, &Calls),
        (id, gpu): (DeviceId, GpuIndex),
        list: List,
        room: &mut usize,
        limits: Limits,
    ) -> Result<Vec<RawProcess>, Fault> {
        let ask = |layout, room: &mut usize| {
            fill(room, |room| {
                calls.make(name(list, layout), Some(gpu), || {
                    library.processes(id, (list, layout), room)
                })
            })
        };
        let chosen = &mut self.chosen[list as usize];
        let rows = loop {
            match ask(self.order[*chosen], room) {
                Err(fault) if fault.wants_older() && *chosen + 1 < self.order.len() => *chosen += 1,
                answer => break answer?,
            }
        };
        // A library with another idea of the row shows itself by pids and sizes that cannot be.
        let nonsense = rows::count_nonsense(&rows, limits);
        let doubtful = nonsense.bad_pids + nonsense.bad_bytes > 0;
        if doubtful && !std::mem::replace(&mut self.doubted[list as usize], true) {
            for older in *chosen + 1..self.order.len() {
                let Ok(other) = ask(self.order[older], room) else { continue };
                if other.len() == rows.len()
                    && rows::count_nonsense(&other, limits) == Nonsense::default()
                {
                    *chosen = older;
                    return Ok(other);
                }
            }
        }
        Ok(rows)
    }
}

const fn name(list: List, layout: Layout) -> &'static str {
    use Layout::{V1, V2, V3, V3Wide};
    match (list, layout) {
        (List::Compute, V1) => "nvmlDeviceGetComputeRunningProcesses",
        (List::Compute, V2) => "nvmlDeviceGetComputeRunningProcesses_v2",
        (List::Compute, V3 | V3Wide) => "nvmlDeviceGetComputeRunningProcesses_v3",
        (List::Graphics, V1) => "nvmlDeviceGetGraphicsRunningProcesses",
        (List::Graphics, V2) => "nvmlDeviceGetGraphicsRunningProcesses_v2",
        (List::Graphics, V3 | V3Wide) => "nvmlDeviceGetGraphicsRunningProcesses_v3",
        (List::Mps, V1) => "nvmlDeviceGetMPSComputeRunningProcesses",
        (List::Mps, V2) => "nvmlDeviceGetMPSComputeRunningProcesses_v2",
        (List::Mps, V3 | V3Wide) => "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_grows_to_what_is_needed() {
        let (mut room, mut asked) = (4, Vec::new());
        let rows = fill(&mut room, |room| {
            asked.push(room);
            Ok(if room < 40 { Filled::Short(40) } else { Filled::Rows(vec![0; 40]) })
        });
        assert_eq!(rows.map(|rows| rows.len()), Ok(40));
        assert_eq!((asked, room), (vec![4, 56], 56));
    }

    #[test]
    fn a_driver_that_always_wants_more_is_asked_six_times() {
        let (mut room, mut asked) = (START, 0);
        let rows = fill::<u8>(&mut room, |_room| {
            asked += 1;
            Ok(Filled::Short(usize::MAX))
        });
        assert_eq!((rows, asked), (Err(Fault::INSUFFICIENT_SIZE), 1 + RETRIES));
        assert_eq!(room, START);
    }
}
