//! Every call of the stand-in driver, with every error code, a stall, and in pairs: through the real
//! source, the history, the view and the rules to the screen, the report and the JSON.

mod cases;
mod figures;
mod hangs;
mod session;
mod watch;

use std::collections::BTreeSet;

/// The names of all functions of the stand-in, from its source: a new one is walked too.
fn table() -> Vec<String> {
    let sources = [
        include_str!("../../fake_nvml/exports.rs"),
        include_str!("../../fake_nvml/lists.rs"),
        include_str!("../../fake_nvml/events.rs"),
    ];
    let mut names = BTreeSet::new();
    for source in sources {
        for rest in source.split("nvml").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                names.insert(format!("nvml{name}"));
            }
        }
    }
    assert!(names.len() >= 45, "the table was not found: {names:?}");
    names.into_iter().collect()
}

/// Every code of the library (`nvmlReturn_t`) but success, one that it does not know yet, and
/// `NVML_ERROR_UNKNOWN`.
fn codes() -> impl Iterator<Item = u32> {
    (1..=31).chain([999])
}

fn error(call: &str, gpu: Option<u32>, code: u32) -> String {
    let gpu = gpu.map_or_else(String::new, |gpu| format!("gpu = {gpu}\n"));
    format!("[[error]]\ncall = \"{call}\"\n{gpu}code = {code}\n")
}
