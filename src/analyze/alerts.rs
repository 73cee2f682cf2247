//! When somebody should be told: a state machine over successive views. Each alert is given once,
//! and again only after its cause has clearly gone and come back.

use std::collections::HashMap;

use super::{Freshness, GpuView, Growth, View};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::units::{Bytes, Percent, age};

/// What to tell of. Nothing is, by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AlertRules {
    /// A GPU's used memory is above this.
    pub vram_above: Option<Threshold>,
    /// At its present growth a GPU is full within this time, in milliseconds.
    pub full_within_ms: Option<u64>,
    /// A zombie has appeared.
    pub zombie: bool,
    /// A GPU has fallen off the bus, or is no longer there.
    pub gpu_lost: bool,
    /// The driver has reported a fault (XID).
    pub xid: bool,
}

impl AlertRules {
    /// Whether there is anything to tell of.
    pub const fn any(&self) -> bool {
        self.vram_above.is_some()
            || self.full_within_ms.is_some()
            || self.zombie
            || self.gpu_lost
            || self.xid
    }
}

/// A bound of used memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Of the GPU's total.
    Percent(Percent),
    /// As it is.
    Bytes(Bytes),
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlertKind {
    /// Used memory is above the bound.
    VramAbove,
    /// It is going to be full.
    FullWithin,
    /// A zombie has appeared.
    Zombie,
    /// A GPU is gone.
    GpuLost,
    /// The driver has reported a fault; each number is a cause of its own.
    Xid(u64),
}

impl AlertKind {
    /// Its stable key, as in the settings.
    pub const fn key(self) -> &'static str {
        match self {
            Self::VramAbove => "vram_above",
            Self::FullWithin => "full_within",
            Self::Zombie => "zombie",
            Self::GpuLost => "gpu_lost",
            Self::Xid(_) => "xid",
        }
    }
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// What happened.
    pub kind: AlertKind,
    /// On which GPU.
    pub gpu: GpuIndex,
    /// Its identity.
    pub uuid: GpuUuid,
    /// About which process.
    pub pid: Option<Pid>,
    /// In one line. May hold hostile text.
    pub text: String,
}

/// Per cent of the total below the bound at which it is armed again.
const BELOW_PERCENT: f32 = 5.0;
/// Without its cause for this long it is armed again, in milliseconds.
const CALM_MS: u64 = 30_000;
/// A fault older than this was told of, or was there before anybody listened, in milliseconds.
const FRESH_MS: u64 = 10_000;
/// How many causes are remembered.
const MOST: usize = 8_192;

type Key = (AlertKind, GpuUuid, Option<ProcId>);

/// What has been told and not yet been forgotten, by cause: when the cause was last there, in
/// milliseconds since boot.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    rules: AlertRules,
    told: HashMap<Key, u64>,
    known: HashMap<GpuUuid, GpuIndex>,
}

/// Whether a cause is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    There,
    /// Not there, and close to it: neither told nor forgotten.
    Near,
    Gone,
}

impl Alerts {
    /// With nothing told so far.
    pub fn new(rules: AlertRules) -> Self {
        Self { rules, told: HashMap::new(), known: HashMap::new() }
    }

    /// What this view adds. Only what is live counts: a replay, a past moment or a driver that does
    /// not answer changes nothing.
    pub fn look(&mut self, view: &View) -> Vec<Alert> {
        if view.freshness != Freshness::Live {
            return Vec::new();
        }
        let now_ms = view.at.boot_ms;
        let mut alerts = Vec::new();
        for gpu in &view.gpus {
            self.vram(gpu, now_ms, &mut alerts);
            self.full(gpu, now_ms, &mut alerts);
            self.faults(gpu, now_ms, &mut alerts);
        }
        if self.rules.zombie {
            self.zombies(view, now_ms, &mut alerts);
        }
        if self.rules.gpu_lost {
            self.lost(view, now_ms, &mut alerts);
        }
        // What is not seen any more at all is forgotten after a while, too.
        self.told.retain(|_, last_ms| now_ms.saturating_sub(*last_ms) < CALM_MS);
        alerts
    }

    /// True where it is to be told now.
    fn is_new(&mut self, key: Key, cause: Cause, now_ms: u64) -> bool {
        match (cause, self.told.get_mut(&key)) {
            (Cause::There | Cause::Near, Some(last_ms)) => {
                *last_ms = now_ms;
                false
            }
            // Time passes for it; a cause that flickers is one cause.
            (Cause::Gone, Some(_)) | (Cause::Gone | Cause::Near, None) => false,
            (Cause::There, None) => {
                if self.told.len() >= MOST {
                    return false;
                }
                self.told.insert(key, now_ms);
                true
            }
        }
    }

