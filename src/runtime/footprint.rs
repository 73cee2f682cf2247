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
/// pages of code and constants, which come back from their files as they are needed.
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

/// Lets the pages of the program or of a library go that are never written: they are the same in its
/// file. What a loader may write is in segments that can be written, also where it protects them
/// afterwards; a library in whose code it has to write says so, and is left alone.
#[cfg(target_os = "linux")]
unsafe extern "C" fn let_go(
    info: *mut nix::libc::dl_phdr_info,
    _size: usize,
    _data: *mut std::ffi::c_void,
) -> i32 {
    use nix::libc::{MADV_DONTNEED, PT_DYNAMIC, PT_LOAD, madvise};

    /// Of a segment: it may be written.
    const PF_W: u32 = 2;
    const GO_ON: i32 = 0;

    // SAFETY: the loader gives an object with its table of segments, which stays for the call.
    let (base, segments) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let dynamic = segments.iter().find(|segment| segment.p_type == PT_DYNAMIC);
    // SAFETY: that is where the loader has put the table, which stays as long as the object does.
    if dynamic.is_none_or(|table| unsafe { writes_code(base + table.p_vaddr, table.p_memsz) }) {
        return GO_ON;
    }
    let page = rustix::param::page_size() as u64;
    for segment in segments {
        if segment.p_type != PT_LOAD || segment.p_flags & PF_W != 0 {
            continue;
        }
        let begin = (base + segment.p_vaddr).next_multiple_of(page);
        let end = (base + segment.p_vaddr + segment.p_filesz) / page * page;
        if begin < end {
            // SAFETY: the pages belong to a segment that nobody may write: what comes back is what
            // was there. (Of the kernel's own object, which is in no file, it refuses.)
            unsafe {
                madvise(begin as *mut std::ffi::c_void, (end - begin) as usize, MADV_DONTNEED);
            }
        }
    }
    GO_ON
}

/// Whether an object's dynamic table says that the loader writes in segments that are not for
/// writing (`DT_TEXTREL`, or `DF_TEXTREL` of `DT_FLAGS`).
///
/// # Safety
/// `at` must be the address of a table of so many bytes.
#[cfg(target_os = "linux")]
unsafe fn writes_code(at: u64, bytes: u64) -> bool {
    const DT_NULL: u64 = 0;
    const DT_TEXTREL: u64 = 22;
    const DT_FLAGS: u64 = 30;
    const DF_TEXTREL: u64 = 4;

    let entries = bytes as usize / size_of::<[u64; 2]>();
    // SAFETY: by the caller's word; a loaded table is aligned for its entries, pairs of numbers.
    let table = unsafe { std::slice::from_raw_parts(at as *const [u64; 2], entries) };
    table
        .iter()
        .take_while(|entry| entry[0] != DT_NULL)
        .any(|&[tag, value]| tag == DT_TEXTREL || (tag == DT_FLAGS && value & DF_TEXTREL != 0))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_comes_back_as_it_was() {
        let (text, number) = (String::from("as before"), std::f64::consts::PI.powf(2.5));
        forget_the_start();
        assert_eq!(text, "as before");
        assert!((std::hint::black_box(std::f64::consts::PI).powf(2.5) - number).abs() < 1e-12);
        assert!(std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libc")));
    }

    #[test]
    fn a_library_in_whose_code_the_loader_writes_is_known_by_its_table() {
        let of = |table: &[[u64; 2]]| {
            // SAFETY: it is a table, and lives longer than the call.
            unsafe { writes_code(table.as_ptr() as u64, size_of_val(table) as u64) }
        };
        assert!(!of(&[[1, 7], [30, 8], [0, 0], [22, 0]]), "what is behind its end does not count");
        assert!(of(&[[1, 7], [22, 0], [0, 0]]));
        assert!(of(&[[30, 8 | 4], [0, 0]]));
        assert!(!of(&[]));
    }
}
