//! Settings that were read again, in the loop.

use std::io;

use super::Looper;
use crate::runtime::reload::{self, Outcome};

impl Looper {
    /// Goes on with the new ones, or says what is wrong with them.
    pub(super) fn reloaded(&mut self, outcome: Outcome) -> io::Result<()> {
        let (notifier, screen) = (&mut self.notifier, &mut self.screen);
        for event in reload::take(outcome, &mut self.live, notifier, screen) {
            self.update(event)?;
        }
        Ok(())
    }
}
