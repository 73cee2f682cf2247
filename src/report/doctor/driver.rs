//! Driver, library, kernel module, device files, bus.

use super::{Answer, Fault, NOTHING, Patient, Said, broken, gpus, limited, ok};
use crate::analyze::Freshness;
use crate::ids::GpuIndex;
use crate::sample::{Access, DeviceFile, ModuleFacts, Reading};
use crate::units::age;

/// Unloads and loads the module anew: the order in which the parts depend on each other.
const RELOAD: &str =
    "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia";
const INSTALL: &str = "install the driver package of your distribution, then reboot";

pub(super) fn driver(patient: &Patient<'_>) -> Option<Said> {
    match patient.driver {
        Answer::Answered => {
            let driver = patient.view.driver.as_ref();
            let part = |name: &str, reading: Option<&Reading<String>>| match reading {
                Some(Reading::Value(text)) => format!("{name} {text}"),
                Some(Reading::Absent(why)) => format!("{name} unknown ({})", why.words()),
                None => format!("{name} unknown"),
            };
            let version = part("version", driver.map(|driver| &driver.version));
            let cuda = part("CUDA up to", driver.map(|driver| &driver.cuda));
            let whole = patient.view.gpus.iter().filter(|gpu| gpu.sample.mig.is_none()).count();
            ok(format!("{version}, {cuda}, GPUs: {whole}"))
        }
        Answer::Failed { error, absence, .. } => {
            // Steps may run over two lines of the page that they were written for.
            broken(error.clone(), [absence.advice.join(" ")])
        }
        Answer::Hung { call, gpu, for_ms } => {
            let call = call.as_deref().map_or_else(String::new, |call| format!(" in {call}"));
            let gpu = gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
            broken(
                format!("no answer{call}{gpu} for {}", age(*for_ms)),
                [
                    "sudo dmesg | grep -E 'NVRM|Xid'",
                    "ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /^D/' shows who waits in the kernel",
                    "a reboot mends it where nothing else does",
                ],
            )
        }
        Answer::NotAsked => limited(
            "not asked, since a GPU sleeps and asking would wake it",
            ["vramlens doctor --wake"],
        ),
    }
}

/// Whether library and kernel module are of one version.
pub(super) fn versions(patient: &Patient<'_>) -> Option<Said> {
    let module = patient.machine.module.as_ref();
    let loaded = module.and_then(|module| module.version.value());
    let mismatch = patient.failed_by(Fault::Mismatch);
    let files: Vec<&str> =
        patient.machine.libraries.iter().map(|file| file.version.as_str()).collect();
    let fits = loaded.is_some_and(|loaded| files.contains(&loaded.as_str()));
    if mismatch || (!patient.answered() && loaded.is_some() && !files.is_empty() && !fits) {
        let loaded = loaded.map_or("of another version", String::as_str);
        let library = if files.is_empty() { "another".to_owned() } else { files.join(", ") };
        let found = format!("the loaded kernel module is {loaded}, the library {library}");
        return broken(found, mend_mismatch(patient, module));
    }
    if files.len() > 1 {
        let all = files.join(", ");
        let found = format!("more than one library is installed: {all}; the loader takes one");
        return limited(found, ["remove the packages of the versions that are not in use"]);
    }
    let loaded = loaded?;
    if patient.answered() || fits {
        ok(format!("module and library are both {loaded}"))
    } else {
        None
    }
}

/// A reload is enough where nothing uses the module.
fn mend_mismatch(patient: &Patient<'_>, module: Option<&ModuleFacts>) -> Vec<String> {
    if patient.runtime().is_some() {
        return vec![
            "start the container anew: its library is mounted from the host when it starts"
                .to_owned(),
        ];
    }
    let Some(module) = module else { return vec!["reboot".to_owned()] };
    if module.display {
        return vec!["reboot: the display uses the module, so it cannot be loaded anew".to_owned()];
    }
    match module.users {
        Reading::Value(0) => vec![format!("nothing uses the module: {RELOAD}")],
        Reading::Value(_) | Reading::Absent(_) => vec![
            "reboot".to_owned(),
            format!(
                "or without: end all GPU programs, sudo systemctl stop nvidia-persistenced, {RELOAD}"
            ),
        ],
    }
}

