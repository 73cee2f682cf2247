//! What of the driver's figures can be true: memory that adds up, processes once each. Pure.

use super::raw::{List, RawMemory, RawProcess, RawSample};
use crate::ids::Pid;
use crate::sample::{GpuProc, Memory, MemoryApi, Nonsense, ProcKinds, Reading, Why};
use crate::units::{Bytes, Percent};

/// The driver's way to say that a figure is not available.
const ALL_ONES: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

/// What no answer can exceed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The kernel's greatest pid.
    pub(super) pid_max: u32,
    /// The GPU's memory, where it is known.
    pub(super) total: Option<Bytes>,
}

/// The figures as a [`Memory`], or `None` where they do not add up.
pub(super) fn memory(raw: RawMemory) -> Option<Memory> {
    let RawMemory { total, used, free, reserved } = raw;
    let adds_up = |parts: &[u64]| {
        let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        total > 0 && sum == Some(total)
    };
    let (used, api) = match reserved {
        None => (adds_up(&[used, free]).then_some(used)?, MemoryApi::V1),
        Some(reserved) if adds_up(&[used, reserved, free]) => (used, MemoryApi::V2),
        // The header says of the function, not of its structure, that used includes reserved.
        Some(reserved) => {
            (adds_up(&[used, free]).then(|| used.checked_sub(reserved))??, MemoryApi::V2)
        }
    };
    Some(Memory {
        total: Bytes(total),
        used: Bytes(used),
        reserved: reserved.map_or(Reading::Absent(Why::OldDriver), |n| Reading::Value(Bytes(n))),
        free: Bytes(free),
        api,
    })
}

/// How many of these rows cannot be true.
pub(super) fn count_nonsense(rows: &[RawProcess], limits: Limits) -> Nonsense {
    let mut count = Nonsense::default();
    for row in rows {
        believable(row, limits, &mut count);
    }
    count
}

fn believable(row: &RawProcess, limits: Limits, nonsense: &mut Nonsense) -> bool {
    let total = limits.total.map_or(ALL_ONES, |total| total.0);
    if row.pid == 0 || row.pid > limits.pid_max {
        nonsense.bad_pids += 1;
        false
    } else if row.bytes != ALL_ONES && row.bytes > total {
        nonsense.bad_bytes += 1;
        false
    } else {
        true
    }
}

/// Every process of these lists once, by pid, with its largest figure and all its kinds.
pub(super) fn merge(
    lists: &[(List, Vec<RawProcess>)],
    limits: Limits,
    nonsense: &mut Nonsense,
) -> Vec<GpuProc> {
    let most = lists.iter().map(|(_, rows)| rows.len()).sum();
    let mut merged = Vec::with_capacity(most);
    for (list, rows) in lists {
        let believed = rows.iter().filter(|row| believable(row, limits, nonsense));
        merged.extend(believed.map(|row| process(*list, row)));
    }
    // Stable: what the first list says stands first.
    merged.sort_by_key(|process| process.pid);
    merged.dedup_by(|again, first| {
        let same = again.pid == first.pid;
        if same {
            join(first, again);
        }
        same
    });
    merged
}

/// A row of one list.
fn process(list: List, row: &RawProcess) -> GpuProc {
    let named = |id: u32| (id != NO_INSTANCE).then_some(id);
    GpuProc {
        pid: Pid(row.pid),
        used: match row.bytes {
            ALL_ONES => Reading::Absent(Why::NotSupported),
            bytes => Reading::Value(Bytes(bytes)),
        },
        kinds: ProcKinds {
            compute: list == List::Compute,
            graphics: list == List::Graphics,
            mps: list == List::Mps,
        },
        sm: Reading::Absent(Why::NotAsked),
        gpu_instance: named(row.gpu_instance),
        compute_instance: named(row.compute_instance),
    }
}

/// What another row says of the same process.
fn join(first: &mut GpuProc, again: &GpuProc) {
    first.kinds.compute |= again.kinds.compute;
    first.kinds.graphics |= again.kinds.graphics;
    first.kinds.mps |= again.kinds.mps;
    if let Some(bytes) = again.used.get() {
        let known = first.used.get().unwrap_or(Bytes::ZERO);
        first.used = Reading::Value(known.max(bytes));
    }
    first.gpu_instance = first.gpu_instance.or(again.gpu_instance);
    first.compute_instance = first.compute_instance.or(again.compute_instance);
}

