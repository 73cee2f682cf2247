//! Cases for every trap: the rule applies, the same without the trap, and what cannot be told.

use vramlens::analyze::Class;
use vramlens::ids::Pid;
use vramlens::sample::{
    Container, MigInfo, NvidiaFds, ProcKinds, ProcSample, ProcState, Reading, Signals, Why,
};
use vramlens::units::Percent;

use super::table::{
    Case, Shows, World, at_work, engine, job, orphan, shell, survivor, with, world,
};
use super::{GIB, args, cuda, docker, env, gpu, process, row, uuid, with_rows};

const HIT: Shows = Shows::Hit;
const CLEAR: Shows = Shows::Clear;
const CANNOT: Shows = Shows::CannotTell;

fn in_cgroup(path: &'static str) -> ProcSample {
    let mut orphan = orphan();
    orphan.cgroup = Reading::Value(path.to_owned());
    orphan
}

fn no_cgroup() -> World {
    world(vec![with(orphan(), |p| p.cgroup = Reading::Absent(Why::NoPermission))])
}

pub fn services() -> Vec<Case> {
    vec![
        Case::trap("systemd_service", HIT, Class::Idle, |_| {
            world(vec![in_cgroup("/system.slice/vllm.service")])
        }),
        Case::trap("systemd_service", CLEAR, Class::Orphan, |_| {
            world(vec![in_cgroup("/user.slice/user-1000.slice/session-3.scope")])
        })
        .zombie(),
        Case::trap("systemd_service", CANNOT, Class::Orphan, |_| no_cgroup()),
        Case::trap("user_service", HIT, Class::Idle, |_| {
            world(vec![in_cgroup(
                "/user.slice/user-1000.slice/user@1000.service/app.slice/ollama.service",
            )])
        }),
        Case::trap("user_service", CLEAR, Class::Orphan, |_| {
            world(vec![in_cgroup(
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.scope",
            )])
        })
        .zombie(),
        Case::trap("user_service", CANNOT, Class::Orphan, |_| no_cgroup()),
    ]
}

pub fn shells() -> Vec<Case> {
    vec![
        Case::trap("detached", HIT, Class::Idle, |_| {
            world(vec![with(orphan(), |p| {
                p.signals = Some(Signals { ignored: 1, ..Signals::default() });
            })])
        }),
        Case::trap("detached", CLEAR, Class::Orphan, |_| world(vec![orphan()])).zombie(),
        Case::trap("detached", CANNOT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.signals = None)])
        }),
        Case::trap("multiplexer", HIT, Class::Idle, |_| world(in_tmux())),
        Case::trap("multiplexer", CLEAR, Class::Orphan, |_| {
            world(vec![shell(), with(job(), leaderless)])
        })
        .zombie(),
        Case::trap("multiplexer", CANNOT, Class::Orphan, |_| world(vec![with(job(), leaderless)])),
        Case::trap("subreaper", HIT, Class::Idle, |_| {
            let mut manager = process(300, "systemd");
            manager.group = Pid(300);
            world(vec![
                manager,
                with(job(), |p| {
                    p.parent = Pid(300);
                    p.group = Pid(500);
                }),
            ])
        }),
        Case::trap("subreaper", CLEAR, Class::Idle, |_| world(vec![shell(), job()])),
        Case::trap("subreaper", CANNOT, Class::Idle, |_| world(vec![job()])),
    ]
}

fn in_tmux() -> Vec<ProcSample> {
    let server = process(350, "tmux: server");
    // The job's group leader has gone, and its output was deleted: two signs.
    let pane = with(shell(), |p| p.parent = Pid(350));
    vec![server, pane, with(job(), leaderless)]
}

fn leaderless(process: &mut ProcSample) {
    process.group = Pid(900);
    process.stdio_deleted = true;
}

