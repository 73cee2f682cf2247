//! Which of the messages decided: the first one that ended the program.

use super::clues::{self, Mark, Sign};
use super::condense::Digest;
use super::events::{self, Event};
use super::facts;
use super::figures::{Figures, Slot};
use super::frames;
use super::growth::{self, Series};
use super::signatures::{Class, Stage};
use super::tables::{self, Tables};

/// Messages this close to each other, in lines of the digest, tell of one failure.
const EPISODE: usize = 60;

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

    /// Whether a message was found.
    pub(super) fn has_event(&self, id: &str) -> bool {
        self.events.iter().any(|event| event.signature.id == id)
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
    fn is_speech(&self, event: &Event) -> bool {
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
            sign.line > to && !(sign.line..self.digest.lines.len()).any(traceback_after)
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

    /// Figures, software and stage from around the message.
    fn gather(&mut self) {
        let Some(event) = self.event().cloned() else { return };
        self.software = self.name(&event);
        if self.outcome == Outcome::Mention {
            self.software = "none";
            return;
        }
        let gpu = match self.outcome {
            Outcome::Gpu => Some(event.clone()),
            Outcome::Host => self
                .events
                .iter()
                .find(|e| e.signature.class.is_gpu() && e.figures.is_sized())
                .cloned(),
            _ => None,
        };
        if self.outcome == Outcome::Recovered {
            // Who went on knows best what it is.
            let near = event.line..=event.last_line + 6;
            let own = self.events.iter().map(|e| (e.signature, e.line)).find(|(row, line)| {
                row.class == Class::Recovered && row.software != "any" && near.contains(line)
            });
            if let Some((row, _)) = own.filter(|_| event.signature.class != Class::Recovered) {
                self.software = row.software;
            }
            return;
        }
        self.figures = event.figures.clone();
        if let Some(gpu) = gpu {
            self.figures.fill_from(&gpu.figures);
        }
        if matches!(self.outcome, Outcome::Gpu | Outcome::Host) {
            self.merge(&event);
        }
        if self.outcome != Outcome::Gpu {
            return;
        }
        self.stage = self.stage_of(&event);
        self.batch = facts::batch(&self.digest.lines, event.line);
        // Hashcat prints its devices before it fails.
        let from = if self.software == "hashcat" { 0 } else { event.last_line };
        self.tables = tables::read(&self.digest.lines, from);
        if !self.figures.is_sized() || self.figures.get(Slot::Total).is_none() {
            let tables = &self.tables;
            for (slot, value) in [
                (Slot::Total, tables.total),
                (Slot::Free, tables.free),
                (Slot::Device, tables.device),
            ] {
                if let (Some(value), None) = (value, self.figures.get(slot)) {
                    self.figures.set(slot, value);
                }
            }
        }
        if self.figures.processes.is_empty() {
            self.figures.processes.clone_from(&self.tables.processes);
        }
        let messages: Vec<(usize, usize)> = self
            .events
            .iter()
            .filter(|e| e.signature.class != Class::Detail)
            .map(|e| (e.line, e.last_line))
            .collect();
        let in_message =
            |line: usize| messages.iter().any(|(from, to)| (*from..=*to).contains(&line));
        self.growth = growth::find(&self.digest.lines, event.line, in_message);
    }

    /// Takes over what messages near the decisive one, and reports of the same program, add.
    fn merge(&mut self, event: &Event) {
        let family = |software: &str| {
            software == "any"
                || software == event.signature.software
                || software == self.software
                || (event.signature.software == "nccl" && software == "pytorch")
                || (event.signature.software == "any" && software == "llama.cpp")
        };
        let near = |other: &Event| {
            other.line + EPISODE >= event.line && other.line <= event.last_line + EPISODE
        };
        let mut figures = self.figures.clone();
        for other in &self.events {
            let same_kind = other.signature.id == event.signature.id;
            if other.signature.class.is_gpu() && !same_kind && near(other) {
                figures.fill_from(&other.figures);
            }
        }
        let details = |other: &&Event| {
            matches!(other.signature.class, Class::Detail) && family(other.signature.software)
        };
        let before = self.events.iter().filter(details).filter(|e| e.line <= event.line).rev();
        let after = self.events.iter().filter(details).filter(|e| e.line > event.line);
        for other in before.chain(after) {
            let mut fields = other.figures.clone();
            fields.clear(Slot::Device);
            figures.fill_from(&fields);
        }
        self.figures = figures;
    }

    /// The stage: what an engine says itself, else the traceback.
    fn stage_of(&self, event: &Event) -> Stage {
        let near = |other: &&Event| {
            other.line + EPISODE >= event.line && other.line <= event.last_line + EPISODE
        };
        let engine = self.events.iter().filter(near).find(|other| {
            other.signature.class == Class::Engine && other.signature.stage != Stage::Unknown
        });
        if event.signature.stage != Stage::Unknown && event.signature.class == Class::Engine {
            return event.signature.stage;
        }
        if let Some(engine) = engine {
            return engine.signature.stage;
        }
        let frame = frames::stage(&self.digest.lines, event.line);
        let detail = self.events.iter().rev().filter(near).find(|other| {
            other.line <= event.line
                && other.signature.class == Class::Detail
                && other.signature.stage == Stage::Capture
        });
        match (event.signature.stage, frame, detail) {
            (Stage::Unknown, _, Some(detail)) => detail.signature.stage,
            (Stage::Unknown, frame, None) => frame,
            (stage, ..) => stage,
        }
    }

    /// Whose failure it is: the program around the allocator, where the log names it.
    fn name(&self, event: &Event) -> &'static str {
        let first = |marks: &[(Mark, &'static str)]| {
            marks.iter().find(|(mark, _)| self.has(*mark)).map(|(_, name)| *name)
        };
        let own = event.signature.software;
        let xla = self.events.iter().any(|e| e.signature.software == "jax");
        match own {
            "pytorch" if self.outcome != Outcome::Host => first(&[
                (Mark::Vllm, "vllm"),
                (Mark::Sglang, "sglang"),
                (Mark::Tgi, "tgi"),
                (Mark::Comfy, "comfyui"),
                (Mark::Webui, "stable-diffusion-webui"),
                (Mark::ExLlama, "exllama"),
                (Mark::Diffusers, "diffusers"),
                (Mark::Rocm, "pytorch-rocm"),
            ])
            .unwrap_or(own),
            "llama.cpp" => first(&[
                (Mark::Ollama, "ollama"),
                (Mark::Whisper, "whisper.cpp"),
                (Mark::Kobold, "koboldcpp"),
                (Mark::LmStudio, "lm-studio"),
            ])
            .unwrap_or(own),
            "tensorflow" | "nccl" if xla || self.has(Mark::Jax) => "jax",
            "none" | "any" => first(&[
                (Mark::DeepSpeed, "deepspeed"),
                (Mark::Sglang, "sglang"),
                (Mark::TorchRun, "pytorch"),
                (Mark::Slurm, "slurm"),
                (Mark::Kubernetes, "kubernetes"),
                (Mark::Ollama, "ollama"),
                (Mark::LlamaCpp, "llama.cpp"),
                (Mark::Jax, "jax"),
                (Mark::TensorFlow, "tensorflow"),
                (Mark::Onnx, "onnxruntime"),
            ])
            .unwrap_or(if own == "any" { self.nameless() } else { own }),
            own => own,
        }
    }

    /// A message that many programs write, in a log that names none: the program whose error it
    /// explains, if there is one.
    fn nameless(&self) -> &'static str {
        let failed = |event: &&Event| event.signature.class.is_gpu() && !self.is_speech(event);
        match (self.outcome, self.events.iter().find(failed)) {
            (Outcome::Gpu, _) => "cuda",
            (_, Some(event)) if event.signature.software != "any" => event.signature.software,
            _ => "none",
        }
    }
}
