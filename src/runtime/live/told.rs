//! What the threads behind a session are told.

use super::{Feed, Live};
use crate::ui;

impl Live {
    /// What slow figures are shown now.
    pub fn want(&mut self, wants: ui::Wants) {
        if let Some(fleet) = &mut self.fleet {
            fleet.want(wants.pcie, &self.options);
        }
        if let Feed::Driver { sampler, .. } = &self.feed {
            sampler.want(crate::source::Wants {
                pcie: wants.pcie,
                process_utilization: wants.process_utilization,
                details: wants.pcie,
            });
        }
    }

    /// Another refresh interval.
    pub fn set_interval(&mut self, interval_ms: u64) {
        self.options.interval_ms = interval_ms;
        self.pace();
    }

    pub(in crate::runtime) fn pace(&mut self) {
        let least_ms = self.rhythm.least_ms();
        if let Feed::Driver { sampler, .. } = &self.feed {
            sampler.set_interval(self.options.interval_ms.max(least_ms));
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.look_all(&self.options, least_ms);
        }
    }

    /// Looks at once, at GPUs that sleep too.
    pub fn wake(&self) {
        if let Feed::Driver { sampler, .. } = &self.feed {
            sampler.progress.wake();
            sampler.nudge();
        }
    }

    /// Looks at once.
    pub fn nudge(&self) {
        if let Feed::Driver { sampler, .. } = &self.feed {
            sampler.nudge();
        }
    }
}
