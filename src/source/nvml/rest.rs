//! Which GPUs may be touched: one that sleeps is not woken by watching, and one that nobody uses is
//! let go, so that watching does not keep it from sleep.
//!
//! An open handle of a GPU keeps it powered, and a question to one that sleeps wakes it; the
//! control file alone does neither: a reference of the driver's power management is taken where
//! `/dev/nvidiaN` is opened (`nv_start_device`), not for `/dev/nvidiactl`. By its documentation
//! `nvmlInit_v2` initialises no GPU, and `nvmlDeviceGetHandleByPciBusId_v2` only the one that is
//! meant, while the calls by index and by UUID may go through others. In truth `nvmlInit_v2` of
//! driver 580 opens every `/dev/nvidiaN`, and with `NVML_INIT_FLAG_NO_ATTACH` it opens none and
//! knows none, by whatever call (measured on two H200): beside a sleeper nobody can be read then.
//! Programs that open NVML and then every GPU were seen to wake them two seconds after their start,
//! and the GPUs to sleep again 6 to 25 seconds after the last handle is closed.
//! <https://docs.nvidia.com/deploy/nvml-api/group__nvmlInitializationAndCleanup.html>
//! <https://github.com/aristocratos/btop/issues/1831>
//! <https://github.com/D-Brox/cosmic-ext-applet-system-monitor/issues/38>

use std::collections::BTreeMap;

use super::subject::Facts;
use crate::ids::{GpuIndex, GpuUuid};
use crate::sample::{
    Earlier, GpuSample, PciPower, Reading, RuntimeState, UnreadLists, Why, pci_address,
};
use crate::source::Eyes;

/// Without use for this long a GPU is let go, in milliseconds.
const UNUSED_MS: u64 = 60_000;
/// One that stays awake all the same is looked at again after this long, and then after twice as
/// long each time.
const AGAIN_MS: u64 = 60_000;
/// At the longest.
const LONGEST_MS: u64 = 30 * 60_000;

/// What is known of the sleep of every GPU.
#[derive(Default)]
pub(super) struct Rest {
    eyes: Option<Eyes>,
    let_sleep: bool,
    phases: BTreeMap<String, Phase>,
    seen: Vec<PciPower>,
}

/// How a GPU is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It is read.
    Read {
        /// Since when nobody uses it, in milliseconds since boot.
        unused_since_ms: Option<u64>,
        /// After how long without use it is let go.
        patience_ms: u64,
        /// How long it is left alone then before a look, where it stays awake.
        wait_ms: u64,
    },
    /// It sleeps.
    Asleep,
    /// It was let go and is awake yet.
    LetGo {
        /// When it is looked at again, in milliseconds since boot.
        again_ms: u64,
        /// How long it is left alone after that look.
        wait_ms: u64,
    },
}

impl Phase {
    const FRESH: Self =
        Self::Read { unused_since_ms: None, patience_ms: UNUSED_MS, wait_ms: AGAIN_MS };

    /// What follows from the kernel's word. `wake`: the user wants a look at it.
    fn next(self, state: RuntimeState, wake: bool, now_ms: u64) -> Self {
        match (self, state) {
            _ if wake => Self::FRESH,
            // While it is read nothing can put it to sleep; if it is said to sleep, it does.
            (_, RuntimeState::Suspended) => Self::Asleep,
            (Self::Asleep, RuntimeState::Active) => Self::FRESH,
            (Self::LetGo { again_ms, wait_ms }, RuntimeState::Active) if now_ms >= again_ms => {
                // A short look: whoever keeps it awake may be using it.
                Self::Read { unused_since_ms: None, patience_ms: 0, wait_ms }
            }
            (phase, _) => phase,
        }
    }

    /// What follows from a look at it.
    fn looked(self, used: Option<bool>, now_ms: u64) -> Self {
        let Self::Read { unused_since_ms, patience_ms, wait_ms } = self else { return self };
        // What cannot be told counts as use: a GPU in use is never let go.
        if used != Some(false) {
            return Self::FRESH;
        }
        let since = unused_since_ms.unwrap_or(now_ms);
        if now_ms.saturating_sub(since) < patience_ms {
            return Self::Read { unused_since_ms: Some(since), patience_ms, wait_ms };
        }
        Self::LetGo { again_ms: now_ms + wait_ms, wait_ms: (wait_ms * 2).min(LONGEST_MS) }
    }