pub(super) fn module(patient: &Patient<'_>) -> Option<Said> {
    let machine = patient.machine;
    if machine.host.wsl {
        return ok("not needed: the driver of Windows does its work");
    }
    match (&machine.module, machine.nouveau) {
        (Some(module), nouveau) => {
            let version = match &module.version {
                Reading::Value(version) => format!("nvidia {version} is loaded"),
                Reading::Absent(_) => "nvidia is loaded".to_owned(),
            };
            if nouveau {
                let found = format!("{version}, and nouveau is too: it may hold some of the GPUs");
                return limited(found, blacklist());
            }
            ok(version)
        }
        (None, true) => broken("nouveau is loaded in the place of nvidia", blacklist()),
        (None, false) if patient.is_there() => ok("not visible here; the driver is there"),
        (None, false) if !machine.modules_known => {
            limited("cannot be told: /proc/modules is not readable", NOTHING)
        }
        // A container has no modules of its own, and may load none.
        (None, false) if patient.runtime().is_some() => broken(
            "nvidia is not loaded",
            ["on the host: sudo modprobe nvidia, or install the driver there"],
        ),
        (None, false) => {
            broken("nvidia is not loaded", ["sudo modprobe nvidia", &format!("or {INSTALL}")])
        }
    }
}

fn blacklist() -> [&'static str; 2] {
    [
        "echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
        "rebuild the initial RAM disk (update-initramfs -u, or dracut --force), then reboot",
    ]
}

pub(super) fn library(patient: &Patient<'_>) -> Option<Said> {
    if let Some(driver) = &patient.view.driver {
        return match &driver.nvml {
            Reading::Value(version) => ok(format!("NVML {version}")),
            Reading::Absent(why) => {
                limited(format!("it does not tell its version: {}", why.words()), NOTHING)
            }
        };
    }
    match patient.machine.libraries.last() {
        None if !patient.failed_by(Fault::NoLibrary) => None,
        Some(file) if patient.failed_by(Fault::NoLibrary) => broken(
            format!("{} is there and cannot be loaded", file.path),
            ["sudo ldconfig; where that does not help, install the driver package anew"],
        ),
        Some(file) => ok(format!("{} is there", file.path)),
        None if patient.runtime().is_some() => {
            broken("libnvidia-ml.so is not in this container", gpu_flag(patient.runtime()))
        }
        None => broken("libnvidia-ml.so is in none of the usual folders", [INSTALL]),
    }
}

/// How a container is given its GPUs.
pub(super) fn gpu_flag(runtime: Option<&str>) -> Vec<String> {
    let line = match runtime.unwrap_or_default() {
        "podman" => "podman run --device nvidia.com/gpu=all …",
        "kubepods" => "resources: { limits: { nvidia.com/gpu: 1 } } in the pod's container",
        "apptainer" => "apptainer exec --nv …",
        "lxc" => "lxc config set NAME nvidia.runtime=true && lxc config device add NAME gpu gpu",
        _ => "docker run --gpus all …",
    };
    let on_host = "on the host, install the NVIDIA Container Toolkit";
    match runtime {
        Some("apptainer" | "lxc") => vec![line.to_owned()],
        _ => vec![line.to_owned(), on_host.to_owned()],
    }
}

