//! An error message that was pasted into the view.

use crate::analyze::{GpuView, View};
use crate::oom::{Explanation, Scanner, report};
use crate::rules::{self, Wanted};
use crate::units::Bytes;

/// Capacities printed with two decimals differ by this much at the most, in bytes.
const ROUNDING: u64 = 16 << 20;

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
        all += &would_it_fit(&answer, wanted, view);
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

/// Whether what an error wants would fit now, and after what, in lines: what it is made of, and on
/// which card. May hold hostile text.
pub fn would_it_fit(answer: &Explanation, wanted: Wanted, view: &View) -> String {
    let findings = rules::run(view);
    let Some(fit) = rules::closest(view, wanted, &findings) else {
        return format!("Whether {} would fit here cannot be told.\n", wanted.need);
    };
    let mut text = "WOULD IT FIT NOW?\n".to_owned();
    let asked = Bytes(answer.requested_bytes.unwrap_or(0));
    let had = wanted.need - asked;
    text += &if had > Bytes::ZERO {
        format!("{} are the {asked} asked for and the {had} that its process had.\n", wanted.need)
    } else {
        format!("{} were asked for.\n", wanted.need)
    };
    let gpu = view.gpus.iter().find(|gpu| gpu.sample.index == fit.gpu);
    text + &fit.text() + &gpu.map(|gpu| card(answer, gpu)).unwrap_or_default()
}

/// Which card that is, where it is not known to be the one of the message.
fn card(answer: &Explanation, gpu: &GpuView) -> String {
    if answer.live.as_ref().is_some_and(|live| live.gpu == Some(gpu.sample.index)) {
        return String::new();
    }
    let name = gpu.sample.name.value().map_or("a card without a name", String::as_str);
    let index = gpu.sample.index;
    let size = gpu.ledger.value().map(|ledger| ledger.total);
    let is = size.map_or_else(|| name.to_owned(), |size| format!("{name} with {size}"));
    match answer.total_bytes.map(Bytes) {
        Some(total) if size.is_some_and(|size| size.0.abs_diff(total.0) <= ROUNDING) => {
            format!("GPU {index} is {is}, as large as the message's card.\n")
        }
        Some(total) if size.is_some() => {
            format!("GPU {index} is another card than the message's of {total}: {is}.\n")
        }
        _ => format!("GPU {index} is {is}; whether that is the message's card cannot be told.\n"),
    }
}
