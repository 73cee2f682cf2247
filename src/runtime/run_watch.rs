//! The side of `run` that measures: a thread with the sampler and the inspector, which the command
//! and its output never wait for.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::analyze::{View, select};
use crate::history::History;
use crate::ids::{GpuUuid, Pid, ProcId};
use crate::record::{RecordError, Recorder, Totals};
use crate::report::postmortem::{AllocatorPeak, Facts, Peak};
use crate::runtime::inspector::Inspector;
use crate::runtime::options::{Options, blank, driver, probe};
use crate::runtime::run_job::Root;
use crate::runtime::run_tree::Tree;
use crate::runtime::sampler::{Sampled, Sampler};
use crate::runtime::{clock, gather};
use crate::sample::{AllocatorSample, GpuTick, Reading, Tick};
use crate::source::{InFlight, Progress, SourceError, Wants};
use crate::units::Bytes;

/// What the measuring side is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An out-of-memory error has gone by: what is there now matters.
    Seen,
    /// The command has ended.
    Ended,
}

/// What was found out about a command.
pub struct Watched {
    /// All that arrived.
    pub history: History,
    /// The machine when the command last held memory; at an error, when that was seen.
    pub before: Option<View>,
    /// The command's processes that held memory.
    pub members: Vec<Pid>,
    /// Where the error was: the GPU of which the command held most then.
    pub gpu: Option<GpuUuid>,
    /// The most that was held.
    pub peak: Option<Peak>,
    /// By process.
    pub allocators: BTreeMap<ProcId, AllocatorPeak>,
    /// Looks at the driver.
    pub looks: u64,
    /// Why the driver could not be asked.
    pub failure: Option<SourceError>,
    /// The call that hung at the end.
    pub hangs: Option<InFlight>,
    /// Which GPU was asked for that is not there, in words.
    pub nowhere: Option<String>,
    /// What has become of the recording.
    pub recorded: Option<Result<Totals, RecordError>>,
}

impl Watched {
    /// For a report.
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            view: self.before.as_ref(),
            history: &self.history,
            gpu: self.gpu.as_ref(),
            members: &self.members,
            peak: self.peak.as_ref(),
            allocators: &self.allocators,
        }
    }
}

/// The measuring thread, seen from outside.
pub struct Watcher {
    events: Sender<Event>,
    result: std_mpsc::Receiver<Watched>,
}

/// The way to tell a measuring thread something, before it is there.
pub fn line() -> (Sender<Event>, Receiver<Event>) {
    channel(16)
}

impl Watcher {
    /// Starts to measure.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn(
        options: &Options,
        root: Root,
        recorder: Option<Recorder>,
        (events, events_in): (Sender<Event>, Receiver<Event>),
    ) -> io::Result<Self> {
        let (result_out, result) = std_mpsc::sync_channel(1);
        let options = options.clone();
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let built = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let Ok(runtime) = built else { return };
            if let Ok(watched) = runtime.block_on(watch(&options, root, recorder, events_in)) {
                let _ = result_out.send(watched);
            }
            runtime.shutdown_background();
        })?;
        Ok(Self { events, result })
    }

    /// Ends it; `None` where it has failed.
    pub fn finish(self) -> Option<Watched> {
        // A full line is read soon: it is never waited for longer than a look at the results takes.
        let _ = self.events.blocking_send(Event::Ended);
        self.result.recv_timeout(Duration::from_secs(3)).ok()
    }
}

async fn watch(
    options: &Options,
    root: Root,
    recorder: Option<Recorder>,
    mut events: Receiver<Event>,
) -> io::Result<Watched> {
    let progress = Arc::new(Progress::default());
    let source = driver(options, &progress);
    let (sampler, mut samples) = Sampler::spawn(
        options.interval_ms,
        Wants { process_utilization: true, ..Wants::default() },
        progress,
        source,
    )?;
    let (inspector, mut facts) = Inspector::spawn(probe(options))?;
    let mut keeper = Keeper::new(options.clone(), root, recorder);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(Event::Seen) => {
                    keeper.freezing |= keeper.before.is_some();
                    sampler.nudge();
                }
                Some(Event::Ended) | None => break,
            },
            sampled = samples.recv() => match sampled {
                Some(Sampled::Tick(tick)) => {
                    inspector.ask(gather::listed_pids(&tick));
                    keeper.take(*tick);
                }
                Some(Sampled::Failed(error)) => keeper.watched.failure = Some(error),
                Some(Sampled::End) | None => break,
            },
            Some(tick) = facts.recv() => keeper.take(tick),
        }
    }
    // What has arrived is older than the end.
    while let Ok(Sampled::Tick(tick)) = samples.try_recv() {
        keeper.take(*tick);
    }
    while let Ok(tick) = facts.try_recv() {
        keeper.take(tick);
    }
    keeper.watched.hangs = sampler.progress.current();
    Ok(keeper.finish())
}

/// Keeps what a report will need.
struct Keeper {
    options: Options,
    tree: Tree,
    recorder: Option<Recorder>,
    watched: Watched,
    before: Option<View>,
    held: Bytes,
    /// An error has been seen: the next view with most of the memory still there is the last.
    freezing: bool,
    frozen: bool,
}

