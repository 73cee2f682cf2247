//! The scenario in force, re-read when its file changes; counts, errors and stalls of every call.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::live::Listed;
use crate::scenario::{Gpu, Instance, Scenario};

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const UNINITIALIZED: u32 = 1;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const GPU_IS_LOST: u32 = 15;
const UNKNOWN: u32 = 999;

/// What C calls `nvmlDevice_t`: the GPU's index and the MIG slot, both plus one, so that a handle
/// outlives any change of the scenario.
pub(crate) type Handle = usize;

pub(crate) const fn handle(gpu: u32, slot: Option<u32>) -> Handle {
    let slot = match slot {
        Some(slot) => slot as usize + 1,
        None => 0,
    };
    (gpu as usize + 1) << 8 | slot
}

/// Everything that a call can look at.
pub(crate) struct State {
    pub(crate) scenario: Scenario,
    pub(crate) began: Instant,
    /// When a process was first seen to be dead.
    pub(crate) dead: HashMap<u32, Instant>,
    /// Lists that stay the same while the scenario does.
    pub(crate) prepared: HashMap<Handle, Arc<Listed>>,
    /// Event sets and what is registered in each; a freed one is none.
    pub(crate) sets: Vec<Option<Vec<Handle>>>,
    /// Events of the scenario that were delivered.
    pub(crate) delivered: usize,
    /// The driver's reload under which the library was initialised.
    initialised: Option<u32>,
    /// Whether it was initialised so that it attaches GPUs.
    pub(crate) attached: bool,
    /// How often it was initialised: the last shutdown counts.
    openings: u32,
    /// Open for as long as the library is initialised, as the real one keeps device files.
    opened: Option<std::fs::File>,
    library: PathBuf,
    file: PathBuf,
    read: Option<FileKey>,
    looked: Instant,
    calls: BTreeMap<String, u64>,
    /// By GPU.
    calls_on: BTreeMap<u32, u64>,
}

/// Tells one content of a file from the next, be it written over or put in its place.
type FileKey = (u64, i64, i64, u64);

/// A device as the scenario has it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) index: u32,
    pub(crate) gpu: &'a Gpu,
    pub(crate) instance: Option<&'a Instance>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new()));

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the scenario in force.
pub(crate) fn with_scenario<T>(look: impl FnOnce(&Scenario) -> T) -> T {
    let mut state = lock();
    state.reread();
    look(&state.scenario)
}

/// Answers one call, after the errors and stalls that the scenario has for it.
pub(crate) fn serve(
    call: &'static str,
    device: Option<Handle>,
    answer: impl FnOnce(&mut State) -> u32,
) -> u32 {
    let gpu = device.map(|handle| (handle >> 8) as u32).map(|plus_one| plus_one.wrapping_sub(1));
    let mut state = lock();
    state.reread();
    state.count(call, gpu);
    while state.stalls(call, gpu) {
        drop(state);
        std::thread::sleep(Duration::from_millis(5));
        state = lock();
        state.reread();
    }
    if state.scenario.crash.iter().any(|crash| is_about(&crash.call, crash.gpu, call, gpu)) {
        // The first one is taken by Rust's own handler, which looks for an overflown stack.
        for _ in 0..2 {
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSEGV);
        }
    }
    if state.read.is_none() {
        return UNKNOWN;
    }
    if let Some(code) = state.fails(call, gpu) {
        return code;
    }
    let opening = call.starts_with("nvmlInit");
    if opening {
        // Whoever holds an opening of before the reload keeps the library in the past.
        if state.openings == 0 {
            state.initialised = Some(state.scenario.reloads);
        }
        state.openings += 1;
        state.opened = std::fs::File::open(&state.file).ok();
    } else if state.initialised != Some(state.scenario.reloads) {
        return UNINITIALIZED;
    }
    match gpu.map(|gpu| state.scenario.gpu.get(gpu as usize)) {
        Some(None) => INVALID_ARGUMENT,
        Some(Some(gpu)) if gpu.lost => GPU_IS_LOST,
        _ => answer(&mut state),
    }
}

/// Looks at the state without a call.
pub(crate) fn locked<T>(look: impl FnOnce(&mut State) -> T) -> T {
    let mut state = lock();
    state.reread();
    look(&mut state)
}

