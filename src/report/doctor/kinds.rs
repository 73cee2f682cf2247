//! Kinds of machines on which some things are different: MIG, MPS, WSL2, unified memory.

use super::{Patient, Said, gpus, limited, ok};
use crate::analyze::GpuView;
use crate::ids::GpuIndex;
use crate::sample::Why;

fn numbers<'a>(found: impl Iterator<Item = &'a GpuView>) -> Vec<GpuIndex> {
    found.map(|gpu| gpu.sample.index).collect()
}

pub(super) fn mig(patient: &Patient<'_>) -> Option<Said> {
    let all = &patient.view.gpus;
    let split = numbers(all.iter().filter(|gpu| gpu.sample.mig_enabled.get() == Some(true)));
    if split.is_empty() {
        return None;
    }
    let instances = all.iter().filter(|gpu| gpu.sample.mig.is_some()).count();
    let found = format!("on for {}, instances: {instances}", gpus(&split));
    if instances == 0 {
        return limited(
            format!("{found}; no program can run there before one is made"),
            ["sudo nvidia-smi mig -cgi 0 -C makes one of the largest profile"],
        );
    }
    let denied = all.iter().any(|gpu| {
        gpu.sample.mig_enabled.get() == Some(true)
            && gpu.sample.processes.why() == Some(Why::NoPermission)
    });
    if denied {
        return limited(
            format!("{found}; who holds memory there is told to root only"),
            ["sudo vramlens"],
        );
    }
    ok(format!("{found}; the driver tells no use per process there"))
}

pub(super) fn mps(patient: &Patient<'_>) -> Option<Said> {
    if !patient.machine.mps {
        return None;
    }
    limited(
        "runs: its clients share the server's context, so that a fault in one can end them all",
        ["to end it in order: echo quit | nvidia-cuda-mps-control"],
    )
}

pub(super) fn wsl(patient: &Patient<'_>) -> Option<Said> {
    if !patient.machine.host.wsl {
        return None;
    }
    limited(
        "memory that programs of Windows hold is seen only as unaccounted, and the driver tells no \
         bytes per process",
        ["the Task Manager of Windows shows the rest: Details, column Dedicated GPU memory"],
    )
}

pub(super) fn unified(patient: &Patient<'_>) -> Option<Said> {
    let shared = numbers(patient.view.gpus.iter().filter(|gpu| {
        gpu.sample.mig_enabled.get() != Some(true)
            && gpu.sample.memory.why() == Some(Why::NotSupported)
    }));
    if shared.is_empty() {
        return None;
    }
    limited(
        format!(
            "{}: the driver tells no memory of its own; the ledger is that of the machine",
            gpus(&shared)
        ),
        ["what is left for both: grep MemAvailable /proc/meminfo"],
    )
}
