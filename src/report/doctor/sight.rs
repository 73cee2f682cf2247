//! Whose processes can be seen and ended from here, and what can be said of them.

use super::driver::gpu_flag;
use super::{Fault, NOTHING, Patient, Said, limited, ok};
use crate::sample::{CAP_KILL, CAP_SYS_PTRACE, MemoryApi, Reading, Why};

pub(super) fn container(patient: &Patient<'_>) -> Option<Said> {
    let Some(runtime) = patient.runtime() else { return ok("none") };
    let found = format!("this runs inside a container ({runtime})");
    if patient.answered() {
        return ok(format!("{found}, with its GPUs"));
    }
    let mend =
        if patient.failed_by(Fault::NoLibrary) { gpu_flag(Some(runtime)) } else { Vec::new() };
    limited(found, mend)
}

pub(super) fn pid_namespace(patient: &Patient<'_>) -> Option<Said> {
    match patient.machine.host.host_pid_namespace {
        Reading::Value(true) => ok("that of the machine"),
        Reading::Value(false) => limited(
            "another than the machine's: processes outside hold memory and are not seen, so that it \
             counts as unaccounted",
            [pid_flag(patient.runtime())],
        ),
        Reading::Absent(why) => {
            limited(format!("cannot be told: {}", why.words()), ["mount /proc: see mount(8)"])
        }
    }
}

fn pid_flag(runtime: Option<&str>) -> &'static str {
    match runtime {
        Some("docker") => "docker run --pid=host …",
        Some("podman") => "podman run --pid=host …",
        Some("kubepods") => "hostPID: true in the pod's spec",
        Some("apptainer") => "apptainer exec without --pid and --containall",
        Some(_) | None => "run vramlens on the host",
    }
}

/// How a container is given a capability.
fn ptrace_flag(patient: &Patient<'_>) -> String {
    match patient.runtime() {
        Some("docker") => "docker run --cap-add=SYS_PTRACE …".to_owned(),
        Some("podman") => "podman run --cap-add=SYS_PTRACE …".to_owned(),
        Some("kubepods") => {
            "securityContext: { capabilities: { add: [SYS_PTRACE] } } in the pod's container"
                .to_owned()
        }
        Some(_) => "run vramlens on the host with sudo".to_owned(),
        None => "sudo vramlens".to_owned(),
    }
}

pub(super) fn hidepid(patient: &Patient<'_>) -> Option<Said> {
    match patient.machine.host.hidepid {
        Reading::Value(false) => ok("none: /proc shows every process"),
        Reading::Value(true) if sees_all(patient) => {
            ok("/proc is mounted with hidepid, which does not bind this user")
        }
        Reading::Value(true) => limited(
            "/proc is mounted with hidepid: processes of other users are invisible",
            ["sudo vramlens", "or sudo mount -o remount,hidepid=0 /proc"],
        ),
        Reading::Absent(why) => limited(format!("cannot be told: {}", why.words()), NOTHING),
    }
}

fn sees_all(patient: &Patient<'_>) -> bool {
    patient.machine.is_capable(CAP_SYS_PTRACE)
}

