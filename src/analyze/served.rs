//! Which server a holder works for, and what that server says of itself.

use super::{Holder, View};
use crate::ids::Pid;
use crate::sample::{ProcSample, Reading, ServerSample};

/// Generations between a worker that holds memory and the server that listens: vLLM has two.
const GENERATIONS: usize = 4;

impl View {
    /// What a server says of itself: the holder, or the process above it that listens for it.
    /// `None` where neither is a server that is known.
    pub fn served(&self, holder: &Holder) -> Option<&Reading<ServerSample>> {
        let mut process = holder.process.as_ref()?;
        for _ in 0..GENERATIONS {
            if let Some(said) = self.seen(process.id.pid).and_then(|own| own.server.as_ref()) {
                return Some(said);
            }
            let parent = process.parent;
            process = self.seen(parent).filter(|above| above.id.pid != process.id.pid)?;
        }
        None
    }

    fn seen(&self, pid: Pid) -> Option<&ProcSample> {
        let holders = self.holders.iter().filter_map(|holder| holder.process.as_ref());
        let relatives = self.relatives.iter().map(AsRef::as_ref);
        holders.chain(relatives).find(|process| process.id.pid == pid)
    }
}
