//! Counts what a program allocates, from within: set as `LD_PRELOAD` it stands before the C library's
//! `malloc` and its kin, counts, and hands every call on. Where the counts stand: `page.rs`.
//!
//! What is allocated before the program's own start is not counted. A child that was forked and runs
//! no other program counts in its parent's slot. With another C library it is empty, and nothing is
//! counted.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code, reason = "C calls these functions, and they call C's")]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use nix::libc;

mod page;

use page::{BYTES, CALLS, LIVE, LOST, PID, SLOT, WORDS};

unsafe extern "C" {
    // The functions themselves: to look for the next symbol would allocate.
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(at: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(at: *mut c_void);
}

/// This process's slot; null while it has none.
static OWN: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = start;

/// Nothing here may allocate.
extern "C" fn start() {
    // SAFETY: no other thread is there that could change the environment; the mapping is checked, has
    // the length that the file's maker gave it, and stays.
    let words = unsafe {
        let path = libc::getenv(page::VARIABLE.as_ptr());
        if path.is_null() {
            return;
        }
        let file = libc::open(path, libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(null_mut(), WORDS * 8, access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        if at == libc::MAP_FAILED {
            return;
        }
        std::slice::from_raw_parts(at.cast::<AtomicU64>(), WORDS)
    };
    let pid = u64::from(std::process::id());
    for slot in words.chunks_exact(SLOT).skip(1) {
        let whose = slot[PID].compare_exchange(0, pid, Relaxed, Relaxed);
        if whose.is_ok() || whose == Err(pid) {
            // A program that has taken the place of another starts with nothing.
            slot[LIVE].store(0, Relaxed);
            OWN.store(slot.as_ptr().cast_mut(), Relaxed);
            return;
        }
    }
    words[LOST].fetch_add(1, Relaxed);
}

/// One more allocation, if it is one; `live` is what is allocated beyond what was, and may wrap.
fn count(calls: u64, bytes: usize, live: usize) {
    let own = OWN.load(Relaxed);
    if own.is_null() {
        return;
    }
    // SAFETY: a slot that stays mapped.
    let slot = unsafe { std::slice::from_raw_parts(own, SLOT) };
    slot[CALLS].fetch_add(calls, Relaxed);
    slot[BYTES].fetch_add(bytes as u64, Relaxed);
    slot[LIVE].fetch_add(live as u64, Relaxed);
}

fn counted(at: *mut c_void, bytes: usize) -> *mut c_void {
    if !at.is_null() {
        count(1, bytes, usable(at));
    }
    at
}

fn usable(at: *mut c_void) -> usize {
    // SAFETY: null, or a block of the C library's.
    unsafe { libc::malloc_usable_size(at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: as promised by the caller.
    counted(unsafe { __libc_malloc(size) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
    // SAFETY: as promised by the caller.
    counted(unsafe { __libc_calloc(number, size) }, number.wrapping_mul(size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: as promised by the caller.
    counted(unsafe { __libc_memalign(alignment, size) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: as promised by the caller.
    counted(unsafe { __libc_memalign(alignment, size) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    // SAFETY: as promised by the caller, whose variable `to` is.
    unsafe {
        let at = __libc_memalign(alignment, size);
        if at.is_null() {
            return libc::ENOMEM;
        }
        to.write(counted(at, size));
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    let before = usable(at);
    // SAFETY: as promised by the caller.
    let fresh = unsafe { __libc_realloc(at, size) };
    if !fresh.is_null() {
        count(1, size.saturating_sub(before), usable(fresh).wrapping_sub(before));
    } else if size == 0 {
        count(0, 0, 0usize.wrapping_sub(before));
    }
    fresh
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(at: *mut c_void) {
    if !at.is_null() {
        count(0, 0, 0usize.wrapping_sub(usable(at)));
    }
    // SAFETY: as promised by the caller.
    unsafe { __libc_free(at) };
}
