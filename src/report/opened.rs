//! Who has NVIDIA devices open, where the driver has told of no GPU: all that `/proc` alone can say.

use crate::analyze::View;
use crate::ids::GpuIndex;
use crate::report::Style;
use crate::report::clean::{clean_for, wrap};
use crate::report::json::command;
use crate::report::ledger::line;
use crate::report::table::{self, Column};
use crate::sample::{NvidiaFds, ProcSample, Reading};
use crate::units::age;

const USERS: [Column; 6] = [
    Column::right("PID", 7, 10),
    Column::left("USER", 4, 12),
    Column::right("VRAM", 5, 6),
    Column::right("AGE", 4, 4),
    Column::left("DEVICES OPEN", 12, 30),
    Column::left("COMMAND", 7, usize::MAX),
];

/// Writes them, or that nobody was found.
pub(super) fn write(out: &mut String, view: &View, style: &Style) {
    let text = if view.scan.is_none() {
        "not known: the driver has not answered, and /proc was not read"
    } else if view.device_users.is_empty() {
        "not known: the driver has not answered; no process was found that has its devices open"
    } else {
        "the driver has not answered, so what they hold is not known; /proc shows who has its \
         devices open:"
    };
    for text in wrap(text, style.width.saturating_sub(2)) {
        line(out, &format!("  {text}"), style);
    }
    if !view.device_users.is_empty() {
        let rows: Vec<Vec<String>> =
            view.device_users.iter().map(|process| row(view, process, style)).collect();
        table::write(out, &USERS, &rows, style);
    }
}

fn row(view: &View, process: &ProcSample, style: &Style) -> Vec<String> {
    let user = match (&process.user, process.uid) {
        (Reading::Value(name), _) => clean_for(name, style.ascii),
        (Reading::Absent(_), Reading::Value(uid)) => uid.to_string(),
        (Reading::Absent(_), Reading::Absent(_)) => "?".to_owned(),
    };
    let devices = process.devices.value().map(names).unwrap_or_default();
    vec![
        process.id.pid.to_string(),
        user,
        "?".to_owned(),
        age(view.at.boot_ms.saturating_sub(process.started_boot_ms)),
        devices.join(" "),
        clean_for(&command(process, style.redact), style.ascii),
    ]
}

/// The device files, as they are called below `/dev`.
pub fn names(devices: &NvidiaFds) -> Vec<String> {
    let mut names: Vec<String> =
        devices.minors.iter().map(|minor| format!("nvidia{minor}")).collect();
    names.extend(devices.uvm.then(|| "nvidia-uvm".to_owned()));
    names.extend(devices.control.then(|| "nvidiactl".to_owned()));
    names.extend(devices.drm.then(|| "dri".to_owned()));
    names
}

/// What was not read because of a call that does not return.
pub(super) fn silence(view: &View, call: Option<&str>, gpu: Option<GpuIndex>) -> String {
    let Some(call) = call.filter(|_| view.gpus.is_empty()) else {
        return "what the driver says now: it does not answer".to_owned();
    };
    match gpu {
        Some(gpu) => format!(
            "what the driver says: {call} on GPU {gpu} does not return, and as one GPU is asked \
             after the other, nothing was read of the others either"
        ),
        None => format!("what the driver says: {call} does not return"),
    }
}
