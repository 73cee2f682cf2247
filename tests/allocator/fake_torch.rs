//! Stands in for `libc10_cuda.so`: exports the pointer to the allocator under its name.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// The pointer.
// SAFETY: no other library of this process defines the name.
#[unsafe(export_name = "_ZN3c104cuda20CUDACachingAllocator9allocatorE")]
pub static ALLOCATOR: AtomicU64 = AtomicU64::new(0);

/// Sets the pointer, through the slot that the dynamic linker bound.
// SAFETY: no other library of this process defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn fake_torch_set(value: u64) {
    ALLOCATOR.store(value, Ordering::Release);
}
