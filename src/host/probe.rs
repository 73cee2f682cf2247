//! One look at the processes that matter.

mod kin;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::cgroup::Freezers;
use crate::host::detail::{Detail, Machine, Part};
use crate::host::devices::{DeviceTable, StandIn};
use crate::host::facts;
use crate::host::listen::Listeners;
use crate::host::probe::kin::Kin;
use crate::host::rest::Handles;
use crate::host::root::Root;
use crate::host::scan::{Asking, ProcStat, Scan, Slice};
use crate::host::slow::{Answer, Job, Outcome, Slow, Want};
use crate::host::users::Users;
use crate::ids::{Pid, Stamp};
use crate::sample::{AllocatorSample, HostFacts, ProcSample, ProcTick, Reading, ServerSample, Why};

/// How often facts of the machine and device numbers are read again.
const MACHINE_MS: u64 = 60_000;

/// How a [`Probe`] works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Files that are taken for NVIDIA devices; for tests.
    pub stand_ins: Vec<StandIn>,
    /// Processes that are asked for their open files in one look, after the first look.
    pub slice_processes: u32,
    /// Open files that are looked at in one look, after the first look.
    pub slice_files: u32,
    /// How long one read may take that can hang, in milliseconds.
    pub slow_read_ms: u64,
    /// How long all of those may take in one look, in milliseconds.
    pub slow_look_ms: u64,
    /// Processes of a tick at the most.
    pub most_processes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stand_ins: Vec::new(),
            slice_processes: 128,
            slice_files: 512,
            slow_read_ms: 250,
            slow_look_ms: 600,
            most_processes: 4096,
        }
    }
}

/// What is learned of a process by other ways than the kernel's files.
#[derive(Debug, Default)]
pub struct Said {
    /// Its caching allocator, where one was looked for.
    pub allocator: Option<Reading<AllocatorSample>>,
    /// What its own interface says, where it is a server that has one.
    pub server: Option<Reading<ServerSample>>,
}

/// Looks at processes and remembers what does not change. Blocking: it belongs on a thread of its
/// own.
pub struct Probe {
    machine: Machine,
    options: Options,
    scan: Scan,
    details: BTreeMap<Pid, Detail>,
    kin: Kin,
    slow: Slow,
    facts: Option<(u64, HostFacts)>,
    looks: u64,
}

impl Probe {
    /// A probe that looks below `root`: `/`, or a tree that a test made.
    pub fn new(root: impl Into<std::path::PathBuf>, options: Options) -> Self {
        let root = Root::new(root);
        let slow = Slow::new(&root, Duration::from_millis(options.slow_read_ms));
        let table = DeviceTable::read(&root, &options.stand_ins);
        let own = root.is_machine() && root.own_pid() == Some(Pid(std::process::id()));
        let machine = Machine {
            handles: Handles::new(own),
            freezers: Freezers::default(),
            ties: 0,
            table,
            users: Users::default(),
            listeners: Listeners::default(),
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            page_bytes: rustix::param::page_size() as u64,
            root,
        };
        Self {
            machine,
            options,
            scan: Scan::default(),
            details: BTreeMap::new(),
            kin: Kin::default(),
            slow,
            facts: None,
            looks: 0,
        }
    }

    /// Where it looks.
    pub const fn root(&self) -> &Root {
        &self.machine.root
    }

    /// The device numbers that it goes by.
    pub const fn devices(&self) -> &DeviceTable {
        &self.machine.table
    }

    /// Looks at every process in `listed`, at every one that has an NVIDIA device open, and at
    /// their ancestors, leaders and group members. A pid that is in `listed` and not in the answer
    /// is no process that this `/proc` shows.
    pub fn look(&mut self, now: Stamp, listed: &[Pid]) -> ProcTick {
        self.look_with(now, listed, |_| Said::default())
    }

