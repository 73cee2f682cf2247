//! What is remembered of one process between two questions for its open files.

use crate::host::devices::DeviceTable;
use crate::host::fds::{self, Depth};
use crate::host::root::Root;
use crate::host::stat::{self, Stat};
use crate::ids::{Pid, Stamp};
use crate::sample::{NvidiaFds, ProcState, Reading, Why};

/// How soon an old process is asked again, at the earliest. One that had the same files open is asked
/// later and later.
pub(super) const ROTATION_MS: [u64; 3] = [30_000, 60_000, 120_000];
/// Spread of the rotation, so that it does not come in waves.
const SPREAD_MS: u64 = 10_000;
/// Until this age a process is asked at 1, 2, 4, … seconds.
const YOUNG_MS: u64 = 64_000;
/// After this many times a process is old, and only its files are asked for.
const OLD: u8 = 7;
/// So often in a row an unchanged number of open files counts as unchanged files. CUDA opens several
/// at once.
const UNCHANGED: u8 = 2;

/// What is remembered of a process.
#[derive(Debug)]
pub(super) struct Entry {
    /// Of its directory: another number means another process, most of the time.
    pub inode: u64,
    start_ticks: u64,
    pub group: Pid,
    pub kernel: bool,
    pub devices: Reading<NvidiaFds>,
    scans: u8,
    /// When it is asked again.
    pub due_ms: u64,
    /// Under which moment the queue has it: `due_ms`, or an earlier one.
    pub queued_ms: u64,
    /// The last list of processes that named it.
    pub listed_in: u64,
    /// The last pass in which it was asked.
    pub pass: u64,
    /// Number of its open files, where the kernel tells it without a list; else 0.
    open_files: i64,
    unchanged: u8,
    /// Its place in [`ROTATION_MS`].
    rotation: u8,
}

/// An answer of a process.
pub(super) struct Asked {
    open_files: i64,
    /// `None` where only files were asked for.
    stat: Option<Stat>,
    devices: Reading<NvidiaFds>,
    pub files: u32,
}

impl Entry {
    /// One that is asked at once.
    pub const fn new(inode: u64, listed_in: u64) -> Self {
        Self {
            inode,
            start_ticks: 0,
            group: Pid(0),
            kernel: false,
            devices: Reading::Absent(Why::NotYet),
            scans: 0,
            due_ms: 0,
            queued_ms: 0,
            listed_in,
            pass: 0,
            open_files: 0,
            unchanged: 0,
            rotation: 0,
        }
    }

    /// It is asked for the first time at `due_ms`, and counts as asked in `pass` until that ends.
    pub const fn put_in(&mut self, due_ms: u64, pass: u64) {
        (self.due_ms, self.queued_ms, self.pass) = (due_ms, due_ms, pass);
    }

    /// Whether it has a device open.
    pub fn holds(&self) -> bool {
        self.devices.value().is_some_and(NvidiaFds::any)
    }

    /// Whether its files could not be read.
    pub fn unreadable(&self) -> bool {
        !self.kernel && self.devices.why().is_some_and(|why| why != Why::NotYet)
    }

    /// Takes an answer.
    pub fn learn(&mut self, asked: Asked, now: Stamp, pid: u32, ticks_per_second: u64) {
        if let Some(stat) = asked.stat {
            if self.start_ticks != stat.start_ticks {
                self.scans = 0;
            }
            self.start_ticks = stat.start_ticks;
            self.group = stat.group;
            self.kernel = stat.kernel_thread();
        }
        // Before Linux 6.2 the number of files is not told: only where none can be listed it says that
        // nothing has changed.
        let told = asked.open_files > 0 || self.kernel || asked.devices.value().is_none();
        let same = told && self.open_files == asked.open_files && self.devices == asked.devices;
        self.devices = asked.devices;
        self.open_files = asked.open_files;
        self.unchanged = 0;
        let started_ms = self.start_ticks.saturating_mul(1000) / ticks_per_second.max(1);
        let young = now.boot_ms.saturating_sub(started_ms) < YOUNG_MS && !self.kernel;
        if young {
            self.due_ms = now.boot_ms + (1000 << self.scans.min(5));
            self.scans = self.scans.saturating_add(1);
        } else {
            let same = same && self.scans >= OLD;
            self.scans = OLD;
            self.put_off(now, pid, same);
        }
    }

