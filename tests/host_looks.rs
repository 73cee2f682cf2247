//! What a probe makes of a tree of `/proc` that changes between its looks.

#[path = "support/procs.rs"]
mod procs;

use procs::{Process, Tree, at, of, pids};
use vramlens::host::{Options, Probe};
use vramlens::ids::Pid;
use vramlens::sample::{Reading, Why};
use vramlens::units::{Bytes, Percent};

fn init() -> Process {
    Process::new(1, "systemd").with(|process| {
        process.parent = 0;
        process.uid = 0;
        "0::/init.scope\n".clone_into(&mut process.cgroup);
    })
}

#[test]
fn later_looks_read_what_moves() {
    let tree = Tree::new();
    tree.put(&init());
    let mut process = Process::cuda(604, "python");
    tree.put(&process);
    let mut probe = tree.probe();
    probe.look(at(100_000), &[]);
    process.cpu_ticks += 150;
    process.written = 77;
    tree.put(&process);
    let tick = probe.look(at(101_000), &[]);
    let sample = of(&tick, 604).unwrap();
    assert_eq!(sample.cpu, Reading::Value(Percent(150.0)));
    assert_eq!(sample.written, Some(Bytes(0)));
    let tick = probe.look(at(105_000), &[]);
    assert_eq!(of(&tick, 604).unwrap().written, Some(Bytes(77)));
    // It closes its devices.
    process.files.truncate(3);
    tree.put(&process);
    let tick = probe.look(at(120_000), &[]);
    assert_eq!(of(&tick, 604).map(|sample| sample.devices.value().unwrap().any()), Some(false));
    assert_eq!(pids(&probe.look(at(121_000), &[])), [0_u32; 0]);
}

#[test]
fn a_first_look_begun_before_anybody_asks_ends_as_one_that_was_not() {
    let tree = Tree::new();
    tree.put(&init());
    for pid in 2000..2040 {
        tree.put(&Process::new(pid, "idle"));
    }
    tree.put(&Process::cuda(604, "python"));
    tree.put(&Process::cuda(3000, "hidden"));
    let whole = tree.probe().look(at(200_000), &[Pid(604)]);
    assert_eq!(pids(&whole), [1, 604, 3000]);
    for asked_for_after in [0, 1, 7, 30, 1000] {
        let mut probe = tree.probe();
        let left = std::cell::Cell::new(asked_for_after);
        probe.prepare(at(199_900), &|| {
            left.set(left.get() - 1);
            left.get() < 0
        });
        let tick = probe.look(at(200_000), &[Pid(604)]);
        assert_eq!(tick.procs, whole.procs, "asked for after {asked_for_after}");
        assert_eq!(tick.scan.processes, whole.scan.processes);
        assert_eq!(tick.scan.unreadable, 0);
        assert!(tick.scan.scanned_boot_ms.is_some());
    }
}

#[test]
fn many_at_once_are_all_there_in_the_first_look() {
    let tree = Tree::new();
    tree.put(&init());
    let listed: Vec<Pid> = (1000..1300).map(Pid).collect();
    for pid in &listed {
        tree.put(&Process::cuda(pid.0, "python"));
    }
    let tick = tree.probe().look(at(200_000), &listed);
    for pid in &listed {
        let sample = of(&tick, pid.0).unwrap();
        assert!(sample.cmdline.value().is_some_and(|words| !words.is_empty()), "{pid:?}");
        assert!(sample.written.is_some() && sample.environment.is_some(), "{pid:?}");
    }
}

#[test]
fn a_reused_pid_is_another_process() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "python"));
    let mut probe = tree.probe();
    probe.look(at(100_000), &[Pid(604)]);
    tree.remove(604);
    assert_eq!(pids(&probe.look(at(101_000), &[Pid(604)])), [0_u32; 0]);
    tree.put(&Process::new(604, "innocent").with(|process| process.start_ticks = 10_100));
    let tick = probe.look(at(102_000), &[Pid(604)]);
    let sample = of(&tick, 604).unwrap();
    assert_eq!((sample.comm.as_str(), sample.id.start_ticks), ("innocent", 10_100));
    assert!(!sample.devices.value().unwrap().any());
}

