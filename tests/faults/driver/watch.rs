//! The thread that waits for events: what its calls answer costs no figure, and is told where one
//! asks whether faults are watched for.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vramlens::ids::Stamp;

use super::figures::{all, is_figure};
use super::session::{MACHINE, Session, fixed, stamp};
use super::{codes, error};
use crate::fake::Fake;

/// Longest wait for what the thread does.
const DEADLINE: Duration = Duration::from_secs(40);
const WATCHED: [Value; 2] = [Value::Bool(true), Value::Bool(true)];
const FREE: &str = "nvmlEventSetFree";
const WAIT: &str = "nvmlEventSetWait_v2";

/// The calls that this thread makes, and no look does.
fn calls() -> Vec<String> {
    let defined = include_str!("../../fake_nvml/events.rs").split("fn nvml").skip(1);
    let name = |rest: &str| rest.split('(').next().map(|name| format!("nvml{name}"));
    let calls: Vec<_> = defined.filter_map(name).collect();
    assert_eq!(calls.len(), 5, "{calls:?}");
    calls
}

/// A session that watches, and one of a driver without a fault, looked at in turn.
struct Pair {
    fake: Fake,
    watching: Session,
    truth: Session,
    case: String,
}

impl Pair {
    fn new(case: &str, fault: &str, clock: fn() -> Stamp) -> Self {
        static FAULTLESS: LazyLock<Fake> = LazyLock::new(|| Fake::new(MACHINE));
        let fake = Fake::new(&format!("count_calls = true\n{MACHINE}{fault}"));
        let watching = Session::watching(&fake, clock);
        Self { fake, watching, truth: Session::new(&FAULTLESS), case: case.to_owned() }
    }

    fn change(&self, reloads: u32, rest: &str) {
        self.fake.change(&format!("count_calls = true\nreloads = {reloads}\n{MACHINE}{rest}"));
    }

    /// One look; every figure that is shown is right. Gives what is shown.
    fn look(&mut self) -> BTreeMap<String, Value> {
        self.watching.look();
        self.truth.look();
        let (shown, truth) = (all(&self.watching.json()), all(&self.truth.json()));
        for (place, value) in &shown {
            let wrong = value.is_number() && is_figure(place) && truth.get(place) != Some(value);
            assert!(!wrong, "{}: {place} is {value}", self.case);
        }
        shown
    }

    /// Looks until `right` says so of whether the GPUs are watched. No figure is missing in a look.
    fn until(&mut self, right: impl Fn(&[Value], &Fake) -> bool) {
        let end = Instant::now() + DEADLINE;
        loop {
            let shown = self.look();
            let figures = |all: &BTreeMap<String, Value>| {
                all.iter().filter(|(place, value)| value.is_number() && is_figure(place)).count()
            };
            assert_eq!(figures(&shown), figures(&all(&self.truth.json())), "{}", self.case);
            let watched = self.watched();
            if right(&watched, &self.fake) {
                return;
            }
            assert!(Instant::now() < end, "{}: {watched:?}", self.case);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn watched(&self) -> Vec<Value> {
        let gpus = self.watching.json()["gpus"].as_array().expect("GPUs").clone();
        gpus.iter().map(|gpu| gpu["xid"]["watched"].clone()).collect()
    }

    /// The driver is loaded anew, for which the thread has to end its watch.
    fn reload(&mut self, rest: &str) {
        self.change(1, rest);
        self.look();
        // An event ends the wait that is under way.
        self.change(1, &format!("{rest}[[event]]\nxid = 13\n"));
    }

    /// Looks until the watch has begun anew and all is as it was.
    fn recover(&mut self) {
        let end = Instant::now() + DEADLINE;
        let whole = |pair: &Self| {
            let tick = pair.watching.history.gpu_tick();
            let answers = |gpu: &vramlens::sample::GpuSample| gpu.memory.value().is_some();
            pair.watching.error.is_none() && tick.is_some_and(|tick| tick.gpus.iter().all(answers))
        };
        while !whole(self) || self.watched() != WATCHED {
            assert!(Instant::now() < end, "{}: {:?}", self.case, self.watched());
            self.look();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Why a GPU is not watched after this answer.
fn why(call: &str, code: u32) -> Value {
    let word = match code {
        // The wrapper has one word for a code and for a value that it does not know.
        31 if call != WAIT => "nonsense",
        3 | 26 => "not_supported",
        4 | 17 => "no_permission",
        10 => "timed_out",
        13 | 25 => "old_driver",
        15 | 28 => "gpu_lost",
        21 | 27 => "not_yet",
        code => return json!({ "absent": format!("failed:{code}") }),
    };
    json!({ "absent": word })
}

#[test]
fn every_code_is_told_and_costs_no_figure() {
    for call in calls() {
        for code in codes() {
            let mut pair = Pair::new(&format!("{call} {code}"), &error(&call, None, code), fixed);
            // A set that could not be freed says nothing of the GPUs, and a wait without an event
            // ends like that.
            let harmless = call == FREE || call == WAIT && code == 10;
            let expected = if harmless { WATCHED } else { [why(&call, code), why(&call, code)] };
            let made = |fake: &Fake| call == FREE || fake.calls(&call) > 0;
            pair.until(|watched, fake| watched == expected && made(fake));
            if call == FREE {
                pair.reload(&error(&call, None, code));
                pair.recover();
                assert!(pair.fake.calls(FREE) > 0, "{code}: no set was given back");
            }
        }
    }
}

#[test]
fn a_watch_that_was_refused_begins_with_the_next_driver() {
    for call in calls() {
        let mut pair = Pair::new(&call, &error(&call, None, 999), fixed);
        let expected = if call == FREE { WATCHED } else { [why(&call, 999), why(&call, 999)] };
        pair.until(|watched, _| watched == expected);
        pair.reload("");
        pair.recover();
    }
}

static NOW: AtomicU64 = AtomicU64::new(0);

fn moving() -> Stamp {
    stamp(NOW.load(Ordering::Relaxed))
}

#[test]
fn a_call_that_hangs_is_told_and_costs_no_figure() {
    let timed_out = json!({ "absent": "timed_out" });
    for call in calls() {
        let stall = format!("[[stall]]\ncall = \"{call}\"\n");
        let mut pair = Pair::new(&format!("{call} hangs"), "", moving);
        if call == FREE {
            pair.until(|watched, _| watched == WATCHED);
            pair.reload(&stall);
            let end = Instant::now() + DEADLINE;
            while pair.fake.calls(FREE) == 0 {
                assert!(Instant::now() < end, "no set is given back");
                pair.look();
            }
        } else {
            pair.change(0, &stall);
            pair.until(|_, fake| fake.calls(&call) > 0);
            assert_ne!(pair.watched(), [timed_out.clone(), timed_out.clone()], "not yet");
            // Nothing was heard of the thread for eleven seconds.
            NOW.fetch_add(11, Ordering::Relaxed);
            pair.until(|watched, _| watched == [timed_out.clone(), timed_out.clone()]);
        }
        let reloads = u32::from(call == FREE);
        pair.change(reloads, "");
        pair.recover();
    }
}
