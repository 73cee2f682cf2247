//! The fixes in order, each with the bytes it gives where they can be computed, and the exact line
//! for this software. What cannot help here is left out, and named.

mod beyond;
mod fill;
mod lines;
mod lines_model;
mod lines_step;
mod running;
mod useless;

use serde::Serialize;

use super::clues::Mark;
use super::diagnose::{Diagnosis, Finding};
use super::engines::is_training;
use super::figures::Slot;
use super::judge::Case;
use super::numbers::Numbers;
use super::signatures::Stage;
use lines::Row;

pub use lines::When;
pub use running::line_for;

pub(super) use useless::useless;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Which of the nine fixes; 0 for what is none of them.
    pub fix: u8,
    /// In a few words.
    pub title: &'static str,
    /// What it would free on the device, in bytes, where it can be computed.
    pub saves_bytes: Option<u64>,
    /// How that figure is meant.
    pub saves: Option<Saves>,
    /// The line to type or to change.
    pub line: String,
    /// What else to know about that line.
    pub note: Option<String>,
    /// What it costs.
    pub cost: &'static str,
}

/// How a number of bytes is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Saves {
    /// It follows from printed figures.
    Exact,
    /// Not more than that.
    AtMost,
    /// Arithmetic with an assumption.
    About,
}

/// The titles of the nine fixes.
pub const TITLES: [&str; 9] = [
    "Shorten the context, or shrink its cache",
    "Load the weights in 4 bits",
    "Find what really holds the VRAM",
    "Smaller batch, picture or sequence per step",
    "Move layers to the CPU",
    "Undo fragmentation, drop references",
    "Gradient checkpointing",
    "Close what else uses the GPU on the desktop",
    "Accept that it does not fit",
];

fn title(fix: u8, case: &Case, finding: &Finding) -> &'static str {
    match (fix, finding.diagnosis) {
        (6, Diagnosis::UnknownGpuOom) => "Lift the other limit",
        (6, Diagnosis::Fragmentation) => "Undo fragmentation",
        (6, Diagnosis::LeakOrGrowth) if case.software == "onnxruntime" => {
            "Renew the session, or let its arena shrink"
        }
        (6, Diagnosis::LeakOrGrowth) => "Drop the references that keep memory",
        (2, _) if case.has(Mark::FourBit) => "Smaller weights still",
        (2, _) if case.stage == Stage::Optimizer => {
            "Smaller optimizer state, or LoRA on 4-bit weights"
        }
        (2, _) if case.software == "sglang" => "A larger share for the server, or 4-bit weights",
        (3, _) if matches!(case.stage, Stage::Collective) => "Give the pool a smaller share",
        (1, _) if case.stage == Stage::Capture => "Give the cache a smaller share",
        _ => TITLES.get(usize::from(fix).wrapping_sub(1)).copied().unwrap_or("See the explanation"),
    }
}

/// The fixes of a finding.
pub(super) fn advise(case: &Case, n: &Numbers, finding: &Finding) -> Vec<Advice> {
    let mut advice: Vec<Advice> = finding
        .fixes
        .iter()
        .filter_map(|fix| {
            let (line, cost) = line(*fix, case, n, finding)?;
            let (line, note) = noted(&line);
            let saves = fill::saves(*fix, case, n, finding);
            Some(Advice {
                fix: *fix,
                title: title(*fix, case, finding),
                saves_bytes: saves.map(|(bytes, _)| bytes),
                saves: saves.map(|(_, how)| how),
                line,
                note,
                cost,
            })
        })
        .collect();
    advice.extend(beyond::beyond(case, finding));
    advice
}

/// A line, and what stands behind it after three spaces.
fn noted(text: &str) -> (String, Option<String>) {
    match text.split_once("   ") {
        Some((line, note)) => {
            let note = note.trim();
            let inner = note.strip_prefix('(').and_then(|note| note.strip_suffix(')'));
            (line.to_owned(), Some(inner.unwrap_or(note).to_owned()))
        }
        None => (text.to_owned(), None),
    }
}

fn line(fix: u8, case: &Case, n: &Numbers, finding: &Finding) -> Option<(String, &'static str)> {
    lines::rows()
        .filter(|row| row.fix == fix && fits(row, case, n, finding))
        .find_map(|row| Some((fill::filled(row.line, case, n)?, row.cost)))
}

fn fits(row: &Row, case: &Case, n: &Numbers, finding: &Finding) -> bool {
    let family = match case.software {
        "koboldcpp" => "llama.cpp",
        "pytorch-mps" | "pytorch-xpu" | "pytorch-directml" => "pytorch",
        other => other,
    };
    if row.software != "*" && row.software != family {
        return false;
    }
    match row.when {
        When::Always => true,
        When::Training => is_training(case),
        When::Attention => case.stage == Stage::Attention,
        When::Loss => case.stage == Stage::Loss,
        When::Decode => case.stage == Stage::Decode,
        When::Capture => case.stage == Stage::Capture,
        When::Optimizer => case.stage == Stage::Optimizer,
        When::Fragmented => finding.diagnosis == Diagnosis::Fragmentation,
        // Expandable segments came with 2.1, whose messages name reserved memory by its rest.
        When::FragmentedOld => {
            finding.diagnosis == Diagnosis::Fragmentation
                && case.figures.get(Slot::Reserved).is_some()
                && case.stage != Stage::Collective
        }
        When::FragmentedNoVirtualMemory => {
            let without = [Mark::Wsl, Mark::Jetson, Mark::Windows];
            finding.diagnosis == Diagnosis::Fragmentation && without.iter().any(|m| case.has(*m))
        }
        When::Growing => finding.diagnosis == Diagnosis::LeakOrGrowth,
        When::Siblings => n.siblings(),
        When::Collective => case.stage == Stage::Collective,
        When::ReserveSet => case.figures.get(Slot::Reserve).is_some(),
        When::NoVirtualMemory => {
            (case.has(Mark::Wsl) || case.has(Mark::Jetson))
                && finding.diagnosis == Diagnosis::UnknownGpuOom
        }
        When::MapsFull => case.has(Mark::MapsFull),
        When::AlreadyExpandable => {
            case.has(Mark::ExpandableOn) && finding.diagnosis == Diagnosis::Fragmentation
        }
        When::FlashOff => case.has(Mark::FlashAttentionOff),
        When::Float32 => case.has(Mark::Float32),
        // These are said of processes that run, not of messages.
        When::LongContext
        | When::Unused
        | When::WideCache
        | When::ManySlots
        | When::WideWeights
        | When::Preallocated
        | When::Releasable
        | When::Experts
        | When::Room
        | When::Desktop
        | When::Slice
        | When::Quota
        | When::NoCaching => false,
    }
}
