//! Who would restart a process that is simply killed, and the command that ends it properly.

use super::names;
use super::signs::in_slurm_step;
use crate::analyze::Manager;
use crate::analyze::scene::Scene;
use crate::sample::{Container, ProcSample};

/// Characters of a container's id that its tools take.
const SHORT_ID: usize = 12;

/// The innermost manager of a process.
pub fn of(scene: &Scene<'_>, process: &ProcSample) -> Option<Manager> {
    mps(process)
        .or_else(|| ollama(scene, process))
        .or_else(|| ray(process))
        .or_else(|| jupyter(scene, process))
        .or_else(|| slurm(scene, process))
        .or_else(|| container(scene, process))
        .or_else(|| systemd(process))
}

fn manager(kind: &'static str, name: &str, command: String) -> Manager {
    Manager { kind, name: name.to_owned(), command }
}

fn mps(process: &ProcSample) -> Option<Manager> {
    process
        .comm
        .starts_with("nvidia-cuda-mps")
        .then(|| manager("mps", &process.comm, "echo quit | nvidia-cuda-mps-control".to_owned()))
}

/// The runner of a model; the server above it lives, or the runner is a leftover.
fn ollama(scene: &Scene<'_>, process: &ProcSample) -> Option<Manager> {
    let serves = |a: &ProcSample| a.comm == "ollama" || names::program(a) == "ollama";
    let below = scene.ancestors(process).iter().any(|above| serves(above));
    below.then(|| {
        let command = "ollama stop \"$(ollama ps | awk 'NR==2 {print $1}')\"";
        manager("ollama", &process.comm, command.to_owned())
    })
}

fn ray(process: &ProcSample) -> Option<Manager> {
    let of_ray = process.comm.starts_with("ray::") || process.comm.starts_with("raylet");
    of_ray.then(|| manager("ray", &process.comm, "ray stop".to_owned()))
}

fn jupyter(scene: &Scene<'_>, process: &ProcSample) -> Option<Manager> {
    let server = process.notebook_server()?;
    (scene.exists(server) == Some(true)).then(|| {
        let command = "jupyter server list   # then shut the kernel down there";
        manager("jupyter", &format!("server {server}"), command.to_owned())
    })
}

fn slurm(scene: &Scene<'_>, process: &ProcSample) -> Option<Manager> {
    let job = process.slurm_job.as_ref().filter(|job| is_plain(job))?;
    in_slurm_step(scene, process).then(|| manager("slurm", job, format!("scancel {job}")))
}

/// Inside of a container its own manager is out of reach.
fn container(scene: &Scene<'_>, process: &ProcSample) -> Option<Manager> {
    if scene.look.is_some_and(|look| look.host.container.is_some()) {
        return None;
    }
    let Container { runtime, id } = process.container.as_ref()?;
    let id = id.as_deref().filter(|id| is_plain(id))?;
    let short: String = id.chars().take(SHORT_ID).collect();
    match runtime.as_str() {
        "docker" => Some(manager("docker", &short, format!("docker stop {short}"))),
        "podman" | "libpod" => Some(manager("podman", &short, format!("podman stop {short}"))),
        "lxc" => Some(manager("lxc", id, format!("lxc stop {id}"))),
        "kubepods" | "kubernetes" | "containerd" | "crio" | "cri-containerd" => {
            // The pod's name is in its host name; without it the runtime knows the container.
            let pod = process.variable("HOSTNAME").filter(|pod| is_plain(pod));
            Some(match pod {
                Some(pod) => manager("kubernetes", pod, format!("kubectl delete pod {pod}")),
                None => manager("kubernetes", &short, format!("crictl stop {short}")),
            })
        }
        _ => None,
    }
}

fn systemd(process: &ProcSample) -> Option<Manager> {
    let unit = process.unit.as_deref().filter(|unit| {
        unit.ends_with(".service") && !unit.starts_with("user@") && is_plain(unit)
    })?;
    let of_user = process.cgroup.value().is_some_and(|path| path.contains("/user@"));
    let command = if of_user { "systemctl --user stop" } else { "systemctl stop" };
    Some(manager("systemd", unit, format!("{command} {unit}")))
}

/// Whether a name can stand in a command line as it is: it comes from outside.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:+".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.len() <= 256 && name.chars().all(plain)
}
