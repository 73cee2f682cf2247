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
/// pages of code and constants, which come back from their files as they are needed. On a thread of
/// its own, since it reads `/proc`.
pub fn forget_the_start() {
    // Without a thread to be had it stays as it is.
    let _ = std::thread::Builder::new().name("footprint".to_owned()).spawn(let_go);
}

fn let_go() {
    #[cfg(target_env = "gnu")]
    // SAFETY: returns pages to the kernel that the allocator does not use.
    unsafe {
        nix::libc::malloc_trim(0);
    }
    #[cfg(target_os = "linux")]
    for (begin, length) in
        as_in_file(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default())
    {
        // SAFETY: a mapping of a file that nobody may write and in which no page has been changed:
        // what comes back is what was there. One that is gone since is refused.
        unsafe {
            nix::libc::madvise(begin as *mut _, length, nix::libc::MADV_DONTNEED);
        }
    }
}

/// Address and length of the mappings of files that cannot be written and have no page that differs
/// from the file, out of `/proc/PID/smaps`. A loader's relocations, a debugger's breakpoints and
/// whatever else was put into code show as anonymous memory there.
#[cfg(target_os = "linux")]
fn as_in_file(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut here = None;
    for line in smaps.lines() {
        if let Some((begin, length, fit)) = mapping(line) {
            here = fit.then_some((begin, length));
        } else if line.split_ascii_whitespace().eq(["Anonymous:", "0", "kB"]) {
            found.extend(here.take());
        }
    }
    found
}

/// `55d0c8a00000-55d0c8b00000 r-xp 00000000 fe:01 1234   /usr/bin/vramlens` begins one: its address,
/// its length, and whether it is of a file and cannot be written.
#[cfg(target_os = "linux")]
fn mapping(line: &str) -> Option<(usize, usize, bool)> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let (begin, end) = (address(begin)?, address(end)?);
    let access = words.next()?;
    let of_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    let constant = access.starts_with('r') && !access.contains('w') && access.ends_with('p');
    Some((begin, end.checked_sub(begin)?, of_file && constant))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_comes_back_as_it_was() {
        let (text, number) = (String::from("as before"), std::f64::consts::PI.powf(2.5));
        let_go();
        assert_eq!(text, "as before");
        assert!((std::hint::black_box(std::f64::consts::PI).powf(2.5) - number).abs() < 1e-12);
        assert!(std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libc")));
    }

    #[test]
    fn only_mappings_that_are_as_in_their_file_are_let_go() {
        let smaps = "\
1000-3000 r-xp 00000000 fe:01 7    /usr/bin/vramlens
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
3000-4000 r--p 00002000 fe:01 7    /usr/bin/vramlens
Anonymous:             4 kB
4000-6000 rw-p 00003000 fe:01 7    /usr/bin/vramlens
Anonymous:             0 kB
6000-7000 r--p 00000000 00:00 0
Anonymous:             0 kB
7000-8000 r-xp 00000000 00:00 0    [vdso]
Anonymous:             0 kB
8000-9000 r-xs 00000000 fe:01 9    /usr/lib/libshared.so
Anonymous:             0 kB
a000-c000 r--p 00000000 fe:01 9    /usr/lib/with blanks.so (deleted)
Anonymous:             0 kB
";
        assert_eq!(as_in_file(smaps), [(0x1000, 0x2000), (0xa000, 0x2000)]);
        assert_eq!(as_in_file("no smaps\n1-2\n-\n"), []);
    }

    #[test]
    fn a_page_that_was_changed_is_kept() {
        use std::os::fd::AsRawFd;

        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[7; 8192]).unwrap();
        // SAFETY: a new private mapping of a file of that length, written inside of it, and given
        // back at the end.
        unsafe {
            use nix::libc::{MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, mprotect, munmap};
            let at = mmap(
                std::ptr::null_mut(),
                8192,
                PROT_READ | PROT_WRITE,
                MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            );
            at.cast::<u8>().write(9);
            mprotect(at, 8192, PROT_READ);
            let_go();
            assert_eq!((at.cast::<u8>().read(), at.cast::<u8>().add(4096).read()), (9, 7));
            munmap(at, 8192);
        }
    }
}
