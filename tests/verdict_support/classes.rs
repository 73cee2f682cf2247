//! Cases for every class.

use vramlens::analyze::Class;
use vramlens::ids::Pid;
use vramlens::sample::{NvidiaFds, ProcState, Reading, Why};
use vramlens::units::Percent;

use super::table::{
    Case, World, at_work, engine, job, orphan, pending, shell, state, survivor, with, world,
};
use super::{GIB, cuda, gpu, process, row, with_rows};

pub fn activity() -> Vec<Case> {
    vec![
        Case::class("a job at work", Class::Active, "used_gpu", |_| at_work(vec![shell(), job()])),
        Case::class("a quiet job", Class::Idle, "no_use", |_| world(vec![shell(), job()])),
        Case::class("a job not watched for long", Class::Unknown, "short_kernels", |_| {
            world(vec![shell(), job()])
        })
        .for_seconds(10),
        Case::class("a server without work", Class::IdleServer, "listening", |_| {
            world(vec![shell(), with(job(), |p| p.listens = vec![8000])])
        }),
        Case::class("a job that prepares its data", Class::BusyCpu, "busy_cpu", |_| {
            world(vec![shell(), with(job(), |p| p.cpu = Reading::Value(Percent(97.0)))])
        }),
        Case::class("a row newer than the look", Class::Unknown, "not_looked", |_| World {
            procs: vec![],
            ..world(vec![])
        })
        .for_seconds(0),
    ]
}

pub fn kernel_states() -> Vec<Case> {
    vec![
        Case::class("stopped by Ctrl-Z", Class::Suspended, "stopped", |_| {
            world(vec![shell(), state(job(), ProcState::Stopped)])
        }),
        Case::class("under a debugger", Class::Debugged, "debugger", |_| {
            world(vec![shell(), with(job(), |p| p.tracer = Pid(401))])
        }),
        Case::class("in a paused container", Class::Frozen, "frozen", |_| {
            world(vec![shell(), with(job(), |p| p.frozen = true)])
        }),
        Case::class("dead and not reaped", Class::Defunct, "not_reaped", |_| {
            world(vec![with(state(job(), ProcState::Zombie), |p| {
                p.threads = 1;
                p.devices = Reading::Value(NvidiaFds::default());
            })])
        }),
        Case::class("dead, with threads that wait", Class::Stuck, "threads_only", |_| {
            world(vec![with(state(job(), ProcState::Zombie), |p| p.threads_in_d = 3)])
        }),
        Case::class("waits in the driver", Class::Stuck, "state_d", |_| {
            world(vec![
                shell(),
                with(state(job(), ProcState::Uninterruptible), |p| {
                    p.wait_channel = Some("os_acquire_rwlock_write".to_owned());
                }),
            ])
        })
        .for_seconds(4),
        Case::class("a KILL does not end it", Class::Unkillable, "kill_pending", |_| {
            world(vec![shell(), pending(job(), 1 << 8)])
        })
        .for_seconds(6),
        Case::class("a KILL that is a second old", Class::Unknown, "short_kernels", |second| {
            world(vec![shell(), pending(job(), if second > 5 { 1 << 8 } else { 0 })])
        })
        .for_seconds(6),
        Case::class("on its way out", Class::Exiting, "exiting", |_| {
            world(vec![shell(), with(job(), |p| p.flags = 4)])
        }),
    ]
}

pub fn leftovers() -> Vec<Case> {
    vec![
        Case::class("an orphan at work", Class::Orphan, "group_leader_gone", |_| {
            at_work(vec![orphan()])
        }),
        Case::class(
            "an orphan that was quiet for long",
            Class::Orphan,
            "session_leader_gone",
            |_| world(vec![orphan()]),
        )
        .zombie(),
        Case::class("an orphan not watched for long", Class::Orphan, "group_leader_gone", |_| {
            world(vec![orphan()])
        })
        .for_seconds(10),
        Case::class("an engine whose server is gone", Class::Orphan, "launcher_gone", |_| {
            world(vec![engine()])
        })
        .for_seconds(4)
        .zombie(),
        Case::class("an engine that spins on the CPU", Class::Orphan, "launcher_gone", |_| {
            world(vec![with(engine(), |p| p.cpu = Reading::Value(Percent(100.0)))])
        })
        .for_seconds(4)
        .zombie(),
        Case::class("an engine that still computes", Class::Orphan, "used_gpu", |_| {
            at_work(vec![engine()])
        }),
        Case::class("an engine below its server", Class::Idle, "launcher_lives", |_| {
            let mut server = process(450, "python");
            server.group = Pid(450);
            world(vec![
                server,
                with(engine(), |p| {
                    p.parent = Pid(450);
                    p.group = Pid(450);
                    p.session = Pid(450);
                }),
            ])
        }),
    ]
}

