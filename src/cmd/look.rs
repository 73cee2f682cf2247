//! `--once`, `--json` and `triage`: a few looks, one answer.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

use crate::analyze::{View, select};
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text, no_driver};
use crate::report::json::Snapshot;
use crate::report::{Style, text, triage};
use crate::rules::{self, Finding, Fit, Wanted};
use crate::runtime::clock;
use crate::runtime::gather::{Gathered, Plan, gather};
use crate::runtime::inspector::Inspector;
use crate::runtime::models::Models;
use crate::runtime::options::{Options, blank, driver_for_a_look, probe};
use crate::runtime::sampler::{Sampled, Sampler};
use crate::sample::text::clean;
use crate::sample::{Tick, redact};
use crate::source::{Progress, Wants};
use crate::units::Bytes;

/// A driver that has said nothing for this long is said to hang.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long headers of models are waited for.
const HEADERS: Duration = Duration::from_secs(1);
/// Between the two looks of a triage: what is stuck or computes shows itself.
const TRIAGE_APART_MS: u64 = 3_000;
/// Between the two looks of a single frame: enough for CPU use.
const FRAME_APART_MS: u64 = 300;

/// The fewest columns that a report is written in.
const NARROWEST: usize = 60;

/// How the answer is written.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// JSON instead of text.
    pub json: bool,
    /// No character outside ASCII.
    pub ascii: bool,
    /// How wide lines are where no terminal is written to, as `COLUMNS` says.
    pub columns: Option<usize>,
}

impl Form {
    /// As wide as the terminal. Where there is none, as `COLUMNS` says; without that no command is
    /// cut, and all else has 80 columns. In fewer than [`NARROWEST`] a table is none any more.
    pub fn style(self) -> Style {
        let terminal = std::io::stdout().is_terminal();
        let width = if terminal {
            crossterm::terminal::size().map_or(80, |size| usize::from(size.0)).min(200)
        } else {
            self.columns.unwrap_or(80)
        };
        Style {
            width: width.clamp(NARROWEST, 4_000),
            whole: !terminal && self.columns.is_none(),
            ascii: self.ascii,
            time_zone: TimeZone::system(),
            redact,
        }
    }
}

/// One frame as text, or one snapshot as JSON.
///
/// # Errors
/// Where there are no threads, or the output fails.
pub fn once(options: &Options, form: Form) -> anyhow::Result<Exit> {
    let (gathered, view) = look(options, FRAME_APART_MS)?;
    is_there(&gathered)?;
    if let (Some(error), None) = (&gathered.failure, view.gpus.first()) {
        return no_driver(error, options, form.json);
    }
    let out = if form.json {
        json_text(&Snapshot::new(&view, redact))?
    } else {
        text::frame(&view, &form.style())
    };
    print(&out)?;
    Ok(if gathered.stalled.is_some() { Exit::Stalled } else { Exit::Fine })
}

/// The report.
///
/// # Errors
/// Where there are no threads, or the output fails.
pub fn triage(options: &Options, form: Form, need: Option<Bytes>) -> anyhow::Result<Exit> {
    let (gathered, view) = look(options, TRIAGE_APART_MS)?;
    is_there(&gathered)?;
    if let (Some(error), None) = (&gathered.failure, view.gpus.first()) {
        return no_driver(error, options, form.json);
    }
    let wanted = need.map(Wanted::anywhere);
    let findings = rules::run_for(&view, wanted);
    let fit = wanted.and_then(|wanted| rules::closest(&view, wanted, &findings));
    // Whether it fits is what was asked; that it cannot be told is no yes.
    let fits = need.map(|_| fit.as_ref().is_some_and(Fit::fits_now));
    let would_fit = need.map(|need| rules::would_it_fit(&view, need, &findings));
    let out = if form.json {
        let mut report = serde_json::to_value(triage::Triage::new(&view, &findings, redact))?;
        if let (Some(answer), Some(report)) = (&would_fit, report.as_object_mut()) {
            report.insert("would_it_fit".to_owned(), one_line(answer).into());
            report.insert("fit".to_owned(), serde_json::to_value(fit.map(cleaned))?);
        }
        json_text(&report)?
    } else {
        let answer = would_fit.map(|answer| format!("\n{}\n", lines(&answer))).unwrap_or_default();
        triage::text(&view, &findings, &form.style()) + &answer
    };
    print(&out)?;
    Ok(exit(&gathered, &findings, fits))
}

