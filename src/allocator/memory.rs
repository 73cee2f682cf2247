//! Reading the memory of another process, bounded in bytes, calls and time.

mod scatter;

use std::cell::Cell;
use std::io::IoSliceMut;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use crate::allocator::notes::Notes;
use crate::allocator::view::View;
use crate::ids::Pid;
use crate::sample::Why;

/// Below it nothing is mapped, above it no user space ends, even with five-level page tables.
const USER_SPACE: std::ops::Range<u64> = 0x1000..1 << 56;
/// The most pieces of one system call (`IOV_MAX`).
const MAX_PIECES: usize = 1024;

/// Why memory could not be read, or could not be what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Debugging the process is not allowed.
    #[error("no permission to read the memory of the process")]
    Denied,
    /// The process has ended.
    #[error("the process has ended")]
    Gone,
    /// Nothing is mapped there, or a device is.
    #[error("nothing to read at {0:#x}")]
    Unmapped(u64),
    /// More bytes, calls or time than were granted.
    #[error("the limits of one reading are spent")]
    Spent,
    /// The system has no such call, or forbids it.
    #[error("the system has no call to read another process")]
    Unsupported,
    /// It changed while it was read.
    #[error("it changed while it was read")]
    Changed,
    /// It is not laid out in a way that is known.
    #[error("unknown layout")]
    Unknown,
    /// An error of the system, by its number.
    #[error("error {0} of the system")]
    System(i32),
}

impl Fault {
    /// As the reason of an absent value.
    pub const fn why(self) -> Why {
        match self {
            Self::Denied => Why::NoPermission,
            Self::Gone => Why::Gone,
            Self::Unmapped(_) | Self::Unknown => Why::UnknownLayout,
            Self::Spent => Why::TimedOut,
            Self::Unsupported => Why::NotSupported,
            Self::Changed => Why::NotYet,
            Self::System(code) => Why::Failed(code),
        }
    }

    /// Whether it says something about the access as such, not about one address.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Unmapped(_) | Self::Changed | Self::Unknown)
    }
}

/// A piece of memory: where it begins and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its first address.
    pub at: u64,
    /// Its length in bytes.
    pub len: usize,
}

/// Memory that is read by address: a process, a recorded image, a test's own invention.
pub trait Memory {
    /// Copies from `at`; returns how many bytes there were, fewer than asked at an unmapped page.
    ///
    /// # Errors
    /// [`Fault::Unmapped`] where not a single byte is readable, otherwise what the system said.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault>;

    /// Copies the pieces one after the other, in order, all of them or an error. `into` is as long
    /// as they are together.
    ///
    /// # Errors
    /// As [`Memory::read`], also where a piece is readable only in part.
    fn gather(&self, pieces: &[Piece], into: &mut [u8]) -> Result<(), Fault> {
        let mut rest = into;
        for piece in pieces {
            let (part, after) = rest.split_at_mut_checked(piece.len).ok_or(Fault::Changed)?;
            if self.read(piece.at, part)? != piece.len {
                return Err(Fault::Unmapped(piece.at));
            }
            rest = after;
        }
        Ok(())
    }
}

/// A living process, read by `process_vm_readv`: it is not stopped, traced or written.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory(nix::unistd::Pid);

impl ProcessMemory {
    /// Of that process. Nothing is checked yet, each read checks the permission.
    pub fn new(pid: Pid) -> Self {
        Self(nix::unistd::Pid::from_raw(i32::try_from(pid.0).unwrap_or(i32::MAX)))
    }

    fn call(self, remote: &[RemoteIoVec], into: &mut [u8]) -> Result<usize, Fault> {
        let first = remote.first().map_or(0, |piece| piece.base as u64);
        process_vm_readv(self.0, &mut [IoSliceMut::new(into)], remote).map_err(
            |errno| match errno {
                Errno::EPERM | Errno::EACCES => Fault::Denied,
                Errno::ESRCH => Fault::Gone,
                Errno::EFAULT => Fault::Unmapped(first),
                Errno::ENOSYS => Fault::Unsupported,
                other => Fault::System(other as i32),
            },
        )
    }
}

impl Memory for ProcessMemory {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let base = usize::try_from(at).map_err(|_too_wide| Fault::Unmapped(at))?;
        self.call(&[RemoteIoVec { base, len: into.len() }], into)
    }

    fn gather(&self, pieces: &[Piece], into: &mut [u8]) -> Result<(), Fault> {
        let mut rest = into;
        for group in pieces.chunks(MAX_PIECES) {
            let remote: Vec<_> = group
                .iter()
                .map(|piece| RemoteIoVec { base: piece.at as usize, len: piece.len })
                .collect();
            let bytes = group.iter().map(|piece| piece.len).sum();
            let (part, after) = rest.split_at_mut_checked(bytes).ok_or(Fault::Changed)?;
            if self.call(&remote, part)? != bytes {
                return Err(Fault::Unmapped(group.first().map_or(0, |piece| piece.at)));
            }
            rest = after;
        }
        Ok(())
    }
}

/// What one reading may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes copied from the process.
    pub bytes: u64,
    /// Pieces of memory asked for.
    pub steps: u32,
    /// Wall time, checked between system calls.
    pub time: Duration,
    /// Blocks of one device; above it only statistics are given.
    pub blocks: u32,
}

impl Limits {
    /// Some twenty times what 10,000 blocks need.
    pub const DEFAULT: Self =
        Self { bytes: 96 << 20, steps: 1 << 20, time: Duration::from_millis(100), blocks: 200_000 };
}

