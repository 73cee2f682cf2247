//! What the driver says of the GPUs.

use serde::{Deserialize, Serialize};

use crate::ids::{GpuIndex, GpuUuid, Pid, Stamp};
use crate::sample::{Reading, UnreadLists, Why, XidReport};
use crate::units::{Bytes, BytesPerSecond, Celsius, Megahertz, Milliwatts, Percent};

/// One look at every GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuTick {
    /// Counts up by one a tick; a jump means lost ticks.
    pub seq: u64,
    /// When the look began.
    pub at: Stamp,
    /// How long it took, in milliseconds.
    pub took_ms: u32,
    /// How many driver calls it made.
    pub driver_calls: u32,
    /// The driver.
    pub driver: DriverInfo,
    /// Every GPU and MIG instance, in the driver's order, an instance behind its GPU.
    pub gpus: Vec<GpuSample>,
    /// Answers that could not be true and were dropped.
    #[serde(default)]
    pub nonsense: Nonsense,
    /// Faults that the driver reported since the tick before.
    #[serde(default, skip_serializing_if = "XidReport::is_empty")]
    pub xid: XidReport,
}

/// The driver and its library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverInfo {
    /// `580.159.04`.
    pub version: Reading<String>,
    /// The newest CUDA version that it can run, `13.0`.
    pub cuda: Reading<String>,
    /// The version of the library.
    pub nvml: Reading<String>,
}

/// Counts of dropped answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nonsense {
    /// Process rows with pid 0, or above the kernel's limit.
    pub bad_pids: u32,
    /// Process rows with more bytes than the GPU has.
    pub bad_bytes: u32,
    /// Memory figures that do not add up, or exceed what can be.
    pub bad_memory: u32,
    /// Lists of graphics or MPS processes that could not be read, of all GPUs together;
    /// [`GpuSample::unread_lists`] says whose.
    #[serde(default)]
    pub failed_lists: u32,
}

/// One GPU or MIG instance at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// Its identity.
    pub uuid: GpuUuid,
    /// The driver's number; a MIG instance has its GPU's.
    pub index: GpuIndex,
    /// For a MIG instance: of what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigInfo>,
    /// `NVIDIA H200`.
    pub name: Reading<String>,
    /// The N of `/dev/nvidiaN`, which is not the index.
    pub minor: Reading<u32>,
    /// `00000000:1B:00.0`.
    pub pci_bus_id: Reading<String>,
    /// Its memory.
    pub memory: Reading<Memory>,
    /// How busy it is.
    pub utilization: Reading<Utilization>,
    /// Of the chip.
    pub temperature: Reading<Celsius>,
    /// Drawn now.
    pub power: Reading<Milliwatts>,
    /// The limit in force.
    pub power_limit: Reading<Milliwatts>,
    /// Of the multiprocessors.
    pub sm_clock: Reading<Megahertz>,
    /// Of the memory.
    pub memory_clock: Reading<Megahertz>,
    /// Why the clocks are not higher.
    pub throttle: Reading<Throttle>,
    /// 0 is the fastest.
    pub performance_state: Reading<u32>,
    /// Slow to read: absent as `not_asked` unless something shows it.
    pub pcie: Reading<Pcie>,
    /// In per cent of the fan's range.
    pub fan: Reading<Percent>,
    /// Whether MIG mode is on; a GPU in MIG mode has its memory split among instances.
    pub mig_enabled: Reading<bool>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Reading<bool>,
    /// Every process that the driver lists, once.
    pub processes: Reading<Vec<GpuProc>>,
    /// Of that: which lists are missing.
    #[serde(default, skip_serializing_if = "UnreadLists::is_none")]
    pub unread_lists: UnreadLists,
    /// Whether per-process use can be sampled here at all (never for MIG).
    pub process_utilization: Reading<()>,
    /// What was read before this look.
    #[serde(default, skip_serializing_if = "Earlier::is_none")]
    pub earlier: Earlier,
}

/// When figures were read that are not read at every look, in milliseconds since boot; `None` for
/// this look, and for what is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Earlier {
    /// The oldest of `memory_clock`, `performance_state` and `fan`; in a recording of a version that
    /// read `throttle` in turns too, of all four.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_boot_ms: Option<u64>,
    /// `pcie`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_boot_ms: Option<u64>,
    /// That a list of graphics or MPS processes is empty; rows are always of this look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_boot_ms: Option<u64>,
    /// `power_limit`, `mig_enabled` and `persistence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings_boot_ms: Option<u64>,
}

/// What is not read at every look, and by which word its age is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seldom {
    /// As in [`Earlier::details_boot_ms`].
    Details,
    /// As in [`Earlier::pcie_boot_ms`].
    Pcie,
    /// As in [`Earlier::lists_boot_ms`].
    Lists,
    /// As in [`Earlier::settings_boot_ms`].
    Settings,
}

impl Seldom {
    /// Each, with its word.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Details, "details"),
        (Self::Pcie, "pcie"),
        (Self::Lists, "lists"),
        (Self::Settings, "settings"),
    ];

    /// At a look what is read in turns is always younger than this, in milliseconds; settings are read
    /// again after the first look at which they are as old.
    pub const fn rhythm_ms(self) -> u64 {
        match self {
            Self::Details | Self::Pcie | Self::Lists => 4_000,
            Self::Settings => 10_000,
        }
    }
}

impl Earlier {
    /// Whether everything is of this look.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl GpuSample {
    /// How it is called: by its number; a MIG instance as `0:3`.
    pub fn label(&self) -> String {
        let Some(mig) = &self.mig else { return self.index.to_string() };
        let instance = match mig.gpu_instance {
            Reading::Value(instance) => format!("{}:{instance}", self.index),
            Reading::Absent(_) => format!("{}:?", self.index),
        };
        // Most have one compute instance, with the number 0.
        match mig.compute_instance {
            Reading::Value(compute) if compute > 0 => format!("{instance}.{compute}"),
            _ => instance,
        }
    }

