//! What a cgroup path tells: unit, container, job, and whether it is frozen.

use std::collections::HashMap;

use crate::host::root::{self, Root};
use crate::sample::Container;

/// What is read from `proc/PID/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cgroup {
    pub path: String,
    pub unit: Option<String>,
    pub container: Option<Container>,
    pub slurm_job: Option<String>,
    /// Files that say whether the group is frozen, below the root, each with another place for it.
    freezers: Vec<(String, Option<String>)>,
}

/// Whether groups are frozen, as far as it was asked for in this look: many processes are in the
/// same one.
#[derive(Debug, Default)]
pub(super) struct Freezers {
    at_ms: u64,
    known: HashMap<String, bool>,
}

impl Freezers {
    /// Whether the group, or one above it, is frozen.
    pub fn frozen(&mut self, group: &Cgroup, root: &Root, now_ms: u64) -> bool {
        if self.at_ms != now_ms {
            self.at_ms = now_ms;
            self.known.clear();
        }
        group.freezers.iter().any(|(file, other)| {
            if let Some(frozen) = self.known.get(file) {
                return *frozen;
            }
            let frozen = is_frozen(root, file).or_else(|| is_frozen(root, other.as_deref()?));
            self.known.insert(file.clone(), frozen == Some(true));
            frozen == Some(true)
        })
    }
}

/// `None` where there is no such file.
fn is_frozen(root: &Root, file: &str) -> Option<bool> {
    let mut buffer = [0; 1024];
    let text = root::record(&root.path(file), &mut buffer).ok()?;
    let says = |line: &str| matches!(line.trim(), "frozen 1" | "FROZEN" | "FREEZING");
    Some(String::from_utf8_lossy(text).lines().any(says))
}

/// Reads the lines `hierarchy:controllers:path`. With both versions mounted the old hierarchies
/// can say more than the unified one.
pub(super) fn parse(text: &str) -> Cgroup {
    let mut group = Cgroup::default();
    let mut best = 0;
    for line in text.lines().take(64) {
        let mut parts = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let unified = hierarchy == "0" && controllers.is_empty();
        // The unified path counts where it says anything, then systemd's, then the longest.
        let rank = match path {
            "/" => 1,
            _ if unified => usize::MAX,
            _ if controllers == "name=systemd" => usize::MAX - 1,
            _ => 1 + path.len(),
        };
        if rank > best {
            best = rank;
            path.clone_into(&mut group.path);
        }
        group.unit = group.unit.take().or_else(|| unit(path));
        group.container = group.container.take().or_else(|| container(path));
        group.slurm_job = group.slurm_job.take().or_else(|| slurm_job(path));
        let safe = path.starts_with('/') && !path.split('/').any(|part| part == "..");
        if safe && path != "/" {
            if unified {
                let hybrid = format!("sys/fs/cgroup/unified{path}/cgroup.events");
                group.freezers.push((format!("sys/fs/cgroup{path}/cgroup.events"), Some(hybrid)));
            } else if controllers.split(',').any(|name| name == "freezer") {
                group.freezers.push((format!("sys/fs/cgroup/freezer{path}/freezer.state"), None));
            }
        }
    }
    group
}

/// The innermost `.service` or `.scope` that is no container's.
fn unit(path: &str) -> Option<String> {
    let is_unit = |part: &&str| {
        part.rsplit_once('.').is_some_and(|(_, kind)| matches!(kind, "service" | "scope"))
    };
    path.rsplit('/')
        .filter(is_unit)
        .find(|part| container_scope(part).is_none())
        .map(ToOwned::to_owned)
}

/// Prefixes of the scopes and directories that runtimes make.
const SCOPES: [(&str, &str); 8] = [
    ("docker-", "docker"),
    ("libpod-conmon-", ""),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-conmon-", ""),
    ("crio-", "crio"),
    ("machine-", "machine"),
];

fn container_scope(part: &str) -> Option<Container> {
    // A path component of containerd's systemd driver: slice:prefix:id.
    let part = part.rsplit(':').next().unwrap_or(part);
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    let (prefix, runtime) = SCOPES.iter().find(|(prefix, _)| bare.starts_with(prefix))?;
    let id = bare.strip_prefix(prefix)?;
    let named = *runtime == "machine" && bare != part;
    (!runtime.is_empty() && (named || is_id(id)))
        .then(|| Container { runtime: (*runtime).to_owned(), id: Some(id.to_owned()) })
}

