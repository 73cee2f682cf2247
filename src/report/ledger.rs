//! The ledger of a GPU as a block of text whose figures add up as they stand there.

use std::fmt::Write;

use crate::analyze::{Class, GpuView, Ledger, View};
use crate::fields::gpu_label;
use crate::report::Style;
use crate::report::clean::{clean_for, fit, width};
use crate::sample::Reading;
use crate::units::Bytes;

const LABEL: usize = 11;
const FIGURE: usize = 7;

/// `GPU 0`, `GPU 0:1` for a MIG instance.
pub(super) fn gpu_name(gpu: &GpuView) -> String {
    format!("GPU {}", gpu_number(gpu))
}

pub(super) fn gpu_number(gpu: &GpuView) -> String {
    gpu_label(&gpu.sample)
}

/// The block of one GPU.
pub(super) fn block(out: &mut String, view: &View, gpu: &GpuView, style: &Style) {
    let name = match &gpu.sample.name {
        Reading::Value(name) => clean_for(name, style.ascii),
        Reading::Absent(why) => format!("(name: {})", why.words()),
    };
    let head = format!("{}  {name}", gpu_name(gpu));
    match gpu.ledger {
        Reading::Absent(why) => line(out, &format!("{head}   memory: {}", why.words()), style),
        Reading::Value(ledger) if ledger.unified => unified(out, view, gpu, &ledger, &head, style),
        Reading::Value(ledger) => figures(out, view, gpu, &ledger, &head, style),
    }
}

fn figures(
    out: &mut String,
    view: &View,
    gpu: &GpuView,
    ledger: &Ledger,
    head: &str,
    style: &Style,
) {
    let scale = Scale::of(ledger.total);
    let rounded = Rounded::of(ledger, scale);
    let percent = ledger
        .used
        .percent_of(ledger.total)
        .map_or_else(String::new, |percent| format!(" ({:.0}%)", percent.0));
    let used = scale.show(rounded.used, ledger.used);
    let total = scale.show(rounded.total, ledger.total);
    line(out, &format!("{head}   {used} of {total} {} used{percent}", scale.unit), style);
    // A list that could not be read, of a GPU without instances that have one, is no empty list.
    let unlisted = gpu.sample.unlisted();
    let mut row = |label: &str, parts: i64, exact: Bytes, note: &str| {
        let figure = match label {
            "driver" if !ledger.reserved_known => "?".to_owned(),
            "processes" if unlisted.is_some() => "?".to_owned(),
            _ => scale.show(parts, exact),
        };
        line(out, &format!("  {label:<LABEL$}{figure:>FIGURE$}   {note}"), style);
    };
    let [processes, survivors, unaccounted, reserved, free] = rounded.parts;
    let note = held_note(view, gpu, ledger);
    row("processes", processes, ledger.processes, &note);
    if ledger.survivors > Bytes::ZERO {
        row("survivors", survivors, ledger.survivors, &survivors_note(view, gpu));
    }
    if ledger.shared > Bytes::ZERO {
        row("shared", -rounded.shared, ledger.shared, "listed by more than one process (CUDA IPC)");
    }
    let causes = gpu.unaccounted_causes.first();
    let likely = causes.map(|cause| {
        // Where it cannot be told nothing is likely.
        let lead = if cause.is_certain() { "" } else { "likely: " };
        format!("{lead}{}", clean_for(&cause.text, style.ascii))
    });
    row("unaccounted", unaccounted, ledger.unaccounted, &likely.unwrap_or_default());
    let told = if ledger.reserved_known { "" } else { "in what is used: an old driver" };
    row("driver", reserved, ledger.reserved, told);
    row("free", free, ledger.free, "");
}

/// A GPU without memory of its own.
fn unified(
    out: &mut String,
    view: &View,
    gpu: &GpuView,
    ledger: &Ledger,
    head: &str,
    style: &Style,
) {
    let scale = Scale::of(ledger.total);
    let rounded = Rounded::of(&Ledger { unaccounted: ledger.host, ..*ledger }, scale);
    let used = scale.show(rounded.used, ledger.used);
    let total = scale.show(rounded.total, ledger.total);
    let shares = "used, shared with the host";
    line(out, &format!("{head}   {used} of {total} {} {shares}", scale.unit), style);
    let mut row = |label: &str, parts: i64, exact: Bytes, note: &str| {
        let figure = scale.show(parts, exact);
        line(out, &format!("  {label:<LABEL$}{figure:>FIGURE$}   {note}"), style);
    };
    let [processes, survivors, host, _, free] = rounded.parts;
    row("GPU-held", processes, ledger.processes, &held_note(view, gpu, ledger));
    if ledger.survivors > Bytes::ZERO {
        row("survivors", survivors, ledger.survivors, &survivors_note(view, gpu));
    }
    if ledger.shared > Bytes::ZERO {
        row("shared", -rounded.shared, ledger.shared, "listed, and not in what the kernel counts");
    }
    row("host-used", host, ledger.host, "programs on the processor, and the kernel");
    row("available", free, ledger.free, "to both");
}

/// Who holds it, and whose list is missing.
fn held_note(view: &View, gpu: &GpuView, ledger: &Ledger) -> String {
    if let Some(why) = gpu.sample.unlisted() {
        return format!("not told: {}", why.words());
    }
    let note = processes_note(view, gpu, ledger);
    match gpu.sample.unread_lists.missing() {
        Some((who, why)) => format!("{note}; {who} not told: {why}"),
        None => note,
    }
}

