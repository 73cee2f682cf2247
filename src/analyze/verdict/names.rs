//! Processes known by name: workers and who launches them, and those that are never a target
//! without a typed word. Names are the kernel's 15 bytes, so prefixes.

use crate::sample::{ProcSample, Reading};

/// A kind of worker that is of no use without its launcher.
pub struct WorkerKind {
    /// What it is called in a sentence.
    pub title: &'static str,
    /// Who launches it, in a sentence.
    pub launcher: &'static str,
    /// Whether a process is one.
    pub is: fn(&ProcSample) -> bool,
    /// Whether a process may have launched one.
    pub launches: fn(&ProcSample) -> bool,
}

/// All of them.
pub const WORKERS: [WorkerKind; 8] = [
    WorkerKind {
        title: "a vLLM worker",
        launcher: "vLLM server",
        is: |p| titled(p, "VLLM::"),
        launches: |p| python(p) || mentions(p, "vllm"),
    },
    WorkerKind {
        title: "an SGLang worker",
        launcher: "SGLang server",
        is: |p| titled(p, "sglang::"),
        launches: |p| python(p) || mentions(p, "sglang"),
    },
    WorkerKind {
        title: "a Ray worker",
        launcher: "raylet",
        is: |p| titled(p, "ray::"),
        launches: |p| p.comm.starts_with("raylet"),
    },
    WorkerKind {
        title: "a DataLoader worker",
        launcher: "training process",
        is: |p| titled(p, "pt_data_worker"),
        launches: python,
    },
    WorkerKind {
        title: "a multiprocessing worker",
        launcher: "Python parent",
        is: |p| {
            ["multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_t"]
                .iter()
                .any(|module| mentions(p, module))
        },
        launches: python,
    },
    WorkerKind {
        title: "an Ollama runner",
        launcher: "Ollama server",
        is: |p| {
            let arguments = arguments(p);
            program(p) == "ollama" && arguments.get(1).is_some_and(|a| a == "runner")
        },
        launches: |p| program(p) == "ollama" || p.comm == "ollama",
    },
    WorkerKind {
        title: "a torch compile worker",
        launcher: "training process",
        is: |p| mentions(p, "compile_worker"),
        launches: python,
    },
    WorkerKind {
        title: "a torchrun rank",
        launcher: "torchrun agent",
        is: |p| p.variable("TORCHELASTIC_RUN_ID").is_some(),
        launches: |p| python(p) || mentions(p, "torchrun") || mentions(p, "accelerate"),
    },
];

/// The kind of worker that a process is.
pub fn worker(process: &ProcSample) -> Option<&'static WorkerKind> {
    WORKERS.iter().find(|kind| (kind.is)(process))
}

/// Why a process is never a target without a typed word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It shows the screen.
    Display,
    /// It watches or runs the driver.
    Monitor,
    /// It shares the GPU among others.
    Mps,
    /// Others live below it.
    System,
}

const GUARDED: [(&str, Guard); 56] = [
    ("Xorg", Guard::Display),
    ("Xwayland", Guard::Display),
    ("gnome-shell", Guard::Display),
    ("kwin", Guard::Display),
    ("plasmashell", Guard::Display),
    ("sway", Guard::Display),
    ("Hyprland", Guard::Display),
    ("gdm", Guard::Display),
    ("sddm", Guard::Display),
    ("lightdm", Guard::Display),
    ("weston", Guard::Display),
    ("cinnamon", Guard::Display),
    ("mutter", Guard::Display),
    ("nvidia-persiste", Guard::Monitor),
    ("nv-hostengine", Guard::Monitor),
    ("dcgm", Guard::Monitor),
    ("nv-fabricmanage", Guard::Monitor),
    ("nvidia-imex", Guard::Monitor),
    ("nvsm", Guard::Monitor),
    ("nvtop", Guard::Monitor),
    ("nvitop", Guard::Monitor),
    ("gpustat", Guard::Monitor),
    ("nvidia-smi", Guard::Monitor),
    ("nvidia-device-p", Guard::Monitor),
    ("netdata", Guard::Monitor),
    ("vramlens", Guard::Monitor),
    ("nvidia-cuda-mps", Guard::Mps),
    ("systemd", Guard::System),
    ("(sd-pam)", Guard::System),
    ("dbus-", Guard::System),
    ("sshd", Guard::System),
    ("login", Guard::System),
    ("agetty", Guard::System),
    ("tmux", Guard::System),
    ("SCREEN", Guard::System),
    ("screen", Guard::System),
    ("dockerd", Guard::System),
    ("docker-proxy", Guard::System),
    ("containerd", Guard::System),
    ("conmon", Guard::System),
    ("crio", Guard::System),
    ("runc", Guard::System),
    ("kubelet", Guard::System),
    ("slurmd", Guard::System),
    ("slurmstepd", Guard::System),
    ("raylet", Guard::System),
    ("jupyterhub", Guard::System),
    ("jupyter-server", Guard::System),
    ("jupyter-lab", Guard::System),
    ("jupyter-noteboo", Guard::System),
    ("tini", Guard::System),
    ("dumb-init", Guard::System),
    ("qemu", Guard::System),
    ("cuda-checkpoint", Guard::System),
    ("criu", Guard::System),
    ("init", Guard::System),
];

/// Whether a process is guarded by its name, and as what.
pub fn guard(process: &ProcSample) -> Option<Guard> {
    // Short names that are also beginnings of others count only when whole.
    let fits = |name: &str| match name {
        "init" | "login" | "screen" | "tini" => process.comm == name,
        _ => process.comm.starts_with(name),
    };
    if process.comm == "X" {
        return Some(Guard::Display);
    }
    GUARDED.iter().find(|row| fits(row.0)).map(|row| row.1)
}

/// Whether a process shows the screen, or draws its windows.
pub fn shows_screen(process: &ProcSample) -> bool {
    guard(process) == Some(Guard::Display)
}

/// Whether a process takes in orphans: a parent of this kind says nothing about a child.
pub fn adopts(process: &ProcSample) -> bool {
    const NAMES: [&str; 10] = [
        "systemd",
        "init",
        "tini",
        "dumb-init",
        "containerd-shim",
        "conmon",
        "slurmstepd",
        "s6-svscan",
        "runsvdir",
        "docker-init",
    ];
    process.id.pid.0 == 1 || NAMES.iter().any(|name| process.comm.starts_with(name))
}

/// Whether a process is a terminal multiplexer.
pub fn multiplexer(process: &ProcSample) -> bool {
    ["tmux", "SCREEN", "screen", "zellij"].iter().any(|name| process.comm.starts_with(name))
}

/// The arguments, where they could be read.
pub fn arguments(process: &ProcSample) -> &[String] {
    match &process.cmdline {
        Reading::Value(arguments) => arguments,
        Reading::Absent(_) => &[],
    }
}

/// The base name of the program.
pub fn program(process: &ProcSample) -> &str {
    let path = arguments(process).first().map_or(process.comm.as_str(), String::as_str);
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether Python runs it. torch renames the main thread to `pt_main_thread`.
pub fn python(process: &ProcSample) -> bool {
    process.comm.starts_with("python")
        || process.comm.starts_with("pt_main_thread")
        || program(process).starts_with("python")
}

/// Whether an argument holds the text.
pub fn mentions(process: &ProcSample, text: &str) -> bool {
    process.comm.contains(text) || arguments(process).iter().any(|argument| argument.contains(text))
}

/// Whether its title, which programs set, begins so.
fn titled(process: &ProcSample, text: &str) -> bool {
    process.comm.starts_with(text)
        || arguments(process).first().is_some_and(|title| title.starts_with(text))
}
