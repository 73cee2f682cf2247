//! Where the libraries, the heap and the devices of a process are mapped.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::allocator::memory::Fault;

/// Bytes of the table that are read; 65,530 mappings (the kernel's default limit) need some 8 MiB.
const MOST_BYTES: u64 = 32 << 20;
/// Libraries by these names hold the allocator. The second is the one of `ROCm` builds.
const LIBRARIES: [&[u8]; 2] = [b"libc10_cuda.so", b"libc10_hip.so"];

/// What of `/proc/PID/maps` matters here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maps {
    /// The lowest address of each library that may hold the allocator.
    pub libraries: Vec<u64>,
    /// Memory that can be written and belongs to no device, in order.
    pub writable: Vec<(u64, u64)>,
    /// Mappings of `/dev/…`, in order.
    pub devices: Vec<(u64, u64)>,
}

impl Maps {
    /// Reads the table of a process from its directory in `/proc`.
    ///
    /// # Errors
    /// [`Fault::Denied`], [`Fault::Gone`], or the system's number.
    pub fn read(process: &Path) -> Result<Self, Fault> {
        let mut text = Vec::new();
        let file = File::open(process.join("maps"));
        file.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text))
            .map_err(|error| fault(&error))?;
        Ok(Self::parse(&text))
    }

    /// From the text of the table. Lines that make no sense are left out.
    pub fn parse(text: &[u8]) -> Self {
        let mut maps = Self::default();
        let mut seen: Vec<&[u8]> = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            let Some(mapping) = Mapping::parse(line) else { continue };
            let range = (mapping.start, mapping.end);
            if mapping.path.starts_with(b"/dev/") {
                maps.devices.push(range);
            } else if mapping.rights.starts_with(b"rw") {
                maps.writable.push(range);
            }
            if mapping.at_start && is_library(mapping.path) && !seen.contains(&mapping.path) {
                seen.push(mapping.path);
                maps.libraries.push(mapping.start);
            }
        }
        maps
    }

    /// Whether an address can hold data of the allocator.
    pub fn is_writable(&self, address: u64) -> bool {
        let next = self.writable.partition_point(|range| range.1 <= address);
        self.writable.get(next).is_some_and(|range| range.0 <= address)
    }
}

/// The name only labels the mapping: the library's content is read from memory. So neither a
/// deleted file nor another root directory matters.
fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

struct Mapping<'a> {
    start: u64,
    end: u64,
    rights: &'a [u8],
    at_start: bool,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// `7f10-7f20 rw-p 00000000 08:01 1234    /path of a file`
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut field = || {
            let end = rest.iter().position(|&byte| byte == b' ')?;
            let (text, after) = rest.split_at(end);
            rest = after.get(1..)?;
            Some(text)
        };
        let (range, rights, offset) = (field()?, field()?, field()?);
        let (_device, _inode) = (field()?, field());
        let middle = range.iter().position(|&byte| byte == b'-')?;
        let (start, end) = (hex(range.get(..middle)?)?, hex(range.get(middle + 1..)?)?);
        let at_start = hex(offset)? == 0;
        Some(Self { start, end, rights, at_start, path: rest.trim_ascii_start() })
    }
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// An error of a file in `/proc`.
pub fn fault(error: &std::io::Error) -> Fault {
    /// `ESRCH`: the process ended between the opening and the reading.
    const NO_PROCESS: i32 = 3;
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::PermissionDenied, _) => Fault::Denied,
        (ErrorKind::NotFound, _) | (_, Some(NO_PROCESS)) => Fault::Gone,
        (_, code) => Fault::System(code.unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55d0a0000000-55d0a0021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 r--p 00000000 fd:00 17 /a dir/lib/libc10_cuda.so.2 (deleted)
7f0000010000-7f0000020000 r-xp 00010000 fd:00 17 /a dir/lib/libc10_cuda.so.2 (deleted)
7f0000020000-7f0000030000 rw-p 00020000 fd:00 17 /a dir/lib/libc10_cuda.so.2 (deleted)
7f0000040000-7f0000050000 rw-s 00000000 00:06 444                        /dev/nvidia-uvm
7f0000060000-7f0000070000 r--p 00000000 fd:00 18                         /b/xlibc10_cuda.so
7f0000080000-7f0000090000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn a_table_is_read() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.libraries, [0x7f00_0000_0000]);
        assert_eq!(maps.devices, [(0x7f00_0004_0000, 0x7f00_0005_0000)]);
        assert_eq!(maps.writable.len(), 3);
        assert!(maps.is_writable(0x55d0_a000_0000) && maps.is_writable(0x7f00_0008_ffff));
        assert!(!maps.is_writable(0x7f00_0004_0000) && !maps.is_writable(0x7f00_0001_0000));
        assert!(!maps.is_writable(0) && !maps.is_writable(u64::MAX));
    }

    #[test]
    fn this_process_has_a_stack_to_write_and_no_allocator() {
        let maps = Maps::read(Path::new("/proc/self")).unwrap();
        assert!(maps.is_writable(&raw const maps as u64));
        assert_eq!(maps.libraries, [0_u64; 0]);
        assert_eq!(Maps::read(Path::new("/proc/no such process")), Err(Fault::Gone));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in proptest::collection::vec(0_u8..128, 0..400)) {
            Maps::parse(&text);
        }
    }
}
