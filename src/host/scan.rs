//! Who has a device open: every process once, then in slices.
//!
//! Asking every process for every open file at every look would cost more than everything else
//! together. A process is asked in the look after the one that first saw it, since most new ones
//! have ended by then; while it is young it is asked again at
//! growing intervals, since programs open the GPU seconds after they start; then in rotation, the
//! later the longer its files have stayed the same. What a look needs of all of them is kept up to
//! date with each answer, so that a look costs nothing for those that are not asked in it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::host::devices::DeviceTable;
use crate::host::entry::Entry;
use crate::host::fds;
use crate::host::root::{self, Root};
use crate::ids::{Pid, Stamp};
use crate::sample::{NvidiaFds, Reading, ScanReport, Why};

/// The first look may take this long; what it does not reach comes in the next ones.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Listing `/proc` costs a microsecond a process, so with many it is done every few looks: so many
/// milliseconds of rest for each process.
const LIST_REST_MS: u64 = 20;
/// But no longer than this.
const LONGEST_REST_MS: u64 = 10_000;

/// How much one look may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub processes: u32,
    pub files: u32,
}

/// What asking needs to know of the machine.
pub(super) struct Asking<'a> {
    pub root: &'a Root,
    pub table: &'a mut DeviceTable,
    pub ticks_per_second: u64,
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Scan {
    entries: HashMap<u32, Entry>,
    /// When each is asked again, at the earliest: one that was put off meanwhile is moved when its
    /// turn comes.
    queue: BTreeSet<(u64, u32)>,
    holders: BTreeSet<Pid>,
    unreadable: u32,
    /// The last pass through all of them that ended, and how many are left of the one after it.
    pass: u64,
    left: usize,
    complete_ms: Option<u64>,
    /// Groups of holders, and a number that grows whenever one comes to them or goes.
    watched: HashSet<Pid>,
    changes: u64,
    round: u64,
    tasks: Option<(u64, u64)>,
    listed_ms: Option<u64>,
    first_done: bool,
}

