//! Several machines in the loop: what comes from them, and what is asked of them. The user's word is
//! given here; everything else of a kill happens where the processes are.

use std::io;
use std::time::Duration;

use super::Looper;
use crate::record::Ask;
use crate::runtime::remote::fleet::{Fleet, News};
use crate::sample::KillOrder;
use crate::ui::kill::{Phase, Proof, Typed};
use crate::ui::{Event, Message};

/// Waits for any machine; for ever where there is none.
pub(super) async fn news(fleet: Option<&Fleet>) {
    match fleet {
        Some(fleet) => fleet.next().await,
        None => std::future::pending().await,
    }
}

/// News of a machine that is not selected are shown within this time.
const OVERVIEW: Duration = Duration::from_millis(500);

impl Looper {
    /// Takes what has come from the machines.
    pub(super) fn hosts(&mut self) -> io::Result<()> {
        let (news, own) = self.live.take_hosts();
        for news in news {
            match news {
                News::Plan(dialog) => self.update(Event::Plan(dialog))?,
                News::Kill(event) => self.update(Event::Kill(event))?,
                News::Proof(proof) => self.update(Event::Proof(proof))?,
                News::Refused(why) => self.refused(why)?,
            }
        }
        if own {
            self.idle.looked();
        }
        self.spare();
        self.alert_of_hosts(own);
        // GPU facts wait for the process facts of the same moment, other machines for both.
        self.want_frame(if own { super::JOIN } else { OVERVIEW });
        Ok(())
    }

    /// Tells of what the user wants to be told of, on whichever machine it is.
    fn alert_of_hosts(&mut self, own: bool) {
        // News of another machine is none of the one that is shown.
        let unseen = if own { self.live.unseen(true) } else { None };
        let listens = self.notifier.listens();
        if listens || (own && !self.idle.draws(&self.screen)) {
            self.live.rebuild();
        }
        if !listens {
            return;
        }
        let Some(fleet) = &mut self.live.fleet else { return };
        let (mut bytes, selected) = (Vec::new(), fleet.selected);
        for n in fleet.fresh() {
            if let Some(machine) = fleet.machines.get(n).filter(|_| n != selected) {
                bytes.extend(self.notifier.look_at(machine.host.name(), &machine.seen.view));
            }
        }
        if let Some(machine) = fleet.current().filter(|_| own) {
            bytes.extend(
                self.notifier
                    .look_at(machine.host.name(), unseen.as_ref().unwrap_or(&self.live.view)),
            );
        }
        self.tell(&bytes);
    }

    pub(super) fn plan_at_host(&mut self, ask: Ask) -> io::Result<()> {
        let Some(fleet) = &mut self.live.fleet else { return Ok(()) };
        match fleet.plan(ask) {
            Ok(()) => Ok(()),
            Err(why) => self.refused(why),
        }
    }

    pub(super) fn kill_at_host(&mut self, order: &KillOrder) -> io::Result<()> {
        let typed = self.live.app.kill.as_ref().and_then(|dialog| dialog.typed.as_ref());
        let typed = typed.map(|Typed { entered, .. }| entered.clone());
        let Some(fleet) = &mut self.live.fleet else { return Ok(()) };
        match fleet.kill(order, typed) {
            Ok(()) => Ok(()),
            Err(why) => self.refused(why),
        }
    }

    pub(super) fn retry_host(&self) {
        if let Some(fleet) = &self.live.fleet {
            fleet.retry(self.live.host_options());
        }
    }

    /// Says why something is not done; a dialog about it says so itself.
    fn refused(&mut self, why: String) -> io::Result<()> {
        match self.live.app.kill.as_ref().map(|dialog| &dialog.phase) {
            Some(Phase::Running(_)) => {
                let proof = Proof { sentence: why, ..Proof::default() };
                self.update(Event::Proof(proof))
            }
            Some(Phase::Done { .. }) => Ok(()),
            Some(Phase::Asking) | None => {
                self.live.app.kill = None;
                self.update(Event::Message(Message { text: why, error: true }))
            }
        }
    }
}
