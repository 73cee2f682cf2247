//! The thread that asks the driver, or reads a recording. It never waits for the loop: a tick that
//! finds the channel full is dropped and counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::runtime::clock;
use crate::runtime::screen::test_panic;
use crate::sample::Tick;
use crate::source::{Progress, Source, SourceError, Wants};

/// Ticks in flight at the most. At ten a second the loop is 400 ms behind before one is lost.
const IN_FLIGHT: usize = 4;

/// What a sampler delivers.
#[derive(Debug)]
pub enum Sampled {
    /// A tick.
    Tick(Box<Tick>),
    /// The source cannot answer now; it is asked again.
    Failed(SourceError),
    /// The recording has ended.
    End,
}

/// A running sampler, seen from the loop.
pub struct Sampler {
    /// The call under way.
    pub progress: Arc<Progress>,
    shared: Arc<Shared>,
    wake: SyncSender<()>,
}

struct Shared {
    dropped: AtomicU64,
    orders: Mutex<Orders>,
}

#[derive(Clone, Copy)]
struct Orders {
    interval_ms: u64,
    wants: Wants,
    paused: bool,
}

impl Sampler {
    /// Starts one. A source that fails is asked again; it knows how often it may be.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn(
        interval_ms: u64,
        wants: Wants,
        progress: Arc<Progress>,
        source: impl Source + 'static,
    ) -> io::Result<(Self, mpsc::Receiver<Sampled>)> {
        let orders = Orders { interval_ms, wants, paused: false };
        let shared = Arc::new(Shared { dropped: AtomicU64::new(0), orders: Mutex::new(orders) });
        let (ticks, ticks_in) = mpsc::channel(IN_FLIGHT);
        let (wake, woken) = sync_channel(1);
        let worker = Worker { shared: Arc::clone(&shared), ticks, woken };
        std::thread::Builder::new().name("nvml".to_owned()).spawn(move || worker.run(source))?;
        Ok((Self { progress, shared, wake }, ticks_in))
    }

    /// Ticks that found the channel full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// What slow figures are shown from now on. It is looked at once, so that they need not be
    /// waited for.
    pub fn want(&self, wants: Wants) {
        self.change(|orders| orders.wants = wants);
    }

    /// How often to look.
    pub fn set_interval(&self, interval_ms: u64) {
        self.change(|orders| orders.interval_ms = interval_ms);
    }

    /// Whether to look at all.
    pub fn pause(&self, paused: bool) {
        self.change(|orders| orders.paused = paused);
    }

    /// Looks at once.
    pub fn nudge(&self) {
        // One wake-up that waits is as good as two.
        let _ = self.wake.try_send(());
    }

    fn change(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner));
        self.nudge();
    }
}

struct Worker {
    shared: Arc<Shared>,
    ticks: mpsc::Sender<Sampled>,
    woken: Receiver<()>,
}

impl Worker {
    fn run(self, mut source: impl Source) {
        let mut due = clock::now().boot_ms;
        while !self.ticks.is_closed() {
            match source.next(clock::now(), self.orders().wants) {
                Ok(Some(tick)) => self.send(Sampled::Tick(Box::new(tick))),
                Ok(None) => return drop(self.ticks.blocking_send(Sampled::End)),
                Err(error) => {
                    crate::runtime::journal::failed(&error.to_string());
                    self.send(Sampled::Failed(error));
                }
            }
            due = self.wait(due);
            test_panic("nvml");
        }
    }

    fn orders(&self) -> Orders {
        *self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, sampled: Sampled) {
        if self.ticks.try_send(sampled).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the next look is due, or something changed; gives when it was due. A look that
    /// took longer than the interval does not make the next ones hurry.
    fn wait(&self, last_due: u64) -> u64 {
        loop {
            let orders = self.orders();
            let now = clock::now().boot_ms;
            let due = (last_due + orders.interval_ms).max(now.saturating_sub(orders.interval_ms));
            let left = if orders.paused { 3_600_000 } else { due.saturating_sub(now) };
            match self.woken.recv_timeout(Duration::from_millis(left)) {
                Err(RecvTimeoutError::Timeout) if !orders.paused => return due,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) if self.orders().paused => {}
                Ok(()) => return clock::now().boot_ms,
                // The loop is gone; the send that follows finds it out.
                Err(RecvTimeoutError::Disconnected) => return now,
            }
        }
    }
}
