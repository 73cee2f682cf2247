//! Whom `vramlens kill` would end: the plan, or why there is none.

use crate::analyze::{KillPlan, View, plan, select, zombies};
use crate::cmd::hanging;
use crate::cmd::kill::Kill;
use crate::host::{Root, identify};
use crate::ids::{GpuIndex, Pid, ProcId};
use crate::report::device_names;
use crate::runtime::gather::Gathered;
use crate::sample::{KillPreset, Reading};

/// What to say where the driver has told of no GPU at all, so that nothing is known of any holder.
pub(super) fn silence(kill: &Kill, gathered: &Gathered, view: &View) -> Option<String> {
    let stall = gathered.stalled.as_ref().filter(|_| view.gpus.is_empty())?;
    let call = hanging(stall);
    if kill.pids.is_empty() {
        return Some(format!(
            "the driver does not answer{call}, so which holders are zombies cannot be told: nothing \
             was sent. `vramlens triage` shows who has its devices open"
        ));
    }
    let told: Vec<String> = kill.pids.iter().map(|pid| opened(Pid(*pid), view)).collect();
    let users = view.device_users.iter().map(|process| process.id.pid.0);
    let open: Vec<String> =
        users.filter(|pid| kill.pids.contains(pid)).map(|pid| pid.to_string()).collect();
    let hint = if open.is_empty() {
        String::new()
    } else {
        format!(". What that is, and whose: ps -o pid,user,lstart,args -p {}", open.join(","))
    };
    let asked: Vec<String> = kill.pids.iter().map(ToString::to_string).collect();
    Some(format!(
        "the driver does not answer{call}, so what ending {} would free cannot be told: nothing was \
         sent. {}{hint}",
        select::list(&asked),
        told.join("; ")
    ))
}

/// What `/proc` tells of a process's devices.
fn opened(pid: Pid, view: &View) -> String {
    let found = view.device_users.iter().find(|process| process.id.pid == pid);
    match found.and_then(|process| process.devices.value()) {
        Some(devices) => {
            format!("/proc shows that {pid} has {} open", select::list(&device_names(devices)))
        }
        None => match identify(&Root::machine(), pid) {
            Reading::Value(_) => format!("/proc shows no NVIDIA device that {pid} has open"),
            Reading::Absent(why) => format!("There is no process {pid} ({})", why.words()),
        },
    }
}

/// The plan, fixed before the first signal.
pub(super) fn planned(kill: &Kill, gathered: &Gathered, view: &View) -> Result<KillPlan, String> {
    if kill.pids.is_empty() {
        return Ok(zombies(view, None));
    }
    let root = Root::machine();
    let mut targets: Vec<ProcId> = Vec::new();
    for pid in &kill.pids {
        let pid = Pid(*pid);
        let held = view.holders.iter().filter(|holder| holder.pid == pid);
        let ids: Vec<ProcId> = held
            // A dead pid stands for those who keep its memory.
            .flat_map(|holder| holder.id.into_iter().chain(holder.survivors.iter().copied()))
            .collect();
        match (ids.is_empty(), identify(&root, pid)) {
            (false, _) => targets.extend(ids),
            (true, Reading::Value(_)) => return Err(holds_nothing(pid, gathered, view)),
            (true, Reading::Absent(why)) => {
                return Err(format!(
                    "there is no process {pid} ({}): nothing was sent",
                    why.words()
                ));
            }
        }
    }
    targets.sort_unstable();
    targets.dedup();
    Ok(plan(view, &targets, kill.now.then_some(KillPreset::Now)))
}

/// Why a process that lives is no target.
fn holds_nothing(pid: Pid, gathered: &Gathered, view: &View) -> String {
    if view.holders.iter().any(|holder| holder.pid == pid) {
        return format!(
            "the driver lists memory under {pid}, and that was another process of this number: who \
             keeps it was not found, and nothing was sent. `vramlens triage` says more"
        );
    }
    let elsewhere = gathered.elsewhere.iter().filter(|other| other.0 == pid);
    let mut elsewhere: Vec<GpuIndex> = elsewhere.map(|other| other.1).collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    if elsewhere.is_empty() {
        return format!(
            "{pid} holds no GPU memory and has no NVIDIA device open: nothing was sent. \
             `vramlens triage` lists who has"
        );
    }
    let numbers =
        |all: &[GpuIndex]| select::list(&all.iter().map(ToString::to_string).collect::<Vec<_>>());
    let mut asked: Vec<GpuIndex> = view.gpus.iter().map(|gpu| gpu.sample.index).collect();
    asked.dedup();
    format!(
        "{pid} is not on GPU {}; it is on GPU {}: nothing was sent. Leave --gpu out, or name that one",
        numbers(&asked),
        numbers(&elsewhere)
    )
}