pub fn strays() -> Vec<Case> {
    vec![
        Case::class("its parent was seen to end", Class::Orphan, "parent_ended", |second| {
            let member = with(job(), |p| {
                p.group = Pid(400);
                p.tty = 0;
            });
            if second < 2 {
                world(vec![shell(), member])
            } else {
                world(vec![with(member, |p| p.parent = Pid(1))])
            }
        })
        .zombie(),
        Case::class("a notebook kernel without its server", Class::Orphan, "jupyter_gone", |_| {
            world(vec![super::env(orphan(), &[("JPY_PARENT_PID", "777")])])
        })
        .zombie(),
        Case::class(
            "an engine whose launcher is outside of the namespace",
            Class::Orphan,
            "launcher_unseen",
            |_| world(vec![with(engine(), |p| p.parent = Pid(0))]),
        )
        .for_seconds(4),
        Case::class(
            "an engine below somebody who could not be named",
            Class::Orphan,
            "launcher_unseen",
            |_| {
                let above = with(process(460, "gunicorn"), |p| {
                    p.cmdline = Reading::Absent(Why::TimedOut);
                });
                world(vec![above, with(engine(), |p| p.parent = Pid(460))])
            },
        )
        .for_seconds(4),
        Case::class(
            "a process in the cgroup of another Slurm job",
            Class::Orphan,
            "slurm_escaped",
            |_| {
                world(vec![with(orphan(), |p| {
                    p.slurm_job = Some("42".to_owned());
                    p.cgroup =
                        Reading::Value("/system.slice/slurmstepd.scope/job_421/step_0".into());
                })])
            },
        )
        .zombie(),
        Case::class("a process that escaped its Slurm job", Class::Orphan, "slurm_escaped", |_| {
            world(vec![with(orphan(), |p| p.slurm_job = Some("4242".to_owned()))])
        })
        .zombie(),
    ]
}

pub fn ghosts() -> Vec<Case> {
    vec![
        Case::class("a dead pid with its survivor", Class::Ghost, "kept_by", |_| {
            world(vec![survivor()])
        })
        .for_seconds(4),
        Case::class("the survivor itself", Class::Survivor, "survivor", |_| {
            world(vec![survivor()])
        })
        .of(600)
        .for_seconds(4)
        .zombie(),
        Case::class(
            "a survivor of which only the adoption is known",
            Class::Survivor,
            "survivor",
            |_| world(vec![with(survivor(), |p| p.group = Pid(400)), shell()]),
        )
        .of(600)
        .for_seconds(4)
        .zombie(),
        Case::class(
            "a wanted process that only has the GPU open",
            Class::Hidden,
            "unlisted",
            |_| {
                let mut other = cuda(process(600, "python"), &[0]);
                other.parent = Pid(400);
                other.session = Pid(400);
                world(vec![shell(), other])
            },
        )
        .of(600),
    ]
}

pub fn strangers() -> Vec<Case> {
    vec![
        Case::class("a dead pid that nobody keeps", Class::Ghost, "keeper_not_found", |_| {
            world(vec![])
        }),
        Case::class("it ended a moment ago", Class::Exiting, "just_ended", |second| {
            world(if second < 8 { vec![shell(), job()] } else { vec![shell()] })
        })
        .for_seconds(10),
        Case::class(
            "a survivor whose owner ended a moment ago",
            Class::Survivor,
            "owner_just_ended",
            |second| world(if second < 8 { vec![job(), survivor()] } else { vec![survivor()] }),
        )
        .of(600)
        .for_seconds(10),
        Case::class("a pid that is somebody else's now", Class::Reused, "pid_reused", |second| {
            let other = with(process(500, "rsync"), |p| p.id.start_ticks = 99_999_999);
            world(vec![if second < 5 { job() } else { other }])
        }),
        Case::class("has the device open, is in no list", Class::Hidden, "unlisted", |_| World {
            gpus: vec![with_rows(gpu(0), vec![row(501, GIB)])],
            ..world(vec![job(), with(cuda(process(501, "python"), &[0]), |p| p.parent = Pid(9))])
        }),
        Case::class("of another namespace", Class::OtherNamespace, "other_namespace", |_| {
            let mut world = world(vec![]);
            world.host.host_pid_namespace = Reading::Value(false);
            world
        }),
        Case::class("of another user, and hidden", Class::OtherUser, "hidden_by_proc", |_| {
            let mut world = world(vec![]);
            world.host.hidepid = Reading::Value(true);
            world
        }),
        Case::class("the display server", Class::Protected, "display", |_| {
            world(vec![process(500, "Xorg")].into_iter().map(|p| cuda(p, &[0])).collect())
        }),
    ]
}
