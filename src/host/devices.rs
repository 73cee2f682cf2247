//! Which device numbers are NVIDIA's.

use std::collections::HashMap;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::host::root::{self, Root};

/// The character-device major of `/dev/nvidiactl`, `/dev/nvidia-modeset` and `/dev/nvidiaN`; fixed
/// in the driver.
const NVIDIA: u32 = 195;
const CONTROL_MINOR: u32 = 255;
const MODESET_MINOR: u32 = 254;
const LAST_GPU_MINOR: u32 = 247;
/// `/dev/dri/*`, of any vendor.
const DRM: u32 = 226;
const VENDOR: &str = "0x10de";

/// What an NVIDIA device file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceRole {
    /// `/dev/nvidiactl`.
    Control,
    /// `/dev/nvidia-modeset`.
    Modeset,
    /// `/dev/nvidiaN`, by its minor number.
    Gpu(u32),
    /// `/dev/nvidia-uvm` and its tools device.
    Uvm,
    /// `/dev/nvidia-caps/*`.
    Caps,
    /// `/dev/dri/*` of an NVIDIA GPU.
    Drm,
}

/// A file that is taken for an NVIDIA device, so that tests need no GPU. Found by its device and
/// inode number, as the real ones are found by theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The file. It must exist when a [`DeviceTable`] is made.
    pub path: PathBuf,
    /// What it stands for.
    pub role: DeviceRole,
}

/// The numbers by which an open file is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileNumbers {
    pub kind: FileType,
    /// Its own device number, where it is a device.
    pub rdev: (u32, u32),
    /// Where it lies.
    pub dev: (u32, u32),
    pub inode: u64,
}

/// Device numbers of NVIDIA's drivers on this machine.
#[derive(Debug, Clone)]
pub struct DeviceTable {
    root: Root,
    uvm: Vec<u32>,
    caps: Vec<u32>,
    drm: HashMap<u32, bool>,
    stand_ins: HashMap<(u32, u32, u64), DeviceRole>,
}

impl DeviceTable {
    /// From `/proc/devices`, and files that stand in for devices.
    pub fn read(root: &Root, stand_ins: &[StandIn]) -> Self {
        let mut table = Self {
            root: root.clone(),
            uvm: Vec::new(),
            caps: Vec::new(),
            drm: HashMap::new(),
            stand_ins: stand_ins.iter().filter_map(numbers_of).collect(),
        };
        table.refresh();
        table
    }

    /// Reads `/proc/devices` again: the numbers of UVM change when modules are loaded anew.
    pub fn refresh(&mut self) {
        let text = root::text(&self.root.path("proc/devices"), 16 << 10).unwrap_or_default();
        self.uvm.clear();
        self.caps.clear();
        self.drm.clear();
        let characters = text.split("Block devices").next().unwrap_or_default();
        for line in characters.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(Ok(major)), Some(name)) = (words.next().map(str::parse), words.next()) else {
                continue;
            };
            match name {
                "nvidia-uvm" => self.uvm.push(major),
                _ if name.starts_with("nvidia-caps") => self.caps.push(major),
                _ => {}
            }
        }
    }

    /// What a file is for, if it is one of NVIDIA's.
    pub(super) fn role(&mut self, file: FileNumbers) -> Option<DeviceRole> {
        if file.kind != FileType::CharacterDevice {
            if self.stand_ins.is_empty() {
                return None;
            }
            return self.stand_ins.get(&(file.dev.0, file.dev.1, file.inode)).copied();
        }
        let (major, minor) = file.rdev;
        match major {
            NVIDIA => match minor {
                CONTROL_MINOR => Some(DeviceRole::Control),
                MODESET_MINOR => Some(DeviceRole::Modeset),
                0..=LAST_GPU_MINOR => Some(DeviceRole::Gpu(minor)),
                _ => None,
            },
            DRM => self.drm_is_nvidia(minor).then_some(DeviceRole::Drm),
            _ if self.uvm.contains(&major) => Some(DeviceRole::Uvm),
            _ if self.caps.contains(&major) => Some(DeviceRole::Caps),
            _ => None,
        }
    }

    fn drm_is_nvidia(&mut self, minor: u32) -> bool {
        *self.drm.entry(minor).or_insert_with(|| {
            let vendor = self.root.path(&format!("sys/dev/char/{DRM}:{minor}/device/vendor"));
            root::text(&vendor, 64).is_ok_and(|text| text.trim() == VENDOR)
        })
    }
}

fn numbers_of(stand_in: &StandIn) -> Option<((u32, u32, u64), DeviceRole)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(rustix::fs::CWD, &stand_in.path, AtFlags::empty(), StatxFlags::INO).ok()?;
    Some(((found.stx_dev_major, found.stx_dev_minor, found.stx_ino), stand_in.role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(major: u32, minor: u32) -> FileNumbers {
        FileNumbers {
            kind: FileType::CharacterDevice,
            rdev: (major, minor),
            dev: (0, 6),
            inode: 900,
        }
    }

    #[test]
    fn devices_are_known_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir_all(root.path("proc")).unwrap();
        std::fs::write(
            root.path("proc/devices"),
            "Character devices:\n  1 mem\n195 nvidia\n234 nvidia-caps\n235 nvidia-uvm\n\n\
             Block devices:\n  7 loop\n236 nvidia-uvm\n",
        )
        .unwrap();
        for (minor, vendor) in [(0, "0x8086\n"), (128, "0x10de\n")] {
            let device = root.path(&format!("sys/dev/char/226:{minor}/device"));
            std::fs::create_dir_all(&device).unwrap();
            std::fs::write(device.join("vendor"), vendor).unwrap();
        }
        let mut table = DeviceTable::read(&root, &[]);
        let cases = [
            (195, 255, Some(DeviceRole::Control)),
            (195, 254, Some(DeviceRole::Modeset)),
            (195, 0, Some(DeviceRole::Gpu(0))),
            (195, 247, Some(DeviceRole::Gpu(247))),
            (195, 250, None),
            (235, 0, Some(DeviceRole::Uvm)),
            (236, 0, None),
            (234, 1, Some(DeviceRole::Caps)),
            (226, 128, Some(DeviceRole::Drm)),
            (226, 0, None),
            (226, 1, None),
            (1, 3, None),
        ];
        for (major, minor, role) in cases {
            assert_eq!(table.role(device(major, minor)), role, "{major}:{minor}");
        }
        let file = FileNumbers { kind: FileType::RegularFile, ..device(195, 0) };
        assert_eq!(table.role(file), None);
    }
}
