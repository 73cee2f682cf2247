//! What a holder is, and why: the classes in the order in which the first that fits wins.

mod absent;
mod activity;
mod managers;
mod names;
mod signs;
mod states;
mod traps;

use super::scene::{Presence, Scene};
use super::{Class, Evidence, Verdict, Weight};
use crate::history::HolderTrack;
use crate::ids::{Pid, ProcId};
use crate::sample::{GpuProc, GpuSample, ProcSample};

pub use names::{guard, shows_screen, worker};
pub use signs::link;
pub use states::cure;
pub use traps::{Effect, Held, TRAPS, Trap};

use activity::Activity;
use signs::Signs;

/// How sure it is that a process keeps a dead one's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// It was taken in by another parent, and has that GPU open.
    Strong,
    /// It is of the dead process's own family.
    Certain,
}

/// Everything that is known of one row.
pub struct Case<'a> {
    /// The newest looks.
    pub scene: &'a Scene<'a>,
    /// On which GPU.
    pub gpu: &'a GpuSample,
    /// As listed.
    pub pid: Pid,
    /// The driver's row; `None` for whoever is in no list.
    pub row: Option<&'a GpuProc>,
    /// Who has the pid now.
    pub process: Option<&'a ProcSample>,
    /// Its past as a row.
    pub track: Option<&'a HolderTrack>,
    /// Whether its process exists.
    pub presence: Presence,
    /// For a dead row: who keeps its memory.
    pub survivors: &'a [(ProcId, Link)],
    /// For an unlisted process: whose memory it keeps.
    pub keeps: &'a [(Pid, Link)],
}

fn said(key: &'static str, text: String) -> Evidence {
    Evidence { key, weight: Weight::For, text }
}

fn against(key: &'static str, text: String) -> Evidence {
    Evidence { key, weight: Weight::Against, text }
}

fn note(key: &'static str, text: String) -> Evidence {
    Evidence { key, weight: Weight::Neutral, text }
}

fn finish(class: Class, evidence: Vec<Evidence>) -> Verdict {
    Verdict { class, zombie: false, since_ms: None, evidence, manager: None }
}

/// The verdict on one row.
pub fn judge(case: &Case<'_>) -> Verdict {
    match (case.presence, case.process) {
        (Presence::Gone, _) => absent::gone(case),
        (Presence::Reused, _) => absent::reused(case),
        (Presence::NotLooked, _) | (Presence::Alive, None) => absent::not_looked(case),
        (Presence::Alive, Some(process)) => {
            let mut verdict = states::judge(case, process).unwrap_or_else(|| weigh(case, process));
            verdict.manager = managers::of(case.scene, process);
            verdict
        }
    }
}

/// Weighs the signs against the shields.
fn weigh(case: &Case<'_>, process: &ProcSample) -> Verdict {
    let signs = Signs::of(case, process);
    let shields = Shields::of(case, process, &signs);
    let activity = activity::of(case, process, shields.not_idle);
    let unread = unread_list(case, process);
    let class = class(case, &signs, (&shields, unread.is_some()), &activity);
    let zombie = is_zombie(case, class, &signs, &shields, &activity);
    let since_ms = match class {
        Class::Idle | Class::IdleServer | Class::BusyCpu | Class::Orphan => activity.idle_ms,
        _ => None,
    };
    let mut evidence = signs.evidence;
    evidence.extend(activity.evidence);
    evidence.extend(shields.evidence);
    if class == Class::Hidden {
        let text = "has the device open and is in none of the driver's lists".to_owned();
        evidence.insert(0, note("unlisted", text));
    }
    if let Some(unread) = unread {
        evidence.insert(0, unread);
    }
    evidence.extend(states::unread(process));
    if class == Class::Survivor && absent::owner_just_ended(case) {
        let text = "its owner ended only now: it may still follow".to_owned();
        evidence.push(against("owner_just_ended", text));
    }
    Verdict { class, zombie, since_ms, evidence, manager: None }
}

