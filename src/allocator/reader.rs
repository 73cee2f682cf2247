//! Reads the allocators of many processes, again and again, and remembers where they are.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::allocator::device::Device;
use crate::allocator::locate::{Anchor, Found, locate};
use crate::allocator::maps::{Maps, fault};
use crate::allocator::memory::{Fault, Limits, ProcessMemory, Window};
use crate::allocator::notes::Notes;
use crate::ids::{ProcId, Stamp};
use crate::sample::{
    AllocatorBackend, AllocatorBasis, AllocatorDevice, AllocatorSample, Reading, Why,
};
use crate::units::Bytes;

/// Processes that are remembered.
const MOST_PROCESSES: usize = 4096;
/// A process younger than this may still be importing its libraries.
const YOUNG_MS: u64 = 60_000;
/// Growth of a process's VRAM that is worth another look.
const GROWTH: Bytes = Bytes::mib(16);
/// Clock ticks of `/proc` in a millisecond are a tenth: `USER_HZ` is 100 wherever CUDA runs.
const TICK_MS: u64 = 10;

/// What is asked of one reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// Whether the blocks are walked too; without them there are counters only. 10,000 blocks cost
    /// this side some milliseconds, a process that never rests some 5 more, and the process itself
    /// next to nothing: its memory is copied in chunks, it is never stopped, and no lock of its own
    /// is taken.
    pub blocks: bool,
    /// What the driver lists for the process: if it grew since nothing was found, another look is
    /// taken at once.
    pub vram: Option<Bytes>,
    /// What it may cost.
    pub limits: Limits,
}

/// Reads allocators. It blocks for a few milliseconds at the first look at a process, some
/// microseconds later, and for as long as the kernel keeps the process's memory map locked: it
/// belongs on a thread of its own.
///
/// Ask it only about processes that the driver lists: a forked child carries a copy of its
/// parent's allocator, frozen, and would be counted twice.
#[derive(Debug)]
pub struct Reader {
    proc: PathBuf,
    known: HashMap<ProcId, Entry>,
    /// Where somebody asked for reasons.
    notes: Option<Notes>,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// When it was last looked for.
    looked: Stamp,
    vram: Option<Bytes>,
    /// The last sample, for when the process is too busy to be read.
    last: Option<AllocatorSample>,
}

#[derive(Debug)]
enum State {
    Absent(Why),
    Other(AllocatorBackend),
    Native { anchor: Anchor, devices: Vec<Device>, forbidden: Vec<(u64, u64)> },
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_root(Path::new("/proc"))
    }
}

impl Reader {
    /// With `/proc` at another place. Process numbers there have to be those of this PID namespace.
    pub fn with_root(proc: &Path) -> Self {
        Self { proc: proc.to_owned(), known: HashMap::new(), notes: None }
    }

    /// Reads the allocator of a process.
    ///
    /// Absent: `NotSupported`, it has no PyTorch for GPUs, or the system cannot read processes;
    /// `NotYet`, PyTorch is loaded and CUDA not started, or it is too busy to be read;
    /// `UnknownLayout`, a version that is not understood; `NoPermission`; `Gone`; `TimedOut`, the
    /// limits were spent. A sample that is older than `now` is the last one that could be read.
    pub fn read(&mut self, id: ProcId, now: Stamp, ask: &Ask) -> Reading<AllocatorSample> {
        if let Err(fault) = self.check_identity(id) {
            self.known.remove(&id);
            return Reading::Absent(fault.why());
        }
        let answer = self.read_checked(id, now, ask);
        // What was read belongs to this process only if it was the same one until the end.
        match self.check_identity(id) {
            Ok(()) => answer,
            Err(fault) => {
                self.known.remove(&id);
                Reading::Absent(fault.why())
            }
        }
    }

    /// Reads as [`Reader::read`] does and tells why what was refused was refused: each reason with
    /// how often it was met. For diagnosis; a busy process has many reasons and is read all the
    /// same.
    pub fn explain(
        &mut self,
        id: ProcId,
        now: Stamp,
        ask: &Ask,
    ) -> (Reading<AllocatorSample>, Vec<(String, u32)>) {
        self.notes = Some(Notes::default());
        let answer = self.read(id, now, ask);
        (answer, self.notes.take().map(|notes| notes.take()).unwrap_or_default())
    }

    /// Drops what is known of processes that `keep` does not name.
    pub fn retain(&mut self, keep: impl Fn(ProcId) -> bool) {
        self.known.retain(|&id, _| keep(id));
    }

