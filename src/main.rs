//! Parses, calls the library, maps to an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::FromArgMatches;
use vramlens::cli::{args::Cli, entry, help};
use vramlens::cmd::Exit;
use vramlens::sample::text::clean;

fn main() -> ExitCode {
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match entry::run(&cli, &|name| std::env::var(name).ok()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // It may name a file or quote one.
            let text = format!("{error:#}");
            let lines: Vec<_> = text.lines().map(clean).collect();
            // The terminal may be gone: a failed write is nobody's concern.
            let _ = writeln!(std::io::stderr(), "vramlens: {}", lines.join("\n"));
            Exit::Usage.into()
        }
    }
}
