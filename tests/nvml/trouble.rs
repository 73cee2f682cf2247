//! Calls that fail or hang, GPUs that are lost, processes that die.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use vramlens::ids::GpuIndex;
use vramlens::sample::{Earlier, GpuSample, GpuTick, Reading, Tick, UnreadLists, Why};
use vramlens::source::Source;
use vramlens::units::Bytes;

use crate::{ONE, Rig, USUAL, clock, memory, processes, rows, value};

#[test]
fn a_lost_gpu_takes_nothing_else_down() {
    let gone = format!("count_calls = true\n{}", include_str!("../scenarios/lost.toml"));
    let there = gone.replace("lost = true", "lost = false");
    let mut rig = Rig::new(&there);
    rig.tick();
    let (before, asked) = (rig.tick(), rig.fake.calls("gpu:1"));
    let after = rig.change(&gone);
    let but_for_ages = |gpu: &GpuSample| GpuSample { earlier: Earlier::default(), ..gpu.clone() };
    assert_eq!(but_for_ages(&after.gpus[0]), but_for_ages(&before.gpus[0]));
    let lost = &after.gpus[1];
    assert_eq!((&lost.uuid, &lost.name), (&before.gpus[1].uuid, &before.gpus[1].name));
    assert_eq!(lost.memory, Reading::Absent(Why::GpuLost));
    assert_eq!(lost.processes, Reading::Absent(Why::GpuLost));
    assert_eq!(lost.temperature, Reading::Absent(Why::GpuLost));
    assert_eq!(lost.power_limit, Reading::Absent(Why::GpuLost));
    assert_eq!(lost.persistence, Reading::Absent(Why::GpuLost));
    // What was read before and would wait for its turn is not shown either.
    assert_eq!(lost.throttle, Reading::Absent(Why::GpuLost));
    assert_eq!(lost.earlier, Earlier::default());
    // It is asked one question a look, in case that it is back.
    assert_eq!(rig.fake.calls("gpu:1") - asked, 1);
    assert_eq!(but_for_ages(&rig.change(&there).gpus[1]), but_for_ages(&before.gpus[1]));
}

#[test]
fn a_gpu_that_the_driver_no_longer_counts_is_lost_and_not_forgotten() {
    let two = "[[gpu]]\nuuid = \"GPU-a\"\n[[gpu]]\nuuid = \"GPU-b\"\nname = \"Tesla\"";
    let mut rig = Rig::new(two);
    rig.tick();
    for _ in 0..12 {
        let tick = rig.change("[[gpu]]\nuuid = \"GPU-a\"");
        assert_eq!(tick.gpus.len(), 2);
        assert!(tick.gpus[0].memory.value().is_some());
        assert_eq!(tick.gpus[1].name, Reading::Value("Tesla".to_owned()));
        assert_eq!(tick.gpus[1].memory, Reading::Absent(Why::GpuLost));
    }
    let back = rig.change(two);
    assert!(back.gpus.iter().all(|gpu| gpu.memory.value().is_some()));
    assert_eq!(back.gpus.len(), 2);
}

#[test]
fn a_gpu_lost_from_the_start_is_listed_by_its_index() {
    let mut rig = Rig::new("[[gpu]]\n[[gpu]]\nlost = true");
    let tick = rig.tick();
    assert_eq!(tick.gpus[1].uuid.0.as_ref(), "GPU-unknown-1");
    assert_eq!(tick.gpus[1].memory, Reading::Absent(Why::GpuLost));
    assert!(tick.gpus[0].memory.value().is_some());
    // It is looked for again now and then.
    rig.fake.change("[[gpu]]\n[[gpu]]");
    let found = (0..12).map(|_| rig.tick()).find(|tick| tick.gpus[1].memory.value().is_some());
    let found = found.expect("a GPU that is back");
    assert_eq!(found.gpus[1].uuid.0.as_ref(), "GPU-00000000-0000-0000-0000-000000000001");
}

#[test]
fn a_list_that_is_never_large_enough_is_given_up() {
    let error = "[[error]]\ncall = \"nvmlDeviceGetComputeRunningProcesses_v3\"\ngpu = 0\ncode = 7";
    let mut rig = Rig::new(&format!("count_calls = true\n{ONE}\n[[gpu]]\n{error}"));
    let tick = rig.tick();
    assert_eq!(tick.gpus[0].processes, Reading::Absent(Why::Failed(7)));
    assert!(tick.gpus[0].memory.value().is_some());
    assert_eq!(processes(&tick.gpus[1]), []);
    // Six for the first GPU, one for the second.
    assert_eq!(rig.fake.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 7);
}

