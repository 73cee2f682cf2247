//! The real NVML wrapper over a stand-in driver: what a machine with every trouble would show.

mod events;
#[path = "../support/fake.rs"]
mod fake;
mod opening;
mod pace;
mod sleep;
mod trouble;
mod values;
mod versions;

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use fake::Fake;
use vramlens::ids::Stamp;
use vramlens::sample::{GpuProc, GpuSample, GpuTick, Memory, Reading, Tick};
use vramlens::source::nvml::{NvmlOptions, NvmlSource};
use vramlens::source::{Progress, Source, SourceError, Wants};

const USUAL: Wants = Wants { pcie: false, process_utilization: true, details: false };
const ONE: &str = include_str!("../scenarios/one.toml");

fn clock() -> Stamp {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let boot_ms = BEGAN.elapsed().as_millis() as u64;
    Stamp { boot_ms, wall_ms: boot_ms }
}

/// A source over a stand-in, asked once a second by a clock that the test turns.
struct Rig {
    fake: Fake,
    source: NvmlSource,
    progress: Arc<Progress>,
    now_ms: u64,
}

impl Rig {
    fn new(scenario: &str) -> Self {
        Self::over(Fake::new(scenario))
    }

    fn over(fake: Fake) -> Self {
        Self::with(fake, false)
    }

    fn with(fake: Fake, events: bool) -> Self {
        let progress = Arc::new(Progress::default());
        let options = NvmlOptions { library: fake.library().into(), pid_max: 4_194_304, events };
        let source = NvmlSource::new(options, Arc::clone(&progress), clock);
        Self { fake, source, progress, now_ms: 1_000_000 }
    }

    fn next(&mut self, wants: Wants) -> Result<GpuTick, SourceError> {
        self.now_ms += 1000;
        let now = Stamp { boot_ms: self.now_ms, wall_ms: self.now_ms };
        let tick = self.source.next(now, wants)?.and_then(|tick| match tick {
            Tick::Gpus(tick) => Some(tick),
            _ => None,
        });
        Ok(tick.expect("a look at the GPUs"))
    }

    fn tick(&mut self) -> GpuTick {
        self.next(USUAL).expect("a tick")
    }

    fn change(&mut self, scenario: &str) -> GpuTick {
        self.fake.change(scenario);
        self.tick()
    }
}

fn value<T: Clone>(reading: &Reading<T>) -> T {
    reading.value().expect("a value").clone()
}

fn processes(gpu: &GpuSample) -> Vec<GpuProc> {
    value(&gpu.processes)
}

fn memory(gpu: &GpuSample) -> Memory {
    value(&gpu.memory)
}

/// Processes as (pid, MiB, kinds).
fn rows(gpu: &GpuSample) -> Vec<(u32, u64, String)> {
    let row =
        |process: &GpuProc| (process.pid.0, value(&process.used).0 >> 20, process.kinds.letters());
    processes(gpu).iter().map(row).collect()
}