/// Gives each process the highest of its samples; one without a sample was idle.
pub(super) fn spread(samples: &[RawSample], processes: &mut [GpuProc]) {
    let mut shares: Vec<_> = samples.iter().map(|sample| (sample.pid, sample.sm_percent)).collect();
    shares.sort_unstable();
    for process in processes {
        let upto = shares.partition_point(|share| share.0 <= process.pid.0);
        let highest = shares[..upto].last().filter(|share| share.0 == process.pid.0);
        process.sm = match highest {
            None => Reading::Value(Percent(0.0)),
            Some((_, share @ 0..=100)) => Reading::Value(Percent(*share as f32)),
            Some(_) => Reading::Absent(Why::Nonsense),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { pid_max: 4_194_304, total: Some(Bytes(1000)) };

    fn row(pid: u32, bytes: u64) -> RawProcess {
        RawProcess { pid, bytes, gpu_instance: NO_INSTANCE, compute_instance: NO_INSTANCE }
    }

    fn v2(total: u64, used: u64, reserved: u64, free: u64) -> RawMemory {
        RawMemory { total, used, free, reserved: Some(reserved) }
    }

    #[test]
    fn memory_adds_up_or_is_not_believed() {
        let plain = memory(v2(100, 30, 5, 65)).unwrap();
        assert_eq!((plain.used, plain.reserved), (Bytes(30), Reading::Value(Bytes(5))));
        let with_reserved = memory(v2(100, 35, 5, 65)).unwrap();
        assert_eq!(with_reserved, plain, "used that includes reserved is told apart");
        let old = memory(RawMemory { total: 100, used: 35, free: 65, reserved: None }).unwrap();
        assert_eq!((old.used, old.api), (Bytes(35), MemoryApi::V1));
        assert_eq!(old.reserved, Reading::Absent(Why::OldDriver));
        for bad in [v2(100, 30, 5, 66), v2(0, 0, 0, 0), v2(ALL_ONES, ALL_ONES, 1, ALL_ONES)] {
            assert_eq!(memory(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_process_in_two_lists_stands_once_with_the_maximum() {
        let mut nonsense = Nonsense::default();
        let lists = [
            (List::Compute, vec![row(7, 100), row(9, ALL_ONES)]),
            (List::Graphics, vec![row(7, 140), row(0, 1), row(4_194_305, 1), row(8, 1001)]),
            (List::Mps, vec![row(9, ALL_ONES)]),
        ];
        let merged = merge(&lists, LIMITS, &mut nonsense);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0].used, Reading::Value(Bytes(140)));
        assert_eq!(merged[0].kinds.letters(), "C+G");
        assert_eq!(merged[1].used, Reading::Absent(Why::NotSupported));
        assert_eq!(merged[1].kinds.letters(), "C+M");
        assert_eq!(nonsense, Nonsense { bad_pids: 2, bad_bytes: 1, ..Nonsense::default() });
    }

    #[test]
    fn idle_is_zero_and_more_than_a_hundred_is_nothing() {
        let lists = [(List::Compute, vec![row(1, 1), row(2, 1), row(3, 1)])];
        let mut processes = merge(&lists, LIMITS, &mut Nonsense::default());
        let shares = [(1, 20), (1, 60), (1, 40), (3, 7000)];
        spread(&shares.map(|(pid, share)| RawSample::of(pid, share)), &mut processes);
        let shares: Vec<_> = processes.iter().map(|process| process.sm).collect();
        let value = |share| Reading::Value(Percent(share));
        assert_eq!(shares, [value(60.0), value(0.0), Reading::Absent(Why::Nonsense)]);
    }

    proptest! {
        #[test]
        fn any_rows_are_merged_or_counted(
            rows in prop::collection::vec((0..6_u32, prop_oneof![0..2000_u64, Just(ALL_ONES)]), 0..40),
        ) {
            let rows: Vec<_> = rows.iter().map(|(pid, bytes)| row(*pid, *bytes)).collect();
            let mut nonsense = Nonsense::default();
            let merged = merge(&[(List::Compute, rows.clone())], LIMITS, &mut nonsense);
            let believed = rows.iter().filter(|row| {
                row.pid != 0 && (row.bytes == ALL_ONES || row.bytes <= 1000)
            });
            let dropped = (nonsense.bad_pids + nonsense.bad_bytes) as usize;
            prop_assert_eq!(believed.clone().count() + dropped, rows.len());
            for process in &merged {
                let most = believed.clone()
                    .filter(|row| row.pid == process.pid.0 && row.bytes != ALL_ONES)
                    .map(|row| row.bytes).max();
                prop_assert_eq!(process.used.get().map(|bytes| bytes.0), most);
            }
        }

        #[test]
        fn believed_memory_adds_up(total in 0..50_u64, used in 0..50_u64, reserved in 0..50_u64, free in 0..50_u64) {
            if let Some(memory) = memory(v2(total, used, reserved, free)) {
                let reserved = memory.reserved.get().unwrap();
                prop_assert_eq!(memory.used + reserved + memory.free, memory.total);
            }
        }
    }
}
