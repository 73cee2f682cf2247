//! An answer does not contradict itself, its figures add up, and what it says to type can be typed.

#![allow(clippy::unwrap_used, reason = "helpers of tests, not tests themselves")]

#[path = "explain_answers/advice.rs"]
mod advice;
#[path = "explain_answers/present.rs"]
mod present;
#[path = "explain_answers/short.rs"]
mod short;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use vramlens::oom::{self, Explanation};

const MIB: u64 = 1 << 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/oom")
}

/// Every file of the corpus: its name and its answer.
static ALL: LazyLock<Vec<(String, Explanation)>> = LazyLock::new(|| {
    let mut all: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, oom::explain(&std::fs::read(&path).unwrap()))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(all.len() > 70);
    all
});

fn all() -> impl Iterator<Item = (&'static str, &'static Explanation)> {
    ALL.iter().map(|(name, answer)| (name.as_str(), answer))
}

/// The answer to the file with this number.
fn file(number: &str) -> &'static Explanation {
    all().find(|(name, _)| name.starts_with(number)).unwrap().1
}

/// Its text, every run of white space one space.
fn told(answer: &Explanation) -> String {
    oom::report(answer).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line(answer: &Explanation, fix: u8) -> Option<&str> {
    answer.advice.iter().find(|advice| advice.fix == fix).map(|advice| advice.line.as_str())
}

fn note(answer: &Explanation, fix: u8) -> &str {
    let found = answer.advice.iter().find(|advice| advice.fix == fix);
    found.and_then(|advice| advice.note.as_deref()).unwrap_or_default()
}

fn useless(answer: &Explanation, start: &str) -> bool {
    answer.will_not_help.iter().any(|line| line.starts_with(start))
}

const RAM: &str = "More system RAM";

/// A message of PyTorch with these figures, in MiB, and what stands after it.
fn torch([asked, total, free, this]: [u64; 4], others: &[(u32, u64)], after: &str) -> Explanation {
    let mut named = String::new();
    for (pid, mib) in others {
        write!(named, "Process {pid} has {mib}.00 MiB memory in use. ").unwrap();
    }
    let allocated = this.saturating_sub(300);
    let text = format!(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}.00 MiB. GPU 0 has a \
         total capacity of {total}.00 MiB of which {free}.00 MiB is free. {named}Including \
         non-PyTorch memory, this process has {this}.00 MiB memory in use. Of the allocated memory \
         {allocated}.00 MiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but \
         unallocated.\n{after}"
    );
    oom::explain(text.as_bytes())
}

#[test]
fn what_is_short_is_said_in_one_way_and_the_margin_has_a_name() {
    for (name, answer) in all() {
        let text = told(answer);
        assert!(!text.contains("missing"), "{name}: {text}");
        let (Some(short), Some(aim)) = (answer.short_bytes, answer.deficit_bytes) else { continue };
        let margin = (256 * MIB).max(answer.total_bytes.unwrap_or_default() / 50);
        assert_eq!(aim, short + margin, "{name}");
        let said = |lead: &str| -> Vec<String> {
            let words = text.split(lead).skip(1).map(|rest| rest.split(' '));
            words.map(|words| words.take(2).collect::<Vec<_>>().join(" ")).collect()
        };
        let said = said("short by at least ");
        assert!(!said.is_empty() && said.iter().all(|one| *one == said[0]), "{name}: {said:?}");
        assert!(text.contains("with a margin of "), "{name}: {text}");
    }
    let text = told(file("016"));
    assert!(
        text.contains("short by at least 85 MiB aim for 1.03 GiB more, with a margin of 971 MiB")
    );
}

#[test]
fn more_ram_is_not_called_useless_where_it_is_the_gpus_memory_or_was_not_short() {
    for number in ["005", "018", "019", "021", "025", "029", "031", "098", "102", "103"] {
        assert!(!useless(file(number), RAM), "{number}");
    }
    for number in ["007", "016", "085", "113"] {
        assert!(useless(file(number), RAM), "{number}");
    }
    for (name, answer) in all() {
        let shared = matches!(answer.platform, Some("jetson" | "wsl2" | "windows"));
        assert!(!useless(answer, RAM) || !(shared || answer.refused_with_room), "{name}");
    }
}

#[test]
fn the_hosts_memory_is_not_told_of_by_what_the_gpu_had_where_nobody_said_it() {
    let killed = oom::explain(b"Killed\n");
    assert!(killed.will_not_help.is_empty(), "{:?}", killed.will_not_help);
    assert!(told(&killed).starts_with("Host memory most likely ran out"));
    for (name, answer) in all() {
        let figure = answer.will_not_help.iter().any(|line| line.contains("the GPU had"));
        let gpu = answer.will_not_help.iter().any(|line| line.contains("was not full"));
        assert!(!gpu && (!figure || answer.free_bytes.is_some()), "{name}");
    }
    assert!(told(file("026")).contains("the GPU had 3.48 GiB free."));
    // There the rest of the model would go to the GPU: more room on it does help.
    assert!(file("077").will_not_help.is_empty());
}

#[test]
fn what_is_advised_is_not_called_useless() {
    for (name, answer) in all() {
        for (fix, start) in [(4, "A smaller batch"), (7, "Gradient checkpointing"), (3, "Ending")] {
            let both = line(answer, fix).is_some() && useless(answer, start);
            // Checkpointing and a smaller batch of a loop that grows only delay the end.
            assert!(!both, "{name}: {fix} {:?}", answer.will_not_help);
        }
    }
}

#[test]
fn a_cause_that_is_told_is_not_called_untold() {
    for (number, cause) in [
        ("021", "expandable segments"),
        ("038", "handle of a library"),
        ("042", "the pool that XLA takes"),
        ("025", "memory maps"),
    ] {
        let text = told(file(number));
        assert!(!text.contains("the log does not tell"), "{number}");
        let why = text.split_once("WHY: ").unwrap().1;
        let why = why.split_once(" (").unwrap().0;
        assert!(why.contains(cause), "{number}: {why}");
    }
    let wsl = told(file("021"));
    assert!(wsl.starts_with("GPU memory was refused, most likely with room left"), "{wsl}");
    assert!(wsl.contains("the log shows 2.89 GiB of 8.00 GiB in use"), "{wsl}");
    for (name, answer) in all() {
        let text = told(answer);
        let ran_out = text.starts_with("GPU memory ran out");
        assert!(!(ran_out && answer.refused_with_room), "{name}");
        let caught = answer.why.iter().any(|why| why.contains("the program caught it"));
        assert_eq!(text.starts_with("GPU memory ran short, and it went on"), caught, "{name}");
    }
}

/// Short messages, as they come alone.
fn said(text: &str) -> Explanation {
    oom::explain(text.as_bytes())
}
