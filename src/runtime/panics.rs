//! What a panic says: a failed check may quote a name from outside.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;

use crate::sample::text::clean;

/// From here on a panic is told on standard error in one line that no terminal obeys, with a trace
/// where `RUST_BACKTRACE` asks for one.
pub fn tell_cleanly() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let text = line(info, thread.name().unwrap_or("unnamed"));
        // The terminal may be gone: a failed write is nobody's concern.
        let _ = writeln!(std::io::stderr(), "{text}");
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            let _ = writeln!(std::io::stderr(), "{trace}");
        }
    }));
}

fn line(info: &PanicHookInfo<'_>, thread: &str) -> String {
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let what = info.payload_as_str().unwrap_or("no words");
    let text = format!("vramlens: an internal error in thread {thread}{place}: {what}");
    clean(&text).into_owned()
}