#[cfg(test)]
impl Limits {
    /// For tests, which may run beside many others.
    pub const PATIENT: Self = Self { time: Duration::from_mins(1), ..Self::DEFAULT };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Memory behind limits. Everything is read through it, so that no content of the process, however
/// wrong, costs more than was granted: no buffer is allocated before its bytes were.
pub struct Window<'a> {
    memory: &'a dyn Memory,
    limits: Limits,
    bytes: Cell<u64>,
    steps: Cell<u32>,
    until: Instant,
    /// Device mappings, sorted: reading managed GPU memory would move its pages to the host.
    forbidden: &'a [(u64, u64)],
    notes: Option<&'a Notes>,
}

impl<'a> Window<'a> {
    /// On this memory, within these limits, never inside `forbidden` (sorted ranges).
    pub fn new(memory: &'a dyn Memory, limits: Limits, forbidden: &'a [(u64, u64)]) -> Self {
        let until = Instant::now() + limits.time;
        let (bytes, steps) = (Cell::new(limits.bytes), Cell::new(limits.steps));
        Self { memory, limits, bytes, steps, until, forbidden, notes: None }
    }

    /// Keeps the reasons of what is refused there.
    #[must_use]
    pub const fn noting(self, notes: Option<&'a Notes>) -> Self {
        Self { notes, ..self }
    }

    /// A reason why something is refused; not made up where nobody asks.
    pub fn note(&self, text: impl FnOnce() -> String) {
        if let Some(notes) = self.notes {
            notes.add(text());
        }
    }

    /// What was granted at first.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes read so far.
    pub const fn bytes_read(&self) -> u64 {
        self.limits.bytes - self.bytes.get()
    }

    /// Waits, at the most until the time is spent.
    ///
    /// # Errors
    /// [`Fault::Spent`] where it is.
    pub fn pause(&self, time: Duration) -> Result<(), Fault> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Fault::Spent);
        }
        std::thread::sleep(time.min(left));
        Ok(())
    }

    fn charge(&self, pieces: &[Piece]) -> Result<usize, Fault> {
        let mut bytes = 0_u64;
        for piece in pieces {
            let end = piece.at.saturating_add(piece.len as u64);
            let next = self.forbidden.partition_point(|range| range.1 <= piece.at);
            let device = self.forbidden.get(next).is_some_and(|range| range.0 < end);
            if piece.len == 0 || !USER_SPACE.contains(&piece.at) || end > USER_SPACE.end || device {
                return Err(Fault::Unmapped(piece.at));
            }
            bytes = bytes.saturating_add(piece.len as u64);
        }
        let steps = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        match (self.bytes.get().checked_sub(bytes), self.steps.get().checked_sub(steps)) {
            (Some(b), Some(s)) if Instant::now() < self.until => {
                self.bytes.set(b);
                self.steps.set(s);
                Ok(bytes as usize)
            }
            _ => Err(Fault::Spent),
        }
    }

    /// Up to `len` bytes from `at`, fewer where the mapping ends.
    pub fn some(&self, at: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; self.charge(&[Piece { at, len }])?];
        let got = self.memory.read(at, &mut bytes)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Exactly `len` bytes from `at`.
    pub fn exact(&self, at: u64, len: usize) -> Result<Vec<u8>, Fault> {
        self.pieces(&[Piece { at, len }])
    }

    /// The pieces, copied in this order, one after the other.
    pub fn pieces(&self, pieces: &[Piece]) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; self.charge(pieces)?];
        self.memory.gather(pieces, &mut bytes)?;
        Ok(bytes)
    }

    /// One word.
    pub fn word(&self, at: u64) -> Result<u64, Fault> {
        View(&self.exact(at, 8)?).word(0).ok_or(Fault::Unmapped(at))
    }

    /// A text that ends with a zero, at the most `limit` bytes of it.
    pub fn text(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault> {
        let mut text = self.some(at, limit)?;
        if let Some(end) = text.iter().position(|&byte| byte == 0) {
            text.truncate(end);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> ProcessMemory {
        ProcessMemory::new(Pid(std::process::id()))
    }

    #[test]
    fn limits_hold_before_anything_is_allocated() {
        let memory = own();
        let limits = Limits { bytes: 64, ..Limits::PATIENT };
        let window = Window::new(&memory, limits, &[]);
        let numbers = [1_u64; 16];
        let base = numbers.as_ptr() as u64;
        assert_eq!(window.some(base, usize::MAX / 2), Err(Fault::Unmapped(base)));
        assert_eq!(window.some(base, 1 << 40), Err(Fault::Spent));
        assert_eq!(window.exact(base, 64).map(|bytes| bytes.len()), Ok(64));
        assert_eq!(window.word(base), Err(Fault::Spent));
        assert_eq!(window.bytes_read(), 64);
    }

    #[test]
    fn wild_addresses_and_devices_are_never_read() {
        let memory = own();
        let numbers = [1_u64; 16];
        let base = numbers.as_ptr() as u64;
        let forbidden = [(base + 64, base + 72)];
        let window = Window::new(&memory, Limits::PATIENT, &forbidden);
        for at in [0, 8, 0xfff, u64::MAX, u64::MAX - 7, 1 << 56, (1 << 56) - 4] {
            assert_eq!(window.word(at), Err(Fault::Unmapped(at)), "{at:#x}");
            assert!(window.scattered(&[at], 16).is_err());
        }
        assert_eq!(window.word(base), Ok(1));
        assert_eq!(window.word(base + 60), Err(Fault::Unmapped(base + 60)));
        assert_eq!(window.word(base + 72), Ok(1));
    }

    #[test]
    fn time_ends_a_reading() {
        let memory = own();
        let limits = Limits { time: Duration::ZERO, ..Limits::default() };
        let window = Window::new(&memory, limits, &[]);
        assert_eq!(window.word(&raw const limits as u64), Err(Fault::Spent));
        assert_eq!(window.pause(Duration::from_mins(1)), Err(Fault::Spent));
    }
}
