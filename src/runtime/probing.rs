//! The looks at processes that a session makes.

use crate::allocator::{Ask, Reader};
#[cfg(debug_assertions)]
use crate::host::DeviceRole;
use crate::host::{Options, Probe, Said, StandIn};
use crate::ids::{Pid, Stamp};
use crate::runtime::asking::Asking;
use crate::runtime::inspector::{Listed, Look};
use crate::runtime::options::root;
use crate::sample::{ProcSample, ProcTick};

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
    fn prepare(&mut self, now: Stamp, wanted: &dyn Fn() -> bool) {
        self.probe.prepare(now, wanted);
    }

    fn look(&mut self, now: Stamp, listed: &[Listed]) -> ProcTick {
        let pids: Vec<Pid> = listed.iter().map(|process| process.pid).collect();
        let (mut reader, mut servers) = (self.allocators.as_mut(), self.servers.as_mut());
        if let Some(servers) = &mut servers {
            servers.listen(now);
        }
        let tick = self.probe.look_with(now, &pids, |process| {
            let allocator = reader.as_mut().and_then(|reader| {
                let ask = question(process, listed)?;
                Some(reader.read(process.id, now, &ask))
            });
            let server = servers.as_mut().and_then(|servers| servers.said(process, now));
            Said { allocator, server }
        });
        // They are in the order of their identities.
        let alive = |id| tick.procs.binary_search_by_key(&id, |process| process.id).is_ok();
        if let Some(reader) = reader {
            reader.retain(alive);
        }
        if let Some(servers) = servers {
            servers.retain(alive);
        }
        tick
    }
}

/// What the allocator of a process is asked. Only of those that the driver lists: a forked child
/// carries a frozen copy of its parent's allocator.
fn question(process: &ProcSample, listed: &[Listed]) -> Option<Ask> {
    if !process.devices.value().is_some_and(|devices| devices.uvm) {
        return None;
    }
    let holder = listed.iter().find(|holder| holder.pid == process.id.pid)?;
    Some(Ask { blocks: true, vram: holder.vram, ..Ask::default() })
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
