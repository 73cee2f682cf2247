//! At work, idle since, or nobody can tell.

use super::traps::{CPU_RECENT_MS, LEAST_ZEROS};
use super::{Case, against, note, said};
use crate::analyze::{Class, Evidence};
use crate::sample::ProcSample;
use crate::units::age;

/// Use of the GPU within this time makes a process active, in milliseconds.
const ACTIVE_MS: u64 = 60_000;

/// What is known of a process's use of the GPU.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The class that follows, where nothing else is known.
    pub class: Class,
    /// Watched without use for this long, in milliseconds.
    pub idle_ms: Option<u64>,
    /// Used the GPU within the last minute.
    pub active: bool,
    /// Idle for as long as the settings ask, in enough samples, and not at work on the CPU.
    pub long_idle: bool,
    /// In words.
    pub evidence: Vec<Evidence>,
}

/// Judges the use of one process on one GPU. `never_idle` where nothing can be said of it.
pub fn of(case: &Case<'_>, process: &ProcSample, never_idle: bool) -> Activity {
    let now_ms = case.scene.now_ms;
    let usage = case.track.map(|track| track.usage);
    let mut found = Activity {
        class: Class::Unknown,
        idle_ms: usage.and_then(|usage| usage.idle_ms(now_ms)),
        active: false,
        long_idle: false,
        evidence: Vec::new(),
    };
    let busy_ms = usage.and_then(|usage| usage.busy_ms).map(|at| now_ms.saturating_sub(at));
    if let Some(ago) = busy_ms.filter(|ago| *ago < ACTIVE_MS) {
        found.active = true;
        found.class = Class::Active;
        found.evidence.push(against("used_gpu", format!("used the GPU {} ago", age(ago))));
        return found;
    }
    let Some((usage, idle_ms)) = usage.zip(found.idle_ms).filter(|_| !never_idle) else {
        if !never_idle {
            let text = "its use of the GPU is not known yet".to_owned();
            found.evidence.push(note("use_unknown", text));
        }
        return found;
    };
    let watched = format!("0 % SM in {} samples over {}", usage.zeros, age(idle_ms));
    found.evidence.push(if usage.zeros < LEAST_ZEROS {
        note("no_use", watched)
    } else {
        said("no_use", watched)
    });
    classify(case, process, idle_ms, usage.zeros, &mut found);
    found
}

fn classify(case: &Case<'_>, process: &ProcSample, idle_ms: u64, zeros: u32, found: &mut Activity) {
    if idle_ms < ACTIVE_MS || zeros < LEAST_ZEROS {
        return;
    }
    let worked = case.scene.track(process.id).and_then(|track| track.cpu_busy_ms);
    let on_cpu = worked.is_some_and(|at| case.scene.now_ms.saturating_sub(at) <= CPU_RECENT_MS);
    let long = idle_ms >= case.scene.moment.idle_after_ms;
    found.long_idle = long && !on_cpu;
    if on_cpu {
        found.class = Class::BusyCpu;
    } else if long {
        found.class = Class::Idle;
    }
}
