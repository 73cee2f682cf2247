//! Around every command: the version, and the log of what is done.

use std::io::Write;

use anyhow::Context;

use crate::cli::about;
use crate::cli::args::{Cli, Command};
use crate::cli::config::resolve;
use crate::cli::dispatch::{self, Environment};
use crate::cli::errors::words;
use crate::cmd::Exit;
use crate::runtime::journal::{self, LogSettings};
use crate::sample::text::clean;

/// Does what was asked for.
///
/// # Errors
/// What the user should read on standard error; it exits with 2.
pub fn run(cli: &Cli, env: Environment<'_>) -> anyhow::Result<Exit> {
    if cli.version {
        return about::run(cli, env);
    }
    keep_log(cli, env)?;
    let ended = dispatch::run(cli, env);
    match &ended {
        Ok(exit) => log::info!("ends with {}", exit.code()),
        Err(error) => log::error!("{}", words(error)),
    }
    if let Some(wrong) = journal::finish() {
        let _ = writeln!(std::io::stderr(), "vramlens: {}", clean(&wrong));
    }
    ended
}

/// Begins the log, where one is kept. Its first line says what was started.
fn keep_log(cli: &Cli, env: Environment<'_>) -> anyhow::Result<()> {
    if !does_something(cli) {
        return Ok(());
    }
    // A mistake in the settings is said by whoever needs them, and logged where the command line
    // names the file.
    let wanted = resolve(&cli.common, env).map_or_else(|_| named(cli), |found| found.settings.log);
    if wanted.file.is_empty() {
        return Ok(());
    }
    let path = wanted
        .path(env)
        .context("log.file is \"on\", and neither XDG_STATE_HOME nor HOME is set: name a file")?;
    journal::start(&wanted, &path).context("no thread for the log")?;
    // As the type is called: `Triage(…)`.
    let what = cli.command.as_ref().map_or_else(|| "view".to_owned(), |what| format!("{what:?}"));
    let what = what.split('(').next().unwrap_or_default().to_lowercase();
    log::info!("{} {}: {what}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    Ok(())
}

/// Whether there is anything to log: some commands only print a text, and processes that this
/// program starts for itself leave that to it.
const fn does_something(cli: &Cli) -> bool {
    let Some(command) = &cli.command else { return true };
    match command {
        Command::Config(_) | Command::Fixes(_) | Command::Gen(_) | Command::Driver(_) => false,
        Command::Run(args) => args.monitor.is_none(),
        _ => true,
    }
}

/// The log that the command line names.
fn named(cli: &Cli) -> LogSettings {
    let file = cli.common.log.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    LogSettings { file, max_bytes: 1 << 20, keep: 1, ..LogSettings::default() }
}
