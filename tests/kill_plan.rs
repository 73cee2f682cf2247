//! Whom a kill ends, whom it refuses, and what it proves.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "kill_plan/names.rs"]
mod names;
mod verdict_support;

use verdict_support::table::{engine, job, orphan, shell, survivor, with};
use verdict_support::*;
use vramlens::analyze::{KillPlan, KillProof, View, kill_proof, plan, zombies};
use vramlens::ids::{GpuIndex, Pid, ProcId};
use vramlens::runtime::kill::title;
use vramlens::sample::{KillPreset, ProcSample, ProcState, Reading, Why};
use vramlens::units::Bytes;

fn id(pid: u32) -> ProcId {
    ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 }
}

fn seen(rows: Vec<(u32, u64)>, mut procs: Vec<ProcSample>) -> View {
    let rows = rows.into_iter().map(|(pid, gib)| row(pid, gib * GIB)).collect();
    procs.push(init());
    watched(5, &[with_rows(gpu(0), rows)], &host(), &procs).1
}

/// Where nobody's end was seen.
fn proof_of(before: &View, after: &View, plan: &KillPlan) -> KillProof {
    kill_proof(before, after, plan, &[])
}

fn pids(plan: &KillPlan) -> Vec<u32> {
    assert_eq!(plan.rows.len(), plan.order.targets.len());
    plan.order.targets.iter().map(|target| target.id.pid.0).collect()
}

/// torchrun's agent 450 and its ranks 500 and 501, and an unrelated job of the same user.
fn ranks() -> Vec<ProcSample> {
    let run = [("TORCHELASTIC_RUN_ID", "77"), ("LOCAL_RANK", "0")];
    let mut agent = args(process(450, "torchrun"), &["python", "torchrun", "train.py"]);
    agent.parent = Pid(400);
    let rank = |pid| {
        let mut rank = env(cuda(process(pid, "pt_main_thread"), &[0]), &run);
        rank.parent = Pid(450);
        rank
    };
    let other = with(cuda(process(510, "python"), &[0]), |p| p.parent = Pid(400));
    vec![shell(), agent, rank(500), rank(501), other]
}

#[test]
fn one_rank_means_the_whole_job_and_its_launcher_goes_first() {
    let view = seen(vec![(500, 20), (501, 21), (510, 3)], ranks());
    let plan = plan(&view, &[id(501)], None);
    assert_eq!(pids(&plan), [450, 500, 501]);
    assert_eq!(plan.order.preset, KillPreset::Gentle);
    assert!(!plan.order.targets[0].must_hold_device, "a launcher holds nothing");
    assert!(plan.order.targets[1].must_hold_device);
    assert_eq!(plan.expected_total(), Bytes::gib(41));
    assert_eq!(plan.rows[0].reason, "launched the others");
    assert!(plan.rows[1].reason.starts_with("rank of the same job"), "{}", plan.rows[1].reason);
    assert!(!plan.needs_typed_confirmation);
    assert!(plan.refused.is_empty());
}

#[test]
fn a_job_never_takes_its_shell_or_its_harness() {
    let harness = with(process(440, "python"), |p| p.parent = Pid(400));
    let mut procs = ranks();
    procs[1].parent = Pid(440);
    procs.push(harness);
    let view = seen(vec![(500, 20), (501, 21), (510, 3)], procs);
    let planned = pids(&plan(&view, &[id(500)], None));
    assert_eq!(planned, [450, 500, 501]);
}

#[test]
fn an_exported_port_makes_no_job() {
    let port = [("MASTER_PORT", "29500")];
    let procs = vec![
        env(cuda(process(500, "python"), &[0]), &port),
        env(cuda(process(501, "python"), &[0]), &port),
    ];
    let view = seen(vec![(500, 20), (501, 21)], procs);
    assert_eq!(pids(&plan(&view, &[id(500)], None)), [500]);
}

#[test]
fn survivors_are_ended_and_never_the_ghost() {
    let view = seen(vec![(500, 5)], vec![survivor()]);
    let plan = zombies(&view, None);
    assert_eq!(pids(&plan), [600]);
    assert_eq!(plan.order.preset, KillPreset::Zombie);
    assert_eq!(plan.expected_total(), Bytes::gib(5), "the dead one's memory comes back");
    assert_eq!(plan.rows[0].total(), Bytes::gib(5));
    assert!(plan.rows[0].reason.starts_with("zombie: "), "{}", plan.rows[0].reason);
    assert!(zombies(&view, Some(GpuIndex(1))).is_empty(), "none on the other GPU");
}

