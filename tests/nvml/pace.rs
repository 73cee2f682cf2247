//! What is asked at every look, what in turns, and how old a figure says that it is.

use std::collections::BTreeMap;

use vramlens::sample::{Earlier, GpuSample, Pcie, Throttle, Why};
use vramlens::units::{BytesPerSecond, Megahertz, Percent};

use super::*;

/// As a terminal of 160x50 shows it: with clocks and the traffic on the bus.
const SHOWN: Wants = Wants { pcie: true, process_utilization: true, details: true };

/// One GPU with a figure in every field.
const BEFORE: &str = "
count_calls = true
[[gpu]]
clocks = [345, 3201]
throttle = 1
performance_state = 8
fan = 30
pcie = [10, 20]
";
const AFTER: &str = "
count_calls = true
[[gpu]]
clocks = [1980, 1593]
throttle = 4
performance_state = 0
fan = 70
pcie = [1000, 2000]
";

/// The fields that take turns, of which each shows whether it is of before or of after a change.
fn is_new(gpu: &GpuSample) -> [bool; 4] {
    let rate = |kib: u64| BytesPerSecond(kib << 10);
    let bus = [(10, 20), (1000, 2000)].map(|(rx, tx)| Pcie { rx: rate(rx), tx: rate(tx) });
    let which = |old: bool, new: bool| {
        assert!(old || new, "{gpu:?}");
        new
    };
    [
        which(
            value(&gpu.memory_clock) == Megahertz(3201),
            value(&gpu.memory_clock) == Megahertz(1593),
        ),
        which(value(&gpu.performance_state) == 8, value(&gpu.performance_state) == 0),
        which(value(&gpu.fan) == Percent(30.0), value(&gpu.fan) == Percent(70.0)),
        which(value(&gpu.pcie) == bus[0], value(&gpu.pcie) == bus[1]),
    ]
}