fn is_id(text: &str) -> bool {
    text.len() >= 12 && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The container whose path this is. In Kubernetes the pod is what somebody deletes, so it is
/// named as such, with the container's id.
fn container(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(64).collect();
    let of = |runtime: &str, id: &str| Container {
        runtime: runtime.to_owned(),
        id: (!id.is_empty()).then(|| id.to_owned()),
    };
    let last_id = parts.iter().rev().find_map(|part| {
        container_scope(part)
            .and_then(|container| container.id)
            .or_else(|| part.rsplit(':').next().filter(|id| is_id(id)).map(ToOwned::to_owned))
    });
    if path.contains("kubepods") {
        return Some(of("kubepods", &last_id.unwrap_or_default()));
    }
    if let Some(container) = parts.iter().rev().find_map(|part| container_scope(part)) {
        return Some(container);
    }
    for pair in parts.windows(2) {
        let [parent, child] = pair else { continue };
        match *parent {
            "docker" | "ecs" | "actions_job" => {
                return Some(of("docker", last_id.as_deref().unwrap_or(child)));
            }
            "libpod_parent" => return Some(of("podman", last_id.as_deref().unwrap_or(child))),
            "containerd" => return Some(of("containerd", last_id.as_deref().unwrap_or(child))),
            "lxc" | "lxc.payload" | "lxc.monitor" => return Some(of("lxc", child)),
            _ => {}
        }
    }
    parts.iter().find_map(|part| part.strip_prefix("lxc.payload.")).map(|name| of("lxc", name))
}

/// `job_N` below a directory of Slurm's.
fn slurm_job(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    parts.find(|part| part.starts_with("slurm"))?;
    let job = parts.find_map(|part| part.strip_prefix("job_"))?;
    (!job.is_empty() && job.len() <= 20 && job.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| job.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn found(line: &str) -> (Option<String>, Option<(String, Option<String>)>) {
        let group = parse(&line.replace("ID", ID));
        (group.unit, group.container.map(|container| (container.runtime, container.id)))
    }

    #[test]
    fn units_are_the_innermost_ones() {
        for (path, unit) in [
            ("0::/system.slice/ollama.service", Some("ollama.service")),
            ("0::/system.slice/vllm.service/workers", Some("vllm.service")),
            ("0::/user.slice/user-1000.slice/session-7.scope", Some("session-7.scope")),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.service",
                Some("run-r1.service"),
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-code-1.scope",
                Some("app-code-1.scope"),
            ),
            ("0::/", None),
            ("1:name=systemd:/system.slice/triton.service\n0::/", Some("triton.service")),
            ("0::/system.slice/docker-ID.scope", None),
        ] {
            assert_eq!(found(path).0.as_deref(), unit, "{path}");
        }
    }

    #[test]
    fn containers_are_told_apart() {
        let id = Some(ID.to_owned());
        for (path, runtime) in [
            ("0::/system.slice/docker-ID.scope", "docker"),
            ("5:memory:/docker/ID\n0::/", "docker"),
            ("0::/machine.slice/libpod-ID.scope/container", "podman"),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope",
                "podman",
            ),
            ("0::/libpod_parent/libpod-ID", "podman"),
            ("0::/system.slice/nerdctl-ID.scope", "containerd"),
            (
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice/cri-containerd-ID.scope",
                "kubepods",
            ),
            ("0::/kubepods.slice/kubepods-pod1.slice/crio-ID.scope/container", "kubepods"),
            ("4:devices:/kubepods/besteffort/pod1b2c/ID", "kubepods"),
            (
                "0::/system.slice/containerd.service/kubepods-burstable-pod1.slice:cri-containerd:ID",
                "kubepods",
            ),
            ("0::/system.slice/crio-ID.scope", "crio"),
        ] {
            assert_eq!(found(path).1, Some((runtime.to_owned(), id.clone())), "{path}");
        }
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(found("0::/lxc.payload.web/system.slice").1, Some(("lxc".into(), name("web"))));
        assert_eq!(found("3:cpu:/lxc/web").1, Some(("lxc".into(), name("web"))));
        assert_eq!(
            found("0::/machine.slice/machine-deb.scope").1,
            Some(("machine".into(), name("deb")))
        );
        assert_eq!(found("0::/system.slice/docker.service").1, None);
        assert_eq!(found("0::/system.slice/docker-cleanup.service").1, None);
        assert_eq!(found("0::/machine.slice/libpod-conmon-ID.scope").1, None);
    }

    #[test]
    fn slurm_jobs_are_named() {
        for (path, job) in [
            ("4:memory:/slurm/uid_1000/job_123/step_0/task_0", Some("123")),
            ("0::/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0", Some("77")),
            ("0::/slurm_node1/uid_0/job_9", Some("9")),
            ("0::/user.slice/job_5", None),
            ("0::/slurm/uid_0/job_x", None),
        ] {
            assert_eq!(parse(path).slurm_job.as_deref(), job, "{path}");
        }
    }

    #[test]
    fn frozen_groups_are_seen_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/fs/cgroup/a.scope/cgroup.events", "populated 1\nfrozen 1\n");
        write("sys/fs/cgroup/b.scope/cgroup.events", "populated 1\nfrozen 0\n");
        write("sys/fs/cgroup/freezer/docker/x/freezer.state", "FROZEN\n");
        let frozen = |text| Freezers::default().frozen(&parse(text), &root, 1);
        assert!(frozen("0::/a.scope"));
        assert!(!frozen("0::/b.scope"));
        assert!(!frozen("0::/none"));
        assert!(frozen("7:freezer:/docker/x\n0::/"));
        assert!(!frozen("0::/../../a.scope"));
    }

    #[test]
    fn the_path_that_says_most_is_kept() {
        assert_eq!(parse("0::/").path, "/");
        assert_eq!(parse("5:memory:/docker/x\n0::/").path, "/docker/x");
        assert_eq!(parse("5:memory:/aaaaaaaa\n1:name=systemd:/b\n0::/c").path, "/c");
        assert_eq!(parse("0::/with:colon").path, "/with:colon");
        assert_eq!(parse("broken"), Cgroup::default());
    }
}
