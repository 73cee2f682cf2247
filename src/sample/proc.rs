//! What the kernel says of the processes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{Pid, ProcId, Stamp};
use crate::sample::{AllocatorSample, Reading, ServerSample, Why};
use crate::units::{Bytes, Percent};

/// One look at the processes that matter: those the driver lists, those that have an NVIDIA device
/// open, and the ancestors and groups of both that a verdict needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcTick {
    /// When the look began.
    pub at: Stamp,
    /// How long it took, in milliseconds.
    pub took_ms: u32,
    /// Processes, by pid. One of which nothing has changed is the same as in the look before.
    pub procs: Vec<Arc<ProcSample>>,
    /// What the scan could and could not see.
    pub scan: ScanReport,
    /// The machine.
    pub host: HostFacts,
}

/// What a scan of `/proc` covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanReport {
    /// Processes that exist.
    pub processes: u32,
    /// Those whose open files could not be read (other users', without root).
    pub unreadable: u32,
    /// When the last full scan of open files ended, in milliseconds since boot.
    pub scanned_boot_ms: Option<u64>,
}

/// Where the program runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The machine's name.
    pub hostname: Reading<String>,
    /// Whether this is the machine's first PID namespace. In another one the driver's pids can be
    /// strangers.
    pub host_pid_namespace: Reading<bool>,
    /// Whether this runs in a container, and what says so.
    pub container: Option<Container>,
    /// The effective user id.
    pub euid: u32,
    /// Whether `/proc` hides other users' processes.
    pub hidepid: Reading<bool>,
    /// `kernel.yama.ptrace_scope`; absent where the kernel has none.
    pub ptrace_scope: Reading<u32>,
    /// Windows' driver is below (WSL2).
    pub wsl: bool,
    /// The machine's own memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<HostMemory>,
}

/// The machine's own memory, as `/proc/meminfo` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMemory {
    /// `MemTotal`.
    pub total: Bytes,
    /// `MemAvailable`: what can be had without swapping, caches that can be dropped counted in.
    pub available: Bytes,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcSample {
    /// Its identity.
    pub id: ProcId,
    /// The kernel's short name, 15 bytes at the most. Hostile text.
    pub comm: String,
    /// Its arguments. Hostile text, bounded when read.
    pub cmdline: Reading<Vec<String>>,
    /// The real user id.
    pub uid: Reading<u32>,
    /// The user's name, where the machine knows one.
    pub user: Reading<String>,
    /// State of its first thread.
    pub state: ProcState,
    /// Parent.
    pub parent: Pid,
    /// Process group; its number is the pid of the group's leader.
    pub group: Pid,
    /// Session; its number is the pid of the session's leader.
    pub session: Pid,
    /// Its terminal's device number, 0 for none.
    pub tty: i32,
    /// The kernel's flags (`PF_EXITING` is 4, `PF_KTHREAD` 0x200000).
    pub flags: u64,
    /// When its state, CPU use and resident memory were read, in milliseconds since boot, where it
    /// does nothing and is left alone for some seconds; `None` is in this look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_boot_ms: Option<u64>,
    /// Number of threads.
    pub threads: u32,
    /// Threads that wait without a chance to be interrupted (state D); see [`ProcSample::in_d`].
    #[serde(default)]
    pub threads_in_d: u32,
    /// Why it is not known that there are none: not all of its threads could be looked at, nobody
    /// asked, or it is not kept, see [`ProcSample::at_work`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_unread: Option<Why>,
    /// CPU time so far, in clock ticks.
    pub cpu_ticks: u64,
    /// CPU use since the look before; absent at the first one.
    pub cpu: Reading<Percent>,
    /// Resident host memory.
    pub rss: Reading<Bytes>,
    /// When it started, in milliseconds since boot.
    pub started_boot_ms: u64,
    /// Its innermost cgroup path.
    pub cgroup: Reading<String>,
    /// The systemd unit that the path names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The container that the path names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// The Slurm job that the path or its environment names, and whether its cgroup is that job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm_job: Option<String>,
    /// Whether its cgroup is frozen.
    #[serde(default)]
    pub frozen: bool,
    /// Its pids from the outer namespace to its own; one entry where it is in ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_pids: Vec<Pid>,
    /// The debugger, 0 for none.
    #[serde(default = "no_pid")]
    pub tracer: Pid,
    /// Signal masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<Signals>,
    /// NVIDIA devices that it has open.
    pub devices: Reading<NvidiaFds>,
    /// What it waits in, where that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_channel: Option<String>,
    /// Bytes that it has written to disk so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Bytes>,
    /// TCP ports on which it listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<u16>,
    /// Whether its standard input, output and error are files that were deleted.
    #[serde(default)]
    pub stdio_deleted: bool,
    /// Environment variables that matter to GPU memory or to whose job this is; never others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Reading<Vec<EnvVar>>>,
    /// Model files that it has open or mapped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_files: Vec<String>,
    /// Its caching allocator, where one was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<Reading<AllocatorSample>>,
    /// What its own interface says, where it is an inference server that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Reading<ServerSample>>,
}

