//! What the machine shows of a driver that does not answer: library, device files, kernel modules.

use std::path::{Path, PathBuf};

use crate::host::root::Root;
use crate::sample::Absence;
use crate::sample::text::clean;

/// How the driver failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its library cannot be loaded.
    NoLibrary,
    /// Library and kernel module do not fit.
    Mismatch,
    /// It answers, and has no GPU.
    NoGpu,
    /// It may not be asked.
    NoPermission,
    /// Anything else.
    Other,
}

/// Looks at the machine below `root` after `failure`; `detail` is what the library's loader or the
/// driver said, `library` the name that was asked for.
pub fn look(root: &Path, failure: Failure, library: &str, detail: &str) -> Absence {
    let modules = Modules::read(root);
    let container = root.join(".dockerenv").exists() || root.join("run/.containerenv").exists();
    let wsl = super::facts::wsl(&Root::new(root));
    let gpus = pci_gpus(root);
    let rows = vec![
        ("driver library".to_owned(), library_row(failure, library, detail)),
        ("device files".to_owned(), device_row(root)),
        ("kernel module".to_owned(), modules.row()),
        ("PCI devices".to_owned(), pci_row(gpus)),
    ];
    let advice = advice(failure, &modules, container, wsl, gpus);
    Absence { headline: "No NVIDIA GPU can be read on this machine.".to_owned(), rows, advice }
}

pub(super) struct Modules {
    pub(super) nvidia: bool,
    pub(super) nouveau: bool,
    /// Whether the list could be read.
    pub(super) known: bool,
    pub(super) version: Option<String>,
}

impl Modules {
    pub(super) fn read(root: &Path) -> Self {
        let list = std::fs::read_to_string(root.join("proc/modules")).ok();
        let loaded = |name: &str| {
            list.iter().flat_map(|text| text.lines()).any(|l| l.split(' ').next() == Some(name))
                || root.join("sys/module").join(name).exists()
        };
        let version = std::fs::read_to_string(root.join("sys/module/nvidia/version")).ok();
        Self {
            nvidia: loaded("nvidia"),
            nouveau: loaded("nouveau"),
            known: list.is_some(),
            version: version.map(|text| clean(text.trim()).chars().take(32).collect()),
        }
    }

    fn row(&self) -> String {
        match (self.nvidia, self.nouveau, &self.version) {
            (true, _, Some(version)) => format!("nvidia {version} loaded"),
            (true, _, None) => "nvidia loaded".to_owned(),
            (false, true, _) => "nvidia not loaded (nouveau is)".to_owned(),
            (false, false, _) if self.known => "nvidia not loaded".to_owned(),
            _ => "cannot be told: /proc/modules is not readable".to_owned(),
        }
    }
}

fn library_row(failure: Failure, library: &str, detail: &str) -> String {
    let library = clean(library);
    let detail: String = clean(detail).chars().take(120).collect();
    match failure {
        Failure::NoLibrary if detail.contains("No such file") || detail.is_empty() => {
            format!("{library} not found")
        }
        Failure::Mismatch => format!("{library} is of another version than the kernel module"),
        Failure::NoGpu => format!("{library} answers and reports no GPU"),
        Failure::NoLibrary | Failure::NoPermission | Failure::Other => {
            format!("{library}: {detail}")
        }
    }
}

fn device_row(root: &Path) -> String {
    let dev = root.join("dev");
    let control = dev.join("nvidiactl").exists();
    let gpus = (0..32).filter(|n| dev.join(format!("nvidia{n}")).exists()).count();
    match (control, gpus) {
        (false, 0) => "/dev/nvidiactl missing".to_owned(),
        (false, n) => format!("/dev/nvidiactl missing, {n} of /dev/nvidiaN there"),
        (true, 0) => "/dev/nvidiactl there, no /dev/nvidiaN".to_owned(),
        (true, n) => format!("/dev/nvidiactl and {n} of /dev/nvidiaN there"),
    }
}

/// NVIDIA display controllers on the bus; `None` where the bus cannot be read.
fn pci_gpus(root: &Path) -> Option<usize> {
    gpu_folders(root).ok().map(|folders| folders.len())
}

