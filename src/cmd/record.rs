//! `vramlens record`: keeps a session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cmd::Exit;
use crate::record::{Full, Header, OnFull, Output, RecordError, Recorder, Redaction, Totals};
use crate::runtime::inspector::Inspector;
use crate::runtime::options::{Options, driver, probe};
use crate::runtime::remote::far::{Far, Heard};
use crate::runtime::sampler::{Sampled, Sampler};
use crate::runtime::{clock, gather};
use crate::sample::text::{clean_path, shell_word};
use crate::sample::{Reading, Tick};
use crate::source::{InFlight, Progress, SourceError, Wants};
use crate::units::Bytes;

/// Ticks that wait for the disk at the most.
const QUEUE: usize = 64;
/// No recording lasts longer, in effect.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// What to keep.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where; `-` for standard output.
    pub file: PathBuf,
    /// For how long.
    pub duration: Option<Duration>,
    /// How large at the most.
    pub max_size: Option<Bytes>,
    /// Without names of people, hosts and paths.
    pub redact: bool,
    /// Answer the requests that come on standard input, and end with it.
    pub answer: bool,
}

/// Records until told to end.
///
/// # Errors
/// Where the file cannot be written, or the driver cannot be asked at all.
pub fn run(record: &Record, options: &Options) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(keep(record, options));
    runtime.shutdown_background();
    exit
}

async fn keep(record: &Record, options: &Options) -> anyhow::Result<Exit> {
    let recorder = begin(record, options)?;
    let progress = std::sync::Arc::new(Progress::default());
    let source = driver(options, &progress);
    let (sampler, mut samples) = Sampler::spawn(
        options.interval_ms,
        Wants { process_utilization: true, details: true, ..Wants::default() },
        progress,
        source,
    )?;
    let (inspector, mut facts) = Inspector::spawn(probe(options))?;
    let end = tokio::time::sleep(record.duration.unwrap_or(FOR_EVER));
    tokio::pin!(end);
    let mut stop = Stop::catch()?;
    let mut far = if record.answer { Some(Far::spawn(options, io::stdin())?) } else { None };
    let mut seen = false;
    loop {
        tokio::select! {
            biased;
            () = stop.next() => break,
            () = &mut end => break,
            sampled = samples.recv() => match sampled {
                Some(Sampled::Tick(tick)) => {
                    seen = true;
                    inspector.ask(gather::listed_pids(&tick));
                    pass_on(far.as_mut(), &recorder, *tick);
                }
                Some(Sampled::Failed(error)) if far.is_some() => {
                    if let Some(far) = &mut far {
                        far.failed(error.to_string());
                    }
                }
                // It may answer yet.
                Some(Sampled::Failed(SourceError::Hangs(_) | SourceError::Died(_))) => {}
                Some(Sampled::Failed(error)) if !seen => {
                    // Nothing is left that would be in the way of the next attempt.
                    let _ = recorder.discard(Duration::from_secs(1));
                    return crate::cmd::no_driver(&error, options, false);
                }
                Some(Sampled::Failed(_)) => {}
                Some(Sampled::End) | None => break,
            },
            Some(tick) = facts.recv() => pass_on(far.as_mut(), &recorder, tick),
            heard = hear(&mut far) => {
                if let Some(far) = &mut far
                    && !far.take(heard, &sampler, &recorder)
                {
                    break;
                }
            }
        }
        if recorder.has_ended() {
            break;
        }
    }
    if !seen && record.file != Path::new("-") {
        return nothing(record, recorder, sampler.progress.current().as_ref());
    }
    report(record, recorder.finish(Duration::from_secs(1)))
}

/// The driver has not answered once: there is nothing to keep, and no file of that name.
fn nothing(record: &Record, recorder: Recorder, call: Option<&InFlight>) -> anyhow::Result<Exit> {
    if recorder.has_ended() {
        return report(record, recorder.finish(Duration::from_secs(1)));
    }
    recorder.discard(Duration::from_secs(1))?;
    let call = call.map_or_else(String::new, |call| {
        let gpu = call.gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
        format!(" ({} does not return{gpu})", call.call)
    });
    let _ = writeln!(
        io::stderr(),
        "vramlens: the driver has not answered{call}: nothing was recorded, and there is no {}",
        clean_path(&record.file)
    );
    Ok(Exit::Stalled)
}

fn pass_on(far: Option<&mut Far>, recorder: &Recorder, tick: Tick) {
    if let Some(far) = far {
        far.tick(&tick, recorder);
    }
    recorder.try_send(tick);
}

/// What the near end of a stream says; nothing, for ever, where there is none.
async fn hear(far: &mut Option<Far>) -> Heard {
    match far {
        Some(far) => far.next().await,
        None => std::future::pending().await,
    }
}

/// Opens the recording and begins it.
pub(super) fn begin(record: &Record, options: &Options) -> anyhow::Result<Recorder> {
    let output = if record.file == Path::new("-") {
        Output::Plain(Box::new(io::stdout()))
    } else {
        let full = record.max_size.map(|size| Full { at_bytes: size.0, then: OnFull::End });
        Output::File { path: record.file.clone(), full }
    };
    let redaction = if record.redact {
        Redaction::identities(crate::sample::redact)
    } else {
        Redaction::secrets(crate::sample::redact)
    };
    let mut header = Header::new(clock::now(), options.interval_ms);
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    if let Ok(boot_id) = read("/proc/sys/kernel/random/boot_id") {
        header.boot_id = Reading::Value(boot_id);
    }
    if let Ok(name) = read("/proc/sys/kernel/hostname") {
        header.hostname = Reading::Value(name);
    }
    Recorder::spawn(output, header, redaction, QUEUE)
        .with_context(|| format!("cannot record to {}", clean_path(&record.file)))
}

fn report(record: &Record, end: Result<Totals, RecordError>) -> anyhow::Result<Exit> {
    match end {
        // The reader has what it wanted.
        Err(RecordError::Closed) => Ok(Exit::Fine),
        Err(error) => Err(error.into()),
        Ok(_) if record.file == Path::new("-") => Ok(Exit::Fine),
        Ok(totals) => {
            let lost = match totals.dropped {
                0 => String::new(),
                n => format!(", {n} lost (each loss is marked in it)"),
            };
            let mut out = io::stderr();
            let _ = writeln!(
                out,
                "{} ticks, {}{lost}: vramlens replay {}",
                totals.ticks,
                Bytes(totals.bytes),
                shell_word(&record.file)
            );
            Ok(Exit::Fine)
        }
    }
}

/// Whatever ends a recording in order.
struct Stop([Signal; 3]);

impl Stop {
    fn catch() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self([signal(kinds[0])?, signal(kinds[1])?, signal(kinds[2])?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
}
