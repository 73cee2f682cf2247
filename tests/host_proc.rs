//! What a probe makes of trees of `/proc`.

#[path = "support/procs.rs"]
mod procs;

use procs::{Process, Tree, at, of, pids};
use vramlens::host::{Options, Probe};
use vramlens::ids::Pid;
use vramlens::sample::{ProcState, Reading, Why};
use vramlens::units::Bytes;

fn init() -> Process {
    Process::new(1, "systemd").with(|process| {
        process.parent = 0;
        process.uid = 0;
        "0::/init.scope\n".clone_into(&mut process.cgroup);
    })
}

#[test]
fn holders_are_found_by_what_they_have_open() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "python").open(&["dev/nvidia1"]));
    tree.put(&Process::new(700, "monitor").open(&["dev/nvidiactl", "dev/nvidia0"]));
    tree.put(&Process::new(701, "compositor").open(&["dev/renderD128"]));
    tree.put(&Process::new(702, "bash").open(&["/dev/zero"]));
    let tick = tree.look(&[]);
    assert_eq!(pids(&tick), [1, 604, 700, 701]);
    let devices = of(&tick, 604).unwrap().devices.value().unwrap();
    assert!(devices.control && devices.uvm && !devices.drm && !devices.via_thread);
    assert_eq!((devices.minors.as_slice(), devices.count), ([0, 1].as_slice(), 4));
    let monitor = of(&tick, 700).unwrap().devices.value().unwrap();
    assert!(monitor.control && !monitor.uvm);
    assert!(of(&tick, 701).unwrap().devices.value().unwrap().drm);
    assert!(!of(&tick, 1).unwrap().devices.value().unwrap().any());
    assert_eq!(tick.scan.processes, 5);
    assert_eq!((tick.scan.unreadable, tick.scan.scanned_boot_ms), (0, Some(1_000_000)));
}

#[test]
fn facts_of_a_holder_are_complete() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "python").with(|process| {
        process.command = ["python", "train.py", "--lr", ""].map(ToOwned::to_owned).to_vec();
        process.environment =
            ["RANK=3", "HF_TOKEN=hf_secret", "SLURM_JOB_ID=99"].map(ToOwned::to_owned).to_vec();
        process.written = 8192;
        process.tracer = 1;
        process.pending = 0x100;
        process.wait_channel = "os_acquire_rwlock_write".to_owned();
        process.maps = "7f-80 r--p 0 fe:0 9 /m/model.safetensors\n".to_owned();
        process.files.push("/m/llama.gguf".to_owned());
    }));
    let tick = tree.look(&[604]);
    let sample = of(&tick, 604).unwrap();
    assert_eq!(sample.id.start_ticks, 1604);
    assert_eq!(sample.started_boot_ms, 16_040);
    let arguments = ["python", "train.py", "--lr"].map(ToOwned::to_owned).to_vec();
    assert_eq!(sample.cmdline, Reading::Value(arguments));
    assert_eq!(
        (sample.uid, sample.user.clone()),
        (Reading::Value(1000), Reading::Value("anna".to_owned()))
    );
    assert_eq!(sample.cpu, Reading::Absent(Why::NotYet));
    assert_eq!(sample.rss, Reading::Value(Bytes(250 * rustix::param::page_size() as u64)));
    assert_eq!(sample.unit.as_deref(), Some("session-7.scope"));
    assert_eq!(sample.slurm_job.as_deref(), Some("99"));
    assert_eq!(sample.tracer, Pid(1));
    assert_eq!(sample.signals.unwrap().pending, 0x100);
    assert_eq!(sample.wait_channel.as_deref(), Some("os_acquire_rwlock_write"));
    assert_eq!(sample.written, Some(Bytes(8192)));
    assert!(!sample.stdio_deleted);
    let environment = sample.environment.as_ref().unwrap().value().unwrap();
    let names: Vec<_> = environment.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["RANK", "SLURM_JOB_ID"]);
    assert_eq!(sample.model_files, ["/m/llama.gguf", "/m/model.safetensors"]);
    assert_eq!(sample.namespace_pids, [Pid(604)]);
    assert_eq!(of(&tick, 1).unwrap().environment, None);
    assert_eq!(tick.host.hostname, Reading::Value("box".to_owned()));
    let text = serde_json::to_string(&tick).unwrap();
    assert!(!text.contains("hf_secret"));
    assert_eq!(serde_json::from_str::<vramlens::sample::ProcTick>(&text).unwrap(), tick);
}

#[test]
fn survivors_of_a_dead_holder_come_with_their_family() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::new(500, "tini").below(1, 500));
    // The rank 604 is gone; its workers keep its group and session, and one has another parent.
    tree.put(&Process::cuda(605, "pt_data_worker").below(500, 604));
    tree.put(&Process::cuda(606, "pt_data_worker").below(1, 604));
    // A helper of the same group without a device, and one that belongs to somebody else.
    tree.put(&Process::new(607, "resource_track").below(500, 604));
    tree.put(&Process::new(608, "sudo").below(500, 604).with(|process| process.uid = 0));
    tree.put(&Process::new(900, "unrelated"));
    let tick = tree.look(&[604]);
    assert_eq!(pids(&tick), [1, 500, 605, 606, 607]);
    assert!(of(&tick, 604).is_none());
    assert_eq!(of(&tick, 605).unwrap().group, Pid(604));
}