    /// As [`Probe::look`], with what `ask` learns of each process by other ways.
    pub fn look_with(
        &mut self,
        now: Stamp,
        listed: &[Pid],
        mut ask: impl FnMut(&ProcSample) -> Said,
    ) -> ProcTick {
        let began = Instant::now();
        self.looks += 1;
        let host = self.machine_facts(now);
        self.scan.refresh(&self.machine.root, now);
        self.notice_ends();
        // Those that the driver lists come first: what is read of them need not be asked again.
        let mut holders = Vec::new();
        self.look_at_holders(now, listed, &mut holders);
        self.scan(now, None);
        self.look_at_holders(now, &[], &mut holders);
        self.want(holders);
        self.look_at_relatives(now);
        let looks = self.looks;
        self.forget(|detail| detail.wanted_in != looks);
        self.ask_slow(now);
        // Only an environment names them, and that is read last.
        if self.look_at_notebook_servers(now) {
            self.ask_slow(now);
        }
        self.keep_kin(now);
        let took_ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut procs = Vec::with_capacity(self.details.len());
        for detail in self.details.values_mut() {
            detail.say(ask(&detail.sample));
            procs.push(Arc::clone(&detail.sample));
        }
        ProcTick { at: now, took_ms, procs, scan: self.scan.report(), host }
    }

    /// What a first look would begin with, until `wanted` says that it is: the machine, and
    /// everybody's open files.
    pub fn prepare(&mut self, now: Stamp, wanted: &dyn Fn() -> bool) {
        self.machine_facts(now);
        self.scan.refresh(&self.machine.root, now);
        self.scan(now, Some(wanted));
    }

    fn scan(&mut self, now: Stamp, leave: Option<&dyn Fn() -> bool>) {
        let (machine, options) = (&mut self.machine, &self.options);
        let slice = Slice { processes: options.slice_processes, files: options.slice_files };
        let Machine { root, table, ticks_per_second, .. } = machine;
        let mut asking = Asking { root, table, ticks_per_second: *ticks_per_second };
        self.scan.slice(&mut asking, now, slice, leave);
    }

    /// Those that have ended since the last look are read in this one.
    fn notice_ends(&mut self) {
        for pid in self.machine.handles.ended() {
            if let Some(detail) = self.details.get_mut(&pid) {
                detail.ended();
            }
        }
    }

    fn forget(&mut self, gone: impl Fn(&Detail) -> bool) {
        let handles = &mut self.machine.handles;
        for (_, detail) in self.details.extract_if(.., |_, detail| gone(detail)) {
            detail.close(handles);
        }
    }

    fn remove(&mut self, pid: Pid) {
        if let Some(detail) = self.details.remove(&pid) {
            detail.close(&mut self.machine.handles);
        }
    }

    fn machine_facts(&mut self, now: Stamp) -> HostFacts {
        if let Some((at, facts)) = &self.facts
            && now.boot_ms.saturating_sub(*at) < MACHINE_MS
        {
            return HostFacts { memory: facts::memory(&self.machine.root), ..facts.clone() };
        }
        if self.facts.is_some() {
            self.machine.table.refresh();
        }
        let facts = facts::read(&self.machine.root);
        self.facts = Some((now.boot_ms, facts.clone()));
        facts
    }

    /// Looks at those that the driver lists and at those that have a device open, as far as they are
    /// not in `known`, and adds them to it.
    fn look_at_holders(&mut self, now: Stamp, listed: &[Pid], known: &mut Vec<Pid>) {
        let holders = listed.iter().filter(|pid| pid.0 != 0).chain(self.scan.holders());
        let mut found: Vec<Pid> =
            holders.filter(|pid| known.binary_search(pid).is_err()).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.truncate(self.options.most_processes.saturating_sub(known.len()));
        for pid in &found {
            if self.read(*pid, Part::Holder, now)
                && let Some(detail) = self.details.get(pid)
            {
                let sample = &detail.sample;
                let stat = ProcStat { pid: *pid, group: sample.group, devices: &sample.devices };
                self.scan.learn(&stat, now);
                self.begin_slow(*pid, now);
            }
        }
        if !found.is_empty() {
            known.append(&mut found);
            known.sort_unstable();
        }
    }