pub fn containers() -> Vec<Case> {
    vec![
        Case::trap("container_main", HIT, Class::Idle, |_| {
            world(vec![with(docker(orphan()), |p| p.namespace_pids = vec![Pid(500), Pid(1)])])
        }),
        Case::trap("container_main", CLEAR, Class::Orphan, |_| {
            let shim = process(300, "containerd-shim");
            world(vec![
                shim,
                with(docker(orphan()), |p| {
                    p.namespace_pids = vec![Pid(500), Pid(77)];
                    p.parent = Pid(300);
                }),
            ])
        })
        .zombie(),
        Case::trap("container_main", CANNOT, Class::Orphan, |_| {
            world(vec![with(docker(orphan()), |p| p.namespace_pids = vec![])])
        }),
        Case::trap("container_child", HIT, Class::Idle, |_| {
            world(vec![first_of_container(), with(docker(orphan()), below_first)])
        }),
        Case::trap("container_child", CLEAR, Class::Orphan, |_| world(vec![orphan()])).zombie(),
        Case::trap("container_child", CANNOT, Class::Orphan, |_| {
            world(vec![with(docker(orphan()), |p| p.parent = Pid(4_000))])
        }),
    ]
}

fn first_of_container() -> ProcSample {
    with(docker(process(310, "bash")), |p| p.namespace_pids = vec![Pid(310), Pid(1)])
}

fn below_first(process: &mut ProcSample) {
    process.parent = Pid(310);
    process.namespace_pids = vec![Pid(500), Pid(20)];
}

pub fn schedulers() -> Vec<Case> {
    vec![
        Case::trap("slurm_step", HIT, Class::Idle, |_| {
            world(vec![with(in_cgroup("/system.slice/slurmstepd.scope/job_42/step_0"), |p| {
                p.slurm_job = Some("42".to_owned());
            })])
        }),
        Case::trap("slurm_step", CLEAR, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.slurm_job = Some("42".to_owned()))])
        })
        .zombie(),
        Case::trap("slurm_step", CANNOT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| {
                p.slurm_job = Some("42".to_owned());
                p.cgroup = Reading::Absent(Why::NoPermission);
            })])
        }),
        Case::trap("jupyter", HIT, Class::Idle, |_| {
            let server = process(320, "jupyter-lab");
            world(vec![server, kernel(Some("320"))])
        }),
        Case::trap("jupyter", CLEAR, Class::Orphan, |_| world(vec![kernel(Some("320"))])).zombie(),
        Case::trap("jupyter", CANNOT, Class::Orphan, |_| world(vec![kernel(None)])),
    ]
}

fn kernel(server: Option<&str>) -> ProcSample {
    let kernel = args(orphan(), &["python", "-m", "ipykernel_launcher", "-f", "kernel-1.json"]);
    match server {
        Some(server) => env(kernel, &[("JPY_PARENT_PID", server)]),
        None => kernel,
    }
}

pub fn work() -> Vec<Case> {
    vec![
        Case::trap("listening", HIT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.listens = vec![8000])])
        }),
        Case::trap("listening", CLEAR, Class::Orphan, |_| {
            world(vec![with(engine(), |p| p.listens = vec![])])
        })
        .zombie(),
        Case::trap("listening", CANNOT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.devices = Reading::Absent(Why::NoPermission))])
        }),
        Case::trap("busy_cpu", HIT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.cpu = Reading::Value(Percent(40.0)))])
        }),
        Case::trap("busy_cpu", CLEAR, Class::Orphan, |_| world(vec![orphan()])).zombie(),
        Case::trap("busy_cpu", CANNOT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| p.cpu = Reading::Absent(Why::NotYet))])
        }),
        Case::trap("short_kernels", HIT, Class::Unknown, |_| world(vec![shell(), job()]))
            .for_seconds(30),
        Case::trap("short_kernels", CLEAR, Class::Idle, |_| world(vec![shell(), job()])),
        Case::trap("short_kernels", CANNOT, Class::Unknown, |_| {
            let mut unsampled = row(500, 5 * GIB);
            unsampled.sm = Reading::Absent(Why::NotAsked);
            let gpus = vec![with_rows(gpu(0), vec![unsampled])];
            World { gpus, ..world(vec![shell(), job()]) }
        }),
        Case::trap("unsampled", HIT, Class::Unknown, |_| mig(vec![shell(), job()])),
        Case::trap("unsampled", CLEAR, Class::Idle, |_| world(vec![shell(), job()])),
        Case::trap("unsampled", CANNOT, Class::Idle, |_| {
            let mut world = world(vec![shell(), job()]);
            world.gpus[0].process_utilization = Reading::Absent(Why::Failed(999));
            world
        }),
    ]
}