#[test]
fn a_ghost_kept_by_somebody_outside_of_the_plan_promises_nothing() {
    let other = with(survivor(), |p| {
        p.id = ProcId { pid: Pid(601), start_ticks: 6010 };
        p.listens = vec![6006];
    });
    let view = seen(vec![(500, 5)], vec![survivor(), other]);
    let plan = zombies(&view, None);
    assert_eq!(pids(&plan), [600]);
    assert_eq!(plan.expected_total(), Bytes::ZERO);
}

#[test]
fn of_two_survivors_the_second_shares_what_the_first_has() {
    let other = with(survivor(), |p| p.id = ProcId { pid: Pid(601), start_ticks: 6010 });
    let view = seen(vec![(500, 5)], vec![survivor(), other]);
    let plan = zombies(&view, None);
    assert_eq!(pids(&plan), [600, 601]);
    let held: Vec<String> = plan.rows.iter().map(vramlens::analyze::PlanRow::holds).collect();
    assert_eq!(held, ["5.0 GiB", "shared"]);
    assert!(
        plan.rows[1].why().starts_with("keeps what 600 keeps; zombie: "),
        "{}",
        plan.rows[1].why()
    );
    assert_eq!(plan.expected_total(), Bytes::gib(5));
    let told: Vec<_> = plan.rows.iter().map(vramlens::analyze::PlanRow::told).collect();
    assert_eq!(told, [Some(Reading::Value(Bytes::gib(5))), None], "counted once");
    assert_eq!(plan.expected_told(), Reading::Value(Bytes::gib(5)));
    let dialog = vramlens::runtime::kill::dialog(&plan);
    assert_eq!(dialog.rows[1].bytes, "shared");
}

#[test]
fn what_the_driver_does_not_tell_is_no_zero() {
    let mut untold = row(500, 0);
    untold.used = Reading::Absent(Why::NotSupported);
    let listed = with_rows(gpu(0), vec![untold, row(510, 3 * GIB)]);
    let view = watched(5, &[listed], &host(), &[ranks(), vec![init()]].concat()).1;
    let whole = plan(&view, &[id(500), id(510)], None);
    let told = |pid: u32| whole.rows.iter().find(|row| row.id.pid == Pid(pid)).unwrap().told();
    assert_eq!(told(500), Some(Reading::Absent(Why::NotSupported)));
    assert_eq!(told(510), Some(Reading::Value(Bytes::gib(3))));
    assert_eq!(told(450), Some(Reading::Value(Bytes::ZERO)), "it is in no list");
    assert_eq!(whole.expected_told(), Reading::Absent(Why::NotSupported), "3 GiB is not all");
    let known = plan(&view, &[id(510)], None);
    assert_eq!(known.expected_told(), Reading::Value(Bytes::gib(3)));
}

#[test]
fn a_part_of_what_is_held_is_not_told_as_all_of_it() {
    let view = seen(vec![(500, 20), (501, 1), (510, 3)], ranks());
    let mut plan = plan(&view, &[id(500)], None);
    assert_eq!(title(&plan), "End 3 processes, 21.0 GiB on GPU 0");
    let row = plan.rows.iter_mut().find(|row| row.id == id(500)).unwrap();
    assert_eq!(row.holds(), "20.0 GiB");
    row.untold = Some(Why::NoPermission);
    assert_eq!(row.holds(), "20.0 GiB+");
    assert_eq!(title(&plan), "End 3 processes, at least 21.0 GiB on GPU 0");
}

#[test]
fn what_a_manager_runs_gets_the_managers_command() {
    let managed = with(orphan(), |p| {
        p.cgroup = Reading::Value("/system.slice/vllm.service".to_owned());
        p.unit = Some("vllm.service".to_owned());
    });
    let view = seen(vec![(500, 5)], vec![managed]);
    let refused = plan(&view, &[id(500)], None);
    assert!(refused.is_empty());
    assert_eq!(refused.refused[0].command.as_deref(), Some("systemctl stop vllm.service"));
    let insisted = plan(&view, &[id(500)], Some(KillPreset::Now));
    assert_eq!(pids(&insisted), [500]);
    assert!(insisted.needs_typed_confirmation);
}

