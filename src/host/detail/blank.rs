//! What is known of a process before anything but `stat` was read.

use crate::host::stat::Stat;
use crate::ids::Pid;
use crate::sample::{ProcSample, Reading, Why};

/// Everything that was not asked for yet says so.
pub(super) fn blank(stat: &Stat, started_boot_ms: u64) -> ProcSample {
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
        threads_unread: Some(Why::NotAsked),
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
