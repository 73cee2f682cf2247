//! The free blocks as a sample shows them.

use crate::allocator::blocks::{FreeBlock, Picture, by_size};
use crate::ids::Stamp;
use crate::sample::{BlockSize, FreeBlocks, SizeClass};
use crate::units::Bytes;

/// Different sizes of free blocks that a sample carries.
const MANY_SIZES: usize = 4096;
/// Requests up to this size are served from the small pool (`kSmallSize`).
const SMALL_REQUEST: u64 = 1 << 20;

/// The free blocks as a sample shows them; `read_at` where they are older than it.
pub fn free_blocks(picture: &Picture, read_at: Option<Stamp>) -> FreeBlocks {
    let all = || picture.free.iter();
    let sizes = |private: bool| {
        by_size(all().filter(move |block| block.private == private).map(|block| block.size))
            .into_iter()
            .map(move |(size, count)| BlockSize { size: Bytes(size), count, private })
    };
    let mut listed: Vec<BlockSize> = sizes(false).chain(sizes(true)).collect();
    let sizes_complete = listed.len() <= MANY_SIZES;
    if !sizes_complete {
        // The largest decide what still fits.
        listed.sort_by_key(|row| std::cmp::Reverse(row.size));
        listed.truncate(MANY_SIZES);
    }
    listed.sort_by_key(|row| (row.size, row.private));
    let sum =
        |blocks: &mut dyn Iterator<Item = &FreeBlock>| Bytes(blocks.map(|block| block.size).sum());
    let releasable = sum(&mut all().filter(|block| block.whole));
    FreeBlocks {
        count: picture.free.len() as u64,
        bytes: Bytes(picture.free_bytes()),
        largest: Bytes(all().map(|block| block.size).max().unwrap_or(0)),
        largest_request: Bytes(all().filter_map(served).max().unwrap_or(0)),
        histogram: histogram(all().map(|block| block.size)),
        sizes: listed,
        sizes_complete,
        private_bytes: Some(sum(&mut all().filter(|block| block.private))),
        // Expandable segments are given back page by page, also out of the middle.
        releasable: all().all(|block| !block.expandable).then_some(releasable),
        read_at,
    }
}

/// The largest request that a block serves, on the stream that owns it.
fn served(block: &FreeBlock) -> Option<u64> {
    if block.private {
        return None;
    }
    // What does not fit the small pool's requests goes to the large one, and the other way round.
    let small = block.small.then_some(block.size.min(SMALL_REQUEST));
    small.or_else(|| (block.size > SMALL_REQUEST).then_some(block.size))
}

/// Element n counts blocks of 2^n up to 2^(n+1) bytes.
fn histogram(sizes: impl Iterator<Item = u64>) -> Vec<SizeClass> {
    let mut classes: Vec<SizeClass> = Vec::new();
    for size in sizes.filter(|&size| size > 0) {
        let class = size.ilog2() as usize;
        while classes.len() <= class {
            let from = Bytes(1 << classes.len());
            classes.push(SizeClass { from, count: 0, bytes: Bytes::ZERO });
        }
        if let Some(row) = classes.get_mut(class) {
            row.count += 1;
            row.bytes += Bytes(size);
        }
    }
    classes
}
