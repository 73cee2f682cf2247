//! Rows whose process the kernel does not know, or that somebody else's pid stands in.

use super::{Case, Link, against, finish, note, said};
use crate::analyze::{Class, Evidence, Verdict};
use crate::ids::ProcId;
use crate::units::age;

/// A process that was seen alive within this time is on its way out, in milliseconds.
const JUST_ENDED_MS: u64 = 5_000;

/// Not looked at since it is listed.
pub fn not_looked(case: &Case<'_>) -> Verdict {
    let text = match case.scene.look {
        None => "the processes have not been looked at yet",
        Some(_) => "it was listed after the last look at the processes",
    };
    finish(Class::Unknown, vec![note("not_looked", text.to_owned())])
}

/// Listed, and unknown to the kernel.
pub fn gone(case: &Case<'_>) -> Verdict {
    let host = case.scene.look.map(|look| &look.host);
    if host.is_some_and(|host| host.hidepid.get() == Some(true) && host.euid != 0) {
        let text = "not to be seen: /proc hides the processes of other users".to_owned();
        return finish(Class::OtherUser, vec![against("hidden_by_proc", text)]);
    }
    let inside = host.is_some_and(|host| host.host_pid_namespace.get() == Some(false) || host.wsl);
    if inside && case.scene.strangers {
        return other_namespace();
    }
    let ended = ended_ms(case);
    if let Some(ms) = ended.filter(|ms| *ms < JUST_ENDED_MS) {
        let text = format!("was alive {} ago: the driver may be taking it down", age(ms));
        return finish(Class::Exiting, vec![note("just_ended", text)]);
    }
    let unknown = format!("the kernel knows no process {}", case.pid);
    let mut evidence = vec![said("unknown_to_kernel", unknown)];
    if let Some(ms) = ended {
        evidence.push(note("ended", format!("it was last seen alive {} ago", age(ms))));
    }
    if !case.survivors.is_empty() {
        evidence.extend(kept_by(case));
    } else if inside {
        return other_namespace();
    } else {
        evidence.push(nobody(case));
    }
    Verdict { since_ms: ended, ..finish(Class::Ghost, evidence) }
}

/// Somebody else has the pid now.
pub fn reused(case: &Case<'_>) -> Verdict {
    let who = case.process.map_or("another process", |process| process.comm.as_str());
    let text =
        format!("{} is {who} now, which has no NVIDIA device open: never a target", case.pid);
    let mut evidence = vec![against("pid_reused", text)];
    evidence.extend(kept_by(case));
    finish(Class::Reused, evidence)
}

/// Who keeps the memory of a dead process, one fact each.
pub fn kept_by(case: &Case<'_>) -> Vec<Evidence> {
    let name = |id: &ProcId| {
        let comm = case.scene.process(id.pid).map_or("", |process| process.comm.as_str());
        format!("{} ({comm})", id.pid)
    };
    let text = |(id, link): &(ProcId, Link)| match link {
        Link::Certain => format!("its memory is kept by {}, of its own family", name(id)),
        Link::Strong => format!("its memory is kept by {}, as far as can be seen", name(id)),
    };
    case.survivors.iter().map(|survivor| said("kept_by", text(survivor))).collect()
}

/// How long ago a dead row's process was last seen alive; `None` where it never was.
pub fn ended_ms(case: &Case<'_>) -> Option<u64> {
    let seen = case.track.and_then(|track| track.alive_ms)?;
    Some(case.scene.now_ms.saturating_sub(seen))
}

/// Whether a process that was seen alive a moment ago is what this one keeps the memory of.
pub fn owner_just_ended(case: &Case<'_>) -> bool {
    let ended = |dead: &crate::ids::Pid| {
        let track = case.scene.history.holder(&case.gpu.uuid, *dead)?;
        Some(case.scene.now_ms.saturating_sub(track.alive_ms?))
    };
    case.keeps.iter().any(|(dead, _)| ended(dead).is_some_and(|ms| ms < JUST_ENDED_MS))
}

fn other_namespace() -> Verdict {
    let text = "not to be found here: it lives outside of this container or machine".to_owned();
    finish(Class::OtherNamespace, vec![against("other_namespace", text)])
}

fn nobody(case: &Case<'_>) -> Evidence {
    let unreadable = case.scene.look.map_or(0, |look| look.scan.unreadable);
    if unreadable > 0 && case.scene.euid() != Some(0) {
        let text = format!(
            "who keeps its memory was not found; {unreadable} processes of other users could not \
             be looked at: run with sudo"
        );
        return note("keeper_unseen", text);
    }
    let text = "nobody has its devices open: it waits in the driver, or is elsewhere";
    note("keeper_not_found", text.to_owned())
}
