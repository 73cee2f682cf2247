//! Where the loop leaves what it wishes of a thread: the newest wish counts, and nobody waits for a
//! place.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One wish, and what wakes whoever carries it out.
#[derive(Debug, Default)]
pub struct Desk<Wish> {
    wish: Mutex<Wish>,
    /// Wakes whoever waits for another wish.
    pub changed: Condvar,
}

impl<Wish> Desk<Wish> {
    /// The wish as it stands.
    pub fn lock(&self) -> MutexGuard<'_, Wish> {
        // Nothing that holds it can panic half-way.
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, and wakes who waits for that.
    pub fn leave(&self, change: impl FnOnce(&mut Wish)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}
