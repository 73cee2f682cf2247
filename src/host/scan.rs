//! Who has a device open: every process once, then in slices.
//!
//! Asking every process for every open file at every look would cost more than everything else
//! together. A process is asked when it is first seen; while it is young it is asked again at
//! growing intervals, since programs open the GPU seconds after they start; then in rotation.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::host::devices::DeviceTable;
use crate::host::fds::{self, Depth};
use crate::host::root::{self, Root};
use crate::host::stat::{self, Stat};
use crate::ids::{Pid, Stamp};
use crate::sample::{NvidiaFds, ProcState, Reading, ScanReport, Why};

/// How soon a process is asked again, at the earliest.
const ROTATION_MS: u64 = 30_000;
/// Spread of the rotation, so that it does not come in waves.
const SPREAD_MS: u64 = 10_000;
/// Until this age a process is asked at 1, 2, 4, … seconds.
const YOUNG_MS: u64 = 64_000;
/// The first look may take this long; what it does not reach comes in the next ones.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Listing `/proc` costs a microsecond a process, so with many it is done every few looks: so many
/// milliseconds of rest for each process.
const LIST_REST_MS: u64 = 20;
/// But no longer than this.
const LONGEST_REST_MS: u64 = 10_000;
/// After this many times a process is old, and only its files are asked for.
const OLD: u8 = 7;
/// So often in a row an unchanged number of open files counts as unchanged files. CUDA opens several
/// at once.
const UNCHANGED: u8 = 7;

/// What is remembered of a process.
#[derive(Debug)]
pub(super) struct Entry {
    /// Of its directory: another number means another process, most of the time.
    inode: u64,
    start_ticks: u64,
    pub parent: Pid,
    pub group: Pid,
    pub kernel: bool,
    pub devices: Reading<NvidiaFds>,
    scans: u8,
    due_ms: u64,
    scanned_ms: u64,
    listed_in: u64,
    /// Number of its open files, where the kernel tells it without a list; else 0.
    open_files: i64,
    unchanged: u8,
}

/// How much one look may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub processes: u32,
    pub files: u32,
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Scan {
    entries: HashMap<u32, Entry>,
    round: u64,
    tasks: Option<(u64, u64)>,
    listed_ms: Option<u64>,
    pass_began_ms: u64,
    complete_ms: Option<u64>,
    first_done: bool,
}

impl Scan {
    /// Brings the list of processes up to date. Where the kernel's count of tasks and its newest
    /// pid have not changed, nobody came or went, and the directory is not read.
    pub fn refresh(&mut self, root: &Root, now: Stamp) {
        let processes = self.entries.len() as u64;
        let rest_ms = (processes * LIST_REST_MS).min(LONGEST_REST_MS);
        if self.listed_ms.is_some_and(|at| now.boot_ms.saturating_sub(at) < rest_ms) {
            return;
        }
        let tasks = tasks(root);
        if tasks.is_some() && tasks == self.tasks {
            return;
        }
        let Ok(dir) = fds::open_dir(&root.path("proc")) else { return };
        self.round += 1;
        let (round, entries) = (self.round, &mut self.entries);
        let read = fds::each_number(&dir, |pid, _, inode| {
            let entry = entries.entry(pid).or_insert_with(|| Entry::new(inode));
            if entry.inode != inode {
                *entry = Entry::new(inode);
            }
            entry.listed_in = round;
            true
        });
        if read.is_ok() {
            self.entries.retain(|_, entry| entry.listed_in == round);
            self.tasks = tasks;
            self.listed_ms = Some(now.boot_ms);
        }
    }

    /// Asks those that are due, new ones first.
    pub fn slice(
        &mut self,
        root: &Root,
        table: &mut DeviceTable,
        now: Stamp,
        slice: Slice,
        ticks_per_second: u64,
    ) {
        let mut due: Vec<(bool, u64, u32)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.due_ms <= now.boot_ms)
            .map(|(pid, entry)| (entry.scans > 0, entry.due_ms, *pid))
            .collect();
        due.sort_unstable();
        let (began, mut processes, mut files) = (Instant::now(), 0, 0);
        for (_, _, pid) in due {
            let enough = if self.first_done {
                processes >= slice.processes || files >= slice.files
            } else {
                began.elapsed() >= FIRST_LOOK
            };
            if enough {
                break;
            }
            processes += 1;
            let Some(entry) = self.entries.get_mut(&pid) else { continue };
            if entry.seems_unchanged(root, Pid(pid)) {
                entry.put_off(now, pid);
                continue;
            }
            match entry.ask(root, Pid(pid), table) {
                Some(asked) => {
                    files += asked.files;
                    entry.learn(asked, now, pid, ticks_per_second);
                }
                None => {
                    self.entries.remove(&pid);
                }
            }
        }
        self.first_done = true;
        if self
            .entries
            .values()
            .all(|entry| entry.scans > 0 && entry.scanned_ms >= self.pass_began_ms)
        {
            self.complete_ms = Some(now.boot_ms);
            self.pass_began_ms = now.boot_ms + 1;
        }
    }

    /// Processes that have a device open.
    pub fn holders(&self) -> impl Iterator<Item = Pid> {
        let holds = |entry: &Entry| entry.devices.value().is_some_and(NvidiaFds::any);
        self.entries.iter().filter(move |(_, entry)| holds(entry)).map(|(pid, _)| Pid(*pid))
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Pid, &Entry)> {
        self.entries.iter().map(|(pid, entry)| (Pid(*pid), entry))
    }

    /// What is known of the files of `pid`.
    pub fn devices(&self, pid: Pid) -> Reading<NvidiaFds> {
        match self.entries.get(&pid.0) {
            Some(entry) => entry.devices.clone(),
            None => Reading::Absent(Why::NotYet),
        }
    }

    /// What a closer look found.
    pub fn learn(&mut self, stat: &ProcStat<'_>, now: Stamp) {
        if let Some(entry) = self.entries.get_mut(&stat.pid.0) {
            entry.devices = stat.devices.clone();
            entry.parent = stat.parent;
            entry.group = stat.group;
            entry.scans = entry.scans.max(1);
            entry.scanned_ms = now.boot_ms;
            entry.due_ms = now.boot_ms + ROTATION_MS;
        }
    }

    /// What was covered.
    pub fn report(&self) -> ScanReport {
        let unreadable = |entry: &&Entry| {
            !entry.kernel && entry.devices.why().is_some_and(|why| why != Why::NotYet)
        };
        ScanReport {
            processes: u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
            unreadable: u32::try_from(self.entries.values().filter(unreadable).count())
                .unwrap_or(u32::MAX),
            scanned_boot_ms: self.complete_ms,
        }
    }
}

