//! Which GPUs sleep, read so that none of them wakes.
//!
//! `power/runtime_status` and `power/control` are kept by the kernel's PCI layer and never reach
//! the device. The driver's own files below `/proc/driver/nvidia/gpus/` do: reading `information`
//! takes a reference of its dynamic power management (`nv_procfs_read_gpu_info` calls
//! `rm_ref_dynamic_power` with `NV_DYNAMIC_PM_COARSE`, which counts in every mode and resumes the
//! device), and `power` may ask the device for its limits. So these two are read only of a GPU that
//! is awake, and what they said is remembered for the time when it sleeps.
//! <https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/kernel-open/nvidia/nv-procfs.c>

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::host::absence::gpu_folders;
use crate::host::root::{self, Root};
use crate::ids::GpuUuid;
use crate::sample::{PciPower, Reading, RuntimeState, Why};

/// Looks at the machine's power files.
#[derive(Debug)]
pub struct Power {
    root: Root,
    known: HashMap<PathBuf, Known>,
    looks: u32,
}

/// The bus is searched for new GPUs only once in so many looks: it has hundreds of devices.
const SEARCH_EVERY: u32 = 30;
/// Where distributions keep the names of PCI devices.
const PCI_IDS: [&str; 3] =
    ["usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids", "var/lib/pciutils/pci.ids"];
/// The list of names has 1.5 MB.
const LONGEST_IDS: usize = 8 << 20;

/// What does not change while a GPU is on the bus.
#[derive(Debug, Clone, Default)]
struct Known {
    name: Option<String>,
    uuid: Option<GpuUuid>,
    minor: Option<u32>,
    /// What the driver said of sleep, while it was awake.
    supports: Option<bool>,
    asked: bool,
}

impl Power {
    /// Below a root.
    pub fn new(root: Root) -> Self {
        Self { root, known: HashMap::new(), looks: 0 }
    }

    /// Every GPU that the driver has, by address. A few small files of a GPU that was seen before.
    pub fn look(&mut self) -> Vec<PciPower> {
        if self.looks.is_multiple_of(SEARCH_EVERY) {
            self.search();
        }
        self.looks = self.looks.wrapping_add(1);
        let root = &self.root;
        let mut gpus: Vec<PciPower> =
            self.known.iter_mut().filter_map(|(folder, known)| gpu(root, folder, known)).collect();
        gpus.sort_by(|a, b| a.address.cmp(&b.address));
        gpus
    }

    fn search(&mut self) {
        let Ok(folders) = gpu_folders(&self.root.path("")) else { return };
        let driven = folders.into_iter().filter(|folder| self.is_ours(folder));
        let mut known: HashMap<PathBuf, Known> =
            driven.map(|folder| (folder, Known::default())).collect();
        for (folder, old) in self.known.drain() {
            if let Some(place) = known.get_mut(&folder) {
                *place = old;
            }
        }
        self.known = known;
    }

    /// Whether NVIDIA's driver has it, and this container, if it is one, was given it.
    fn is_ours(&self, folder: &Path) -> bool {
        let driver = std::fs::read_link(folder.join("driver")).ok();
        let other = driver.is_some_and(|link| link.file_name().is_none_or(|name| name != "nvidia"));
        let shown = self.root.path("proc/driver/nvidia/gpus");
        let hidden = shown.is_dir()
            && folder.file_name().is_none_or(|address| !shown.join(address).exists());
        !other && !hidden
    }
}

fn gpu(root: &Root, folder: &Path, known: &mut Known) -> Option<PciPower> {
    let address = folder.file_name()?.to_str()?.to_owned();
    let word = |name: &str| root::text(&folder.join(name), 64).map(|text| text.trim().to_owned());
    let state = match word("power/runtime_status").as_deref() {
        Ok("suspended") => RuntimeState::Suspended,
        Ok("suspending" | "resuming") => RuntimeState::Between,
        // It has been taken out.
        Err(_) if !folder.exists() => return None,
        // A kernel without power management has no such file.
        Ok(_) | Err(_) => RuntimeState::Active,
    };
    if state == RuntimeState::Active && !known.asked {
        known.ask(root, &address);
    }
    if known.name.is_none() {
        known.name = word("device").ok().map(|device| listed_name(root, &device));
    }
    let auto = word("power/control").is_ok_and(|control| control == "auto");
    let or_unknown = |name: &String| Reading::Value(name.clone());
    Some(PciPower {
        address,
        state,
        may_sleep: auto && known.supports != Some(false),
        name: known.name.as_ref().map_or(Reading::Absent(Why::Asleep), or_unknown),
        uuid: known.uuid.clone(),
        minor: known.minor.map_or(Reading::Absent(Why::Asleep), Reading::Value),
    })
}

impl Known {
    /// Reads the driver's files of a GPU that is awake.
    fn ask(&mut self, root: &Root, address: &str) {
        self.asked = true;
        let folder = format!("proc/driver/nvidia/gpus/{address}");
        let read = |name: &str| root::text(&root.path(&format!("{folder}/{name}")), 8 << 10);
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        if let Ok(text) = read("information") {
            self.name = field(&text, "Model");
            // Question marks stand for what is not known before the first use.
            let uuid = field(&text, "GPU UUID").filter(|uuid| !uuid.contains('?'));
            self.uuid = uuid.map(|uuid| GpuUuid::new(&uuid));
            self.minor = field(&text, "Device Minor").and_then(|minor| minor.parse().ok());
        }
        // `Enabled (fine-grained)`, `Disabled by default`, `Not supported`.
        let status = read("power").ok().and_then(|text| field(&text, "Runtime D3 status"));
        self.supports = status.map(|status| status.starts_with("Enabled"));
    }
}

