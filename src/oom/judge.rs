//! Which of the messages decided: the first one that ended the program.

use super::clues::{self, Mark, Sign};
use super::condense::Digest;
use super::events::{self, Event};
use super::figures::Figures;
use super::growth::Series;
use super::signatures::{Class, Stage};
use super::tables::Tables;

/// Messages this close to each other, in lines of the digest, tell of one failure.
pub(super) const EPISODE: usize = 60;

/// What kind of answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A GPU's memory ran out.
    Gpu,
    /// The host's memory ran out.
    Host,
    /// Something else went wrong.
    Other,
    /// It ran out, and the program went on without harm.
    Recovered,
    /// Only the words were found, in text about such errors.
    Mention,
    /// Nothing was recognised.
    Nothing,
}

/// Everything that the diagnosis is made from.
#[derive(Debug)]
pub(super) struct Case {
    pub digest: Digest,
    pub events: Vec<Event>,
    pub signs: Vec<Sign>,
    pub outcome: Outcome,
    /// The message that decided, as an index of `events`.
    pub decisive: Option<usize>,
    pub figures: Figures,
    pub software: &'static str,
    pub stage: Stage,
    pub growth: Option<Series>,
    pub tables: Tables,
    /// Samples per step, where the log says it.
    pub batch: Option<u64>,
    /// Steps whose gradients make one step of the optimizer, where the log says it.
    pub accumulation: Option<u64>,
}

impl Case {
    /// Reads a digest.
    pub(super) fn new(digest: Digest) -> Self {
        let events = events::find(&digest);
        let signs = clues::find(&digest.lines);
        let mut case = Self {
            digest,
            events,
            signs,
            outcome: Outcome::Nothing,
            decisive: None,
            figures: Figures::default(),
            software: "none",
            stage: Stage::Unknown,
            growth: None,
            tables: Tables::default(),
            batch: None,
            accumulation: None,
        };
        (case.outcome, case.decisive) = case.decide();
        case.gather();
        case
    }

    /// The message that decided.
    pub(super) fn event(&self) -> Option<&Event> {
        self.decisive.and_then(|index| self.events.get(index))
    }

    /// Whether a clue stands anywhere.
    pub(super) fn has(&self, mark: Mark) -> bool {
        self.signs.iter().any(|sign| sign.mark == mark)
    }

    /// Whether a clue stands on one of the lines.
    pub(super) fn has_in(&self, mark: Mark, lines: std::ops::RangeInclusive<usize>) -> bool {
        self.signs.iter().any(|sign| sign.mark == mark && lines.contains(&sign.line))
    }

    fn decide(&self) -> (Outcome, Option<usize>) {
        let indexed = || self.events.iter().enumerate();
        let class = |wanted: Class| indexed().find(|(_, e)| e.signature.class == wanted);
        let gpu: Vec<usize> = indexed()
            .filter(|(_, e)| e.signature.class.is_gpu() && !self.is_speech(e))
            .map(|(index, _)| index)
            .collect();
        let fatal: Vec<usize> =
            gpu.iter().copied().filter(|index| !self.is_recovered(*index)).collect();
        let host = self.host(fatal.last().copied());
        if let Some(first) = self.first_fatal(&fatal) {
            if let Some(cause) = self.cause_of(first) {
                return (Outcome::Other, Some(cause));
            }
            if self.is_on_the_cpu(first) {
                return (Outcome::Host, Some(first));
            }
            return match host {
                Some(host) => (Outcome::Host, Some(host)),
                None => (Outcome::Gpu, Some(first)),
            };
        }
        let killed = class(Class::Killed).map(|(index, _)| index);
        if let Some(host) = host {
            return (Outcome::Host, Some(host));
        }
        if let Some((other, _)) = class(Class::Cause).or_else(|| class(Class::Other)) {
            return (if gpu.is_empty() { Outcome::Other } else { Outcome::Recovered }, Some(other));
        }
        if let Some(killed) = killed {
            return (Outcome::Host, Some(killed));
        }
        let recovered = class(Class::Recovered).map(|(index, _)| index);
        if let Some(index) = gpu.first().copied().or(recovered) {
            return (Outcome::Recovered, Some(index));
        }
        match indexed().find(|(_, e)| e.signature.class.is_gpu()) {
            Some((index, _)) => (Outcome::Mention, Some(index)),
            None => (Outcome::Nothing, None),
        }
    }