    const fn is_read(self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

/// What may be touched in this look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// Every GPU that the driver has.
    All,
    /// These, and no other: their place among all GPUs of the bus, which is the driver's order, and
    /// their address.
    Only(Vec<(GpuIndex, String)>),
}

impl Reach {
    /// By which a GPU is reached, where not by its number.
    pub(super) fn address(&self, index: GpuIndex) -> Option<&str> {
        let Self::Only(gpus) = self else { return None };
        gpus.iter().find(|gpu| gpu.0 == index).map(|gpu| gpu.1.as_str())
    }
}

impl Rest {
    /// Looks with `eyes`; lets GPUs sleep where that is wanted.
    pub(super) fn new(eyes: Eyes, let_sleep: bool) -> Self {
        Self { eyes: Some(eyes), let_sleep, ..Self::default() }
    }

    /// Before a look. `wake`: the user wants to see all of them.
    pub(super) fn reach(&mut self, now_ms: u64, wake: bool) -> Reach {
        let Some(eyes) = &mut self.eyes else { return Reach::All };
        self.seen = eyes();
        let mut phases = BTreeMap::new();
        for gpu in &self.seen {
            let phase = self.phases.get(&gpu.address).copied().unwrap_or(Phase::FRESH);
            let phase = phase.next(gpu.state, wake, now_ms);
            phases.insert(gpu.address.clone(), phase);
        }
        self.phases = phases;
        if self.phases.values().all(|phase| phase.is_read()) {
            return Reach::All;
        }
        let read = |(_, gpu): &(usize, &PciPower)| self.phase(&gpu.address).is_read();
        let place = |(n, gpu): (usize, &PciPower)| (GpuIndex(n as u32), gpu.address.clone());
        Reach::Only(self.seen.iter().enumerate().filter(read).map(place).collect())
    }

    /// After a look at those that may be touched. Says whether they are to be let go now: all or
    /// none, since a library that is open holds every GPU.
    pub(super) fn looked(&mut self, gpus: &[GpuSample], now_ms: u64) -> bool {
        let mut next = Vec::with_capacity(self.seen.len());
        for gpu in &self.seen {
            let Some(phase) = self.phases.get(&gpu.address).filter(|phase| phase.is_read()) else {
                continue;
            };
            let sample = gpus.iter().find(|sample| is_at(sample, &gpu.address));
            // Of one that could not be read nothing is known.
            let used = if gpu.may_sleep && self.let_sleep { sample.and_then(used) } else { None };
            next.push((gpu.address.clone(), phase.looked(used, now_ms)));
        }
        let lets_go = !next.is_empty() && next.iter().all(|(_, phase)| !phase.is_read());
        for (address, phase) in next {
            // Who has been without use for long enough waits for the others.
            if lets_go || phase.is_read() {
                self.phases.insert(address, phase);
            }
        }
        lets_go
    }

    /// The GPUs that were not touched, as far as they are known.
    pub(super) fn left_alone(&self, known: &[(GpuIndex, Facts)]) -> Vec<GpuSample> {
        let aside = self.seen.iter().enumerate().filter_map(|(n, gpu)| {
            let why = match self.phase(&gpu.address) {
                Phase::Read { .. } => return None,
                Phase::Asleep => Why::Asleep,
                Phase::LetGo { .. } => Why::LetSleep,
            };
            let met = known.iter().find(|(_, facts)| {
                let address = facts.pci_bus_id.value().and_then(|text| pci_address(text));
                address.as_ref() == Some(&gpu.address)
            });
            let facts = met.map_or_else(|| unmet(gpu), |(_, facts)| facts.clone());
            let index = met.map_or(GpuIndex(n as u32), |(index, _)| *index);
            Some(absent(index, facts, why))
        });
        aside.collect()
    }