impl ProcSample {
    /// Threads in state D; `NotAsked` of one that was not looked at, or has too many to look at all.
    pub fn in_d(&self) -> Reading<u32> {
        match self.threads_unread {
            Some(why) if self.threads_in_d == 0 => Reading::Absent(why),
            _ => Reading::Value(self.threads_in_d),
        }
    }

    /// The same where what it does is known: its state, parent, threads, ports and open files.
    /// `NotKept` of one of which only is remembered who it was.
    pub fn at_work(&self) -> Reading<&Self> {
        match self.threads_unread {
            Some(why @ Why::NotKept) => Reading::Absent(why),
            _ => Reading::Value(self),
        }
    }

    /// A variable of its environment, where that was read. Hostile text.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let environment = self.environment.as_ref()?.value()?;
        environment.iter().find(|var| var.name == name).map(|var| var.value.as_str())
    }

    /// The notebook server that a kernel's environment names; not across PID namespaces.
    pub fn notebook_server(&self) -> Option<Pid> {
        let pid = self.variable("JPY_PARENT_PID")?.parse().ok().map(Pid)?;
        (self.namespace_pids.len() <= 1).then_some(pid)
    }
}

const fn no_pid() -> Pid {
    Pid(0)
}

/// The kernel's one-letter process states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcState {
    /// R
    Running,
    /// S, I
    Sleeping,
    /// D
    Uninterruptible,
    /// T
    Stopped,
    /// t
    Traced,
    /// Z
    Zombie,
    /// X
    Dead,
    /// Anything else.
    Other,
}

/// A container, as a cgroup path or a marker file names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    /// `docker`, `podman`, `containerd`, `crio`, `kubepods`, `lxc`, …
    pub runtime: String,
    /// Its id or name, as far as it is known.
    pub id: Option<String>,
}

/// Signal masks of `/proc/PID/status`, bit n−1 for signal n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Signals {
    /// Pending for the thread or the process.
    pub pending: u64,
    /// Ignored.
    pub ignored: u64,
    /// Caught by a handler.
    pub caught: u64,
}

/// Which NVIDIA devices a process has open, found by device number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NvidiaFds {
    /// `/dev/nvidiactl`.
    pub control: bool,
    /// `/dev/nvidia-uvm`: CUDA programs open it; since driver 580 monitors do, too.
    pub uvm: bool,
    /// Minor numbers of `/dev/nvidiaN`. CUDA opens every visible GPU: this does not say which one
    /// is used.
    pub minors: Vec<u32>,
    /// A render or card node of an NVIDIA GPU.
    pub drm: bool,
    /// How many such files.
    pub count: u32,
    /// Seen on a thread, because the first thread was already a zombie.
    pub via_thread: bool,
}

impl NvidiaFds {
    /// Whether any is open.
    pub const fn any(&self) -> bool {
        self.count > 0
    }
}

/// A variable of a process's environment. Only names on a fixed list are ever read into one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value, bounded when read. Hostile text.
    pub value: String,
}
