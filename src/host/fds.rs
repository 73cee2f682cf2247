//! Open files of a process.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags};

use crate::host::devices::{DeviceRole, DeviceTable, FileNumbers};
use crate::host::models;
use crate::host::root::{Root, why_errno};
use crate::host::stat::number;
use crate::ids::Pid;
use crate::sample::{NvidiaFds, Why};

/// Files of one process that are looked at; a server with more connections than this has its
/// devices among the first ones.
const MOST_FILES: u32 = 16_384;
/// Threads that are asked for their files, where the first thread is dead.
const MOST_THREADS: usize = 64;
const MOST_MODELS: usize = 16;
const MOST_SOCKETS: usize = 4096;

/// What a process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OpenFiles {
    pub devices: NvidiaFds,
    /// Inodes of sockets.
    pub sockets: Vec<u64>,
    pub model_files: Vec<String>,
    pub stdio_deleted: bool,
    /// How many files were looked at.
    pub seen: u32,
    /// Size of the directory: since Linux 6.2 the number of open files, before that 0.
    pub size: i64,
}

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Devices: one system call a file.
    Devices,
    /// Sockets, model files and standard streams as well.
    All,
}

/// Files of `pid`. Where its first thread is a zombie, `proc/PID/fd` is empty although other
/// threads keep everything open: `of_threads` looks at theirs.
pub(super) fn scan(
    root: &Root,
    pid: Pid,
    table: &mut DeviceTable,
    depth: Depth,
    of_threads: bool,
) -> Result<OpenFiles, Why> {
    let mut files = OpenFiles::default();
    if !of_threads {
        scan_dir(&root.of(pid, "fd"), table, depth, &mut files)?;
        return Ok(files);
    }
    let mut outcome = Err(Why::Gone);
    for tid in threads(root, pid)?.into_iter().filter(|tid| *tid != pid.0).take(MOST_THREADS) {
        match scan_dir(&root.of(pid, &format!("task/{tid}/fd")), table, depth, &mut files) {
            // Threads of a process share their files: the first that has any has them all.
            Ok(()) if files.seen > 0 => {
                files.devices.via_thread = files.devices.any();
                return Ok(files);
            }
            Ok(()) => outcome = Ok(()),
            Err(Why::Gone) => {}
            Err(why) => outcome = Err(why),
        }
    }
    outcome.map(|()| files)
}

/// Size of `proc/PID/fd`, see [`OpenFiles::size`]: one system call instead of one a file.
pub(super) fn size(root: &Root, pid: Pid) -> Result<i64, Why> {
    rustix::fs::stat(root.of(pid, "fd")).map(|stat| stat.st_size).map_err(why_errno)
}

/// Thread numbers of a process.
pub(super) fn threads(root: &Root, pid: Pid) -> Result<Vec<u32>, Why> {
    let mut tids = Vec::new();
    each_number(&open_dir(&root.of(pid, "task"))?, |tid, _, _| {
        tids.push(tid);
        true
    })?;
    Ok(tids)
}

/// Opens a directory for [`each_number`].
pub(super) fn open_dir(path: &std::path::Path) -> Result<OwnedFd, Why> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(why_errno)
}

/// Calls `act` with each entry whose name is a number: the number, the name and the inode. Ends
/// early when it returns false.
pub(super) fn each_number(
    dir: &OwnedFd,
    mut act: impl FnMut(u32, &CStr, u64) -> bool,
) -> Result<(), Why> {
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(why_errno)?;
        let name = entry.file_name();
        if let Some(n) = number(name.to_bytes())
            && !act(n, name, entry.ino())
        {
            break;
        }
    }
    Ok(())
}

fn scan_dir(
    path: &std::path::Path,
    table: &mut DeviceTable,
    depth: Depth,
    files: &mut OpenFiles,
) -> Result<(), Why> {
    let dir = open_dir(path)?;
    files.size = rustix::fs::fstat(&dir).map_or(0, |stat| stat.st_size);
    let mut streams = Streams::default();
    each_number(&dir, |n, name, _| {
        files.seen += 1;
        let file = numbers(dir.as_fd(), name);
        if let Some(role) = file.and_then(|file| table.role(file)) {
            note(&mut files.devices, role);
        }
        if depth == Depth::All {
            details(dir.as_fd(), (n, name), file, files, &mut streams);
        }
        files.seen < MOST_FILES
    })?;
    files.devices.minors.sort_unstable();
    files.stdio_deleted = streams.deleted > 0 && streams.wanted == 0;
    Ok(())
}

/// Numbers of the file behind a link. `DONT_SYNC` keeps a dead network file system from being
/// asked, which would hang. Old sandboxes know no `statx`; there only what lies in `/dev` is asked
/// the other way.
fn numbers(dir: BorrowedFd<'_>, name: &CStr) -> Option<FileNumbers> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    match rustix::fs::statx(dir, name, flags, StatxFlags::TYPE | StatxFlags::INO) {
        Ok(found) => Some(FileNumbers {
            kind: FileType::from_raw_mode(found.stx_mode.into()),
            rdev: (found.stx_rdev_major, found.stx_rdev_minor),
            dev: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        }),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new()).ok()?;
            if !target.to_bytes().starts_with(b"/dev/") {
                return None;
            }
            let stat = rustix::fs::statat(dir, name, AtFlags::NO_AUTOMOUNT).ok()?;
            let major_minor = |dev| (rustix::fs::major(dev), rustix::fs::minor(dev));
            Some(FileNumbers {
                kind: FileType::from_raw_mode(stat.st_mode),
                rdev: major_minor(stat.st_rdev),
                dev: major_minor(stat.st_dev),
                inode: stat.st_ino,
            })
        }
        Err(_) => None,
    }
}

fn note(devices: &mut NvidiaFds, role: DeviceRole) {
    devices.count = devices.count.saturating_add(1);
    match role {
        DeviceRole::Control => devices.control = true,
        DeviceRole::Uvm => devices.uvm = true,
        DeviceRole::Drm => devices.drm = true,
        DeviceRole::Gpu(minor) if !devices.minors.contains(&minor) => devices.minors.push(minor),
        DeviceRole::Gpu(_) | DeviceRole::Modeset | DeviceRole::Caps => {}
    }
}

/// How the standard streams end: deleted files, `/dev/null`, or something that somebody may still
/// read.
#[derive(Default)]
struct Streams {
    deleted: u32,
    wanted: u32,
}

fn details(
    dir: BorrowedFd<'_>,
    (n, name): (u32, &CStr),
    file: Option<FileNumbers>,
    files: &mut OpenFiles,
    streams: &mut Streams,
) {
    let kind = file.map_or(FileType::Unknown, |file| file.kind);
    if let Some(file) = file
        && kind == FileType::Socket
        && files.sockets.len() < MOST_SOCKETS
    {
        files.sockets.push(file.inode);
    }
    if n > 2 && !matches!(kind, FileType::RegularFile | FileType::Unknown) {
        return;
    }
    let Ok(target) = rustix::fs::readlinkat(dir, name, Vec::new()) else { return };
    let target = String::from_utf8_lossy(target.to_bytes());
    if n <= 2 {
        if target.ends_with(" (deleted)") {
            streams.deleted += 1;
        } else if target != "/dev/null" {
            streams.wanted += 1;
        }
    }
    if models::is_model(&target)
        && files.model_files.len() < MOST_MODELS
        && !files.model_files.iter().any(|seen| **seen == *target)
    {
        files.model_files.push(target.into_owned());
    }
}
