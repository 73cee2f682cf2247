//! Memory with anything in it: no panic, no endless walk, no more bytes than were granted.

use proptest::prelude::*;
use vramlens::allocator::Limits;
use vramlens::allocator::device::Device;
use vramlens::allocator::known::Places;
use vramlens::allocator::layout::Pools;
use vramlens::allocator::locate::locate;
use vramlens::allocator::maps::Maps;
use vramlens::allocator::memory::{Fault, Memory, Window};
use vramlens::allocator::walk::walk;
use vramlens::allocator::{elf, view::View};
use vramlens::ids::{CudaOrdinal, Stamp};

use crate::images::{Recorded, all};

/// Every address can be read; what is there depends on the seed.
struct Chaos {
    seed: u64,
    words: Vec<u64>,
}

impl Memory for Chaos {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        for (n, byte) in into.iter_mut().enumerate() {
            let address = at + n as u64;
            let hash = ((address / 8) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let word = self.words[(hash >> 40) as usize % self.words.len()];
            // Some words point back to themselves or their neighbours: cycles.
            let word = if word == u64::MAX { (address & !7).wrapping_sub(8) } else { word };
            *byte = word.to_le_bytes()[(address % 8) as usize];
        }
        Ok(into.len())
    }
}

const LIMITS: Limits = Limits { bytes: 1 << 20, steps: 20_000, blocks: 1_000, ..Limits::DEFAULT };

fn words() -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        Just(0_u64),
        Just(1),
        Just(u64::MAX),
        Just(0x3f00_0000_0000_073d),
        0_u64..64,
        0x5555_0000_0000_u64..0x5555_0001_0000,
        any::<u64>(),
        Just(1 << 40),
    ];
    prop::collection::vec(word, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_memory_is_survived(seed: u64, words in words(), base in 0x5555_0000_0000_u64..0x5555_0001_0000) {
        let memory = Chaos { seed, words };
        let maps = Maps {
            libraries: vec![base],
            writable: vec![(0x1000, 1 << 56)],
            devices: Vec::new(),
        };
        for gap in 0..3 {
            let window = Window::new(&memory, LIMITS, &[]);
            let _any = Device::find(&window, CudaOrdinal(0), base & !7);
            let _any = locate(&window, &maps);
            let _any = elf::resolve(&window, base, "name");
            let copy = window.some(base & !7, 4096).unwrap_or_default();
            let pools = Pools { large: 1024, small: 1144, sets: gap + 1, active: 1264 };
            let mut places = Places::of(vec![base & !7]);
            let _any = walk(&window, base & !7, &copy, pools, &mut places);
            let _any = walk(&window, base & !7, &copy, pools, &mut places);
            prop_assert!(window.bytes_read() <= LIMITS.bytes);
        }
    }

    #[test]
    fn a_damaged_image_is_refused_or_adds_up(
        index in 0_usize..31,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8, any::<u64>()), 1..6),
    ) {
        thread_local!(static IMAGES: Vec<(u64, Recorded)> =
            all().iter().map(|image| (image.device, Recorded::of(image))).collect());
        let (base, mut memory) = IMAGES.with(|images| images[index].clone());
        for (place, kind, noise) in damage {
            // Half of the damage hits the object itself.
            let region = if kind % 2 == 0 { base } else { *place.get(&memory.0.keys().copied().collect::<Vec<_>>()) };
            let Some(bytes) = memory.0.range_mut(..=region).next_back().map(|row| row.1) else { continue };
            let at = place.index(bytes.len().max(8) / 8) * 8;
            let word = match kind / 2 {
                0 => noise,
                1 => base + noise % 4096,
                2 => 0,
                _ => noise % (1 << 24),
            };
            if let Some(old) = bytes.get_mut(at..at + 8) {
                old.copy_from_slice(&word.to_le_bytes());
            }
        }
        let window = Window::new(&memory, Limits::DEFAULT, &[]);
        if let Ok(Some(mut device)) = Device::find(&window, CudaOrdinal(0), base) {
            if let Ok((counters, picture)) = device.blocks(&window) {
                prop_assert!(counters.plausible() && picture.adds_up(&counters));
            }
            let now = Stamp { boot_ms: 1, wall_ms: 1 };
            let _any = device.sample(&window, now, true);
        }
    }

    #[test]
    fn numbers_are_never_read_behind_the_end(bytes: Vec<u8>, at: usize) {
        let view = View(&bytes);
        prop_assert_eq!(view.word(at).is_some(), at.checked_add(8).is_some_and(|end| end <= bytes.len()));
        prop_assert_eq!(view.byte(at).is_some(), at < bytes.len());
    }
}

/// A process that may not be read.
struct Forbidden(Fault);

impl Memory for Forbidden {
    fn read(&self, _at: u64, _into: &mut [u8]) -> Result<usize, Fault> {
        Err(self.0)
    }
}

#[test]
fn a_refusal_of_the_system_is_passed_on() {
    let maps = Maps { libraries: vec![1 << 20], ..Maps::default() };
    for fault in [Fault::Denied, Fault::Gone, Fault::Unsupported, Fault::System(12)] {
        let memory = Forbidden(fault);
        let window = Window::new(&memory, Limits::DEFAULT, &[]);
        assert_eq!(locate(&window, &maps).unwrap_err(), fault);
        assert_eq!(Device::find(&window, CudaOrdinal(0), 1 << 20).unwrap_err(), fault);
    }
}
