//! Everything about one process that matters, read in full once and then only where it moves.

use rustix::fd::OwnedFd;

use crate::host::cgroup::{self, Cgroup};
use crate::host::devices::DeviceTable;
use crate::host::fds::{self, Depth};
use crate::host::listen::Listeners;
use crate::host::rest::{Handles, Schedule, What};
use crate::host::root::{self, Root};
use crate::host::slow::{Facts, Want};
use crate::host::stat::{self, Stat};
use crate::host::status;
use crate::host::target::wait_channel;
use crate::host::users::Users;
use crate::ids::{Pid, Stamp};
use crate::sample::{NvidiaFds, ProcSample, ProcState, Reading, Why};
use crate::units::{Bytes, Percent};

/// How often owner, signals, cgroup and bytes written are read at the most; see [`Schedule`].
const STATUS_MS: u64 = 4_000;
/// How often open files and threads are.
const FILES_MS: u64 = 8_000;
/// How often anything of a mere relative is.
const RELATIVE_MS: u64 = 30_000;
/// A hung read is tried again after this.
const HUNG_MS: u64 = 60_000;
/// Mapped files and arguments of a process that works: after 0, 4, 16, 64, then every 128 s.
/// Reading them takes a lock of the process for a moment.
const SLOW_MS: [u64; 4] = [4_000, 16_000, 64_000, 128_000];
/// Threads of a process whose state is read.
const MOST_THREADS: usize = 512;
/// Signal 9 in a mask.
const KILL_BIT: u64 = 1 << 8;
/// CPU use is not computed over less than this.
const SHORTEST_CPU_MS: u64 = 100;

/// What reading needs to know of the machine.
pub(super) struct Machine {
    pub root: Root,
    pub table: DeviceTable,
    pub users: Users,
    pub listeners: Listeners,
    pub handles: Handles,
    pub ticks_per_second: u64,
    pub page_bytes: u64,
}

/// Why a process is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The driver lists it, or it has a device open.
    Holder,
    /// A parent, leader or group member of one.
    Relative,
}

/// One process and when each part of it is read again.
pub(super) struct Detail {
    pub sample: ProcSample,
    pub part: Part,
    /// The look in which it was last wanted.
    pub wanted_in: u64,
    cgroup: Cgroup,
    cpu_before: (u64, u64),
    schedule: Schedule,
    slow_step: usize,
    /// By which its end is noticed while it is not read.
    handle: Option<OwnedFd>,
    mapped_models: Vec<String>,
    open_models: Vec<String>,
    open_devices: Reading<NvidiaFds>,
    mapped_devices: u32,
}

impl Detail {
    /// Reads a process for the first time. `None` where there is none, or where the number is only
    /// a thread's.
    pub fn new(machine: &mut Machine, pid: Pid, part: Part, now: Stamp) -> Option<Self> {
        let handle = machine.handles.open(pid);
        let Some(stat) = first_stat(&machine.root, pid) else {
            machine.handles.close(handle);
            return None;
        };
        let started_boot_ms =
            stat.start_ticks.saturating_mul(1000) / machine.ticks_per_second.max(1);
        let mut detail = Self {
            sample: blank(&stat, started_boot_ms),
            part,
            wanted_in: 0,
            cgroup: Cgroup::default(),
            cpu_before: (stat.cpu_ticks, now.boot_ms),
            schedule: Schedule::new(now.boot_ms),
            slow_step: 0,
            handle,
            mapped_models: Vec::new(),
            open_models: Vec::new(),
            open_devices: Reading::Absent(Why::NotYet),
            mapped_devices: 0,
        };
        detail.take(machine, stat, now);
        Some(detail)
    }

    /// Reads what is due. False where the process has ended or is another one now.
    pub fn refresh(&mut self, machine: &mut Machine, now: Stamp) -> bool {
        if self.handle.is_some() && self.schedule.rests(self.sample.id.pid, now.boot_ms) {
            self.sample.read_boot_ms = self.schedule.read_ms(What::Stat);
            self.read_parts(machine, now);
            return true;
        }
        let Ok(stat) = stat::read(&machine.root, self.sample.id.pid) else { return false };
        if stat.id() != self.sample.id {
            return false;
        }
        self.take(machine, stat, now);
        true
    }

    /// Makes everything due.
    pub const fn expire(&mut self) {
        self.schedule.expire_all();
    }

    /// Its handle, where it has one.
    pub const fn handle(&self) -> Option<&OwnedFd> {
        self.handle.as_ref()
    }

    /// Its end was noticed: it is read in this look, whatever it did before.
    pub const fn ended(&mut self) {
        self.schedule.expire(What::Stat);
    }

