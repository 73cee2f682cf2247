//! Parses, calls the library, maps to an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::FromArgMatches;
use vramlens::cli::errors::words;
use vramlens::cli::{args::Cli, entry, help};
use vramlens::cmd::Exit;
use vramlens::runtime::panics;
use vramlens::sample::text::{clean, clean_path};

fn main() -> ExitCode {
    panics::tell_cleanly();
    let parsed = help::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match entry::run(&cli, &|name| std::env::var(name).ok()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // It may name a file or quote one.
            say(&format!("vramlens: {}", words(&error)));
            Exit::Usage.into()
        }
    }
}

/// A command line that is none, or that asks for help. What is quoted of it may be a file's name
/// that a script has put there.
fn refuse(error: &clap::Error) -> ExitCode {
    let hostile = |argument: &std::ffi::OsString| clean_path(argument).as_str() != argument;
    if !error.use_stderr() || !std::env::args_os().any(|argument| hostile(&argument)) {
        error.exit();
    }
    let mut text = error.render().to_string();
    for argument in std::env::args_os().filter(hostile) {
        // As a whole, so that a line break in it makes no line of its own.
        text = text.replace(&*argument.to_string_lossy(), &clean_path(&argument));
    }
    say(&text);
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Says something on standard error, each line fit for a terminal. The terminal may be gone: a failed
/// write is nobody's concern.
fn say(text: &str) {
    let lines: Vec<_> = text.lines().map(clean).collect();
    let _ = writeln!(std::io::stderr(), "{}", lines.join("\n"));
}
