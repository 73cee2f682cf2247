//! Why no GPU can be read, as far as the machine shows it.

use serde::{Deserialize, Serialize};

use crate::sample::text::wrap;

/// What was found where a driver should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// One line: what failed.
    pub headline: String,
    /// What was looked at, and what was found there.
    pub rows: Vec<(String, String)>,
    /// What to do, each step whole, however long.
    pub advice: Vec<String>,
}

impl Absence {
    /// As text for standard error and for the page of the view; no line is wider than the
    /// terminal's 80 columns where the parts are not.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.headline);
        let width = self.rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
        for (what, found) in &self.rows {
            text += &format!("  {what:<width$}   {found}\n");
        }
        text += "\n";
        let lead = "What to do: ";
        let lines = self.advice.iter().flat_map(|step| wrap(step, WIDTH - lead.len()));
        for (n, line) in lines.enumerate() {
            let lead = if n == 0 { lead.to_owned() } else { " ".repeat(lead.len()) };
            text += &format!("{lead}{line}\n");
        }
        text
    }
}

/// Columns of a terminal that nobody has made wider.
const WIDTH: usize = 80;
