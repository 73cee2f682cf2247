//! Figures, software and stage from around the message that decided.

use super::clues::Mark;
use super::events::Event;
use super::facts;
use super::figures::Slot;
use super::frames;
use super::growth;
use super::judge::{Case, EPISODE, Outcome};
use super::signatures::{Class, Stage};
use super::tables;

impl Case {
    /// Figures, software and stage from around the message.
    pub(super) fn gather(&mut self) {
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
        if let Some(gpu) = gpu.filter(|gpu| gpu.line != event.line || self.outcome == Outcome::Gpu)
        {
            self.figures.fill_from(&gpu.figures);
        } else if let Some(bytes) = self.figures.get(Slot::Requested)
            && self.outcome == Outcome::Host
        {
            // An allocator that the host and devices share: here it is the host's.
            self.figures.set(Slot::HostRequested, bytes);
            self.figures.clear(Slot::Requested);
        }
        if matches!(self.outcome, Outcome::Gpu | Outcome::Host) {
            self.merge(&event);
        }
        if self.outcome != Outcome::Gpu {
            return;
        }
        if let (Some(chunk), None) =
            (self.figures.get(Slot::Chunk), self.figures.get(Slot::Requested))
        {
            self.figures.set(Slot::Requested, chunk);
        }
        self.around(&event);
    }

    /// The stage, the tables and the growth around a message of a GPU.
    fn around(&mut self, event: &Event) {
        self.stage = self.stage_of(event);
        self.batch = facts::batch(&self.digest.lines, event.line);
        self.accumulation = facts::accumulation(&self.digest.lines, event.line);
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
                (Mark::DeepSpeed, "deepspeed"),
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
            "windows" | "python" | "c++" if self.has(Mark::Torch) => "pytorch",
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
                (Mark::Ffmpeg, "ffmpeg"),
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
