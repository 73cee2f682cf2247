//! What a program allocates, counted by a library that it is started with.

use std::ffi::OsString;
use std::path::PathBuf;

use object::{Object as _, ObjectSymbol as _};
use tempfile::NamedTempFile;

use crate::fake::built;

#[path = "../count_alloc/page.rs"]
mod page;

/// What allocators that go round the C library's have in them.
const OTHERS: [&str; 5] = ["<jemalloc>", "mimalloc: ", "tcmalloc", "snmalloc", "Go buildinf:"];
/// Files that have an allocator and are meant to: the C library, the loader, the counting one.
const KNOWN: [&str; 3] = ["libc.so", "ld-linux", "libcount_alloc"];

/// What a program and its children have allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Calls that gave a block or made one grow.
    pub calls: u64,
    /// Bytes that they asked for; of a block that grew, what it grew by.
    pub bytes: u64,
    /// Bytes that the program itself has and has not freed, as the C library rounds them; `None` where
    /// more was freed than was counted.
    pub live_bytes: Option<u64>,
}

impl Counts {
    /// What was allocated since; an error where that is nothing at all, as of a program that has an
    /// allocator of its own without a name that is known.
    pub fn since(self, before: Self) -> Result<Self, String> {
        let (calls, bytes) = (self.calls - before.calls, self.bytes - before.bytes);
        if calls == 0 {
            return Err("nothing is allocated by the C library".to_owned());
        }
        Ok(Self { calls, bytes, ..self })
    }
}

/// Where they are counted.
pub struct Counter {
    file: NamedTempFile,
    library: PathBuf,
}

impl Counter {
    /// Nothing counted yet.
    pub fn new() -> Self {
        let file = NamedTempFile::new().expect("a file for the counts");
        file.as_file().set_len(page::WORDS as u64 * 8).expect("room for the counts");
        Self { file, library: built("count_alloc", "tests/bench/count_alloc") }
    }

    /// The environment of a program that is to be counted. Python has small objects in an allocator of
    /// its own, and is told to leave that.
    pub fn environment(&self) -> [(&'static str, OsString); 3] {
        let variable = page::VARIABLE.to_str().expect("ASCII");
        [
            ("LD_PRELOAD", self.library.clone().into()),
            (variable, self.file.path().into()),
            ("PYTHONMALLOC", "malloc".into()),
        ]
    }

    /// What a running program has allocated so far, or why that is not known.
    pub fn so_far(&self, pid: u32) -> Result<Counts, String> {
        let bytes = std::fs::read(self.file.path()).map_err(|why| why.to_string())?;
        let words: Vec<u64> = bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes).collect();
        if words.get(page::LOST).is_none_or(|lost| *lost > 0) {
            return Err("it has more processes than there is room for".to_owned());
        }
        let slots = || words.chunks_exact(page::SLOT).skip(1);
        let Some(own) = slots().find(|slot| slot[page::PID] == u64::from(pid)) else {
            return Err("the counting library is not in it: is it static?".to_owned());
        };
        has_no_other(pid)?;
        let sum = |word: usize| slots().map(|slot| slot[word]).sum();
        let live_bytes = Some(own[page::LIVE]).filter(|live| live.cast_signed() >= 0);
        Ok(Counts { calls: sum(page::CALLS), bytes: sum(page::BYTES), live_bytes })
    }
}

/// Whether a process has no allocator but the C library's; else which.
fn has_no_other(pid: u32) -> Result<(), String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    let text = text.map_err(|why| format!("/proc/{pid}/maps: {why}"))?;
    // Only what is executed: a device must not be read.
    let code = text.lines().filter(|line| line.contains(" r-xp "));
    let path = |line: &'_ str| line.find('/').and_then(|at| line.get(at..)).map(PathBuf::from);
    let mut files: Vec<PathBuf> = code.filter_map(path).collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if KNOWN.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        let bytes = std::fs::read(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        let has = |text: &&&str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
        let defines = |symbol: object::Symbol<'_, '_>| {
            symbol.name_bytes() == Ok(b"malloc") && !symbol.is_undefined()
        };
        let object = object::File::parse(&*bytes);
        let is_one = object.is_ok_and(|object| object.dynamic_symbols().any(defines));
        if is_one || OTHERS.iter().any(|other| has(&other)) {
            return Err(format!("{name} has an allocator of its own"));
        }
    }
    Ok(())
}
