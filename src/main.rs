//! Parses, calls the library, maps to an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use vramlens::cli::{args::Cli, dispatch};
use vramlens::cmd::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch::run(&cli, &|name| std::env::var(name).ok()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // The terminal may be gone: a failed write is nobody's concern.
            let _ = writeln!(std::io::stderr(), "vramlens: {error:#}");
            Exit::Usage.into()
        }
    }
}