#[test]
fn a_burst_of_processes_is_listed_whole() {
    let mut rig = Rig::new("[[gpu]]");
    assert_eq!(processes(&rig.tick().gpus[0]), []);
    let burst = "[[gpu]]\n[[burst]]\nprocs = 900\nbytes = 1048576\nevery_ms = 1\nfor_ms = 1";
    let tick = rig.change(burst);
    assert_eq!(processes(&tick.gpus[0]).len(), 900);
    assert_eq!(memory(&tick.gpus[0]).used, Bytes::mib(900));
}

#[test]
fn every_code_of_one_call_costs_one_field_of_one_gpu() {
    let whole = Rig::new("[[gpu]]\n[[gpu]]").tick();
    let ending = [1, 9, 18];
    let lost = [15, 28];
    let codes = (2..=30).chain([999]).filter(|code| !ending.contains(code) && !lost.contains(code));
    for code in codes {
        let error =
            format!("[[error]]\ncall = \"nvmlDeviceGetTemperature\"\ngpu = 1\ncode = {code}");
        let mut rig = Rig::new(&format!("[[gpu]]\n[[gpu]]\n{error}"));
        let tick = rig.tick();
        assert!(tick.gpus[1].temperature.value().is_none(), "code {code}");
        let mut rest = tick.gpus;
        rest[1].temperature = whole.gpus[1].temperature;
        assert_eq!(rest, whole.gpus, "code {code}");
    }
}

#[test]
fn one_gpu_that_calls_for_a_new_session_does_not_end_the_others() {
    for code in [1, 9, 18] {
        let error =
            format!("[[error]]\ncall = \"nvmlDeviceGetMemoryInfo*\"\ngpu = 1\ncode = {code}");
        let mut rig = Rig::new(&format!("count_calls = true\n[[gpu]]\n[[gpu]]\n{error}"));
        for _ in 0..5 {
            let tick = rig.tick();
            assert!(tick.gpus[0].memory.value().is_some());
            assert_eq!(tick.gpus[1].memory, Reading::Absent(Why::Failed(code)));
            assert!(tick.gpus[1].temperature.value().is_some());
        }
        assert_eq!(rig.fake.calls("nvmlInit_v2"), 2, "code {code}");
    }
}

#[test]
fn a_call_that_hangs_is_named() {
    let mut rig = Rig::new("[[gpu]]\n[[gpu]]");
    rig.tick();
    let Rig { fake, mut source, progress, now_ms } = rig;
    fake.change(include_str!("../scenarios/stalled.toml"));
    let hung = std::thread::spawn(move || {
        let now = vramlens::ids::Stamp { boot_ms: now_ms + 1000, wall_ms: 0 };
        source.next(now, USUAL)
    });
    let named = wait_for(|| {
        let call = progress.current()?;
        (call.gpu == Some(GpuIndex(1)) && call.call == "nvmlDeviceGetMemoryInfo_v2").then_some(call)
    });
    assert!(named.since_boot_ms <= clock().boot_ms);
    assert!(!hung.is_finished());
    fake.change("[[gpu]]\n[[gpu]]");
    let tick = hung.join().unwrap().unwrap();
    assert!(matches!(tick, Some(Tick::Gpus(GpuTick { seq: 1, .. }))));
    assert_eq!(progress.current(), None);
}

#[test]
fn an_opening_that_hangs_is_named() {
    let stall = "[[gpu]]\n[[stall]]\ncall = \"nvmlInit_v2\"";
    let Rig { fake, mut source, progress, .. } = Rig::new(stall);
    let hung = std::thread::spawn(move || source.next(clock(), USUAL).map(drop));
    let named = wait_for(|| progress.current());
    assert_eq!((named.call, named.gpu), ("nvmlInit_v2", None));
    fake.change("[[gpu]]");
    hung.join().unwrap().unwrap();
}

