//! What the machine shows before the driver is asked: modules, library files, device files, power,
//! rights. Nothing here opens a device, so that a GPU that sleeps goes on sleeping.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::Access as Mode;

use crate::allocator::memory::{Memory, ProcessMemory};
use crate::host::absence::{Modules, gpu_folders};
use crate::host::facts;
use crate::host::root::{self, Root};
use crate::ids::Pid;
use crate::sample::{
    Access, DeviceFile, LibraryFile, MachineFacts, ModuleFacts, PciGpu, Reading, Why,
};

/// Folders in which distributions, containers and WSL keep the library.
const LIBRARY_FOLDERS: [&str; 7] = [
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "usr/local/nvidia/lib64",
    "run/opengl-driver/lib",
];
const LIBRARY: &str = "libnvidia-ml.so.";
/// Device files of GPUs are numbered up to 31 on any machine that was seen.
const MOST_GPUS: u32 = 32;
/// Processes that are asked for their names at the most.
const MOST_PROCESSES: usize = 1 << 16;

/// Reads them all; each may fail alone. It reads `/proc` and `/sys`, which can hang: it belongs on
/// a thread of its own.
pub fn read(root: &Root) -> MachineFacts {
    let base = root.path("");
    let modules = Modules::read(&base);
    let names = process_names(root);
    let runs = |name: &str| names.iter().any(|other| other == name);
    MachineFacts {
        host: facts::read(root),
        modules_known: modules.known,
        module: modules.nvidia.then(|| module(root, &modules)),
        nouveau: modules.nouveau,
        libraries: libraries(root),
        devices: devices(root),
        pci: pci(&base),
        capabilities: capabilities(root),
        memory_call: memory_call(),
        // The kernel keeps 15 bytes of a name.
        persistence_daemon: runs("nvidia-persiste"),
        mps: runs("nvidia-cuda-mps"),
    }
}

fn module(root: &Root, modules: &Modules) -> ModuleFacts {
    let list = root::text(&root.path("proc/modules"), 1 << 20);
    let row = |name: &str| {
        let list = list.as_ref().map_err(|why| *why)?;
        let line = list.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(module_users).ok_or(Why::Nonsense)
    };
    let version = modules.version.clone().or_else(|| {
        let text = root::text(&root.path("proc/driver/nvidia/version"), 4096).ok()?;
        version_in(&text)
    });
    let version = version.filter(|version| !version.is_empty());
    ModuleFacts {
        version: version.map_or(Reading::Absent(Why::NotSupported), Reading::Value),
        users: row("nvidia").into(),
        display: ["nvidia_drm", "nvidia_modeset"]
            .iter()
            .any(|name| row(name).is_ok_and(|users| users > 0)),
    }
}

/// Users of a module that are no modules: `NAME SIZE COUNT USER,USER, …` counts both.
fn module_users(line: &str) -> Option<u32> {
    let mut words = line.split(' ').skip(2);
    let count: u32 = words.next()?.parse().ok()?;
    let modules = words.next()?.split(',').filter(|name| !matches!(*name, "" | "-")).count();
    Some(count.saturating_sub(u32::try_from(modules).ok()?))
}

/// The version in `NVRM version: NVIDIA UNIX … Kernel Module  580.159.04  …`.
fn version_in(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    line.split_whitespace().find(|word| is_version(word)).map(ToOwned::to_owned)
}

fn is_version(word: &str) -> bool {
    word.len() <= 16
        && word.matches('.').count() >= 1
        && word.chars().all(|c| c.is_ascii_digit() || c == '.')
        && word.starts_with(|c: char| c.is_ascii_digit())
}

fn libraries(root: &Root) -> Vec<LibraryFile> {
    let mut found = Vec::new();
    for folder in LIBRARY_FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.path(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(version) = name.to_str().and_then(|name| name.strip_prefix(LIBRARY)) else {
                continue;
            };
            // `libnvidia-ml.so.1` is a link to one of these.
            if is_version(version) {
                let path = format!("/{folder}/{LIBRARY}{version}");
                found.push(LibraryFile { version: version.to_owned(), path });
            }
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.version == b.version);
    found
}

