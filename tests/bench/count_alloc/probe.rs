//! A program whose allocations are known. Built by `tests/count_alloc.rs`; with `--cfg own` it has an
//! allocator of its own, with `--cfg named` what tells a well-known one.
#![allow(unsafe_code, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;

/// Beyond what `malloc` aligns to.
#[repr(align(64))]
struct Aligned {
    _bytes: [u8; 640],
}

fn main() {
    let mut line = String::with_capacity(64);
    let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(2000);
    let mut aligned: Vec<Box<Aligned>> = Vec::with_capacity(10);
    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        match line.trim() {
            "allocate" => {
                blocks.extend((0..1000).map(|_| black_box(Vec::with_capacity(100))));
                blocks.iter_mut().take(10).for_each(|block| block.reserve_exact(5000));
                blocks.extend((0..5).map(|_| black_box(vec![0; 4096])));
                aligned.extend((0..3).map(|_| black_box(Box::new(Aligned { _bytes: [1; 640] }))));
            }
            "free" => {
                blocks.clear();
                aligned.clear();
            }
            _ => {}
        }
        line.clear();
        println!("done");
    }
}

#[cfg(named)]
#[used]
static NAME: &str = "<jemalloc>";

#[cfg(own)]
mod own {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ROOM: usize = 16 << 20;

    /// Hands out what lies behind what it has handed out.
    struct Own {
        room: UnsafeCell<[u8; ROOM]>,
        used: AtomicUsize,
    }

    #[global_allocator]
    static OWN: Own = Own { room: UnsafeCell::new([0; ROOM]), used: AtomicUsize::new(0) };

    // SAFETY: nothing is handed out twice.
    unsafe impl Sync for Own {}

    // SAFETY: each block is aligned, lies within the room, and is handed out once.
    unsafe impl GlobalAlloc for Own {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let room = layout.size() + layout.align();
            let start = self.used.fetch_add(room, Ordering::Relaxed);
            if start + room > ROOM {
                return std::ptr::null_mut();
            }
            // SAFETY: within the room.
            let at = unsafe { self.room.get().cast::<u8>().add(start) };
            // SAFETY: the block has so much more room than it needs.
            unsafe { at.add(at.align_offset(layout.align())) }
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }
}
