//! `vramlens run`: a command under watch, and what to say when it has ended.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::Signal;

use crate::analyze::xid::{self, Xid};
use crate::cmd::look::Form;
use crate::cmd::{Exit, record};
use crate::oom::{self, Diagnosis};
use crate::record::Recorder;
use crate::report::postmortem::{self, Death, Whose};
use crate::report::run_json::{Ending, RunJson};
use crate::report::{Style, postmortem::Facts};
use crate::rules::{self, Finding, Fit, Wanted};
use crate::runtime::options::Options;
use crate::runtime::run_job::{Caught, Ended, How, Job, die_of_interrupt};
use crate::runtime::run_pass::{OnSeen, end_line};
use crate::runtime::run_seen::{Scan, Watch};
use crate::runtime::run_watch::{Event, Watched, Watcher, line};
use crate::runtime::{clock, run_host, run_monitor};
use crate::sample::signal_words;
use crate::sample::text::{clean, clean_json, clean_path, shell_word};
use crate::units::Bytes;

/// What to run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Where to keep the session.
    pub record: Option<PathBuf>,
    /// Nothing about a command that ends well.
    pub quiet: bool,
}

/// Runs the command; exits as it does.
///
/// # Errors
/// Where a recording cannot be begun, or nothing can be started at all.
pub fn run(run: &Run, options: &Options, form: Form) -> anyhow::Result<Exit> {
    let began = clock::now();
    let host = run_host::Kills::now();
    let (events, events_in) = line();
    let seen_to = events.clone();
    let on_seen: OnSeen = Arc::new(move || {
        // One that waits is as good as many.
        let _ = seen_to.try_send(Event::Seen);
    });
    let recording = run.record.as_ref().map(|file| record::Record {
        file: file.clone(),
        duration: None,
        max_size: None,
        redact: false,
        answer: false,
    });
    // In this order: a recording's name that is no good costs nothing, and its thread shall take no
    // signal.
    let caught = Caught::begin()?;
    let recorder: Option<Recorder> =
        recording.as_ref().map(|record| record::begin(record, options)).transpose()?;
    let watch = || Box::new(Scan::default()) as Box<dyn Watch>;
    let job = match Job::start(caught, &run.command, &watch, &on_seen) {
        Ok(job) => job,
        Err(error) => {
            if let Some(recorder) = recorder {
                let _ = recorder.discard(Duration::from_secs(1));
            }
            return Ok(cannot_start(run, &error));
        }
    };
    let watcher = Watcher::spawn(options, job.root(), recorder, (events, events_in));
    let ended = job.wait().context("cannot wait for the command")?;
    let watched = watcher.ok().and_then(Watcher::finish);
    let ran_ms = clock::now().since(began);
    let style = style(form);
    let said = if form.json {
        in_json(run, &ended, watched.as_ref(), host.since(), ran_ms, &style)?
    } else {
        report(run, &ended, watched.as_ref(), host.since(), ran_ms, &style)
    };
    let kept = recorded(run, watched.as_ref()).map(|text| format!("{text}\n"));
    let nowhere = watched.as_ref().and_then(|watched| watched.nowhere.as_ref());
    let nowhere = nowhere.map(|text| format!("vramlens: {}\n", clean(text)));
    // In JSON the object is the last line.
    let parts = if form.json { [nowhere, kept, said] } else { [said, kept, nowhere] };
    let text = parts.into_iter().flatten().collect::<String>();
    if !text.is_empty() {
        end_line(ended.last);
        let _ = io::stderr().write_all(text.as_bytes());
    }
    if ended.how == How::Killed(Signal::SIGINT as i32) {
        die_of_interrupt();
    }
    Ok(Exit::Command(ended.how.code()))
}

/// The process between `run` and a command on a terminal.
///
/// # Errors
/// Where it was not started by `run`.
pub fn monitor(control: i32, command: &[OsString]) -> anyhow::Result<Exit> {
    run_monitor::run(control, command).context("this option is for vramlens itself")?;
    Ok(Exit::Fine)
}

/// As a shell would: 127 where there is no such command, 126 where it is no program.
fn cannot_start(run: &Run, error: &io::Error) -> Exit {
    let name = run.command.first().map_or_else(String::new, clean_path);
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let _ = writeln!(io::stderr(), "vramlens: cannot run {name}: {error}");
    Exit::Command(code)
}