impl State {
    fn new() -> Self {
        let library = library_path();
        let mut calls = counted(&library);
        let calls_on = (0..1 << 8)
            .filter_map(|gpu| Some((gpu, calls.remove(&format!("gpu:{gpu}"))?)))
            .collect();
        let beside = || with_suffix(&library, ".toml");
        let file = std::env::var_os("VRAMLENS_FAKE_NVML").map_or_else(beside, PathBuf::from);
        Self {
            scenario: Scenario::default(),
            began: Instant::now(),
            dead: HashMap::new(),
            prepared: HashMap::new(),
            sets: Vec::new(),
            delivered: 0,
            initialised: None,
            attached: false,
            openings: 0,
            opened: None,
            library,
            file,
            read: None,
            looked: Instant::now(),
            calls,
            calls_on,
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.openings = self.openings.saturating_sub(1);
        if self.openings == 0 {
            self.initialised = None;
            self.attached = false;
            self.opened = None;
        }
    }

    /// What a handle stands for.
    pub(crate) fn target(&self, device: Handle) -> Result<Target<'_>, u32> {
        let index = ((device >> 8) as u32).wrapping_sub(1);
        let gpu = self.scenario.gpu.get(index as usize).ok_or(INVALID_ARGUMENT)?;
        let instance = match device & 0xff {
            0 => None,
            slot => Some(gpu.instance.get(slot - 1).ok_or(INVALID_ARGUMENT)?),
        };
        Ok(Target { index, gpu, instance })
    }

    fn reread(&mut self) {
        let rest = Duration::from_millis(self.scenario.reread_ms);
        if self.read.is_some() && !rest.is_zero() && self.looked.elapsed() < rest {
            return;
        }
        self.looked = Instant::now();
        let Ok(meta) = std::fs::metadata(&self.file) else { return };
        let key = (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len());
        if self.read == Some(key) {
            return;
        }
        let text = std::fs::read_to_string(&self.file).map_err(|error| error.to_string());
        match text.and_then(|text| Scenario::parse(&text)) {
            Ok(scenario) => {
                self.scenario = scenario;
                self.prepared.clear();
                self.read = Some(key);
            }
            Err(error) => {
                // There is nobody to tell: a program that draws a screen owns the terminal.
                let _ = std::fs::write(with_suffix(&self.library, ".error"), error);
                self.read = self.read.map(|_| key);
            }
        }
    }

    fn stalls(&self, call: &str, gpu: Option<u32>) -> bool {
        self.scenario.stall.iter().any(|stall| is_about(&stall.call, stall.gpu, call, gpu))
    }

    fn fails(&self, call: &str, gpu: Option<u32>) -> Option<u32> {
        let failures = &self.scenario.error;
        let found = failures.iter().find(|failure| is_about(&failure.call, failure.gpu, call, gpu));
        found.map(|failure| failure.code)
    }

    /// By function and by the GPU that it is about.
    fn count(&mut self, call: &'static str, gpu: Option<u32>) {
        match self.calls.get_mut(call) {
            Some(count) => *count += 1,
            None => drop(self.calls.insert(call.to_owned(), 1)),
        }
        if let Some(gpu) = gpu {
            *self.calls_on.entry(gpu).or_default() += 1;
        }
        if self.scenario.count_calls {
            let mut text = String::new();
            for (call, count) in &self.calls {
                let _ = writeln!(text, "{call} {count}");
            }
            for (gpu, count) in &self.calls_on {
                let _ = writeln!(text, "gpu:{gpu} {count}");
            }
            // The program may end at any moment: half a file is never in its place.
            let fresh = with_suffix(&self.library, ".calls.new");
            if std::fs::write(&fresh, text).is_ok() {
                let _ = std::fs::rename(fresh, with_suffix(&self.library, ".calls"));
            }
        }
    }
}

/// What was counted before the library was unloaded and loaded again.
fn counted(library: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(with_suffix(library, ".calls")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(call, count)| Some((call.to_owned(), count.parse().ok()?))).collect()
}

fn is_about(named: &str, on: Option<u32>, call: &str, gpu: Option<u32>) -> bool {
    let same = match named.strip_suffix('*') {
        Some(start) => call.starts_with(start),
        None => call == named,
    };
    same && (on.is_none() || on == gpu)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Where this very library was loaded from.
#[allow(unsafe_code)]
fn library_path() -> PathBuf {
    let mut info = nix::libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = library_path as fn() -> PathBuf as *const std::ffi::c_void;
    // SAFETY: `info` is filled by the call; the name that it points to lives as long as the library.
    let name = unsafe {
        if nix::libc::dladdr(here, &raw mut info) == 0 || info.dli_fname.is_null() {
            return PathBuf::from("libfake_nvml.so");
        }
        CStr::from_ptr(info.dli_fname)
    };
    PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))
}
