//! What has come from one machine and was not taken yet: bounded, so that a machine that sends
//! without end delays and starves nobody but itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::record::{Header, Note};
use crate::sample::Tick;

/// Ticks that wait at the most; the next ones are dropped and counted.
const TICKS: usize = 8;
/// Whatever waits at the most; a link waits for room.
const ITEMS: usize = 64;

/// Something that came.
#[derive(Debug)]
pub enum Came {
    /// How the link is.
    Link(LinkState),
    /// The stream begins.
    Header(Box<Header>),
    /// A tick.
    Tick(Box<Tick>),
    /// What stands beside ticks.
    Note(Box<Note>),
}

/// How a link is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// The program that connects has been started.
    Connecting,
    /// The far end records and takes no requests: it is an older version.
    Older,
    /// There is none.
    Away {
        /// Why, in words. Hostile text.
        why: String,
        /// When it is tried again.
        retry_at: Instant,
    },
}

/// The inbox of one machine.
pub struct Inbox {
    queue: Mutex<VecDeque<Came>>,
    room: Condvar,
    dropped: AtomicU64,
    closed: AtomicBool,
    bell: Arc<Notify>,
}

impl Inbox {
    /// An empty one, which rings `bell` when something comes.
    pub fn new(bell: Arc<Notify>) -> Self {
        Self {
            queue: Mutex::default(),
            room: Condvar::new(),
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            bell,
        }
    }

    /// Puts a tick in, or drops and counts it.
    pub fn tick(&self, tick: Box<Tick>) {
        let mut queue = self.lock();
        if queue.len() >= TICKS {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            queue.push_back(Came::Tick(tick));
        }
        drop(queue);
        self.bell.notify_one();
    }

    /// Puts something in that must not be lost; waits for room. No when nobody takes any more.
    pub fn put(&self, came: Came) -> bool {
        let full = |queue: &mut VecDeque<Came>| queue.len() >= ITEMS && !self.is_closed();
        let queue = self.room.wait_while(self.lock(), full);
        queue.unwrap_or_else(PoisonError::into_inner).push_back(came);
        self.bell.notify_one();
        !self.is_closed()
    }

    /// Takes all that is there.
    pub fn take(&self) -> VecDeque<Came> {
        let all = std::mem::take(&mut *self.lock());
        self.room.notify_all();
        all
    }

    /// Ticks that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Nobody takes anything any more.
    pub fn close(&self) {
        let queue = self.lock();
        self.closed.store(true, Ordering::SeqCst);
        drop(queue);
        self.room.notify_all();
    }

    /// Whether nobody does.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Came>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Stamp;
    use crate::sample::{Gap, GapCause};

    #[test]
    fn ticks_are_dropped_and_answers_wait() {
        let inbox = Arc::new(Inbox::new(Arc::new(Notify::new())));
        let at = Stamp { boot_ms: 1, wall_ms: 1 };
        for _ in 0..TICKS + 3 {
            inbox.tick(Box::new(Tick::Gap(Gap { from: at, to: at, cause: GapCause::Away })));
        }
        assert_eq!(inbox.dropped(), 3);
        let other = Arc::clone(&inbox);
        let puts = std::thread::spawn(move || {
            (0..200).all(|_| other.put(Came::Link(LinkState::Connecting)))
        });
        let mut taken = 0;
        while taken < TICKS + 200 {
            let all = inbox.take();
            assert!(all.len() <= ITEMS);
            taken += all.len();
            std::thread::yield_now();
        }
        assert!(puts.join().unwrap());
        inbox.close();
        assert!(!inbox.put(Came::Link(LinkState::Connecting)));
    }
}
