//! Which processes hold memory now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::answer::Row;
use crate::lists::row;
use crate::scenario::{Instance, Process, Samples};
use crate::state::{Handle, State, Target};

/// A device's processes, and the lists that they make.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) processes: Vec<Process>,
    pub(crate) compute: Vec<Row>,
    pub(crate) graphics: Vec<Row>,
    pub(crate) mps: Vec<Row>,
    /// Together, in bytes.
    pub(crate) held: i64,
}

impl Listed {
    fn of(processes: Vec<Process>) -> Self {
        let of_kind =
            |letter| processes.iter().filter(|row| row.kinds.contains(letter)).map(row).collect();
        Self {
            compute: of_kind('C'),
            graphics: of_kind('G'),
            mps: of_kind('M'),
            held: held(&processes),
            processes,
        }
    }
}

impl State {
    /// What a device lists now.
    pub(crate) fn listed(&mut self, device: Handle) -> Result<Arc<Listed>, u32> {
        if let Some(prepared) = self.prepared.get(&device) {
            return Ok(Arc::clone(prepared));
        }
        let target = self.target(device)?;
        let mut rows = target.processes();
        if target.instance.is_none() {
            rows.extend(self.burst(target.index));
        }
        let (follow, delay) = (self.scenario.follow_pids, self.scenario.free_after_ms);
        let follows = |row: &Process| row.follow.unwrap_or(follow);
        let changes = !self.scenario.burst.is_empty() || rows.iter().any(follows);
        rows.retain(|row| !follows(row) || self.holds(row, delay));
        let listed = Arc::new(Listed::of(rows));
        if !changes {
            self.prepared.insert(device, Arc::clone(&listed));
        }
        Ok(listed)
    }

    fn burst(&self, gpu: u32) -> Vec<Process> {
        let now = self.began.elapsed().as_millis() as u64;
        let due = self
            .scenario
            .burst
            .iter()
            .filter(|burst| burst.gpu == gpu && now % burst.every_ms.max(1) < burst.for_ms);
        due.flat_map(|burst| {
            (0..burst.procs).map(|n| Process {
                pid: burst.first_pid + n,
                bytes: burst.bytes,
                kinds: "C".to_owned(),
                sm: Samples::Idle,
                stamp: None,
                gi: None,
                ci: None,
                follow: Some(false),
                sticky: false,
                survivors: Vec::new(),
            })
        })
        .collect()
    }

    /// Whether a process, dead or alive, still has its memory.
    fn holds(&mut self, row: &Process, free_after_ms: u64) -> bool {
        if lives(row.pid) {
            self.dead.remove(&row.pid);
            return true;
        }
        if row.sticky && (row.survivors.is_empty() || row.survivors.iter().any(|pid| lives(*pid))) {
            return true;
        }
        let since = self.dead.entry(row.pid).or_insert_with(Instant::now);
        since.elapsed() < Duration::from_millis(free_after_ms)
    }
}

/// Memory held: the largest figure of each pid.
fn held(rows: &[Process]) -> i64 {
    let mut largest = std::collections::HashMap::new();
    for row in rows {
        let known = largest.entry(row.pid).or_insert(0);
        *known = row.bytes.max(*known);
    }
    largest.values().sum()
}

impl Target<'_> {
    /// The rows of the scenario; a GPU has those of its instances too.
    fn processes(&self) -> Vec<Process> {
        let inside = |part: &Instance| marked(&part.process, part.gi, part.ci);
        if let Some(instance) = self.instance {
            return inside(instance);
        }
        let parts = self.gpu.instance.iter().flat_map(inside);
        self.gpu.process.iter().cloned().chain(parts).collect()
    }

    /// Total, reserved, and what is used by nobody who is listed.
    pub(crate) fn sizes(&self) -> (i64, i64, i64) {
        match self.instance {
            Some(instance) => (instance.total, instance.reserved, 0),
            None => (self.gpu.total, self.gpu.reserved, self.gpu.unaccounted),
        }
    }
}

fn marked(rows: &[Process], gi: u32, ci: u32) -> Vec<Process> {
    rows.iter().cloned().map(|row| Process { gi: Some(gi), ci: Some(ci), ..row }).collect()
}

/// A zombie has let go of its memory.
fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return false };
    let name_ends = stat.iter().rposition(|byte| *byte == b')');
    let state = name_ends.and_then(|end| stat.get(end + 2));
    !matches!(state, Some(b'Z' | b'X') | None)
}
