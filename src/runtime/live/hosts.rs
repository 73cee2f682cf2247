//! A session over several machines: what is shown is that of the selected one, and moves in and out
//! of the fleet with the selection.

use super::Live;
use crate::runtime::clock;
use crate::runtime::conclude::Conclusions;
use crate::runtime::options::blank;
use crate::runtime::remote::fleet::News;
use crate::ui::{Page, Position};

impl Live {
    /// Takes what has come from all machines; whether anything is of the one that is shown.
    pub fn take_hosts(&mut self) -> (Vec<News>, bool) {
        let Some(fleet) = &mut self.fleet else { return (Vec::new(), false) };
        let taken = fleet.take(&mut self.history, &mut self.timeline, &self.options);
        // What is shown while paused does not change.
        self.stale |= taken.1 && self.app.position == Position::Live;
        taken
    }

    /// What the session was told from outside.
    pub(crate) const fn host_options(&self) -> &crate::runtime::options::Options {
        &self.options
    }

    /// Selects another machine. Nothing that was chosen on the last one holds for this one.
    pub fn select_host(&mut self, to: usize) {
        let Some(fleet) = &mut self.fleet else { return };
        if to == fleet.selected || to >= fleet.machines.len() {
            return;
        }
        self.swap();
        if let Some(fleet) = &mut self.fleet {
            fleet.selected = to;
        }
        self.swap();
        // Verdicts of the past are kept of the machine that is shown.
        (self.conclusions, self.held) = (Conclusions::default(), None);
        let app = &mut self.app;
        (app.selected, app.scope, app.position) = (None, None, Position::Live);
        app.marks.clear();
        (app.finding, app.scroll) = (0, 0);
        if !matches!(app.page, Page::Main | Page::Help | Page::Fixes) {
            app.page = Page::Main;
        }
        self.want(self.app.wanted);
        self.stale = true;
    }

    /// Puts what is shown and what the fleet keeps of the selected machine in each other's place.
    fn swap(&mut self) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(machine) = fleet.machines.get_mut(fleet.selected) else { return };
        std::mem::swap(&mut self.history, &mut machine.seen.history);
        std::mem::swap(&mut self.timeline, &mut machine.seen.timeline);
        std::mem::swap(&mut self.view, &mut machine.seen.view);
        std::mem::swap(&mut self.findings, &mut machine.seen.findings);
    }

    /// The moment of the selected machine.
    pub(super) fn host_moment(&self) -> Option<crate::analyze::Moment> {
        let machine = self.fleet.as_ref()?.current();
        let now = || blank(clock::now(), self.options.interval_ms);
        Some(machine.map_or_else(now, |one| one.moment(self.app.position, &self.options)))
    }

    /// Makes the overview, of what was just built among others.
    pub(super) fn sum_up_hosts(&mut self) {
        let live = self.app.position == Position::Live;
        if let Some(fleet) = &mut self.fleet
            && let Some(machine) = fleet.machines.get_mut(fleet.selected).filter(|_| live)
        {
            machine.sum_up(&self.view, &self.findings);
        }
        self.show_hosts();
    }

    /// Puts the overview where the screen finds it.
    pub(super) fn show_hosts(&mut self) {
        if let Some(fleet) = &mut self.fleet {
            self.app.hosts.lines = fleet.lines(&self.options);
            self.app.hosts.selected = fleet.selected;
        }
    }
}
