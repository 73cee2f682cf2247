//! The parts of a process that are read less often than its state.

use std::sync::Arc;

use crate::host::cgroup;
use crate::host::detail::{
    Detail, FILES_AGAIN_MS, FILES_MS, HUNG_MS, KILL_BIT, Machine, Part, RELATIVE_MS, SLOW_MS,
    STATUS_MS, set,
};
use crate::host::fds::{self, Depth};
use crate::host::rest::What;
use crate::host::root::{self, Root};
use crate::host::slow::{Facts, Want};
use crate::host::stat::{self, Waiting};
use crate::host::status::{self, Status};
use crate::host::target::wait_channel;
use crate::ids::{Pid, Stamp};
use crate::sample::{ProcState, Reading, Why};

impl Detail {
    pub(super) fn read_parts(&mut self, machine: &mut Machine, now: Stamp) {
        let now_ms = now.boot_ms;
        let usual_ms = if self.part == Part::Holder { STATUS_MS } else { RELATIVE_MS };
        if self.schedule.is_due(What::Status, usual_ms, now_ms) {
            let status = status::read(&machine.root, self.sample.id.pid);
            self.read_status(machine, status, now);
        }
        if self.part == Part::Holder {
            let waits = self.sample.threads_in_d > 0;
            if waits || self.schedule.is_due(What::Threads, FILES_MS, now_ms) {
                self.read_threads(machine, now);
            }
            if self.schedule.is_due(What::Files, FILES_MS, now_ms) {
                if self.has_the_same_files(&machine.root, now) {
                    self.schedule.done(What::Files, now_ms);
                } else {
                    self.read_files(machine, now);
                }
            }
        }
    }

    /// Takes its status, and reads its cgroup.
    pub(super) fn read_status(
        &mut self,
        machine: &mut Machine,
        status: Result<Status, Why>,
        now: Stamp,
    ) {
        let pid = self.sample.id.pid;
        self.schedule.done(What::Status, now.boot_ms);
        match status {
            Ok(status) => {
                let uid = status.real_uid.ok_or(Why::Nonsense).into();
                if uid != self.sample.uid || status.namespace_pids != self.sample.namespace_pids {
                    machine.ties += 1;
                }
                set!(self.sample, uid, uid);
                set!(self.sample, namespace_pids, status.namespace_pids);
                set!(self.sample, tracer, status.tracer.0);
                set!(self.sample, signals, Some(status.signals));
            }
            Err(why) => {
                machine.ties += u64::from(self.sample.uid.value().is_some());
                set!(self.sample, uid, Reading::Absent(why));
                set!(self.sample, signals, None);
                set!(self.sample, tracer, Pid(0));
            }
        }
        let user = match self.sample.uid {
            Reading::Value(uid) => machine.users.name(&machine.root, uid),
            Reading::Absent(why) => Reading::Absent(why),
        };
        set!(self.sample, user, user);
        let mut buffer = [0; 16 << 10];
        match root::record(&machine.root.of(pid, "cgroup"), &mut buffer) {
            Ok(text) => {
                let group = cgroup::parse(&String::from_utf8_lossy(text));
                let frozen = machine.freezers.frozen(&group, &machine.root, now.boot_ms);
                set!(self.sample, frozen, frozen);
                set!(self.sample, cgroup, Reading::Value(group.path));
                set!(self.sample, unit, group.unit);
                set!(self.sample, container, group.container);
                self.job_by_group = group.slurm_job.is_some();
                if self.job_by_group {
                    set!(self.sample, slurm_job, group.slurm_job);
                }
            }
            Err(why) => {
                set!(self.sample, cgroup, Reading::Absent(why));
                set!(self.sample, unit, None);
                set!(self.sample, container, None);
                set!(self.sample, frozen, false);
                if std::mem::take(&mut self.job_by_group) {
                    set!(self.sample, slurm_job, None);
                }
            }
        }
    }

    /// Counts threads in D and says what one of them waits in. A process that does not die of a
    /// KILL is told apart from others by that.
    fn read_threads(&mut self, machine: &Machine, now: Stamp) {
        self.schedule.done(What::Threads, now.boot_ms);
        let (root, pid) = (&machine.root, self.sample.id.pid);
        // The state of an only thread is that of the process.
        let many = self.sample.threads > 1;
        let first = u32::from(self.sample.state == ProcState::Uninterruptible);
        let found = if many { stat::waiting_threads(root, pid) } else { Ok(Waiting::default()) };
        let (count, unread) = match found {
            Ok(waiting) => (waiting.count.max(first), None),
            Err(why) => (first, Some(why).filter(|_| first == 0)),
        };
        set!(self.sample, threads_in_d, count);
        set!(self.sample, threads_unread, unread);
        let killed = self.sample.signals.is_some_and(|signals| signals.pending & KILL_BIT != 0);
        let waits_in = match found.ok().and_then(|waiting| waiting.one) {
            Some(tid) => wait_channel(root, pid, &format!("task/{tid}/wchan")),
            None if first > 0 || (killed && unread.is_none()) => wait_channel(root, pid, "wchan"),
            None => None,
        };
        set!(self.sample, wait_channel, waits_in);
    }

