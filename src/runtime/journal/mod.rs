//! The log: starts, faults of the driver, kills and what came back, alerts, losses. A thread of its
//! own writes it; whoever has something to say never waits, and what finds no room is counted.
//!
//! Said with the macros of the `log` crate. Only this program's own lines are kept.

mod rotate;
mod watch;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};

use crate::analyze::View;
use crate::runtime::{clock, rights};
use crate::sample::text::fit;
use rotate::File;
use watch::Watch;

/// Lines that wait at the most.
const QUEUE: usize = 256;
/// Columns of a line; a message that is longer is cut.
const WIDEST: usize = 500;
/// How long the end of the program waits for the last lines.
const PATIENCE: Duration = Duration::from_millis(300);
/// The value that means the usual place.
const USUAL: &str = "on";

/// What is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// The file; `on` for the usual one, empty for none.
    pub file: String,
    /// From which level on.
    pub level: Level,
    /// A file that would grow larger is put aside.
    pub max_bytes: u64,
    /// How many are kept beside the one that is written.
    pub keep: u32,
}

impl LogSettings {
    /// Where to write; `None` where no log is kept, or nobody knows where its usual place is.
    pub fn path(&self, get: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        match self.file.as_str() {
            "" | "off" => None,
            USUAL => usual_path(get),
            file => match file.strip_prefix("~/") {
                Some(rest) => Some(PathBuf::from(get("HOME")?).join(rest)),
                None => Some(file.into()),
            },
        }
    }
}

/// `$XDG_STATE_HOME/vramlens/vramlens.log`.
fn usual_path(get: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    // The specification has relative paths ignored.
    let set = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base =
        set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("vramlens").join("vramlens.log"))
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// What went wrong.
    Error,
    /// And what should be known.
    Warn,
    /// And what was done.
    #[default]
    Info,
    /// And every step of it.
    Debug,
}

impl Level {
    const fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::Error,
            Self::Warn => LevelFilter::Warn,
            Self::Info => LevelFilter::Info,
            Self::Debug => LevelFilter::Debug,
        }
    }
}

impl FromStr for Level {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            _ => Err("error, warn, info or debug"),
        }
    }
}

/// Something for the thread.
enum Job {
    Line(String),
    /// Answers when all before it is written.
    Flush(SyncSender<()>),
    /// The thread keeps the rights that it takes to write the log, and those to look.
    Shed,
}

struct Journal {
    to: SyncSender<Job>,
    level: LevelFilter,
    lost: AtomicU64,
    complaint: Mutex<Option<String>>,
}

static JOURNAL: OnceLock<Journal> = OnceLock::new();
static WATCH: Mutex<Watch> = Mutex::new(Watch::new());

/// Begins to keep a log at `path`. Nothing is opened yet: that may wait, and is the thread's work.
///
/// # Errors
/// Where no thread is to be had.
pub fn start(settings: &LogSettings, path: &Path) -> io::Result<()> {
    let (to, jobs) = sync_channel(QUEUE);
    let level = settings.level.filter();
    let journal = Journal { to, level, lost: AtomicU64::new(0), complaint: Mutex::new(None) };
    if JOURNAL.set(journal).is_err() {
        return Ok(());
    }
    let file = File::new(path.to_owned(), settings.max_bytes, settings.keep);
    let file = if settings.file == USUAL { file } else { file.in_folder() };
    let thread = std::thread::Builder::new().name("log".to_owned()).stack_size(256 * 1024);
    thread.spawn(move || write(file, &jobs))?;
    if let Some(journal) = JOURNAL.get()
        && log::set_logger(journal).is_ok()
    {
        log::set_max_level(level);
    }
    Ok(())
}

/// Logs what is new in a view: a driver that hangs, a GPU that is lost, looks that were. Free of cost
/// where no log is kept.
pub fn look(view: &View) {
    tell(|watch| watch.changes(view));
}

/// Logs that the driver could not be asked, once for as long as it says the same.
pub fn failed(error: &str) {
    tell(|watch| watch.failed(error));
}

/// Whether a log is kept.
pub fn is_kept() -> bool {
    JOURNAL.get().is_some()
}

fn tell(look: impl FnOnce(&mut Watch) -> Vec<String>) {
    if is_kept() {
        for line in look(&mut WATCH.lock().unwrap_or_else(PoisonError::into_inner)) {
            log::warn!("{line}");
        }
    }
}