/// For whoever is in no list: that it may stand in one that could not be read, be it of this GPU or
/// of another one that it has open.
fn unread_list(case: &Case<'_>, process: &ProcSample) -> Option<Evidence> {
    if case.row.is_some() {
        return None;
    }
    let gpu = case.scene.may_be_listed_on(case.gpu, process)?;
    let whose = if gpu.uuid == case.gpu.uuid {
        "the driver's list".to_owned()
    } else {
        format!("the driver's list for GPU {}", gpu.index)
    };
    if let Some(why) = gpu.unlisted() {
        let text = format!("has the device open; {whose} is not told: {}", why.words());
        return Some(note("list_unreadable", text));
    }
    let (who, why) = case.scene.tick.unread_lists(gpu).missing()?;
    let text = format!("has the device open; {whose} of {who} is not told: {why}");
    Some(note("list_incomplete", text))
}

/// What the traps' rules prevent.
struct Shields {
    orphan: bool,
    zombie: bool,
    not_idle: bool,
    protected: bool,
    server: bool,
    evidence: Vec<Evidence>,
}

impl Shields {
    fn of(case: &Case<'_>, process: &ProcSample, signs: &Signs) -> Self {
        let mut found = Self {
            orphan: false,
            zombie: false,
            not_idle: false,
            protected: false,
            server: false,
            evidence: Vec::new(),
        };
        for trap in &TRAPS {
            match (trap.check)(case, process) {
                Held::Yes(text) => found.hold(trap, text, signs),
                // What cannot be told is not ended with one key.
                Held::CannotTell(text) => {
                    found.zombie |= found.shield(trap.effect, signs).is_some_and(|s| s.guards);
                    found.evidence.push(note(trap.key, text.to_owned()));
                }
                Held::No => {}
            }
        }
        found
    }

    fn hold(&mut self, trap: &Trap, text: String, signs: &Signs) {
        let Some(shield) = self.shield(trap.effect, signs) else {
            self.evidence.push(note(trap.key, text));
            return;
        };
        *shield.holds = true;
        let weight = if shield.guards { Weight::Against } else { Weight::Neutral };
        self.server |= trap.key == "listening";
        self.evidence.push(Evidence { key: trap.key, weight, text });
    }

    /// What an effect sets for a process with these signs; `None` where it is exempt.
    fn shield(&mut self, effect: Effect, signs: &Signs) -> Option<Shield<'_>> {
        let lone = signs.worker || signs.survivor;
        let (holds, guards) = match effect {
            Effect::NoOrphan => (&mut self.orphan, true),
            Effect::NoOrphanUnlessWorker if !signs.worker => (&mut self.orphan, true),
            Effect::NoOrphanUnlessLone if !lone => (&mut self.orphan, true),
            Effect::NoZombie => (&mut self.zombie, true),
            Effect::NoZombieUnlessWorker if !signs.worker => (&mut self.zombie, true),
            Effect::NotIdle => (&mut self.not_idle, false),
            Effect::Protects => (&mut self.protected, true),
            _ => return None,
        };
        Some(Shield { holds, guards })
    }
}

/// One of the shields, and whether it guards against the one-key kill.
struct Shield<'a> {
    holds: &'a mut bool,
    guards: bool,
}

fn class(
    case: &Case<'_>,
    signs: &Signs,
    (shields, unread): (&Shields, bool),
    activity: &Activity,
) -> Class {
    if shields.protected {
        return Class::Protected;
    }
    if signs.survivor {
        return Class::Survivor;
    }
    if case.row.is_none() {
        // In none of the lists is who is in none that could be read, where each could be.
        return if unread { Class::Unknown } else { Class::Hidden };
    }
    if signs.orphan() && !shields.orphan {
        return Class::Orphan;
    }
    let quiet = activity.idle_ms.is_some_and(|ms| ms >= 60_000) && !shields.not_idle;
    match activity.class {
        Class::Idle | Class::Unknown if shields.server && quiet => Class::IdleServer,
        class => class,
    }
}

/// What may go with one key: survivors of a ghost, orphans that are long idle, and workers of
/// which two signs say that nobody is left to give them work.
fn is_zombie(
    case: &Case<'_>,
    class: Class,
    signs: &Signs,
    shields: &Shields,
    activity: &Activity,
) -> bool {
    if shields.zombie || shields.protected || shields.orphan {
        return false;
    }
    match class {
        Class::Survivor => !absent::owner_just_ended(case),
        Class::Orphan => activity.long_idle || (signs.lone_worker() && !activity.active),
        _ => false,
    }
}
