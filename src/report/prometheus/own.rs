//! The driver, the machine, findings, and what the exporter itself costs.

use super::write::Writer;
use super::{Exposition, Kind, Row};
use crate::analyze::Freshness;
use crate::rules::{Finding, RULES, Severity};
use crate::sample::Reading;
use crate::units::Bytes;

/// What is neither of a GPU nor of a holder.
pub(super) const ROWS: &[Row] = &[
    ("vramlens_build", Kind::Info, "", "The version of the exporter.", |_, out| {
        out.sample(&[("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    }),
    ("vramlens_driver", Kind::Info, "", "Versions of driver, CUDA and NVML.", driver),
    ("vramlens_up", Kind::Gauge, "", "1 while the driver answers, 0 otherwise.", |of, out| {
        out.sample(&[], if of.is_current() { 1.0 } else { 0.0 });
    }),
    (
        "vramlens_stalled_seconds",
        Kind::Gauge,
        "seconds",
        "How long the driver has not answered; 0 while it does.",
        stalled,
    ),
    (
        "vramlens_gpus_age_seconds",
        Kind::Gauge,
        "seconds",
        "Age of the newest answers of the driver.",
        |of, out| milliseconds(out, of.view.gpus_age_ms),
    ),
    (
        "vramlens_processes_age_seconds",
        Kind::Gauge,
        "seconds",
        "Age of the newest facts about processes.",
        |of, out| milliseconds(out, of.view.procs_age_ms),
    ),
    (
        "vramlens_driver_look_seconds",
        Kind::Gauge,
        "seconds",
        "Time in the driver for the newest answers.",
        |of, out| {
            milliseconds(out, of.view.driver_cost.map(|cost| u64::from(cost.took_ms)));
        },
    ),
    (
        "vramlens_driver_look_calls",
        Kind::Gauge,
        "",
        "Calls to the driver for the newest answers.",
        |of, out| {
            if let Some(cost) = of.view.driver_cost {
                out.sample(&[], f64::from(cost.calls));
            }
        },
    ),
    ("vramlens_looks", Kind::Counter, "", "Looks at the driver.", |of, out| {
        out.sample(&[], of.own.ticks as f64);
    }),
    ("vramlens_failed_looks", Kind::Counter, "", "Looks that the driver refused.", |of, out| {
        out.sample(&[], of.own.failures as f64);
    }),
    (
        "vramlens_dropped_looks",
        Kind::Counter,
        "",
        "Looks that were lost inside the exporter.",
        |of, out| out.sample(&[], of.view.dropped_ticks as f64),
    ),
    ("vramlens_scanned_processes", Kind::Gauge, "", "Processes of the machine.", |of, out| {
        if let Some(scan) = of.view.scan {
            out.sample(&[], f64::from(scan.processes));
        }
    }),
    (
        "vramlens_unreadable_processes",
        Kind::Gauge,
        "",
        "Processes whose open files could not be read.",
        |of, out| {
            if let Some(scan) = of.view.scan {
                out.sample(&[], f64::from(scan.unreadable));
            }
        },
    ),
    ("vramlens_findings", Kind::Gauge, "", "Findings by rule, fix and severity.", findings),
    (
        "vramlens_findings_saving_bytes",
        Kind::Gauge,
        "bytes",
        "What the best fix of each finding would free, by rule.",
        savings,
    ),
    (
        "vramlens_cpu_seconds",
        Kind::Counter,
        "seconds",
        "Processor time of the exporter.",
        |of, out| out.reading(&[], of.own.cpu_seconds),
    ),
    (
        "vramlens_resident_bytes",
        Kind::Gauge,
        "bytes",
        "Host memory that the exporter has resident.",
        |of, out| out.reading(&[], of.own.resident_bytes.map(|bytes| bytes as f64)),
    ),
    ("vramlens_http_requests", Kind::Counter, "", "Requests answered.", |of, out| {
        out.sample(&[], of.own.requests as f64);
    }),
    (
        "vramlens_http_refused_requests",
        Kind::Counter,
        "",
        "Requests refused: no such page, or no token.",
        |of, out| out.sample(&[], of.own.refused as f64),
    ),
    (
        "vramlens_http_cut_connections",
        Kind::Counter,
        "",
        "Connections that took too long, or were ended to make room.",
        |of, out| out.sample(&[], of.own.cut_connections as f64),
    ),
];

fn milliseconds(out: &mut Writer, value: Option<u64>) {
    if let Some(ms) = value {
        out.sample(&[], ms as f64 / 1000.0);
    }
}

fn driver(of: &Exposition<'_>, out: &mut Writer) {
    let Some(driver) = &of.view.driver else { return };
    let text = |reading: &Reading<String>| reading.value().cloned().unwrap_or_default();
    let labels = [
        ("version", text(&driver.version)),
        ("cuda", text(&driver.cuda)),
        ("nvml", text(&driver.nvml)),
    ];
    out.sample(&labels, 1.0);
}

fn stalled(of: &Exposition<'_>, out: &mut Writer) {
    match &of.view.freshness {
        Freshness::Stalled { for_ms, .. } => milliseconds(out, Some(*for_ms)),
        Freshness::Starting => {}
        _ => out.sample(&[], 0.0),
    }
}

/// Findings are of the GPUs as they are: there are none while these do not answer.
fn findings(of: &Exposition<'_>, out: &mut Writer) {
    if !of.is_current() {
        return;
    }
    for rule in RULES {
        for (severity, word) in [
            (Severity::Notice, "notice"),
            (Severity::Warning, "warning"),
            (Severity::Critical, "critical"),
        ] {
            let is =
                |finding: &&Finding| finding.rule == rule.key() && finding.severity == severity;
            let count = of.findings.iter().filter(is).count();
            let labels = [
                ("rule", rule.key().to_owned()),
                ("fix", rule.number().to_string()),
                ("severity", word.to_owned()),
            ];
            out.sample(&labels, count as f64);
        }
    }
}

fn savings(of: &Exposition<'_>, out: &mut Writer) {
    if !of.is_current() {
        return;
    }
    for rule in RULES {
        let best = |finding: &Finding| {
            finding.fixes.iter().filter_map(|fix| fix.saves).map(|saving| saving.bytes).max()
        };
        let of_rule = of.findings.iter().filter(|finding| finding.rule == rule.key());
        let bytes: Bytes = of_rule.filter_map(best).sum();
        let labels = [("rule", rule.key().to_owned()), ("fix", rule.number().to_string())];
        out.bytes(&labels, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::OWN;

    #[test]
    fn what_the_screen_shows_of_the_own_cost_has_its_metric() {
        for metric in OWN.iter().filter_map(|field| field.metric) {
            assert!(ROWS.iter().any(|row| row.0 == metric), "{metric}");
        }
    }
}
