//! The answer.

use serde::Serialize;

use super::advice::{self, Advice};
use super::diagnose::{self, Confidence, Diagnosis};
use super::events::Event;
use super::facts;
use super::figures::Slot;
use super::judge::{Case, Outcome};
use super::ledger::{self, Ledger};
use super::lines::Line;
use super::live::Live;
use super::numbers::Numbers;
use super::signatures::{Class, Stage};
use crate::analyze::xid;

/// Longest quotation of a log, in characters.
const QUOTE_MAX: usize = 400;

/// A process that the message or a table beside it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherProcess {
    /// Its number, as the driver saw it.
    pub pid: u32,
    /// What it holds, in bytes.
    pub bytes: Option<u64>,
    /// Its name, where the log has it. Cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Most likely the failing process itself, seen from outside its container.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub self_likely: bool,
}

/// A place in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// Where its line begins, in bytes from the start of the input.
    pub offset: u64,
    /// The line, cleaned and cut.
    pub text: String,
    /// Key of the message in the table of signatures.
    pub signature: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// What happened, who held what, why, and what to do. Sizes are bytes; what the log does not say is
/// absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Whose failure it is: `pytorch`, `vllm`, `llama.cpp`, …; `none` where it is nobody's.
    pub software: &'static str,
    /// Its version, where the log prints it.
    pub version: Option<String>,
    /// The versions that word the message like this.
    pub wording: Option<&'static str>,
    /// Whether a GPU's memory ran out and that ended something.
    pub is_gpu_oom: bool,
    /// Whether anything known was found.
    pub recognised: bool,
    /// The message is cut off: figures may be missing.
    pub incomplete: bool,
    /// The device as the program counts.
    pub device: Option<u64>,
    /// What was asked for.
    pub requested_bytes: Option<u64>,
    /// Capacity of the device, or of the pool that the message tells of.
    pub total_bytes: Option<u64>,
    /// Free on the device.
    pub free_bytes: Option<u64>,
    /// In live tensors.
    pub allocated_bytes: Option<u64>,
    /// Taken by the allocator.
    pub reserved_bytes: Option<u64>,
    /// Taken by the allocator and not in use.
    pub reserved_unallocated_bytes: Option<u64>,
    /// A limit below the device's.
    pub allowed_bytes: Option<u64>,
    /// Of what is allocated: in private pools.
    pub private_pools_bytes: Option<u64>,
    /// This process as the driver counts.
    pub this_process_bytes: Option<u64>,
    /// Everybody else whom the log names.
    pub other_processes: Vec<OtherProcess>,
    /// What others must hold where they are not named.
    pub implied_other_bytes: Option<u64>,
    /// Memory beside the framework's, not told apart.
    pub other_allocations_bytes: Option<u64>,
    /// Host memory that was asked for.
    pub requested_host_bytes: Option<u64>,
    /// Host memory that was available.
    pub available_host_bytes: Option<u64>,
    /// What a killed process had in RAM.
    pub host_rss_bytes: Option<u64>,
    /// Weights on the device.
    pub weights_bytes: Option<u64>,
    /// Cache of keys and values that is needed.
    pub kv_needed_bytes: Option<u64>,
    /// Cache that there is room for.
    pub kv_available_bytes: Option<u64>,
    /// Tokens that were wanted from a pool.
    pub kv_tokens_needed: Option<u64>,
    /// Tokens that the pool had.
    pub kv_tokens_available: Option<u64>,
    /// The longest context that fits.
    pub suggested_max_len: Option<u64>,
    /// What is short, at least: the message is of the first request that failed.
    pub short_bytes: Option<u64>,
    /// What to free for it: what is short, and a margin.
    pub deficit_bytes: Option<u64>,
    /// The device had room for the request: something else refused it.
    pub refused_with_room: bool,
    /// `wsl2`, `jetson`, `windows`, `rocm`, `mig`, where it matters.
    pub platform: Option<&'static str>,
    /// What the log shows to be set already.
    pub settings: Vec<&'static str>,
    /// The cause.
    pub diagnosis: Diagnosis,
    /// The cause in words, where it is known more exactly than the diagnosis says it.
    pub cause: Option<&'static str>,
    /// How sure that is.
    pub confidence: Confidence,
    /// The arithmetic and the evidence, a sentence each.
    pub why: Vec<String>,
    /// Who held what.
    pub ledger: Option<Ledger>,
    /// Numbers of the nine fixes, the best first.
    pub fixes: Vec<u8>,
    /// The fixes with bytes and lines, and what is none of the nine.
    pub advice: Vec<Advice>,
    /// What is often tried and cannot help here.
    pub will_not_help: Vec<String>,
    /// How often the deciding message stands in the input.
    pub occurrences: u64,
    /// The first error of any kind that was recognised.
    pub first: Option<Quote>,
    /// The message that decided.
    pub decisive: Option<Quote>,
    /// What this machine shows now, where it was asked.
    pub live: Option<Live>,
    /// The line nearest to an error, where nothing was recognised.
    pub nearest: Option<String>,
    /// How many texts were looked for.
    pub looked_for: u64,
    /// How much was read, in bytes.
    pub bytes_read: u64,
    /// Stretches around further errors that were only counted: the first and the last are read.
    pub stretches_only_counted: u64,
}

