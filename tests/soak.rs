//! Thirty days in a minute: a simulated clock, a hundred thousand processes, and everything that
//! happens to a machine. Memory and open files stay flat, and what is shown at the end is right.
//! Both are counted for the whole process, so that nothing else is tested here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "soak/count.rs"]
mod count;
mod verdict_support;

use std::path::Path;

use vramlens::analyze::View;
use vramlens::analyze::alerts::{AlertRules, Alerts, Threshold};
use vramlens::analyze::timeline::Timeline;
use vramlens::history::History;
use vramlens::ids::Stamp;
use vramlens::record::{FileWriter, Full, Header, OnFull, Redaction};
use vramlens::report::json::Snapshot;
use vramlens::rules;
use vramlens::runtime::conclude::Conclusions;
use vramlens::sample::{Gap, GapCause, GpuSample, ProcSample, Reading, Tick, Why, redact};
use vramlens::units::Percent;

use verdict_support::{GIB, T0, cuda, gpu, gpu_tick, host, proc_tick, process, row, with_rows};

const DAY_MS: u64 = 86_400_000;
/// Between two looks: coarse, so that thirty days are 43,200 of them.
const STEP_MS: u64 = 60_000;
const DAYS: u64 = 30;
/// Bytes of a part of the recording, and parts that stay.
const PART_BYTES: u64 = 200_000;
const KEEP: u32 = 2;

/// The machine and everything that watches it.
struct Soak {
    now_ms: u64,
    /// Of the wall clock to the clock since boot.
    wall_ms: u64,
    history: History,
    line: Timeline,
    alerts: Alerts,
    told: usize,
    conclusions: Conclusions,
    writer: FileWriter,
    born: u32,
    living: Vec<ProcSample>,
    looks: u64,
}