/// What a closer look at a process tells the scan.
pub(super) struct ProcStat<'a> {
    pub pid: Pid,
    pub parent: Pid,
    pub group: Pid,
    pub devices: &'a Reading<NvidiaFds>,
}

struct Asked {
    open_files: i64,
    /// `None` where only files were asked for.
    stat: Option<Stat>,
    devices: Reading<NvidiaFds>,
    files: u32,
}

impl Entry {
    const fn new(inode: u64) -> Self {
        Self {
            inode,
            start_ticks: 0,
            parent: Pid(0),
            group: Pid(0),
            kernel: false,
            devices: Reading::Absent(Why::NotYet),
            scans: 0,
            due_ms: 0,
            scanned_ms: 0,
            listed_in: 0,
            open_files: 0,
            unchanged: 0,
        }
    }

    fn learn(&mut self, asked: Asked, now: Stamp, pid: u32, ticks_per_second: u64) {
        if let Some(stat) = asked.stat {
            if self.start_ticks != stat.start_ticks {
                self.scans = 0;
            }
            self.start_ticks = stat.start_ticks;
            self.parent = stat.parent;
            self.group = stat.group;
            self.kernel = stat.kernel_thread();
        }
        self.devices = asked.devices;
        self.open_files = asked.open_files;
        self.unchanged = 0;
        let started_ms = self.start_ticks.saturating_mul(1000) / ticks_per_second.max(1);
        let young = now.boot_ms.saturating_sub(started_ms) < YOUNG_MS && !self.kernel;
        if young {
            self.scanned_ms = now.boot_ms;
            self.due_ms = now.boot_ms + (1000 << self.scans.min(5));
            self.scans = self.scans.saturating_add(1);
        } else {
            self.scans = OLD;
            self.put_off(now, pid);
        }
    }

    /// Its turn comes again after a rotation.
    fn put_off(&mut self, now: Stamp, pid: u32) {
        self.scanned_ms = now.boot_ms;
        self.due_ms = now.boot_ms + ROTATION_MS + u64::from(pid).wrapping_mul(7919) % SPREAD_MS;
    }

    /// Whether an old process has as many files open as before; not for ever, since one may be
    /// closed and another opened.
    fn seems_unchanged(&mut self, root: &Root, pid: Pid) -> bool {
        // A tree of ordinary files has sizes that say nothing.
        if self.scans < OLD || self.open_files <= 0 || !root.is_machine() {
            return false;
        }
        self.unchanged += 1;
        self.unchanged <= UNCHANGED && fds::size(root, pid) == Ok(self.open_files)
    }

    /// State, group and devices; `None` where the process has ended. Of an old one only the files:
    /// the state costs as much as they do, and says nothing new while there are any.
    fn ask(&self, root: &Root, pid: Pid, table: &mut DeviceTable) -> Option<Asked> {
        if self.scans >= OLD
            && !self.kernel
            && let Ok(open) = fds::scan(root, pid, table, Depth::Devices, false)
            && open.seen > 0
        {
            let devices = Reading::Value(open.devices);
            return Some(Asked { open_files: open.size, stat: None, devices, files: open.seen });
        }
        let stat = match stat::read(root, pid) {
            Ok(stat) => stat,
            Err(Why::Gone) => return None,
            Err(why) => {
                let devices = Reading::Absent(why);
                return Some(Asked { open_files: 0, stat: None, devices, files: 0 });
            }
        };
        let mut open_files = 0;
        let (devices, files) = if stat.kernel_thread() || stat.defunct() {
            (Reading::Value(NvidiaFds::default()), 0)
        } else {
            let of_threads = stat.state == ProcState::Zombie;
            match fds::scan(root, pid, table, Depth::Devices, of_threads) {
                Ok(open) => {
                    open_files = open.size;
                    (Reading::Value(open.devices), open.seen)
                }
                Err(Why::Gone) => return None,
                Err(why) => (Reading::Absent(why), 0),
            }
        };
        Some(Asked { open_files, stat: Some(stat), devices, files })
    }
}

/// Number of tasks and the newest pid: `0.00 0.01 0.05 1/123 4567`.
fn tasks(root: &Root) -> Option<(u64, u64)> {
    let mut buffer = [0; 128];
    let bytes = root::record(&root.path("proc/loadavg"), &mut buffer).ok()?;
    let text = std::str::from_utf8(bytes).ok()?;
    let mut words = text.split_ascii_whitespace().skip(3);
    let (_, total) = words.next()?.split_once('/')?;
    Some((total.parse().ok()?, words.next()?.parse().ok()?))
}
