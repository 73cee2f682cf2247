//! Where the program runs.

use crate::host::root::{self, Root};
use crate::sample::{Container, HostFacts, HostMemory, Reading, Why};
use crate::units::Bytes;

/// Inode of the first PID namespace, `PROC_PID_INIT_INO` of the kernel.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Reads them all; each may fail alone.
pub(super) fn read(root: &Root) -> HostFacts {
    HostFacts {
        hostname: hostname(root),
        host_pid_namespace: std::fs::read_link(root.path("proc/self/ns/pid"))
            .map(|link| link.as_os_str() == FIRST_PID_NAMESPACE)
            .map_err(|error| root::why(&error))
            .into(),
        container: container(root),
        euid: nix::unistd::geteuid().as_raw(),
        hidepid: hidepid(root),
        ptrace_scope: root::text(&root.path("proc/sys/kernel/yama/ptrace_scope"), 16)
            .map_err(not_there)
            .and_then(|text| text.trim().parse().map_err(|_ignored| Why::Nonsense))
            .into(),
        wsl: wsl(root),
        memory: memory(root),
    }
}

/// `/dev/dxg` is the way to Windows' driver; without it, a kernel of Microsoft's with the library
/// where WSL2 puts it.
pub(super) fn wsl(root: &Root) -> bool {
    let version = || root::text(&root.path("proc/version"), 1024).unwrap_or_default();
    root.path("dev/dxg").exists()
        || (root.path("usr/lib/wsl/lib/libnvidia-ml.so.1").exists()
            && version().to_ascii_lowercase().contains("microsoft"))
}

/// Changes from moment to moment, unlike the rest.
pub(super) fn memory(root: &Root) -> Option<HostMemory> {
    // The two lines are among the first three.
    let text = root::text(&root.path("proc/meminfo"), 512).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(Bytes(kib.checked_mul(1024)?))
    };
    Some(HostMemory { total: field("MemTotal:")?, available: field("MemAvailable:")? })
}

fn not_there(why: Why) -> Why {
    match why {
        Why::Gone => Why::NotSupported,
        other => other,
    }
}

fn hostname(root: &Root) -> Reading<String> {
    root::text(&root.path("proc/sys/kernel/hostname"), 256)
        .map(|text| text.trim().to_owned())
        .map_err(not_there)
        .into()
}

/// Markers that runtimes leave, then the path of our own cgroup.
fn container(root: &Root) -> Option<Container> {
    let of = |runtime: &str| Some(Container { runtime: runtime.to_owned(), id: None });
    let by_group = root::text(&root.path("proc/self/cgroup"), 8 << 10)
        .ok()
        .and_then(|text| super::cgroup::parse(&text).container);
    if by_group.is_some() {
        return by_group;
    }
    if root.path("var/run/secrets/kubernetes.io").exists() {
        return of("kubepods");
    }
    if root.path("run/.containerenv").exists() {
        return of("podman");
    }
    if root.path(".dockerenv").exists() {
        return of("docker");
    }
    if root.path(".singularity.d").exists() {
        return of("apptainer");
    }
    // systemd writes the manager's name there.
    let named = root::text(&root.path("run/systemd/container"), 64).ok()?;
    of(named.trim())
}

/// Whether the `/proc` in use hides other users' processes.
fn hidepid(root: &Root) -> Reading<bool> {
    let mounts = match root::text(&root.path("proc/self/mounts"), 256 << 10) {
        Ok(text) => text,
        Err(why) => return Reading::Absent(why),
    };
    let options = mounts.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split(' ').take(4).collect();
        (words.get(1) == Some(&"/proc") && words.get(2) == Some(&"proc"))
            .then(|| words.get(3).copied().unwrap_or_default())
    });
    let hidden = options.unwrap_or_default().split(',').any(|option| {
        option.strip_prefix("hidepid=").is_some_and(|value| !matches!(value, "0" | "off"))
    });
    Reading::Value(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_answers() {
        let facts = read(&Root::machine());
        assert!(facts.hostname.value().is_some());
        assert!(facts.host_pid_namespace.value().is_some());
        assert!(facts.hidepid.value().is_some());
        let memory = facts.memory.unwrap();
        assert!(memory.total > Bytes::ZERO && memory.available <= memory.total);
    }

    #[test]
    fn windows_below_is_seen_by_its_device_or_by_its_kernel_and_library() {
        let of = |files: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            wsl(&Root::new(dir.path()))
        };
        let kernel = ("proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (x)\n");
        let library = ("usr/lib/wsl/lib/libnvidia-ml.so.1", "");
        assert!(of(&[("dev/dxg", "")]) && of(&[kernel, library]));
        assert!(!of(&[kernel]) && !of(&[library, ("proc/version", "Linux version 6.1\n")]));
    }

    #[test]
    fn a_file_of_memory_without_its_lines_is_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let of = |text: &str| {
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
            memory(&Root::new(dir.path()))
        };
        let good = "MemTotal:  127600748 kB\nMemFree:   1 kB\nMemAvailable: 118566368 kB\n";
        let (total, available) = (Bytes(127_600_748 << 10), Bytes(118_566_368 << 10));
        assert_eq!(of(good), Some(HostMemory { total, available }));
        for bad in ["", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
