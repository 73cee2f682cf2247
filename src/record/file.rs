//! A recording in a file: complete or not there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::record::{Form, Header, Redaction, Writer};
use crate::sample::Tick;
use crate::sample::text::clean_path;

/// What happens when a file reaches its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// The recording ends.
    End,
    /// A new file begins; the old ones become `FILE.1`, `FILE.2`, … and this many of them stay.
    Rotate {
        /// Files that are kept besides the newest.
        keep: u32,
    },
}

/// A bound on the size of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// Bytes of the file, as compressed. One frame may go beyond it.
    pub at_bytes: u64,
    /// And then.
    pub then: OnFull,
}

/// Why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file is there.
    #[error("{} exists: choose another name, or remove it", clean_path(.0))]
    Exists(PathBuf),
    /// A recording that was not closed is there.
    #[error(
        "{} is a recording that was not closed, or is being written: `vramlens replay` reads it; \
         move it away to record here", clean_path(.0)
    )]
    Unfinished(PathBuf),
    /// The file system says no.
    #[error("{}: {source}", clean_path(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

/// Writes `FILE.part`, readable by its owner only, and names it `FILE` when it is complete.
pub struct FileWriter {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    redaction: Redaction,
    full: Option<Full>,
    ended: bool,
}

impl FileWriter {
    /// Begins a file. Neither it nor its `.part` may exist.
    pub fn create(
        path: &Path,
        header: Header,
        redaction: Redaction,
        full: Option<Full>,
    ) -> Result<Self, OutputError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(OutputError::Exists(path.to_owned()));
        }
        let part = part_path(path);
        let file = open_part(&part)?;
        let at_part = |source| OutputError::Io { path: part.clone(), source };
        let out = BufWriter::new(file);
        let writer = Writer::new(out, Form::Frames, header, redaction.clone()).map_err(at_part)?;
        Ok(Self { path: path.to_owned(), writer, redaction, full, ended: false })
    }

    /// Adds one tick; no when the file was full and the recording has ended.
    pub fn push(&mut self, tick: &Tick) -> Result<bool, OutputError> {
        if self.ended {
            return Ok(false);
        }
        self.writer.push(tick).map_err(|source| self.error(source))?;
        if let Some(full) = self.full.filter(|full| self.writer.written() >= full.at_bytes) {
            match full.then {
                OnFull::End => self.ended = true,
                OnFull::Rotate { keep } => self.rotate(keep, tick)?,
            }
        }
        Ok(!self.ended)
    }

    /// Closes the frame under way when it has lasted long enough at `boot_ms`.
    pub fn flush_if_overdue(&mut self, boot_ms: u64) -> Result<(), OutputError> {
        if !self.writer.overdue(boot_ms) {
            return Ok(());
        }
        self.writer.flush().map_err(|source| self.error(source))
    }

    /// Bytes in the file so far.
    pub const fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Closes the file and gives it its name; says how many bytes it has.
    pub fn finish(self) -> Result<u64, OutputError> {
        let bytes = close(self.writer, &self.path)?;
        let part = part_path(&self.path);
        // Unlike a rename, a link never replaces what somebody else put there meanwhile.
        match fs::hard_link(&part, &self.path) {
            Ok(()) => fs::remove_file(&part),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(OutputError::Exists(self.path));
            }
            Err(_no_links_here) => fs::rename(&part, &self.path),
        }
        .map_err(|source| OutputError::Io { path: self.path, source })?;
        Ok(bytes)
    }

    /// Takes back a file that nothing has come into.
    pub fn discard(self) -> Result<(), OutputError> {
        let part = part_path(&self.path);
        fs::remove_file(&part).map_err(|source| OutputError::Io { path: part, source })
    }

    fn rotate(&mut self, keep: u32, tick: &Tick) -> Result<(), OutputError> {
        let mut header = self.writer.header().clone();
        header.started = tick.at();
        // The old file stays open under its new name until it has been closed in order.
        let part = part_path(&self.path);
        let numbered = |n: u32| with_suffix(&self.path, &format!(".{n}"));
        for n in (1..keep).rev() {
            ignore_missing(fs::rename(numbered(n), numbered(n + 1)), &numbered(n))?;
        }
        if keep == 0 {
            ignore_missing(fs::remove_file(&part), &part)?;
        } else {
            ignore_missing(fs::rename(&part, numbered(1)), &part)?;
        }
        let out = BufWriter::new(open_part(&part)?);
        let next = Writer::new(out, Form::Frames, header, self.redaction.clone());
        let next = next.map_err(|source| self.error(source))?;
        close(std::mem::replace(&mut self.writer, next), &numbered(1)).map(drop)
    }

    fn error(&self, source: io::Error) -> OutputError {
        OutputError::Io { path: part_path(&self.path), source }
    }
}

/// Gives the size of the file.
fn close(writer: Writer<BufWriter<File>>, path: &Path) -> Result<u64, OutputError> {
    let file = writer.finish().and_then(|out| out.into_inner().map_err(io::Error::from));
    file.and_then(|file| file.sync_data().and_then(|()| Ok(file.metadata()?.len())))
        .map_err(|source| OutputError::Io { path: path.to_owned(), source })
}

fn ignore_missing(result: io::Result<()>, path: &Path) -> Result<(), OutputError> {
    match result {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(OutputError::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn open_part(part: &Path) -> Result<File, OutputError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    opened.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => OutputError::Unfinished(part.to_owned()),
        _ => OutputError::Io { path: part.to_owned(), source },
    })
}

/// Where a recording is kept until it is complete: `FILE.part`.
pub fn part_path(path: &Path) -> PathBuf {
    with_suffix(path, ".part")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