    /// It is wanted no more.
    pub fn close(self, handles: &mut Handles) {
        handles.close(self.handle);
    }

    /// A relative that turned out to be a holder.
    pub fn promote(&mut self) {
        self.part = Part::Holder;
        self.expire();
    }

    fn take(&mut self, machine: &mut Machine, stat: Stat, now: Stamp) {
        let sample = &mut self.sample;
        if stat.comm != sample.comm {
            // It runs another program, or has renamed itself.
            self.schedule.moved(now.boot_ms);
            self.schedule.expire(What::Slow);
        }
        if stat.state != sample.state || stat.flags != sample.flags {
            self.schedule.moved(now.boot_ms);
            self.schedule.expire(What::Status);
            self.schedule.expire(What::Files);
            self.schedule.expire(What::Threads);
        }
        if stat.cpu_ticks != sample.cpu_ticks
            || (stat.parent, stat.threads) != (sample.parent, sample.threads)
        {
            self.schedule.moved(now.boot_ms);
        }
        self.schedule.done(What::Stat, now.boot_ms);
        let (ticks, at_ms) = self.cpu_before;
        let elapsed_ms = now.boot_ms.saturating_sub(at_ms);
        if elapsed_ms >= SHORTEST_CPU_MS {
            let spent = stat.cpu_ticks.saturating_sub(ticks) as f64 * 1000.0;
            let share = spent / machine.ticks_per_second.max(1) as f64 / elapsed_ms as f64;
            sample.cpu = Reading::Value(Percent((share * 100.0) as f32));
            self.cpu_before = (stat.cpu_ticks, now.boot_ms);
        }
        sample.read_boot_ms = None;
        sample.comm = stat.comm;
        sample.state = stat.state;
        sample.parent = stat.parent;
        sample.group = stat.group;
        sample.session = stat.session;
        sample.tty = stat.tty;
        sample.flags = stat.flags;
        sample.threads = stat.threads;
        sample.cpu_ticks = stat.cpu_ticks;
        sample.rss = Reading::Value(Bytes(stat.rss_pages.saturating_mul(machine.page_bytes)));
        self.read_parts(machine, now);
    }

    fn read_parts(&mut self, machine: &mut Machine, now: Stamp) {
        let now_ms = now.boot_ms;
        let usual_ms = if self.part == Part::Holder { STATUS_MS } else { RELATIVE_MS };
        if self.schedule.is_due(What::Status, usual_ms, now_ms) {
            self.read_status(machine, now);
        }
        if self.part == Part::Holder {
            let waits = self.sample.threads_in_d > 0;
            if waits || self.schedule.is_due(What::Threads, FILES_MS, now_ms) {
                self.read_threads(machine, now);
            }
            if self.schedule.is_due(What::Files, FILES_MS, now_ms) {
                self.read_files(machine, now);
            }
        }
    }

    fn read_status(&mut self, machine: &mut Machine, now: Stamp) {
        let pid = self.sample.id.pid;
        self.schedule.done(What::Status, now.boot_ms);
        match status::read(&machine.root, pid) {
            Ok(status) => {
                self.sample.uid = status.real_uid.ok_or(Why::Nonsense).into();
                self.sample.namespace_pids = status.namespace_pids;
                self.sample.tracer = status.tracer.0;
                self.sample.signals = Some(status.signals);
            }
            Err(why) => self.sample.uid = Reading::Absent(why),
        }
        self.sample.user = match self.sample.uid {
            Reading::Value(uid) => machine.users.name(&machine.root, uid),
            Reading::Absent(why) => Reading::Absent(why),
        };
        match root::text(&machine.root.of(pid, "cgroup"), 16 << 10) {
            Ok(text) => {
                self.cgroup = cgroup::parse(&text);
                let group = &self.cgroup;
                self.sample.cgroup = Reading::Value(group.path.clone());
                self.sample.unit.clone_from(&group.unit);
                self.sample.container.clone_from(&group.container);
                if group.slurm_job.is_some() {
                    self.sample.slurm_job.clone_from(&group.slurm_job);
                }
                self.sample.frozen = group.frozen(&machine.root);
            }
            Err(why) => self.sample.cgroup = Reading::Absent(why),
        }
    }

