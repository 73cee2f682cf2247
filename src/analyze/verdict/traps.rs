//! What looks like a leftover and is none: one rule per trap, in one table.

use std::sync::Arc;

use super::names::{self, Guard};
use super::signs::in_slurm_step;
use super::{Case, Link};
use crate::ids::Pid;
use crate::sample::{ProcKinds, ProcSample, Reading, Why};

/// Samples of zero use before a process may be called idle: the driver notes only who was at work
/// at each of its ticks, and bursts are missed.
pub const LEAST_ZEROS: u32 = 60;
/// A process younger than this may still be starting, in milliseconds.
const YOUNG_MS: u64 = 60_000;
/// Who keeps a dead one's memory has been unlisted for this long, in milliseconds; a process that
/// is only starting is listed by then.
const STARTS_WITHIN_MS: u64 = 3_000;
/// CPU use within this time counts as at work, in milliseconds.
pub const CPU_RECENT_MS: u64 = 60_000;

/// Whether a trap's rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// It does, and why.
    Yes(String),
    /// It does not.
    No,
    /// What it would take cannot be read.
    CannotTell(&'static str),
}

/// What a rule that applies prevents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It is no orphan, whatever the signs.
    NoOrphan,
    /// It is no orphan, unless it is a worker without its launcher.
    NoOrphanUnlessWorker,
    /// It is no orphan, unless it is a worker without its launcher or keeps a dead one's memory.
    NoOrphanUnlessLone,
    /// It may be an orphan, and is no zombie.
    NoZombie,
    /// The same, unless it is a worker without its launcher.
    NoZombieUnlessWorker,
    /// Nobody can call it idle.
    NotIdle,
    /// It is never a target without a typed word.
    Protects,
    /// Only said.
    Informs,
}

