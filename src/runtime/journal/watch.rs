//! What a sequence of views gives the log to say: a driver that hangs and answers again, GPUs that
//! are lost, looks that found no room.

use std::collections::BTreeSet;

use crate::analyze::{Freshness, View};

/// Compares each view with the one before.
#[derive(Debug, Default)]
pub struct Watch {
    stalled: bool,
    lost: BTreeSet<String>,
    dropped: u64,
}

impl Watch {
    /// Logs what has changed. Free of cost where no log is kept.
    pub fn look(&mut self, view: &View) {
        if log::max_level() == log::LevelFilter::Off {
            return;
        }
        for line in self.changes(view) {
            log::warn!("{line}");
        }
    }

    fn changes(&mut self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        match &view.freshness {
            Freshness::Stalled { call, gpu, .. } if !self.stalled => {
                self.stalled = true;
                let call = call.as_deref().map_or_else(String::new, |call| format!(" {call}"));
                let gpu = gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
                lines.push(format!("the driver does not answer{call}{gpu}"));
            }
            Freshness::Live if std::mem::take(&mut self.stalled) => {
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
        let mut watch = Watch::default();
        assert_eq!(watch.changes(&view), Vec::<String>::new());
        let call = Some("nvmlDeviceGetMemoryInfo".to_owned());
        view.freshness = Freshness::Stalled { call, gpu: None, for_ms: 3000 };
        let said = ["the driver does not answer nvmlDeviceGetMemoryInfo"];
        assert_eq!(watch.changes(&view), said);
        view.dropped_ticks = 3;
        assert_eq!(watch.changes(&view), ["3 looks at the driver found no room"]);
        view.freshness = Freshness::Live;
        assert_eq!(watch.changes(&view), ["the driver answers again"]);
        assert_eq!(watch.changes(&view), Vec::<String>::new());
    }
}