/// What the sums of a scan know of one process.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Standing {
    holds: bool,
    unreadable: bool,
    left: bool,
    group: (Pid, bool),
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
        let round = self.round;
        let later = self.listed_ms.is_some();
        let read = fds::each_number(&dir, |pid, _, inode| {
            match self.entries.get_mut(&pid) {
                Some(entry) if entry.inode == inode => entry.listed_in = round,
                _ => {
                    let mut entry = Entry::new(inode, round);
                    if later {
                        // In the next look. It came after this pass began, which does not wait for it.
                        entry.put_in(now.boot_ms + 1, self.pass + 1);
                    }
                    self.insert(pid, entry);
                }
            }
            true
        });
        if read.is_ok() {
            let gone = self.entries.iter().filter(|(_, entry)| entry.listed_in != round);
            let gone: Vec<u32> = gone.map(|(pid, _)| *pid).collect();
            for pid in gone {
                self.remove(pid);
            }
            self.tasks = tasks;
            self.listed_ms = Some(now.boot_ms);
        }
    }

    /// Asks those that are due, new ones first. With `leave` it is only the beginning of a first look
    /// and ends once that says so.
    pub fn slice(
        &mut self,
        asking: &mut Asking<'_>,
        now: Stamp,
        slice: Slice,
        leave: Option<&dyn Fn() -> bool>,
    ) {
        let Asking { root, table, ticks_per_second } = asking;
        let (began, mut processes, mut files) = (Instant::now(), 0, 0);
        while let Some(&(due_ms, pid)) = self.queue.first()
            && due_ms <= now.boot_ms
        {
            if leave.is_some_and(|leave| leave()) {
                return;
            }
            let enough = if self.first_done {
                processes >= slice.processes || files >= slice.files
            } else {
                began.elapsed() >= FIRST_LOOK
            };
            if enough {
                break;
            }
            let Some(entry) = self.entries.get_mut(&pid) else {
                self.queue.pop_first();
                continue;
            };
            if entry.due_ms > now.boot_ms {
                self.requeue(pid);
                continue;
            }
            processes += 1;
            if entry.seems_unchanged(root, Pid(pid)) {
                self.change(pid, |entry| entry.put_off(now, pid, true));
            } else if let Some(asked) = entry.ask(root, Pid(pid), table) {
                files += asked.files;
                self.change(pid, |entry| entry.learn(asked, now, pid, *ticks_per_second));
            } else {
                self.remove(pid);
                continue;
            }
            self.requeue(pid);
        }
        self.first_done = true;
        if self.left == 0 {
            self.complete_ms = Some(now.boot_ms);
            self.pass += 1;
            self.left = self.entries.len();
        }
    }

    /// Processes that have a device open.
    pub const fn holders(&self) -> &BTreeSet<Pid> {
        &self.holders
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Pid, &Entry)> {
        self.entries.iter().map(|(pid, entry)| (Pid(*pid), entry))
    }

    /// A number that is another one once somebody has come to a watched group or gone.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// These are the groups whose members matter.
    pub fn watch(&mut self, groups: impl Iterator<Item = Pid>) {
        self.watched.clear();
        self.watched.extend(groups);
    }

    /// What is known of the files of `pid`.
    pub fn devices(&self, pid: Pid) -> &Reading<NvidiaFds> {
        const NOT_YET: &Reading<NvidiaFds> = &Reading::Absent(Why::NotYet);
        self.entries.get(&pid.0).map_or(NOT_YET, |entry| &entry.devices)
    }

    /// What a closer look found.
    pub fn learn(&mut self, stat: &ProcStat<'_>, now: Stamp) {
        self.change(stat.pid.0, |entry| {
            if entry.devices != *stat.devices {
                entry.devices.clone_from(stat.devices);
            }
            entry.group = stat.group;
            entry.looked_at(now);
        });
        // Sooner than it had been put off to: it may be looked at no more.
        let pid = stat.pid.0;
        if self.entries.get(&pid).is_some_and(|entry| entry.due_ms < entry.queued_ms) {
            self.requeue(pid);
        }
    }

    /// What was covered.
    pub fn report(&self) -> ScanReport {
        ScanReport {
            processes: u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
            unreadable: self.unreadable,
            scanned_boot_ms: self.complete_ms,
        }
    }

    fn insert(&mut self, pid: u32, entry: Entry) {
        self.remove(pid);
        let standing = self.standing(&entry);
        self.queue.insert((entry.queued_ms, pid));
        self.entries.insert(pid, entry);
        self.account(pid, None, Some(standing));
    }

    fn remove(&mut self, pid: u32) {
        if let Some(entry) = self.entries.remove(&pid) {
            self.queue.remove(&(entry.queued_ms, pid));
            let standing = self.standing(&entry);
            self.account(pid, Some(standing), None);
        }
    }

    /// Changes what is known of a process that was asked now, and the sums with it.
    fn change(&mut self, pid: u32, act: impl FnOnce(&mut Entry)) {
        let pass = self.pass;
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        let before = Standing::of(entry, pass);
        act(entry);
        entry.pass = pass + 1;
        let after = Standing::of(entry, pass);
        if before != after {
            self.account(pid, Some(before), Some(after));
        }
    }

    fn standing(&self, entry: &Entry) -> Standing {
        Standing::of(entry, self.pass)
    }

    fn account(&mut self, pid: u32, before: Option<Standing>, after: Option<Standing>) {
        let is = |standing: Option<Standing>, what: fn(&Standing) -> bool| {
            standing.as_ref().is_some_and(what)
        };
        let both = |what| (is(before, what), is(after, what));
        match both(|standing| standing.holds) {
            (false, true) => _ = self.holders.insert(Pid(pid)),
            (true, false) => _ = self.holders.remove(&Pid(pid)),
            _ => {}
        }
        let (was, is) = both(|standing| standing.unreadable);
        self.unreadable = (self.unreadable + u32::from(is)).saturating_sub(u32::from(was));
        let (was, is) = both(|standing| standing.left);
        self.left = (self.left + usize::from(is)).saturating_sub(usize::from(was));
        let groups = [before, after].map(|standing| standing.map(|standing| standing.group));
        if groups[0] != groups[1]
            && groups.iter().flatten().any(|(group, _)| self.watched.contains(group))
        {
            self.changes += 1;
        }
    }

    /// Puts it where its next turn is.
    fn requeue(&mut self, pid: u32) {
        if let Some(entry) = self.entries.get_mut(&pid) {
            self.queue.remove(&(entry.queued_ms, pid));
            entry.queued_ms = entry.due_ms;
            self.queue.insert((entry.queued_ms, pid));
        }
    }
}

impl Standing {
    fn of(entry: &Entry, pass: u64) -> Self {
        Self {
            holds: entry.holds(),
            unreadable: entry.unreadable(),
            left: entry.pass <= pass,
            group: (entry.group, entry.kernel),
        }
    }
}

/// What a closer look at a process tells the scan.
pub(super) struct ProcStat<'a> {
    pub pid: Pid,
    pub group: Pid,
    pub devices: &'a Reading<NvidiaFds>,
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
