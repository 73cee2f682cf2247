//! What is looked for in all that arrives, whatever is shown and whoever sees it: what the user wants
//! to be told of, what the log should say, and what is judged, for looks back.

use super::Looper;

impl Looper {
    /// After an arrival; `look` where it is one of processes.
    pub(super) fn follow(&mut self, look: bool) {
        // Of several machines each has its own, see `alert_of_hosts`.
        let listens = self.notifier.listens() && self.live.fleet.is_none();
        let unseen = if self.live.is_paused() {
            let Some(view) = self.live.unseen(look || listens) else { return };
            Some(view)
        } else if (listens && !look) || (look && !self.idle.draws(&self.screen)) {
            self.live.rebuild();
            None
        } else {
            return;
        };
        if listens {
            let bytes = self.notifier.look(unseen.as_ref().unwrap_or(&self.live.view));
            self.tell(&bytes);
        }
    }

    /// Sends the terminal what it is to tell.
    pub(super) fn tell(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.screen.send(bytes);
        }
    }
}