/// One trap.
pub struct Trap {
    /// Stable key, also of the evidence.
    pub key: &'static str,
    /// The rule in words.
    pub rule: &'static str,
    /// What it prevents.
    pub effect: Effect,
    /// The rule.
    pub(super) check: fn(&Case<'_>, &ProcSample) -> Held,
}

macro_rules! trap {
    ($key:literal, $effect:ident, $check:path, $rule:literal) => {
        Trap { key: $key, rule: $rule, effect: Effect::$effect, check: $check }
    };
}

/// Every trap.
pub const TRAPS: [Trap; 19] = [
    trap!("systemd_service", NoOrphan, systemd_service, "a system service belongs to its unit"),
    trap!("user_service", NoOrphan, user_service, "a user's service belongs to its unit"),
    trap!("detached", NoOrphanUnlessWorker, detached, "nohup and setsid make a wanted job"),
    trap!("multiplexer", NoOrphan, multiplexer, "a job in tmux or screen has its terminal"),
    trap!("subreaper", Informs, subreaper, "a parent that takes in orphans proves nothing"),
    trap!("container_main", NoOrphan, container_main, "a container's first process has no parent"),
    trap!(
        "container_child",
        NoOrphanUnlessLone,
        container_child,
        "a child of a container's first process is normal there"
    ),
    trap!("slurm_step", NoOrphan, slurm_step, "a Slurm step belongs to its job"),
    trap!("jupyter", NoOrphan, jupyter, "a notebook kernel with a live server is at most idle"),
    trap!("listening", NoZombieUnlessWorker, listening, "a server that listens waits for work"),
    trap!("busy_cpu", NoZombieUnlessWorker, busy_cpu, "it works on the CPU at present"),
    trap!("short_kernels", NotIdle, short_kernels, "short bursts of use are missed by samples"),
    trap!("unsampled", NotIdle, unsampled, "MIG and vGPU tell no use per process"),
    trap!("display", Protects, display, "it draws the screen"),
    trap!("monitor", Protects, monitor, "it watches or runs the driver"),
    trap!("mps", Protects, mps, "it shares the GPU among others"),
    trap!("debugger", Protects, debugger, "somebody debugs it"),
    trap!("young_or_ending", NoZombie, young_or_ending, "it is just starting or ending"),
    trap!("asleep", NotIdle, asleep, "a GPU that sleeps says nothing of its users"),
];

fn yes_if(applies: bool, text: impl FnOnce() -> String) -> Held {
    if applies { Held::Yes(text()) } else { Held::No }
}

/// The innermost cgroup, and whether it is under a user's own systemd.
fn unit(process: &ProcSample) -> Result<(&str, bool), Held> {
    match &process.cgroup {
        Reading::Value(path) => {
            let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("");
            Ok((last, path.contains("/user@")))
        }
        Reading::Absent(_) => Err(Held::CannotTell("its cgroup could not be read")),
    }
}

fn is_service(unit: &str) -> bool {
    unit.ends_with(".service") && !unit.starts_with("user@")
}

fn systemd_service(_: &Case<'_>, process: &ProcSample) -> Held {
    match unit(process) {
        Ok((unit, of_user)) => {
            yes_if(!of_user && is_service(unit), || format!("is part of {unit}"))
        }
        Err(held) => held,
    }
}

fn user_service(_: &Case<'_>, process: &ProcSample) -> Held {
    match unit(process) {
        Ok((unit, of_user)) => {
            yes_if(of_user && is_service(unit), || format!("is part of the user's {unit}"))
        }
        Err(held) => held,
    }
}

/// SIGHUP ignored is what `nohup` leaves behind; workers and other forks inherit it, so it proves
/// nothing of them.
fn detached(case: &Case<'_>, process: &ProcSample) -> Held {
    let leads = process.id.pid == process.group || process.id.pid == process.session;
    if leads && process.tty == 0 {
        return Held::Yes("leads its own group without a terminal: detached on purpose".to_owned());
    }
    if names::worker(process).is_some() || !case.keeps.is_empty() {
        return Held::No;
    }
    match process.signals {
        Some(signals) => yes_if(signals.ignored & 1 != 0, || {
            "ignores the hangup signal, as nohup makes it".to_owned()
        }),
        None if process.tty == 0 => Held::CannotTell("its signal masks could not be read"),
        None => Held::No,
    }
}

fn multiplexer(case: &Case<'_>, process: &ProcSample) -> Held {
    if process.tty == 0 {
        return Held::No;
    }
    let ancestors = case.scene.ancestors(process);
    if let Some(above) = ancestors.iter().find(|a| names::multiplexer(a)) {
        return Held::Yes(format!("runs in {}, pid {}", above.comm, above.id.pid));
    }
    let top = ancestors.last().map_or(process.parent, |top| top.parent);
    if top.0 > 1 { Held::CannotTell("its ancestors could not be followed") } else { Held::No }
}

fn subreaper(case: &Case<'_>, process: &ProcSample) -> Held {
    match case.scene.process(process.parent) {
        Some(parent) => yes_if(names::adopts(parent), || {
            format!("its parent {} takes in orphans, which alone proves nothing", parent.id.pid)
        }),
        None if process.parent == Pid(1) => {
            Held::Yes("its parent is 1, which alone proves nothing".to_owned())
        }
        None => Held::CannotTell("its parent could not be seen"),
    }
}

fn container_main(_: &Case<'_>, process: &ProcSample) -> Held {
    match process.namespace_pids.as_slice() {
        [] if process.container.is_some() => {
            Held::CannotTell("its pid inside of the container could not be read")
        }
        [_, .., Pid(1)] => Held::Yes("is the first process of its container".to_owned()),
        _ => Held::No,
    }
}

fn container_child(case: &Case<'_>, process: &ProcSample) -> Held {
    let here = case.scene.look.is_some_and(|look| look.host.container.is_some());
    if process.container.is_none() && process.namespace_pids.len() <= 1 && !here {
        return Held::No;
    }
    let text = || "its parent is the first process of its container".to_owned();
    match case.scene.process(process.parent) {
        Some(parent) => {
            let first = matches!(parent.namespace_pids.as_slice(), [_, .., Pid(1)]);
            yes_if(first || (here && parent.id.pid == Pid(1)), text)
        }
        None if here && process.parent == Pid(1) => Held::Yes(text()),
        None => Held::CannotTell("its parent in the container could not be seen"),
    }
}

fn slurm_step(case: &Case<'_>, process: &ProcSample) -> Held {
    let step = in_slurm_step(case.scene, process);
    if !step && process.slurm_job.is_some() && process.cgroup.value().is_none() {
        return Held::CannotTell("whether it is in its Slurm job's cgroup could not be read");
    }
    let job = process.slurm_job.as_deref().unwrap_or("of unknown number");
    yes_if(step, || format!("is a step of Slurm job {job}"))
}

fn jupyter(case: &Case<'_>, process: &ProcSample) -> Held {
    let kernel = names::mentions(process, "ipykernel") || names::mentions(process, "colab_kernel");
    let Some(server) = process.notebook_server() else {
        return if kernel {
            Held::CannotTell("which notebook server it belongs to could not be read")
        } else {
            Held::No
        };
    };
    match case.scene.exists(server) {
        Some(lives) => {
            yes_if(lives, || format!("is a notebook kernel of the live server {server}"))
        }
        None => Held::CannotTell("its notebook server cannot be seen from here"),
    }
}

/// It listens, or is the child of one that does in the same session. A listener further up is a
/// login service, not its server.
fn listening(case: &Case<'_>, process: &ProcSample) -> Held {
    if let Some(port) = process.listens.first() {
        return Held::Yes(format!("listens on port {port}"));
    }
    let near = |a: &&&Arc<ProcSample>| a.session == process.session || a.group == process.group;
    let ancestors = case.scene.ancestors(process);
    let server = ancestors.iter().filter(near).find(|a| !a.listens.is_empty());
    if let Some(server) = server {
        return Held::Yes(format!("its parent {} listens on a port", server.id.pid));
    }
    if process.devices.why() == Some(Why::NoPermission) {
        return Held::CannotTell("whether it listens could not be read");
    }
    Held::No
}

fn busy_cpu(case: &Case<'_>, process: &ProcSample) -> Held {
    let Some(track) = case.scene.track(process.id) else {
        return Held::CannotTell("its CPU use is not known yet");
    };
    let Some(at_ms) = track.cpu_busy_ms else {
        let known = process.cpu.value().is_some() && track.looks > 1;
        return if known { Held::No } else { Held::CannotTell("its CPU use is not known yet") };
    };
    let ago = case.scene.now_ms.saturating_sub(at_ms);
    yes_if(ago <= CPU_RECENT_MS, || {
        format!("worked on the CPU or wrote to disk {} ago", crate::units::age(ago))
    })
}

fn short_kernels(case: &Case<'_>, _: &ProcSample) -> Held {
    let Some(track) = case.track else { return Held::No };
    match track.usage.idle_ms(case.scene.now_ms) {
        Some(_) => yes_if(track.usage.zeros < LEAST_ZEROS, || {
            format!("samples of its use so far: {}, {LEAST_ZEROS} are needed", track.usage.zeros)
        }),
        None if track.usage.since_ms.is_none() => Held::CannotTell("its use was not sampled yet"),
        None => Held::No,
    }
}

fn unsampled(case: &Case<'_>, _: &ProcSample) -> Held {
    if case.gpu.mig.is_some() || case.gpu.mig_enabled.get() == Some(true) {
        return Held::Yes("runs in a MIG instance, where use per process is not told".to_owned());
    }
    match case.gpu.process_utilization {
        Reading::Value(()) => Held::No,
        Reading::Absent(Why::NotSupported) => {
            Held::Yes("this GPU does not tell use per process".to_owned())
        }
        Reading::Absent(_) => Held::CannotTell("use per process could not be read"),
    }
}

fn display(case: &Case<'_>, process: &ProcSample) -> Held {
    let drawn = case.row.is_some_and(|row| row.kinds.graphics);
    if drawn || names::guard(process) == Some(Guard::Display) {
        return Held::Yes(format!("draws on the screen ({})", process.comm));
    }
    match case.row {
        Some(row) if row.kinds == ProcKinds::default() => {
            Held::CannotTell("in which of the driver's lists it stands is not known")
        }
        _ => Held::No,
    }
}

fn monitor(_: &Case<'_>, process: &ProcSample) -> Held {
    match names::guard(process) {
        Some(Guard::Monitor) => Held::Yes(format!("{} watches or runs the driver", process.comm)),
        Some(Guard::System) => Held::Yes(format!("others live below {}", process.comm)),
        _ if process.comm.is_empty() => Held::CannotTell("its name could not be read"),
        _ => Held::No,
    }
}

fn mps(_: &Case<'_>, process: &ProcSample) -> Held {
    match names::guard(process) {
        Some(Guard::Mps) => Held::Yes("is the MPS server, which others compute through".to_owned()),
        _ if process.comm.is_empty() => Held::CannotTell("its name could not be read"),
        _ => Held::No,
    }
}

fn debugger(_: &Case<'_>, process: &ProcSample) -> Held {
    let traced = process.state == crate::sample::ProcState::Traced;
    if process.tracer != Pid(0) || traced {
        return Held::Yes(format!("is debugged by {}", process.tracer));
    }
    // Without its status neither the signal masks nor the tracer are known.
    if process.signals.is_none() && process.uid.value().is_none() {
        return Held::CannotTell("whether it is debugged could not be read");
    }
    Held::No
}

/// Who keeps a dead one's memory was forked earlier; only where that is not certain can it be a
/// newcomer that is not listed yet.
fn young_or_ending(case: &Case<'_>, process: &ProcSample) -> Held {
    if crate::analyze::scene::is_exiting(process) {
        return Held::Yes("is on its way out".to_owned());
    }
    let now_ms = case.scene.now_ms;
    if process.started_boot_ms == 0 || process.started_boot_ms > now_ms {
        return Held::CannotTell("when it started is not known");
    }
    let age = now_ms - process.started_boot_ms;
    let young = match case.keeps.iter().map(|keep| keep.1).max() {
        Some(Link::Certain) => false,
        Some(Link::Strong) => {
            let since = case.scene.track(process.id).and_then(|track| track.unlisted_since_ms);
            since.is_none_or(|since| now_ms.saturating_sub(since) < STARTS_WITHIN_MS)
        }
        None => age < YOUNG_MS,
    };
    yes_if(young, || format!("was started {} ago", crate::units::age(age)))
}

fn asleep(case: &Case<'_>, _: &ProcSample) -> Held {
    let reasons = [case.gpu.memory.why(), case.gpu.utilization.why(), case.gpu.processes.why()];
    if reasons.contains(&Some(Why::Asleep)) {
        return Held::Yes("the GPU sleeps; open files alone keep nothing awake".to_owned());
    }
    if reasons.iter().all(Option::is_some) {
        return Held::CannotTell("whether the GPU sleeps could not be read");
    }
    Held::No
}
