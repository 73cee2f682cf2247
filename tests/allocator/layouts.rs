//! Every generation of layouts is read exactly, every wrong one refused.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use vramlens::allocator::Limits;
use vramlens::allocator::device::Device;
use vramlens::allocator::memory::{Fault, ProcessMemory, Window};
use vramlens::ids::{CudaOrdinal, Pid, Stamp};
use vramlens::sample::{AllocatorDevice, Reading, Why};
use vramlens::units::Bytes;

use crate::standin::shape::{GENERATIONS, Shape, Wrong};
use crate::standin::world::{Dice, STATS, Truth, UUID, World};

/// A machine that has other things to do changes nothing.
pub const PATIENT: Limits = Limits { time: Duration::from_mins(1), ..Limits::DEFAULT };
pub const NOW: Stamp = Stamp { boot_ms: 1000, wall_ms: 1000 };

fn bytes(truth: &Truth, counter: usize, field: usize) -> Bytes {
    Bytes(truth.arrays[counter][0][field].cast_unsigned())
}

/// Compares what was read with the truth; what is absent has to be so for a reason in `allowed`.
pub fn compare(device: &AllocatorDevice, truth: &Truth, allowed: &[Why]) {
    fn same<T: PartialEq + std::fmt::Debug>(read: &Reading<T>, truth: &T, allowed: &[Why]) {
        match read {
            Reading::Value(value) => assert_eq!(value, truth),
            Reading::Absent(why) => assert!(allowed.contains(why), "{why}"),
        }
    }
    assert_eq!(device.allocated, bytes(truth, 4, 0));
    assert_eq!(device.reserved, bytes(truth, 5, 0));
    same(&device.active, &bytes(truth, 6, 0), allowed);
    same(&device.inactive_split, &bytes(truth, 7, 0), allowed);
    same(&device.requested, &bytes(truth, 8, 0), allowed);
    same(&device.peak_allocated, &bytes(truth, 4, 1), allowed);
    same(&device.peak_reserved, &bytes(truth, 5, 1), allowed);
    same(&device.retries, &truth.retries.cast_unsigned(), allowed);
    same(&device.ooms, &truth.ooms.cast_unsigned(), allowed);
    same(&device.segments, &truth.segments, allowed);
    same(&device.private_pools, &Bytes(truth.private_bytes), allowed);
    same(&device.expandable_segments, &truth.expandable, allowed);
    match &device.free {
        Reading::Absent(why) => assert!(allowed.contains(why), "{why}"),
        Reading::Value(free) => {
            assert_eq!(free.count, truth.free_blocks);
            assert_eq!(free.bytes, Bytes(truth.free_bytes));
            assert_eq!(free.largest, Bytes(truth.largest));
            assert!(free.largest_request <= free.largest && free.sizes_complete);
            assert_eq!(free.read_at, None);
            let mut sizes = BTreeMap::new();
            for row in &free.sizes {
                *sizes.entry(row.size.0).or_default() += row.count;
            }
            assert_eq!(sizes, truth.sizes);
            let classes = |f: fn(&vramlens::sample::SizeClass) -> u64| -> u64 {
                free.histogram.iter().map(f).sum()
            };
            assert_eq!(classes(|class| class.count), free.count);
            assert_eq!(classes(|class| class.bytes.0), free.bytes.0);
        }
    }
}

/// The device at that address of this process.
fn read(address: u64, with_blocks: bool) -> Result<Option<AllocatorDevice>, Fault> {
    let memory = ProcessMemory::new(Pid(std::process::id()));
    let window = Window::new(&memory, PATIENT, &[]);
    let Some(mut device) = Device::find(&window, CudaOrdinal(0), address)? else {
        return Err(Fault::Unknown);
    };
    device.sample(&window, NOW, with_blocks)
}