fn counts(rig: &Rig, names: &[&'static str]) -> BTreeMap<&'static str, u64> {
    names.iter().map(|name| (*name, rig.fake.calls(name))).collect()
}

const LISTS: [&str; 3] = [
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
];

#[test]
fn a_usual_look_makes_ten_calls_a_gpu_at_the_most() {
    // So often in twenty looks, of each GPU.
    let expected = [
        ("nvmlDeviceGetMemoryInfo_v2", 20),
        (LISTS[0], 20),
        ("nvmlDeviceGetUtilizationRates", 20),
        ("nvmlDeviceGetTemperature", 20),
        ("nvmlDeviceGetPowerUsage", 20),
        ("nvmlDeviceGetProcessUtilization", 20),
        // Of the multiprocessors 20, of the memory 5.
        ("nvmlDeviceGetClockInfo", 25),
        // Five for each direction.
        ("nvmlDeviceGetPcieThroughput", 10),
        ("nvmlDeviceGetCurrentClocksEventReasons", 20),
        ("nvmlDeviceGetPerformanceState", 5),
        (LISTS[1], 5),
        (LISTS[2], 5),
        ("nvmlDeviceGetEnforcedPowerLimit", 2),
        ("nvmlDeviceGetMigMode", 2),
        ("nvmlDeviceGetPersistenceMode", 2),
        // Not supported, which is asked again with the settings.
        ("nvmlDeviceGetFanSpeed_v2", 2),
    ];
    let each: u64 = expected.iter().map(|(_, each)| each).sum();
    assert!(each <= 20 * 10);
    let names = expected.map(|(name, _)| name);
    for (gpus, procs) in [(1, 3), (8, 64), (16, 400)] {
        let scenario =
            format!("count_calls = true\ngenerate = {{ gpus = {gpus}, procs = {procs} }}");
        let mut rig = Rig::new(&scenario);
        // The third look knows how much room the lists need.
        rig.next(SHOWN).unwrap();
        rig.next(SHOWN).unwrap();
        let (before, all) = (counts(&rig, &names), rig.fake.all_calls());
        for _ in 0..20 {
            let tick = rig.next(SHOWN).unwrap();
            // How many GPUs there are, and the settings of one, are above that.
            let made = tick.driver_calls;
            assert!(made <= gpus * 10 + 4, "{gpus} GPUs: {made}");
            assert_eq!(tick.gpus.len(), gpus as usize);
            assert!(tick.gpus.iter().all(|gpu| processes(gpu).len() == procs));
        }
        let after = counts(&rig, &names);
        for (name, each) in expected {
            assert_eq!(after[name] - before[name], each * u64::from(gpus), "{name}, {gpus} GPUs");
        }
        // Nothing else is asked, but for how many GPUs there are.
        assert_eq!(rig.fake.all_calls() - all, each * u64::from(gpus) + 20);
    }
}

#[test]
fn no_look_waits_for_the_bus_of_all_gpus() {
    let mut rig = Rig::new("count_calls = true\ngenerate = { gpus = 8, procs = 1 }");
    rig.next(SHOWN).unwrap();
    for _ in 0..8 {
        let before = rig.fake.calls("nvmlDeviceGetPcieThroughput");
        rig.next(SHOWN).unwrap();
        // Two GPUs, two directions, 20 ms each.
        assert_eq!(rig.fake.calls("nvmlDeviceGetPcieThroughput") - before, 4);
    }
}

#[test]
fn a_figure_that_was_not_read_has_its_age() {
    let mut rig = Rig::new(BEFORE);
    let first = rig.next(SHOWN).unwrap();
    assert_eq!(is_new(&first.gpus[0]), [false; 4]);
    assert_eq!(first.gpus[0].earlier, Earlier::default(), "the first look reads everything");
    let first_ms = rig.now_ms;
    rig.fake.change(AFTER);
    let mut all_new = None;
    for look in 1..=4 {
        let gpu = rig.next(SHOWN).unwrap().gpus.remove(0);
        assert_eq!(value(&gpu.sm_clock), Megahertz(1980), "what is read at every look");
        assert_eq!(value(&gpu.throttle), Throttle(4), "a word that is always there");
        let [memory_clock, state, fan, pcie] = is_new(&gpu);
        let Earlier { details_boot_ms, pcie_boot_ms, lists_boot_ms, .. } = gpu.earlier;
        // Of several readings the oldest is told.
        let details = [memory_clock, state, fan];
        assert_eq!(details.contains(&false), details_boot_ms == Some(first_ms));
        assert_eq!(!pcie, pcie_boot_ms == Some(first_ms));
        if is_new(&gpu) == [true; 4] {
            all_new = all_new.or(Some(look));
        }
        let stamps = [details_boot_ms, pcie_boot_ms, lists_boot_ms];
        for read_ms in stamps.into_iter().flatten() {
            assert!(rig.now_ms - read_ms <= 3_000, "look {look}: {gpu:?}");
        }
    }
    assert_eq!(all_new, Some(4), "three looks later at the most");
}

#[test]
fn a_look_by_hand_reads_everything() {
    let mut rig = Rig::new(BEFORE);
    rig.next(SHOWN).unwrap();
    rig.fake.change(AFTER);
    rig.progress.wake();
    let gpu = rig.next(SHOWN).unwrap().gpus.remove(0);
    assert_eq!((is_new(&gpu), in_turns(&gpu)), ([true; 4], Earlier::default()));
}

/// Without the settings, which are read every ten seconds.
fn in_turns(gpu: &GpuSample) -> Earlier {
    Earlier { settings_boot_ms: None, ..gpu.earlier }
}

#[test]
fn looks_that_are_far_apart_read_everything() {
    let mut rig = Rig::new(BEFORE);
    rig.next(SHOWN).unwrap();
    for (scenario, new) in [(AFTER, true), (BEFORE, false), (AFTER, true)] {
        rig.fake.change(scenario);
        rig.now_ms += 3_000;
        let gpu = rig.next(SHOWN).unwrap().gpus.remove(0);
        assert_eq!((is_new(&gpu), in_turns(&gpu)), ([new; 4], Earlier::default()));
    }
}

#[test]
fn what_is_wanted_from_now_on_is_read_at_once() {
    let mut rig = Rig::new(BEFORE);
    rig.next(SHOWN).unwrap();
    let unseen = rig.tick().gpus.remove(0);
    assert_eq!(unseen.pcie, Reading::Absent(Why::NotAsked));
    assert_eq!(unseen.fan, Reading::Absent(Why::NotAsked));
    assert_eq!(unseen.earlier.pcie_boot_ms, None, "what is absent has no age");
    rig.fake.change(AFTER);
    let seen = rig.next(SHOWN).unwrap().gpus.remove(0);
    assert_eq!(is_new(&seen), [true; 4], "nothing of before is kept");
}

#[test]
fn what_fails_in_its_turn_is_absent_and_comes_back_at_the_next_look() {
    let mut rig = Rig::new(BEFORE);
    rig.next(SHOWN).unwrap();
    let calls =
        ["PcieThroughput", "CurrentClocks*", "ClockInfo", "PerformanceState", "FanSpeed_v2"];
    let error = |call| format!("[[error]]\ncall = \"nvmlDeviceGet{call}\"\ncode = 999\n");
    rig.fake.change(&(AFTER.to_owned() + &calls.map(error).concat()));
    for _ in 0..4 {
        rig.next(SHOWN).unwrap();
    }
    let failed = rig.next(SHOWN).unwrap().gpus.remove(0);
    let why = Some(Why::Failed(999));
    let whys = [failed.throttle.why(), failed.memory_clock.why(), failed.performance_state.why()];
    assert_eq!((whys, failed.fan.why(), failed.pcie.why()), ([why; 3], why, why));
    let old = Earlier { lists_boot_ms: None, ..in_turns(&failed) };
    assert_eq!(old, Earlier::default(), "what is absent has no age");
    rig.fake.change(AFTER);
    let back = rig.next(SHOWN).unwrap().gpus.remove(0);
    assert_eq!(is_new(&back), [true; 4]);
}

fn with(rows: &str) -> String {
    format!("count_calls = true\n[[gpu]]\nprocess = [{rows}]")
}

const COMPUTE: &str = "{ pid = 10, bytes = 104857600 }";

#[test]
fn a_drawing_process_with_memory_is_seen_at_once() {
    for kind in ["G", "M"] {
        let mut rig = Rig::new(&with(COMPUTE));
        for _ in 0..2 {
            rig.tick();
        }
        for look in 0..4 {
            let came = format!("{COMPUTE}, {{ pid = 11, bytes = 1048576, kinds = \"{kind}\" }}");
            let there = rig.change(&with(&came)).gpus.remove(0);
            let expected = [(10, 100, "C".to_owned()), (11, 1, kind.to_owned())];
            assert_eq!(rows(&there), expected, "look {look}");
            // Nothing that is shown is of an earlier look than the list that it stands in.
            let gone = rig.change(&with(COMPUTE)).gpus.remove(0);
            assert_eq!(rows(&gone), [(10, 100, "C".to_owned())], "look {look}");
            rig.tick();
        }
    }
}

#[test]
fn a_row_of_an_other_list_is_never_of_an_earlier_look() {
    // One in two lists shrinks: the larger figure of before is not its own any more.
    let both = |mib: u64| format!("{{ pid = 10, bytes = {}, kinds = \"CG\" }}", mib << 20);
    let mut rig = Rig::new(&with(&both(300)));
    rig.tick();
    for mib in [200, 250, 100, 50, 1] {
        let gpu = rig.change(&with(&both(mib))).gpus.remove(0);
        assert_eq!(rows(&gpu), [(10, mib, "C+G".to_owned())]);
    }
    // One takes the place and the bytes of another.
    let drawing =
        |pid: u32| format!("{COMPUTE}, {{ pid = {pid}, bytes = 1048576, kinds = \"G\" }}");
    rig.change(&with(&drawing(20)));
    for pid in 21..29 {
        let gpu = rig.change(&with(&drawing(pid))).gpus.remove(0);
        assert_eq!(rows(&gpu)[1], (pid, 1, "G".to_owned()));
    }
    // One without memory goes.
    let idle = "{ pid = 30, bytes = 0, kinds = \"G\" }";
    rig.change(&with(&format!("{COMPUTE}, {{ pid = 31, bytes = 1, kinds = \"G\" }}, {idle}")));
    rig.change(&with(idle));
    assert_eq!(processes(&rig.change(&with("")).gpus[0]), []);
}

#[test]
fn one_without_memory_yet_is_seen_three_looks_later_at_the_most() {
    for wait in 0..4 {
        let mut rig = Rig::new(&with(COMPUTE));
        for _ in 0..=wait {
            rig.tick();
        }
        let came = with(&format!("{COMPUTE}, {{ pid = 11, bytes = 0, kinds = \"G\" }}"));
        rig.fake.change(&came);
        let mut unseen = 0;
        loop {
            let gpu = rig.tick().gpus.remove(0);
            if processes(&gpu).len() == 2 {
                assert_eq!(rows(&gpu)[1], (11, 0, "G".to_owned()));
                break;
            }
            unseen += 1;
            let asked_ms = gpu.earlier.lists_boot_ms.expect("the age of what was found");
            assert!(rig.now_ms - asked_ms <= 3_000 && unseen <= 3, "{unseen}");
        }
    }
}

#[test]
fn lists_are_asked_again_when_memory_moves_that_nobody_explains() {
    let gpu = |unaccounted: u64, bytes: u64| {
        let row = format!("{{ pid = 10, bytes = {bytes} }}");
        format!(
            "count_calls = true\n[[gpu]]\nunaccounted = {unaccounted}\nprocess = [{row}]\n[[gpu]]"
        )
    };
    let mut rig = Rig::new(&gpu(0, 1 << 30));
    // After its turn, a look at which the first GPU is asked by nothing but a change.
    rig.tick();
    rig.tick();
    let asked = |rig: &mut Rig, scenario: &str| {
        let before = rig.fake.calls(LISTS[1]);
        rig.change(scenario);
        rig.fake.calls(LISTS[1]) - before
    };
    // The second GPU's turn is at the fourth look.
    assert_eq!(asked(&mut rig, &gpu(0, 2 << 30)), 0, "a process of the list grows");
    assert_eq!(asked(&mut rig, &gpu(1, 2 << 30)), 1, "what nobody explains grows");
}

#[test]
fn settings_are_read_every_ten_seconds_of_one_gpu_after_the_other() {
    let scenario = |watts: u32| format!("count_calls = true\n{}", settings_of(watts).repeat(8));
    let mut rig = Rig::new(&scenario(700));
    let first = rig.next(SHOWN).unwrap();
    assert!(first.gpus.iter().all(|gpu| gpu.earlier.settings_boot_ms.is_none()));
    rig.fake.change(&scenario(300));
    let before = rig.fake.calls("nvmlDeviceGetEnforcedPowerLimit");
    for second in 1..=11 {
        let asked = rig.fake.calls("nvmlDeviceGetEnforcedPowerLimit");
        let tick = rig.next(SHOWN).unwrap();
        assert!(rig.fake.calls("nvmlDeviceGetEnforcedPowerLimit") - asked <= 1);
        assert!(tick.driver_calls <= 8 * 10, "second {second}: {}", tick.driver_calls);
        for gpu in &tick.gpus {
            let read_ms = gpu.earlier.settings_boot_ms.expect("read after a look");
            let old = value(&gpu.power_limit).0 == 700_000;
            assert_eq!(old, read_ms == 1_001_000, "{gpu:?}");
            assert!(rig.now_ms - read_ms <= 11_000);
        }
    }
    assert_eq!(rig.fake.calls("nvmlDeviceGetEnforcedPowerLimit") - before, 8);
    let last = rig.next(SHOWN).unwrap();
    assert!(last.gpus.iter().all(|gpu| value(&gpu.power_limit).0 == 300_000));
}

fn settings_of(watts: u32) -> String {
    format!("[[gpu]]\npower_limit_mw = {watts}000\nfan = 30\n")
}
