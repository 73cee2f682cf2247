//! Keeps the resident memory of a session that lasts for days small.
#![allow(unsafe_code)]

/// Lets all threads share one heap. Each gets one of its own otherwise, which keeps what it once
/// needed; none of them here waits for memory for long.
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator's; no other thread has been started yet.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
    }
}

/// Gives back the pages of the heap that only the start needed.
pub fn forget_the_start() {
    #[cfg(target_env = "gnu")]
    // SAFETY: returns pages to the kernel that the allocator does not use.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
