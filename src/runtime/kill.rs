//! Ending processes: the plan as a dialog, the order on a thread of its own, the proof from what
//! the driver says afterwards.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, channel};

use crate::analyze::{KillPlan, KillProof, OrderEnd, Silent, View, proven};
use crate::host::KillContext;
use crate::host::signals::execute;
use crate::ids::{GpuIndex, ProcId};
use crate::runtime::{clock, probing};
use crate::sample::{KillEvent, KillMark, KillMarked, KillPreset, KillStep, Reading};
use crate::ui::kill::{Dialog, DialogRow, Phase, Proof, Typed, words};

/// Between two looks while memory is waited for.
pub const POLL: Duration = Duration::from_millis(200);

/// An order that is being carried out.
pub struct Killing {
    plan: KillPlan,
    before: View,
    events: Receiver<KillEvent>,
    cancel: Arc<AtomicBool>,
    /// Targets whose end was seen.
    gone: Vec<ProcId>,
    end: Option<OrderEnd>,
}

impl Killing {
    /// Begins to carry out a plan that the user has confirmed.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn begin(plan: KillPlan, before: View) -> io::Result<Self> {
        let who: Vec<String> = plan.rows.iter().map(|row| row.id.pid.to_string()).collect();
        log::info!("{}: {}", title(&plan), who.join(", "));
        let (to, events) = channel(1024);
        let cancel = Arc::new(AtomicBool::new(false));
        let (order, stop) = (plan.order.clone(), Arc::clone(&cancel));
        std::thread::Builder::new().name("kill".to_owned()).spawn(move || {
            let context = KillContext::new(&probing::stand_ins());
            let mut tell = |event| drop(to.blocking_send(event));
            execute(&order, &context, &clock::now, &mut tell, &stop);
        })?;
        Ok(Self { plan, before, events, cancel, gone: Vec::new(), end: None })
    }

    /// What happens next; for ever pending after the end.
    pub async fn next(&mut self) -> Option<KillEvent> {
        if self.end.is_some() {
            return std::future::pending().await;
        }
        let event = self.events.recv().await;
        if let Some(event) = &event {
            log::debug!("{}", words(event));
            if matches!(event.what, KillStep::Gone | KillStep::AlreadyGone) {
                self.gone.extend(event.id);
            }
        }
        if event.as_ref().is_none_or(|event| event.what == KillStep::Finished) {
            self.end = Some(OrderEnd { at: clock::now(), gone: std::mem::take(&mut self.gone) });
        }
        event
    }

    /// What of an event belongs into a recording.
    pub fn mark(&self, event: &KillEvent) -> Option<KillMark> {
        let (KillStep::Sent(signal), Some(id)) = (&event.what, event.id) else { return None };
        let row = self.plan.rows.iter().find(|row| row.id == id);
        let name = row.map_or_else(String::new, |row| row.name.clone());
        Some(KillMark { at: clock::now(), what: KillMarked::Signal { id, name, signal: *signal } })
    }

    /// Sends no further signal.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::SeqCst);
    }

    /// Whether every signal has been sent and waited for.
    pub const fn has_finished(&self) -> bool {
        self.end.is_some()
    }

    /// What came back, once all of it has, or as much as will; that it is not known, once it can be
    /// waited for no longer.
    pub fn proof(&self, after: &View) -> Option<KillProof> {
        let end = self.end.as_ref()?;
        proven(&self.before, after, &self.plan, end, clock::now()).map(logged)
    }

    /// Where nobody will look any more.
    pub fn unseen(&self) -> KillProof {
        logged(KillProof::unseen(&self.plan, Silent::Driver))
    }
}

fn logged(proof: KillProof) -> KillProof {
    log::info!("{}", proof.sentence);
    for left in &proof.remaining {
        log::warn!("{}: {}", left.pid, left.reason);
    }
    proof
}

/// The proof as the dialog shows it.
pub fn shown(proof: &KillProof) -> Proof {
    let remaining = proof.remaining.iter().flat_map(|left| {
        let bytes = left.bytes.map(|bytes| format!(" {bytes}:")).unwrap_or_default();
        let why = format!("{}{bytes} {}", left.pid, left.reason);
        [Some(why), left.command.clone()]
    });
    let next = proof.is_open().then(|| proof.next().map(ToOwned::to_owned)).flatten();
    Proof {
        sentence: proof.sentence.clone(),
        complete: proof.complete(),
        unknown: proof.is_open(),
        remaining: remaining.flatten().chain(next).collect(),
    }
}

/// A plan as the dialog asks about it.
pub fn dialog(plan: &KillPlan) -> Dialog {
    Dialog {
        title: title(plan),
        rows: plan.rows.iter().map(row).collect(),
        refused: plan.refused.iter().map(refused).collect(),
        note: note(plan.order.preset).to_owned(),
        order: plan.order.clone(),
        typed: plan
            .needs_typed_confirmation
            .then(|| Typed { word: CONFIRMATION.to_owned(), entered: String::new() }),
        phase: Phase::Asking,
    }
}

/// What has to be typed before something is ended that others may need.
pub const CONFIRMATION: &str = "end it";

/// `End 2 processes, 44.2 GiB on GPU 0,1`.
pub fn title(plan: &KillPlan) -> String {
    let count = match plan.rows.len() {
        0 => return "Nothing to end".to_owned(),
        1 => "1 process".to_owned(),
        n => format!("{n} processes"),
    };
    let gpus: Vec<GpuIndex> = plan.expected.iter().map(|part| part.index).collect();
    if gpus.is_empty() {
        return format!("End {count}");
    }
    let list: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    let least = if plan.expected_told().value().is_some() { "" } else { "at least " };
    format!("End {count}, {least}{} on GPU {}", plan.expected_total(), list.join(","))
}

fn row(row: &crate::analyze::PlanRow) -> DialogRow {
    DialogRow {
        id: Some(row.id),
        pid: row.id.pid.0,
        user: match &row.user {
            Reading::Value(name) => name.clone(),
            Reading::Absent(_) => "?".to_owned(),
        },
        command: row.name.clone(),
        bytes: row.holds(),
        note: row.why(),
    }
}

/// One line on somebody who is left alone: why, and what to type instead.
pub fn refused(refusal: &crate::analyze::Refusal) -> String {
    let command = refusal.command.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
    format!("{} {}: {}{command}", refusal.pid, refusal.name, refusal.reason)
}

/// What will be sent.
pub const fn note(preset: KillPreset) -> &'static str {
    match preset {
        KillPreset::Gentle => "INT, TERM after 15 s; no KILL: it may be saving.",
        KillPreset::Zombie => "TERM, then KILL after 5 s.",
        KillPreset::Now => "KILL at once.",
        KillPreset::Signal(_) => "One signal, once.",
    }
}
