//! Who held what, as the message tells it: one sum that adds up, or says what is left out.

use serde::Serialize;

use super::figures::Slot;
use super::judge::Case;
use super::numbers::{Numbers, Other};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Stable key.
    pub key: &'static str,
    /// In words. May hold text from the log, cleaned.
    pub label: String,
    /// In bytes; absent where the message has no figure.
    pub bytes: Option<u64>,
    /// Printed in the message, not computed.
    pub printed: bool,
}

/// The memory of the device at the moment of the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// The lines.
    pub entries: Vec<Entry>,
    /// What they add up to.
    pub sum_bytes: u64,
    /// The capacity, where the message has it.
    pub total_bytes: Option<u64>,
    /// What the lines exceed the capacity by: memory that spilled into RAM, or counted twice.
    pub over_bytes: u64,
}

/// The ledger of a case; `None` where the message has too few figures for one.
pub(super) fn ledger(case: &Case, n: &Numbers) -> Option<Ledger> {
    let mut entries = Vec::new();
    let mut add = |key, label: &str, bytes: Option<u64>, printed| {
        if let Some(bytes) = bytes {
            entries.push(Entry { key, label: label.to_owned(), bytes: Some(bytes), printed });
        }
    };
    let owner = if case.software == "tensorflow" { "in use in the pool" } else { "allocated" };
    match (n.allocated, n.private_pools) {
        (Some(all), Some(pools)) => {
            add("allocated", "this process: allocated", all.checked_sub(pools), false);
            add("private_pools", "this process: allocated in private pools", Some(pools), true);
        }
        (all, _) => add("allocated", &format!("this process: {owner}"), all, true),
    }
    add("reserved_unallocated", "this process: reserved, not allocated", n.unallocated, true);
    let inside = n.allocated.unwrap_or_default() + n.unallocated.unwrap_or_default();
    let this = n.this_process.or_else(|| n.others.iter().find(|o| o.self_likely)?.bytes);
    if n.allocated.is_some() {
        let outside = this.and_then(|this| this.checked_sub(inside));
        add("outside", "this process: context and libraries", outside, false);
    } else {
        add("this_process", "this process", this, true);
    }
    if n.allocated.is_none() && this.is_none() && n.others.is_empty() {
        let label = match case.software {
            "unreal-engine" => "this process, of what the driver lets it use",
            _ => "in use",
        };
        let used = case.figures.get(Slot::Used).filter(|_| n.total.is_some());
        add("used", label, used, true);
    }
    add("other_allocations", "other allocations", case.figures.get(Slot::OtherAllocations), true);
    if n.allocated.is_none() && n.this_process.is_none() && case.software == "sglang" {
        add(
            "weights",
            "weights",
            case.figures.get(Slot::Weights).filter(|_| n.total.is_none()),
            true,
        );
    }
    entries.extend(n.others.iter().filter(|other| !other.self_likely).map(process));
    if let Some(free) = n.free {
        entries.push(Entry {
            key: "free",
            label: "free".to_owned(),
            bytes: Some(free),
            printed: true,
        });
    }
    close(entries, n)
}

fn process(other: &Other) -> Entry {
    let name = other.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    let label = format!("process {}{name}", other.pid);
    Entry { key: "other_process", label, bytes: other.bytes, printed: true }
}

/// Adds what is missing to the capacity, and the sum.
fn close(mut entries: Vec<Entry>, n: &Numbers) -> Option<Ledger> {
    if entries.is_empty() || (entries.len() < 2 && n.total.is_none()) {
        return None;
    }
    let mut sum: u64 = entries.iter().filter_map(|entry| entry.bytes).sum();
    let mut over = 0;
    if let Some(total) = n.total {
        let missing = total.saturating_sub(sum);
        // A hundredth of a GiB is what rounding in the message makes of six figures.
        if missing > 64 << 20 {
            let label =
                if n.reserved.is_some() && n.this_process.is_none() && n.implied_others.is_some() {
                    "context, and others who are not named"
                } else if n.implied_others.is_some() {
                    "others, who are not named"
                } else if n.shared {
                    "the rest of the system (shared memory)"
                } else {
                    "not told by the message"
                };
            let at = entries.iter().position(|entry| entry.key == "free").unwrap_or(entries.len());
            let entry = Entry {
                key: "not_told",
                label: label.to_owned(),
                bytes: Some(missing),
                printed: false,
            };
            entries.insert(at, entry);
            sum += missing;
        }
        over = sum.saturating_sub(total);
    }
    Some(Ledger { entries, sum_bytes: sum, total_bytes: n.total, over_bytes: over })
}