impl Explanation {
    /// Explains a case.
    pub(super) fn new(case: &Case) -> Self {
        let n = Numbers::of(case);
        let finding = diagnose::diagnose(case, &n);
        let get = |slot| case.figures.get(slot);
        let of_pool = |slot| get(slot).filter(|_| case.stage == Stage::TokenPool);
        let event = case.event();
        let advice = advice::advise(case, &n, &finding);
        Self {
            software: case.software,
            version: facts::version(case),
            wording: facts::wording(case),
            is_gpu_oom: case.outcome == Outcome::Gpu,
            recognised: case.outcome != Outcome::Nothing,
            incomplete: event.is_some_and(|event| event.cut) && !is_harmless(case),
            device: get(Slot::Device),
            requested_bytes: n.requested,
            total_bytes: n.total,
            free_bytes: n.free,
            allocated_bytes: n.allocated,
            reserved_bytes: n.reserved,
            reserved_unallocated_bytes: n.unallocated,
            allowed_bytes: n.allowed,
            private_pools_bytes: n.private_pools,
            this_process_bytes: n.this_process,
            other_processes: others(&n),
            implied_other_bytes: n.implied_others,
            other_allocations_bytes: get(Slot::OtherAllocations),
            requested_host_bytes: get(Slot::HostRequested),
            available_host_bytes: get(Slot::HostAvailable),
            host_rss_bytes: get(Slot::HostRss),
            weights_bytes: get(Slot::Weights),
            kv_needed_bytes: get(Slot::KvNeeded),
            kv_available_bytes: get(Slot::KvAvailable),
            kv_tokens_needed: of_pool(Slot::TokensNeeded),
            kv_tokens_available: of_pool(Slot::TokensAvailable),
            suggested_max_len: get(Slot::SuggestedLength),
            short_bytes: n.short().filter(|_| case.outcome == Outcome::Gpu),
            deficit_bytes: n.aim().filter(|_| case.outcome == Outcome::Gpu),
            refused_with_room: finding.refused,
            platform: facts::platform(case),
            settings: facts::settings(case),
            diagnosis: finding.diagnosis,
            cause: finding.cause,
            confidence: finding.confidence,
            why: finding.why.clone(),
            ledger: ledger::ledger(case, &n),
            fixes: advice.iter().map(|advice| advice.fix).filter(|fix| *fix > 0).collect(),
            will_not_help: advice::useless(case, &n, &finding),
            advice,
            occurrences: occurrences(case),
            first: first(case).map(|event| quote(case, event)),
            decisive: event.map(|event| quote(case, event)),
            live: None,
            nearest: nearest(case),
            looked_for: super::condense::needles() as u64,
            bytes_read: case.digest.bytes,
            stretches_only_counted: case.digest.lost_blocks,
        }
    }

    /// What `vramlens explain` ends with: 1 where an out-of-memory error of a GPU was explained, 0
    /// where it was something else, 2 where nothing was recognised.
    pub fn exit_code(&self) -> u8 {
        match (self.recognised, self.is_gpu_oom) {
            (false, _) => 2,
            (true, true) => 1,
            (true, false) => 0,
        }
    }
}

fn others(n: &Numbers) -> Vec<OtherProcess> {
    n.others
        .iter()
        .map(|other| OtherProcess {
            pid: other.pid,
            bytes: other.bytes,
            name: other.name.clone(),
            self_likely: other.self_likely,
        })
        .collect()
}

/// Nothing has ended for it.
const fn is_harmless(case: &Case) -> bool {
    matches!(case.outcome, Outcome::Recovered | Outcome::Mention | Outcome::Nothing)
}

/// As the first pass counted over the whole input, or as the second one found in the digest.
fn occurrences(case: &Case) -> u64 {
    let Some(event) = case.event() else { return 0 };
    let found = case.events.iter().filter(|other| other.signature.id == event.signature.id).count();
    let anchor = event.signature.anchors.first();
    let counted =
        anchor.and_then(|anchor| case.digest.counts.get(anchor)).copied().unwrap_or_default();
    (found as u64).max(counted)
}

fn first(case: &Case) -> Option<&Event> {
    case.events.iter().find(|event| {
        !matches!(event.signature.class, Class::Detail | Class::Wrapper | Class::Recovered)
    })
}

fn quote(case: &Case, event: &Event) -> Quote {
    // A place in a source file comes before the error's own words.
    let place = |line: &&Line| !line.body().trim_start().starts_with("File \"");
    let lines = &case.digest.lines;
    let line = lines.get(event.line).filter(place).or_else(|| lines.get(event.last_line));
    Quote {
        offset: line.map_or(0, |line| line.offset),
        text: line.map(|line| cut(line.body().trim())).unwrap_or_default(),
        signature: event.signature.id,
        meaning: xid_meaning(case, event).unwrap_or(event.signature.meaning),
    }
}

/// What the number in a line such as `NVRM: Xid (PCI:0000:1b:00): 31, pid=…` means.
fn xid_meaning(case: &Case, event: &Event) -> Option<&'static str> {
    let line = case.digest.lines.get(event.line).filter(|_| event.signature.id == "other.xid")?;
    let (_, after) = line.body().split_once("NVRM: Xid (")?.1.split_once("): ")?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let code = after.get(..digits)?.parse().ok()?;
    Some(xid::meaning(code).meaning)
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The last line that speaks of an error, else the last line with text.
fn nearest(case: &Case) -> Option<String> {
    if case.outcome != Outcome::Nothing {
        return None;
    }
    let lines = || case.digest.lines.iter().rev().filter(|line| !line.full.trim().is_empty());
    let speaks = |text: &str| {
        let lower = text.to_ascii_lowercase();
        ["memory", "error", "killed", "failed", "exception"].iter().any(|word| lower.contains(word))
    };
    lines()
        .find(|line| speaks(&line.full))
        .or_else(|| lines().next())
        .map(|line| cut(line.full.trim()))
}
