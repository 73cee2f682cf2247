//! What can and cannot be seen on a machine, line by line, and how to mend it.
//!
//! One table of checks; text and JSON come from it. Each check is a pure function of what the
//! machine shows and of one look at the driver.

mod driver;
mod kinds;
mod power;
mod sight;

use serde::Serialize;

use crate::analyze::View;
use crate::ids::GpuIndex;
use crate::report::Style;
use crate::report::clean::{clean, clean_for, width, wrap};
use crate::sample::{Absence, MachineFacts};

/// The number of the JSON's contract; within one number keys are only added.
pub const SCHEMA: u32 = 1;

/// How the driver answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It did.
    Answered,
    /// It could not be asked.
    Failed {
        /// In words.
        error: String,
        /// Of which kind, as far as other lines depend on it.
        fault: Fault,
        /// What the machine shows in its place.
        absence: Absence,
    },
    /// It has not returned.
    Hung {
        /// From which call, where that is known.
        call: Option<String>,
        /// On which GPU.
        gpu: Option<GpuIndex>,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// It was not asked, since that would wake a GPU.
    NotAsked,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The library cannot be loaded.
    NoLibrary,
    /// Library and kernel module are of different versions.
    Mismatch,
    /// Any other.
    Other,
}

/// What is examined.
#[derive(Debug, Clone, Copy)]
pub struct Patient<'a> {
    /// The machine.
    pub machine: &'a MachineFacts,
    /// The driver.
    pub driver: &'a Answer,
    /// One look at GPUs and processes; empty where the driver did not answer.
    pub view: &'a View,
}

impl Patient<'_> {
    const fn answered(&self) -> bool {
        matches!(self.driver, Answer::Answered)
    }

    /// Whether the driver is there at all: one that hangs is.
    const fn is_there(&self) -> bool {
        matches!(self.driver, Answer::Answered | Answer::Hung { .. })
    }

    const fn failed_by(&self, wanted: Fault) -> bool {
        match self.driver {
            Answer::Failed { fault, .. } => *fault as u8 == wanted as u8,
            _ => false,
        }
    }

    /// The runtime of the container that this runs in.
    fn runtime(&self) -> Option<&str> {
        self.machine.host.container.as_ref().map(|container| container.runtime.as_str())
    }
}

/// How well something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should.
    Ok,
    /// With less than could be.
    Limited,
    /// Not at all.
    Broken,
}

impl State {
    /// As in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Broken => "broken",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Stable key.
    pub key: &'static str,
    /// In words.
    pub title: &'static str,
    /// How well it works.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do, the best first; empty where all is well.
    pub mend: Vec<String>,
}

/// What a check says; [`examine`] adds its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    state: State,
    found: String,
    mend: Vec<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "what a check returns")]
fn ok(found: impl Into<String>) -> Option<Said> {
    Some(Said { state: State::Ok, found: found.into(), mend: Vec::new() })
}

#[expect(clippy::unnecessary_wraps, reason = "what a check returns")]
fn limited<M: Into<String>>(
    found: impl Into<String>,
    mend: impl IntoIterator<Item = M>,
) -> Option<Said> {
    let mend = mend.into_iter().map(Into::into).collect();
    Some(Said { state: State::Limited, found: found.into(), mend })
}

#[expect(clippy::unnecessary_wraps, reason = "what a check returns")]
fn broken<M: Into<String>>(
    found: impl Into<String>,
    mend: impl IntoIterator<Item = M>,
) -> Option<Said> {
    let mend = mend.into_iter().map(Into::into).collect();
    Some(Said { state: State::Broken, found: found.into(), mend })
}

/// Where there is nothing to do about it.
const NOTHING: [&str; 0] = [];

