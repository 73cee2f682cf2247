//! The recording thread: it takes what it can and never makes anybody wait.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "record/ticks.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod ticks;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ticks::{gpu_tick, header, series};
use vramlens::record::{FRAME_TICKS, Output, ReadError, Reader, RecordError, Recorder, Redaction};
use vramlens::sample::{Gap, GapCause, Tick};

fn kept(arguments: &[String]) -> Vec<String> {
    arguments.to_vec()
}

fn read(bytes: &[u8]) -> Result<Vec<Tick>, ReadError> {
    Reader::new(bytes)?.collect()
}

/// A pipe whose far end takes nothing until it is let go.
#[derive(Clone, Default)]
struct Slow(Arc<(Mutex<Taken>, Condvar)>);

#[derive(Default)]
struct Taken {
    open: bool,
    bytes: Vec<u8>,
}

impl Slow {
    fn let_go(&self) {
        self.0.0.lock().unwrap().open = true;
        self.0.1.notify_all();
    }
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut state = self.0.0.lock().unwrap();
        while !state.open && !state.bytes.is_empty() {
            state = self.0.1.wait(state).unwrap();
        }
        state.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_output_costs_ticks_and_never_time() {
    let slow = Slow::default();
    let output = Output::Plain(Box::new(slow.clone()));
    let recorder = Recorder::spawn(output, header(), Redaction::secrets(kept), 4).unwrap();
    let ticks = series(20);
    let taken = ticks.iter().filter(|tick| recorder.try_send((*tick).clone())).count();
    assert!((4..=5).contains(&taken), "{taken}");
    slow.let_go();
    // Behind the queue's own ticks comes one more, and before it the gap.
    let mut last = gpu_tick(99, 1);
    while !recorder.try_send(last.clone()) {
        last = gpu_tick(99, 1);
        std::thread::yield_now();
    }
    let dropped = recorder.totals().dropped;
    recorder.finish(Duration::from_secs(10)).unwrap();
    let back = read(&slow.0.0.lock().unwrap().bytes).unwrap();
    let lost: u64 = back
        .iter()
        .filter_map(|tick| match tick {
            Tick::Gap(Gap { cause: GapCause::Dropped(n), .. }) => Some(u64::from(*n)),
            _ => None,
        })
        .sum();
    assert_eq!(lost, dropped);
    assert_eq!(back.iter().filter(|t| !matches!(t, Tick::Gap(_))).count(), taken + 1);
}

#[test]
fn a_disk_that_never_answers_does_not_hold_the_end_up() {
    let slow = Slow::default();
    let output = Output::Plain(Box::new(slow.clone()));
    let recorder = Recorder::spawn(output, header(), Redaction::secrets(kept), 4).unwrap();
    recorder.try_send(gpu_tick(1, 1));
    let end = recorder.finish(Duration::from_millis(20));
    assert!(matches!(end, Err(RecordError::TimedOut)));
    slow.let_go();
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Output::Plain(Box::new(full));
    let begun = Recorder::spawn(output, header(), Redaction::secrets(kept), 4);
    let Err(error) = begun else { panic!("the header was written") };
    assert!(error.to_string().contains("No space left"), "{error}");
}

/// A disk with room for so many bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_and_says_so() {
    let output = Output::Plain(Box::new(Small(4_000)));
    let recorder = Recorder::spawn(output, header(), Redaction::secrets(kept), 1000).unwrap();
    for tick in series(50) {
        recorder.try_send(tick);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while !recorder.has_ended() {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::yield_now();
    }
    assert!(!recorder.try_send(gpu_tick(1, 1)));
    assert!(recorder.totals().ticks < 100);
    let error = recorder.failure().unwrap();
    assert!(matches!(error, RecordError::Pipe(_)), "{error}");
}

#[test]
fn a_recorder_makes_a_file_and_says_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.vrt");
    let output = Output::File { path: path.clone(), full: None };
    let recorder = Recorder::spawn(output, header(), Redaction::secrets(kept), 1000).unwrap();
    let ticks = series(FRAME_TICKS.into());
    for tick in &ticks {
        assert!(recorder.try_send(tick.clone()));
    }
    let totals = recorder.finish(Duration::from_secs(10)).unwrap();
    assert_eq!((totals.ticks, totals.dropped), (ticks.len() as u64, 0));
    assert_eq!(read(&fs::read(&path).unwrap()).unwrap(), ticks);
    let missing = Output::File { path: folder.path().join("no/such/c.vrt"), full: None };
    let error = Recorder::spawn(missing, header(), Redaction::secrets(kept), 1).err().unwrap();
    assert!(error.to_string().contains("c.vrt.part"), "{error}");
}