/// 500 in a MIG instance.
fn mig(procs: Vec<ProcSample>) -> World {
    let mut whole = gpu(0);
    whole.mig_enabled = Reading::Value(true);
    let mut instance = with_rows(gpu(7), vec![row(500, 5 * GIB)]);
    instance.mig = Some(MigInfo {
        parent: uuid(0),
        gpu_instance: Reading::Value(1),
        compute_instance: Reading::Value(0),
    });
    instance.process_utilization = Reading::Absent(Why::NotSupported);
    World { gpus: vec![whole, instance], ..world(procs) }
}

pub fn protected() -> Vec<Case> {
    vec![
        Case::trap("display", HIT, Class::Protected, |_| of_kind(graphics(), orphan())),
        Case::trap("display", CLEAR, Class::Orphan, |_| world(vec![orphan()])).zombie(),
        Case::trap("display", CANNOT, Class::Orphan, |_| of_kind(ProcKinds::default(), orphan())),
        Case::trap("monitor", HIT, Class::Protected, |_| world(vec![called("nv-hostengine")])),
        Case::trap("monitor", CLEAR, Class::Orphan, |_| world(vec![called("python")])).zombie(),
        Case::trap("monitor", CANNOT, Class::Orphan, |_| world(vec![called("")])),
        Case::trap("mps", HIT, Class::Protected, |_| world(vec![called("nvidia-cuda-mps")])),
        Case::trap("mps", CLEAR, Class::Orphan, |_| world(vec![called("python")])).zombie(),
        Case::trap("mps", CANNOT, Class::Orphan, |_| world(vec![called("")])),
        Case::trap("debugger", HIT, Class::Debugged, |_| {
            world(vec![with(orphan(), |p| p.state = ProcState::Traced)])
        }),
        Case::trap("debugger", CLEAR, Class::Orphan, |_| world(vec![orphan()])).zombie(),
        Case::trap("debugger", CANNOT, Class::Orphan, |_| {
            world(vec![with(orphan(), |p| {
                p.signals = None;
                p.uid = Reading::Absent(Why::NoPermission);
            })])
        }),
    ]
}

fn graphics() -> ProcKinds {
    ProcKinds { graphics: true, compute: true, ..ProcKinds::default() }
}

fn called(comm: &str) -> ProcSample {
    let mut orphan = orphan();
    orphan.comm = String::from(comm);
    orphan.cmdline = Reading::Absent(Why::NoPermission);
    orphan
}

fn of_kind(kinds: ProcKinds, process: ProcSample) -> World {
    let mut row = row(500, 5 * GIB);
    row.kinds = kinds;
    World { gpus: vec![with_rows(gpu(0), vec![row])], ..world(vec![process]) }
}

pub fn moments() -> Vec<Case> {
    vec![
        Case::trap("young_or_ending", HIT, Class::Orphan, |_| {
            world(vec![with(engine(), |p| p.started_boot_ms = super::T0 - 1_000)])
        })
        .for_seconds(10),
        Case::trap("young_or_ending", CLEAR, Class::Orphan, |_| world(vec![engine()]))
            .for_seconds(10)
            .zombie(),
        Case::trap("young_or_ending", CANNOT, Class::Orphan, |_| {
            world(vec![with(engine(), |p| p.started_boot_ms = 0)])
        })
        .for_seconds(10),
        Case::trap("asleep", HIT, Class::Unknown, |_| {
            let mut world = world(vec![shell(), job()]);
            world.gpus[0].memory = Reading::Absent(Why::Asleep);
            world
        }),
        Case::trap("asleep", CLEAR, Class::Idle, |_| world(vec![shell(), job()])),
        Case::trap("asleep", CANNOT, Class::Unknown, |_| hidden_where(Why::TimedOut)).of(600),
    ]
}

