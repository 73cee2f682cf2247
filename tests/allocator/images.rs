//! Recorded memory of real releases of torch (2.0 to 2.15), with what the process said of itself.

use std::collections::BTreeMap;

use serde::Deserialize;
use vramlens::allocator::memory::{Fault, Memory};

/// What a process held at the addresses that a reader touches.
#[derive(Deserialize)]
pub struct Image {
    pub torch: String,
    pub mode: String,
    pub device: u64,
    pub layout: Shape,
    pub regions: Vec<(u64, String)>,
    pub truth: Truth,
    pub releasable_bytes: u64,
    pub private_pool_free_bytes: u64,
    pub unmapped_blocks: u64,
    pub private_pools: u64,
}

#[derive(Deserialize)]
pub struct Shape {
    pub stats: usize,
    pub gap: usize,
    pub num_alloc_retries: usize,
    pub block_pools: [(usize, usize); 2],
    pub active_blocks: usize,
}

pub type Array = [[i64; 4]; 3];

#[derive(Deserialize)]
pub struct Truth {
    pub num_alloc_retries: i64,
    pub num_ooms: i64,
    pub snap: Snapshot,
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
pub struct Snapshot {
    pub segments: u64,
    pub free_blocks: u64,
    pub active_blocks: u64,
    pub largest_free: u64,
    pub free_bytes: u64,
    pub private_bytes: u64,
    pub expandable_segments: u64,
    pub hist: BTreeMap<u32, (u64, u64)>,
}

impl Truth {
    pub fn array(&self, name: &str) -> Array {
        serde_json::from_value(self.rest[name].clone()).unwrap()
    }
}

/// All 31 images.
pub fn all() -> Vec<Image> {
    let packed = include_bytes!("images.jsonl.zst");
    let text = zstd::decode_all(packed.as_slice()).unwrap();
    let images: Vec<Image> =
        serde_json::Deserializer::from_slice(&text).into_iter().map(Result::unwrap).collect();
    assert_eq!(images.len(), 31);
    images
}

/// Memory that holds an image and nothing else.
#[derive(Clone, Default)]
pub struct Recorded(pub BTreeMap<u64, Vec<u8>>);

impl Recorded {
    pub fn of(image: &Image) -> Self {
        let mut bytes: BTreeMap<u64, u8> = BTreeMap::new();
        for (at, hex) in &image.regions {
            for n in 0..hex.len() / 2 {
                let byte = u8::from_str_radix(&hex[n * 2..n * 2 + 2], 16).unwrap();
                bytes.insert(at + n as u64, byte);
            }
        }
        // Only what was touched is recorded; the rest of those pages was there too.
        let mut memory: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (at, byte) in bytes {
            match memory.range_mut(..=at).next_back() {
                Some((start, run)) if at - start < run.len() as u64 + 4096 => {
                    run.resize((at - start) as usize, 0xa5);
                    run.push(byte);
                }
                _ => {
                    memory.insert(at, vec![byte]);
                }
            }
        }
        Self(memory)
    }
}

impl Memory for Recorded {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let (mut done, end) = (0, into.len());
        while done < end {
            let here = at + done as u64;
            let piece =
                self.0.range(..=here).next_back().filter(|(s, b)| *s + b.len() as u64 > here);
            match piece {
                Some((start, bytes)) => {
                    let from = (here - start) as usize;
                    let n = (bytes.len() - from).min(end - done);
                    into[done..done + n].copy_from_slice(&bytes[from..from + n]);
                    done += n;
                }
                None if done > 0 => break,
                None => return Err(Fault::Unmapped(at)),
            }
        }
        Ok(done)
    }
}

mod exact {
    use super::{Image, Recorded, all};
    use crate::layouts::PATIENT;
    use vramlens::allocator::blocks::Picture;
    use vramlens::allocator::device::{Device, Grade};
    use vramlens::allocator::free::free_blocks;
    use vramlens::allocator::memory::Window;
    use vramlens::allocator::stats::Statistics;
    use vramlens::ids::CudaOrdinal;
    use vramlens::units::Bytes;

    const NAMES: [&str; 9] = [
        "allocation",
        "segment",
        "active",
        "inactive_split",
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
        "inactive_split_bytes",
        "requested_bytes",
    ];

    fn check_layout(image: &Image, device: &Device) {
        let (layout, expected) = (device.layout(), &image.layout);
        let pools = layout.pools.expect("pools");
        assert_eq!(layout.stats, expected.stats);
        assert_eq!(layout.gap, expected.gap);
        assert_eq!(layout.tail(), expected.num_alloc_retries);
        assert_eq!([pools.large, pools.small], expected.block_pools.map(|pool| pool.0));
        assert_eq!([pools.sets; 2], expected.block_pools.map(|pool| pool.1));
        assert_eq!(pools.active, expected.active_blocks);
        assert!(layout.verified);
    }

    fn check_counters(image: &Image, counters: &Statistics) {
        for (array, name) in counters.arrays.iter().zip(NAMES) {
            let numbers = array.map(|s| [s.current, s.peak, s.allocated, s.freed]);
            assert_eq!(numbers, image.truth.array(name), "{name}");
        }
        assert_eq!(counters.retries, image.truth.num_alloc_retries);
        assert_eq!(counters.ooms, image.truth.num_ooms);
    }

    fn check_blocks(image: &Image, picture: &Picture) {
        let (free, truth) = (free_blocks(picture, None), &image.truth.snap);
        assert_eq!(free.count, truth.free_blocks);
        assert_eq!(free.bytes, Bytes(truth.free_bytes));
        assert_eq!(free.largest, Bytes(truth.largest_free));
        assert_eq!(picture.active, truth.active_blocks);
        assert_eq!(picture.segments, truth.segments);
        assert_eq!(picture.unmapped, image.unmapped_blocks);
        assert_eq!(picture.unmapped > 0, truth.expandable_segments > 0);
        assert_eq!(picture.private_pools, image.private_pools);
        assert_eq!(picture.private_bytes, truth.private_bytes);
        assert_eq!(free.private_bytes, Some(Bytes(image.private_pool_free_bytes)));
        if truth.expandable_segments == 0 {
            assert_eq!(free.releasable, Some(Bytes(image.releasable_bytes)));
        }
        for (class, row) in free.histogram.iter().enumerate() {
            let expected = truth.hist.get(&(class as u32)).copied().unwrap_or_default();
            assert_eq!((row.count, row.bytes.0), expected, "class {class}");
        }
        assert!(free.sizes_complete);
        assert_eq!(free.sizes.iter().map(|row| row.count).sum::<u64>(), free.count);
        assert!(free.largest_request <= free.largest);
    }

    #[test]
    fn every_recorded_release_is_read_exactly() {
        for image in all() {
            eprintln!("torch {} {}", image.torch, image.mode);
            let memory = Recorded::of(&image);
            let window = Window::new(&memory, PATIENT, &[]);
            let device = Device::find(&window, CudaOrdinal(0), image.device);
            let mut device = device.unwrap().expect("the object");
            check_layout(&image, &device);
            let (counters, grade) = device.counters(&window).unwrap();
            assert_eq!(grade, Grade::Strict);
            check_counters(&image, &counters);
            let (counters, picture) = device.blocks(&window).unwrap();
            check_counters(&image, &counters);
            check_blocks(&image, &picture);
            assert!(picture.confirms_requested(&counters) && picture.confirms_split(&counters));
        }
    }
}