    /// The first one with figures of its failure; a bare mention only where there is nothing else.
    fn first_fatal(&self, fatal: &[usize]) -> Option<usize> {
        let strong = |index: &&usize| {
            self.events.get(**index).is_some_and(|e| e.signature.class != Class::Bare)
        };
        let first = fatal.iter().find(strong).or_else(|| fatal.first()).copied()?;
        let event = self.events.get(first)?;
        let near = |index: &usize| {
            self.events.get(*index).is_some_and(|e| e.line <= event.last_line + EPISODE)
        };
        let better = |index: &&usize| {
            self.events.get(**index).is_some_and(|e| {
                let same = e.signature.id == event.signature.id;
                let sized = !event.figures.is_sized() && e.figures.is_sized();
                let whole = event.cut && !e.cut && same && e.writer == event.writer;
                let engine =
                    event.signature.class == Class::Driver && e.signature.class == Class::Engine;
                (sized && event.signature.class != Class::Engine) || whole || engine
            })
        };
        fatal
            .iter()
            .filter(|index| **index > first && near(index))
            .find(better)
            .copied()
            .or(Some(first))
    }

    /// Text about errors: what a model wrote, documentation, somebody's question.
    pub(super) fn is_speech(&self, event: &Event) -> bool {
        let weak = event.cut || matches!(event.signature.class, Class::Bare | Class::Driver);
        let Some(line) = self.digest.lines.get(event.line).filter(|_| weak) else { return false };
        if self.has_in(Mark::Speech, event.line..=event.line) {
            return true;
        }
        let raised = ["Error", "ERROR", "error:", "Exception", "failed", "FAILED", "what():"];
        event.signature.class == Class::Bare
            && !raised.iter().any(|word| line.full.contains(word))
            && line.full.trim_end().len() > event.signature.pattern.len() + 40
    }

    /// The program caught it and went on: it says so at once, or a few lines on and ends well.
    fn is_recovered(&self, index: usize) -> bool {
        let Some(event) = self.events.get(index) else { return false };
        let (from, to) = (event.line, event.last_line + 6);
        let traceback_after = |line: usize| {
            self.digest.lines.get(line).is_some_and(|line| line.full.contains("Traceback (most"))
        };
        let says_so = self.events.iter().any(|other| {
            other.signature.class == Class::Recovered
                && (from..=to).contains(&other.line)
                && !(event.last_line + 1..other.line).any(traceback_after)
        });
        if says_so {
            return true;
        }
        let retrying = self.has_in(Mark::Retrying, from..=to);
        let success = self.signs.iter().rev().find(|sign| sign.mark == Mark::Success);
        let ends_well = success.is_some_and(|sign| {
            sign.line > event.last_line
                && !(sign.line..self.digest.lines.len()).any(traceback_after)
        });
        retrying && ends_well
    }

    /// Evidence of a shortage of host memory after the last message of a GPU.
    fn host(&self, last_gpu: Option<usize>) -> Option<usize> {
        const GENERIC: [&str; 3] = ["host.memory_error", "host.bad_alloc", "host.errno_12"];
        let is_host =
            |event: &Event| event.signature.class == Class::Host && !self.is_speech(event);
        let generic = |event: &Event| GENERIC.contains(&event.signature.id);
        match last_gpu.and_then(|index| self.events.get(index)) {
            // A Python MemoryError may wrap the message of a GPU's allocator.
            Some(gpu) => {
                self.events.iter().position(|e| is_host(e) && !generic(e) && e.line > gpu.last_line)
            }
            None => self
                .events
                .iter()
                .position(|e| is_host(e) && !generic(e))
                .or_else(|| self.events.iter().position(is_host)),
        }
    }

    /// ONNX Runtime's arena says the same on the CPU.
    fn is_on_the_cpu(&self, gpu: usize) -> bool {
        let onnx = self.events.get(gpu).is_some_and(|e| e.signature.id.starts_with("ort."));
        onnx && self.has(Mark::CpuProvider) && !self.has(Mark::CudaProvider)
    }

    /// A fault before a message without figures, which then is only its consequence.
    fn cause_of(&self, gpu: usize) -> Option<usize> {
        let event = self.events.get(gpu)?;
        if event.figures.is_sized() || !matches!(event.signature.class, Class::Driver | Class::Bare)
        {
            return None;
        }
        let library =
            ["other.library", "other.shared_object", "other.driver_old", "other.driver_too_old"];
        self.events.iter().position(|cause| {
            let fits =
                event.signature.stage == Stage::Handle || !library.contains(&cause.signature.id);
            cause.signature.class == Class::Cause && cause.line <= event.line && fits
        })
    }
}
