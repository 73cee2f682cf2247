//! Why memory is used and nobody's: likely causes, the likeliest first.

use super::scene::Scene;
use super::{Cause, Class, Holder, Ledger};
use crate::ids::Pid;
use crate::sample::GpuSample;

/// The list itself is missing.
const UNLISTED: &str = "list_unreadable";
/// Names in a sentence; more are counted.
const NAMED: usize = 3;

/// The ranked causes for a GPU; none where what is unaccounted is within noise.
pub fn ranked(scene: &Scene<'_>, gpu: &GpuSample, ledger: &Ledger, here: &[&Holder]) -> Vec<Cause> {
    if !ledger.is_unattributed() {
        // Too little to look for, and still not all are counted.
        return incomplete(scene, gpu, here).into_iter().collect();
    }
    // Whose it is was not told: nothing else is likely. Below Windows it never is.
    if let Some(why) = gpu.unlisted()
        && windows(scene).is_none()
    {
        let text = format!("the driver's list of processes could not be read: {}", why.words());
        return vec![Cause { key: UNLISTED, pids: Vec::new(), text }];
    }
    let mut causes = Vec::new();
    causes.extend(windows(scene));
    causes.extend(survivors(here));
    causes.extend(hidden(scene, gpu, here));
    causes.extend(incomplete(scene, gpu, here));
    causes.extend(managed(here));
    causes.extend(display(here));
    causes.extend(unreadable(scene));
    causes.extend(other_namespace(scene, here));
    causes.push(driver(ledger));
    causes
}

fn cause(key: &'static str, holders: &[&Holder], text: String) -> Cause {
    let mut pids: Vec<Pid> = holders.iter().map(|holder| holder.pid).collect();
    pids.dedup();
    Cause { key, pids, text }
}

fn of<'a>(here: &[&'a Holder], fits: impl Fn(&Holder) -> bool) -> Vec<&'a Holder> {
    here.iter().copied().filter(|holder| fits(holder)).collect()
}

/// `41233 (python), 41240 (python) and 2 more`.
fn named(holders: &[&Holder]) -> String {
    let name = |holder: &&Holder| match &holder.process {
        Some(process) => format!("{} ({})", holder.pid, process.comm),
        None => holder.pid.to_string(),
    };
    let shown: Vec<_> = holders.iter().take(NAMED).map(name).collect();
    match holders.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Who stands only in a list that could not be read: whoever has the GPU open and is in no other may.
fn incomplete(scene: &Scene<'_>, gpu: &GpuSample, here: &[&Holder]) -> Option<Cause> {
    let (who, why) = scene.tick.unread_lists(gpu).missing()?;
    let maybe = of(here, is_unlisted);
    let perhaps = match maybe.as_slice() {
        [] => String::new(),
        _ => format!("; perhaps {}", named(&maybe)),
    };
    let text = format!("{who}, whose list could not be read ({why}){perhaps}");
    Some(cause("list_incomplete", &maybe, text))
}

/// Under Windows' driver neither the programs of Windows nor the bytes of processes are listed.
fn windows(scene: &Scene<'_>) -> Option<Cause> {
    let below = scene.look.is_some_and(|look| look.host.wsl);
    below.then(|| Cause {
        key: "windows",
        pids: Vec::new(),
        text: "used by Windows and others: cannot be told apart".to_owned(),
    })
}

/// Ghosts whose bytes are listed stand in the ledger; only the others can be missing from it.
fn survivors(here: &[&Holder]) -> Option<Cause> {
    let unsized_ghost =
        here.iter().any(|holder| !holder.survivors.is_empty() && holder.bytes.value().is_none());
    let kept = of(here, |holder| holder.verdict.class == Class::Survivor);
    (unsized_ghost && !kept.is_empty())
        .then(|| cause("survivors", &kept, format!("kept for a dead process by {}", named(&kept))))
}

fn is_unlisted(holder: &Holder) -> bool {
    !holder.listed && holder.verdict.class != Class::Survivor
}

fn may_be_listed(scene: &Scene<'_>, gpu: &GpuSample, holder: &Holder) -> bool {
    let process = holder.process.as_deref();
    process.is_some_and(|process| scene.may_be_listed_on(gpu, process).is_some())
}

fn hidden(scene: &Scene<'_>, gpu: &GpuSample, here: &[&Holder]) -> Option<Cause> {
    let hidden = of(here, |holder| is_unlisted(holder) && !may_be_listed(scene, gpu, holder));
    (!hidden.is_empty()).then(|| {
        let text = format!("held by {}, which the driver does not list", named(&hidden));
        cause("hidden_holders", &hidden, text)
    })
}

/// Managed memory belongs to the driver's own client and is in no process's figure.
fn managed(here: &[&Holder]) -> Option<Cause> {
    let cuda = of(here, |holder| {
        let uvm = |p: &crate::sample::ProcSample| p.devices.value().is_some_and(|fds| fds.uvm);
        holder.listed && holder.kinds.compute && holder.process.as_deref().is_some_and(uvm)
    });
    match cuda.as_slice() {
        [] => None,
        [_] => Some(cause("managed_memory", &cuda, format!("managed memory of {}", named(&cuda)))),
        _ => {
            let text = format!("managed memory of one of {}", named(&cuda));
            Some(cause("managed_memory", &cuda, text))
        }
    }
}

fn display(here: &[&Holder]) -> Option<Cause> {
    let drm = |p: &crate::sample::ProcSample| p.devices.value().is_some_and(|fds| fds.drm);
    let shown =
        of(here, |holder| holder.kinds.graphics || holder.process.as_deref().is_some_and(drm));
    (!shown.is_empty())
        .then(|| cause("display", &shown, format!("graphics memory of {}", named(&shown))))
}

fn unreadable(scene: &Scene<'_>) -> Option<Cause> {
    let look = scene.look.filter(|look| look.scan.unreadable > 0)?;
    let text = format!(
        "processes of other users that could not be looked at: {}; run with sudo to read them",
        look.scan.unreadable
    );
    Some(Cause { key: "unreadable", pids: Vec::new(), text })
}

fn other_namespace(scene: &Scene<'_>, here: &[&Holder]) -> Option<Cause> {
    let inside = scene.look.is_some_and(|look| look.host.host_pid_namespace.get() == Some(false));
    let strangers = of(here, |holder| holder.verdict.class == Class::OtherNamespace);
    (inside || !strangers.is_empty()).then(|| {
        let text = "processes outside of this container are not listed here: run it on the host";
        cause("other_namespace", &strangers, text.to_owned())
    })
}

fn driver(ledger: &Ledger) -> Cause {
    let text = if ledger.reserved_known {
        "memory of the driver itself"
    } else {
        "memory that driver and firmware reserve: this driver does not tell it apart"
    };
    Cause { key: "driver", pids: Vec::new(), text: text.to_owned() }
}