#[test]
fn each_manager_has_its_command() {
    let of = |process: ProcSample| {
        let view = seen(vec![(500, 5)], vec![process, process_named(320, "jupyter-lab")]);
        view.holders[0].verdict.manager.clone().map(|manager| manager.command)
    };
    let user = with(job(), |p| {
        p.unit = Some("ollama.service".to_owned());
        p.cgroup = Reading::Value("/user.slice/user@1000.service/app.slice/ollama.service".into());
    });
    assert_eq!(of(user).as_deref(), Some("systemctl --user stop ollama.service"));
    assert_eq!(of(docker(job())).as_deref(), Some("docker stop 4f5e6d7c8b9a"));
    let slurm = with(job(), |p| {
        p.slurm_job = Some("42".to_owned());
        p.cgroup = Reading::Value("/system.slice/slurmstepd.scope/job_42/step_0".to_owned());
    });
    assert_eq!(of(slurm).as_deref(), Some("scancel 42"));
    let kernel = env(job(), &[("JPY_PARENT_PID", "320")]);
    assert!(of(kernel).unwrap().starts_with("jupyter server list"));
    let mps = with(job(), |p| p.comm = "nvidia-cuda-mps".to_owned());
    assert_eq!(of(mps).as_deref(), Some("echo quit | nvidia-cuda-mps-control"));
    let ray = with(job(), |p| p.comm = "ray::IDLE".to_owned());
    assert_eq!(of(ray).as_deref(), Some("ray stop"));
    let hostile = with(job(), |p| p.unit = Some("a;reboot.service".to_owned()));
    assert_eq!(of(hostile), None, "no command is built from a hostile name");
    assert_eq!(of(job()), None);
}

fn process_named(pid: u32, comm: &str) -> ProcSample {
    process(pid, comm)
}

#[test]
fn another_users_process_gets_the_line_to_paste() {
    let theirs = with(orphan(), |p| {
        p.uid = Reading::Value(1001);
        p.user = Reading::Value("bo".to_owned());
    });
    let view = seen(vec![(500, 5)], vec![theirs.clone()]);
    let refused = plan(&view, &[id(500)], None);
    assert!(refused.is_empty());
    assert_eq!(refused.refused[0].reason, "belongs to bo (uid 1001)");
    assert_eq!(refused.refused[0].command.as_deref(), Some("sudo vramlens kill 500"));
    let mut root = host();
    root.euid = 0;
    let gpus = [with_rows(gpu(0), vec![row(500, GIB)])];
    let view = watched(5, &gpus, &root, &[theirs, init()]).1;
    assert_eq!(pids(&plan(&view, &[id(500)], None)), [500]);
}

#[test]
fn the_never_list_holds() {
    let kernel = with(cuda(process(500, "kworker"), &[0]), |p| p.flags = 0x0020_0000);
    let view = seen(vec![(500, 5)], vec![kernel]);
    assert!(plan(&view, &[id(500), id(1), id(9_999)], Some(KillPreset::Now)).is_empty());
    let screen = cuda(process(500, "Xorg"), &[0]);
    let view = seen(vec![(500, 5)], vec![screen]);
    assert!(plan(&view, &[id(500)], None).needs_typed_confirmation);
    let traced = with(job(), |p| p.tracer = Pid(77));
    let view = seen(vec![(500, 5)], vec![shell(), traced]);
    assert!(plan(&view, &[id(500)], None).needs_typed_confirmation);
}

#[test]
fn a_reused_pid_is_never_a_target() {
    let view = seen(vec![(500, 5)], vec![shell(), job()]);
    let stale = ProcId { pid: Pid(500), start_ticks: 1 };
    let refused = plan(&view, &[stale], None);
    assert!(refused.is_empty());
    assert!(refused.refused[0].reason.contains("somebody else has its pid"));
}