fn processes_note(view: &View, gpu: &GpuView, ledger: &Ledger) -> String {
    let listed = |class| !matches!(class, Class::Ghost | Class::Survivor | Class::Hidden);
    let on_it = view.holders.iter().filter(|holder| holder.gpu == gpu.sample.uuid);
    let count = on_it.filter(|holder| holder.listed && listed(holder.verdict.class)).count();
    let mut note = format!("{count} process{}", if count == 1 { "" } else { "es" });
    if let Reading::Value(cached) = ledger.cached
        && cached > Bytes::ZERO
    {
        let _ = write!(note, ", {cached} of it cached and not used");
    }
    match ledger.processes_without_bytes {
        0 => {}
        1 => note.push_str("; 1 more whose share the driver does not tell"),
        n => {
            let _ = write!(note, "; {n} more whose share the driver does not tell");
        }
    }
    note
}

fn survivors_note(view: &View, gpu: &GpuView) -> String {
    let on_it = view.holders.iter().filter(|holder| holder.gpu == gpu.sample.uuid);
    let ghosts: Vec<_> = on_it.filter(|holder| holder.verdict.class == Class::Ghost).collect();
    let list = |pids: Vec<String>| pids.join(", ");
    let dead = list(ghosts.iter().map(|ghost| ghost.pid.to_string()).collect());
    let mut kept: Vec<_> = ghosts.iter().flat_map(|ghost| &ghost.survivors).collect();
    kept.sort_unstable();
    kept.dedup();
    let kept = list(kept.iter().map(|id| id.pid.to_string()).collect());
    match (dead.is_empty(), kept.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!("of dead {dead}"),
        (false, false) => format!("of dead {dead}, kept by {kept}"),
    }
}

/// A line, cut to the width, without blanks at its end.
pub(super) fn line(out: &mut String, text: &str, style: &Style) {
    let text = if width(text) > style.width {
        fit(text, style.width, style.ascii)
    } else {
        text.to_owned()
    };
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Tenths of GiB, or whole MiB on a small GPU.
#[derive(Debug, Clone, Copy)]
struct Scale {
    step: u64,
    tenths: bool,
    unit: &'static str,
}

impl Scale {
    fn of(total: Bytes) -> Self {
        if total >= Bytes::gib(8) {
            Self { step: (1 << 30) / 10, tenths: true, unit: "GiB" }
        } else {
            Self { step: 1 << 20, tenths: false, unit: "MiB" }
        }
    }

    /// `parts` steps; what is there and too small for one is not shown as nothing.
    fn show(self, parts: i64, exact: Bytes) -> String {
        if parts == 0 && exact > Bytes::ZERO {
            return if self.tenths { "<0.1" } else { "<1" }.to_owned();
        }
        if self.tenths { format!("{:.1}", parts as f64 / 10.0) } else { parts.to_string() }
    }

    fn round(self, bytes: Bytes) -> i64 {
        (self.exact(bytes)).round() as i64
    }

    fn exact(self, bytes: Bytes) -> f64 {
        // 2^30 is no multiple of ten.
        if self.tenths { bytes.as_gib() * 10.0 } else { bytes.0 as f64 / self.step as f64 }
    }
}

/// The parts of a ledger in steps, rounded so that they add up: whoever is furthest from the next
/// whole step gives way.
struct Rounded {
    total: i64,
    used: i64,
    shared: i64,
    parts: [i64; 5],
}

impl Rounded {
    fn of(ledger: &Ledger, scale: Scale) -> Self {
        let exact =
            [ledger.processes, ledger.survivors, ledger.unaccounted, ledger.reserved, ledger.free]
                .map(|part| scale.exact(part));
        let (total, shared) = (scale.round(ledger.total), scale.round(ledger.shared));
        let mut parts = exact.map(|part| part.floor() as i64);
        let mut missing = total + shared - parts.iter().sum::<i64>();
        let mut order = [0, 1, 2, 3, 4];
        let rest = |at: &usize| exact.get(*at).map_or(0.0, |part| part.fract());
        order.sort_by(|a, b| rest(b).total_cmp(&rest(a)));
        for at in order {
            if missing > 0
                && rest(&at) > 0.0
                && let Some(part) = parts.get_mut(at)
            {
                *part += 1;
                missing -= 1;
            }
        }
        let used = total - parts[3] - parts[4];
        Self { total, used, shared, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_figures_add_up_as_they_are_shown(
            parts in proptest::array::uniform5(0_u64..1 << 38),
            shared in 0_u64..1 << 30,
        ) {
            let [processes, survivors, unaccounted, reserved, free] = parts.map(Bytes);
            let shared = Bytes(shared.min(processes.0));
            let sum: Bytes = [processes, survivors, unaccounted, reserved, free].into_iter().sum();
            let total = sum - shared;
            let used = total - reserved - free;
            let ledger = Ledger {
                total, used, processes, survivors, unaccounted, reserved, free, shared,
                reserved_known: true, cached: Reading::Value(Bytes::ZERO), processes_without_bytes: 0,
                unified: false, host: Bytes::ZERO,
            };
            let scale = Scale::of(total);
            let rounded = Rounded::of(&ledger, scale);
            prop_assert_eq!(rounded.parts.iter().sum::<i64>(), rounded.total + rounded.shared);
            for (steps, exact) in rounded.parts.iter().zip(parts) {
                prop_assert!((*steps as f64 - scale.exact(Bytes(exact))).abs() <= 1.0);
            }
        }
    }
}
