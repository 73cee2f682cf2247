//! What a sequence of views gives the log to say: a driver that hangs and answers again, GPUs that
//! are lost, looks that found no room.

use std::collections::BTreeSet;

use crate::analyze::{Freshness, View};

/// A call that hangs has its name soon; longer is not waited for it.
const NAMELESS_MS: u64 = 10_000;

/// Compares each view with the one before.
#[derive(Debug)]
pub(super) struct Watch {
    stalled: bool,
    failed: String,
    lost: BTreeSet<String>,
    dropped: u64,
}

impl Watch {
    pub(super) const fn new() -> Self {
        Self { stalled: false, failed: String::new(), lost: BTreeSet::new(), dropped: 0 }
    }

    /// A look that failed; the same again says nothing.
    pub(super) fn failed(&mut self, error: &str) -> Vec<String> {
        if self.failed == error {
            return Vec::new();
        }
        error.clone_into(&mut self.failed);
        vec![error.to_owned()]
    }

    /// What is new in a view. One of the past, or of a recording, has nothing new.
    pub(super) fn changes(&mut self, view: &View) -> Vec<String> {
        if matches!(view.freshness, Freshness::Past | Freshness::Replay) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        match &view.freshness {
            Freshness::Stalled { call, gpu, for_ms }
                if !self.stalled && (call.is_some() || *for_ms > NAMELESS_MS) =>
            {
                self.stalled = true;
                let call = call.as_deref().map_or_else(String::new, |call| format!(" {call}"));
                let gpu = gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
                lines.push(format!("the driver does not answer{call}{gpu}"));
            }
            Freshness::Live if self.stalled || !self.failed.is_empty() => {
                (self.stalled, self.failed) = (false, String::new());
                lines.push("the driver answers again".to_owned());
            }
            _ => {}
        }
        let is_lost = |gpu: &&crate::analyze::GpuView| gpu.freshness == Freshness::Lost;
        let lost: BTreeSet<String> =
            view.gpus.iter().filter(is_lost).map(|gpu| gpu.sample.uuid.0.to_string()).collect();
        lines.extend(lost.difference(&self.lost).map(|uuid| format!("GPU {uuid} is lost")));
        lines.extend(self.lost.difference(&lost).map(|uuid| format!("GPU {uuid} is back")));
        self.lost = lost;
        if view.dropped_ticks > self.dropped {
            let lost = view.dropped_ticks - self.dropped;
            lines.push(format!("{lost} looks at the driver found no room"));
        }
        self.dropped = view.dropped_ticks;
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::runtime::clock;
    use crate::runtime::options::blank;

    #[test]
    fn each_change_is_said_once() {
        let mut view = View::build(&History::new(), &blank(clock::now(), 1000));
        let mut watch = Watch::new();
        assert_eq!(watch.changes(&view), Vec::<String>::new());
        let nameless = |for_ms| Freshness::Stalled { call: None, gpu: None, for_ms };
        view.freshness = nameless(3000);
        assert_eq!(watch.changes(&view), Vec::<String>::new());
        let call = Some("nvmlDeviceGetMemoryInfo".to_owned());
        view.freshness = Freshness::Stalled { call, gpu: None, for_ms: 3000 };
        let said = ["the driver does not answer nvmlDeviceGetMemoryInfo"];
        assert_eq!(watch.changes(&view), said);
        view.dropped_ticks = 3;
        assert_eq!(watch.changes(&view), ["3 looks at the driver found no room"]);
        view.freshness = Freshness::Live;
        assert_eq!(watch.changes(&view), ["the driver answers again"]);
        assert_eq!(watch.failed("the GPU is lost"), ["the GPU is lost"]);
        assert_eq!(watch.failed("the GPU is lost"), Vec::<String>::new());
        assert_eq!(watch.changes(&view), ["the driver answers again"]);
        view.freshness = nameless(20_000);
        assert_eq!(watch.changes(&view), ["the driver does not answer"]);
        view.freshness = Freshness::Replay;
        view.dropped_ticks = 9;
        assert_eq!(watch.changes(&view), Vec::<String>::new());
    }
}