    fn read_checked(&mut self, id: ProcId, now: Stamp, ask: &Ask) -> Reading<AllocatorSample> {
        let memory = ProcessMemory::new(id.pid);
        for fresh in [false, true] {
            let due = self.known.get(&id).is_none_or(|entry| entry.due(id, now, ask.vram));
            if due || fresh {
                self.look(id, now, ask, memory);
            }
            let notes = self.notes.as_ref();
            let Some(entry) = self.known.get_mut(&id) else { break };
            let (anchor, devices, forbidden) = match &mut entry.state {
                State::Absent(why) => return Reading::Absent(*why),
                State::Other(backend) => {
                    return Reading::Value(sample(now, *backend, Vec::new()));
                }
                State::Native { anchor, devices, forbidden } => (anchor, devices, forbidden),
            };
            let window = Window::new(&memory, ask.limits, forbidden).noting(notes);
            let read = read_devices(&window, anchor, devices, now, ask.blocks);
            if let Err(fault) = &read {
                window.note(|| format!("reading: {fault}"));
            }
            match read {
                Ok(sample) => {
                    entry.last = Some(sample.clone());
                    return Reading::Value(sample);
                }
                // It may have been replaced (`exec`), so look again, once.
                Err(Fault::Unknown | Fault::Unmapped(_)) if !fresh => {}
                // Too busy, or too little time: the last sample says how old it is.
                Err(fault @ (Fault::Changed | Fault::Spent)) => {
                    return entry.last.clone().ok_or(fault.why()).into();
                }
                Err(fault) => {
                    entry.state = State::Absent(fault.why());
                    return Reading::Absent(fault.why());
                }
            }
        }
        Reading::Absent(Why::NotYet)
    }

    /// Looks for the allocator and remembers the outcome.
    fn look(&mut self, id: ProcId, now: Stamp, ask: &Ask, memory: ProcessMemory) {
        let found = Maps::read(&self.directory(id)).and_then(|maps| {
            let window =
                Window::new(&memory, ask.limits, &maps.devices).noting(self.notes.as_ref());
            window.note(|| format!("looking: {} libraries", maps.libraries.len()));
            Ok((locate(&window, &maps)?, maps.devices))
        });
        if let (Err(fault), Some(notes)) = (&found, &self.notes) {
            notes.add(format!("looking: {fault}"));
        }
        let state = match found {
            Ok((Found::Native(anchor, devices), forbidden)) => {
                State::Native { anchor, devices, forbidden }
            }
            Ok((Found::Other(backend), _)) => State::Other(backend),
            Ok((Found::NoTorch, _)) => State::Absent(Why::NotSupported),
            Ok((Found::NotStarted, _)) => State::Absent(Why::NotYet),
            Err(fault) => State::Absent(fault.why()),
        };
        if self.known.len() >= MOST_PROCESSES && !self.known.contains_key(&id) {
            let oldest = self.known.iter().min_by_key(|row| row.1.looked.boot_ms).map(|row| *row.0);
            oldest.map(|id| self.known.remove(&id));
        }
        self.known.insert(id, Entry { state, looked: now, vram: ask.vram, last: None });
    }

    fn directory(&self, id: ProcId) -> PathBuf {
        self.proc.join(id.pid.to_string())
    }

    fn check_identity(&self, id: ProcId) -> Result<(), Fault> {
        let mut text = Vec::new();
        File::open(self.directory(id).join("stat"))
            .and_then(|file| file.take(4096).read_to_end(&mut text))
            .map_err(|error| fault(&error))?;
        if start_ticks(&text) == Some(id.start_ticks) { Ok(()) } else { Err(Fault::Gone) }
    }
}

impl Entry {
    /// Whether a negative outcome is old enough to be looked at again.
    fn due(&self, id: ProcId, now: Stamp, vram: Option<Bytes>) -> bool {
        let State::Absent(why) = self.state else { return false };
        let age = now.since(self.looked);
        let grown = match (self.vram, vram) {
            (Some(before), Some(after)) => after.saturating_sub(before) >= GROWTH,
            (before, after) => before.is_none() && after.is_some(),
        };
        let young = now.boot_ms < (id.start_ticks * TICK_MS).saturating_add(YOUNG_MS);
        let wait = match why {
            Why::NotSupported if young => 2_000,
            Why::NotSupported | Why::UnknownLayout => 30_000,
            Why::NoPermission => 10_000,
            _ => 1_000,
        };
        age >= if grown { 200 } else { wait }
    }
}

fn read_devices(
    window: &Window<'_>,
    anchor: &Anchor,
    devices: &mut [Device],
    now: Stamp,
    blocks: bool,
) -> Result<AllocatorSample, Fault> {
    if !anchor.holds(window)? {
        window.note(|| "what led to the devices has changed".to_owned());
        return Err(Fault::Unknown);
    }
    let mut read = Vec::new();
    for device in devices.iter_mut() {
        read.extend(device.sample(window, now, blocks)?);
    }
    Ok(sample(now, AllocatorBackend::Native, read))
}

fn sample(at: Stamp, backend: AllocatorBackend, devices: Vec<AllocatorDevice>) -> AllocatorSample {
    let blocks = devices.iter().any(|device| device.free.value().is_some());
    let basis = if blocks { AllocatorBasis::Blocks } else { AllocatorBasis::Statistics };
    AllocatorSample { at, basis, devices, backend }
}

/// Field 22 of `/proc/PID/stat`. The name in field 2 may hold anything, also brackets and spaces.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}
