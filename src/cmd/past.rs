//! A recording, read to its end: one frame as text or JSON, or what completes an explanation.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Context;

use crate::analyze::{View, select};
use crate::cmd::damage::Damage;
use crate::cmd::look::Form;
use crate::cmd::replay;
use crate::cmd::top::print;
use crate::cmd::{Exit, json_text};
use crate::history::History;
use crate::record::Reader;
use crate::report::json::Snapshot;
use crate::report::text;
use crate::runtime::live::DEMO;
use crate::runtime::options::{Options, blank};
use crate::sample::redact;
use crate::sample::text::{clean, clean_path};

/// The view of a recording's last moment; `-` reads standard input.
///
/// # Errors
/// Where it cannot be read, or holds nothing.
pub fn last_view(path: &Path, options: &Options) -> anyhow::Result<View> {
    view_at(path, u64::MAX, options)
}

/// The same of what was known at a moment, in milliseconds since boot.
fn view_at(path: &Path, until_ms: u64, options: &Options) -> anyhow::Result<View> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", clean_path(path)))?)
    };
    last_of(BufReader::new(input), &clean_path(path), until_ms, options)
}

fn last_of(
    input: impl BufRead,
    name: &str,
    until_ms: u64,
    options: &Options,
) -> anyhow::Result<View> {
    let mut history = History::new();
    let named = || format!("{name} is no recording");
    let mut damage = Damage::default();
    for tick in Reader::new(input).with_context(named)? {
        let tick = tick.with_context(named)?;
        if tick.at().boot_ms > until_ms {
            break;
        }
        damage.push(&tick);
        history.push(&tick);
    }
    damage.check(name)?;
    let now = history.latest().with_context(|| format!("{name} holds nothing"))?;
    let mut moment = blank(now, options.interval_ms);
    moment.replay = true;
    moment.idle_after_ms = options.idle_after_ms;
    moment.request = options.request;
    let mut view = View::build(&history, &moment);
    if let Some(nowhere) = select::nowhere(&view, &options.gpus) {
        anyhow::bail!("{name}: {}", clean(&nowhere));
    }
    select::keep(&mut view, &options.gpus);
    Ok(view)
}

/// Prints a recording's last moment, or the one that was typed.
///
/// # Errors
/// Where it cannot be read, there is no such moment, or the output fails.
pub fn once(path: &Path, to: Option<&str>, options: &Options, form: Form) -> anyhow::Result<Exit> {
    let until_ms = to.map_or(Ok(u64::MAX), |to| replay::moment(path, to))?;
    show(&view_at(path, until_ms, options)?, form)
}

/// The same of the recording that is built in.
///
/// # Errors
/// Where the output fails.
pub fn demo(options: &Options, form: Form) -> anyhow::Result<Exit> {
    show(&last_of(DEMO, "the recording that is built in", u64::MAX, options)?, form)
}

fn show(view: &View, form: Form) -> anyhow::Result<Exit> {
    let out = if form.json {
        json_text(&Snapshot::new(view, redact))?
    } else {
        text::frame(view, &form.style())
    };
    print(&out)?;
    Ok(Exit::Fine)
}
