//! Everything about one process that matters, read in full once and then only where it moves.

mod blank;
mod parts;

use std::sync::Arc;

use rustix::fd::OwnedFd;

use crate::host::cgroup::Freezers;
use crate::host::detail::blank::blank;
use crate::host::devices::DeviceTable;
use crate::host::listen::Listeners;
use crate::host::probe::Said;
use crate::host::rest::{Handles, Schedule, What};
use crate::host::root::Root;
use crate::host::stat::{self, Stat};
use crate::host::status::{self, Status};
use crate::host::users::Users;
use crate::ids::{Pid, Stamp};
use crate::sample::{NvidiaFds, ProcSample, Reading, Why};
use crate::units::{Bytes, Percent};

/// How often owner, signals, cgroup and bytes written are read at the most; see [`Schedule`].
const STATUS_MS: u64 = 4_000;
/// Open files whose number has not changed are listed again after this, though the process has done
/// nothing that counts as work: others may have deleted one, or it has closed one and opened another.
const FILES_AGAIN_MS: u64 = 120_000;
/// How often open files and threads are.
const FILES_MS: u64 = 8_000;
/// How often anything of a mere relative is.
const RELATIVE_MS: u64 = 30_000;
/// A hung read is tried again after this.
const HUNG_MS: u64 = 60_000;
/// Mapped files and arguments of a process that works: after 0, 4, 16, 64, then every 128 s.
/// Reading them takes a lock of the process for a moment.
const SLOW_MS: [u64; 4] = [4_000, 16_000, 64_000, 128_000];
/// Signal 9 in a mask.
const KILL_BIT: u64 = 1 << 8;
/// CPU use is not computed over less than this.
const SHORTEST_CPU_MS: u64 = 100;

/// Sets a field of a sample. Others may hold the sample: it is copied only where that changes it.
macro_rules! set {
    ($sample:expr, $field:ident, $value:expr) => {{
        let value = $value;
        if $sample.$field != value {
            Arc::make_mut(&mut $sample).$field = value;
        }
    }};
}
use set;

/// What reading needs to know of the machine.
pub(super) struct Machine {
    pub root: Root,
    pub table: DeviceTable,
    pub users: Users,
    pub listeners: Listeners,
    pub handles: Handles,
    pub freezers: Freezers,
    /// Grows whenever something is read that ties one process to others: a parent, a group, an owner.
    pub ties: u64,
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
    /// Whoever took it in a look has the same one, for as long as nothing changes.
    pub sample: Arc<ProcSample>,
    pub part: Part,
    /// The look in which it was last read.
    pub read_in: u64,
    /// The look in which it was last wanted.
    pub wanted_in: u64,
    /// The look in which it was last asked what can hang.
    pub asked_in: u64,
    /// Whether its cgroup names its Slurm job; else the environment may.
    job_by_group: bool,
    cpu_before: (u64, u64),
    schedule: Schedule,
    slow_step: usize,
    /// By which its end is noticed while it is not read.
    handle: Option<OwnedFd>,
    /// Its `stat`, which stays open: one call a read instead of three.
    file: Option<OwnedFd>,
    mapped_models: Vec<String>,
    open_models: Vec<String>,
    open_devices: Reading<NvidiaFds>,
    mapped_devices: u32,
    /// Number of its open files when they were listed, where the kernel tells it, and when that was.
    listed_files: (i64, u64),
}

impl Detail {
    /// Reads a process for the first time. `None` where there is none, or where the number is only
    /// a thread's.
    pub fn new(machine: &mut Machine, pid: Pid, part: Part, now: Stamp) -> Option<Self> {
        let handle = machine.handles.open(pid);
        let Some((file, stat, status)) = first_look(&machine.root, pid) else {
            machine.handles.close(handle);
            return None;
        };
        let started_boot_ms =
            stat.start_ticks.saturating_mul(1000) / machine.ticks_per_second.max(1);
        let mut detail = Self {
            sample: Arc::new(blank(&stat, started_boot_ms)),
            part,
            read_in: 0,
            wanted_in: 0,
            asked_in: 0,
            job_by_group: false,
            cpu_before: (stat.cpu_ticks, now.boot_ms),
            schedule: Schedule::new(now.boot_ms),
            slow_step: 0,
            handle,
            file: machine.handles.keep(file),
            mapped_models: Vec::new(),
            open_models: Vec::new(),
            open_devices: Reading::Absent(Why::NotYet),
            mapped_devices: 0,
            listed_files: (0, 0),
        };
        detail.read_status(machine, status, now);
        detail.take(machine, stat, now);
        Some(detail)
    }

    /// Reads what is due. False where the process has ended or is another one now.
    pub fn refresh(&mut self, machine: &mut Machine, now: Stamp) -> bool {
        if self.rests(now.boot_ms) {
            set!(self.sample, read_boot_ms, self.schedule.read_ms(What::Stat));
            self.read_parts(machine, now);
            return true;
        }
        let Ok(stat) = self.read_stat(machine) else { return false };
        if stat.id() != self.sample.id {
            return false;
        }
        self.take(machine, stat, now);
        true
    }

