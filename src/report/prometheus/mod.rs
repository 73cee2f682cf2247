//! One view as metrics, in the text format of Prometheus and in OpenMetrics.
//!
//! - **What is absent has no sample**: never 0, never an old value. While the driver does not
//!   answer nothing is said of GPUs and holders, and `vramlens_up` is 0.
//! - The number of series is bounded: of the holders of a GPU only the largest have names, the rest
//!   is one series with the pid `rest`; classes and rules are fixed lists.
//! - Units are those of Prometheus: bytes, seconds, watts, hertz; shares are per cent, as on the
//!   screen.
//! - Text from outside stands in labels only, without control characters, cut and escaped. Command
//!   lines do not: they may hold secrets and change with every run.

mod gpu;
mod holder;
mod own;
mod write;

use crate::analyze::{Freshness, View};
use crate::fields::{FIELDS, Field, FieldId, Scope, Unit};
use crate::rules::Finding;
use crate::sample::Reading;
use write::Writer;

/// The two formats, which differ in the names of counters, in units, and at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    /// The header under which it travels.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The one that a reader would rather have; without a wish the older one.
    pub fn wanted(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0_f32, 0.0_f32);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut version) = (1.0, None);
            for part in parts {
                match part.split_once('=') {
                    Some(("q", q)) => quality = q.parse().unwrap_or(0.0_f32),
                    Some(("version", wanted)) => version = Some(wanted.trim_matches('"')),
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if matches!(version, None | Some("1.0.0")) => {
                    open = quality.max(open);
                }
                "text/plain" | "text/*" | "*/*" => plain = quality.max(plain),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// What is exported.
#[derive(Debug, Clone, Copy)]
pub struct Exposition<'a> {
    /// The state of the machine.
    pub view: &'a View,
    /// What should be known about it.
    pub findings: &'a [Finding],
    /// What the exporter itself costs.
    pub own: &'a Own,
    /// Holders of one GPU that have series of their own, the largest first.
    pub most_holders: usize,
}

impl Exposition<'_> {
    /// Whether GPU figures are of now.
    const fn is_current(&self) -> bool {
        !matches!(self.view.freshness, Freshness::Stalled { .. } | Freshness::Starting)
    }
}

/// What the exporter itself costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    /// Processor time since the start, in seconds.
    pub cpu_seconds: Reading<f64>,
    /// Host memory that is resident, in bytes.
    pub resident_bytes: Reading<u64>,
    /// Looks at the driver.
    pub ticks: u64,
    /// Looks that failed.
    pub failures: u64,
    /// Requests answered.
    pub requests: u64,
    /// Requests refused: no such page, no token, no sense.
    pub refused: u64,
    /// Connections that were ended to make room for others, or that took too long.
    pub cut_connections: u64,
}

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Gauge,
    Counter,
    Info,
}

/// What writes the samples of a family.
#[derive(Clone, Copy)]
enum Fill {
    Gpu(FieldId),
    Holder(FieldId),
    With(fn(&Exposition<'_>, &mut Writer)),
}

/// One family of metrics. Its name is without `_total` and `_info`.
struct Family {
    name: String,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    fill: Fill,
}

impl Family {
    /// The name of its samples.
    fn sample_name(&self) -> String {
        match self.kind {
            Kind::Gauge => self.name.clone(),
            Kind::Counter => format!("{}_total", self.name),
            Kind::Info => format!("{}_info", self.name),
        }
    }

    fn of_field(field: &Field, metric: &str) -> Self {
        let suffix = field.unit.metric_suffix();
        Self {
            name: format!("{metric}{suffix}"),
            kind: Kind::Gauge,
            unit: suffix.trim_start_matches('_'),
            help: field.help,
            fill: match field.scope {
                Scope::Gpu => Fill::Gpu(field.id),
                Scope::Holder => Fill::Holder(field.id),
            },
        }
    }
}

/// A row of the tables of families that are no fields: name, kind, unit, help, and what fills it.
type Row = (&'static str, Kind, &'static str, &'static str, fn(&Exposition<'_>, &mut Writer));

/// Every family, those of the field table first.
fn families() -> Vec<Family> {
    let fields = FIELDS.iter().filter_map(|field| Some(Family::of_field(field, field.metric?)));
    let rows = gpu::ROWS.iter().chain(holder::ROWS).chain(own::ROWS);
    let rest = rows.map(|&(name, kind, unit, help, fill)| Family {
        name: name.to_owned(),
        kind,
        unit,
        help,
        fill: Fill::With(fill),
    });
    fields.chain(rest).collect()
}

/// The names of all samples that there can be.
pub fn names() -> Vec<String> {
    families().iter().map(Family::sample_name).collect()
}

/// Everything as text.
pub fn render(of: &Exposition<'_>, format: Format) -> String {
    let mut out = String::with_capacity(16 << 10);
    for family in families() {
        let mut writer = Writer::new(family.sample_name());
        match family.fill {
            Fill::Gpu(id) => gpu::field(of, id, &mut writer),
            Fill::Holder(id) => holder::field(of, id, &mut writer),
            Fill::With(fill) => fill(of, &mut writer),
        }
        if !writer.is_empty() {
            head(&mut out, &family, format);
            out += writer.text();
        }
    }
    if format == Format::OpenMetrics {
        out += "# EOF\n";
    }
    out
}

fn head(out: &mut String, family: &Family, format: Format) {
    let open = format == Format::OpenMetrics;
    let name = if open { family.name.clone() } else { family.sample_name() };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Info if open => "info",
        Kind::Gauge | Kind::Info => "gauge",
    };
    *out += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n", family.help);
    if open && !family.unit.is_empty() {
        *out += &format!("# UNIT {name} {}\n", family.unit);
    }
}

/// A figure of the field table in the unit of its metric.
fn in_unit(value: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Milliseconds | Unit::Milliwatts => value / 1000.0,
        Unit::Megahertz => value * 1e6,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        let all = families();
        for (n, family) in all.iter().enumerate() {
            let name = &family.name;
            assert!(name.starts_with("vramlens_"), "{name}");
            let letter = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(letter), "{name}");
            assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}");
            let with_unit = family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit));
            assert!(with_unit, "{name} is in {}", family.unit);
            let help = family.help;
            assert!(help.ends_with('.') && !help.contains(['\\', '\n', '"']), "{name}: {help}");
            assert!(!all[..n].iter().any(|other| other.name == *name), "{name} is there twice");
        }
        let fields = FIELDS.iter().filter(|field| field.metric.is_some()).count();
        assert!(all.len() > fields + 20);
    }

    #[test]
    fn a_reader_gets_what_it_would_rather_have() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(Format::wanted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::wanted("application/openmetrics-text"), Format::OpenMetrics);
        for plain in [
            "",
            "*/*",
            "text/plain",
            "text/plain,application/openmetrics-text;q=0.1",
            "application/openmetrics-text; version=9.0.0",
            "application/openmetrics-text;q=0",
            ";;;,,=q=",
        ] {
            assert_eq!(Format::wanted(plain), Format::Prometheus, "{plain}");
        }
    }
}
