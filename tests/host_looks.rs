//! What a probe makes of a tree of `/proc` that changes between its looks.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/procs.rs"]
mod procs;

use std::os::unix::fs::MetadataExt as _;

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

/// One with everything that only a holder has.
fn busy() -> Process {
    Process::cuda(604, "python").with(|process| {
        process.environment = vec!["RANK=3".to_owned()];
        process.files.extend(["dev/socket", "/m/llama.gguf"].map(ToOwned::to_owned));
        "7f-80 r--p 0 fe:0 9 /m/mapped.gguf\n".clone_into(&mut process.maps);
        process.written = 8192;
    })
}

/// The same with a thread that hangs: nothing is read of it then that takes a lock of the process.
fn stuck() -> Process {
    busy().with(|process| {
        process.other_threads = vec![(610, 'D'), (611, 'S')];
        "nvidia_ioctl".clone_into(&mut process.wait_channel);
    })
}

/// A socket in its files, on which it listens at port 8080.
fn listens(tree: &Tree, pid: u32) {
    let path = tree.path("dev/socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let inode = std::fs::metadata(&path).unwrap().ino();
    let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid";
    let row = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000";
    let text = format!("{head}  timeout inode\n{row}        0 {inode} 1 0 100 0 0 10 0\n");
    tree.write(&format!("proc/{pid}/net/tcp"), text);
}

#[test]
fn a_holder_that_becomes_a_relative_lets_go_of_what_only_holders_have() {
    let tree = Tree::new();
    tree.put(&init());
    tree.put(&busy());
    listens(&tree, 604);
    tree.put(&Process::cuda(605, "worker").below(604, 604));
    let mut probe = tree.probe();
    probe.look(at(100_000), &[Pid(604), Pid(605)]);
    tree.put(&stuck());
    let tick = probe.look(at(110_000), &[Pid(604), Pid(605)]);
    let holder = of(&tick, 604).unwrap();
    assert_eq!((holder.listens.as_slice(), holder.in_d()), ([8080].as_slice(), Reading::Value(1)));
    assert_eq!(holder.model_files, ["/m/llama.gguf", "/m/mapped.gguf"]);
    assert_eq!(holder.wait_channel.as_deref(), Some("nvidia_ioctl"));
    assert!(holder.written.is_some() && holder.environment.is_some());
    // It closes its devices, and stays as the parent of another holder.
    let mut process = stuck();
    process.files.truncate(3);
    tree.put(&process);
    probe.look(at(120_000), &[Pid(605)]);
    let tick = probe.look(at(121_000), &[Pid(605)]);
    let relative = of(&tick, 604).unwrap();
    assert!(!relative.devices.value().unwrap().any());
    assert_eq!((relative.listens.len(), relative.model_files.len()), (0, 0));
    assert_eq!(relative.in_d(), Reading::Absent(Why::NotAsked));
    assert_eq!((relative.wait_channel.as_deref(), relative.written), (None, None));
    assert_eq!((relative.environment.is_none(), relative.stdio_deleted), (true, false));
    assert_eq!(relative.cmdline.value().unwrap(), &["python"], "what is still read");
}

/// Puts a directory where a file was, or a file where a directory was: neither can be read, by root
/// neither.
fn spoil(tree: &Tree, file: &str) {
    let path = tree.path(&format!("proc/604/{file}"));
    if path.is_dir() {
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "").unwrap();
    } else {
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
    }
}

/// The same holder before and after one of its files cannot be read any more.
fn spoiled(process: Process, file: &str) -> [vramlens::sample::ProcSample; 2] {
    let tree = Tree::new();
    tree.put(&init());
    let unit = "0::/system.slice/docker-4f5e6d7c8b9a00114f5e6d7c8b9a00114f5e6d7c8b9a00114f5e6d7c8b9a0011.scope\n";
    let process = process.with(|process| {
        process.tracer = 1;
        process.pending = 0x100;
        unit.clone_into(&mut process.cgroup);
    });
    tree.put(&process);
    listens(&tree, 604);
    let mut probe = tree.probe();
    let before = probe.look(at(100_000), &[Pid(604)]);
    spoil(&tree, file);
    let after = probe.look(at(140_000), &[Pid(604)]);
    [before, after].map(|tick| of(&tick, 604).unwrap().clone())
}

#[test]
fn what_goes_with_a_status_goes_with_it() {
    let [before, after] = spoiled(busy(), "status");
    assert_eq!((before.uid, before.tracer), (Reading::Value(1000), Pid(1)));
    assert_eq!(before.signals.unwrap().pending, 0x100);
    assert!(after.uid.value().is_none() && after.user.value().is_none());
    assert_eq!((after.signals, after.tracer), (None, Pid(0)));
}

#[test]
fn what_goes_with_a_cgroup_goes_with_it() {
    let [before, after] = spoiled(busy(), "cgroup");
    assert!(before.cgroup.value().is_some() && before.container.is_some());
    assert!(after.cgroup.value().is_none());
    assert_eq!((after.unit, after.container, after.frozen), (None, None, false));
}

#[test]
fn what_goes_with_a_list_of_files_goes_with_it() {
    let [before, after] = spoiled(busy(), "fd");
    assert_eq!(before.listens, [8080]);
    assert!(after.devices.value().is_none());
    assert_eq!((after.listens.len(), after.stdio_deleted), (0, false));
    // What it has mapped was not read there.
    assert_eq!(after.model_files, ["/m/mapped.gguf"]);
}

#[test]
fn threads_that_cannot_be_listed_are_not_none_in_d() {
    let [before, after] = spoiled(stuck(), "task");
    assert_eq!(before.in_d(), Reading::Value(1));
    assert!(matches!(after.in_d(), Reading::Absent(Why::Failed(_))), "{:?}", after.in_d());
    assert_eq!(after.wait_channel, None, "what one thread waits in is not said of another");
    // A thread whose state cannot be read may be the one that hangs.
    let [_, after] = spoiled(stuck(), "task/610/stat");
    assert!(matches!(after.in_d(), Reading::Absent(Why::Failed(_))), "{:?}", after.in_d());
    // One that was found is enough.
    let [_, after] = spoiled(stuck(), "task/611/stat");
    assert_eq!(after.in_d(), Reading::Value(1));
    assert_eq!(after.wait_channel.as_deref(), Some("nvidia_ioctl"));
}

#[test]
fn of_a_process_with_too_many_threads_nobody_says_that_none_hangs() {
    let tree = Tree::new();
    tree.put(&init());
    let threads = |state: char| (1000..1600).map(|tid| (tid, state)).collect();
    tree.put(&Process::cuda(604, "python").with(|process| process.other_threads = threads('S')));
    tree.put(&Process::cuda(605, "python").with(|process| process.other_threads = threads('D')));
    let tick = tree.look(&[604, 605]);
    assert_eq!(of(&tick, 604).unwrap().in_d(), Reading::Absent(Why::NotAsked));
    assert!(of(&tick, 605).unwrap().in_d().get().unwrap() >= 500);
}
