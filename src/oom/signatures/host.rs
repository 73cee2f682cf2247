//! Shortages of host memory that look like those of a GPU, and kills.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "host.oom_killed",
        "linux",
        Host,
        Unknown,
        ["Out of memory: Kill", "Memory cgroup out of memory"],
        "Out of memory: Kill⟦ed⟧ process",
        "the kernel killed a process for host memory"
    ),
    row!(
        "host.cgroup",
        "linux",
        Host,
        Unknown,
        ["Memory cgroup out of memory"],
        "Memory cgroup out of memory: Kill⟦ed⟧ process",
        "the kernel killed a process at the memory limit of its container or unit"
    ),
    row!(
        "host.invoked",
        "linux",
        Host,
        Unknown,
        ["invoked oom-killer"],
        "invoked oom-killer",
        "the kernel looked for a process to kill for host memory"
    ),
    row!(
        "host.reaper",
        "linux",
        Host,
        Unknown,
        ["oom_reaper"],
        "oom_reaper: reaped process",
        "the kernel killed a process for host memory"
    ),
    row!(
        "host.rss",
        "any",
        Detail,
        Unknown,
        ["anon-rss:"],
        "anon-rss:<hostrss:size>",
        "what the killed process had in RAM"
    ),
    row!(
        "host.oomd",
        "linux",
        Host,
        Unknown,
        ["due to memory pressure for"],
        "due to memory pressure for … being",
        "systemd-oomd ended a unit for host memory"
    ),
    row!(
        "host.earlyoom",
        "linux",
        Host,
        Unknown,
        ["badness "],
        "sending SIG … badness … VmRSS <hostrss:size>",
        "earlyoom ended a process for host memory"
    ),
    row!(
        "host.k8s",
        "kubernetes",
        Host,
        Unknown,
        ["OOMKilled"],
        "OOMKilled",
        "the container exceeded its limit of host memory"
    ),
    row!(
        "host.slurm",
        "slurm",
        Host,
        Unknown,
        ["oom_kill event", "oom-kill event"],
        "Detected … oom_kill event",
        "the job exceeded its request of host memory"
    ),
    row!(
        "host.slurm_dash",
        "slurm",
        Host,
        Unknown,
        ["oom-kill event"],
        "Detected … oom-kill event",
        "the job exceeded its request of host memory"
    ),
    row!(
        "host.slurm_state",
        "slurm",
        Host,
        Unknown,
        ["OUT_OF_ME"],
        "OUT_OF_ME",
        "the job exceeded its request of host memory"
    ),
    row!(
        "host.slurm_rss",
        "any",
        Detail,
        Unknown,
        ["MaxRSS"],
        "MaxRSS … 0:125 <hostrss:size>",
        "the most that the step had in RAM"
    ),
    row!(
        "host.exit_137",
        "none",
        Killed,
        Unknown,
        ["exit code 137"],
        "exit code 137",
        "killed with signal 9; without a limit or an out-of-memory event beside it this may have other reasons"
    ),
    row!(
        "host.exit_137_k8s",
        "none",
        Killed,
        Unknown,
        ["Exit Code:"],
        "Exit Code: 137",
        "killed with signal 9"
    ),
    row!(
        "host.exited_137",
        "none",
        Killed,
        Unknown,
        ["exited with code 137"],
        "exited with code 137",
        "killed with signal 9; without a limit or an out-of-memory event beside it this may have other reasons"
    ),
    row!(
        "host.exit_137_status",
        "none",
        Killed,
        Unknown,
        ["exit status 137"],
        "exit status 137",
        "killed with signal 9"
    ),
    row!(
        "host.exit_9",
        "none",
        Killed,
        Unknown,
        ["(exitcode: -9)", "(exit code: -9)"],
        "(exitcode: -9)",
        "a rank was killed with signal 9, most likely by the kernel for host memory"
    ),
    row!(
        "host.exit_9_cause",
        "pytorch",
        Killed,
        Unknown,
        ["exitcode  : -9"],
        "exitcode : -9 (pid",
        "a rank was killed with signal 9, most likely by the kernel for host memory"
    ),
    row!(
        "host.signal_9",
        "pytorch",
        Killed,
        Unknown,
        ["Signal 9 (SIGKILL) received"],
        "Signal 9 (SIGKILL) received by PID",
        "a rank was killed with signal 9, most likely by the kernel for host memory"
    ),
    row!(
        "host.deepspeed",
        "deepspeed",
        Killed,
        Unknown,
        ["exits with return code = -9"],
        "exits with return code = -9",
        "a rank was killed with signal 9, most likely by the kernel for host memory"
    ),
    row!(
        "host.return_9",
        "none",
        Killed,
        Unknown,
        ["died with"],
        "died with … SIGKILL: 9",
        "killed with signal 9"
    ),
    row!(
        "host.loader_killed",
        "pytorch",
        Host,
        Unknown,
        ["DataLoader worker"],
        "DataLoader worker (pid <x:int>) is killed by signal: Killed",
        "a worker that loads data was killed, by the kernel for host memory"
    ),
    row!(
        "host.loader_bus",
        "pytorch",
        Host,
        Unknown,
        ["is killed by signal: Bus error"],
        "is killed by signal: Bus error",
        "the shared memory of the container is full"
    ),
    row!(
        "host.loader_shm",
        "pytorch",
        Host,
        Unknown,
        ["bus error encountered in worker", "out of shared memory"],
        "Unexpected bus error encountered in worker",
        "the shared memory of the container is full"
    ),
    row!(
        "host.loader_exit",
        "pytorch",
        Killed,
        Unknown,
        ["exited unexpectedly"],
        "DataLoader worker (pid(s) … exited unexpectedly",
        "a worker that loads data died"
    ),
    row!(
        "host.shm_full",
        "pytorch",
        Host,
        Unknown,
        ["unable to write to file", "torch_shm_manager", "/dev/shm"],
        "unable to write to file",
        "the shared memory of the container is full"
    ),
    row!(
        "host.torch_cpu",
        "pytorch",
        Host,
        Unknown,
        ["DefaultCPUAllocator"],
        "DefaultCPUAllocator: ⟦can't allocate memory⟧⟦not enough memory⟧: you tried to allocate <hostreq:int> bytes",
        "PyTorch could not get host memory"
    ),
];

/// A shell's report of a kill: the word stands alone, or after a job's number.
pub(in crate::oom) static SHELL_KILLED: Signature = row!(
    "host.shell_killed",
    "none",
    Killed,
    Unknown,
    ["Killed"],
    "Killed",
    "killed with signal 9; without a limit or an out-of-memory event beside it this may have other reasons"
);
