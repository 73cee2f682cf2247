//! The one door to the driver: every call is announced before it is made, and counted.

use std::cell::Cell;
use std::sync::Arc;

use super::fault::Fault;
use crate::ids::{GpuIndex, Stamp};
use crate::source::Progress;

/// Announces and counts calls, and remembers the first that says that the library must be opened
/// again.
pub(super) struct Calls {
    progress: Arc<Progress>,
    clock: fn() -> Stamp,
    /// The moment of the look under way.
    at: Cell<Stamp>,
    made: Cell<u32>,
    ended: Cell<Option<Fault>>,
}

impl Calls {
    pub(super) fn new(progress: Arc<Progress>, clock: fn() -> Stamp) -> Self {
        let at = Cell::new(Stamp { boot_ms: 0, wall_ms: 0 });
        Self { progress, clock, at, made: Cell::new(0), ended: Cell::new(None) }
    }

    /// Starts a look, with a new count.
    pub(super) fn begin(&self, at: Stamp) {
        self.at.set(at);
        self.made.set(0);
        self.reopen();
    }

    /// What was said of an earlier session is of no account.
    pub(super) fn reopen(&self) {
        self.ended.set(None);
    }

    /// How many calls were made since.
    pub(super) fn made(&self) -> u32 {
        self.made.get()
    }

    /// The first answer since then that ends the session.
    pub(super) fn ended(&self) -> Option<Fault> {
        self.ended.get()
    }

    /// The moment of the look under way.
    pub(super) fn at(&self) -> Stamp {
        self.at.get()
    }

    /// What it takes for the time.
    pub(super) fn clock(&self) -> fn() -> Stamp {
        self.clock
    }

    pub(super) fn now(&self) -> Stamp {
        (self.clock)()
    }

    /// Whether the user wants to see GPUs that are let sleep.
    pub(super) fn take_wake(&self) -> bool {
        self.progress.take_wake()
    }

    /// Makes one call. It may never return; then the announcement stays up.
    pub(super) fn make<T, E: Into<Fault>>(
        &self,
        call: &'static str,
        gpu: Option<GpuIndex>,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Fault> {
        let answer = self.announce(call, gpu, ask).map_err(Into::into);
        match answer {
            // Nothing was called.
            Err(Fault::NoSymbol) => {}
            _ => self.made.set(self.made.get() + 1),
        }
        if let Err(fault) = answer
            && fault.ends_session()
            && self.ended.get().is_none()
        {
            self.ended.set(Some(fault));
        }
        answer
    }

    /// The announcement alone, for opening and closing, which are no part of a tick.
    pub(super) fn announce<T>(
        &self,
        call: &'static str,
        gpu: Option<GpuIndex>,
        ask: impl FnOnce() -> T,
    ) -> T {
        self.progress.enter(call, gpu, self.now().boot_ms);
        let answer = ask();
        self.progress.leave();
        answer
    }
}
