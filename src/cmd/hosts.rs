//! `--host` with `--once`, `--json` and `triage`: a few looks at several machines, one answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::analyze::timeline::Timeline;
use crate::cmd::look::{self, Form};
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text};
use crate::history::History;
use crate::report::json::Snapshot;
use crate::report::{text, triage};
use crate::rules::{self, Fit, Wanted};
use crate::runtime::options::Options;
use crate::runtime::remote::Setup;
use crate::runtime::remote::fleet::Fleet;
use crate::runtime::remote::machine::Machine;
use crate::sample::redact;
use crate::sample::text::clean;
use crate::ui::hosts::HostState;
use crate::units::Bytes;

/// Everything together takes no longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Looks of each kind that an answer is made of.
const LOOKS: u32 = 2;
/// Between the looks of a frame, and of a report. Milliseconds.
const APART_MS: [u64; 2] = [300, 3_000];

/// A frame of each machine as text, or a snapshot of each as JSON.
///
/// # Errors
/// Where there are no threads, or the output fails.
pub fn once(setup: &Setup, options: &Options, form: Form) -> anyhow::Result<Exit> {
    answer(setup, options, form, (APART_MS[0], false), |machine| {
        let view = &machine.seen.view;
        let body = if form.json {
            Body::Json("snapshot", serde_json::to_value(Snapshot::new(view, redact))?)
        } else {
            Body::Text(text::frame(view, &form.style()))
        };
        Ok((body, Exit::Fine))
    })
}

/// The report of each machine.
///
/// # Errors
/// Where there are no threads, or the output fails.
pub fn triage(
    setup: &Setup,
    options: &Options,
    form: Form,
    need: Option<Bytes>,
) -> anyhow::Result<Exit> {
    // Where it fits on one of them, it fits.
    let any = need.is_some();
    answer(setup, options, form, (APART_MS[1], any), |machine| {
        let (view, findings) = (&machine.seen.view, &machine.seen.findings);
        let closest = need.and_then(|need| rules::closest(view, Wanted::anywhere(need), findings));
        let fits_now = need.map(|_| closest.as_ref().is_some_and(Fit::fits_now));
        let fits = need.map(|need| rules::would_it_fit(view, need, findings));
        let body = if form.json {
            let mut report = serde_json::to_value(triage::Triage::new(view, findings, redact))?;
            if let (Some(fits), Some(report)) = (&fits, report.as_object_mut()) {
                report.insert("would_it_fit".to_owned(), look::one_line(fits).into());
            }
            Body::Json("triage", report)
        } else {
            let fits =
                fits.iter().flat_map(|fits| fits.lines()).map(|line| format!("{}\n", clean(line)));
            Body::Text(triage::text(view, findings, &form.style()) + &fits.collect::<String>())
        };
        let fine = fits_now.unwrap_or_else(|| triage::is_clean(findings));
        Ok((body, if fine { Exit::Fine } else { Exit::Findings }))
    })
}

/// What there is to say of one machine.
enum Body {
    Text(String),
    Json(&'static str, Value),
}

fn answer(
    setup: &Setup,
    options: &Options,
    form: Form,
    (apart_ms, any): (u64, bool),
    say: impl Fn(&Machine) -> anyhow::Result<(Body, Exit)>,
) -> anyhow::Result<Exit> {
    let setup = Arc::new(Setup { interval_ms: apart_ms, ..setup.clone() });
    let options = Options { interval_ms: apart_ms, ..options.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let fleet = runtime.block_on(look(&setup, &options));
    runtime.shutdown_background();
    let (mut all, mut worst, mut fine) = (Vec::new(), Exit::Fine, false);
    let mut out = String::new();
    for machine in &mut fleet?.machines {
        let name = machine.host.name().to_owned();
        machine.build(&options);
        let failure = failure(machine, &options);
        let (body, exit) = match &failure {
            Some((why, exit)) if form.json => (Body::Json("error", clean(why).into()), *exit),
            Some((why, exit)) => (Body::Text(format!("{}\n", clean(why))), *exit),
            None => say(machine)?,
        };
        fine |= exit == Exit::Fine;
        worst = if exit.code() > worst.code() { exit } else { worst };
        match body {
            Body::Json(key, value) => all.push(json!({ "host": name, key: value })),
            Body::Text(text) => {
                let gap = if out.is_empty() { "" } else { "\n" };
                out += &format!("{gap}host {}\n\n{text}", clean(&name));
            }
        }
    }
    if form.json {
        out = json_text(&all)?;
    }
    print(&out)?;
    Ok(if any && fine { Exit::Fine } else { worst })
}

/// Waits until every machine has been looked at, or has failed.
async fn look(setup: &Arc<Setup>, options: &Options) -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::open(setup, options)?;
    // None is shown: each keeps its own history.
    fleet.selected = usize::MAX;
    let (mut none, end) = (History::new(), Instant::now() + DEADLINE);
    let done = |machine: &Machine| {
        let (gpus, processes) = machine.looks();
        let over =
            matches!(machine.line(options).state, HostState::Away { .. } | HostState::NoGpu { .. });
        over || gpus >= LOOKS && processes >= LOOKS
    };
    while !fleet.machines.iter().all(done) {
        if timeout_at(end, fleet.next()).await.is_err() {
            break;
        }
        fleet.take(&mut none, &mut Timeline::new(), options);
    }
    Ok(fleet)
}

/// Why nothing can be said of a machine, where that is so.
fn failure(machine: &Machine, options: &Options) -> Option<(String, Exit)> {
    let seen = machine.looks().0 > 0;
    match machine.line(options).state {
        HostState::NoGpu { why } => Some((format!("no GPU: {why}"), Exit::NoDriver)),
        HostState::Away { why, .. } if !seen => Some((format!("away: {why}"), Exit::Stalled)),
        _ if !seen => Some(("no answer in time".to_owned(), Exit::Stalled)),
        _ if machine.nowhere.is_some() => {
            machine.nowhere.clone().map(|nowhere| (nowhere, Exit::Usage))
        }
        _ => None,
    }
}