/// What the system's list of PCI devices calls it; else its number there.
fn listed_name(root: &Root, device: &str) -> String {
    let number = device.trim_start_matches("0x");
    let found = PCI_IDS.iter().find_map(|file| {
        let text = root::text(&root.path(file), LONGEST_IDS).ok()?;
        let vendor = text.split("\n10de").nth(1)?;
        // Devices are indented by one tab; the next vendor is not.
        let lines = vendor.lines().skip(1).take_while(|line| line.starts_with('\t'));
        let mut names = lines.filter_map(|line| line.strip_prefix('\t')?.split_once("  "));
        names.find(|(id, _)| *id == number).map(|(_, name)| name.trim().to_owned())
    });
    found.map_or_else(|| format!("NVIDIA GPU 10de:{number}"), |name| format!("NVIDIA {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.put("vendor", "0x10de\n").put("class", "0x030000\n").put("device", "0x28a0\n");
            tree.put("power/control", "auto\n").put("power/runtime_status", "active\n");
            tree
        }

        fn put(&self, name: &str, text: &str) -> &Self {
            self.file(&format!("sys/bus/pci/devices/0000:01:00.0/{name}"), text)
        }

        fn proc(&self, name: &str, text: &str) -> &Self {
            self.file(&format!("proc/driver/nvidia/gpus/0000:01:00.0/{name}"), text)
        }

        fn file(&self, name: &str, text: &str) -> &Self {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            self
        }

        fn power(&self) -> Power {
            Power::new(Root::new(self.0.path()))
        }
    }

    const INFORMATION: &str = "Model: \t\t NVIDIA GeForce RTX 4060 Laptop GPU\n\
        GPU UUID: \t GPU-89583c91-b9ba-d10e-d31d-93019a0fb626\nDevice Minor: \t 0\n";

    #[test]
    fn the_drivers_files_are_left_alone_while_it_sleeps() {
        let tree = Tree::new();
        tree.put("power/runtime_status", "suspended\n").proc("information", INFORMATION);
        let mut power = tree.power();
        let gpu = power.look().remove(0);
        assert_eq!((gpu.state, gpu.may_sleep), (RuntimeState::Suspended, true));
        // Its name is that of its number: to ask the driver would wake it.
        assert_eq!(gpu.name, Reading::Value("NVIDIA GPU 10de:28a0".to_owned()));
        assert_eq!(gpu.uuid, None);

        tree.put("power/runtime_status", "active\n");
        let name = Reading::Value("NVIDIA GeForce RTX 4060 Laptop GPU".to_owned());
        let gpu = power.look().remove(0);
        assert_eq!((&gpu.name, gpu.state), (&name, RuntimeState::Active));

        // And is remembered.
        tree.put("power/runtime_status", "suspended\n");
        let gpu = power.look().remove(0);
        assert_eq!((gpu.name, gpu.minor), (name, Reading::Value(0)));
        assert!(gpu.uuid.unwrap().0.starts_with("GPU-89583c91"));
    }

    #[test]
    fn a_sleeper_has_the_name_of_the_systems_list() {
        let tree = Tree::new();
        let ids = "10dd  Other\n\t28a0  wrong\n10de  NVIDIA Corporation\n\t2899  x\n\
            \t28a0  AD107M [GeForce RTX 4060]\n\t\t1043 1  sub\n10df  Next\n";
        tree.put("power/runtime_status", "suspended\n").file("usr/share/misc/pci.ids", ids);
        let gpu = tree.power().look().remove(0);
        assert_eq!(gpu.name, Reading::Value("NVIDIA AD107M [GeForce RTX 4060]".to_owned()));
    }

    #[test]
    fn what_cannot_sleep_is_told_from_what_can() {
        let may = |control: &str, status: Option<&str>| {
            let tree = Tree::new();
            tree.put("power/control", control);
            if let Some(status) = status {
                tree.proc("power", &format!("Runtime D3 status:          {status}\n"));
            }
            tree.power().look().remove(0).may_sleep
        };
        assert!(may("auto\n", None) && may("auto\n", Some("Enabled (fine-grained)")));
        assert!(!may("on\n", None) && !may("on\n", Some("Enabled (coarse-grained)")));
        assert!(!may("auto\n", Some("Disabled by default")));
        assert!(!may("auto\n", Some("Not supported")));
    }

    #[test]
    fn a_gpu_of_another_driver_or_of_another_container_is_none_of_ours() {
        let tree = Tree::new();
        let link = tree.0.path().join("sys/bus/pci/devices/0000:01:00.0/driver");
        std::os::unix::fs::symlink("/sys/bus/pci/drivers/vfio-pci", &link).unwrap();
        assert!(tree.power().look().is_empty());
        std::fs::remove_file(&link).unwrap();
        tree.file("proc/driver/nvidia/gpus/0000:02:00.0/information", "");
        assert!(tree.power().look().is_empty());
    }
}