type Check = fn(&Patient<'_>) -> Option<Said>;

/// Every check, in the order of the report: key, title, and what it says. `None` is: does not
/// apply here.
const CHECKS: &[(&str, &str, Check)] = &[
    ("driver", "driver", driver::driver),
    ("versions", "versions", driver::versions),
    ("module", "kernel module", driver::module),
    ("library", "library", driver::library),
    ("devices", "device files", driver::devices),
    ("pci", "GPUs on the bus", driver::pci),
    ("lost", "lost GPUs", driver::lost),
    ("answer", "time to answer", power::answer),
    ("persistence", "persistence", power::persistence),
    ("sleep", "sleeping GPUs", power::sleep),
    ("container", "container", sight::container),
    ("pid_namespace", "PID namespace", sight::pid_namespace),
    ("hidepid", "hidden processes", sight::hidepid),
    ("ptrace", "ptrace", sight::ptrace),
    ("verdicts", "verdicts", sight::verdicts),
    ("gauges", "gauges", sight::gauges),
    ("signals", "ending processes", sight::signals),
    ("mig", "MIG", kinds::mig),
    ("mps", "MPS", kinds::mps),
    ("wsl", "WSL2", kinds::wsl),
    ("unified_memory", "unified memory", kinds::unified),
];

/// Every line that applies.
pub fn examine(patient: &Patient<'_>) -> Vec<Line> {
    CHECKS
        .iter()
        .filter_map(|(key, title, check)| {
            let said = check(patient)?;
            let mend = said.mend.iter().map(|line| clean(line)).collect();
            Some(Line { key, title, state: said.state, found: clean(&said.found), mend })
        })
        .collect()
}

/// The whole report as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program.
    pub version: &'static str,
    /// The worst state of all lines.
    pub state: State,
    /// The lines.
    pub lines: &'a [Line],
}

impl<'a> Report<'a> {
    /// Of these lines.
    pub fn new(lines: &'a [Line]) -> Self {
        Self { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), state: worst(lines), lines }
    }
}

/// The worst state.
pub fn worst(lines: &[Line]) -> State {
    lines.iter().map(|line| line.state).max().unwrap_or(State::Ok)
}

/// As text: state, title, what was found; below it what to do, said once.
pub fn text(lines: &[Line], style: &Style) -> String {
    const STATE: usize = 9;
    let title = lines.iter().map(|line| width(line.title)).max().unwrap_or(0) + 2;
    let room = style.width.saturating_sub(STATE + title).max(20);
    let arrow = if style.ascii { "->" } else { "→" };
    let mut said: Vec<&str> = Vec::new();
    let mut out = String::new();
    for line in lines {
        let found = wrap(&clean_for(&line.found, style.ascii), room);
        for (n, part) in found.iter().enumerate() {
            let (state, name) = if n == 0 { (line.state.word(), line.title) } else { ("", "") };
            out += &format!("{state:<STATE$}{name:<title$}{part}\n");
        }
        for mend in &line.mend {
            if said.contains(&mend.as_str()) {
                continue;
            }
            said.push(mend);
            for (n, part) in steps(mend, style).into_iter().enumerate() {
                let lead = if n == 0 { arrow } else { "" };
                out += &format!("{:STATE$}{lead:<width$} {part}\n", "", width = width(arrow));
            }
        }
    }
    out + "\n" + &summary(lines) + "\n"
}

/// Prose that quotes what to type is wrapped; a line to type is never cut nor broken.
fn steps(mend: &str, style: &Style) -> Vec<String> {
    let mend = clean_for(mend, style.ascii);
    if mend.contains('`') {
        wrap(&mend, style.width.saturating_sub(12).max(20))
    } else {
        vec![mend]
    }
}

fn summary(lines: &[Line]) -> String {
    let count = |state| lines.iter().filter(|line| line.state == state).count();
    let parts: Vec<String> = [State::Broken, State::Limited, State::Ok]
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| format!("{} {}", count(state), state.word()))
        .collect();
    parts.join(", ")
}

/// `GPU 0`, `GPUs 0, 2 and 3`.
fn gpus(numbers: &[GpuIndex]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [] => "no GPU".to_owned(),
        [one] => format!("GPU {one}"),
        [most @ .., last] => format!("GPUs {} and {last}", most.join(", ")),
    }
}
