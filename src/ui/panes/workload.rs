//! What a process computes: the software, its settings and where each was read, and what its own
//! interface says.

use super::{Scene, detail};
use crate::analyze::Holder;
use crate::sample::{ProcSample, Reading, ServerSample};
use crate::ui::doc::Doc;
use crate::ui::words::span;

/// The workload tab.
pub fn workload(doc: &mut Doc, scene: &Scene<'_>, holder: &Holder) {
    let theme = doc.look().theme;
    let Some(process) = &holder.process else {
        doc.head_with("WORKLOAD", "cannot be told: the process cannot be read", theme.dim);
        return;
    };
    match &holder.workload {
        Some(workload) => {
            let sign = workload.seen.words();
            let sign = sign.strip_prefix("its ").unwrap_or(&sign);
            let from = format!("{}, by its {sign}", workload.software.name());
            doc.head_with("WORKLOAD", &from, theme.text);
            for found in &workload.settings {
                let origin = format!("{}   ({})", found.value, found.origin.words());
                doc.fact(found.setting.label(), &origin);
            }
        }
        None => doc.head_with("WORKLOAD", "not recognised", theme.dim),
    }
    files(doc, holder, process);
    match holder.server.as_ref().or(process.server.as_ref()) {
        None => {}
        Some(Reading::Absent(why)) => {
            doc.head_with("SERVER", &format!("says nothing: {}", why.words()), theme.dim);
        }
        Some(Reading::Value(said)) => server(doc, scene, said),
    }
}

fn files(doc: &mut Doc, holder: &Holder, process: &ProcSample) {
    doc.fact("command", &holder.command());
    if let Some(why) = process.at_work().why() {
        for name in ["model file", "listens on", "threads", "has written"] {
            doc.fact(name, &why.words());
        }
        return;
    }
    for file in &process.model_files {
        doc.fact("model file", file);
    }
    if process.model_files.is_empty() {
        doc.fact("model file", "none open or mapped");
    }
    let ports: Vec<String> = process.listens.iter().map(u16::to_string).collect();
    if !ports.is_empty() {
        doc.fact("listens on", &ports.join(", "));
    }
    doc.fact("threads", &process.threads.to_string());
    if let Some(written) = process.written {
        doc.fact("has written", &written.to_string());
    }
}

/// A server is asked every ten seconds, and one that does not answer is absent.
const ASKED_MS: u64 = 10_000;

fn server(doc: &mut Doc, scene: &Scene<'_>, said: &ServerSample) {
    let theme = doc.look().theme;
    let when = match detail::as_of(scene, said.at, 2 * ASKED_MS) {
        old if old.is_empty() => format!(", every {}", span(ASKED_MS)),
        old => old,
    };
    let from = format!("reported by itself on port {}{when}", said.port);
    doc.head_with("SERVER", &from, theme.text);
    if let Some(used) = said.kv_used {
        let room = said.kv_tokens.map(|n| format!(" of room for {n} tokens")).unwrap_or_default();
        doc.fact("KV cache", &format!("{:.0} %{room}", used.0));
    }
    let counts = [("requests", said.running), ("waiting", said.waiting), ("slots", said.slots)];
    for (name, count) in counts {
        if let Some(count) = count {
            doc.fact(name, &count.to_string());
        }
    }
    for model in &said.models {
        let size = model.in_vram.or(model.size).map(|size| format!("   {size}"));
        doc.fact("model", &format!("{}{}", model.name, size.unwrap_or_default()));
    }
    for device in &said.devices {
        let name = format!("device {}", device.ordinal.0);
        doc.fact(&name, &format!("{} reserved, {} not in use", device.reserved, device.cached));
    }
}
