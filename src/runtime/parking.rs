//! Sleeps until something happens or a moment comes. The view's loop waits for channels and a clock,
//! and needs no more: a runtime's reactor and its wheel of timers woke it several times for one tick.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

/// A thread that can be woken.
pub struct Parking {
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    thread: Thread,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

impl Parking {
    /// For the thread that calls: only this one can wait.
    pub fn here() -> Self {
        let bell = Arc::new(Bell { thread: thread::current(), rung: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&bell));
        Self { bell, waker }
    }

    /// What a future gives; `None` where that is not known at `until`. It is asked at least once.
    pub fn wait<T>(&self, future: impl Future<Output = T>, until: Instant) -> Option<T> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&self.waker);
        loop {
            // Whoever rings from here on has the future asked again.
            self.bell.rung.store(false, Ordering::SeqCst);
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return Some(value);
            }
            while !self.bell.rung.load(Ordering::Acquire) {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                thread::park_timeout(left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::mpsc;

    #[test]
    fn what_another_thread_sends_ends_the_wait_and_so_does_the_moment() {
        let parking = Parking::here();
        let (to, mut from) = mpsc::channel(1);
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let sender = thread::spawn(move || {
            for n in 0..100 {
                gone.recv().unwrap();
                to.blocking_send(n).unwrap();
            }
        });
        let late = || Instant::now() + Duration::from_mins(1);
        for n in 0..100 {
            assert_eq!(parking.wait(from.recv(), Instant::now()), None);
            go.send(()).unwrap();
            assert_eq!(parking.wait(from.recv(), late()), Some(Some(n)));
        }
        sender.join().unwrap();
        assert_eq!(parking.wait(from.recv(), late()), Some(None), "all senders are gone");
        // What is ready counts although its moment has passed.
        assert_eq!(parking.wait(async { 7 }, Instant::now()), Some(7));
    }
}