    /// Why it is not told who holds its memory: the driver's list could not be read. `None` where it
    /// was, for a GPU whose MIG instances have lists of their own, and for a moment of which no list
    /// was kept.
    pub fn unlisted(&self) -> Option<Why> {
        let split = self.mig.is_none() && self.mig_enabled.get() == Some(true);
        self.processes.why().filter(|why| !split && *why != Why::NotAsked)
    }

    /// Whether it is a whole GPU whose driver knows of no memory of its own: it shares the machine's.
    pub fn has_no_memory(&self) -> bool {
        self.memory.why() == Some(Why::NotSupported)
            && self.mig.is_none()
            && self.mig_enabled.get() != Some(true)
    }

    /// How long before the look of `look_ms` that was read, in milliseconds: 0 for what is of the look
    /// itself, `None` where nothing of it is there.
    pub fn read_before_ms(&self, what: Seldom, look_ms: u64) -> Option<u64> {
        let read_ms = self.read_earlier(what).get()?;
        Some(read_ms.map_or(0, |read_ms| look_ms.saturating_sub(read_ms)))
    }

    /// When that was read, in milliseconds since boot, where it was before this look; absent where
    /// nothing of it is there.
    pub fn read_earlier(&self, what: Seldom) -> Reading<Option<u64>> {
        const fn known<T: Copy>(reading: Reading<T>) -> Reading<()> {
            match reading {
                Reading::Value(_) => Reading::Value(()),
                Reading::Absent(why) => Reading::Absent(why),
            }
        }
        let Earlier { details_boot_ms, pcie_boot_ms, lists_boot_ms, settings_boot_ms } =
            self.earlier;
        let (read_ms, parts) = match what {
            Seldom::Details => {
                let clocks = (known(self.throttle), known(self.memory_clock));
                let rest = (known(self.performance_state), known(self.fan));
                (details_boot_ms, [clocks.0, clocks.1, rest.0, rest.1])
            }
            Seldom::Pcie => (pcie_boot_ms, [known(self.pcie); 4]),
            Seldom::Lists => (lists_boot_ms, [self.processes.as_ref().map(|_| ()); 4]),
            Seldom::Settings => {
                let [limit, persistence] = [known(self.power_limit), known(self.persistence)];
                (settings_boot_ms, [limit, known(self.mig_enabled), persistence, persistence])
            }
        };
        let there = parts.iter().find(|part| part.value().is_some());
        there.unwrap_or(&parts[0]).map(|()| read_ms)
    }
}

/// A slice of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MigInfo {
    /// The GPU that it is a slice of.
    pub parent: GpuUuid,
    /// GPU instance id.
    pub gpu_instance: Reading<u32>,
    /// Compute instance id.
    pub compute_instance: Reading<u32>,
}

/// Device memory; `total = used + reserved + free` where the driver tells `reserved` apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total: Bytes,
    /// Held by processes and by nobody; without `reserved` where that is known.
    pub used: Bytes,
    /// Kept by driver and firmware; absent with the old call, which counts it as used.
    pub reserved: Reading<Bytes>,
    /// Not held.
    pub free: Bytes,
    /// The call that answered.
    pub api: MemoryApi,
}

/// Which of the driver's memory calls answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryApi {
    /// `nvmlDeviceGetMemoryInfo`: used includes reserved.
    V1,
    /// `nvmlDeviceGetMemoryInfo_v2`, since R510.
    V2,
}

/// Shares of the last sample period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// Time in which a kernel ran.
    pub sm: Percent,
    /// Time in which device memory was read or written. Not how full it is.
    pub memory: Percent,
}

/// The driver's bits of why clocks are held down (`nvmlClocksThrottleReasons`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Throttle(pub u64);

/// Traffic on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pcie {
    /// To the GPU.
    pub rx: BytesPerSecond,
    /// From the GPU.
    pub tx: BytesPerSecond,
}

/// One process in the driver's lists of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuProc {
    /// As the driver gives it: perhaps dead, perhaps of another namespace.
    pub pid: Pid,
    /// The largest figure of the lists that name it.
    pub used: Reading<Bytes>,
    /// Which lists name it.
    pub kinds: ProcKinds,
    /// Its share of the multiprocessors. Idle is zero where sampling works.
    pub sm: Reading<Percent>,
    /// Its MIG instance, where it runs in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_instance: Option<u32>,
    /// Its compute instance, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_instance: Option<u32>,
}

/// In which of the driver's lists a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcKinds {
    /// The compute list.
    pub compute: bool,
    /// The graphics list.
    pub graphics: bool,
    /// The list of MPS clients.
    pub mps: bool,
}

impl ProcKinds {
    /// `C`, `G`, `C+G`, `M`.
    pub fn letters(self) -> String {
        let all = [(self.compute, "C"), (self.graphics, "G"), (self.mps, "M")];
        let set: Vec<_> = all.iter().filter(|kind| kind.0).map(|kind| kind.1).collect();
        set.join("+")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_earlier_is_written() {
        let text = |earlier: &Earlier| serde_json::to_string(earlier).unwrap();
        assert_eq!(text(&Earlier::default()), "{}");
        let pcie = Earlier { pcie_boot_ms: Some(7), ..Earlier::default() };
        assert_eq!(text(&pcie), r#"{"pcie_boot_ms":7}"#);
        assert_eq!(serde_json::from_str::<Earlier>(&text(&pcie)).unwrap(), pcie);
        assert_eq!((pcie.is_none(), Earlier::default().is_none()), (false, true));
    }
}
