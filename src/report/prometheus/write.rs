//! Lines of samples.

use crate::report::clean::clean;
use crate::sample::Reading;
use crate::units::Bytes;

/// The longest value of a label, in characters.
const LONGEST: usize = 128;

/// Labels of a sample, by name.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Writes the samples of one family.
pub(super) struct Writer {
    name: String,
    out: String,
}

impl Writer {
    pub(super) const fn new(name: String) -> Self {
        Self { name, out: String::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.out
    }

    /// One sample; none where the value is no number.
    pub(super) fn sample(&mut self, labels: &[(&'static str, String)], value: f64) {
        if !value.is_finite() {
            return;
        }
        self.out += &self.name;
        for (n, (name, value)) in labels.iter().enumerate() {
            self.out += if n == 0 { "{" } else { "," };
            self.out += &format!("{name}=\"{}\"", escape(value));
        }
        self.out += if labels.is_empty() { " " } else { "} " };
        self.out += &format!("{value}\n");
    }

    pub(super) fn bytes(&mut self, labels: &[(&'static str, String)], value: Bytes) {
        self.sample(labels, value.0 as f64);
    }

    pub(super) fn reading(&mut self, labels: &[(&'static str, String)], value: Reading<f64>) {
        if let Reading::Value(value) = value {
            self.sample(labels, value);
        }
    }
}

/// These labels and others.
pub(super) fn with(labels: &Labels, more: &[(&'static str, &str)]) -> Labels {
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    labels.iter().cloned().chain(more).collect()
}

/// A single-precision figure as it reads: 97.3 must not become 97.30000305175781.
pub(super) fn short(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// The value of a label, which may be hostile.
fn escape(value: &str) -> String {
    let bounded: String = value.chars().take(LONGEST).collect();
    clean(&bounded).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(value: &str) -> String {
        let mut writer = Writer::new("x".to_owned());
        writer.sample(&[("a", value.to_owned())], 1.5);
        writer.text().to_owned()
    }

    #[test]
    fn a_sample_is_one_line() {
        assert_eq!(line(r#"a"b\c"#), "x{a=\"a\\\"b\\\\c\"} 1.5\n");
        assert_eq!(line("a\nb\u{1b}[2J"), "x{a=\"a␊b␛[2J\"} 1.5\n");
        assert_eq!(line(&"x".repeat(9999)).len(), 128 + 12);
        let mut writer = Writer::new("x".to_owned());
        writer.sample(&[], 92_449_751_040.0);
        writer.sample(&[], f64::NAN);
        assert_eq!(writer.text(), "x 92449751040\n");
    }

    proptest! {
        #[test]
        fn no_value_breaks_out_of_its_quotes(value in any::<String>()) {
            let line = line(&value);
            prop_assert_eq!(line.lines().count(), 1);
            let inside = line.strip_prefix("x{a=\"").and_then(|rest| rest.strip_suffix("\"} 1.5\n"));
            let mut escaped = false;
            for c in inside.unwrap().chars() {
                prop_assert!(escaped || c != '"');
                escaped = !escaped && c == '\\';
            }
            prop_assert!(!escaped);
        }
    }
}
