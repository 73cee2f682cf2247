//! Keeps the resident memory of a session that lasts for days small.
#![allow(unsafe_code)]

use std::ffi::c_void;

use rustix::mm::{Advice, madvise};

/// Lets all threads share one heap. Each gets one of its own otherwise, which keeps what it once
/// needed; none of them here waits for memory for long.
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator's; no other thread has been started yet.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
    }
}

/// Gives back what only the start needed: free pages of the heap, and pages of the program's code.
/// Code that is needed again comes from the kernel's page cache.
pub fn forget_the_start() {
    #[cfg(target_env = "gnu")]
    // SAFETY: returns pages to the kernel that the allocator does not use.
    unsafe {
        nix::libc::malloc_trim(0);
    }
    let Some((start, end)) = own_code() else { return };
    let length = end.saturating_sub(start);
    // SAFETY: the range is a mapping of the program's file that is executed and not written: its
    // pages are the file's, and come back as they are read.
    let _ = unsafe { madvise(start as *mut c_void, length, Advice::LinuxDontNeed) };
}

/// Where the program's own code is mapped. `None` where that is not read-only, or written to.
fn own_code() -> Option<(usize, usize)> {
    let here = own_code as fn() -> Option<(usize, usize)> as usize;
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut found = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        if let Some((start, end)) = first.split_once('-') {
            if found.is_some() {
                break;
            }
            let number = |text| usize::from_str_radix(text, 16).ok();
            let (Some(start), Some(end)) = (number(start), number(end)) else { continue };
            found = ((start..end).contains(&here) && second == "r-xp").then_some((start, end));
        } else if found.is_some()
            && matches!(first, "Private_Dirty:" | "Anonymous:")
            && second != "0"
        {
            // Somebody has put something into it, a debugger's breakpoint perhaps.
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_goes_on_after_its_start_is_forgotten() {
        let (start, end) = own_code().unwrap();
        assert!(end > start && start.is_multiple_of(4096));
        forget_the_start();
        assert_eq!(own_code(), Some((start, end)));
    }
}
