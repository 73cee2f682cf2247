//! Opening the library, and opening it again.

use std::sync::Arc;

use vramlens::ids::Stamp;
use vramlens::source::nvml::{NvmlOptions, NvmlSource};
use vramlens::source::{Progress, Source, SourceError, Wants};

use crate::fake::Fake;
use crate::{ONE, Rig, USUAL, clock};

fn source(library: &str) -> NvmlSource {
    let options = NvmlOptions { library: library.into(), pid_max: 4_194_304, events: false };
    NvmlSource::new(options, Arc::new(Progress::default()), clock)
}

#[test]
fn nothing_to_open_is_said() {
    let missing = source("/nowhere/libnvidia-ml.so.1").next(clock(), Wants::default());
    assert!(matches!(&missing, Err(SourceError::NoLibrary(why)) if why.contains("/nowhere")));
    let other = source("libc.so.6").next(clock(), Wants::default());
    assert!(matches!(&other, Err(SourceError::NoLibrary(why)) if why.contains("libc.so.6")));
    assert_eq!(Rig::new("").next(USUAL), Err(SourceError::NoGpu));
}

#[test]
fn a_refusal_is_named_and_mended_without_a_restart() {
    let cases = [
        (4, SourceError::NoPermission),
        (9, SourceError::NoDriver),
        (18, SourceError::VersionMismatch),
        (999, SourceError::Driver { call: "nvmlInit_v2", code: 999 }),
    ];
    for (code, error) in cases {
        let refusal = format!("[[error]]\ncall = \"nvmlInit_v2\"\ncode = {code}");
        let mut rig = Rig::new(&format!("{ONE}\n{refusal}"));
        assert_eq!(rig.next(USUAL), Err(error), "code {code}");
        rig.fake.change(ONE);
        let mended = (0..60).find_map(|_| rig.next(USUAL).ok());
        assert_eq!(mended.map(|tick| tick.gpus.len()), Some(1));
    }
}

#[test]
fn a_driver_that_is_away_is_left_alone_ever_longer() {
    let refusal = "[[error]]\ncall = \"nvmlInit_v2\"\ncode = 9";
    let mut rig = Rig::new(&format!("count_calls = true\n[[gpu]]\n{refusal}"));
    for _ in 0..120 {
        assert_eq!(rig.next(USUAL), Err(SourceError::NoDriver));
    }
    // After 0, 1, 3, 7, 15 and 31 seconds, and then every 30.
    assert_eq!(rig.fake.calls("nvmlInit_v2"), 8);
}

#[test]
fn a_reloaded_driver_is_opened_again_within_the_same_look() {
    let mut rig = Rig::new(&format!("count_calls = true\n{ONE}"));
    let before = rig.tick();
    let reloaded = format!("driver = \"590.1\"\nreloads = 1\ncount_calls = true\n{ONE}");
    let after = rig.change(&reloaded);
    assert_eq!(after.gpus, before.gpus);
    assert_eq!(after.driver.version.value().map(String::as_str), Some("590.1"));
    assert_eq!((before.seq, after.seq), (0, 1));
    assert_eq!(rig.fake.calls("nvmlInit_v2"), 2);
    rig.tick();
    assert_eq!(rig.fake.calls("nvmlInit_v2"), 2);
}

#[test]
fn a_driver_upgraded_while_in_use_is_said() {
    let mut rig = Rig::new(ONE);
    rig.tick();
    rig.fake.change(&format!("{ONE}\n[[error]]\ncall = \"nvml*\"\ncode = 18"));
    assert_eq!(rig.next(USUAL), Err(SourceError::VersionMismatch));
    assert_eq!(rig.next(USUAL), Err(SourceError::VersionMismatch));
    rig.fake.change(ONE);
    assert!((0..60).any(|_| rig.next(USUAL).is_ok()));
}

#[test]
fn a_gpu_that_is_added_is_seen() {
    let mut rig = Rig::new("[[gpu]]");
    rig.tick();
    assert_eq!(rig.change("[[gpu]]\n[[gpu]]").gpus.len(), 2);
}

#[test]
fn every_example_scenario_is_read() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios");
    let mut seen = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let fake = Fake::new(&text.replace("nvmlDeviceGetMemoryInfo*", "nothing"));
        let mut source = source(fake.library().to_str().unwrap());
        let tick = source.next(Stamp { boot_ms: 1, wall_ms: 1 }, Wants::ALL);
        assert!(tick.is_ok(), "{tick:?} {:?}", fake.complaint());
        seen += 1;
    }
    assert!(seen >= 8);
}
