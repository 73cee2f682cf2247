//! The looks at processes that a session makes.

use crate::ids::{Pid, Stamp};
use crate::runtime::inspector::Look;
use crate::sample::ProcTick;

/// Looks at `/proc`, and at the allocators of what it finds there.
pub struct Probing;

impl Probing {
    /// With or without allocators.
    pub const fn new(_allocator: bool) -> Self {
        Self
    }
}

impl Look for Probing {
    fn look(&mut self, now: Stamp, _listed: &[Pid]) -> ProcTick {
        use crate::sample::{HostFacts, Reading, ScanReport, Why};
        ProcTick {
            at: now,
            took_ms: 0,
            procs: Vec::new(),
            scan: ScanReport::default(),
            host: HostFacts {
                hostname: Reading::Absent(Why::NotYet),
                host_pid_namespace: Reading::Absent(Why::NotYet),
                container: None,
                euid: 0,
                hidepid: Reading::Absent(Why::NotYet),
                ptrace_scope: Reading::Absent(Why::NotYet),
                wsl: false,
            },
        }
    }
}
