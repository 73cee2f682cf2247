//! Each call with each code, from the start and in the middle, and in pairs.

use super::figures::{unsaid, wrongs};
use super::session::{MACHINE, Session};
use super::{codes, error, table};
use crate::fake::Fake;

/// Walks cases: the fault from the start, the cure, and the fault in the middle.
fn walk(cases: impl Iterator<Item = (String, String)>) -> usize {
    let fake = Fake::new(MACHINE);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (case, fault) in cases {
        // Not found: no sample since the last look, because every process was idle.
        if case.starts_with("nvmlDeviceGetProcessUtilization 6") {
            continue;
        }
        count += 1;
        fake.change(&format!("{MACHINE}{fault}"));
        let mut session = Session::new(&fake);
        for _ in 0..2 {
            session.look();
        }
        let shown = session.shown();
        wrong.extend(wrongs(&shown, session.ticks, &format!("{case} at the start")));
        wrong.extend(unsaid(&shown, session.error.as_ref(), &format!("{case} at the start")));
        // Where it is away the library is left alone for ever longer.
        fake.change(MACHINE);
        let healed = (0..64).any(|_| {
            session.look();
            let gpus = session.history.gpu_tick().map_or(&[][..], |tick| &tick.gpus);
            session.error.is_none()
                && gpus.len() == 2
                && gpus.iter().all(|gpu| gpu.memory.value().is_some() && gpu.unlisted().is_none())
        });
        if !healed {
            wrong.push(format!("{case}: it does not recover: {:?}", session.error));
            continue;
        }
        fake.change(&format!("{MACHINE}{fault}"));
        session.look();
        let shown = session.shown();
        wrong.extend(wrongs(&shown, session.ticks, &format!("{case} in the middle")));
        wrong.extend(unsaid(&shown, session.error.as_ref(), &format!("{case} in the middle")));
        assert_eq!(fake.complaint(), None);
    }
    let some: Vec<_> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} wrongs, among them\n{}", wrong.len(), some.join("\n"));
    count
}

#[test]
fn every_call_with_every_code() {
    let calls = table();
    let cases = calls.iter().flat_map(|call| {
        codes().map(move |code| (format!("{call} {code}"), error(call, None, code)))
    });
    assert!(walk(cases) >= 45 * 32 - 1);
}

#[test]
fn one_gpu_with_the_codes_that_mean_most() {
    let calls = table();
    // Uninitialised, not supported, no permission, too small, no driver, timeout, lost, unknown.
    let codes = [1, 3, 4, 7, 9, 10, 15, 999];
    let cases = calls.iter().flat_map(|call| {
        codes.map(|code| (format!("{call} {code} on GPU 1"), error(call, Some(1), code)))
    });
    assert!(walk(cases) >= 45 * 8);
}

#[test]
fn pairs_of_calls() {
    const PAIRS: [&str; 9] = [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetCount_v2",
    ];
    let mut cases = Vec::new();
    for (n, first) in PAIRS.iter().enumerate() {
        for second in &PAIRS[n + 1..] {
            for (one, other) in [(4, 999), (15, 3), (999, 15), (2, 1)] {
                let fault = error(first, None, one) + &error(second, Some(0), other);
                cases.push((format!("{first} {one} and {second} {other}"), fault));
            }
        }
    }
    assert_eq!(walk(cases.into_iter()), 144);
}
