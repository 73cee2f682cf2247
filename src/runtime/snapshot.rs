//! A moment of the view in a file.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use crate::report::json::Snapshot;
use crate::runtime::live::{Answer, Live};
use crate::sample::redact;
use crate::ui::Message;

/// Writes the moment that is shown as JSON into the working directory, on a thread of its own; the
/// answer says where.
pub fn save(live: &Live) {
    let snapshot = Snapshot::new(&live.view, redact);
    let name = format!("vramlens-{}.json", live.view.at.wall_ms);
    let to = live.answer_to.clone();
    let _ = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
        let message = match write(&name, &snapshot) {
            Ok(()) => Message { text: format!("this moment is in {name}"), error: false },
            Err(error) => Message { text: format!("{name}: {error}"), error: true },
        };
        let _ = to.blocking_send(Answer::Message(message));
    });
}

fn write(name: &str, snapshot: &Snapshot) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(name)?;
    serde_json::to_writer_pretty(&mut file, snapshot)?;
    file.write_all(b"\n")
}