/// Has the log's thread give up the rights that it does not need.
pub fn shed() {
    if let Some(journal) = JOURNAL.get() {
        // It has begun just now: there is room.
        let _ = journal.to.try_send(Job::Shed);
    }
}

/// What is wrong with the log, once.
pub fn complaint() -> Option<String> {
    JOURNAL.get()?.complaint.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Waits for the last lines, though not for long. Gives what is wrong with the log, if nobody has
/// said so yet.
pub fn finish() -> Option<String> {
    let (done, written) = sync_channel(1);
    if JOURNAL.get()?.to.try_send(Job::Flush(done)).is_ok() {
        let _ = written.recv_timeout(PATIENCE);
    }
    complaint()
}

impl Log for Journal {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.level && metadata.target().starts_with("vramlens")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = line(record, clock::now().wall_ms);
        if self.to.try_send(Job::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

/// `2026-11-30T10:22:19Z WARN looper: the driver does not answer`.
fn line(record: &Record<'_>, wall_ms: u64) -> String {
    let area = record.target().rsplit("::").next().unwrap_or_default();
    let text = record.args().to_string();
    let text = fit(&text, WIDEST, "…", false);
    format!("{} {:5} {area}: {text}\n", moment(wall_ms), record.level())
}

fn moment(wall_ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(wall_ms).unwrap_or(0));
    at.map_or_else(|_| "-".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn write(mut file: File, jobs: &Receiver<Job>) {
    let (mut told, mut failing) = (0, false);
    for job in jobs {
        let mut line = match job {
            Job::Line(line) => line,
            Job::Flush(done) => {
                let _ = done.try_send(());
                continue;
            }
            Job::Shed => {
                if let Err(error) = rights::shed(|| file.try_out()) {
                    log::warn!("rights (capabilities) could not be given up: {error}");
                }
                continue;
            }
        };
        let Some(journal) = JOURNAL.get() else { continue };
        let lost = journal.lost.load(Ordering::Relaxed);
        if lost > told {
            let at = moment(clock::now().wall_ms);
            let _ = writeln!(line, "{at} WARN  journal: {} lines found no room", lost - told);
            told = lost;
        }
        match file.write(&line) {
            Ok(()) => failing = false,
            // Said once; every further line tries again, and none of them matters to the view.
            Err(_) if failing => {}
            Err(error) => {
                failing = true;
                let text = format!("no log is kept: {}: {error}", file.path().display());
                *journal.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_place_is_that_of_the_specification() {
        let on = LogSettings { file: "on".into(), ..LogSettings::default() };
        let home = |name: &str| (name == "HOME").then(|| "/home/ana".to_owned());
        let usual = "/home/ana/.local/state/vramlens/vramlens.log";
        assert_eq!(on.path(&home), Some(usual.into()));
        let state = |name: &str| match name {
            "XDG_STATE_HOME" => Some("/state".to_owned()),
            _ => home(name),
        };
        assert_eq!(on.path(&state), Some("/state/vramlens/vramlens.log".into()));
        let relative = |name: &str| match name {
            "XDG_STATE_HOME" => Some("state".to_owned()),
            _ => home(name),
        };
        assert_eq!(on.path(&relative), Some(usual.into()));
        assert_eq!(on.path(&|_| None), None);
        assert_eq!(LogSettings::default().path(&home), None);
        let named = |file: &str| LogSettings { file: file.into(), ..LogSettings::default() };
        assert_eq!(named("~/x.log").path(&home), Some("/home/ana/x.log".into()));
        assert_eq!(named("x.log").path(&home), Some("x.log".into()));
    }

    fn of(target: &str, text: &str) -> String {
        let args = format_args!("{text}");
        let warn = Record::builder().level(log::Level::Warn).target(target).args(args).build();
        line(&warn, 0)
    }

    #[test]
    fn a_line_is_one_line_and_nothing_that_a_terminal_obeys() {
        let said = of("vramlens::runtime::kill", "a\u{1b}[2J\nb");
        assert_eq!(said, "1970-01-01T00:00:00Z WARN  kill: a␛[2J␊b\n");
        let long = of("vramlens", &"x".repeat(10_000));
        assert!(long.chars().count() < WIDEST + 50 && long.ends_with("…\n"), "{long}");
    }
}
