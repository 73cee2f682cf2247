//! The stand-in driver for one test: a copy of the library of its own, with its scenario beside it.
//!
//! Used by `#[path = "support/fake.rs"] mod fake;`. The library to load is [`Fake::library`], for a
//! program under test by its environment variable `VRAMLENS_NVML_LIB`.

// Every test uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

use tempfile::TempDir;

/// Functions that a driver of the 470 series does not have.
pub const NOT_IN_470: &[&str] = &[
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetConfComputeMemSizeInfo",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetCurrentClocksEventReasons",
];

/// What the first R535 drivers lack, by which their 32-byte rows are told. To go with
/// `wide_v3 = true`.
pub const NOT_IN_EARLY_535: &[&str] =
    &["nvmlDeviceGetRunningProcessDetailList", "nvmlDeviceGetCurrentClocksEventReasons"];

/// One stand-in driver.
pub struct Fake {
    dir: TempDir,
}

impl Fake {
    /// A driver with every function, in this scenario (TOML, see `tests/fake_nvml/scenario.rs`).
    pub fn new(scenario: &str) -> Self {
        Self::without(&[], scenario)
    }

    /// A driver that lacks these functions.
    pub fn without(missing: &[&str], scenario: &str) -> Self {
        let mut library = std::fs::read(&*BUILT).expect("the stand-in library");
        for name in missing {
            blank_out(&mut library, name);
        }
        let fake = Self { dir: TempDir::new().expect("a directory") };
        fake.change(scenario);
        std::fs::write(fake.library(), library).expect("a copy of the library");
        fake
    }

    /// The library to load.
    pub fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    /// Its directory, for whatever else a test needs there.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Another scenario, in force from the next call on; it releases stalls that it does not have.
    pub fn change(&self, scenario: &str) {
        // A new file takes the place of the old at once, so that no half of it is ever read.
        let fresh = self.beside(".new");
        std::fs::write(&fresh, scenario).expect("a scenario");
        std::fs::rename(fresh, self.beside(".toml")).expect("a scenario");
    }

    /// How often a function was called so far; for scenarios with `count_calls = true`.
    pub fn calls(&self, function: &str) -> u64 {
        let text = std::fs::read_to_string(self.beside(".calls")).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|line| line.0 == function).map_or(0, |line| line.1.parse().expect("a count"))
    }

    /// How often functions were called so far, all together.
    pub fn all_calls(&self) -> u64 {
        let text = std::fs::read_to_string(self.beside(".calls")).unwrap_or_default();
        let by_function = text.lines().filter(|line| !line.starts_with("gpu:"));
        by_function.filter_map(|line| line.split_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    /// Why a scenario was refused.
    pub fn complaint(&self) -> Option<String> {
        std::fs::read_to_string(self.beside(".error")).ok()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.dir.path().join(format!("libnvidia-ml.so.1{suffix}"))
    }
}

/// Takes a function's name out of the table by which the loader finds it.
fn blank_out(library: &mut [u8], name: &str) {
    let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
    let mut found = 0;
    for start in 0..library.len() - wanted.len() {
        if library[start..].starts_with(&wanted) {
            library[start + 1] = b'x';
            found += 1;
        }
    }
    assert!(found > 0, "the stand-in has no {name}");
}

static BUILT: LazyLock<PathBuf> = LazyLock::new(|| built("fake_nvml", "tests/fake_nvml"));

/// The library of an example as cargo built it; built now where it is missing or older than what
/// lies in its source's directory.
pub fn built(example: &str, source: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test's own path");
    // target/debug/deps/TEST
    let profile = test.ancestors().nth(2).expect("a target directory");
    let library = profile.join(format!("examples/lib{example}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let files = std::fs::read_dir(source).expect("the library's source");
    let newest = files.filter_map(|file| changed(&file.ok()?.path())).max();
    if changed(&library) < newest {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let release = profile.ends_with("release").then_some("--release");
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--example", example])
            .args(release)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "cargo build --example {example}");
    }
    library
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
