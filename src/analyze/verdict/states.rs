//! Classes that follow from the kernel's state of a process alone.

use super::{Case, against, finish, note, said};
use crate::analyze::scene::{is_defunct, is_exiting, is_zombie_leader};
use crate::analyze::{Class, Evidence, Verdict};
use crate::ids::Pid;
use crate::sample::{ProcSample, ProcState, Why};
use crate::units::age;

/// Two looks with a KILL pending lie this far apart before it counts, in milliseconds.
const KILL_IGNORED_MS: u64 = 5_000;
/// Looks in a row in state D, over this long, in milliseconds.
const STUCK_LOOKS: u32 = 3;
const STUCK_MS: u64 = 2_000;
/// With two looks only, as far apart as this and waiting in the same place, in milliseconds.
const STUCK_TWO_LOOKS_MS: u64 = 3_000;

/// The class of a process whose state says it all; `None` where more must be weighed.
pub fn judge(case: &Case<'_>, process: &ProcSample) -> Option<Verdict> {
    stuck(case, process)
        .or_else(|| defunct(case, process))
        .or_else(|| exiting(process))
        .or_else(|| stopped(case, process))
}

fn since(case: &Case<'_>, at_ms: u64) -> u64 {
    case.scene.now_ms.saturating_sub(at_ms)
}

fn stuck(case: &Case<'_>, process: &ProcSample) -> Option<Verdict> {
    let track = case.scene.track(process.id)?;
    let look_ms = case.scene.look.map_or(0, |look| look.at.boot_ms);
    let place = waits_in(process);
    let pending = look_ms.saturating_sub(track.kill_since_ms);
    if track.kill_looks >= 2 && pending >= KILL_IGNORED_MS {
        let text = format!("does not die of a KILL that was sent {} ago", age(pending));
        let mut evidence = vec![said("kill_pending", text), note("waits_in", place)];
        evidence.push(note("cure", cure(process).to_owned()));
        let since_ms = Some(since(case, track.kill_since_ms));
        return Some(Verdict { since_ms, ..finish(Class::Unkillable, evidence) });
    }
    let lasted = look_ms.saturating_sub(track.d_since_ms);
    let thrice = track.d_looks >= STUCK_LOOKS && lasted >= STUCK_MS && track.d_same_channel;
    let twice = track.d_looks == 2
        && track.looks == 2
        && lasted >= STUCK_TWO_LOOKS_MS
        && track.d_same_channel
        && process.wait_channel.is_some();
    let threads_only = is_zombie_leader(process) && process.threads > 1;
    if !(thrice || twice || threads_only) {
        return None;
    }
    let mut evidence = Vec::new();
    if threads_only {
        let text = format!("its first thread has ended, {} others hold on", process.threads - 1);
        evidence.push(said("threads_only", text));
    }
    if track.d_looks > 0 {
        let text =
            format!("waits without interruption in {} looks of {}", track.d_looks, age(lasted));
        evidence.push(said("state_d", text));
        evidence.push(note("waits_in", place));
        evidence.push(note("cure", cure(process).to_owned()));
    }
    let since_ms =
        Some(since(case, if track.d_looks > 0 { track.d_since_ms } else { track.state_since_ms }));
    Some(Verdict { since_ms, ..finish(Class::Stuck, evidence) })
}

/// That it is not known whether a thread of it hangs.
pub fn unread(process: &ProcSample) -> Option<Evidence> {
    let text = match process.in_d().why()? {
        Why::NotAsked => "not all of its threads were looked at: one may wait without interruption",
        _ => "its threads could not be looked at: one may wait without interruption",
    };
    Some(note("threads_unread", text.to_owned()))
}

fn waits_in(process: &ProcSample) -> String {
    match &process.wait_channel {
        Some(channel) => format!("waits in {channel}"),
        None if process.in_d().value().is_none() => {
            "which of its threads waits cannot be told".to_owned()
        }
        None => "what it waits in cannot be read without root".to_owned(),
    }
}

/// The least drastic cure for a wait that no signal ends.
pub fn cure(process: &ProcSample) -> &'static str {
    let Some(channel) = process.wait_channel.as_deref() else {
        return "no signal helps until the wait ends; as root, /proc/PID/stack says where it waits";
    };
    let starts = |names: &[&str]| names.iter().any(|name| channel.starts_with(name));
    if starts(&["request_wait_answer", "fuse"]) {
        "a FUSE mount does not answer: write 1 to /sys/fs/fuse/connections/N/abort, or unmount it \
         with fusermount -u; then it ends, no reboot is needed"
    } else if starts(&["rpc_", "nfs", "cifs"]) {
        "a network mount does not answer: bring its server back or unmount it with umount -f -l"
    } else if starts(&["os_acquire", "nv", "rm_", "uvm_", "_nv"]) {
        "it waits in the NVIDIA driver: no signal helps; start no new work on this GPU, let the \
         others finish, then reboot"
    } else {
        "no signal helps until the wait ends"
    }
}

fn defunct(case: &Case<'_>, process: &ProcSample) -> Option<Verdict> {
    if !is_defunct(process) {
        return None;
    }
    let text = format!("is dead and holds nothing; its parent {} does not reap it", process.parent);
    let mut evidence = vec![note("not_reaped", text)];
    evidence.extend(super::absent::kept_by(case));
    Some(finish(Class::Defunct, evidence))
}

fn exiting(process: &ProcSample) -> Option<Verdict> {
    is_exiting(process)
        .then(|| finish(Class::Exiting, vec![note("exiting", "is on its way out".to_owned())]))
}

fn stopped(case: &Case<'_>, process: &ProcSample) -> Option<Verdict> {
    let since_ms = case.scene.track(process.id).map(|t| since(case, t.state_since_ms));
    if process.tracer != Pid(0) || process.state == ProcState::Traced {
        let text = format!("is debugged by {}", process.tracer);
        return Some(finish(Class::Debugged, vec![against("debugger", text)]));
    }
    if process.state == ProcState::Stopped {
        let text = format!("stopped by a signal; kill -CONT {} resumes it", process.id.pid);
        let evidence = vec![note("stopped", text)];
        return Some(Verdict { since_ms, ..finish(Class::Suspended, evidence) });
    }
    process.frozen.then(|| {
        let text = "its cgroup is frozen: thaw or unpause it before it can act on any signal";
        Verdict { since_ms: None, ..finish(Class::Frozen, vec![note("frozen", text.to_owned())]) }
    })
}
