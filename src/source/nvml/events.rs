//! XID events, on a thread of their own with an opening of the library of its own: the library only
//! hands events to somebody who waits for them. The thread is never joined and holds up nothing; it
//! lets go of the library whenever the looks want to open it anew.

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nvml_wrapper::EventSet;
use nvml_wrapper::bitmasks::InitFlags;
use nvml_wrapper::bitmasks::event::EventTypes;

use super::fault::Fault;
use super::raw::{DeviceId, Library, RawEvent};
use crate::ids::{GpuUuid, Stamp};
use crate::sample::{Reading, WatchedGpu, Why, XidEvent, XidReport};

/// One wait in the driver, which nothing cuts short. Between two of them orders are read: for so long
/// a library that has to be opened anew (the driver is back, the user wakes a GPU) stays open here,
/// and figures come no sooner. Five times as long would spare four wakes of five and cost that.
const WAIT_MS: u32 = 1_000;
/// Events between two ticks at the most; what is more is counted.
const ROOM: usize = 64;
/// As many in one go, and the next wait is put off: a device that does nothing but fail.
const STORM: u32 = 200;
/// How long the library is left alone after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// A thread that has not been heard of for this long hangs in the driver.
const HANGS_MS: u64 = 10_000;
/// The looks wait no longer than this for the library to be let go.
const PATIENCE_MS: u64 = 3_000;
// A thread that is well lets go in time: the library is truly closed then.
const _: () = assert!((WAIT_MS as u64) < PATIENCE_MS);

/// The watch, as the looks see it.
pub(super) struct Watch {
    shared: Arc<Shared>,
    events: Receiver<XidEvent>,
    /// Since when the library is to be let go.
    asked_ms: Option<u64>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Which GPUs to watch; none closes the library.
    wanted: Vec<Target>,
    stop: bool,
    /// Whether the library is open.
    holds: bool,
    watched: Vec<WatchedGpu>,
    lost: u64,
    /// When the thread was last heard of.
    beat_ms: u64,
}