#[test]
fn nothing_is_ended_in_an_earlier_moment() {
    let gpus = [with_rows(gpu(0), vec![row(500, 5 * GIB)])];
    let (history, _) = watched(5, &gpus, &host(), &[shell(), job(), init()]);
    let mut past = moment(T0 + 6_000);
    past.at_boot_ms = Some(T0 + 2_000);
    let view = View::build(&history, &past);
    assert!(plan(&view, &[id(500)], None).is_empty());
    assert!(zombies(&view, None).is_empty());
}

#[test]
fn the_proof_counts_what_came_back() {
    let before = seen(vec![(500, 22), (501, 22)], vec![engine(), second_engine()]);
    let plan = zombies(&before, None);
    assert_eq!(pids(&plan), [500, 501]);
    let gone = seen(vec![], vec![]);
    let proof = proof_of(&before, &gone, &plan);
    assert_eq!(proof.sentence, "freed 44.0 of 44.0 GiB on GPU 0");
    assert!(proof.complete());
    assert_eq!(proof.unlisted, [id(500), id(501)]);
    let grown = seen(vec![(700, 40)], vec![cuda(process(700, "python"), &[0])]);
    let proof = proof_of(&before, &grown, &plan);
    assert_eq!(
        proof.freed_total(),
        Reading::Value(Bytes::gib(44)),
        "what another job took is counted in"
    );
}

fn second_engine() -> ProcSample {
    with(engine(), |p| {
        p.id = ProcId { pid: Pid(501), start_ticks: 5010 };
        p.parent = Pid(500);
    })
}

#[test]
fn the_proof_names_what_is_left_and_the_next_command() {
    let before = seen(vec![(500, 22), (501, 22)], vec![engine(), second_engine()]);
    let plan = zombies(&before, None);
    let stuck = with(second_engine(), |p| {
        p.state = ProcState::Uninterruptible;
        p.wait_channel = Some("request_wait_answer".to_owned());
        p.parent = Pid(1);
    });
    let proof = proof_of(&before, &seen(vec![(501, 22)], vec![stuck]), &plan);
    assert_eq!(proof.sentence, "freed 22.0 of 44.0 GiB on GPU 0");
    assert!(!proof.complete());
    assert_eq!(proof.remaining[0].pid, Pid(501));
    assert!(proof.remaining[0].reason.contains("/sys/fs/fuse/connections"));
}

#[test]
fn memory_that_does_not_come_back_stands_under_its_process() {
    let before = seen(vec![(500, 22)], vec![engine()]);
    let mut kept = gpu(0);
    kept.memory = Reading::Value(memory(80 * GIB, 20 * GIB, GIB));
    let after = watched(5, &[kept], &host(), &[init()]).1;
    let proof = proof_of(&before, &after, &zombies(&before, None));
    assert_eq!(proof.sentence, "freed 2.0 of 22.0 GiB on GPU 0");
    assert_eq!(proof.remaining[0].pid, Pid(500));
    assert!(proof.remaining[0].reason.starts_with("20.0 GiB on GPU 0 did not come back yet"));
}

#[test]
fn the_proof_finds_who_keeps_the_memory_of_a_killed_process() {
    let before = seen(vec![(500, 5)], vec![shell(), job()]);
    let plan = plan(&before, &[id(500)], None);
    let after = seen(vec![(500, 5)], vec![shell(), survivor()]);
    let proof = proof_of(&before, &after, &plan);
    assert_eq!(proof.sentence, "freed 0.0 of 5.0 GiB on GPU 0");
    assert_eq!(proof.remaining[0].command.as_deref(), Some("vramlens kill 600"));
}

#[test]
fn the_proof_sees_a_restart() {
    let server = with(args(job(), &["python", "serve.py"]), |p| p.parent = Pid(1));
    let again = with(server.clone(), |p| {
        p.id = ProcId { pid: Pid(700), start_ticks: 7_000 };
        p.group = Pid(700);
    });
    let before = seen(vec![(500, 5)], vec![server]);
    let plan = plan(&before, &[id(500)], Some(KillPreset::Now));
    let proof = proof_of(&before, &seen(vec![(700, 5)], vec![again]), &plan);
    assert_eq!(proof.remaining[0].pid, Pid(700));
    assert!(proof.remaining[0].reason.contains("started again"));
}