fn style(form: Form) -> Style {
    let width = if io::stderr().is_terminal() {
        rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col))
    } else {
        80
    };
    Style { width: width.clamp(60, 200), whole: false, ..form.style() }
}

/// What to say, if anything.
fn report(
    run: &Run,
    ended: &Ended,
    watched: Option<&Watched>,
    host_kills: Option<u64>,
    ran_ms: u64,
    style: &Style,
) -> Option<String> {
    if host_kills.is_some_and(|n| n > 0) && ended.how.code() == 137 {
        return Some(host_text(ended, host_kills));
    }
    let facts = watched.map(Watched::facts);
    if let Some((whose, message)) = death(ended, facts.as_ref()) {
        return Some(post_mortem(ended, watched, (whose, &message), ran_ms, style));
    }
    if run.quiet {
        return None;
    }
    let mut text = nothing_measured(watched)
        .or_else(|| Some(postmortem::summary(&facts?, style)))
        .unwrap_or_default();
    if ended.hit && ended.how == How::Exited(0) {
        text += "vramlens: its output has an out-of-memory error, which it survived\n";
    }
    for fault in watched.map(faults).unwrap_or_default() {
        text += &format!("vramlens: the driver reported XID {}: {}\n", fault.code, fault.meaning);
    }
    Some(text)
}

/// The same as one line of JSON.
fn in_json(
    run: &Run,
    ended: &Ended,
    watched: Option<&Watched>,
    host_kills: Option<u64>,
    ran_ms: u64,
    style: &Style,
) -> anyhow::Result<Option<String>> {
    let facts = watched.map(Watched::facts);
    let host = host_kills.is_some_and(|n| n > 0) && ended.how.code() == 137;
    let death =
        if host { Some((Whose::Host, String::new())) } else { death(ended, facts.as_ref()) };
    let outcome = match death.as_ref().map(|death| death.0) {
        Some(Whose::Gpu) => "gpu_oom",
        Some(Whose::Perhaps) => "perhaps_gpu_oom",
        Some(Whose::Host) => "host_oom",
        None if ended.hit && ended.how == How::Exited(0) => "survived_gpu_oom",
        None => "ended",
    };
    if run.quiet && death.is_none() {
        return Ok(None);
    }
    let signal = match ended.how {
        How::Exited(_) => None,
        How::Killed(signal) => Some(signal),
    };
    let exit_code = ended.how.code();
    let mut said = RunJson::new(Ending { exit_code, signal, ran_ms, outcome });
    said.explanation.clone_from(&ended.message);
    said.not_measured = nothing_measured(watched)
        .map(|text| text.trim().trim_start_matches("vramlens: nothing was measured: ").to_owned());
    if let (Some(facts), Some(watched)) = (&facts, watched) {
        said = said.measured(facts);
        said.xid = faults(watched).iter().map(|fault| fault.code).collect();
        if death.is_some_and(|death| death.0 != Whose::Host) {
            let (findings, fit) = advice(ended, watched);
            said = said.after(facts, &findings, fit, style.redact);
        }
    }
    Ok(Some(clean_json(&serde_json::to_string(&said)?) + "\n"))
}

/// What is to be done, and whether the request that failed would have been had after it.
fn advice(ended: &Ended, watched: &Watched) -> (Vec<Finding>, Option<Fit>) {
    let (wanted, before) = (wanted(ended, watched), watched.before.as_ref());
    let findings = before.map(|view| rules::run_for(view, wanted)).unwrap_or_default();
    let fit = before.zip(wanted).and_then(|(view, w)| rules::closest(view, w, &findings));
    (findings, fit)
}