/// Small and the same each time.
fn random(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

impl Soak {
    fn new(file: &Path) -> Self {
        let rules = AlertRules {
            vram_above: Some(Threshold::Percent(Percent(50.0))),
            full_within_ms: Some(600_000),
            zombie: true,
            gpu_lost: true,
            xid: true,
        };
        let stamp = Stamp { boot_ms: T0, wall_ms: 1_700_000_000_000 };
        let full = Full { at_bytes: PART_BYTES, then: OnFull::Rotate { keep: KEEP } };
        let header = Header::new(stamp, STEP_MS);
        let writer = FileWriter::create(file, header, Redaction::secrets(redact), Some(full));
        Self {
            now_ms: T0,
            wall_ms: 1_700_000_000_000,
            history: History::new(),
            line: Timeline::new(),
            alerts: Alerts::new(rules),
            told: 0,
            conclusions: Conclusions::default(),
            writer: writer.unwrap(),
            born: 0,
            living: Vec::new(),
            looks: 0,
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp { boot_ms: self.now_ms, wall_ms: self.wall_ms + self.now_ms }
    }

    /// Some end, some begin; pids wrap around as the kernel's do.
    fn churn(&mut self, births: u32) {
        let looks = self.looks;
        self.living
            .retain(|process| !random(looks ^ u64::from(process.id.pid.0)).is_multiple_of(5));
        for _ in 0..births {
            self.born += 1;
            let pid = 300 + self.born % 32_000;
            if self.living.iter().any(|process| process.id.pid.0 == pid) {
                continue;
            }
            let minor = self.born % 2;
            let mut process =
                cuda(process(pid, ["python", "vllm", "ollama"][self.born as usize % 3]), &[minor]);
            process.id.start_ticks = self.now_ms / 10;
            process.started_boot_ms = self.now_ms;
            self.living.push(process);
        }
    }

    fn gpus(&self, lost: bool) -> Vec<GpuSample> {
        let on = |n: u32| {
            let mine = self.living.iter().filter(|process| {
                process.devices.value().is_some_and(|devices| devices.minors == [n])
            });
            let bytes = |pid: u32| (1 + random(u64::from(pid)) % 3) * GIB;
            let rows = mine.map(|process| row(process.id.pid.0, bytes(process.id.pid.0)));
            with_rows(gpu(n), rows.collect())
        };
        let mut second = on(1);
        if lost {
            second.memory = Reading::Absent(Why::GpuLost);
            second.processes = Reading::Absent(Why::GpuLost);
        }
        vec![on(0), second]
    }

    /// One look at both, and what the program does with it.
    fn look(&mut self, lost: bool, version: &str) {
        self.looks += 1;
        let at = self.stamp();
        let mut tick = gpu_tick(self.now_ms, self.gpus(lost));
        if let Tick::Gpus(tick) = &mut tick {
            tick.at = at;
            tick.driver.version = Reading::Value(version.to_owned());
        }
        let mut procs = proc_tick(self.now_ms, host(), self.living.clone());
        if let Tick::Procs(tick) = &mut procs {
            tick.at = at;
        }
        for tick in [tick, procs] {
            self.take(&tick);
        }
        if self.looks.is_multiple_of(8) {
            self.judge();
        }
    }

    fn take(&mut self, tick: &Tick) {
        self.history.push(tick);
        self.line.follow(&self.history);
        if self.looks.is_multiple_of(16) {
            assert!(self.writer.push(tick).unwrap(), "a recording that makes room has no end");
        }
    }

    fn judge(&mut self) {
        let moment = vramlens::runtime::options::blank(self.stamp(), STEP_MS);
        let view = self.conclusions.view(&self.history, &moment);
        assert!(self.conclusions.weight().0 <= 8_192, "{:?}", self.conclusions.weight());
        let findings = rules::run(&view);
        assert!(findings.len() < 100, "{} findings", findings.len());
        self.told += self.alerts.look(&view).len();
    }

    /// What happens to machines, each at its day.
    fn day(&mut self, day: u64) {
        let version = format!("580.{}", day / 10);
        for n in 0..DAY_MS / STEP_MS {
            self.now_ms += STEP_MS;
            let lost = day % 3 == 1 && (400..430).contains(&n);
            match (day % 5, n) {
                // Asleep for six hours: both clocks go on.
                (2, 700) => self.now_ms += DAY_MS / 4,
                // Somebody sets the wall clock forth, and back.
                (3, 200) => self.wall_ms += 3_600_000,
                (3, 900) => self.wall_ms -= 3_600_000,
                // The driver is reloaded: nothing for a while, and then another version.
                (4, 0) => {
                    let from = self.stamp();
                    self.now_ms += STEP_MS;
                    let to = self.stamp();
                    let cause = GapCause::Stall { call: "nvmlInit_v2".to_owned(), gpu: None };
                    self.living.clear();
                    self.take(&Tick::Gap(Gap { from, to, cause }));
                }
                _ => {}
            }
            self.churn(2 + u32::from(n % 3 == 0));
            self.look(lost, &version);
        }
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn thirty_days_and_a_hundred_thousand_processes() {
    let dir = tempfile::tempdir().unwrap();
    let mut soak = Soak::new(&dir.path().join("soak.vrt"));
    let mut after = Vec::new();
    for day in 0..DAYS {
        soak.day(day);
        after.push((count::live_bytes(), open_files()));
        let sizes = std::fs::read_dir(dir.path()).unwrap();
        let sizes: u64 = sizes.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(sizes < (u64::from(KEEP) + 2) * PART_BYTES, "day {day}: {sizes} bytes on disk");
    }
    assert!(soak.born >= 100_000, "{} processes", soak.born);
    assert!(soak.told >= 10, "{} alerts", soak.told);
    // The longest memory is of seven days: from then on it is full, and nothing grows.
    let (warm, _) = after[10];
    let (most, files) = (after[11..].iter().map(|day| day.0).max().unwrap(), after[10].1);
    eprintln!(
        "{} looks; bytes by day: {:?}",
        soak.looks,
        after.iter().map(|d| d.0).collect::<Vec<_>>()
    );
    assert!(most < warm + warm / 10, "{warm} bytes after ten days, {most} later");
    assert!(after[11..].iter().all(|day| day.1 == files), "{after:?}");
    the_last_hour_is_right(&mut soak);
    let Soak { writer, .. } = soak;
    writer.finish().unwrap();
}

/// An hour of looks each second, into the old history and into a new one.
fn the_last_hour_is_right(soak: &mut Soak) {
    soak.living.clear();
    // So long that nothing of before is joined with it.
    soak.now_ms += 30 * STEP_MS;
    let mut fresh = History::new();
    let mut first = 0;
    for second in 0..3_600_u64 {
        soak.now_ms += 1_000;
        first = if second == 0 { soak.now_ms } else { first };
        if second % 40 == 0 {
            soak.churn(1);
        }
        let mut tick = gpu_tick(soak.now_ms, soak.gpus(false));
        if let Tick::Gpus(tick) = &mut tick {
            tick.at = soak.stamp();
        }
        let mut procs = proc_tick(soak.now_ms, host(), soak.living.clone());
        if let Tick::Procs(tick) = &mut procs {
            tick.at = soak.stamp();
        }
        for tick in [tick, procs] {
            soak.history.push(&tick);
            fresh.push(&tick);
        }
    }
    let json = |history: &History, at_boot_ms: Option<u64>| {
        let blank = vramlens::runtime::options::blank(soak.stamp(), 1_000);
        let view = View::build(history, &vramlens::analyze::Moment { at_boot_ms, ..blank });
        serde_json::to_value(Snapshot::new(&view, redact)).unwrap()
    };
    assert_eq!(json(&soak.history, None), json(&fresh, None), "now");
    let mut compared = 0;
    for back in (1..3_590).step_by(97) {
        let at = soak.now_ms - back * 1_000;
        let (old, new) = (json(&soak.history, Some(at)), json(&fresh, Some(at)));
        assert_eq!(old["gpus"], new["gpus"], "{back} s back");
        assert_eq!(old["holders"], new["holders"], "{back} s back");
        compared += old["holders"].as_array().map_or(0, Vec::len);
    }
    assert!(compared > 20, "{compared} holders were compared since {first}");
}
