//! XID events: a thread of their own that never delays a look.

use std::time::{Duration, Instant};

use vramlens::sample::{Reading, Why, XidEvent, XidReport};

use super::*;

/// Longest wait for something that must happen.
const DEADLINE: Duration = Duration::from_secs(20);

fn watching(fake: Fake) -> Rig {
    Rig::with(fake, true)
}

/// Looks until the report is as it should be.
fn until(rig: &mut Rig, mut right: impl FnMut(&XidReport) -> bool) -> XidReport {
    let end = Instant::now() + DEADLINE;
    loop {
        let report = rig.tick().xid;
        if right(&report) {
            return report;
        }
        assert!(Instant::now() < end, "{report:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn watched(report: &XidReport) -> Vec<Reading<()>> {
    report.watched.iter().map(|row| row.state).collect()
}

/// Looks until so many events came; gives GPU index by the last letters of its uuid, and number.
fn events(rig: &mut Rig, count: usize) -> Vec<XidEvent> {
    let mut all = Vec::new();
    until(rig, |report| {
        all.extend(report.events.iter().cloned());
        all.len() >= count
    });
    all
}

const TWO: &str = "[[gpu]]\n[[gpu]]\n";

#[test]
fn an_event_comes_with_its_number_and_its_gpu() {
    let mut rig = watching(Fake::new(TWO));
    let value = Reading::Value(());
    until(&mut rig, |report| watched(report) == [value, value]);
    let two = "[[event]]\ngpu = 1\nxid = 31\n[[event]]\ngpu = 0\nxid = 94\ngi = 3\nci = 1\n";
    rig.fake.change(&format!("{TWO}{two}"));
    let seen = events(&mut rig, 2);
    let told: Vec<_> = seen
        .iter()
        .map(|event| {
            let gpu = event.gpu.0.ends_with('1');
            (gpu, event.code, event.gpu_instance, event.compute_instance)
        })
        .collect();
    assert_eq!(told, [(true, 31, None, None), (false, 94, Some(3), Some(1))]);
    // Each is delivered once.
    assert!(rig.tick().xid.events.is_empty());
}

#[test]
fn without_the_wish_nobody_watches() {
    let mut rig = Rig::new("count_calls = true\n[[gpu]]\n[[event]]\nxid = 79\n");
    assert_eq!(rig.tick().xid, XidReport::default());
    assert_eq!(rig.fake.calls("nvmlEventSetCreate"), 0);
}

#[test]
fn what_a_card_or_a_driver_does_not_have_is_absent_with_its_reason() {
    let scenario = "[[gpu]]\nno_events = true\n[[gpu]]\n[[error]]\n\
                    call = \"nvmlDeviceRegisterEvents\"\ngpu = 1\ncode = 4\n";
    let mut rig = watching(Fake::new(scenario));
    let expected = [Reading::Absent(Why::NotSupported), Reading::Absent(Why::NoPermission)];
    until(&mut rig, |report| watched(report) == expected);
    for missing in ["nvmlEventSetCreate", "nvmlEventSetWait_v2", "nvmlEventSetFree"] {
        let mut rig = watching(Fake::without(&[missing], "[[gpu]]\n"));
        until(&mut rig, |report| watched(report) == [Reading::Absent(Why::OldDriver)]);
    }
}

#[test]
fn one_gpu_that_refuses_does_not_blind_the_others() {
    let scenario = "[[gpu]]\n[[gpu]]\n[[error]]\ncall = \"nvmlDeviceRegisterEvents\"\ngpu = 0\n\
                    code = 999\n[[event]]\ngpu = 1\nxid = 48\n";
    let mut rig = watching(Fake::new(scenario));
    let seen = events(&mut rig, 1);
    assert_eq!(seen[0].code, 48);
    until(&mut rig, |report| {
        watched(report) == [Reading::Absent(Why::Failed(999)), Reading::Value(())]
    });
}

#[test]
fn a_watch_that_hangs_delays_no_look() {
    let hangs = "count_calls = true\n[[gpu]]\n[[stall]]\ncall = \"nvmlEventSetWait_v2\"\n";
    let mut rig = watching(Fake::new(hangs));
    let end = Instant::now() + DEADLINE;
    while rig.fake.calls("nvmlEventSetWait_v2") == 0 {
        assert!(Instant::now() < end, "the watch does not begin");
        rig.tick();
    }
    for _ in 0..5 {
        assert!(rig.tick().gpus[0].memory.value().is_some());
    }
    // The driver is reloaded: the looks want the library closed, which the thread cannot do. They
    // go on all the same, with what the library says.
    rig.fake.change(&format!("reloads = 1\n{hangs}"));
    for _ in 0..8 {
        let said = rig.next(USUAL).map(|tick| tick.gpus[0].memory.value().is_some());
        assert!(said != Ok(true), "{said:?}");
    }
    rig.fake.change("reloads = 1\n[[gpu]]\n");
    let back = |rig: &mut Rig| rig.next(USUAL).is_ok_and(|t| t.gpus[0].memory.value().is_some());
    while !back(&mut rig) {
        assert!(Instant::now() < end, "the library is not opened anew");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn after_a_reload_of_the_driver_events_come_again() {
    let mut rig = watching(Fake::new("[[gpu]]\n"));
    until(&mut rig, |report| watched(report) == [Reading::Value(())]);
    rig.fake.change("reloads = 1\n[[gpu]]\n[[event]]\nxid = 119\n");
    assert_eq!(events(&mut rig, 1)[0].code, 119);
}