    /// What a closer look found: the rotation need not find it.
    pub const fn looked_at(&mut self, now: Stamp) {
        if self.scans == 0 {
            self.scans = 1;
        }
        self.rotation = 0;
        self.due_ms = now.boot_ms + ROTATION_MS[0];
    }

    /// Its turn comes again after a rotation: a longer one where it is the `same` as before.
    pub fn put_off(&mut self, now: Stamp, pid: u32, same: bool) {
        let longest = ROTATION_MS.len() - 1;
        let rotation = if same { longest.min(usize::from(self.rotation) + 1) } else { 0 };
        self.rotation = rotation as u8;
        let spread_ms = u64::from(pid).wrapping_mul(7919) % SPREAD_MS;
        self.due_ms = now.boot_ms + ROTATION_MS[rotation] + spread_ms;
    }

    /// Whether an old process has as many files open as before; not for ever, since one may be
    /// closed and another opened.
    pub fn seems_unchanged(&mut self, root: &Root, pid: Pid) -> bool {
        // A tree of ordinary files has sizes that say nothing.
        if self.scans < OLD || self.open_files <= 0 || !root.is_machine() {
            return false;
        }
        self.unchanged += 1;
        self.unchanged <= UNCHANGED && fds::size(root, pid) == Ok(self.open_files)
    }

    /// State, group and devices; `None` where the process has ended. Of an old one only the files:
    /// the state costs as much as they do, and says nothing new while there are any.
    pub fn ask(&self, root: &Root, pid: Pid, table: &mut DeviceTable) -> Option<Asked> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 4242;

    fn at(boot_ms: u64) -> Stamp {
        Stamp { boot_ms, wall_ms: 0 }
    }

    fn answer(files: i64, uvm: bool) -> Asked {
        let devices = NvidiaFds { uvm, count: u32::from(uvm), ..NvidiaFds::default() };
        let devices = Reading::Value(devices);
        Asked { open_files: files, stat: None, devices, files: files as u32 }
    }

    #[test]
    fn an_old_process_is_asked_the_later_the_longer_it_stays_the_same() {
        let mut entry = Entry::new(1, 0);
        let now = at(1_000_000);
        let spread_ms = u64::from(PID) * 7919 % SPREAD_MS;
        let mut waits = Vec::new();
        for _ in 0..5 {
            entry.learn(answer(3, false), now, PID, 100);
            waits.push((entry.due_ms - now.boot_ms - spread_ms) / 1_000);
        }
        assert_eq!(waits, [30, 60, 120, 120, 120]);
        // Another number of files, or another device behind the same number, brings it back.
        entry.learn(answer(4, false), now, PID, 100);
        assert_eq!(entry.due_ms - now.boot_ms - spread_ms, ROTATION_MS[0]);
        entry.learn(answer(4, false), now, PID, 100);
        assert_eq!(entry.due_ms - now.boot_ms - spread_ms, ROTATION_MS[1]);
        entry.learn(answer(4, true), now, PID, 100);
        assert_eq!(entry.due_ms - now.boot_ms - spread_ms, ROTATION_MS[0]);
    }

    #[test]
    fn a_number_of_files_that_is_not_told_is_not_the_same_number() {
        let mut entry = Entry::new(1, 0);
        for _ in 0..5 {
            entry.learn(answer(0, false), at(1_000_000), PID, 100);
            let spread_ms = u64::from(PID) * 7919 % SPREAD_MS;
            assert_eq!(entry.due_ms - 1_000_000 - spread_ms, ROTATION_MS[0]);
        }
    }

    #[test]
    fn a_young_process_keeps_its_growing_intervals() {
        let mut entry = Entry::new(1, 0);
        let waits: Vec<u64> = (0..6)
            .map(|_| {
                entry.learn(answer(3, false), at(10_000), PID, 100);
                (entry.due_ms - 10_000) / 1_000
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn the_same_number_of_files_is_taken_for_the_same_files_only_so_often() {
        let (root, own) = (Root::machine(), Pid(std::process::id()));
        let mut entry = Entry::new(1, 0);
        let Ok(files) = fds::size(&root, own) else { panic!("no files of its own") };
        entry.learn(answer(files, false), at(1_000_000), own.0, 100);
        // Other tests of this program open and close files meanwhile; what counts is that the last
        // one says no without a look at them.
        for _ in 0..UNCHANGED {
            entry.seems_unchanged(&root, own);
        }
        assert!(!entry.seems_unchanged(&root, own));
    }
}
