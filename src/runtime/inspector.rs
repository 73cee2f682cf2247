//! The thread that looks at the processes. The newest request wins; a look that is late never
//! holds up the driver's figures.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::ids::{Pid, Stamp};
use crate::runtime::clock;
use crate::sample::{ProcTick, Tick};
use crate::units::Bytes;

/// Looks in flight at the most.
const IN_FLIGHT: usize = 4;

/// A process that the driver lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its number, as the driver gives it.
    pub pid: Pid,
    /// What it holds on all GPUs; `None` where the driver does not tell.
    pub vram: Option<Bytes>,
}

/// Whatever can look at processes: the real `/proc`, or a fixture.
pub trait Look {
    /// What can be found out before anything is listed, until `wanted` says that it is.
    fn prepare(&mut self, _now: Stamp, _wanted: &dyn Fn() -> bool) {}

    /// Facts of the listed processes, and of everybody who has an NVIDIA device open.
    fn look(&mut self, now: Stamp, listed: &[Listed]) -> ProcTick;
}

/// A running inspector, seen from the loop.
pub struct Inspector {
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    request: Mutex<Request>,
    changed: Condvar,
}

#[derive(Default)]
struct Request {
    listed: Option<Vec<Listed>>,
    closed: bool,
}

impl Inspector {
    /// Starts one. The probe is made on the new thread, since that reads files too.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn spawn<L: Look>(
        probe: impl FnOnce() -> L + Send + 'static,
    ) -> io::Result<(Self, mpsc::Receiver<Tick>)> {
        let slot = Arc::new(Slot::default());
        let (looks, looks_in) = mpsc::channel(IN_FLIGHT);
        let worker = Arc::clone(&slot);
        std::thread::Builder::new()
            .name("inspect".to_owned())
            .spawn(move || work(&worker, probe(), &looks))?;
        Ok((Self { slot }, looks_in))
    }

    /// Asks for a look at these and all others that matter. An older request that has not begun is
    /// forgotten.
    pub fn ask(&self, listed: Vec<Listed>) {
        self.lock().listed = Some(listed);
        self.slot.changed.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Request> {
        self.slot.request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        self.lock().closed = true;
        self.slot.changed.notify_one();
    }
}

fn work(slot: &Slot, mut probe: impl Look, looks: &mpsc::Sender<Tick>) {
    // The driver takes a while to begin.
    let wanted = || {
        let request = slot.request.lock().unwrap_or_else(PoisonError::into_inner);
        request.closed || request.listed.is_some()
    };
    probe.prepare(clock::now(), &wanted);
    loop {
        let mut request = slot.request.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = loop {
            if request.closed {
                return;
            }
            if let Some(listed) = request.listed.take() {
                break listed;
            }
            request = slot.changed.wait(request).unwrap_or_else(PoisonError::into_inner);
        };
        drop(request);
        let tick = Tick::Procs(probe.look(clock::now(), &listed));
        // A look that nobody takes is older than the next one: it is not worth waiting for.
        let _ = looks.try_send(tick);
    }
}