/// The files that CUDA needs, there or not, and those of the GPUs that are there.
fn devices(root: &Root) -> Vec<DeviceFile> {
    let needed = ["nvidiactl", "nvidia-uvm"].map(ToOwned::to_owned);
    let gpus = (0..MOST_GPUS).map(|n| format!("nvidia{n}"));
    needed
        .into_iter()
        .map(|name| device(root, name))
        .chain(gpus.map(|name| device(root, name)).filter(|gpu| gpu.access != Access::Missing))
        .collect()
}

fn device(root: &Root, name: String) -> DeviceFile {
    let path = root.path(&format!("dev/{name}"));
    let Ok(meta) = std::fs::metadata(&path) else {
        return DeviceFile { name, access: Access::Missing, mode: None, group: None };
    };
    // The kernel's own answer knows of access lists, which the bits do not show.
    let open = rustix::fs::access(&path, Mode::READ_OK | Mode::WRITE_OK).is_ok();
    DeviceFile {
        name,
        access: if open { Access::Granted } else { Access::Denied },
        mode: Some(meta.mode() & 0o7777),
        group: Some(meta.gid()),
    }
}

fn pci(base: &Path) -> Reading<Vec<PciGpu>> {
    let folders = match gpu_folders(base) {
        Ok(folders) => folders,
        Err(error) => return Reading::Absent(root::why(&error)),
    };
    let mut gpus: Vec<PciGpu> = folders.iter().map(|folder| pci_gpu(folder)).collect();
    gpus.sort();
    Reading::Value(gpus)
}

fn pci_gpu(folder: &Path) -> PciGpu {
    let is = |name: &str, wanted: &str| {
        root::text(&folder.join(name), 64).is_ok_and(|text| text.trim() == wanted)
    };
    let driver = std::fs::read_link(folder.join("driver")).ok();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    PciGpu {
        address: name(folder).unwrap_or_default(),
        sleeps: is("power/runtime_status", "suspended"),
        may_sleep: is("power/control", "auto"),
        driver: driver.as_deref().and_then(name),
    }
}

/// Tried on this program itself, which needs no right.
fn memory_call() -> Reading<()> {
    let (there, mut here) = ([1], [0]);
    let own = ProcessMemory::new(Pid(std::process::id()));
    match own.read(there.as_ptr() as u64, &mut here) {
        Ok(_) if here == there => Reading::Value(()),
        Ok(_) => Reading::Absent(Why::Nonsense),
        Err(fault) => Reading::Absent(fault.why()),
    }
}

fn capabilities(root: &Root) -> Reading<u64> {
    root::text(&root.path("proc/self/status"), 64 << 10)
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
            let bits = line.map(|bits| u64::from_str_radix(bits.trim(), 16));
            bits.and_then(Result::ok).ok_or(Why::Nonsense)
        })
        .into()
}

/// The kernel's short name of every process.
fn process_names(root: &Root) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.path("proc")) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .take(MOST_PROCESSES)
        .filter_map(|entry| root::text(&entry.path().join("comm"), 32).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_module_are_told_from_modules_that_use_it() {
        let line = "nvidia 56692736 12 nvidia_uvm,nvidia_modeset, Live 0x0000 (POE)";
        assert_eq!(module_users(line), Some(10));
        assert_eq!(module_users("nvidia_drm 86016 0 - Live 0x0"), Some(0));
        assert_eq!(module_users("nvidia"), None);
        assert_eq!(module_users("nvidia 1 x - Live"), None);
    }

    #[test]
    fn a_version_is_found_in_the_drivers_own_line() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6\n";
        assert_eq!(version_in(closed).as_deref(), Some("535.54.03"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n";
        assert_eq!(version_in(open).as_deref(), Some("580.159.04"));
        assert_eq!(version_in("GCC version: 12.2.0\n"), None);
        assert!(!is_version("1") && !is_version("so.1") && is_version("580.65"));
    }

    #[test]
    fn this_machine_answers() {
        let facts = read(&Root::machine());
        assert!(facts.capabilities.value().is_some());
        assert_eq!(facts.devices[0].name, "nvidiactl");
    }
}
