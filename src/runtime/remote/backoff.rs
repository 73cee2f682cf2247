//! How long to wait before the next try: longer each time, and never all machines at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Waits that double, with a random part.
pub struct Backoff {
    next: Duration,
    random: RandomState,
    drawn: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST, random: RandomState::new(), drawn: 0 }
    }
}

impl Backoff {
    /// The next wait: between three quarters and all of its length.
    pub fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        self.drawn += 1;
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.drawn);
        let share = (hasher.finish() >> 40) as f64 / f64::from(1 << 24);
        whole.mul_f64(0.25f64.mul_add(share, 0.75))
    }

    /// It was there: the next wait is a short one.
    pub const fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_no_further() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..10).map(|_| backoff.wait()).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST * 3 / 4, "{waits:?}");
        assert!(waits[9] <= LONGEST && waits[9] >= LONGEST * 3 / 4, "{waits:?}");
        assert!(waits.windows(2).all(|pair| pair[1] * 4 >= pair[0] * 3), "{waits:?}");
        backoff.reset();
        assert!(backoff.wait() <= FIRST);
    }
}