/// Refuses what is to be said of a GPU that is not there: it would read as if all were well.
///
/// # Errors
/// Where `--gpu` names one.
pub fn is_there(gathered: &Gathered) -> anyhow::Result<()> {
    match &gathered.nowhere {
        Some(nowhere) => Err(anyhow::anyhow!(clean(nowhere).into_owned())),
        None => Ok(()),
    }
}

/// Without anything that a terminal would obey.
pub fn cleaned(mut fit: Fit) -> Fit {
    for step in &mut fit.steps {
        step.headline = clean(&step.headline).into_owned();
        step.line = step.line.as_deref().map(|line| clean(line).into_owned());
    }
    fit
}

/// Text of several lines as one, for JSON, where no text holds a control character.
pub fn one_line(text: &str) -> String {
    let words = text.lines().flat_map(str::split_whitespace).map(clean);
    words.collect::<Vec<_>>().join(" ")
}

/// Text of several lines, each made fit for a terminal.
fn lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

fn exit(gathered: &Gathered, findings: &[Finding], fits: Option<bool>) -> Exit {
    if gathered.stalled.is_some() {
        Exit::Stalled
    } else if fits.unwrap_or_else(|| triage::is_clean(findings)) {
        Exit::Fine
    } else {
        Exit::Findings
    }
}

/// Looks twice, `apart_ms` apart, and makes the view of it.
///
/// # Errors
/// Where there are no threads.
pub fn look(options: &Options, apart_ms: u64) -> anyhow::Result<(Gathered, View)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let looked = runtime.block_on(async {
        let mut session = Session::open(options, apart_ms)?;
        anyhow::Ok(session.look(2).await)
    });
    runtime.shutdown_background();
    looked
}

/// The threads of a command that looks more than once.
pub struct Session {
    options: Options,
    apart_ms: u64,
    sampler: Sampler,
    samples: Receiver<Sampled>,
    inspector: Inspector,
    facts: Receiver<Tick>,
    models: Models,
}

impl Session {
    /// Starts them; `apart_ms` from one look to the next.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn open(options: &Options, apart_ms: u64) -> std::io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let source = driver_for_a_look(options, &progress);
        let (sampler, samples) = Sampler::spawn(
            apart_ms,
            Wants { process_utilization: true, details: true, ..Wants::default() },
            progress,
            source,
        )?;
        let (inspector, facts) = Inspector::spawn(probe(options))?;
        let models = Models::none();
        Ok(Self { options: options.clone(), apart_ms, sampler, samples, inspector, facts, models })
    }

    /// Another time from one look to the next.
    pub fn set_interval(&mut self, apart: Duration) {
        self.apart_ms = apart.as_millis() as u64;
        self.sampler.set_interval(self.apart_ms);
    }

    /// Looks `looks` times and makes the view of what these showed.
    pub async fn look(&mut self, looks: u32) -> (Gathered, View) {
        // What waits in the channels is of before.
        while self.samples.try_recv().is_ok() || self.facts.try_recv().is_ok() {}
        let plan = Plan { looks, deadline: DEADLINE };
        let mut gathered =
            gather(plan, &self.sampler, &mut self.samples, &self.inspector, &mut self.facts).await;
        let mut moment = blank(clock::now(), self.apart_ms);
        moment.idle_after_ms = self.options.idle_after_ms;
        moment.request = self.options.request;
        moment.in_flight = gathered
            .stalled
            .as_ref()
            .and_then(|stall| stall.call.as_ref())
            .map(|call| (call.call.to_owned(), call.gpu, call.since_boot_ms));
        let mut view = View::build(&gathered.history, &moment);
        gathered.nowhere = select::nowhere(&view, &self.options.gpus);
        gathered.elsewhere = select::elsewhere(&view, &self.options.gpus);
        select::keep(&mut view, &self.options.gpus);
        self.read_models(&mut view).await;
        (gathered, view)
    }

    /// Headers of the models that run, as far as they come within a second.
    async fn read_models(&mut self, view: &mut View) {
        let end = Instant::now() + HEADERS;
        self.models.complete(view);
        while self.models.is_waiting() {
            if timeout_at(end, self.models.next()).await.is_err() {
                break;
            }
        }
        self.models.complete(view);
    }
}
