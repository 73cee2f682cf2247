//! A few looks for the commands that print once and end: with a deadline, and never more than that.

use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

use crate::history::History;
use crate::ids::{GpuIndex, Pid};
use crate::runtime::inspector::{Inspector, Listed};
use crate::runtime::sampler::{Sampled, Sampler};
use crate::sample::Tick;
use crate::source::{InFlight, SourceError};

/// What a command wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many looks.
    pub looks: u32,
    /// How long the driver may take in all.
    pub deadline: Duration,
}

/// What was found out.
pub struct Gathered {
    /// All that arrived.
    pub history: History,
    /// The last GPU and process ticks, oldest first.
    pub ticks: Vec<Tick>,
    /// Why the driver could not be asked.
    pub failure: Option<SourceError>,
    /// The call that hangs, where the deadline passed.
    pub stalled: Option<Stall>,
    /// Whether the thread that asks the driver has ended: it will say nothing more.
    pub ended: bool,
    /// Which GPU was asked for that is not there, in words; see [`crate::analyze::select::nowhere`].
    pub nowhere: Option<String>,
    /// Who holds memory on GPUs that were not asked for.
    pub elsewhere: Vec<(Pid, GpuIndex)>,
}

/// A driver that did not answer in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// The call, where one was under way.
    pub call: Option<InFlight>,
    /// How long it was waited for, in milliseconds.
    pub waited_ms: u64,
}

/// Looks `plan.looks` times. Where the driver fails or hangs, the processes are looked at all the
/// same: who has the devices open says a lot.
pub async fn gather(
    plan: Plan,
    sampler: &Sampler,
    samples: &mut Receiver<Sampled>,
    inspector: &Inspector,
    facts: &mut Receiver<Tick>,
) -> Gathered {
    let mut out = Gathered {
        history: History::new(),
        ticks: Vec::new(),
        failure: None,
        stalled: None,
        ended: false,
        nowhere: None,
        elsewhere: Vec::new(),
    };
    let began = Instant::now();
    let mut end = began + plan.deadline;
    for _ in 0..plan.looks {
        let mut listed = Vec::new();
        match timeout_at(end, samples.recv()).await {
            Ok(Some(Sampled::Tick(tick))) => {
                listed = listed_pids(&tick);
                out.history.push(&tick);
                out.ticks.push(*tick);
                // The next look is due an interval later, and has as long again.
                end = Instant::now() + plan.deadline;
            }
            // A process of its own that hangs is a driver that hangs.
            Ok(Some(Sampled::Failed(SourceError::Hangs(_)))) => {
                out.stalled = Some(stall(sampler, began));
            }
            Ok(Some(Sampled::Failed(error))) => out.failure = Some(error),
            Ok(Some(Sampled::End) | None) => {
                out.ended = true;
                break;
            }
            Err(_elapsed) => {
                out.stalled = Some(stall(sampler, began));
            }
        }
        inspector.ask(listed);
        if let Ok(Some(tick)) = timeout_at(Instant::now() + plan.deadline, facts.recv()).await {
            out.history.push(&tick);
            out.ticks.push(tick);
        }
        if out.failure.is_some() || out.stalled.is_some() {
            break;
        }
    }
    out
}

fn stall(sampler: &Sampler, began: Instant) -> Stall {
    let waited_ms = began.elapsed().as_millis() as u64;
    Stall { call: sampler.progress.current(), waited_ms }
}

/// Every process that the driver lists on any GPU, by pid, once.
pub fn listed_pids(tick: &Tick) -> Vec<Listed> {
    let Tick::Gpus(tick) = tick else { return Vec::new() };
    let rows = tick.gpus.iter().filter_map(|gpu| gpu.processes.value()).flatten();
    let mut held: Vec<Listed> =
        rows.map(|row| Listed { pid: row.pid, vram: row.used.get() }).collect();
    held.sort_by_key(|one| one.pid);
    held.dedup_by(|more, one| {
        let same = more.pid == one.pid;
        if same {
            one.vram = one.vram.zip(more.vram).map(|(sum, more)| sum + more);
        }
        same
    });
    held
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::Stamp;
    use crate::runtime::options::{Options, probe};
    use crate::source::{Progress, Source, Wants};

    /// Has nothing to say any more.
    struct Over;

    impl Source for Over {
        fn next(&mut self, _: Stamp, _: Wants) -> Result<Option<Tick>, SourceError> {
            Ok(None)
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_told_from_a_driver_that_is_slow() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let gathered = runtime.block_on(async {
            let progress = Arc::new(Progress::default());
            let (sampler, mut samples) =
                Sampler::spawn(1_000, Wants::default(), progress, Over).unwrap();
            let (inspector, mut facts) = Inspector::spawn(probe(&Options::default())).unwrap();
            let plan = Plan { looks: 1, deadline: Duration::from_mins(1) };
            // Also when it is asked again.
            gather(plan, &sampler, &mut samples, &inspector, &mut facts).await;
            gather(plan, &sampler, &mut samples, &inspector, &mut facts).await
        });
        assert!(gathered.ended && gathered.stalled.is_none() && gathered.ticks.is_empty());
    }
}