#[test]
fn leaders_that_live_are_part_of_the_answer() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::new(300, "tmux: server"));
    tree.put(&Process::new(310, "bash").below(300, 310).with(|process| process.tty = 34816));
    tree.put(&Process::cuda(320, "python").below(310, 320).with(|process| {
        process.session = 310;
        process.tty = 34816;
    }));
    let tick = tree.look(&[320]);
    assert_eq!(pids(&tick), [1, 300, 310, 320]);
    assert_eq!(of(&tick, 300).unwrap().comm, "tmux: server");
    assert_eq!(of(&tick, 320).unwrap().tty, 34816);
}

#[test]
fn a_zombie_with_live_threads_holds_through_them() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "python").with(|process| {
        process.state = 'Z';
        process.other_threads = vec![(610, 'D'), (611, 'S')];
        process.wait_channel = "request_wait_answer".to_owned();
    }));
    tree.put(&Process::cuda(700, "python").with(|process| process.state = 'Z'));
    let tick = tree.look(&[604, 700]);
    let stuck = of(&tick, 604).unwrap();
    assert_eq!((stuck.state, stuck.threads, stuck.threads_in_d), (ProcState::Zombie, 3, 1));
    let devices = stuck.devices.value().unwrap();
    assert!(devices.via_thread && devices.uvm);
    assert_eq!(stuck.wait_channel.as_deref(), Some("request_wait_answer"));
    let defunct = of(&tick, 700).unwrap();
    assert!(!defunct.devices.value().unwrap().any());
    // Unlisted, only the one with threads is a holder.
    assert_eq!(pids(&tree.look(&[])), [1, 604]);
}

#[test]
fn odd_names_and_broken_files_do_no_harm() {
    let tree = Tree::new();
    tree.put(&init());
    for (n, name) in ["a b", ") R 1 1 1", "x\ny", "\u{1b}[31mred", "(", ""].iter().enumerate() {
        tree.put(&Process::cuda(800 + u32::try_from(n).unwrap(), name));
    }
    tree.put(&Process::cuda(820, "cut"));
    tree.write("proc/820/stat", "820 (cut) S 1");
    tree.put(&Process::cuda(821, "binary"));
    tree.write("proc/821/stat", [0xff; 300]);
    tree.put(&Process::cuda(822, "long"));
    tree.write("proc/822/cmdline", vec![b'a'; 1 << 20]);
    tree.write("proc/822/environ", vec![b'='; 1 << 20]);
    tree.write("proc/822/status", vec![b':'; 1 << 20]);
    tree.write("proc/not-a-pid/stat", "x");
    tree.write("proc/99999999999999/stat", "x");
    let tick = tree.look(&[820, 821, 822, 99, u32::MAX]);
    assert_eq!(pids(&tick), [1, 800, 801, 802, 803, 804, 805, 822]);
    assert_eq!(of(&tick, 801).unwrap().comm, ") R 1 1 1");
    assert_eq!(of(&tick, 802).unwrap().comm, "x\ny");
    let long = of(&tick, 822).unwrap();
    assert_eq!(long.cmdline.value().unwrap()[0].len(), 16 << 10);
    assert_eq!(long.uid, Reading::Absent(Why::Nonsense));
}

#[test]
fn what_cannot_be_read_is_counted_and_said() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::new(604, "python"));
    std::fs::remove_dir_all(tree.path("proc/604/fd")).unwrap();
    // Stands for a directory that may not be opened: root may open everything.
    tree.write("proc/604/fd", "");
    let tick = tree.look(&[604]);
    assert_eq!(tick.scan.unreadable, 1);
    assert!(matches!(of(&tick, 604).unwrap().devices, Reading::Absent(Why::Failed(_))));
    // Kernel threads have no files: they are not what could not be seen.
    tree.put(&Process::new(2, "kthreadd").with(|process| process.flags = 0x20_8040));
    std::fs::remove_dir_all(tree.path("proc/2/fd")).unwrap();
    tree.write("proc/2/fd", "");
    assert_eq!(tree.look(&[]).scan.unreadable, 1);
}

#[test]
fn a_thread_s_number_is_no_process() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "python"));
    // The kernel resolves the number of any thread, although it does not list it.
    tree.put(&Process::cuda(610, "python"));
    let status = std::fs::read_to_string(tree.path("proc/604/status")).unwrap();
    tree.write("proc/610/status", status);
    let tick = tree.look(&[604, 610]);
    assert_eq!(pids(&tick), [1, 604]);
    let root = vramlens::host::Root::new(tree.path(""));
    assert_eq!(vramlens::host::identify(&root, Pid(610)), Reading::Absent(Why::Gone));
    assert_eq!(vramlens::host::identify(&root, Pid(604)).value().unwrap().start_ticks, 1604);
}