    /// Counts threads in D and says what one of them waits in. A process that does not die of a
    /// KILL is told apart from others by that.
    fn read_threads(&mut self, machine: &Machine, now: Stamp) {
        self.schedule.done(What::Threads, now.boot_ms);
        let (root, pid) = (&machine.root, self.sample.id.pid);
        let mut waiting = None;
        let mut count = 0;
        for tid in fds::threads(root, pid).unwrap_or_default().into_iter().take(MOST_THREADS) {
            if stat::thread_state(root, pid, tid) == Ok(ProcState::Uninterruptible) {
                count += 1;
                waiting = waiting.or(Some(tid));
            }
        }
        if self.sample.state == ProcState::Uninterruptible && count == 0 {
            count = 1;
        }
        self.sample.threads_in_d = count;
        let killed = self.sample.signals.is_some_and(|signals| signals.pending & KILL_BIT != 0);
        self.sample.wait_channel = match waiting {
            Some(tid) => wait_channel(root, pid, &format!("task/{tid}/wchan")),
            None if count > 0 || killed => wait_channel(root, pid, "wchan"),
            None => None,
        };
    }

    fn read_files(&mut self, machine: &mut Machine, now: Stamp) {
        self.schedule.done(What::Files, now.boot_ms);
        let pid = self.sample.id.pid;
        let dead = matches!(self.sample.state, ProcState::Zombie | ProcState::Dead);
        let of_threads = dead && self.sample.threads > 1;
        match fds::scan(&machine.root, pid, &mut machine.table, Depth::All, of_threads) {
            Ok(open) => {
                self.open_devices = Reading::Value(open.devices);
                let ports = machine.listeners.ports(&machine.root, pid, &open.sockets, now.boot_ms);
                self.sample.listens = ports;
                self.sample.stdio_deleted = open.stdio_deleted;
                self.open_models = open.model_files;
            }
            Err(why) => self.open_devices = Reading::Absent(why),
        }
        self.join_files();
    }

    /// Joins what is open and what is mapped: a mapping keeps a device as an open file does.
    fn join_files(&mut self) {
        self.sample.devices = self.open_devices.clone().map(|mut devices| {
            devices.count = devices.count.saturating_add(self.mapped_devices);
            devices
        });
        self.sample.model_files.clone_from(&self.open_models);
        for model in &self.mapped_models {
            if !self.sample.model_files.contains(model) {
                self.sample.model_files.push(model.clone());
            }
        }
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
            self.sample.cmdline = arguments;
            self.schedule.done(What::Slow, now.boot_ms);
            self.slow_step += 1;
        }
        if let Some(environment) = facts.environment {
            if self.cgroup.slurm_job.is_none() {
                let variables = environment.value().map(Vec::as_slice).unwrap_or_default();
                let job = variables.iter().find(|variable| variable.name == "SLURM_JOB_ID");
                self.sample.slurm_job = job.map(|variable| variable.value.clone());
            }
            self.sample.environment = Some(environment);
        }
        if let Some(Reading::Value(mapped)) = facts.mapped {
            self.mapped_models = mapped.models;
            self.mapped_devices = mapped.devices;
            self.join_files();
        }
        if let Some(written) = facts.written {
            self.schedule.done(What::Written, now.boot_ms);
            self.sample.written = written.get();
        }
    }

    /// It did not answer in time.
    pub fn hung(&mut self, now: Stamp) {
        self.schedule.hold(now.boot_ms + HUNG_MS);
        if self.sample.cmdline.value().is_none() {
            self.sample.cmdline = Reading::Absent(Why::TimedOut);
        }
    }
}

/// The identity of a process; `None` where there is none, or where the number is only a thread's.
fn first_stat(root: &Root, pid: Pid) -> Option<Stat> {
    let stat = stat::read(root, pid).ok()?;
    let leader = status::read(root, pid).ok().and_then(|status| status.group_leader);
    (leader.is_none_or(|leader| leader == pid) && stat.pid == pid).then_some(stat)
}

fn blank(stat: &Stat, started_boot_ms: u64) -> ProcSample {
    let not_yet = Why::NotYet;
    // Neither has arguments that could be read.
    let empty = stat.kernel_thread() || stat.defunct();
    ProcSample {
        id: stat.id(),
        comm: stat.comm.clone(),
        cmdline: if empty { Reading::Value(Vec::new()) } else { Reading::Absent(not_yet) },
        uid: Reading::Absent(not_yet),
        user: Reading::Absent(not_yet),
        state: stat.state,
        parent: stat.parent,
        group: stat.group,
        session: stat.session,
        tty: stat.tty,
        flags: stat.flags,
        threads: stat.threads,
        threads_in_d: 0,
        read_boot_ms: None,
        cpu_ticks: stat.cpu_ticks,
        cpu: Reading::Absent(not_yet),
        rss: Reading::Absent(not_yet),
        started_boot_ms,
        cgroup: Reading::Absent(not_yet),
        unit: None,
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: Vec::new(),
        tracer: Pid(0),
        signals: None,
        devices: Reading::Absent(not_yet),
        wait_channel: None,
        written: None,
        listens: Vec::new(),
        stdio_deleted: false,
        environment: None,
        model_files: Vec::new(),
        allocator: None,
        server: None,
    }
}
