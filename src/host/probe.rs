//! One look at the processes that matter.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::host::detail::{Detail, Machine, Part};
use crate::host::devices::{DeviceTable, StandIn};
use crate::host::facts;
use crate::host::listen::Listeners;
use crate::host::relatives;
use crate::host::rest::{self, Handles};
use crate::host::root::Root;
use crate::host::scan::{ProcStat, Scan, Slice};
use crate::host::slow::{Answer, Job, Outcome, Slow, Want};
use crate::host::users::Users;
use crate::ids::{Pid, Stamp};
use crate::sample::{HostFacts, ProcSample, ProcTick, Reading, Why};

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

/// Looks at processes and remembers what does not change. Blocking: it belongs on a thread of its
/// own.
pub struct Probe {
    machine: Machine,
    options: Options,
    scan: Scan,
    details: HashMap<Pid, Detail>,
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
            details: HashMap::new(),
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
        let began = Instant::now();
        self.looks += 1;
        let host = self.machine_facts(now);
        self.scan(now);
        self.notice_ends();
        self.look_at_holders(now, listed);
        self.look_at_relatives(now);
        let looks = self.looks;
        self.forget(|detail| detail.wanted_in != looks);
        self.ask_slow(now);
        // Only an environment names them, and that is read last.
        if self.look_at_notebook_servers(now) {
            self.ask_slow(now);
        }
        let mut procs: Vec<ProcSample> =
            self.details.values().map(|detail| detail.sample.clone()).collect();
        procs.sort_unstable_by_key(|sample| sample.id);
        ProcTick {
            at: now,
            took_ms: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
            procs,
            scan: self.scan.report(),
            host,
        }
    }

    /// What a first look would begin with: everybody's open files, and the machine.
    pub fn prepare(&mut self, now: Stamp) {
        self.machine_facts(now);
        self.scan(now);
    }

    fn scan(&mut self, now: Stamp) {
        let (machine, options) = (&mut self.machine, &self.options);
        let slice = Slice { processes: options.slice_processes, files: options.slice_files };
        self.scan.refresh(&machine.root, now);
        self.scan.slice(&machine.root, &mut machine.table, now, slice, machine.ticks_per_second);
    }

    /// Those that have ended since the last look are read in this one.
    fn notice_ends(&mut self) {
        let with_handle = |pid: &Pid, detail: &Detail| detail.handle().map(|_| *pid);
        let pids: Vec<Pid> =
            self.details.iter().filter_map(|(pid, detail)| with_handle(pid, detail)).collect();
        let mut ended = Vec::new();
        rest::each_ended(self.details.values().filter_map(Detail::handle), |n| {
            ended.extend(pids.get(n).copied());
        });
        for pid in ended {
            if let Some(detail) = self.details.get_mut(&pid) {
                detail.ended();
            }
        }
    }

    fn forget(&mut self, gone: impl Fn(&Detail) -> bool) {
        let handles = &mut self.machine.handles;
        for (_, detail) in self.details.extract_if(|_, detail| gone(detail)) {
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

    fn look_at_holders(&mut self, now: Stamp, listed: &[Pid]) {
        let mut wanted: BTreeSet<Pid> = listed.iter().copied().filter(|pid| pid.0 != 0).collect();
        wanted.extend(self.scan.holders());
        for pid in wanted.into_iter().take(self.options.most_processes) {
            if !self.read(pid, Part::Holder, now) {
                continue;
            }
            if let Some(detail) = self.details.get(&pid) {
                let sample = &detail.sample;
                let stat = ProcStat {
                    pid,
                    parent: sample.parent,
                    group: sample.group,
                    devices: &sample.devices,
                };
                self.scan.learn(&stat, now);
            }
        }
    }

    fn look_at_relatives(&mut self, now: Stamp) {
        let holders: Vec<Pid> = self.wanted_now().collect();
        // Parents become known only as they are read, so the chain is climbed step by step.
        let mut climbing: Vec<Pid> = Vec::new();
        let mut leaders = BTreeSet::new();
        for pid in &holders {
            let Some(detail) = self.details.get(pid) else { continue };
            climbing.push(detail.sample.parent);
            leaders.extend([detail.sample.group, detail.sample.session]);
        }
        let mut climbed = BTreeSet::new();
        while let Some(pid) = climbing.pop() {
            if pid.0 == 0 || !climbed.insert(pid) || self.full() {
                continue;
            }
            if self.read(pid, Part::Relative, now)
                && let Some(detail) = self.details.get(&pid)
            {
                climbing.push(detail.sample.parent);
            }
        }
        leaders.remove(&Pid(0));
        for pid in leaders {
            self.read(pid, Part::Relative, now);
        }
        self.look_at_groups(&holders, now);
    }

    /// Whether there was one that was not known.
    fn look_at_notebook_servers(&mut self, now: Stamp) -> bool {
        let servers: BTreeSet<Pid> =
            self.details.values().filter_map(|detail| detail.sample.notebook_server()).collect();
        let mut found = false;
        for pid in servers {
            let known = self.details.get(&pid).is_some_and(|d| d.wanted_in == self.looks);
            found |= !known && !self.full() && self.read(pid, Part::Relative, now);
        }
        found
    }

    /// Members of the same process group that belong to the same user: the job of a holder.
    fn look_at_groups(&mut self, holders: &[Pid], now: Stamp) {
        let owners: BTreeMap<Pid, BTreeSet<u32>> = relatives::owners_of_groups(
            holders.iter().filter_map(|pid| self.details.get(pid)).map(|detail| &detail.sample),
        );
        for pid in relatives::members(&self.scan, &owners) {
            if self.full() {
                return;
            }
            let known = self.details.contains_key(&pid);
            if !self.read(pid, Part::Relative, now) {
                continue;
            }
            let same = self.details.get(&pid).is_some_and(|detail| {
                let owner = owners.get(&detail.sample.group);
                owner.is_some_and(|uids| {
                    detail.sample.uid.value().is_some_and(|uid| uids.contains(uid))
                })
            });
            if !same && !known {
                self.remove(pid);
            }
        }
    }

    fn full(&self) -> bool {
        self.details.len() >= self.options.most_processes
    }

    fn wanted_now(&self) -> impl Iterator<Item = Pid> {
        let looks = self.looks;
        self.details
            .iter()
            .filter(move |(_, detail)| detail.wanted_in == looks)
            .map(|(pid, _)| *pid)
    }

    /// Reads one process, once a look. False where there is none.
    fn read(&mut self, pid: Pid, part: Part, now: Stamp) -> bool {
        if let Some(detail) = self.details.get_mut(&pid) {
            if detail.wanted_in == self.looks {
                return true;
            }
            if part == Part::Holder && detail.part == Part::Relative {
                detail.promote();
            }
            detail.part = part;
            if detail.refresh(&mut self.machine, now) {
                detail.wanted_in = self.looks;
                self.know_devices(pid);
                return true;
            }
            self.remove(pid);
        }
        let Some(mut detail) = Detail::new(&mut self.machine, pid, part, now) else {
            return false;
        };
        detail.wanted_in = self.looks;
        self.details.insert(pid, detail);
        self.know_devices(pid);
        true
    }

    /// A relative's files are known from the scan.
    fn know_devices(&mut self, pid: Pid) {
        if let Some(detail) = self.details.get_mut(&pid)
            && detail.part == Part::Relative
        {
            detail.sample.devices = self.scan.devices(pid);
        }
    }

    fn ask_slow(&mut self, now: Stamp) {
        let mut wants: Vec<(bool, Pid, Want)> = self
            .details
            .iter()
            .map(|(pid, detail)| (detail.part == Part::Relative, *pid, detail.wants(now)))
            .filter(|(_, _, want)| want.any())
            .collect();
        // Holders first: time may run out.
        wants.sort_unstable_by_key(|(relative, pid, _)| (*relative, *pid));
        let mut jobs: Vec<Job> =
            wants.into_iter().map(|(_, pid, want)| Job::Process(pid, want)).collect();
        jobs.extend(self.machine.users.unknown().into_iter().map(Job::User));
        let (details, users) = (&mut self.details, &mut self.machine.users);
        let mut learned = Vec::new();
        self.slow.ask(&jobs, Duration::from_millis(self.options.slow_look_ms), |outcome| {
            match outcome {
                Outcome::Answered(Answer::Process(pid, facts)) => {
                    if let Some(detail) = details.get_mut(&pid) {
                        detail.learn(*facts, now);
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
                if detail.sample.uid.get() == Some(uid) {
                    detail.sample.user = name.clone();
                }
            }
            users.learn(uid, name);
        }
    }
}