    fn vram(&mut self, gpu: &GpuView, now_ms: u64, alerts: &mut Vec<Alert>) {
        let Some((bound, ledger)) = self.rules.vram_above.zip(gpu.ledger.get()) else { return };
        let Some(used) = ledger.used.percent_of(ledger.total) else { return };
        let bound = match bound {
            Threshold::Percent(percent) => percent.0,
            Threshold::Bytes(bytes) => bytes.percent_of(ledger.total).map_or(100.0, |p| p.0),
        };
        let cause = match used.0 {
            share if share > bound => Cause::There,
            share if share > bound - BELOW_PERCENT => Cause::Near,
            _ => Cause::Gone,
        };
        if cause == Cause::Gone {
            // A clear fall is enough: no waiting.
            self.told.remove(&(AlertKind::VramAbove, gpu.sample.uuid.clone(), None));
        }
        if self.is_new((AlertKind::VramAbove, gpu.sample.uuid.clone(), None), cause, now_ms) {
            let text = format!(
                "GPU {}: {} of {} used ({:.0}%)",
                gpu.sample.index, ledger.used, ledger.total, used.0
            );
            alerts.push(alert(AlertKind::VramAbove, gpu, None, text));
        }
    }

    fn full(&mut self, gpu: &GpuView, now_ms: u64, alerts: &mut Vec<Alert>) {
        let Some(within_ms) = self.rules.full_within_ms else { return };
        let likely = match gpu.growth {
            Growth::Trend { full_in_ms: Some([_, likely, _]), .. } => Some(likely),
            _ => None,
        };
        let cause = match likely {
            Some(ms) if ms <= within_ms => Cause::There,
            Some(ms) if ms <= within_ms.saturating_mul(2) => Cause::Near,
            _ => Cause::Gone,
        };
        if self.is_new((AlertKind::FullWithin, gpu.sample.uuid.clone(), None), cause, now_ms) {
            let left = age(likely.unwrap_or(0));
            let text =
                format!("GPU {}: full in about {left} if it goes on like this", gpu.sample.index);
            alerts.push(alert(AlertKind::FullWithin, gpu, None, text));
        }
    }

    /// The same number again within the calm is the same alert: one bug gives many.
    fn faults(&mut self, gpu: &GpuView, now_ms: u64, alerts: &mut Vec<Alert>) {
        // What an instance had, its GPU has too.
        if !self.rules.xid || gpu.sample.mig.is_some() {
            return;
        }
        let fresh = gpu.xids.recent.iter().filter(|seen| seen.age_ms < FRESH_MS);
        for (code, seen) in fresh.map(|seen| (seen.xid.code, seen)).rev() {
            let kind = AlertKind::Xid(code);
            if self.is_new((kind, gpu.sample.uuid.clone(), None), Cause::There, now_ms) {
                let text = format!("GPU {}: XID {code}: {}", gpu.sample.index, seen.xid.meaning);
                alerts.push(alert(kind, gpu, None, text));
            }
        }
    }

    fn zombies(&mut self, view: &View, now_ms: u64, alerts: &mut Vec<Alert>) {
        for holder in view.holders.iter().filter(|holder| holder.verdict.zombie) {
            let Some(id) = holder.id else { continue };
            let key = (AlertKind::Zombie, holder.gpu.clone(), Some(id));
            if self.is_new(key, Cause::There, now_ms) {
                let held = holder.bytes.get().map_or_else(String::new, |b| format!(" holds {b}"));
                let text = format!(
                    "GPU {}: zombie {}{held}: {}",
                    holder.index,
                    holder.pid,
                    holder.command_without_secrets().chars().take(80).collect::<String>()
                );
                let uuid = holder.gpu.clone();
                let (kind, gpu, pid) = (AlertKind::Zombie, holder.index, Some(holder.pid));
                alerts.push(Alert { kind, gpu, uuid, pid, text });
            }
        }
    }

    fn lost(&mut self, view: &View, now_ms: u64, alerts: &mut Vec<Alert>) {
        let there: HashMap<GpuUuid, (GpuIndex, bool)> = view
            .gpus
            .iter()
            .filter(|gpu| gpu.sample.mig.is_none())
            .map(|gpu| {
                let fine = gpu.freshness != Freshness::Lost;
                (gpu.sample.uuid.clone(), (gpu.sample.index, fine))
            })
            .collect();
        for (uuid, (index, _)) in &there {
            // One that sleeps from the start gets its own name when it wakes.
            if self.known.len() < MOST && !uuid.is_unknown() {
                self.known.insert(uuid.clone(), *index);
            }
        }
        let mut known: Vec<_> = self.known.iter().map(|(u, i)| (*i, u.clone())).collect();
        known.sort();
        for (index, uuid) in known {
            let cause = match there.get(&uuid) {
                Some((_, true)) => Cause::Gone,
                Some((_, false)) | None => Cause::There,
            };
            if self.is_new((AlertKind::GpuLost, uuid.clone(), None), cause, now_ms) {
                let text = format!("GPU {index} is lost: {uuid}");
                let kind = AlertKind::GpuLost;
                alerts.push(Alert { kind, gpu: index, uuid, pid: None, text });
            }
        }
    }
}

fn alert(kind: AlertKind, gpu: &GpuView, pid: Option<Pid>, text: String) -> Alert {
    Alert { kind, gpu: gpu.sample.index, uuid: gpu.sample.uuid.clone(), pid, text }
}