pub(super) fn devices(patient: &Patient<'_>) -> Option<Said> {
    let machine = patient.machine;
    if machine.host.wsl {
        return ok("/dev/dxg is there, as WSL2 has it");
    }
    let with = |access: Access| -> Vec<&DeviceFile> {
        machine.devices.iter().filter(|file| file.access == access).collect()
    };
    let list = |files: &[&DeviceFile]| {
        let names: Vec<String> = files.iter().map(|file| format!("/dev/{}", file.name)).collect();
        names.join(", ")
    };
    let denied = with(Access::Denied);
    if let Some(first) = denied.first() {
        let mode = first.mode.map_or_else(String::new, |mode| format!(" (mode {mode:04o})"));
        return broken(format!("no permission for {}{mode}", list(&denied)), join_group(first));
    }
    let missing = with(Access::Missing);
    let gpus = machine.devices.iter().filter(|file| is_gpu(file)).count();
    let container = patient.runtime();
    if missing.iter().any(|file| file.name == "nvidiactl") {
        if patient.is_there() {
            return ok("not visible here; the driver is there");
        }
        let mend = match container {
            Some(_) => gpu_flag(container),
            None => vec!["sudo nvidia-modprobe".to_owned()],
        };
        return broken(format!("{} missing", list(&missing)), mend);
    }
    if gpus == 0 {
        let mend = match container {
            Some(_) => gpu_flag(container),
            None => vec!["sudo nvidia-modprobe -c 0".to_owned()],
        };
        return broken("/dev/nvidiactl is there, and no /dev/nvidiaN", mend);
    }
    if !missing.is_empty() {
        let found = format!("{} missing: CUDA programs fail without it", list(&missing));
        return limited(found, ["sudo nvidia-modprobe -u -c 0"]);
    }
    ok(format!("/dev/nvidiactl, /dev/nvidia-uvm and {gpus} of /dev/nvidiaN may be opened"))
}

fn is_gpu(file: &DeviceFile) -> bool {
    file.name.strip_prefix("nvidia").is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()))
}

/// The group of a file that its group may use; otherwise only root helps.
fn join_group(file: &DeviceFile) -> Vec<String> {
    match (file.mode, file.group) {
        (Some(mode), Some(group)) if mode & 0o060 == 0o060 && group != 0 => vec![
            format!("sudo usermod -aG \"$(getent group {group} | cut -d: -f1)\" \"$USER\""),
            "then log in anew".to_owned(),
        ],
        _ => vec!["sudo vramlens".to_owned(), "or sudo chmod 666 /dev/nvidia*".to_owned()],
    }
}

pub(super) fn pci(patient: &Patient<'_>) -> Option<Said> {
    let seen = match &patient.machine.pci {
        Reading::Value(gpus) => gpus,
        Reading::Absent(_) if patient.is_there() => return None,
        Reading::Absent(why) => {
            return limited(format!("the bus cannot be read: {}", why.words()), NOTHING);
        }
    };
    let elsewhere: Vec<String> = seen
        .iter()
        .filter_map(|gpu| Some((gpu, gpu.driver.as_deref()?)))
        .filter(|(_, driver)| *driver != "nvidia")
        .map(|(gpu, driver)| format!("{} ({driver})", gpu.address))
        .collect();
    if !elsewhere.is_empty() {
        let found =
            format!("{} on the bus; another driver has {}", seen.len(), elsewhere.join(", "));
        let mend = ["a GPU that vfio-pci has belongs to a virtual machine: look there"];
        return limited(found, mend);
    }
    match seen.len() {
        0 if patient.is_there() || patient.machine.host.wsl => None,
        0 => broken("no NVIDIA GPU on the bus", ["run vramlens where one is: ssh gpubox vramlens"]),
        n => ok(n.to_string()),
    }
}

pub(super) fn lost(patient: &Patient<'_>) -> Option<Said> {
    let lost: Vec<GpuIndex> = patient
        .view
        .gpus
        .iter()
        .filter(|gpu| gpu.freshness == Freshness::Lost)
        .map(|gpu| gpu.sample.index)
        .collect();
    let first = lost.first()?;
    broken(
        format!("{} fell off the bus", gpus(&lost)),
        [
            "sudo dmesg | grep Xid".to_owned(),
            format!("sudo nvidia-smi --gpu-reset -i {first}, after its programs have ended"),
            "reboot where the reset fails".to_owned(),
        ],
    )
}