impl State {
    /// Whether these, and nothing else, are wanted yet.
    fn wants(&self, gpus: &[Target]) -> bool {
        !self.stop && self.wanted == gpus
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something else than these is wanted, or so long.
    fn wait(&self, gpus: &[Target], at_most: Option<Duration>) -> MutexGuard<'_, State> {
        let same = |state: &mut State| state.wants(gpus);
        let (state, changed) = (self.lock(), &self.changed);
        match at_most {
            None => changed.wait_while(state, same).unwrap_or_else(PoisonError::into_inner),
            Some(at_most) => {
                let woken = changed.wait_timeout_while(state, at_most, same);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

impl Watch {
    /// Starts the thread; `None` where none is to be had.
    pub(super) fn spawn(library: OsString, clock: fn() -> Stamp) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let (to, events) = sync_channel(ROOM);
        let worker = Worker { shared: Arc::clone(&shared), library, clock, to };
        let thread = std::thread::Builder::new().name("nvml-events".to_owned());
        thread.stack_size(512 * 1024).spawn(move || worker.run()).ok()?;
        Some(Self { shared, events, asked_ms: None })
    }

    /// Watches these from now on.
    pub(super) fn want(&mut self, gpus: Vec<Target>) {
        self.asked_ms = None;
        let mut state = self.shared.lock();
        if state.wanted != gpus {
            state.wanted = gpus;
            self.shared.changed.notify_all();
        }
    }

    /// Asks the thread to let go of the library. True when it has, or is waited for no longer.
    pub(super) fn let_go(&mut self, now_ms: u64) -> bool {
        let asked_ms = *self.asked_ms.get_or_insert(now_ms);
        let mut state = self.shared.lock();
        state.wanted.clear();
        self.shared.changed.notify_all();
        !state.holds || now_ms.saturating_sub(asked_ms) >= PATIENCE_MS
    }

    /// What came since the last call. `now_ms` is of the clock that the watch was started with.
    pub(super) fn report(&self, now_ms: u64) -> XidReport {
        let state = self.shared.lock();
        let hangs = state.holds && now_ms.saturating_sub(state.beat_ms) > HANGS_MS;
        let watched = state.wanted.iter().map(|(gpu, _)| {
            let known = state.watched.iter().find(|watched| watched.gpu == *gpu);
            let known = known.map_or(Reading::Absent(Why::NotYet), |watched| watched.state);
            let state = if hangs { Reading::Absent(Why::TimedOut) } else { known };
            WatchedGpu { gpu: gpu.clone(), state }
        });
        let events = self.events.try_iter().take(ROOM).collect();
        XidReport { watched: watched.collect(), events, lost: state.lost }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

struct Worker {
    shared: Arc<Shared>,
    library: OsString,
    clock: fn() -> Stamp,
    to: SyncSender<XidEvent>,
}

/// A GPU that is to be watched, with its address on the bus where that is known.
pub(super) type Target = (GpuUuid, Option<String>);
/// A GPU that is watched.
type Watched = (GpuUuid, DeviceId);

/// Why a watch ended well.
enum End {
    /// Something else is wanted.
    Orders,
    /// No GPU has such events.
    Nothing,
}

impl Worker {
    fn run(self) {
        while let Some(wanted) = self.order() {
            let ended = self.watch(&wanted);
            self.shared.lock().holds = false;
            match ended {
                Ok(End::Orders) => {}
                // There is nothing to ask until something else is wanted.
                Ok(End::Nothing) => drop(self.shared.wait(&wanted, None)),
                Err(fault) => {
                    self.tell(wanted.iter().map(|(gpu, _)| (gpu.clone(), Err(fault))));
                    drop(self.shared.wait(&wanted, Some(PAUSE)));
                }
            }
        }
    }

    /// Waits until something is to be watched; `None` at the end.
    fn order(&self) -> Option<Vec<Target>> {
        let mut state = self.shared.wait(&[], None);
        if state.stop {
            return None;
        }
        (state.holds, state.beat_ms) = (true, (self.clock)().boot_ms);
        Some(state.wanted.clone())
    }

    fn tell(&self, states: impl Iterator<Item = (GpuUuid, Result<(), Fault>)>) {
        let states = states.map(|(gpu, state)| {
            let state = state.map_err(Fault::why).into();
            WatchedGpu { gpu, state }
        });
        self.shared.lock().watched = states.collect();
    }

    /// Whether the same is still wanted.
    fn goes_on(&self, wanted: &[Target]) -> bool {
        let mut state = self.shared.lock();
        state.beat_ms = (self.clock)().boot_ms;
        state.wants(wanted)
    }

    /// Opens the library without a touch of any GPU, where it can.
    fn open(&self) -> Result<Library, Fault> {
        let spared = Library::open(&self.library, InitFlags::NO_ATTACH);
        spared.or_else(|_| Library::open(&self.library, InitFlags::empty())).map_err(Fault::from)
    }

    /// Opens the library and waits for events until something else is wanted.
    fn watch(&self, wanted: &[Target]) -> Result<End, Fault> {
        let mut library = self.open()?;
        let mut found: Vec<(GpuUuid, Result<DeviceId, Fault>)> = Vec::new();
        for (gpu, address) in wanted {
            // By its address no other GPU is touched, which could be asleep.
            let id = match address {
                Some(address) => library.by_address(address),
                None => library.by_uuid(&gpu.0),
            };
            found.push((gpu.clone(), id.and_then(|id| supported(&library, id))));
        }
        let set = registered(&library, &mut found)?;
        self.tell(found.iter().map(|(gpu, state)| (gpu.clone(), state.map(|_| ()))));
        let known: Vec<Watched> =
            found.into_iter().filter_map(|(gpu, id)| Some((gpu, id.ok()?))).collect();
        if known.is_empty() {
            return Ok(End::Nothing);
        }
        let mut in_a_row = 0;
        while self.goes_on(wanted) {
            match library.next_event(&set, WAIT_MS) {
                Ok(event) => {
                    self.deliver(&library, &known, &event);
                    in_a_row += 1;
                }
                Err(Fault::TIMEOUT) => in_a_row = 0,
                Err(fault) => return Err(fault),
            }
            if in_a_row >= STORM {
                in_a_row = 0;
                std::thread::sleep(Duration::from_millis(u64::from(WAIT_MS)));
            }
        }
        Ok(End::Orders)
    }

    fn deliver(&self, library: &Library, known: &[Watched], event: &RawEvent) {
        if event.kind & EventTypes::CRITICAL_XID_ERROR.bits() == 0 {
            return;
        }
        let about = known.iter().find(|(_, id)| library.is_about(event, *id));
        let some = |number: u32| (number != u32::MAX).then_some(number);
        let Some((gpu, _)) = about else {
            self.shared.lock().lost += 1;
            return;
        };
        let event = XidEvent {
            at: (self.clock)(),
            gpu: gpu.clone(),
            code: event.data,
            gpu_instance: some(event.gpu_instance),
            compute_instance: some(event.compute_instance),
        };
        if self.to.try_send(event).is_err() {
            self.shared.lock().lost += 1;
        }
    }
}

/// The device, where its driver has such events (WSL has none, nor have some cards).
fn supported(library: &Library, id: DeviceId) -> Result<DeviceId, Fault> {
    let kinds = library.device(id).supported_event_types().map_err(Fault::from)?;
    if kinds.contains(EventTypes::CRITICAL_XID_ERROR) { Ok(id) } else { Err(Fault::NOT_SUPPORTED) }
}

/// A set with every device that takes part. A refusal frees the whole set, so it is begun anew
/// without that device.
fn registered<'l>(
    library: &'l Library,
    found: &mut [(GpuUuid, Result<DeviceId, Fault>)],
) -> Result<EventSet<'l>, Fault> {
    'anew: loop {
        let mut set = library.event_set()?;
        for (_, state) in found.iter_mut() {
            let Ok(id) = *state else { continue };
            let kinds = EventTypes::CRITICAL_XID_ERROR;
            match library.device(id).register_events(kinds, set) {
                Ok(with) => set = with,
                Err(refusal) => {
                    *state = Err(Fault::from(refusal.error));
                    continue 'anew;
                }
            }
        }
        return Ok(set);
    }
}
