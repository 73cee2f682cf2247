//! The looks at processes that a session makes.

use crate::allocator::{Ask, Reader};
#[cfg(debug_assertions)]
use crate::host::DeviceRole;
use crate::host::{Options, Probe, StandIn};
use crate::ids::{Pid, Stamp};
use crate::runtime::asking::Asking;
use crate::runtime::inspector::{Listed, Look};
use crate::runtime::options::root;
use crate::sample::ProcTick;

/// Looks at `/proc`, and at the allocators of what it finds there.
pub struct Probing {
    probe: Probe,
    allocators: Option<Reader>,
    servers: Option<Asking>,
}

impl Probing {
    /// With or without allocators and servers' own interfaces.
    pub fn new(allocators: bool, servers: bool) -> Self {
        let options = Options { stand_ins: stand_ins(), ..Options::default() };
        Self {
            probe: Probe::new(root(), options),
            allocators: allocators.then(Reader::default),
            // Without a thread to be had there is nobody to ask.
            servers: if servers { Asking::spawn().ok() } else { None },
        }
    }
}

impl Look for Probing {
    fn prepare(&mut self, now: Stamp) {
        self.probe.prepare(now);
    }

    fn look(&mut self, now: Stamp, listed: &[Listed]) -> ProcTick {
        let pids: Vec<Pid> = listed.iter().map(|process| process.pid).collect();
        let mut tick = self.probe.look(now, &pids);
        if let Some(servers) = &mut self.servers {
            servers.complete(&mut tick.procs, now);
        }
        let Some(reader) = &mut self.allocators else { return tick };
        // Only those that the driver lists: a forked child carries a frozen copy of its parent's
        // allocator.
        for process in &mut tick.procs {
            let uses_cuda = process.devices.value().is_some_and(|devices| devices.uvm);
            if uses_cuda
                && let Some(holder) = listed.iter().find(|holder| holder.pid == process.id.pid)
            {
                let ask = Ask { blocks: true, vram: holder.vram, ..Ask::default() };
                process.allocator = Some(reader.read(process.id, now, &ask));
            }
        }
        // They are in the order of their identities.
        let alive = |id| tick.procs.binary_search_by_key(&id, |process| process.id).is_ok();
        reader.retain(alive);
        tick
    }
}

/// In debug builds `VRAMLENS_TEST_DEVICES` names files that are taken for NVIDIA's devices
/// (`PATH=uvm,PATH=control,PATH=0`), so that tests of the whole program need no GPU.
pub fn stand_ins() -> Vec<StandIn> {
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
