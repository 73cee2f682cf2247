//! How fast the driver answers, whether it stays loaded, and GPUs that sleep.

use super::{Patient, Said, gpus, limited, ok};
use crate::ids::GpuIndex;
use crate::sample::Reading;

/// A look that takes longer makes one a second impossible.
const SLOW_MS: u32 = 500;

pub(super) fn answer(patient: &Patient<'_>) -> Option<Said> {
    let cost = patient.view.driver_cost?;
    let found = format!("{} ms for {} calls of one look", cost.took_ms, cost.calls);
    if cost.took_ms <= SLOW_MS {
        return ok(found);
    }
    let off = patient.view.gpus.iter().any(|gpu| gpu.sample.persistence.get() == Some(false));
    let mend = if off {
        "without persistence the first program waits for the GPU to start: see below"
    } else {
        "look with --interval 5s, and at what loads the driver: vramlens triage"
    };
    limited(found, [mend])
}

/// Costs: <https://docs.nvidia.com/deploy/driver-persistence/>.
pub(super) fn persistence(patient: &Patient<'_>) -> Option<Said> {
    if patient.machine.host.wsl {
        return None;
    }
    let whole = || patient.view.gpus.iter().filter(|gpu| gpu.sample.mig.is_none());
    let with = |wanted: bool| -> Vec<GpuIndex> {
        whole()
            .filter(|gpu| gpu.sample.persistence.get() == Some(wanted))
            .map(|gpu| gpu.sample.index)
            .collect()
    };
    let daemon = patient.machine.persistence_daemon;
    let off = with(false);
    if !off.is_empty() {
        let found = format!(
            "off for {}: each first program waits 1 to 3 s for the GPU to start, and settings are \
             lost when the last one ends",
            gpus(&off)
        );
        let mend = if patient.runtime().is_some() {
            "on the host: sudo systemctl enable --now nvidia-persistenced"
        } else if daemon {
            "nvidia-persistenced runs without it: sudo nvidia-smi -pm 1"
        } else {
            "sudo systemctl enable --now nvidia-persistenced (or sudo nvidia-smi -pm 1)"
        };
        return limited(found, [mend]);
    }
    let on = with(true);
    if on.is_empty() {
        return daemon.then(|| ok("nvidia-persistenced runs")).flatten();
    }
    ok(format!(
        "on for {}: no wait for a first program; idle GPUs draw a little more power",
        gpus(&on)
    ))
}

pub(super) fn sleep(patient: &Patient<'_>) -> Option<Said> {
    let Reading::Value(seen) = &patient.machine.pci else { return None };
    let list = |sleeps: bool| -> Vec<&str> {
        let may = seen.iter().filter(|gpu| gpu.may_sleep && gpu.sleeps == sleeps);
        may.map(|gpu| gpu.address.as_str()).collect()
    };
    let asleep = list(true);
    if !asleep.is_empty() {
        return limited(
            format!("{} asleep: not asked, so that it is not woken", asleep.join(", ")),
            ["vramlens doctor --wake asks the driver all the same"],
        );
    }
    let awake = list(false);
    if awake.is_empty() {
        return None;
    }
    ok(format!(
        "{} awake and may sleep: vramlens lets go of it after a minute without use",
        awake.join(", ")
    ))
}
