//! Drivers of other ages.

use vramlens::sample::{MemoryApi, Nonsense, Reading, Throttle, Why};
use vramlens::units::Bytes;

use crate::fake::{Fake, NOT_IN_470, NOT_IN_EARLY_535};
use crate::{ONE, Rig, memory, rows};

#[test]
fn a_470_driver_gives_memory_and_processes() {
    let scenario = format!("driver = \"470.256.02\"\ncuda = 11040\ncount_calls = true\n{ONE}");
    let mut rig = Rig::over(Fake::without(NOT_IN_470, &scenario));
    let tick = rig.tick();
    assert_eq!(tick.driver.cuda, Reading::Value("11.4".to_owned()));
    let memory = memory(&tick.gpus[0]);
    assert_eq!(memory.api, MemoryApi::V1);
    assert_eq!(memory.reserved, Reading::Absent(Why::OldDriver));
    assert_eq!(memory.used + memory.free, memory.total);
    assert_eq!(memory.used, Bytes(92_449_751_040 + 23_729_274_880 + 644_939_776));
    assert_eq!(rows(&tick.gpus[0])[1], (21233, 88166, "C".to_owned()));
    assert_eq!(tick.gpus[0].throttle, Reading::Value(Throttle(0)));
    assert_eq!(tick.nonsense, Nonsense::default());
    let second = rig.tick();
    assert_eq!(second.gpus[0].memory, tick.gpus[0].memory);
    assert_eq!(rig.fake.calls("nvmlDeviceGetComputeRunningProcesses_v2"), 2);
}

#[test]
fn a_driver_with_the_first_lists_only_gives_processes() {
    let v2 = [
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
        "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    ];
    let mut rig = Rig::over(Fake::without(&[NOT_IN_470, &v2].concat(), ONE));
    assert_eq!(rows(&rig.tick().gpus[0])[0], (20011, 22630, "C".to_owned()));
    let all =
        ["Compute", "Graphics", "MPSCompute"].map(|l| format!("nvmlDeviceGet{l}RunningProcesses"));
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let mut rig = Rig::over(Fake::without(&[NOT_IN_470, &v2, &all].concat(), ONE));
    assert_eq!(rig.tick().gpus[0].processes, Reading::Absent(Why::OldDriver));
}

#[test]
fn wide_rows_of_early_r535_are_read_right() {
    let right = rows(&Rig::new(ONE).tick().gpus[0]);
    let wide = format!("driver = \"535.54.03\"\nwide_v3 = true\n{ONE}");
    let mut rig = Rig::over(Fake::without(NOT_IN_EARLY_535, &wide));
    let tick = rig.tick();
    assert_eq!((rows(&tick.gpus[0]), tick.nonsense), (right.clone(), Nonsense::default()));
    // Without the second form the wide one is read.
    let hidden = [NOT_IN_EARLY_535, &["nvmlDeviceGetComputeRunningProcesses_v2"]].concat();
    let mut rig = Rig::over(Fake::without(&hidden, &wide));
    assert_eq!(rows(&rig.tick().gpus[0]), right);
    // Nothing tells the layout but the rows, which cannot be true: the older form is.
    let mut rig = Rig::new(&wide);
    assert_eq!(rows(&rig.tick().gpus[0]), right);
    assert_eq!(rows(&rig.tick().gpus[0]), right);
}
