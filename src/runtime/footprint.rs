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

/// Gives back what only the start needed: pages of the heap that the allocator does not use, and
/// pages of code and constants, which come back from the file as they are needed.
pub fn forget_the_start() {
    #[cfg(target_env = "gnu")]
    // SAFETY: returns pages to the kernel that the allocator does not use.
    unsafe {
        nix::libc::malloc_trim(0);
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the callback has the type that is asked for and uses no data.
    unsafe {
        nix::libc::dl_iterate_phdr(Some(let_go), std::ptr::null_mut());
    }
}

/// Lets the pages of the program go that are never written: they are the same in its file. Those of
/// libraries stay, since a loader may have changed some.
#[cfg(target_os = "linux")]
unsafe extern "C" fn let_go(
    info: *mut nix::libc::dl_phdr_info,
    _size: usize,
    _data: *mut std::ffi::c_void,
) -> i32 {
    use nix::libc::{MADV_DONTNEED, PT_LOAD, madvise};

    /// Of a segment: it may be written.
    const PF_W: u32 = 2;

    // SAFETY: the loader gives the program, with its table of segments, which stays.
    let (base, segments) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let page = rustix::param::page_size() as u64;
    for segment in segments {
        if segment.p_type != PT_LOAD || segment.p_flags & PF_W != 0 {
            continue;
        }
        let begin = (base + segment.p_vaddr).next_multiple_of(page);
        let end = (base + segment.p_vaddr + segment.p_filesz) / page * page;
        if begin < end {
            // SAFETY: the pages belong to a segment that nobody may write: what comes back is what
            // was there.
            unsafe {
                madvise(begin as *mut std::ffi::c_void, (end - begin) as usize, MADV_DONTNEED);
            }
        }
    }
    // The program comes first; what follows is not asked for.
    1
}
