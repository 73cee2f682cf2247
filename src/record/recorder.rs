//! The thread that writes, so that nobody who reads the driver waits for a disk.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::ids::Stamp;
use crate::record::{
    FRAME_MS, FileWriter, Form, Full, Header, Note, OutputError, Redaction, Writer,
};
use crate::sample::{Gap, GapCause, Tick};

/// Where a recording goes.
pub enum Output {
    /// To a file, in frames.
    File {
        /// Its final name.
        path: PathBuf,
        /// A bound on its size.
        full: Option<Full>,
    },
    /// To a pipe, as plain text.
    Plain(Box<dyn Write + Send>),
}

/// Why a recording is not, or not wholly, there.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The output failed: no space, no permission, an existing file.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The reader of the pipe has gone.
    #[error("nobody reads the recording any more")]
    Closed,
    /// The pipe failed.
    #[error("the recording cannot be written: {0}")]
    Pipe(io::Error),
    /// The thread cannot be started.
    #[error("no thread to record in: {0}")]
    Thread(io::Error),
    /// The disk did not finish in time; the file keeps its `.part` name.
    #[error(
        "the disk did not take the end of the recording in time: what is there has the name *.part"
    )]
    TimedOut,
}

/// What a recording has come to so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Ticks written.
    pub ticks: u64,
    /// Bytes of the file under way.
    pub bytes: u64,
    /// Ticks that found the queue full. Each stretch of them is a gap in the recording.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Shared {
    ticks: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
    failed: Mutex<Option<RecordError>>,
    ended: Mutex<bool>,
    /// Whether the file is to be taken back.
    unwanted: AtomicBool,
}

/// What is to be written.
enum Item {
    Tick(Arc<Tick>),
    Note(Box<Note>),
}

/// Takes ticks and writes them on a thread of its own.
pub struct Recorder {
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Recorder {
    /// Begins a recording and its thread, `record`. The file is opened at once, so that a bad name
    /// is told before anything else happens. The queue holds `queue` ticks.
    pub fn spawn(
        output: Output,
        header: Header,
        redaction: Redaction,
        queue: usize,
    ) -> Result<Self, RecordError> {
        let started = header.started;
        let sink = Sink::open(output, header, redaction)?;
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = sync_channel(queue.max(1));
        let work = Work { sink, shared: Arc::clone(&shared), last: started };
        let thread = thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || work.run(&receiver))
            .map_err(RecordError::Thread)?;
        Ok(Self { queue: sender, shared, thread })
    }

