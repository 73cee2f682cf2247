//! The fixes in order, each with the bytes it gives where they can be computed, and the exact line
//! for this software. What cannot help here is left out, and named.

mod beyond;
mod fill;
mod holds;
mod lines;
mod lines_model;
mod lines_rest;
mod lines_step;
mod present;
mod running;
mod shares;
mod shell;
mod useless;

use serde::Serialize;

use super::clues::Mark;
use super::diagnose::{Diagnosis, Finding};
use super::judge::Case;
use super::numbers::Numbers;
use super::signatures::Stage;
use lines::Row;

pub use lines::When;
pub use running::{line_for, of_transformers};

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
    /// Whether that reaches what is short at least, where both are known.
    pub enough: Option<bool>,
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

fn title(row: &Row, case: &Case, n: &Numbers, finding: &Finding) -> &'static str {
    let fix = row.fix;
    match (fix, finding.diagnosis) {
        (6, _) if holds::is_share(case, finding) => "Raise this process's share",
        (6, _) if holds::holds(When::NoVirtualMemory, case, n, finding) => {
            "Turn expandable segments off"
        }
        (6, Diagnosis::UnknownGpuOom) => "Lift the other limit",
        (6, Diagnosis::Fragmentation) if case.stage == Stage::Collective => "Give the cache back",
        (6, Diagnosis::Fragmentation) => "Undo fragmentation",
        (6, Diagnosis::LeakOrGrowth) if case.software == "onnxruntime" => {
            "Renew the session, or let its arena shrink"
        }
        (6, Diagnosis::LeakOrGrowth) => "Drop the references that keep memory",
        (2, _) if case.has(Mark::FourBit) => "Smaller weights still",
        (2, _) if row.when == When::Optimizer && row.software == "deepspeed" => {
            "Keep the optimizer's state in host RAM"
        }
        (2, _) if case.stage == Stage::Optimizer && case.has(Mark::Lora) => {
            "Smaller optimizer state"
        }
        (2, _) if case.stage == Stage::Optimizer => {
            "Smaller optimizer state, or LoRA on 4-bit weights"
        }
        (2, _) if matches!(row.when, When::Float32 | When::HfFloat32) => {
            "Load the weights in 16 bits"
        }
        (2, _) if case.software == "sglang" => "A larger share for the server, or 4-bit weights",
        (3, _)
            if case.software == "jax"
                && matches!(case.stage, Stage::Collective | Stage::Capture) =>
        {
            "Give the pool a smaller share"
        }
        (3, Diagnosis::NotOom) => "See who else uses the device",
        (1, _)
            if matches!(case.stage, Stage::Capture | Stage::Startup)
                || (case.software == "vllm" && case.stage == Stage::Warmup) =>
        {
            "Give the cache a smaller share"
        }
        (1, _) if case.software == "vllm" && case.stage == Stage::Weights => {
            "Give the server a larger share"
        }
        (1, _) if case.stage == Stage::TokenPool => "Shrink what a token takes of the pool",
        (8, _) if n.nothing_to_close() => "Do without a desktop",
        _ => TITLES.get(usize::from(fix).wrapping_sub(1)).copied().unwrap_or("See the explanation"),
    }
}

/// The fixes of a finding: no line twice.
pub(super) fn advise(case: &Case, n: &Numbers, finding: &Finding) -> Vec<Advice> {
    let mut advice: Vec<Advice> = Vec::new();
    for fix in &finding.fixes {
        let Some((line, row)) = line(*fix, case, n, finding) else { continue };
        let (line, note) = noted(&line);
        let line = shell::of(case, line);
        if advice.iter().any(|other| other.line == line) {
            continue;
        }
        let saves = fill::saves(row, case, n, finding);
        let bytes = saves.map(|(bytes, _)| bytes);
        advice.push(Advice {
            fix: *fix,
            title: title(row, case, n, finding),
            saves_bytes: bytes,
            saves: saves.map(|(_, how)| how),
            enough: bytes.zip(n.short()).map(|(bytes, short)| bytes >= short),
            line,
            note,
            cost: row.cost,
        });
    }
    // What is not enough comes after what may be; giving up stays last where it is.
    let last = finding.fixes.last() == Some(&9);
    advice.sort_by_key(|advice| (last && advice.fix == 9, advice.enough == Some(false)));
    advice.extend(beyond::beyond(case, n, finding));
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

fn line(fix: u8, case: &Case, n: &Numbers, finding: &Finding) -> Option<(String, &'static Row)> {
    lines::rows()
        .filter(|row| row.fix == fix && fits(row, case, n, finding))
        .find_map(|row| Some((fill::filled(row.line, case, n)?, row)))
}

fn fits(row: &Row, case: &Case, n: &Numbers, finding: &Finding) -> bool {
    let family = match case.software {
        "koboldcpp" => "llama.cpp",
        "pytorch-mps" | "pytorch-xpu" | "pytorch-directml" | "pytorch-rocm" | "deepspeed" => {
            "pytorch"
        }
        other => other,
    };
    if !["*", family, case.software].contains(&row.software) {
        return false;
    }
    holds::holds(row.when, case, n, finding)
}