    fn read_stat(&mut self, machine: &mut Machine) -> Result<Stat, Why> {
        if let Some(file) = &self.file {
            return stat::reread(file);
        }
        let file = stat::open(&machine.root, self.sample.id.pid)?;
        let stat = stat::reread(&file)?;
        self.file = machine.handles.keep(file);
        Ok(stat)
    }

    /// Whether its state is left alone at that moment: its end would be noticed.
    fn rests(&self, at_ms: u64) -> bool {
        self.handle.is_some() && self.schedule.rests(self.sample.id.pid, at_ms)
    }

    /// Makes everything due.
    pub const fn expire(&mut self) {
        self.schedule.expire_all();
    }

    /// Its end was noticed: it is read in this look, whatever it did before.
    pub const fn ended(&mut self) {
        self.schedule.expire(What::Stat);
    }

    /// It is wanted no more.
    pub fn close(self, handles: &mut Handles) {
        handles.close(self.handle);
        handles.let_go(self.file);
    }

    /// It is read for another reason now. Of a relative that turned out to be a holder everything
    /// is due; of a holder that is a relative now, what is not read any more is not kept.
    pub fn turn(&mut self, part: Part) {
        if part == Part::Holder {
            self.expire();
        } else {
            let sample = Arc::make_mut(&mut self.sample);
            (sample.threads_in_d, sample.threads_unread) = (0, Some(Why::NotAsked));
            (sample.wait_channel, sample.written, sample.environment) = (None, None, None);
            if !self.job_by_group {
                sample.slurm_job = None;
            }
            self.forget_files();
            (self.mapped_models, self.mapped_devices) = (Vec::new(), 0);
            set!(self.sample, model_files, Vec::new());
        }
        self.part = part;
    }

    /// What the scan knows of its files.
    pub fn know_devices(&mut self, devices: &Reading<NvidiaFds>) {
        if self.sample.devices != *devices {
            Arc::make_mut(&mut self.sample).devices.clone_from(devices);
        }
    }

    /// The name of a user, its own or not.
    pub fn know_user(&mut self, uid: u32, name: &Reading<String>) {
        if self.sample.uid.get() == Some(uid) && self.sample.user != *name {
            Arc::make_mut(&mut self.sample).user.clone_from(name);
        }
    }

    /// What was learned by other ways.
    pub fn say(&mut self, said: Said) {
        set!(self.sample, allocator, said.allocator);
        set!(self.sample, server, said.server);
    }

    fn take(&mut self, machine: &mut Machine, stat: Stat, now: Stamp) {
        let sample = &*self.sample;
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
        if (stat.parent, stat.group, stat.session) != (sample.parent, sample.group, sample.session)
        {
            machine.ties += 1;
        }
        self.schedule.done(What::Stat, now.boot_ms);
        self.take_cpu(machine, &stat, now);
        let rss = Reading::Value(Bytes(stat.rss_pages.saturating_mul(machine.page_bytes)));
        // What will be left alone is of this moment until it is read again.
        let rests = self.rests(now.boot_ms + 1);
        set!(self.sample, read_boot_ms, rests.then_some(now.boot_ms));
        set!(self.sample, comm, stat.comm);
        set!(self.sample, state, stat.state);
        set!(self.sample, parent, stat.parent);
        set!(self.sample, group, stat.group);
        set!(self.sample, session, stat.session);
        set!(self.sample, tty, stat.tty);
        set!(self.sample, flags, stat.flags);
        set!(self.sample, threads, stat.threads);
        set!(self.sample, cpu_ticks, stat.cpu_ticks);
        set!(self.sample, rss, rss);
        self.read_parts(machine, now);
    }

    fn take_cpu(&mut self, machine: &Machine, stat: &Stat, now: Stamp) {
        let (ticks, at_ms) = self.cpu_before;
        let elapsed_ms = now.boot_ms.saturating_sub(at_ms);
        if elapsed_ms >= SHORTEST_CPU_MS {
            let spent = stat.cpu_ticks.saturating_sub(ticks) as f64 * 1000.0;
            let share = spent / machine.ticks_per_second.max(1) as f64 / elapsed_ms as f64;
            set!(self.sample, cpu, Reading::Value(Percent((share * 100.0) as f32)));
            self.cpu_before = (stat.cpu_ticks, now.boot_ms);
        }
    }
}

/// The identity of a process and its status; `None` where there is none, or where the number is only
/// a thread's.
fn first_look(root: &Root, pid: Pid) -> Option<(OwnedFd, Stat, Result<Status, Why>)> {
    let file = stat::open(root, pid).ok()?;
    let stat = stat::reread(&file).ok()?;
    let status = status::read(root, pid);
    let leader = status.as_ref().ok().and_then(|status| status.group_leader);
    (leader.is_none_or(|leader| leader == pid) && stat.pid == pid).then_some((file, stat, status))
}
