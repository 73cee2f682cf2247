//! What a machine shows of its driver, its GPUs and our rights, read without asking the driver.

use crate::sample::{HostFacts, Reading};

/// Everything that can be known before the driver is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineFacts {
    /// Namespaces, container, `/proc`.
    pub host: HostFacts,
    /// Whether the list of loaded kernel modules could be read.
    pub modules_known: bool,
    /// The kernel module; `None` where it is not loaded, or that cannot be told.
    pub module: Option<ModuleFacts>,
    /// Whether nouveau, the other driver, is loaded.
    pub nouveau: bool,
    /// Files of the driver's library, with the version in their names.
    pub libraries: Vec<LibraryFile>,
    /// NVIDIA's device files, those that are missing too.
    pub devices: Vec<DeviceFile>,
    /// NVIDIA's display controllers on the bus.
    pub pci: Reading<Vec<PciGpu>>,
    /// The effective capabilities, as the bits of `CapEff`.
    pub capabilities: Reading<u64>,
    /// Whether the call is let through that reads a process's memory: a sandbox may forbid it whatever
    /// the rights are.
    pub memory_call: Reading<()>,
    /// Whether `nvidia-persistenced` runs.
    pub persistence_daemon: bool,
    /// Whether a server or the control of the Multi-Process Service runs.
    pub mps: bool,
}

/// The loaded kernel module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFacts {
    /// `580.159.04`.
    pub version: Reading<String>,
    /// Users that are no kernel module: open device files.
    pub users: Reading<u32>,
    /// Whether the display uses it, so that it cannot be unloaded under a running desktop.
    pub display: bool,
}

/// A file of the driver's library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryFile {
    /// The end of its name.
    pub version: String,
    /// Where it is.
    pub path: String,
}

/// A device file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFile {
    /// Below `/dev`.
    pub name: String,
    /// Whether this program may open it.
    pub access: Access,
    /// Permission bits, where it exists.
    pub mode: Option<u32>,
    /// Its group, where it exists.
    pub group: Option<u32>,
}

/// Whether a file may be opened for reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Yes.
    Granted,
    /// No.
    Denied,
    /// There is no such file.
    Missing,
}

/// A GPU as the bus shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PciGpu {
    /// `0000:1b:00.0`.
    pub address: String,
    /// Whether it is powered down until somebody uses it. Reading this does not wake it.
    pub sleeps: bool,
    /// Whether it may power down (`power/control` is `auto`).
    pub may_sleep: bool,
    /// The kernel driver that has it.
    pub driver: Option<String>,
}

/// The capability to look into processes of others.
pub const CAP_SYS_PTRACE: u32 = 19;
/// The capability to end processes of others.
pub const CAP_KILL: u32 = 5;

impl MachineFacts {
    /// Whether this program has a capability. Where that cannot be read, root has it.
    pub fn is_capable(&self, capability: u32) -> bool {
        match self.capabilities {
            Reading::Value(bits) => bits >> capability & 1 == 1,
            Reading::Absent(_) => self.host.euid == 0,
        }
    }

    /// Whether there are GPUs and all of them sleep.
    pub fn all_sleep(&self) -> bool {
        let all = |gpus: &Vec<PciGpu>| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.sleeps);
        self.pci.value().is_some_and(all)
    }
}