    fn full(&self) -> bool {
        self.details.len() >= self.options.most_processes
    }

    /// Reads one process, once a look. False where there is none.
    fn read(&mut self, pid: Pid, part: Part, now: Stamp) -> bool {
        if let Some(detail) = self.details.get(&pid) {
            if detail.wanted_in == self.looks || self.refresh(pid, part, now) {
                return true;
            }
            self.remove(pid);
        }
        let Some(mut detail) = Detail::new(&mut self.machine, pid, part, now) else {
            return false;
        };
        detail.read_in = self.looks;
        detail.wanted_in = self.looks;
        if part == Part::Relative {
            detail.know_devices(self.scan.devices(pid));
        }
        self.details.insert(pid, detail);
        self.machine.ties += 1;
        true
    }

    /// Reads one that is known, once a look. False where it has ended.
    fn refresh(&mut self, pid: Pid, part: Part, now: Stamp) -> bool {
        let Some(detail) = self.details.get_mut(&pid) else { return false };
        if detail.read_in != self.looks {
            if detail.part != part {
                self.machine.ties += 1;
                detail.turn(part);
            }
            if !detail.refresh(&mut self.machine, now) {
                return false;
            }
            detail.read_in = self.looks;
            // A relative's files are known from the scan.
            if part == Part::Relative {
                detail.know_devices(self.scan.devices(pid));
            }
        }
        detail.wanted_in = self.looks;
        true
    }

    /// What can hang is asked of a process while the next ones are read.
    fn begin_slow(&mut self, pid: Pid, now: Stamp) {
        let Some(detail) = self.details.get_mut(&pid) else { return };
        let want = detail.wants(now);
        if want.any() {
            detail.asked_in = self.looks;
            self.slow.begin(Job::Process(pid, want));
        }
    }

    fn ask_slow(&mut self, now: Stamp) {
        let looks = self.looks;
        let mut wants: Vec<(bool, Pid, Want)> = self
            .details
            .iter()
            .filter(|(_, detail)| detail.asked_in != looks)
            .map(|(pid, detail)| (detail.part == Part::Relative, *pid, detail.wants(now)))
            .filter(|(_, _, want)| want.any())
            .collect();
        // Holders first: time may run out.
        wants.sort_unstable_by_key(|(relative, pid, _)| (*relative, *pid));
        let mut jobs: Vec<Job> =
            wants.into_iter().map(|(_, pid, want)| Job::Process(pid, want)).collect();
        jobs.extend(self.machine.users.unknown().into_iter().map(Job::User));
        let (details, users) = (&mut self.details, &mut self.machine.users);
        let ties = &mut self.machine.ties;
        let mut learned = Vec::new();
        self.slow.ask(jobs, Duration::from_millis(self.options.slow_look_ms), |outcome| {
            match outcome {
                Outcome::Answered(Answer::Process(pid, facts)) => {
                    if let Some(detail) = details.get_mut(&pid) {
                        let server = detail.sample.notebook_server();
                        detail.learn(*facts, now);
                        *ties += u64::from(detail.sample.notebook_server() != server);
                    }
                }
                Outcome::Hung(Job::Process(pid, _)) => {
                    if let Some(detail) = details.get_mut(&pid) {
                        detail.hung(now);
                    }
                }
                Outcome::Answered(Answer::User(uid, name)) => learned.push((uid, name)),
                Outcome::Hung(Job::User(uid)) => {
                    learned.push((uid, Reading::Absent(Why::TimedOut)));
                }
            }
        });
        for (uid, name) in learned {
            for detail in details.values_mut() {
                detail.know_user(uid, &name);
            }
            users.learn(uid, name);
        }
    }
}