/// What the driver reported while the command ran, each number once. It names no process: on a GPU
/// of many it may have been another's.
fn faults(watched: &Watched) -> Vec<Xid> {
    let mut codes: Vec<u64> = watched.history.xids().map(|event| event.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.into_iter().map(xid::meaning).collect()
}

/// What the output of a command that ended badly says; or, of one that died without a word, why it
/// looks as if memory had been short.
fn death(ended: &Ended, facts: Option<&Facts<'_>>) -> Option<(Whose, String)> {
    if let Some(message) = &ended.message {
        let whose = match message.diagnosis {
            _ if message.is_gpu_oom => Some(Whose::Gpu),
            Diagnosis::HostRamNotVram => Some(Whose::Host),
            _ => None,
        };
        if let Some(whose) = whose {
            return Some((whose, oom::report(message)));
        }
    }
    // A signal of somebody's is no lack of memory, nor is an error with room left.
    let died = !matches!(ended.how, How::Exited(0) | How::Killed(1 | 2 | 3 | 9 | 15));
    let facts = facts.filter(|_| died)?;
    let (view, uuid) = (facts.view?, facts.gpu?);
    let gpu = view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid)?;
    let ledger = gpu.ledger.get()?;
    let scarce = ledger.free < Bytes::mib(512).max(Bytes(ledger.total.0 / 50));
    let free = ledger.free;
    let text = format!(
        "The command printed no error that says so, and {free} was free at the last look:\n\
         memory may have been short. Nothing proves it.\n"
    );
    scarce.then_some((Whose::Perhaps, text))
}

fn post_mortem(
    ended: &Ended,
    watched: Option<&Watched>,
    (whose, message): (Whose, &str),
    ran_ms: u64,
    style: &Style,
) -> String {
    let end = end_words(ended.how);
    let Some(watched) = watched else {
        return format!("{message}vramlens: nothing was measured: the measuring thread failed\n");
    };
    let (findings, fit) = advice(ended, watched);
    let fit = fit.as_ref();
    let death = Death { end, ran_ms, whose, message, findings: &findings, fit };
    let mut text = postmortem::text(&death, &watched.facts(), style);
    if let Some(unmeasured) = nothing_measured(Some(watched)) {
        text += &unmeasured;
    }
    text
}

/// What failed, and where: at that moment the command still had the rest of what it needs.
fn wanted(ended: &Ended, watched: &Watched) -> Option<Wanted> {
    let message = ended.message.as_ref().filter(|message| message.is_gpu_oom)?;
    let (view, uuid) = (watched.before.as_ref()?, watched.gpu.as_ref()?);
    let gpu = view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid)?.sample.index;
    Some(Wanted { need: Bytes(message.requested_bytes?), gpu: Some(gpu) })
}

fn end_words(how: How) -> String {
    match how {
        How::Exited(code) => format!("exit code {code}"),
        How::Killed(number) => signal_words(number),
    }
}

fn host_text(ended: &Ended, kills: Option<u64>) -> String {
    let n = kills.unwrap_or(0);
    let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
    format!(
        "vramlens: the host's memory ran out, not the GPU's: the kernel killed for it {times} while \
         the command ran ({}). Fewer loader workers, or more memory for the container, help; none of \
         the fixes for CUDA does.\n",
        end_words(ended.how)
    )
}

/// Why there are no figures, in one line; `None` where there are.
fn nothing_measured(watched: Option<&Watched>) -> Option<String> {
    let Some(watched) = watched else {
        return Some("vramlens: nothing was measured: the measuring thread failed\n".to_owned());
    };
    if watched.looks > 0 {
        return None;
    }
    let why = match (&watched.failure, &watched.hangs) {
        (Some(error), _) => error.to_string(),
        (None, Some(call)) => format!("the driver does not answer {}", call.call),
        (None, None) => "the command ended before the driver's first answer".to_owned(),
    };
    let why: String = clean(&why).chars().take(200).collect();
    Some(format!("vramlens: nothing was measured: {why}\n"))
}

fn recorded(run: &Run, watched: Option<&Watched>) -> Option<String> {
    let file = shell_word(run.record.as_ref()?);
    match watched?.recorded.as_ref()? {
        Ok(_) if run.quiet => None,
        Ok(_) if watched?.looks == 0 => Some(format!(
            "vramlens: the driver has not answered: nothing was recorded, and there is no {file}"
        )),
        Ok(totals) => Some(format!(
            "vramlens: {} ticks, {}: vramlens replay {file}",
            totals.ticks,
            Bytes(totals.bytes)
        )),
        Err(error) => Some(
            clean(&format!("vramlens: the recording {file} is incomplete: {error}")).into_owned(),
        ),
    }
}