#[test]
fn new_holders_are_seen_soon_and_old_ones_in_rotation() {
    let tree = Tree::new();
    tree.put(&init());
    for pid in 2000..2120 {
        tree.put(&Process::new(pid, "idle"));
    }
    let mut options = tree.options();
    options.slice_processes = 10;
    let mut probe = Probe::new(tree.path(""), options);
    let mut now = 200_000;
    let mut look = |probe: &mut Probe| {
        now += 1000;
        pids(&probe.look(at(now), &[]))
    };
    assert_eq!(look(&mut probe), [0_u32; 0]);
    // A new process opens the device some seconds after it has started.
    let young =
        |files: &[&str]| Process::new(3000, "new").open(files).with(|p| p.start_ticks = 20_000);
    tree.put(&young(&[]));
    for _ in 0..3 {
        assert_eq!(look(&mut probe), [0_u32; 0]);
    }
    tree.put(&young(&["dev/nvidia-uvm"]));
    let soon = (0..5).find(|_| look(&mut probe).contains(&3000));
    assert!(soon.is_some(), "a young process was not asked again");
    // An old one opens it, too.
    tree.put(&Process::new(2077, "idle").open(&["dev/nvidia-uvm"]));
    let later = (0..60).find(|_| look(&mut probe).contains(&2077));
    assert!(later.is_some(), "the rotation did not reach an old process");
}

#[test]
fn a_read_that_hangs_is_given_up_and_the_rest_is_there() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::cuda(604, "stuck"));
    tree.put(&Process::cuda(605, "python"));
    // Opening a FIFO that nobody writes to waits for ever, as the lock of a stuck process does.
    let cmdline = tree.path("proc/604/cmdline");
    std::fs::remove_file(&cmdline).unwrap();
    nix::unistd::mkfifo(&cmdline, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let options = Options { slow_read_ms: 300, slow_look_ms: 60_000, ..tree.options() };
    let mut probe = Probe::new(tree.path(""), options);
    let tick = probe.look(at(100_000), &[]);
    let stuck = of(&tick, 604).unwrap();
    assert_eq!(stuck.cmdline, Reading::Absent(Why::TimedOut));
    assert!(stuck.devices.value().unwrap().uvm);
    assert_eq!(of(&tick, 605).unwrap().cmdline.value().unwrap(), &["python"]);
    // It is not asked again at once, and never while one of its threads waits in the kernel.
    tree.put(&Process::cuda(604, "stuck").with(|process| process.state = 'D'));
    let tick = probe.look(at(101_000), &[]);
    assert_eq!(of(&tick, 604).unwrap().threads_in_d, 1);
    let tick = probe.look(at(400_000), &[]);
    assert_eq!(of(&tick, 604).unwrap().cmdline, Reading::Absent(Why::TimedOut));
}

#[test]
fn the_server_of_a_notebook_is_looked_at() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&Process::new(700, "jupyter-lab"));
    tree.put(&Process::cuda(604, "python").with(|process| {
        process.environment = vec!["JPY_PARENT_PID=700".to_owned()];
    }));
    assert_eq!(pids(&tree.look(&[604])), [1, 604, 700]);
    // In a PID namespace of its own the number means another process.
    tree.put(&Process::cuda(604, "python").with(|process| {
        process.environment = vec!["JPY_PARENT_PID=700".to_owned()];
        process.namespace_pids = vec![604, 7];
    }));
    assert_eq!(pids(&tree.look(&[604])), [1, 604]);
}

#[test]
fn a_probe_may_move_to_a_thread_of_its_own() {
    const fn movable<T: Send>() {}
    movable::<Probe>();
    movable::<vramlens::host::KillContext>();
}
