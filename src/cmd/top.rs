//! The live view, on the driver or on a recording.

use std::io::{self, IsTerminal, Write};

use crate::cmd::Exit;
use crate::runtime::live::From;
use crate::runtime::looper::{self, End};
use crate::runtime::options::Options;
use crate::runtime::screen;
use crate::ui::App;

/// Runs the view.
///
/// # Errors
/// Where the terminal cannot be used.
pub fn run(app: App, options: Options, from: From) -> anyhow::Result<Exit> {
    screen::guard_panics();
    match looper::run(app, options, from) {
        Ok(End::Quit) => Ok(Exit::Fine),
        Ok(End::Terminated) => Ok(Exit::Interrupted),
        // Nobody is left to be told; a write would only fail.
        Ok(End::HungUp) => {
            let _ = crate::runtime::journal::finish();
            std::process::exit(i32::from(Exit::Interrupted.code()))
        }
        Err(error) => {
            screen::restore();
            Err(anyhow::Error::new(error).context("the terminal cannot be used"))
        }
    }
}

/// Whether a full-screen view can be shown: both ends are terminals that know more than lines.
pub fn can_show(term: Option<&str>) -> bool {
    let dumb = term.is_none_or(|name| name.is_empty() || name == "dumb");
    io::stdout().is_terminal() && !dumb
}

/// Writes a text to standard output; a reader that has gone is no error.
///
/// # Errors
/// Where the output fails otherwise.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