    fn phase(&self, address: &str) -> Phase {
        self.phases.get(address).copied().unwrap_or(Phase::FRESH)
    }
}

fn is_at(sample: &GpuSample, address: &str) -> bool {
    let own = sample.pci_bus_id.value().and_then(|text| pci_address(text));
    sample.mig.is_none() && own.as_deref() == Some(address)
}

/// Whether anybody uses a GPU; `None` where that cannot be told. A driver that is told to stay
/// loaded is as good as a user: its owner wants the GPU to be ready.
fn used(sample: &GpuSample) -> Option<bool> {
    if sample.persistence.get() == Some(true) {
        return Some(true);
    }
    let held = sample.processes.value().map(|list| !list.is_empty())?;
    let busy = sample.utilization.get().map(|share| share.sm.0 > 0.0)?;
    Some(held || busy)
}

/// A GPU that was never asked in this session.
fn unmet(gpu: &PciPower) -> Facts {
    let unknown = || GpuUuid::unknown(&gpu.address);
    Facts {
        uuid_known: gpu.uuid.is_some(),
        uuid: gpu.uuid.clone().unwrap_or_else(unknown),
        name: gpu.name.clone(),
        minor: gpu.minor,
        pci_bus_id: Reading::Value(gpu.address.clone()),
    }
}

fn absent(index: GpuIndex, facts: Facts, why: Why) -> GpuSample {
    GpuSample {
        uuid: facts.uuid,
        index,
        mig: None,
        name: facts.name,
        minor: facts.minor,
        pci_bus_id: facts.pci_bus_id,
        memory: Reading::Absent(why),
        utilization: Reading::Absent(why),
        temperature: Reading::Absent(why),
        power: Reading::Absent(why),
        power_limit: Reading::Absent(why),
        sm_clock: Reading::Absent(why),
        memory_clock: Reading::Absent(why),
        throttle: Reading::Absent(why),
        performance_state: Reading::Absent(why),
        pcie: Reading::Absent(why),
        fan: Reading::Absent(why),
        mig_enabled: Reading::Absent(why),
        persistence: Reading::Absent(why),
        processes: Reading::Absent(why),
        unread_lists: UnreadLists::default(),
        process_utilization: Reading::Absent(why),
        earlier: Earlier::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: RuntimeState = RuntimeState::Active;

    /// Looks once a second from 0; gives when each change came.
    fn run(seconds: u64, used: impl Fn(u64) -> Option<bool>) -> Vec<(u64, bool)> {
        let mut phase = Phase::FRESH;
        let mut changes = Vec::new();
        for second in 0..seconds {
            let before = phase.is_read();
            phase = phase.next(ACTIVE, false, second * 1000);
            if phase.is_read() {
                phase = phase.looked(used(second), second * 1000);
            }
            if phase.is_read() != before {
                changes.push((second, phase.is_read()));
            }
        }
        changes
    }

    #[test]
    fn a_minute_without_use_lets_go_and_later_looks_are_short_and_rarer() {
        assert_eq!(run(59, |_| Some(false)), []);
        // Looks at 120 s, 240 s and so on let go at once, so that no change is seen from outside.
        assert_eq!(run(3_600, |_| Some(false)), [(60, false)]);
        // Somebody else keeps it awake and is found at the next of these looks.
        assert_eq!(run(300, |s| Some(s > 130)), [(60, false), (240, true)]);
    }

    #[test]
    fn in_use_or_unknown_is_never_let_go() {
        assert_eq!(run(7_200, |_| Some(true)), []);
        assert_eq!(run(7_200, |_| None), []);
        assert_eq!(run(600, |s| Some(s % 50 == 0)), []);
    }

    #[test]
    fn the_looks_at_one_that_stays_awake_have_a_longest_pause() {
        let mut phase = Phase::LetGo { again_ms: 0, wait_ms: AGAIN_MS };
        let mut pauses = Vec::new();
        let mut now_ms = 0;
        for _ in 0..8 {
            phase = phase.next(ACTIVE, false, now_ms).looked(Some(false), now_ms);
            let Phase::LetGo { again_ms, .. } = phase else { panic!("{phase:?}") };
            pauses.push((again_ms - now_ms) / 60_000);
            now_ms = again_ms;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn sleep_ends_by_somebody_elses_use_or_by_the_users_word() {
        let asleep = Phase::FRESH.next(RuntimeState::Suspended, false, 0);
        assert_eq!(asleep, Phase::Asleep);
        assert_eq!(asleep.next(RuntimeState::Between, false, 0), Phase::Asleep);
        assert_eq!(asleep.next(ACTIVE, false, 0), Phase::FRESH);
        assert_eq!(asleep.next(RuntimeState::Suspended, true, 0), Phase::FRESH);
        let let_go = Phase::LetGo { again_ms: 60_000, wait_ms: AGAIN_MS };
        assert_eq!(let_go.next(ACTIVE, false, 59_999), let_go);
        assert_eq!(let_go.next(RuntimeState::Between, false, 90_000), let_go);
        assert_eq!(let_go.next(ACTIVE, true, 1), Phase::FRESH);
    }
}