/// Reading another process's memory is what the fragmentation gauge needs; ptrace(2) has the
/// rules.
pub(super) fn ptrace(patient: &Patient<'_>) -> Option<Said> {
    let scope = patient.machine.host.ptrace_scope;
    let said = match scope {
        Reading::Value(scope) => format!("kernel.yama.ptrace_scope is {scope}"),
        Reading::Absent(Why::NotSupported) => "the kernel has no yama".to_owned(),
        Reading::Absent(why) => format!("its scope cannot be told: {}", why.words()),
    };
    let give = |patient| {
        let mut mend = vec![ptrace_flag(patient)];
        if patient.runtime().is_none() {
            mend.push(
                "or once: sudo setcap cap_sys_ptrace+ep \"$(command -v vramlens)\"".to_owned(),
            );
        }
        mend
    };
    if let Reading::Absent(why) = patient.machine.memory_call {
        return limited(
            format!("a sandbox keeps this program from process_vm_readv: {}", why.words()),
            ["run it outside of the sandbox, or allow the call in its seccomp profile"],
        );
    }
    match scope {
        Reading::Value(3..) => limited(
            format!("{said}: no process may be looked into until the next boot"),
            ["kernel.yama.ptrace_scope = 1 in /etc/sysctl.d, then reboot"],
        ),
        _ if sees_all(patient) => ok(format!("{said}; this user may look into every process")),
        Reading::Value(0) | Reading::Absent(Why::NotSupported) => {
            limited(format!("{said}: only your own processes may be looked into"), give(patient))
        }
        Reading::Value(_) | Reading::Absent(_) => {
            let mut mend = give(patient);
            mend.push(
                "or for your own processes: sudo sysctl kernel.yama.ptrace_scope=0".to_owned(),
            );
            limited(format!("{said}: not even your own processes may be looked into"), mend)
        }
    }
}

/// What of the classes cannot be told here.
pub(super) fn verdicts(patient: &Patient<'_>) -> Option<Said> {
    if !patient.answered() {
        return limited("none while the driver does not answer", NOTHING);
    }
    let (mut not, mut mend) = (Vec::new(), Vec::new());
    if patient.machine.host.host_pid_namespace == Reading::Value(false) {
        not.push("ghosts and holders outside this namespace".to_owned());
        mend.push(pid_flag(patient.runtime()).to_owned());
    }
    let unreadable = patient.view.scan.map_or(0, |scan| scan.unreadable);
    if unreadable > 0 {
        let all = patient.view.scan.map_or(0, |scan| scan.processes);
        not.push(format!(
            "survivors and hidden holders among {unreadable} of {all} processes, whose open files \
             cannot be read"
        ));
        mend.push(ptrace_flag(patient));
    }
    if not.is_empty() {
        return ok("all of them are possible");
    }
    limited(format!("not possible: {}", not.join("; ")), mend)
}

/// Figures that a screen has room for and that are not to be had here.
pub(super) fn gauges(patient: &Patient<'_>) -> Option<Said> {
    if !patient.answered() {
        return limited("none while the driver does not answer", NOTHING);
    }
    let (mut not, mut mend) = (Vec::new(), Vec::<String>::new());
    let own = matches!(
        patient.machine.host.ptrace_scope,
        Reading::Value(0) | Reading::Absent(Why::NotSupported)
    );
    let closed = matches!(patient.machine.host.ptrace_scope, Reading::Value(3..));
    let refused = patient.machine.memory_call.value().is_none();
    if refused || closed || !(own || sees_all(patient)) {
        not.push("fragmentation: see ptrace".to_owned());
    } else if !sees_all(patient) {
        not.push("fragmentation of other users' processes: see ptrace".to_owned());
    }
    let samples = || patient.view.gpus.iter().map(|gpu| &gpu.sample);
    let no_sm = samples().find_map(|gpu| gpu.process_utilization.why());
    if let Some(why) = no_sm {
        not.push(format!("use per process ({})", why.words()));
    }
    let old = samples().filter_map(|gpu| gpu.memory.get()).any(|m| m.api == MemoryApi::V1);
    if old {
        not.push("what the driver keeps for itself, which counts as used".to_owned());
        mend.push("a driver of R510 or newer tells it apart".to_owned());
    }
    let silent = |gpu: &crate::sample::GpuSample| {
        let processes = gpu.processes.value();
        processes.is_some_and(|all| all.iter().any(|process| process.used.get().is_none()))
    };
    if samples().any(silent) {
        not.push("bytes of some processes".to_owned());
    }
    if not.is_empty() {
        return ok("all of them are possible");
    }
    limited(format!("not here: {}", not.join("; ")), mend)
}

pub(super) fn signals(patient: &Patient<'_>) -> Option<Said> {
    if patient.machine.is_capable(CAP_KILL) {
        return ok("those of every user");
    }
    limited("only your own", ["sudo vramlens kill …"])
}