/// 600 with the device open, and a GPU that says nothing.
fn hidden_where(why: Why) -> World {
    let mut silent = gpu(0);
    silent.memory = Reading::Absent(why);
    silent.utilization = Reading::Absent(why);
    silent.processes = Reading::Absent(why);
    let other = with(cuda(process(600, "python"), &[0]), |p| p.parent = Pid(4_000));
    World { gpus: vec![silent], ..world(vec![other]) }
}

/// Exceptions to the rules, and rules that must hold for survivors as well.
pub fn exceptions() -> Vec<Case> {
    vec![
        Case::class(
            "a lone engine that listens for its workers",
            Class::Orphan,
            "launcher_gone",
            |_| world(vec![with(engine(), |p| p.listens = vec![29500])]),
        )
        .zombie(),
        Case::class("a survivor that serves", Class::Survivor, "listening", |_| {
            world(vec![with(survivor(), |p| p.listens = vec![6006])])
        })
        .of(600),
        Case::class("a survivor of a job under nohup", Class::Survivor, "survivor", |_| {
            world(vec![with(survivor(), |p| {
                p.signals = Some(Signals { ignored: 1, ..Signals::default() });
            })])
        })
        .of(600)
        .zombie(),
        Case::class(
            "a survivor that leads its own session",
            Class::Survivor,
            "detached",
            |second| {
                let child = with(survivor(), |p| {
                    p.group = Pid(600);
                    p.session = Pid(600);
                    p.parent = Pid(500);
                });
                if second < 5 {
                    world(vec![shell(), job(), child])
                } else {
                    world(vec![shell(), with(child, |p| p.parent = Pid(1))])
                }
            },
        )
        .of(600),
        Case::class("a survivor in a service", Class::Survivor, "systemd_service", |_| {
            world(vec![with(survivor(), |p| {
                p.cgroup = Reading::Value("/system.slice/train.service".to_owned());
            })])
        })
        .of(600),
        Case::class("a survivor that writes a checkpoint", Class::Survivor, "busy_cpu", |_| {
            world(vec![with(survivor(), |p| p.cpu = Reading::Value(Percent(60.0)))])
        })
        .of(600),
    ]
}

/// Processes beside the one that is judged, which need no row of their own.
pub fn folded() -> Vec<Case> {
    vec![
        Case::class(
            "a helper of a living listed parent is not shown",
            Class::Idle,
            "no_use",
            |_| {
                let helper = with(cuda(process(600, "pt_data_worker"), &[0]), |p| {
                    p.parent = Pid(500);
                    p.group = Pid(500);
                    p.session = Pid(400);
                });
                world(vec![shell(), job(), helper])
            },
        ),
        Case::class(
            "a monitor that only has the driver open is not shown",
            Class::Active,
            "used_gpu",
            |_| {
                let monitor = with(process(600, "nvtop"), |p| {
                    p.devices = Reading::Value(NvidiaFds {
                        control: true,
                        minors: vec![0],
                        count: 2,
                        ..NvidiaFds::default()
                    });
                });
                at_work(vec![shell(), job(), monitor])
            },
        ),
        Case::class("a pod", Class::Idle, "container_main", |_| {
            world(vec![with(orphan(), |p| {
                p.container =
                    Some(Container { runtime: "kubepods".to_owned(), id: Some("ab12".to_owned()) });
                p.namespace_pids = vec![Pid(500), Pid(1)];
            })])
        }),
    ]
}
