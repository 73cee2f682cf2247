//! A file that is put aside when it is full: `x.log` becomes `x.log.1`, that becomes `x.log.2`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::sample::text::clean_path;

/// A file of bounded size, with older ones beside it.
pub(super) struct File {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    /// Whether its folder is made where it is missing.
    makes_folder: bool,
    open: Option<fs::File>,
}

impl File {
    /// Opens nothing yet.
    pub(super) const fn new(path: PathBuf, max_bytes: u64, keep: u32) -> Self {
        Self { path, max_bytes, keep, makes_folder: true, open: None }
    }

    /// Makes no folder: a name that somebody typed may be mistyped.
    pub(super) const fn in_folder(mut self) -> Self {
        self.makes_folder = false;
        self
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends; puts the file aside first where it would grow too large.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        let written = self.try_write(text);
        if written.is_err() {
            // The next line begins anew: the disk may be back, or the folder.
            self.open = None;
        }
        written
    }

    fn try_write(&mut self, text: &str) -> io::Result<()> {
        let mut file = self.current()?;
        let size = file.metadata()?.len();
        if size > 0 && size + text.len() as u64 > self.max_bytes {
            self.rotate(&file)?;
            self.open = None;
            file = self.current()?;
        }
        let written = file.write_all(text.as_bytes());
        self.open = Some(file);
        written
    }

    /// Whether it can be written and put aside: another can be made beside it.
    pub(super) fn try_out(&mut self) -> io::Result<()> {
        self.open = Some(self.current()?);
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}.new", std::process::id()));
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name)?;
        fs::remove_file(name)
    }

    /// The file that the path names now: another program may have put it aside.
    fn current(&mut self) -> io::Result<fs::File> {
        if let Some(open) = self.open.take()
            && is_at(&open, &self.path)
        {
            return Ok(open);
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !self.makes_folder && !folder.is_dir()) {
            let name = clean_path(folder);
            let text = format!("there is no folder {name}: make it, or name another file");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        if let Some(folder) = folder.filter(|_| self.makes_folder) {
            // As the specification of the folders for state asks.
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// Two of us may come here at once: the one that has the lock moves the files, the other finds
    /// them moved.
    fn rotate(&self, full: &fs::File) -> io::Result<()> {
        flock(full, FlockOperation::LockExclusive)?;
        if !is_at(full, &self.path) {
            return Ok(());
        }
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        for n in (1..self.keep).rev() {
            match fs::rename(self.aside(n), self.aside(n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.aside(1))
    }

    fn aside(&self, n: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{n}"));
        name.into()
    }
}

fn is_at(file: &fs::File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn so_many_are_kept_and_no_more_and_none_is_too_large() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let mut file = File::new(folder.join("x.log"), 100, 2);
        for n in 0..50 {
            file.write(&format!("line {n:024}\n")).unwrap();
        }
        assert_eq!(names(&folder), ["x.log", "x.log.1", "x.log.2"]);
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let all = read("x.log.2") + &read("x.log.1") + &read("x.log");
        let kept: Vec<usize> =
            all.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert_eq!(kept, (50 - kept.len()..50).collect::<Vec<_>>());
        for name in names(&folder) {
            let meta = fs::metadata(folder.join(name)).unwrap();
            assert!(meta.len() <= 100);
            assert_eq!(meta.mode() & 0o777, 0o600);
        }
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn without_older_ones_it_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = File::new(dir.path().join("x.log"), 20, 0);
        for n in 0..9 {
            file.write(&format!("line number {n}\n")).unwrap();
        }
        assert_eq!(names(dir.path()), ["x.log"]);
        assert_eq!(fs::read_to_string(dir.path().join("x.log")).unwrap(), "line number 8\n");
    }

    #[test]
    fn two_writers_and_a_stranger_who_moves_it_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut one = File::new(path.clone(), 1 << 20, 1);
        let mut two = File::new(path.clone(), 1 << 20, 1);
        one.write("one\n").unwrap();
        two.write("two\n").unwrap();
        fs::rename(&path, dir.path().join("away")).unwrap();
        one.write("three\n").unwrap();
        two.write("four\n").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("away")).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(path).unwrap(), "three\nfour\n");
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_the_next_line_tries_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        fs::write(&folder, "in the way").unwrap();
        let mut file = File::new(folder.join("x.log"), 100, 1);
        assert!(file.write("lost\n").is_err());
        fs::remove_file(&folder).unwrap();
        file.write("kept\n").unwrap();
        assert_eq!(fs::read_to_string(folder.join("x.log")).unwrap(), "kept\n");
        // Every write there fails for want of room.
        let mut full = File::new("/dev/full".into(), 100, 1);
        assert_eq!(full.write("x\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
