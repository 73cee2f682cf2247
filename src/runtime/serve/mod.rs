//! Metrics of a running session: a loop that renders every tick once, and a thread that hands the
//! newest page to whoever asks. No request ever reaches the driver.

pub mod http;
pub mod notify;
pub mod textfile;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::analyze::{Freshness, Moment, View, select};
use crate::history::History;
use crate::report::prometheus::{Exposition, Format, Own, render};
use crate::rules;
use crate::runtime::inspector::Inspector;
use crate::runtime::options::{Options, blank, driver, probe};
use crate::runtime::sampler::{Sampled, Sampler};
use crate::runtime::{clock, cost, gather};
use crate::sample::Tick;
use crate::source::{Progress, SourceError, Wants};

/// What is handed out: rendered once, shared by all readers.
#[derive(Debug, Clone)]
pub struct Page {
    /// In the format of Prometheus.
    pub prometheus: Bytes,
    /// In that of OpenMetrics.
    pub open_metrics: Bytes,
    /// Why this machine is not well; `None` while the driver answers.
    pub trouble: Option<Arc<str>>,
}

impl Page {
    /// Before anything was seen.
    pub fn empty() -> Self {
        let trouble = Some("the driver has not answered yet".into());
        Self { prometheus: Bytes::new(), open_metrics: Bytes::from_static(b"# EOF\n"), trouble }
    }
}

/// What the HTTP thread counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests answered.
    pub requests: AtomicU64,
    /// Requests refused.
    pub refused: AtomicU64,
    /// Connections that took too long, or were ended to make room.
    pub cut: AtomicU64,
}

/// A session whose view is rendered.
pub struct Exporter {
    options: Options,
    most_holders: usize,
    counters: Arc<Counters>,
    sampler: Sampler,
    samples: Receiver<Sampled>,
    inspector: Inspector,
    facts: Receiver<Tick>,
    history: History,
    pages: watch::Sender<Page>,
    ticks: u64,
    failures: u64,
    last_error: Option<SourceError>,
    nowhere: Option<String>,
    changes: Receiver<Options>,
    change_by: mpsc::Sender<Options>,
}

/// Something that a person at a log should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The first answer came, or the first after a failure.
    Answers,
    /// The driver refuses.
    Refuses(SourceError),
    /// A GPU that is to be exported is not there, in words.
    NoSuchGpu(String),
}

impl Exporter {
    /// Starts to look. With `pcie` also at the traffic on the bus, which is slow to read.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(
        options: &Options,
        most_holders: usize,
        pcie: bool,
        counters: Arc<Counters>,
    ) -> io::Result<(Self, watch::Receiver<Page>)> {
        let progress = Arc::new(Progress::default());
        let source = driver(options, &progress);
        let wants = Wants { process_utilization: true, details: true, pcie };
        let (sampler, samples) = Sampler::spawn(options.interval_ms, wants, progress, source)?;
        let (inspector, facts) = Inspector::spawn(probe(options))?;
        let (pages, pages_out) = watch::channel(Page::empty());
        let (change_by, changes) = mpsc::channel(4);
        let exporter = Self {
            options: options.clone(),
            most_holders,
            counters,
            sampler,
            samples,
            inspector,
            facts,
            history: History::new(),
            pages,
            ticks: 0,
            failures: 0,
            last_error: None,
            nowhere: None,
            changes,
            change_by,
        };
        Ok((exporter, pages_out))
    }

    /// Takes other options while it runs: the interval, and what the view is made by. Threads keep
    /// what they were begun with.
    pub fn control(&self) -> mpsc::Sender<Options> {
        self.change_by.clone()
    }

    /// Renders for ever; `tell` hears what changes.
    pub async fn run(mut self, mut tell: impl FnMut(News)) {
        // Where nothing arrives the age of the newest answer still grows.
        let mut aging = interval(Duration::from_secs(1));
        aging.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                sampled = self.samples.recv() => match sampled {
                    // The facts about its processes follow, and are shown with it.
                    Some(Sampled::Tick(tick)) => {
                        self.take(&tick, &mut tell);
                        continue;
                    }
                    Some(Sampled::Failed(error)) => self.fail(error, &mut tell),
                    Some(Sampled::End) | None => return,
                },
                Some(tick) = self.facts.recv() => self.history.push(&tick),
                Some(options) = self.changes.recv() => {
                    self.sampler.set_interval(options.interval_ms);
                    self.options = options;
                }
                _ = aging.tick() => {}
            }
            self.publish(&mut tell);
            aging.reset();
        }
    }

    fn take(&mut self, tick: &Tick, tell: &mut impl FnMut(News)) {
        self.inspector.ask(gather::listed_pids(tick));
        self.history.push(tick);
        let recovered = self.last_error.take().is_some();
        if self.ticks == 0 || recovered {
            tell(News::Answers);
        }
        self.ticks += 1;
    }

    fn fail(&mut self, error: SourceError, tell: &mut impl FnMut(News)) {
        self.failures += 1;
        if self.last_error.as_ref() != Some(&error) {
            tell(News::Refuses(error.clone()));
            self.last_error = Some(error);
        }
    }

    fn publish(&mut self, tell: &mut impl FnMut(News)) {
        let mut view = View::build(&self.history, &self.moment());
        crate::runtime::journal::look(&view);
        let nowhere = select::nowhere(&view, &self.options.gpus);
        if let Some(nowhere) = nowhere.as_ref().filter(|_| nowhere != self.nowhere) {
            tell(News::NoSuchGpu(nowhere.clone()));
        }
        self.nowhere = nowhere;
        select::keep(&mut view, &self.options.gpus);
        let findings = rules::run(&view);
        let own = self.own();
        let of = Exposition {
            view: &view,
            findings: &findings,
            own: &own,
            most_holders: self.most_holders,
        };
        let page = Page {
            prometheus: render(&of, Format::Prometheus).into(),
            open_metrics: render(&of, Format::OpenMetrics).into(),
            trouble: self.trouble(&view.freshness).map(Into::into),
        };
        self.pages.send_replace(page);
    }

    fn trouble(&self, freshness: &Freshness) -> Option<String> {
        if let Some(error) = &self.last_error {
            return Some(error.to_string());
        }
        if self.nowhere.is_some() {
            return self.nowhere.clone();
        }
        match freshness {
            Freshness::Starting => Some("the driver has not answered yet".to_owned()),
            Freshness::Stalled { call, for_ms, .. } => {
                let call = call.as_deref().map_or_else(String::new, |call| format!(" {call}"));
                Some(format!("the driver has not answered{call} for {} s", for_ms / 1000))
            }
            _ => None,
        }
    }

    fn moment(&self) -> Moment {
        let in_flight = self.sampler.progress.current();
        Moment {
            in_flight: in_flight.map(|c| (c.call.to_owned(), c.gpu, c.since_boot_ms)),
            dropped_ticks: self.sampler.dropped(),
            idle_after_ms: self.options.idle_after_ms,
            request: self.options.request,
            ..blank(clock::now(), self.options.interval_ms)
        }
    }

    fn own(&self) -> Own {
        let apart = self.sampler.progress.apart();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Own {
            cpu_seconds: cost::cpu_seconds(apart),
            resident_bytes: cost::resident_bytes(apart),
            ticks: self.ticks,
            failures: self.failures,
            requests: count(&self.counters.requests),
            refused: count(&self.counters.refused),
            cut_connections: count(&self.counters.cut),
        }
    }
}