impl Keeper {
    fn new(options: Options, root: Root, recorder: Option<Recorder>) -> Self {
        let watched = Watched {
            history: History::new(),
            before: None,
            members: Vec::new(),
            gpu: None,
            peak: None,
            allocators: BTreeMap::new(),
            looks: 0,
            failure: None,
            hangs: None,
            nowhere: None,
            recorded: None,
        };
        let tree = Tree::new(root);
        Self {
            options,
            tree,
            recorder,
            watched,
            before: None,
            held: Bytes::ZERO,
            freezing: false,
            frozen: false,
        }
    }

    fn take(&mut self, tick: Tick) {
        let tick = Arc::new(tick);
        if let Some(recorder) = &self.recorder {
            recorder.try_send(Arc::clone(&tick));
        }
        self.watched.history.push(&tick);
        match &*tick {
            Tick::Gpus(gpus) => {
                self.watched.looks += 1;
                self.watched.failure = None;
                let listed = gather::listed_pids(&tick);
                let pids: Vec<Pid> = listed.iter().map(|process| process.pid).collect();
                let members = self.tree.among(&pids);
                self.gpus(gpus, &members);
            }
            Tick::Procs(procs) => {
                self.tree.learn(&procs.procs);
                for process in &procs.procs {
                    if let Some(Reading::Value(sample)) = &process.allocator
                        && self.tree.contains(process.id.pid)
                    {
                        self.allocator(process.id, sample);
                    }
                }
                if self.held > Bytes::ZERO {
                    self.look();
                }
            }
            Tick::Gap(_) | Tick::Kill(_) => {}
        }
    }

    fn gpus(&mut self, tick: &GpuTick, members: &[Pid]) {
        let mut gpus = BTreeMap::new();
        let mut most: Option<(Bytes, &GpuUuid)> = None;
        for gpu in tick.gpus.iter().filter(|gpu| gpu.mig_enabled.get() != Some(true)) {
            let rows = gpu.processes.value().into_iter().flatten();
            let own = rows.filter(|row| members.contains(&row.pid));
            let bytes: Bytes = own.filter_map(|row| row.used.get()).sum();
            if bytes > Bytes::ZERO {
                *gpus.entry(gpu.index).or_insert(Bytes::ZERO) += bytes;
                most = most.max(Some((bytes, &gpu.uuid)));
            }
        }
        let bytes: Bytes = gpus.values().copied().sum();
        for pid in members {
            if !self.watched.members.contains(pid) && self.watched.members.len() < 4_096 {
                self.watched.members.push(*pid);
            }
        }
        if self.watched.peak.as_ref().is_none_or(|peak| bytes > peak.bytes) && bytes > Bytes::ZERO {
            self.watched.peak = Some(Peak { bytes, gpus, processes: members.len() });
        }
        let falling = bytes.0 < self.held.0 / 2;
        if self.freezing && falling {
            self.frozen = true;
        }
        self.held = bytes;
        if bytes > Bytes::ZERO && !self.frozen {
            self.watched.gpu = most.map(|(_, uuid)| uuid.clone());
            self.look();
        }
    }

    /// The view that a report may be about.
    fn look(&mut self) {
        if self.frozen {
            return;
        }
        let mut moment = blank(clock::now(), self.options.interval_ms);
        moment.idle_after_ms = self.options.idle_after_ms;
        moment.request = self.options.request;
        let mut view = View::build(&self.watched.history, &moment);
        select::keep(&mut view, &self.options.gpus);
        self.before = Some(view);
    }

    fn allocator(&mut self, id: ProcId, sample: &AllocatorSample) {
        let sum = |of: &dyn Fn(&crate::sample::AllocatorDevice) -> Bytes| -> Bytes {
            sample.devices.iter().map(of).sum()
        };
        let allocated = sum(&|device| device.peak_allocated.get().unwrap_or(device.allocated));
        let reserved = sum(&|device| device.peak_reserved.get().unwrap_or(device.reserved));
        let last = sample.clone();
        let peak = AllocatorPeak { allocated, reserved, last };
        let known = self.watched.allocators.get(&id);
        let peak = known.map_or_else(
            || peak.clone(),
            |known| AllocatorPeak {
                allocated: known.allocated.max(allocated),
                reserved: known.reserved.max(reserved),
                last: peak.last.clone(),
            },
        );
        if known.is_some() || self.watched.allocators.len() < 1_024 {
            self.watched.allocators.insert(id, peak);
        }
    }

    fn finish(mut self) -> Watched {
        let moment = blank(clock::now(), self.options.interval_ms);
        let last = View::build(&self.watched.history, &moment);
        self.watched.nowhere = select::nowhere(&last, &self.options.gpus);
        self.watched.before = self.before;
        let within = Duration::from_secs(1);
        // Where the driver never answered there is nothing to keep, and no file of that name.
        let end = self.recorder.map(|recorder| match self.watched.looks {
            0 => recorder.discard(within),
            _ => recorder.finish(within),
        });
        self.watched.recorded = end;
        self.watched
    }
}
