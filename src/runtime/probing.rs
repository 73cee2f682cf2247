//! The looks at processes that a session makes.

use crate::host::{DeviceRole, Options, Probe, StandIn};
use crate::ids::{Pid, Stamp};
use crate::runtime::inspector::Look;
use crate::sample::ProcTick;

/// Looks at `/proc`, and at the allocators of what it finds there.
pub struct Probing {
    probe: Probe,
}

impl Probing {
    /// With or without allocators.
    pub fn new(_allocator: bool) -> Self {
        let options = Options { stand_ins: stand_ins(), ..Options::default() };
        Self { probe: Probe::new("/", options) }
    }
}

impl Look for Probing {
    fn look(&mut self, now: Stamp, listed: &[Pid]) -> ProcTick {
        self.probe.look(now, listed)
    }
}

/// In debug builds `VRAMLENS_TEST_DEVICES` names files that are taken for NVIDIA's devices
/// (`PATH=uvm,PATH=control,PATH=0`), so that tests of the whole program need no GPU.
fn stand_ins() -> Vec<StandIn> {
    #[cfg(debug_assertions)]
    if let Ok(list) = std::env::var("VRAMLENS_TEST_DEVICES") {
        let one = |entry: &str| {
            let (path, role) = entry.split_once('=')?;
            let role = match role {
                "uvm" => DeviceRole::Uvm,
                "control" => DeviceRole::Control,
                minor => DeviceRole::Gpu(minor.parse().ok()?),
            };
            Some(StandIn { path: path.into(), role })
        };
        return list.split(',').filter_map(one).collect();
    }
    Vec::new()
}