    /// Hands a tick over without ever waiting; no when the queue is full (the loss is counted and
    /// recorded) or the recording has ended.
    pub fn try_send(&self, tick: impl Into<Arc<Tick>>) -> bool {
        match self.queue.try_send(Item::Tick(tick.into())) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Hands a note over without ever waiting, and gives it back where the queue is full. A note that
    /// finds the recording ended is gone with it.
    pub fn try_note(&self, note: Box<Note>) -> Result<(), Box<Note>> {
        match self.queue.try_send(Item::Note(note)) {
            Err(TrySendError::Full(Item::Note(note))) => Err(note),
            _ => Ok(()),
        }
    }

    /// What it has come to.
    pub fn totals(&self) -> Totals {
        self.shared.totals()
    }

    /// Whether it has ended by itself: the file is full, or [`Recorder::failure`] says why.
    pub fn has_ended(&self) -> bool {
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went wrong, once, as soon as it has.
    pub fn failure(&self) -> Option<RecordError> {
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends a recording that never began, so that its name is free for the next attempt; waits for
    /// the disk no longer than `within`.
    pub fn discard(self, within: Duration) -> Result<Totals, RecordError> {
        self.shared.unwanted.store(true, Ordering::Relaxed);
        self.finish(within)
    }

    /// Ends the recording, and waits for the disk no longer than `within`.
    pub fn finish(self, within: Duration) -> Result<Totals, RecordError> {
        let Self { queue, shared, thread } = self;
        drop(queue);
        let deadline = Instant::now() + within;
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                return Err(RecordError::TimedOut);
            }
            thread::sleep(Duration::from_millis(2));
        }
        let failed = shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or_else(|| Ok(shared.totals()), Err)
    }
}

impl Shared {
    fn totals(&self) -> Totals {
        Totals {
            ticks: self.ticks.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

enum Sink {
    File(FileWriter),
    Plain(Writer<Box<dyn Write + Send>>),
}

impl Sink {
    fn open(output: Output, header: Header, redaction: Redaction) -> Result<Self, RecordError> {
        match output {
            Output::File { path, full } => {
                Ok(Self::File(FileWriter::create(&path, header, redaction, full)?))
            }
            Output::Plain(out) => {
                let writer = Writer::new(out, Form::Plain, header, redaction);
                Ok(Self::Plain(writer.map_err(pipe_error)?))
            }
        }
    }

    /// No when it is full.
    fn push(&mut self, tick: &Tick) -> Result<bool, RecordError> {
        match self {
            Self::File(file) => Ok(file.push(tick)?),
            Self::Plain(pipe) => pipe.push(tick).map(|()| true).map_err(pipe_error),
        }
    }

    fn note(&mut self, note: &Note) -> Result<(), RecordError> {
        match self {
            Self::File(_) => Ok(()),
            Self::Plain(pipe) => pipe.note(note).map_err(pipe_error),
        }
    }

    const fn written(&self) -> u64 {
        match self {
            Self::File(file) => file.written(),
            Self::Plain(pipe) => pipe.written(),
        }
    }

    fn flush_if_overdue(&mut self, boot_ms: u64) -> Result<(), RecordError> {
        match self {
            Self::File(file) => Ok(file.flush_if_overdue(boot_ms)?),
            Self::Plain(_) => Ok(()),
        }
    }

    /// Gives the bytes of the whole.
    fn finish(self) -> Result<u64, RecordError> {
        match self {
            Self::File(file) => Ok(file.finish()?),
            Self::Plain(pipe) => {
                let bytes = pipe.written();
                pipe.finish().map(|_| bytes).map_err(pipe_error)
            }
        }
    }

    fn discard(self) -> Result<(), RecordError> {
        match self {
            Self::File(file) => Ok(file.discard()?),
            Self::Plain(_) => Ok(()),
        }
    }
}

fn pipe_error(error: io::Error) -> RecordError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => RecordError::Closed,
        _ => RecordError::Pipe(error),
    }
}

struct Work {
    sink: Sink,
    shared: Arc<Shared>,
    last: Stamp,
}

impl Work {
    fn run(mut self, queue: &Receiver<Item>) {
        let shared = Arc::clone(&self.shared);
        let result = self.write_all(queue).and_then(|()| {
            if shared.unwanted.load(Ordering::Relaxed) {
                return self.sink.discard();
            }
            // The last frame, and what stands around it, is written only now.
            let bytes = self.sink.finish()?;
            shared.bytes.store(bytes, Ordering::Relaxed);
            Ok(())
        });
        if let Err(error) = result {
            *shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        *shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn write_all(&mut self, queue: &Receiver<Item>) -> Result<(), RecordError> {
        let mut told = 0;
        let mut arrived = Instant::now();
        loop {
            match queue.recv_timeout(Duration::from_millis(FRAME_MS / 4)) {
                Ok(Item::Note(note)) => self.sink.note(&note)?,
                Ok(Item::Tick(tick)) => {
                    arrived = Instant::now();
                    let dropped = self.shared.dropped.load(Ordering::Relaxed);
                    let more = self.write(&tick, dropped - told)?;
                    told = dropped;
                    if !more {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let waited = arrived.elapsed().as_millis() as u64;
                    self.sink.flush_if_overdue(self.last.boot_ms + waited)?;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let lost = self.shared.dropped.load(Ordering::Relaxed) - told;
                    return self.gap(lost, self.last).map(drop);
                }
            }
        }
    }

    fn write(&mut self, tick: &Tick, lost: u64) -> Result<bool, RecordError> {
        let more = self.gap(lost, tick.at())? && self.sink.push(tick)?;
        self.last = tick.at();
        self.shared.ticks.fetch_add(1, Ordering::Relaxed);
        self.shared.bytes.store(self.sink.written(), Ordering::Relaxed);
        Ok(more)
    }

    /// Names the ticks that were lost before `to`; no when the output is full.
    fn gap(&mut self, lost: u64, to: Stamp) -> Result<bool, RecordError> {
        if lost == 0 {
            return Ok(true);
        }
        let cause = GapCause::Dropped(u32::try_from(lost).unwrap_or(u32::MAX));
        self.sink.push(&Tick::Gap(Gap { from: self.last, to, cause }))
    }
}
