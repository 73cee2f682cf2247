//! Whether what is shown is right, and whether what is absent is said to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;
use vramlens::runtime::options::absent_below;
use vramlens::source::SourceError;

use super::error;
use super::session::{MACHINE, Session, Shown};
use crate::fake::Fake;

/// Each figure and text of a JSON by its place; members of lists by who they are.
fn leaves(value: &Value, place: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                leaves(value, &format!("{place}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (n, value) in list.iter().enumerate() {
                let key = ["gpu", "index", "pid"].map(|key| &value[key]);
                let name = key.iter().filter(|key| !key.is_null());
                let name: Vec<_> = name.map(ToString::to_string).collect();
                let name = if name.is_empty() { n.to_string() } else { name.join("-") };
                leaves(value, &format!("{place}/{name}"), found);
            }
        }
        other => drop(found.insert(place.to_owned(), other.clone())),
    }
}

/// What differs from one look to another by itself, counts what is there, or says how a figure came
/// about: no figure of the machine.
pub(super) fn is_figure(place: &str) -> bool {
    let own = [
        "/at",
        "/at_ms",
        "/freshness/",
        "age_ms",
        "driver_cost",
        "/counts/",
        "/memory/api",
        "/evidence/",
    ];
    let own = own.iter().chain(&["stalled_ms", "/scan/", "/growth/", "since_ms", "_causes/"]);
    let mut own = own.chain(&["processes_without_bytes", "/call", "dropped", "nonsense", "/xid"]);
    !own.any(|part| place.contains(part))
}

pub(super) fn all(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    leaves(value, "", &mut found);
    found
}

/// The numbers in a text: words with a digit, without their unit and what stands about them.
fn figures(text: &str) -> BTreeSet<&str> {
    let ends = |c: char| c.is_whitespace() || "│┃▏▕/".contains(c);
    let words = text.split(ends).map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()));
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether a text gives a reason.
fn has_reason(text: &str) -> bool {
    let reasons = [
        "not supported here",
        "no permission",
        "too old",
        "is lost",
        "lost",
        "no answer",
        "not asked",
        "not yet",
        "made no sense",
        "failed with",
        "unknown layout",
        "stalled",
        "not loaded",
        "misses a library",
        "another version",
        "different versions",
        "no GPU",
        "error",
        "cannot be loaded",
    ];
    reasons.iter().any(|reason| text.contains(reason))
}

/// What is wrong with what is shown, measured against the truth.
pub(super) fn wrongs(shown: &Shown, ticks: u64, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let said = shown.json.to_string();
    // Codes 3 (not supported) and 26 (deprecated): a card that has no such list, or one that could not be read, which is said. Without the
    // memory's figures nothing can be missing from them.
    let none = ["Graphics", "MPSCompute"].iter().any(|list| case.contains(list));
    let no_memory = shown.json["gpus"]
        .as_array()
        .is_some_and(|gpus| gpus.iter().any(|gpu| gpu["memory"]["used_bytes"].is_object()));
    let partial = said.contains("list_incomplete")
        || none && (case.contains(" 3") || case.contains(" 26") || no_memory);
    let truths = TRUTH.after(ticks, partial);
    let known: Vec<_> = truths.iter().map(|truth| all(&truth.json)).collect();
    let nowhere = said.contains("GPU-unknown");
    for (place, value) in all(&shown.json) {
        if !value.is_number() || !is_figure(&place) {
            continue;
        }
        // Where no GPU's device file is known, it is not told whose an open one is.
        if nowhere && place.starts_with("/holders/") {
            continue;
        }
        // Who has the devices open is, in truth, among the holders.
        let user = place.strip_prefix("/device_users/");
        let is_holders = |known: &BTreeMap<String, Value>| {
            user.is_some_and(|end| {
                let mut holders = known.iter().filter(|(place, _)| place.starts_with("/holders/"));
                holders.any(|(place, true_value)| {
                    place.ends_with(&format!("-{end}")) && *true_value == value
                })
            })
        };
        if !known.iter().any(|known| known.get(&place) == Some(&value) || is_holders(known)) {
            wrong.push(format!(
                "{case}: JSON {place} is {value}, in truth {:?}",
                known[0].get(&place)
            ));
        }
    }
    let texts = truths.iter().flat_map(|truth| [&truth.screen, &truth.triage, &truth.frame]);
    let true_figures: BTreeSet<&str> = texts.flat_map(|text| figures(text)).collect();
    for (name, text) in
        [("screen", &shown.screen), ("triage", &shown.triage), ("frame", &shown.frame)]
    {
        for figure in figures(text) {
            // The number of the error, and counts.
            let small = figure.parse::<u32>().is_ok_and(|n| n <= 31 || n == 999);
            // When a GPU was lost.
            let time = figure.matches(':').count() == 2;
            if !true_figures.contains(figure) && !small && !time {
                wrong.push(format!("{case}: the {name} shows {figure}"));
            }
        }
    }
    wrong
}

/// Whether what is absent is said to be.
pub(super) fn unsaid(shown: &Shown, error: Option<&SourceError>, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let gpus = shown.json["gpus"].as_array().unwrap();
    let missing = |gpu: &Value| {
        gpu["memory"]["used_bytes"].is_object() || gpu["listed_processes"].is_object()
    };
    if gpus.iter().any(missing) {
        for (name, text) in [("screen", &shown.screen), ("triage", &shown.triage)] {
            if !has_reason(text) {
                wrong.push(format!("{case}: the {name} gives no reason:\n{text}"));
            }
        }
    }
    if gpus.is_empty() {
        // The view's page of a machine without a driver is made of this.
        let tree = tempfile::tempdir().unwrap();
        let said = error.map(|error| absent_below(tree.path(), error, "libnvidia-ml.so.1").text());
        if !said.as_deref().is_some_and(has_reason) {
            wrong.push(format!("{case}: no GPU and no reason: {said:?}"));
        }
    }
    wrong
}

/// What is right to show after so many looks.
struct Truth {
    /// With all that the driver can say, and with its old call for memory, whose `used` counts what
    /// it reserves.
    whole: [Vec<Shown>; 2],
    /// Without the list of graphics processes, of MPS clients, of both: right where that is said.
    partial: [Vec<Shown>; 3],
}

static TRUTH: LazyLock<Truth> = LazyLock::new(|| {
    let session = |fault: &str| {
        let fake = Fake::new(&format!("{MACHINE}{fault}"));
        let mut session = Session::new(&fake);
        let look = |_| {
            session.look();
            session.shown()
        };
        (0..80).map(look).collect::<Vec<_>>()
    };
    let (graphics, mps) = ("nvmlDeviceGetGraphicsRunning*", "nvmlDeviceGetMPSComputeRunning*");
    let both = error(graphics, None, 4) + &error(mps, None, 4);
    Truth {
        whole: [session(""), session(&error("nvmlDeviceGetMemoryInfo_v2", None, 3))],
        partial: [
            session(&error(graphics, None, 4)),
            session(&error(mps, None, 4)),
            session(&both),
        ],
    }
});

impl Truth {
    fn after(&self, ticks: u64, partial: bool) -> Vec<&Shown> {
        let n = ticks as usize - 1;
        let partial = self.partial.iter().filter(|_| partial);
        self.whole.iter().chain(partial).map(|all| &all[n]).collect()
    }
}
