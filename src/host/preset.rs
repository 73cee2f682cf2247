//! What a preset means: which signals, in which order, with how much time. Signals nothing.

use std::time::Duration;

use rustix::process::Signal;

use crate::host::devices::{DeviceTable, StandIn};
use crate::host::facts;
use crate::host::root::Root;
use crate::sample::{KillPreset, Reading};

/// How long the steps of the presets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// After INT, gentle.
    pub interrupt: Duration,
    /// After TERM, gentle.
    pub terminate: Duration,
    /// How much longer at the most while it writes to disk, gentle.
    pub saving: Duration,
    /// After TERM, for leftovers.
    pub leftover: Duration,
    /// After the signal to the root of a job, before the rest of the job gets it.
    pub root_first: Duration,
    /// After KILL, or after a single signal that ends a process.
    pub kill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(15),
            terminate: Duration::from_mins(1),
            saving: Duration::from_mins(10),
            leftover: Duration::from_secs(5),
            root_first: Duration::from_secs(3),
            kill: Duration::from_secs(10),
        }
    }
}

/// What an order is carried out with. Always on this machine: pids of a tree of files are nobody's.
#[derive(Debug, Clone)]
pub struct KillContext {
    pub(super) root: Root,
    pub(super) devices: DeviceTable,
    /// How long to wait.
    pub patience: Patience,
    /// Whether pids may be those of another PID namespace, as in a container. There nothing is
    /// signalled that has no NVIDIA device open.
    pub in_container: bool,
}

impl KillContext {
    /// For this machine. `stand_ins` are the files that tests take for devices.
    pub fn new(stand_ins: &[StandIn]) -> Self {
        let root = Root::machine();
        let facts = facts::read(&root);
        Self {
            devices: DeviceTable::read(&root, stand_ins),
            patience: Patience::default(),
            in_container: facts.container.is_some()
                || facts.host_pid_namespace != Reading::Value(true),
            root,
        }
    }
}

/// One signal to everybody and the wait after it.
pub(super) struct Step {
    pub signal: i32,
    pub wait: Duration,
    /// Waits longer while somebody writes to disk.
    pub saving: Duration,
    /// Whether the root of a job gets it first, and may take its job down itself.
    pub root_first: Duration,
    /// Whether stopped ones are continued, so that they can act on it.
    pub continues: bool,
}

pub(super) fn steps(preset: KillPreset, patience: &Patience) -> Vec<Step> {
    let polite = |signal: Signal, wait, saving| Step {
        signal: signal.as_raw(),
        wait,
        saving,
        root_first: patience.root_first,
        continues: true,
    };
    let single = |signal, wait| Step {
        signal,
        wait,
        saving: Duration::ZERO,
        root_first: Duration::ZERO,
        continues: false,
    };
    match preset {
        KillPreset::Gentle => vec![
            polite(Signal::INT, patience.interrupt, patience.saving),
            polite(Signal::TERM, patience.terminate, patience.saving),
        ],
        KillPreset::Zombie => vec![
            polite(Signal::TERM, patience.leftover, Duration::ZERO),
            single(Signal::KILL.as_raw(), patience.kill),
        ],
        KillPreset::Now => vec![single(Signal::KILL.as_raw(), patience.kill)],
        KillPreset::Signal(signal) if ends(signal) => vec![single(signal, patience.kill)],
        KillPreset::Signal(signal) => vec![single(signal, Duration::ZERO)],
    }
}

/// Whether a signal is meant to end a process.
pub(super) fn ends(signal: i32) -> bool {
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::ABORT, Signal::KILL, Signal::TERM]
        .iter()
        .any(|known| known.as_raw() == signal)
}