#[test]
fn containers_units_and_jobs_are_named() {
    let id = "0123456789abcdef".repeat(4);
    let tree = Tree::new();
    tree.put(&init());
    let cgroups = [
        (10, format!("0::/system.slice/docker-{id}.scope\n"), Some("docker"), None, None),
        (
            11,
            format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n"),
            Some("kubepods"),
            None,
            None,
        ),
        (12, "0::/system.slice/ollama.service\n".to_owned(), None, Some("ollama.service"), None),
        (
            13,
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service\n".to_owned(),
            None,
            Some("vllm.service"),
            None,
        ),
        (
            14,
            "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n".to_owned(),
            None,
            Some("slurmstepd.scope"),
            Some("42"),
        ),
    ];
    for (pid, cgroup, ..) in &cgroups {
        tree.put(&Process::cuda(*pid, "python").with(|process| {
            process.cgroup.clone_from(cgroup);
            process.namespace_pids = vec![*pid, 1];
        }));
    }
    tree.write(
        "sys/fs/cgroup/system.slice/ollama.service/cgroup.events",
        "populated 1\nfrozen 1\n",
    );
    let tick = tree.look(&[]);
    for (pid, _, runtime, unit, job) in cgroups {
        let sample = of(&tick, pid).unwrap();
        assert_eq!(sample.container.as_ref().map(|c| c.runtime.as_str()), runtime, "{pid}");
        assert_eq!(sample.unit.as_deref(), unit, "{pid}");
        assert_eq!(sample.slurm_job.as_deref(), job, "{pid}");
        assert_eq!(sample.frozen, pid == 12);
        assert_eq!(sample.namespace_pids, [Pid(pid), Pid(1)]);
    }
}

#[test]
fn standard_streams_that_nobody_can_read_are_noted() {
    let tree = Tree::new();
    tree.put(&init());
    let with = |pid, streams: [&str; 3]| {
        let streams = streams.map(ToOwned::to_owned).to_vec();
        Process::new(pid, "python").with(|p| p.files = streams).open(&["dev/nvidia-uvm"])
    };
    tree.put(&with(10, ["/dev/null", "/x/log (deleted)", "/x/log (deleted)"]));
    tree.put(&with(11, ["/dev/null", "/x/log", "/x/log (deleted)"]));
    tree.put(&with(12, ["/dev/null", "/dev/null", "/dev/null"]));
    tree.put(&with(13, ["/dev/pts/9 (deleted)", "/dev/pts/9 (deleted)", "/dev/pts/9 (deleted)"]));
    let tick = tree.look(&[]);
    let deleted: Vec<_> =
        [10, 11, 12, 13].map(|pid| of(&tick, pid).unwrap().stdio_deleted).to_vec();
    assert_eq!(deleted, [true, false, false, true]);
}

#[test]
fn the_machine_s_facts_are_read_from_the_tree() {
    let tree = Tree::new();
    tree.put(&init());
    let host = tree.look(&[]).host;
    assert_eq!(host.container, None);
    assert_eq!(host.ptrace_scope, Reading::Absent(Why::NotSupported));
    assert_eq!(host.host_pid_namespace, Reading::Absent(Why::Gone));
    assert!(!host.wsl);
    tree.link("proc/self", "1");
    tree.link("proc/1/ns/pid", "pid:[4026531836]");
    tree.write("proc/1/mounts", "proc /proc proc rw,nosuid,hidepid=invisible 0 0\n");
    tree.write("proc/sys/kernel/yama/ptrace_scope", "1\n");
    tree.write("dev/dxg", "");
    tree.write(".dockerenv", "");
    let host = tree.look(&[]).host;
    assert_eq!(host.host_pid_namespace, Reading::Value(true));
    assert_eq!(host.hidepid, Reading::Value(true));
    assert_eq!(host.ptrace_scope, Reading::Value(1));
    assert_eq!(host.container.unwrap().runtime, "docker");
    assert!(host.wsl);
    tree.link("proc/1/ns/pid", "pid:[4026532200]");
    tree.write("proc/1/mounts", "proc /proc proc rw,hidepid=off 0 0\n");
    let host = tree.look(&[]).host;
    assert_eq!(host.host_pid_namespace, Reading::Value(false));
    assert_eq!(host.hidepid, Reading::Value(false));
}

#[test]
fn an_empty_or_missing_proc_is_an_empty_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut probe = Probe::new(dir.path(), Options::default());
    let tick = probe.look(at(1), &[Pid(1), Pid(0)]);
    assert!(tick.procs.is_empty());
    assert_eq!(tick.scan.processes, 0);
    assert_eq!(tick.host.hostname, Reading::Absent(Why::NotSupported));
}
