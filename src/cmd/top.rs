//! The live view, on the driver or on a recording.

use std::io::{self, IsTerminal, Write};

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
