//! Ending processes from the view: the plan, the user's word, what happens, the proof.

use std::io;

use super::Looper;
use crate::analyze::KillPlan;
use crate::ids::ProcId;
use crate::record::Ask;
use crate::runtime::kill;
use crate::sample::{KillEvent, KillOrder, KillPreset};
use crate::ui::{Event, Message};

impl Looper {
    pub(super) fn plan_kill(
        &mut self,
        targets: &[ProcId],
        preset: Option<KillPreset>,
    ) -> io::Result<()> {
        if self.live.fleet.is_some() {
            return self.plan_at_host(Ask::Plan { targets: targets.to_vec(), preset });
        }
        self.planned(crate::analyze::plan(&self.live.view, targets, preset))
    }

    pub(super) fn plan_zombies(&mut self) -> io::Result<()> {
        let gpu = self.live.scope_index();
        if self.live.fleet.is_some() {
            return self.plan_at_host(Ask::Zombies { gpu });
        }
        self.planned(crate::analyze::zombies(&self.live.view, gpu))
    }

    pub(super) fn cancel_kill(&mut self) {
        if let Some(killing) = &self.live.killing {
            killing.cancel();
        }
        if let Some(fleet) = &mut self.live.fleet {
            fleet.cancel();
        }
    }

    fn planned(&mut self, plan: KillPlan) -> io::Result<()> {
        let dialog = kill::dialog(&plan);
        self.plan = Some(plan);
        self.update(Event::Plan(dialog))
    }

    pub(super) fn begin_kill(&mut self, order: &KillOrder) -> io::Result<()> {
        if self.live.fleet.is_some() {
            return self.kill_at_host(order);
        }
        // What is carried out is the plan that was shown, and nothing else.
        let Some(plan) = self.plan.take().filter(|plan| plan.order == *order) else {
            return Ok(());
        };
        if self.live.is_replay() {
            let text = "this is a recording: nothing can be ended in it".to_owned();
            self.live.app.kill = None;
            return self.update(Event::Message(Message { text, error: true }));
        }
        self.live.killing = Some(kill::Killing::begin(plan, self.live.view.clone())?);
        Ok(())
    }

    pub(super) fn kill(&mut self, event: Option<KillEvent>) -> io::Result<()> {
        if let Some(event) = event {
            self.live.mark_kill(&event);
            self.update(Event::Kill(event))?;
        }
        self.live.nudge();
        self.prove()
    }

    /// Says what came back, once it is known or can be waited for no longer.
    pub(super) fn prove(&mut self) -> io::Result<()> {
        if !self.live.killing.as_ref().is_some_and(kill::Killing::has_finished) {
            return Ok(());
        }
        let now = self.live.present();
        let proof = self.live.killing.as_ref().and_then(|killing| killing.proof(&now));
        if let Some(proof) = proof {
            self.live.killing = None;
            self.live.mark_proof(&proof.sentence);
            self.update(Event::Proof(kill::shown(&proof)))?;
        }
        Ok(())
    }
}