fn any_shape() -> impl Strategy<Value = Shape> {
    prop::sample::select(GENERATIONS.as_slice())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_generation_is_read_exactly(shape in any_shape(), seed: u64, steps in 1_usize..160) {
        let (mut world, mut dice) = (World::new(shape), Dice(seed));
        for _ in 0..steps {
            world.step(&mut dice);
        }
        let truth = world.truth();
        let Some(device) = read(world.device(), true).unwrap() else {
            prop_assert_eq!(truth.arrays[5][0][1], 0);
            return Ok(());
        };
        compare(&device, &truth, &[]);
        let uuid = "GPU-d3ad0102-0304-0506-0708-090a0b0c0d0e";
        prop_assert_eq!(UUID[0], 0xd3);
        prop_assert_eq!(
            device.gpu.as_ref().map(ToString::to_string),
            shape.has_prop.then(|| uuid.to_owned())
        );
        // The first look is at the blocks too: they prove the layout.
        if let Some(device) = read(world.device(), false).unwrap() {
            compare(&device, &truth, &[]);
        }
    }

    #[test]
    fn a_wrong_layout_is_refused(
        shape in any_shape(),
        wrong in prop::sample::select(WRONG.as_slice()),
        seed: u64,
        steps in 40_usize..120,
    ) {
        let (mut world, mut dice) = (World::new(shape.wrong(wrong)), Dice(seed));
        for _ in 0..steps {
            world.step(&mut dice);
        }
        match read(world.device(), true) {
            // What is given all the same has to be right.
            Ok(Some(device)) => compare(&device, &world.truth(), &[Why::UnknownLayout, Why::Nonsense]),
            Ok(None) => {}
            Err(fault) => prop_assert_eq!(fault, Fault::Unknown),
        }
    }
}

const WRONG: [Wrong; 12] = [
    Wrong::MoreStats,
    Wrong::MoreArrays,
    Wrong::PeakFirst,
    Wrong::SplitAndRequested,
    Wrong::AllocatedAndReserved,
    Wrong::LongTail,
    Wrong::OtherMutex,
    Wrong::OtherSets,
    Wrong::NoPoolInBlock,
    Wrong::SizeElsewhere,
    Wrong::OtherTable,
    Wrong::NarrowCounters,
];

#[test]
fn most_wrong_layouts_give_nothing_at_all() {
    for wrong in WRONG {
        let (mut world, mut dice) = (World::new(GENERATIONS[7].wrong(wrong)), Dice(3));
        for _ in 0..100 {
            world.step(&mut dice);
        }
        let outcome = read(world.device(), true);
        match wrong {
            // The counters are where they were; only the blocks are not.
            Wrong::NoPoolInBlock | Wrong::SizeElsewhere | Wrong::OtherTable => {
                let device = outcome.unwrap().unwrap();
                assert_eq!(device.free.why(), Some(Why::UnknownLayout), "{wrong:?}");
                assert_eq!(device.requested.why(), Some(Why::UnknownLayout), "{wrong:?}");
            }
            // Only the blocks can tell.
            Wrong::SplitAndRequested => {
                let device = outcome.unwrap().unwrap();
                assert_eq!(device.inactive_split.why(), Some(Why::Nonsense));
                assert_eq!(device.requested.why(), Some(Why::Nonsense));
            }
            Wrong::MoreStats | Wrong::OtherSets => {
                let device = outcome.unwrap().unwrap();
                assert_eq!(device.retries.why(), Some(Why::UnknownLayout));
            }
            _ => assert!(!matches!(outcome, Ok(Some(_))), "{wrong:?}: {outcome:?}"),
        }
    }
}

#[test]
fn counters_at_rest_that_cannot_be_are_an_unknown_layout() {
    let (mut world, mut dice) = (World::new(GENERATIONS[6]), Dice(3));
    for _ in 0..40 {
        world.step(&mut dice);
    }
    let memory = ProcessMemory::new(Pid(std::process::id()));
    let window = Window::new(&memory, PATIENT, &[]);
    let device = Device::find(&window, CudaOrdinal(0), world.device()).unwrap().unwrap();
    assert!(device.counters(&window).is_ok());
    // More bytes in use than the driver gave.
    world.device.put(STATS + 4 * 96, 1 << 50);
    assert_eq!(device.counters(&window).err(), Some(Fault::Unknown));
}

#[test]
fn blocks_of_an_earlier_look_say_so_even_within_one_tick_of_the_clock() {
    let (mut world, mut dice) = (World::new(GENERATIONS[6]), Dice(3));
    for _ in 0..40 {
        world.step(&mut dice);
    }
    let memory = ProcessMemory::new(Pid(std::process::id()));
    let rich = Window::new(&memory, PATIENT, &[]);
    let mut device = Device::find(&rich, CudaOrdinal(0), world.device()).unwrap().unwrap();
    let read_at = |sample: Option<AllocatorDevice>| sample.unwrap().free.value().unwrap().read_at;
    assert_eq!(read_at(device.sample(&rich, NOW, true).unwrap()), None);
    world.step(&mut dice);
    // Enough for the counters only.
    let poor = Window::new(&memory, Limits { bytes: 3000, ..PATIENT }, &[]);
    assert_eq!(read_at(device.sample(&poor, NOW, true).unwrap()), Some(NOW));
}