#[test]
fn memory_and_processes_of_all_come_before_anything_slow() {
    let Rig { fake, mut source, progress, .. } = Rig::new(
        "count_calls = true\n[[gpu]]\n[[gpu]]\n[[stall]]\ncall = \"nvmlDeviceGetUtilizationRates\"",
    );
    let hung = std::thread::spawn(move || source.next(clock(), USUAL).map(drop));
    wait_for(|| progress.current().filter(|call| call.call == "nvmlDeviceGetUtilizationRates"));
    // The stand-in has counted the call that hangs before it hangs.
    wait_for(|| (fake.calls("nvmlDeviceGetUtilizationRates") == 1).then_some(()));
    assert_eq!(fake.calls("nvmlDeviceGetMemoryInfo_v2"), 2);
    assert_eq!(fake.calls("nvmlDeviceGetMPSComputeRunningProcesses_v3"), 2);
    fake.change("[[gpu]]\n[[gpu]]");
    hung.join().unwrap().unwrap();
}

#[test]
fn memory_comes_back_when_its_process_dies() {
    let mut holder = Sleeper::new();
    let scenario = format!(
        "follow_pids = true\n[[gpu]]\nprocess = [{{ pid = {}, bytes = 1073741824 }}]",
        holder.pid()
    );
    let mut rig = Rig::new(&scenario);
    assert_eq!(memory(&rig.tick().gpus[0]).used, Bytes::gib(1));
    holder.kill();
    let tick = wait_for(|| Some(rig.tick()).filter(|tick| processes(&tick.gpus[0]).is_empty()));
    assert_eq!(memory(&tick.gpus[0]).used, Bytes::ZERO);
}

#[test]
fn a_ghost_stays_while_its_survivor_lives() {
    let (mut holder, mut survivor) = (Sleeper::new(), Sleeper::new());
    let (dead, alive) = (holder.pid(), survivor.pid());
    let scenario = include_str!("../scenarios/ghost.toml")
        .replace("4194000", &dead.to_string())
        .replace("4194001", &alive.to_string());
    let mut rig = Rig::new(&scenario);
    holder.kill();
    let ghost = (dead, 1542, "C".to_owned());
    assert_eq!(rows(&rig.tick().gpus[0]), [ghost]);
    survivor.kill();
    wait_for(|| Some(rig.tick()).filter(|tick| processes(&tick.gpus[0]).is_empty()));
}

#[test]
fn unified_memory_is_absent_and_its_processes_are_not() {
    let mut rig = Rig::new(include_str!("../scenarios/unified.toml"));
    let tick = rig.tick();
    assert_eq!(tick.gpus[0].memory, Reading::Absent(Why::NotSupported));
    assert_eq!(rows(&tick.gpus[0]), [(8001, 20480, "C".to_owned())]);
    assert!((value(&processes(&tick.gpus[0])[0].sm).0 - 40.0).abs() < 0.01);
}

/// A process that does nothing until it is killed.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn kill(&mut self) {
        self.0.kill().expect("a process to kill");
        self.0.wait().expect("its end");
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for something that another thread or process does.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_list_of_graphics_or_mps_processes_that_fails_is_told_of_its_gpu() {
    let error = |list: &str, gpu: u32, code: u32| {
        let call = format!("nvmlDeviceGet{list}RunningProcesses*");
        format!("[[error]]\ncall = \"{call}\"\ngpu = {gpu}\ncode = {code}\n")
    };
    let (graphics, mps) = ("Graphics", "MPSCompute");
    let unread = |graphics, mps| UnreadLists { graphics, mps };
    let cases = [
        (error(mps, 1, 4), unread(None, Some(Why::NoPermission))),
        (error(mps, 1, 999), unread(None, Some(Why::Failed(999)))),
        (error(graphics, 1, 10), unread(Some(Why::TimedOut), None)),
        // A driver without such a list has nobody in it, whatever becomes of the other.
        (error(mps, 1, 3) + &error(graphics, 1, 26), unread(None, None)),
        (error(graphics, 1, 3) + &error(mps, 1, 4), unread(None, Some(Why::NoPermission))),
        (
            error(graphics, 1, 4) + &error(mps, 1, 10),
            unread(Some(Why::NoPermission), Some(Why::TimedOut)),
        ),
    ];
    for (errors, expected) in cases {
        let tick = Rig::new(&format!("[[gpu]]\n[[gpu]]\n{errors}")).tick();
        assert!(tick.gpus.iter().all(|gpu| gpu.processes == Reading::Value(Vec::new())));
        let told: Vec<_> = tick.gpus.iter().map(|gpu| gpu.unread_lists).collect();
        assert_eq!(told, [UnreadLists::default(), expected], "{errors}");
        assert_eq!(tick.nonsense.failed_lists, expected.count(), "{errors}");
    }
}
