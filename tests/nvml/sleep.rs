//! GPUs that sleep, and GPUs that are let sleep.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vramlens::host::Root;
use vramlens::host::power::Power;
use vramlens::sample::{Reading, Why};

use crate::fake::Fake;
use crate::{Rig, value};

const COUNTED: &str = "count_calls = true\n";
/// Whose driver may be unloaded, as on a machine of which GPUs may sleep.
const IDLE: &str = "[[gpu]]\npersistence = false\n";
const BUSY: &str =
    "[[gpu]]\npersistence = false\nprocess = [{ pid = 9001, bytes = 1073741824, sm = 40 }]\n";

/// Power files of so many GPUs at the stand-in's addresses.
struct Bus(TempDir);

impl Bus {
    fn new(gpus: usize) -> Self {
        let bus = Self(TempDir::new().unwrap());
        for gpu in 0..gpus {
            bus.put(gpu, "vendor", "0x10de\n");
            bus.put(gpu, "class", "0x030000\n");
            bus.put(gpu, "power/control", "auto\n");
            bus.put(gpu, "power/runtime_status", "active\n");
        }
        bus
    }

    fn put(&self, gpu: usize, name: &str, text: &str) {
        let folder = format!("sys/bus/pci/devices/0000:{:02x}:00.0", 0x1b + gpu);
        let path = self.0.path().join(folder).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn sleeps(&self, gpu: usize, sleeps: bool) {
        let state = if sleeps { "suspended\n" } else { "active\n" };
        self.put(gpu, "power/runtime_status", state);
    }

    fn rig(&self, scenario: &str, let_sleep: bool) -> Rig {
        let mut rig = Rig::new(&format!("{COUNTED}{scenario}"));
        let mut power = Power::new(Root::new(self.0.path()));
        rig.source = rig.source.sparing(Box::new(move || power.look()), let_sleep);
        rig
    }
}

/// Whether this process has the file open that the stand-in keeps open while it is initialised.
fn is_held(fake: &Fake) -> bool {
    let folder = fake.dir().canonicalize().unwrap();
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let opened = |link: PathBuf| std::fs::read_link(link).ok();
    links.filter_map(|entry| opened(entry.path())).any(|file: PathBuf| {
        file.extension().is_some_and(|end| end == Path::new("toml")) && file.starts_with(&folder)
    })
}

#[test]
fn where_all_sleep_the_library_is_not_even_opened() {
    let bus = Bus::new(2);
    bus.sleeps(0, true);
    bus.sleeps(1, true);
    let mut rig = bus.rig(&format!("{IDLE}{IDLE}"), true);
    for _ in 0..100 {
        let tick = rig.tick();
        assert_eq!((tick.gpus.len(), tick.driver_calls), (2, 0));
        for gpu in &tick.gpus {
            assert_eq!(gpu.memory, Reading::Absent(Why::Asleep));
            assert_eq!(gpu.processes, Reading::Absent(Why::Asleep));
        }
    }
    let any_call = rig.fake.dir().join("libnvidia-ml.so.1.calls");
    assert!(!any_call.exists(), "{:?}", std::fs::read_to_string(any_call));
    assert!(!is_held(&rig.fake));
}

#[test]
fn a_sleeper_is_left_alone_until_somebody_else_wakes_it() {
    let bus = Bus::new(2);
    bus.sleeps(1, true);
    let mut rig = bus.rig(&format!("{BUSY}{BUSY}"), true);
    for _ in 0..30 {
        let tick = rig.tick();
        assert_eq!(tick.gpus.len(), 2);
        assert!(tick.gpus[0].memory.value().is_some());
        assert_eq!(tick.gpus[1].memory, Reading::Absent(Why::Asleep));
        assert_eq!(tick.gpus[1].index.0, 1);
    }
    // Neither it nor a call that goes through all GPUs.
    for nothing in ["gpu:1", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID"] {
        assert_eq!(rig.fake.calls(nothing), 0, "{nothing}");
    }
    assert_eq!((rig.fake.calls("nvmlInit_v2"), rig.fake.calls("nvmlInitWithFlags")), (0, 1));

    bus.sleeps(1, false);
    let awake = rig.tick();
    assert!(awake.gpus.iter().all(|gpu| gpu.memory.value().is_some()));
    assert!(rig.fake.calls("gpu:1") > 0);

    // What was learned of it while it was awake is shown while it sleeps.
    bus.sleeps(1, true);
    let asleep = rig.tick();
    assert_eq!(asleep.gpus[1].uuid, awake.gpus[1].uuid);
    assert_eq!(value(&asleep.gpus[1].name), "NVIDIA H200");
    assert_eq!(asleep.gpus[1].power, Reading::Absent(Why::Asleep));
}

#[test]
fn a_library_that_does_not_know_unattached_gpus_is_opened_as_usual() {
    let bus = Bus::new(2);
    bus.sleeps(1, true);
    let refusal = "[[error]]\ncall = \"nvmlInitWithFlags\"\ncode = 2\n";
    let mut rig = bus.rig(&format!("{BUSY}{BUSY}{refusal}"), true);
    assert!(rig.tick().gpus[0].memory.value().is_some());
    assert_eq!((rig.fake.calls("nvmlInit_v2"), rig.fake.calls("gpu:1")), (1, 0));
}

#[test]
fn after_a_minute_without_use_it_is_let_go_and_then_only_its_power_is_looked_at() {
    let bus = Bus::new(1);
    let mut rig = bus.rig(IDLE, true);
    for _ in 0..60 {
        assert!(rig.tick().gpus[0].memory.value().is_some());
    }
    assert!(is_held(&rig.fake));
    // The sixty-first look ends the minute.
    rig.tick();
    assert_eq!(rig.fake.calls("nvmlShutdown"), 1);
    assert!(!is_held(&rig.fake));
    let calls = rig.fake.calls("gpu:0");
    for _ in 0..55 {
        let tick = rig.tick();
        assert_eq!(tick.gpus[0].memory, Reading::Absent(Why::LetSleep));
        assert_eq!(tick.driver_calls, 0);
    }
    bus.sleeps(0, true);
    for _ in 0..7200 {
        assert_eq!(rig.tick().gpus[0].memory, Reading::Absent(Why::Asleep));
    }
    assert_eq!((rig.fake.calls("gpu:0"), rig.fake.calls("nvmlInit_v2")), (calls, 1));

    rig.fake.change(&format!("{COUNTED}{BUSY}"));
    bus.sleeps(0, false);
    assert_eq!(rig.tick().gpus[0].processes.value().map(Vec::len), Some(1));
}

#[test]
fn one_that_stays_awake_is_looked_at_ever_more_rarely() {
    let bus = Bus::new(1);
    let mut rig = bus.rig(IDLE, true);
    for _ in 0..2 * 3600 {
        rig.tick();
    }
    // After 1, 2, 4, 8, 16, 32, 62 and 92 minutes: each a short look.
    let opened = rig.fake.calls("nvmlInit_v2");
    assert_eq!((opened, rig.fake.calls("nvmlShutdown")), (8, 8));
}

#[test]
fn in_use_or_kept_ready_or_by_the_users_will_nothing_is_let_go() {
    let kept = [
        (BUSY.to_owned(), true, "auto\n"),
        ("[[gpu]]\npersistence = false\nutilization = [7, 0]\n".to_owned(), true, "auto\n"),
        // Persistence mode.
        ("[[gpu]]\n".to_owned(), true, "auto\n"),
        (IDLE.to_owned(), false, "auto\n"),
        (IDLE.to_owned(), true, "on\n"),
        // Whether it is used cannot be told.
        (
            format!("{IDLE}[[error]]\ncall = \"nvmlDeviceGetComputeRunning*\"\ncode = 4\n"),
            true,
            "auto\n",
        ),
    ];
    for (scenario, let_sleep, control) in &kept {
        let bus = Bus::new(1);
        bus.put(0, "power/control", control);
        let mut rig = bus.rig(scenario, *let_sleep);
        for _ in 0..130 {
            rig.tick();
        }
        assert_eq!(rig.fake.calls("nvmlShutdown"), 0, "{scenario} {let_sleep} {control}");
    }
}

/// A library that is open holds every GPU.
#[test]
fn an_unused_one_is_let_go_when_nobody_uses_the_others_either() {
    let bus = Bus::new(2);
    let mut rig = bus.rig(&format!("{BUSY}{IDLE}"), true);
    for _ in 0..90 {
        assert!(rig.tick().gpus.iter().all(|gpu| gpu.memory.value().is_some()));
    }
    rig.fake.change(&format!("{COUNTED}{IDLE}{IDLE}"));
    for _ in 0..62 {
        rig.tick();
    }
    let tick = rig.tick();
    assert!(tick.gpus.iter().all(|gpu| gpu.memory == Reading::Absent(Why::LetSleep)), "{tick:?}");
    assert!(!is_held(&rig.fake));
}

#[test]
fn a_library_that_would_wake_the_sleeper_is_not_opened_for_the_others() {
    let bus = Bus::new(2);
    bus.sleeps(1, true);
    let mut rig = bus.rig(&format!("no_attach_knows_none = true\n{BUSY}{BUSY}"), true);
    for _ in 0..3 {
        let tick = rig.tick();
        assert_eq!(tick.gpus[0].memory, Reading::Absent(Why::Spared));
        assert_eq!(tick.gpus[1].memory, Reading::Absent(Why::Asleep));
    }
    assert_eq!((rig.fake.calls("nvmlInit_v2"), rig.fake.calls("gpu:1")), (0, 0));
    // The user may have a look all the same.
    rig.progress.wake();
    assert!(rig.tick().gpus.iter().all(|gpu| gpu.memory.value().is_some()));
    // And once nobody sleeps there is nothing to spare.
    bus.sleeps(1, false);
    assert!(rig.tick().gpus.iter().all(|gpu| gpu.memory.value().is_some()));
}

#[test]
fn the_user_can_have_a_look_all_the_same() {
    let bus = Bus::new(1);
    bus.sleeps(0, true);
    let mut rig = bus.rig(IDLE, true);
    rig.tick();
    rig.progress.wake();
    assert!(rig.tick().gpus[0].memory.value().is_some());
    // The kernel's word is obeyed again after that.
    assert_eq!(rig.tick().gpus[0].memory, Reading::Absent(Why::Asleep));
}