    /// Whether it has as many files open as when they were listed, and has done nothing since.
    fn has_the_same_files(&self, root: &Root, now: Stamp) -> bool {
        let (files, listed_ms) = self.listed_files;
        // A tree of ordinary files has sizes that say nothing.
        root.is_machine()
            && files > 0
            && now.boot_ms.saturating_sub(listed_ms) < FILES_AGAIN_MS
            && self.schedule.still_since(What::Files)
            && fds::size(root, self.sample.id.pid) == Ok(files)
    }

    fn read_files(&mut self, machine: &mut Machine, now: Stamp) {
        self.schedule.done(What::Files, now.boot_ms);
        let pid = self.sample.id.pid;
        let dead = matches!(self.sample.state, ProcState::Zombie | ProcState::Dead);
        let of_threads = dead && self.sample.threads > 1;
        match fds::scan(&machine.root, pid, &mut machine.table, Depth::All, of_threads) {
            Ok(open) => {
                self.listed_files = (if of_threads { 0 } else { open.size }, now.boot_ms);
                self.open_devices = Reading::Value(open.devices);
                let ports = machine.listeners.ports(&machine.root, pid, &open.sockets, now.boot_ms);
                set!(self.sample, listens, ports);
                set!(self.sample, stdio_deleted, open.stdio_deleted);
                self.open_models = open.model_files;
            }
            Err(why) => {
                self.listed_files = (0, 0);
                self.open_devices = Reading::Absent(why);
                self.forget_files();
            }
        }
        self.join_files();
    }

    /// What was open is not said of a process whose files are not read.
    pub(super) fn forget_files(&mut self) {
        set!(self.sample, listens, Vec::new());
        set!(self.sample, stdio_deleted, false);
        self.open_models.clear();
    }

    /// Joins what is open and what is mapped: a mapping keeps a device as an open file does.
    fn join_files(&mut self) {
        let devices = self.open_devices.clone().map(|mut devices| {
            devices.count = devices.count.saturating_add(self.mapped_devices);
            devices
        });
        set!(self.sample, devices, devices);
        let mut models = self.open_models.clone();
        for model in &self.mapped_models {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        set!(self.sample, model_files, models);
    }

    /// What has to be asked on the helper thread now. Nothing of a process with a thread in D: the
    /// lock that such a thread holds is the one that the read waits for.
    pub fn wants(&self, now: Stamp) -> Want {
        let kernel = self.sample.flags & stat::KERNEL_THREAD != 0;
        let dead = matches!(self.sample.state, ProcState::Zombie | ProcState::Dead);
        if kernel || dead || self.sample.threads_in_d > 0 {
            return Want::default();
        }
        let usual_ms = match self.slow_step {
            0 => 0,
            step => SLOW_MS.get(step - 1).or(SLOW_MS.last()).copied().unwrap_or(HUNG_MS),
        };
        let due = self.schedule.is_due(What::Slow, usual_ms, now.boot_ms);
        let holder = self.part == Part::Holder;
        Want {
            arguments: due,
            environment: due && holder,
            maps: due && holder,
            written: holder && self.schedule.is_due(What::Written, STATUS_MS, now.boot_ms),
        }
    }

    /// Takes an answer of the helper thread.
    pub fn learn(&mut self, facts: Facts, now: Stamp) {
        if let Some(arguments) = facts.arguments {
            set!(self.sample, cmdline, arguments);
            self.schedule.done(What::Slow, now.boot_ms);
            self.slow_step += 1;
        }
        if let Some(environment) = facts.environment {
            if !self.job_by_group {
                let variables = environment.value().map(Vec::as_slice).unwrap_or_default();
                let job = variables.iter().find(|variable| variable.name == "SLURM_JOB_ID");
                set!(self.sample, slurm_job, job.map(|variable| variable.value.clone()));
            }
            set!(self.sample, environment, Some(environment));
        }
        if let Some(Reading::Value(mapped)) = facts.mapped
            && self.part == Part::Holder
        {
            self.mapped_models = mapped.models;
            self.mapped_devices = mapped.devices;
            self.join_files();
        }
        if let Some(written) = facts.written {
            self.schedule.done(What::Written, now.boot_ms);
            set!(self.sample, written, written.get());
        }
    }

    /// It did not answer in time.
    pub fn hung(&mut self, now: Stamp) {
        self.schedule.hold(now.boot_ms + HUNG_MS);
        if self.sample.cmdline.value().is_none() {
            set!(self.sample, cmdline, Reading::Absent(Why::TimedOut));
        }
    }
}
