//! Living processes that look like PyTorch, read by the same code as real ones.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vramlens::allocator::{Ask, Reader};
use vramlens::ids::{Pid, ProcId, Stamp};
use vramlens::sample::{AllocatorBackend, AllocatorBasis, AllocatorSample, Reading, Why};
use vramlens::units::Bytes;

use crate::layouts::{PATIENT, compare};
use crate::standin::shape::GENERATIONS;
use crate::standin::world::Truth;
use crate::torch::examples;

struct Host {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Host {
    fn start(torch: &str, loaded: bool) -> Self {
        let (examples, directory) = (examples(), TempDir::new().unwrap());
        let library = directory.path().join("libc10_cuda.so");
        std::fs::copy(examples.join("libfake_torch.so"), &library).unwrap();
        let argument = if loaded { library.as_path() } else { Path::new("-") };
        let mut child = Command::new(examples.join("torch_host"))
            .arg(argument)
            .arg(torch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut host = Self { child, input, output, directory };
        assert_eq!(host.line(), "ready");
        host
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        self.line()
    }

    fn truth(&mut self, command: &str) -> Truth {
        serde_json::from_str(&self.ask(command)).unwrap()
    }

    fn id(&self) -> ProcId {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        let start_ticks = fields.split_whitespace().nth(19).unwrap().parse().unwrap();
        ProcId { pid: Pid(self.child.id()), start_ticks }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const BLOCKS: Ask = Ask { blocks: true, ..QUICK };
const QUICK: Ask = Ask { blocks: false, vram: None, limits: PATIENT };

fn at(boot_ms: u64) -> Stamp {
    Stamp { boot_ms, wall_ms: boot_ms }
}

fn check(sample: &Reading<AllocatorSample>, truth: &Truth, now: Stamp) {
    let sample = sample.value().unwrap_or_else(|| panic!("{:?}", sample.why()));
    assert_eq!((sample.at, sample.backend), (now, AllocatorBackend::Native));
    assert_eq!(sample.basis, AllocatorBasis::Blocks);
    // The second device was never used.
    assert_eq!(sample.devices.len(), 1);
    compare(&sample.devices[0], truth, &[]);
}

#[test]
fn a_process_of_each_generation_is_read_exactly() {
    for shape in GENERATIONS {
        let mut host = Host::start(shape.torch, true);
        let (mut reader, id) = (Reader::default(), host.id());
        // Nothing was allocated: the library is there, the devices are, and none is in use.
        let empty = reader.read(id, at(0), &BLOCKS);
        assert_eq!(empty.value().map(|sample| sample.devices.len()), Some(0), "{empty:?}");
        for n in 1..12 {
            let truth = host.truth(&format!("step {}", n * 5));
            check(&reader.read(id, at(n), &BLOCKS), &truth, at(n));
        }
        let truth = host.truth("step 1");
        let quick = reader.read(id, at(50), &QUICK);
        compare(&quick.value().unwrap().devices[0], &truth, &[Why::NotAsked]);
        assert_eq!(quick.value().unwrap().basis, AllocatorBasis::Statistics);
    }
}

/// Freed blocks that a stream still works on keep their requested bytes, not their allocated ones.
#[test]
fn blocks_that_streams_await_are_read_exactly() {
    for shape in GENERATIONS {
        let mut host = Host::start(shape.torch, true);
        let (mut reader, id) = (Reader::default(), host.id());
        assert!(reader.read(id, at(0), &BLOCKS).value().is_some());
        host.truth("step 60");
        let truth = host.truth("pend");
        assert!(truth.arrays[8][0][0] > truth.arrays[4][0][0]);
        check(&reader.read(id, at(1), &BLOCKS), &truth, at(1));
        let quick = reader.read(id, at(2), &QUICK);
        compare(&quick.value().unwrap().devices[0], &truth, &[Why::NotAsked]);
        // And by one that meets it in this state.
        check(&Reader::default().read(id, at(3), &BLOCKS), &truth, at(3));
    }
}

#[test]
fn ten_thousand_blocks_are_read_exactly() {
    let mut host = Host::start("2.13", true);
    let truth = host.truth("fill 10000");
    assert!(truth.free_blocks > 4000);
    let mut reader = Reader::default();
    for n in 1..3 {
        check(&reader.read(host.id(), at(n), &BLOCKS), &truth, at(n));
    }
}

#[test]
fn a_deleted_library_does_not_matter() {
    let mut host = Host::start("2.11", true);
    std::fs::remove_file(host.directory.path().join("libc10_cuda.so")).unwrap();
    let truth = host.truth("step 60");
    check(&Reader::default().read(host.id(), at(1), &BLOCKS), &truth, at(1));
}

#[test]
fn a_library_that_comes_later_is_found_when_memory_grows() {
    let mut host = Host::start("2.5", false);
    let (mut reader, id) = (Reader::default(), host.id());
    let with = |vram| Ask { vram: Some(Bytes::mib(vram)), ..BLOCKS };
    let start = id.start_ticks * 10 + 3_600_000;
    let nothing = Reading::Absent(Why::NotSupported);
    assert_eq!(reader.read(id, at(start), &with(10)), nothing);
    let library = host.directory.path().join("libc10_cuda.so");
    assert_eq!(host.ask(&format!("load {}", library.display())), "loaded");
    let truth = host.truth("step 60");
    // An old process of the same size is not looked at again so soon.
    assert_eq!(reader.read(id, at(start + 5_000), &with(10)), nothing);
    check(&reader.read(id, at(start + 6_000), &with(600)), &truth, at(start + 6_000));
}

#[test]
fn a_young_process_is_looked_at_again_soon() {
    let mut host = Host::start("2.5", false);
    let (mut reader, id) = (Reader::default(), host.id());
    let start = id.start_ticks * 10;
    assert_eq!(reader.read(id, at(start), &BLOCKS), Reading::Absent(Why::NotSupported));
    let library = host.directory.path().join("libc10_cuda.so");
    host.ask(&format!("load {}", library.display()));
    let truth = host.truth("step 60");
    check(&reader.read(id, at(start + 2_000), &BLOCKS), &truth, at(start + 2_000));
}

/// Whatever is read while blocks move has to be possible.
fn check_possible(sample: &AllocatorSample) {
    for device in &sample.devices {
        let active = device.active.get().unwrap();
        assert!(device.allocated <= active && active <= device.reserved, "{device:?}");
        assert!(device.allocated <= device.peak_allocated.get().unwrap());
        assert!(device.reserved <= device.peak_reserved.get().unwrap());
        let Reading::Value(free) = &device.free else { continue };
        assert!(free.largest <= free.bytes && free.count >= u64::from(free.bytes.0 > 0));
        assert_eq!(free.sizes.iter().map(|row| row.size.0 * row.count).sum::<u64>(), free.bytes.0);
        if free.read_at.is_none() {
            assert_eq!(free.bytes.0 + active.0, device.reserved.0, "{device:?}");
        }
    }
}

#[test]
fn a_storm_is_read_without_impossible_states() {
    let mut host = Host::start("2.13", true);
    let (mut reader, id) = (Reader::default(), host.id());
    let truth = host.truth("step 40");
    check(&reader.read(id, at(1), &BLOCKS), &truth, at(1));
    assert_eq!(host.ask("storm"), "storm");
    let (end, mut read) = (Instant::now() + Duration::from_millis(1500), 0);
    for n in 2.. {
        let ask = if n % 2 == 0 { BLOCKS } else { QUICK };
        if let Reading::Value(sample) = reader.read(id, at(n), &ask) {
            check_possible(&sample);
            read += u64::from(sample.at == at(n));
        }
        if Instant::now() > end {
            break;
        }
    }
    let truth = host.truth("calm");
    check(&reader.read(id, at(1 << 20), &BLOCKS), &truth, at(1 << 20));
    assert!(read > 0);
}

#[test]
fn a_process_that_ends_while_it_is_read_is_gone() {
    let mut host = Host::start("2.11", true);
    let (mut reader, id) = (Reader::default(), host.id());
    host.truth("step 100");
    let killer = std::thread::spawn(move || {
        host.child.kill().unwrap();
        host.child.wait().unwrap();
        host
    });
    let end = Instant::now() + Duration::from_secs(20);
    for n in 0.. {
        match reader.read(id, at(n), &BLOCKS) {
            Reading::Absent(Why::Gone) => break,
            Reading::Value(sample) => check_possible(&sample),
            Reading::Absent(_) => {}
        }
        assert!(Instant::now() < end);
    }
    drop(killer.join().unwrap());
}

#[test]
fn another_program_in_the_same_process_is_not_taken_for_the_old_one() {
    let mut host = Host::start("2.11", true);
    let (mut reader, id) = (Reader::default(), host.id());
    let truth = host.truth("step 100");
    check(&reader.read(id, at(1), &BLOCKS), &truth, at(1));
    assert_eq!(host.ask("exec"), "exec");
    let end = Instant::now() + Duration::from_secs(20);
    for n in 2.. {
        match reader.read(id, at(n), &BLOCKS) {
            Reading::Absent(Why::NotSupported) => break,
            Reading::Value(sample) => check_possible(&sample),
            Reading::Absent(why) => assert_ne!(why, Why::Gone),
        }
        assert!(Instant::now() < end);
    }
}

#[test]
fn devices_that_vanish_are_not_read_from_memory() {
    let mut host = Host::start("2.0", true);
    let (mut reader, id) = (Reader::default(), host.id());
    let truth = host.truth("step 100");
    check(&reader.read(id, at(1), &BLOCKS), &truth, at(1));
    host.ask("vanish");
    assert_eq!(reader.read(id, at(2), &BLOCKS), Reading::Absent(Why::NotYet));
}

#[test]
fn a_reused_number_is_another_process() {
    let host = Host::start("2.0", true);
    let ProcId { pid, start_ticks } = host.id();
    let other = ProcId { pid, start_ticks: start_ticks + 1 };
    assert_eq!(Reader::default().read(other, at(1), &BLOCKS), Reading::Absent(Why::Gone));
    let none = ProcId { pid: Pid(u32::MAX), start_ticks };
    assert_eq!(Reader::default().read(none, at(1), &BLOCKS), Reading::Absent(Why::Gone));
}

#[test]
fn a_spent_budget_is_said_and_the_last_sample_kept() {
    let mut host = Host::start("2.10", true);
    let (mut reader, id) = (Reader::default(), host.id());
    let poor = Ask { limits: vramlens::allocator::Limits { bytes: 40, ..PATIENT }, ..BLOCKS };
    let truth = host.truth("step 100");
    assert_eq!(reader.read(id, at(0), &poor), Reading::Absent(Why::TimedOut));
    check(&reader.read(id, at(1_000), &BLOCKS), &truth, at(1_000));
    // Old figures come with their age.
    check(&reader.read(id, at(2_000), &poor), &truth, at(1_000));
    check(&reader.read(id, at(3_000), &BLOCKS), &truth, at(3_000));
}

#[test]
fn another_user_may_not_read() {
    const NOBODY: u32 = 65_534;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut host = Host::start("2.11", true);
    host.truth("step 50");
    let folder = host.directory.path();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.join("alloc_read");
    std::fs::copy(examples().join("alloc_read"), &program).unwrap();
    let run = |uid: u32| {
        let mut command = Command::new(&program);
        let output = command.arg(host.child.id().to_string()).uid(uid).gid(uid).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(0).contains("\"basis\":\"blocks\""));
    assert!(run(NOBODY).contains("\"absent\":\"no_permission\""));
}
