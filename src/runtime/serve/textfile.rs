//! The newest page in a file, for the textfile collector of `node_exporter`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::watch;

use super::Page;

/// Between two writings: the collector reads no more often than Prometheus scrapes.
const APART: Duration = Duration::from_secs(5);

/// A file that is kept new.
pub struct Textfile {
    file: PathBuf,
    /// Whether it is written no more.
    ended: Arc<Mutex<bool>>,
}

impl Textfile {
    /// Writes every page, but not more often than that, on a thread of its own: a disk can hang.
    /// `complain` hears the first failure of a row.
    ///
    /// # Errors
    /// Where there is no right to write the file, or no thread is to be had.
    pub fn spawn(
        file: &Path,
        mut pages: watch::Receiver<Page>,
        complain: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        try_out(file)?;
        let ended = Arc::new(Mutex::new(false));
        let (stop, path) = (Arc::clone(&ended), file.to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        std::thread::Builder::new().name("textfile".to_owned()).spawn(move || {
            let mut failed = false;
            while runtime.block_on(pages.changed()).is_ok() {
                let page = pages.borrow_and_update().prometheus.clone();
                let ended = stop.lock().unwrap_or_else(PoisonError::into_inner);
                if *ended {
                    return;
                }
                let written = write(&path, &page);
                drop(ended);
                if let Err(error) = &written
                    && !failed
                {
                    complain(error);
                }
                failed = written.is_err();
                std::thread::sleep(APART);
            }
        })?;
        Ok(Self { file: file.to_owned(), ended })
    }

    /// Takes the file away: what stands in it is not of now any more. A disk that hangs is not
    /// waited for.
    pub fn end(self) {
        if let Ok(mut ended) = self.ended.try_lock() {
            *ended = true;
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

/// Whether there is the right to write it. Nothing is left behind, and what is there stays.
///
/// # Errors
/// Where there is none.
pub fn try_out(file: &Path) -> io::Result<()> {
    let fresh = beside(file);
    drop(open(&fresh)?);
    std::fs::remove_file(&fresh)?;
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // The right to replace a file is the right to take it away, which the kernel asks for
        // before it sees that this is no folder.
        Ok(_) => match std::fs::remove_dir(file) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(()),
            other => other,
        },
    }
}

fn open(fresh: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(fresh)
}

/// A new file takes the place of the old at once, so that no half of it is ever read.
fn write(file: &Path, page: &Bytes) -> io::Result<()> {
    let fresh = beside(file);
    let mut out = open(&fresh)?;
    let written = out.write_all(page).and_then(|()| std::fs::rename(&fresh, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}

/// A name that the collector does not read: it takes `*.prom`.
fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vramlens.prom");
        for text in ["a 1\n", "a 2\n"] {
            write(&file, &Bytes::from_static(text.as_bytes())).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(Path::new("/nowhere/x.prom"), &Bytes::new()).is_err());
        // Nothing is written before there is something to read.
        let (pages, out) = watch::channel(Page::empty());
        let kept = Textfile::spawn(&file, out, |_| ()).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a 2\n");
        kept.end();
        assert!(!file.exists());
        drop(pages);
    }

    #[test]
    fn the_right_to_write_is_found_out_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vramlens.prom");
        let names = || {
            let all = std::fs::read_dir(dir.path()).unwrap();
            all.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
        };
        try_out(&file).unwrap();
        assert_eq!(names(), [""; 0]);
        std::fs::write(&file, "a 1\n").unwrap();
        let before = std::fs::metadata(&file).unwrap();
        try_out(&file).unwrap();
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!(
            (before.ino(), before.modified().unwrap()),
            (after.ino(), after.modified().unwrap())
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a 1\n");
        // What a file never takes the place of.
        let folder = dir.path().join("empty");
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(try_out(&folder).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(folder.is_dir());
        assert_eq!(names().len(), 2);
        assert_eq!(try_out(Path::new("/nowhere/x")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
