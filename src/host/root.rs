//! Where `/proc`, `/sys`, `/dev` and `/etc` are found, and reads that are bounded.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::ids::Pid;
use crate::sample::Why;

/// The directory that holds `proc`, `sys`, `dev` and `etc`: `/`, or a tree that a test made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    base: PathBuf,
}

impl Root {
    /// Below `base`.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// The machine itself.
    pub fn machine() -> Self {
        Self::new("/")
    }

    /// Whether this is the machine and not a tree of files.
    pub fn is_machine(&self) -> bool {
        self.base == Path::new("/")
    }

    /// A path below the root; a leading slash of `rest` is dropped.
    pub fn path(&self, rest: &str) -> PathBuf {
        self.base.join(rest.trim_start_matches('/'))
    }

    /// `proc/PID/NAME`.
    pub fn of(&self, pid: Pid, name: &str) -> PathBuf {
        const LONGEST: usize = "/proc/4294967295/".len();
        let mut path = OsString::with_capacity(self.base.as_os_str().len() + LONGEST + name.len());
        path.push(&self.base);
        if !self.base.as_os_str().as_encoded_bytes().ends_with(b"/") {
            path.push("/");
        }
        // A text that grows in memory takes everything.
        let _ = write!(path, "proc/{pid}/{name}");
        path.into()
    }

    /// The program's own pid as this `/proc` numbers it; `None` where `/proc` belongs to another
    /// PID namespace.
    pub fn own_pid(&self) -> Option<Pid> {
        let link = std::fs::read_link(self.path("proc/self")).ok()?;
        link.to_str()?.parse().ok().map(Pid)
    }
}

/// At most `limit` bytes of a file. What lies beyond is not read.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Why> {
    let file = File::open(path).map_err(|error| why(&error))?;
    let mut bytes = Vec::with_capacity(limit.min(4096));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| why(&error))?;
    Ok(bytes)
}

/// As [`read`], as text; bytes that are no UTF-8 are replaced.
pub(super) fn text(path: &Path, limit: usize) -> Result<String, Why> {
    read(path, limit).map(|bytes| lossy(&bytes))
}

/// The first record of a file that the kernel gives in one read, into a buffer of the caller:
/// three system calls, no allocation.
pub(super) fn record<'a>(path: &Path, buffer: &'a mut [u8]) -> Result<&'a [u8], Why> {
    let mut file = File::open(path).map_err(|error| why(&error))?;
    let length = loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(|error| why(&error))?,
        }
    };
    buffer.get(..length).ok_or(Why::Nonsense)
}

/// Bytes from outside as text.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The reason behind an error of the system. A process that ends between two reads shows as
/// "no such file" before its directory is opened and as "no such process" after.
pub(super) fn why(error: &io::Error) -> Why {
    match error.raw_os_error() {
        Some(libc_errno::ENOENT | libc_errno::ESRCH) => Why::Gone,
        Some(libc_errno::EACCES | libc_errno::EPERM) => Why::NoPermission,
        Some(code) => Why::Failed(code),
        None => Why::Nonsense,
    }
}

/// As [`why`].
pub(super) fn why_errno(error: rustix::io::Errno) -> Why {
    why(&io::Error::from(error))
}

mod libc_errno {
    pub const EPERM: i32 = rustix::io::Errno::PERM.raw_os_error();
    pub const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
    pub const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();
    pub const EACCES: i32 = rustix::io::Errno::ACCESS.raw_os_error();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_stops_at_its_limit() {
        let zero = Path::new("/dev/zero");
        assert_eq!(read(zero, 10).unwrap().len(), 10);
        assert_eq!(read(Path::new("/nowhere/at/all"), 10), Err(Why::Gone));
        assert_eq!(record(zero, &mut [1; 7]).unwrap(), [0; 7]);
    }

    #[test]
    fn paths_stay_below_the_root() {
        let root = Root::new("/tmp/x");
        assert_eq!(root.path("/etc/passwd"), Path::new("/tmp/x/etc/passwd"));
        assert_eq!(root.of(Pid(7), "stat"), Path::new("/tmp/x/proc/7/stat"));
        assert_eq!(Root::new("/tmp/x/").of(Pid(u32::MAX), "fd"), root.of(Pid(u32::MAX), "fd"));
        assert_eq!(Root::machine().of(Pid(7), "task/7/stat"), Path::new("/proc/7/task/7/stat"));
        assert!(Root::machine().is_machine());
        assert_eq!(Root::machine().own_pid(), Some(Pid(std::process::id())));
    }
}
