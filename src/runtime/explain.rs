//! An error message that was pasted into the view.

use crate::analyze::View;
use crate::oom::{Explanation, Scanner, report};
use crate::rules::{self, Wanted};
use crate::units::Bytes;

/// What it means.
pub struct Explained {
    /// A title for it.
    pub title: String,
    /// In lines.
    pub lines: Vec<String>,
    /// What was asked for and not had.
    pub wanted: Option<Wanted>,
}

/// What a text means, with what the machine shows.
pub fn explained(text: &str, view: &View) -> Explained {
    let mut scanner = Scanner::new();
    scanner.push(text.as_bytes());
    let mut answer = scanner.finish();
    answer.join(view);
    let wanted = wanted(&answer, view);
    let mut all = report(&answer);
    if let Some(wanted) = wanted {
        all.push('\n');
        all += &would_it_fit(wanted, view);
    }
    let lines = all.lines().map(ToOwned::to_owned).collect();
    Explained { title: "what the error says".to_owned(), lines, wanted }
}

/// What a failed request wants on this machine: what was asked for, with what its process had where
/// that has ended since, for it will want that again.
pub fn wanted(answer: &Explanation, view: &View) -> Option<Wanted> {
    let asked = answer.requested_bytes.filter(|_| answer.is_gpu_oom)?;
    let gpu = answer.live.as_ref().and_then(|live| live.gpu);
    // The message names everybody but its own process: whoever holds as much may be it.
    let had = answer.this_process_bytes.filter(|had| {
        let here = view.holders.iter().filter(|holder| gpu.is_none_or(|gpu| gpu == holder.index));
        let mut held = here.filter_map(|holder| holder.bytes.get());
        !held.any(|bytes| bytes.0.abs_diff(*had) <= had / 20)
    });
    Some(Wanted { need: Bytes(asked.saturating_add(had.unwrap_or(0))), gpu })
}

/// Whether that would fit now, and after what, in lines.
pub fn would_it_fit(wanted: Wanted, view: &View) -> String {
    let findings = rules::run(view);
    rules::closest(view, wanted, &findings).map_or_else(
        || format!("Whether {} would fit here cannot be told.\n", wanted.need),
        |fit| format!("WOULD IT FIT NOW?\n{}", fit.text()),
    )
}
