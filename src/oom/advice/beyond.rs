//! What helps and is none of the nine fixes.

use super::{Advice, fill, noted};
use crate::oom::clues::Mark;
use crate::oom::diagnose::{Diagnosis, Finding};
use crate::oom::judge::Case;
use crate::oom::numbers::Numbers;

/// Keys of messages, title, line, cost.
type Row = (&'static [&'static str], &'static str, &'static str, &'static str);

static HOST: &[Row] = &[
    (
        &["host.loader_bus", "host.loader_shm", "host.shm_full", "nccl.shm", "nccl.shm_segment"],
        "Give the container more shared memory",
        "docker run --shm-size={shm}g ...   (or --ipc=host; or fewer num_workers)",
        "none",
    ),
    (
        &["host.paging_file", "host.winerror", "host.oserror"],
        "Enlarge the paging file",
        "SystemPropertiesPerformance.exe   (Advanced, Virtual memory: system managed, or larger than now)",
        "disk space",
    ),
    (
        &["host.k8s"],
        "Raise the container's memory limit",
        "resources.limits.memory: {pod}Gi   (host RAM, not nvidia.com/gpu)",
        "host RAM",
    ),
    (
        &["host.slurm", "host.slurm_dash", "host.slurm_state"],
        "Ask for more host memory",
        "#SBATCH --mem={slurm}G   (or more: what the job had was not enough)",
        "host RAM",
    ),
    (
        &["host.loader_killed", "host.loader_exit"],
        "Fewer or lighter data workers",
        "DataLoader(..., num_workers={workers})",
        "slower loading",
    ),
    (
        &["host.exit_137", "host.exited_137", "host.exit_137_k8s", "host.shell_killed"],
        "See who sent signal 9",
        "sudo dmesg -T | grep -i -A1 'killed process'   (nothing there: a time limit or a person)",
        "none",
    ),
];

static OTHER: &[Row] = &[
    (
        &["other.assert", "other.assertion"],
        "Find the index that is out of range",
        "CUDA_LAUNCH_BLOCKING=1 python ...   (labels < classes? token ids < vocabulary?)",
        "a slower run",
    ),
    (
        &["vllm.profiling"],
        "Start it again",
        "vllm serve ...   (while nobody else starts or stops on the device)",
        "none",
    ),
    (&["other.disk"], "Free the disk", "df -h; du -xh --max-depth=2 | sort -h | tail", "none"),
    (
        &["other.library", "other.shared_object", "other.driver_old", "other.driver_too_old"],
        "Make driver and libraries match",
        "nvidia-smi; python -c 'import torch; print(torch.version.cuda)'",
        "none",
    ),
    (
        &["triton.resources"],
        "Make the kernel's blocks smaller",
        "smaller BLOCK_* sizes or num_stages in the kernel's configuration",
        "speed of that kernel",
    ),
];

static ANY_HOST: Row = (
    &[],
    "Need less host RAM, or have more",
    "load less at once, offload less to the host, more RAM or swap",
    "time",
);

static HF_HOST: Row = (
    &[],
    "Need less host RAM, or have more",
    "load shards one by one (low_cpu_mem_usage=True), less offloading, more RAM or swap",
    "time",
);

static CACHING: Row = (&[], "Turn caching on again", super::running::CACHE_AGAIN, "none");

/// The row that fits.
pub(super) fn beyond(case: &Case, n: &Numbers, finding: &Finding) -> Option<Advice> {
    let id = case.event()?.signature.id;
    let host = finding.diagnosis == Diagnosis::HostRamNotVram;
    let found = |table: &'static [Row]| table.iter().find(|(ids, ..)| ids.contains(&id));
    let filled = |row: &Row| Some((row.1, fill::filled(row.2, case, n)?, row.3));
    let (title, line, cost) = if host {
        let row = if case.has(Mark::HfModel) { &HF_HOST } else { &ANY_HOST };
        let any = (case.software != "ollama").then_some(row);
        found(HOST).and_then(filled).or_else(|| any.and_then(filled))?
    } else {
        found(OTHER).or_else(|| case.has(Mark::NoCaching).then_some(&CACHING)).and_then(filled)?
    };
    let (line, note) = noted(&line);
    Some(Advice { fix: 0, title, saves_bytes: None, saves: None, enough: None, line, note, cost })
}
