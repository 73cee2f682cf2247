//! `vramlens explain`: reads a log and says what ran out, who held it, why, and what to do.

use std::io::{Read, Write};

use anyhow::Context as _;

use crate::analyze::View;
use crate::cmd::{json_text, look};
use crate::oom::{Explanation, Scanner, report};
use crate::rules;
use crate::runtime::explain;
use crate::sample::text::clean;

/// Read at once, in bytes.
const PIECE: usize = 256 << 10;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// JSON instead of text.
    pub json: bool,
}

/// Reads to the end and writes the answer. Ends with 1 where an out-of-memory error of a GPU was
/// explained, 0 where it was something else, 2 where nothing was recognised.
///
/// # Errors
/// Where the input cannot be read or the output not be written.
pub fn run(options: &Options, input: impl Read, out: &mut impl Write) -> anyhow::Result<u8> {
    let answer = read(input)?;
    write(options, &answer, out)?;
    Ok(answer.exit_code())
}

/// Reads to the end: for callers that add what the machine shows with [`Explanation::join`] before
/// they write.
///
/// # Errors
/// Where the input cannot be read.
pub fn read(mut input: impl Read) -> anyhow::Result<Explanation> {
    let mut scanner = Scanner::new();
    let mut piece = vec![0; PIECE];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok(scanner.finish()),
            Ok(length) => scanner.push(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read the log to explain"),
        }
    }
}

/// Writes an answer as text or as JSON, with whether the request that failed would fit on this
/// machine, and after what.
///
/// # Errors
/// Where the output cannot be written.
pub fn write_for(
    options: &Options,
    answer: &Explanation,
    machine: Option<&View>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let wanted = machine.and_then(|view| Some((explain::wanted(answer, view)?, view)));
    let Some((wanted, view)) = wanted else { return write(options, answer, out) };
    let text = explain::would_it_fit(answer, wanted, view);
    if options.json {
        let mut all = serde_json::to_value(answer)?;
        if let Some(all) = all.as_object_mut() {
            let fit = rules::closest(view, wanted, &rules::run_for(view, Some(wanted)));
            all.insert("would_it_fit".to_owned(), look::one_line(&text).into());
            all.insert("fit".to_owned(), serde_json::to_value(fit.map(look::cleaned))?);
        }
        out.write_all(json_text(&all)?.as_bytes())?;
    } else {
        out.write_all(report(answer).as_bytes())?;
        writeln!(out)?;
        for line in text.lines() {
            writeln!(out, "{}", clean(line))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Writes an answer as text or as JSON.
///
/// # Errors
/// Where the output cannot be written.
pub fn write(options: &Options, answer: &Explanation, out: &mut impl Write) -> anyhow::Result<()> {
    if options.json {
        out.write_all(json_text(answer)?.as_bytes())?;
    } else {
        out.write_all(report(answer).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}