/// Their folders below `/sys`.
pub(super) fn gpu_folders(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root.join("sys/bus/pci/devices"))?;
    let field = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).ok();
    let is_gpu = |path: &Path| {
        field(path, "vendor").is_some_and(|v| v.trim() == "0x10de")
            && field(path, "class").is_some_and(|class| class.starts_with("0x03"))
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| is_gpu(path)).collect())
}

fn pci_row(gpus: Option<usize>) -> String {
    match gpus {
        None => "cannot be read".to_owned(),
        Some(0) => "no NVIDIA GPU on the bus".to_owned(),
        Some(1) => "1 NVIDIA GPU on the bus".to_owned(),
        Some(n) => format!("{n} NVIDIA GPUs on the bus"),
    }
}

fn advice(
    failure: Failure,
    modules: &Modules,
    container: bool,
    wsl: bool,
    gpus: Option<usize>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |text: &str| lines.push(text.to_owned());
    if failure == Failure::Mismatch {
        say("reboot: the driver was upgraded while its old module is loaded.");
        say("Without a reboot: end all GPU programs, then `sudo rmmod nvidia_uvm nvidia_drm \
             nvidia_modeset nvidia` and `sudo modprobe nvidia`.");
    } else if wsl {
        say("install a Windows driver with WSL support, then `wsl --shutdown` once.");
    } else if container {
        say("start the container with its GPUs: `docker run --gpus all …`, and on the host \
             install the NVIDIA Container Toolkit.");
    } else if modules.nouveau && !modules.nvidia {
        say("install the driver package of your distribution, blacklist nouveau, then reboot.");
    } else if failure == Failure::NoPermission {
        say("ask for access to /dev/nvidia* (often the group `video` or `render`), or use sudo.");
    } else if modules.nvidia && failure == Failure::NoLibrary {
        say("install the driver's user part, the package that holds libnvidia-ml.so.1.");
    } else if modules.nvidia {
        say("look for `NVRM` in the kernel log (`sudo dmesg | grep NVRM`); reboot if it fell off.");
    } else if gpus == Some(0) {
        say("nothing, if this machine has no NVIDIA GPU. Run vramlens where one is: \
             `ssh gpubox vramlens triage`.");
    } else {
        say("install the driver package of your distribution, then reboot.");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn text(files: &[(&str, &str)], failure: Failure) -> String {
        look(machine(files).path(), failure, "libnvidia-ml.so.1", "").text()
    }

    #[test]
    fn a_bare_machine() {
        let text = text(&[("proc/modules", "")], Failure::NoLibrary);
        assert_eq!(
            text,
            "No NVIDIA GPU can be read on this machine.\n\n  \
             driver library   libnvidia-ml.so.1 not found\n  \
             device files     /dev/nvidiactl missing\n  \
             kernel module    nvidia not loaded\n  \
             PCI devices      cannot be read\n\n\
             What to do: install the driver package of your distribution, then reboot.\n"
        );
    }

    #[test]
    fn each_cause_has_its_own_advice() {
        let gpu = ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        let class = ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        let nouveau = ("proc/modules", "nouveau 1 0 - Live 0x0\n");
        let nvidia = ("proc/modules", "nvidia 1 0 - Live 0x0\n");
        let version = ("sys/module/nvidia/version", "580.159.04\n");
        let seen = text(&[gpu, class, nouveau], Failure::NoLibrary);
        assert!(seen.contains("(nouveau is)") && seen.contains("blacklist nouveau"), "{seen}");
        assert!(seen.contains("1 NVIDIA GPU on the bus"), "{seen}");
        let seen = text(&[nvidia, version], Failure::Mismatch);
        assert!(seen.contains("nvidia 580.159.04 loaded") && seen.contains("reboot:"), "{seen}");
        let seen = text(&[(".dockerenv", "")], Failure::NoLibrary);
        assert!(seen.contains("--gpus all"), "{seen}");
        let seen = text(&[("dev/dxg", "")], Failure::NoLibrary);
        assert!(seen.contains("wsl --shutdown"), "{seen}");
        let seen = text(&[nvidia], Failure::NoLibrary);
        assert!(seen.contains("libnvidia-ml.so.1"), "{seen}");
        let none = ("sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
        let seen = text(&[none, ("proc/modules", "")], Failure::NoLibrary);
        assert!(
            seen.contains("no NVIDIA GPU on the bus") && seen.contains("nothing, if"),
            "{seen}"
        );
    }
}
