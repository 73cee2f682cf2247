//! What software a process is, and how it was started, each setting with where it was read.
//! Pure: from the facts of a sample alone.

mod args;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::model::ggml::CacheType;
use crate::model::overhead::{Overhead, calibrated};
use crate::model::plan::{Settings, place};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::sample::{ProcSample, Reading, Why};
use crate::units::Bytes;

pub use settings::Setting;
pub use table::Software;

use args::Command;
use settings::SETTINGS;
use table::{SIGNATURES, Signature};

/// Longest value that is kept, in characters.
const KEPT: usize = 512;
/// Ancestors that are asked where a process has renamed itself.
pub(super) const ANCESTORS: usize = 4;

/// Whether it is known what a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recognition {
    /// It is, and how it was started.
    Known(Workload),
    /// Its arguments say nothing that is known.
    Clear,
    /// They could not be read.
    CannotTell(Why),
}

impl Recognition {
    /// The workload, where it is known.
    pub const fn known(&self) -> Option<&Workload> {
        match self {
            Self::Known(workload) => Some(workload),
            Self::Clear | Self::CannotTell(_) => None,
        }
    }
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// The software.
    pub software: Software,
    /// What gave it away. May hold hostile text.
    pub seen: Origin,
    /// Its settings, in the table's order.
    pub settings: Vec<Found>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Which.
    pub setting: Setting,
    /// Its value as it was written; `on` for a bare flag. Hostile text, at most 512 characters.
    pub value: String,
    /// Where it was read.
    pub origin: Origin,
}

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An argument of the process: the flag, or the word itself.
    Argument(String),
    /// An argument of an ancestor, because the process has renamed itself.
    ParentArgument(String),
    /// A variable of its environment.
    Environment(String),
    /// The kernel's short name.
    Name(String),
    /// A file that it has open or mapped.
    OpenFile(String),
    /// Its PyTorch allocator.
    Allocator,
}

impl Origin {
    /// In words. May hold hostile text.
    pub fn words(&self) -> String {
        match self {
            Self::Argument(flag) => format!("argument {flag}"),
            Self::ParentArgument(flag) => format!("its parent's argument {flag}"),
            Self::Environment(name) => format!("environment {name}"),
            Self::Name(name) => format!("name {name}"),
            Self::OpenFile(path) => format!("open file {path}"),
            Self::Allocator => "its PyTorch allocator".to_owned(),
        }
    }
}

impl Workload {
    /// A setting as it was written.
    pub fn get(&self, setting: Setting) -> Option<&Found> {
        self.settings.iter().find(|found| found.setting == setting)
    }

    /// A setting as a number: `32768`, `32k`, `8_192`.
    pub fn number(&self, setting: Setting) -> Option<u64> {
        args::number(&self.get(setting)?.value)
    }

    /// The model's file, folder or name.
    pub fn model(&self) -> Option<&str> {
        self.get(Setting::Model).map(|found| found.value.as_str())
    }

    /// How llama.cpp was started, for the arithmetic on its model; `None` for other software, and
    /// where the context was not given (it then depends on what was free at the start).
    pub fn llama_settings(&self) -> Option<Settings> {
        let context = self.number(Setting::Context).filter(|n| (1..=1 << 30).contains(n))?;
        self.llama_settings_of(context)
    }

    /// The same with a context that is known from elsewhere, in tokens.
    pub fn llama_settings_of(&self, context: u64) -> Option<Settings> {
        if !matches!(self.software, Software::LlamaCpp | Software::Ollama) {
            return None;
        }
        let mut s = Settings::new(context);
        let cache = |setting| self.get(setting)?.value.parse::<CacheType>().ok();
        if let Some(keys) = cache(Setting::CacheTypeK) {
            s.cache.keys = keys;
            // Ollama has one setting for both.
            s.cache.values = if self.software == Software::Ollama { keys } else { s.cache.values };
        }
        s.cache.values = cache(Setting::CacheTypeV).unwrap_or(s.cache.values);
        s.cache.slots = self.number(Setting::Parallel).unwrap_or(1).clamp(1, 4096);
        s.cache.ubatch = self.number(Setting::MicroBatch).unwrap_or(512).clamp(1, 1 << 20);
        s.gpu_layers = self.number(Setting::GpuLayers).unwrap_or(u64::MAX);
        s.cpu_experts = match self.get(Setting::AllExpertsOnCpu) {
            Some(_) => u64::MAX,
            None => self.number(Setting::CpuExperts).unwrap_or(0),
        };
        s.compute.flash = self.get(Setting::FlashAttention).is_none_or(|f| f.value != "off");
        s.cache.full_window = self.get(Setting::FullWindow).is_some();
        s.cache_on_gpu = self.get(Setting::CacheOnCpu).is_none();
        Some(s)
    }
}

/// What CUDA itself takes in a llama.cpp process: its bytes as the driver lists them, without the
/// buffers that its model and settings ask for. `None` where the settings are not known, or the
/// difference makes no sense.
pub fn calibrate(
    workload: &Workload,
    shape: &Shape,
    weights: &Weights,
    listed: Bytes,
) -> Option<Overhead> {
    let settings = workload.llama_settings()?;
    calibrated(listed.0, place(shape, weights, &settings).on_gpus())
}

/// Recognises a process. `ancestors` are its parents, the nearest first, as far as they are known:
/// workers of vLLM and SGLang rename themselves, and their arguments are those of a parent.
pub fn recognise(process: &ProcSample, ancestors: &[&ProcSample]) -> Recognition {
    let command = process.cmdline.value().map(|words| Command::of(words));
    let own = find(process, command.as_ref());
    let Some((signature, seen)) = own else {
        return match &process.cmdline {
            Reading::Absent(why) => Recognition::CannotTell(*why),
            // A kernel thread or a zombie has no arguments.
            Reading::Value(words) if words.is_empty() => Recognition::CannotTell(Why::Gone),
            Reading::Value(_) => Recognition::Clear,
        };
    };
    let near = ancestors.iter().take(ANCESTORS);
    let parents: Vec<(&ProcSample, Command<'_>)> =
        near.filter_map(|parent| Some((*parent, Command::of(parent.cmdline.value()?)))).collect();
    // A server that Ollama started is Ollama's, with the settings of both.
    let by_ollama = signature.software == Software::LlamaCpp
        && (seen_text(&seen).contains("ollama")
            || parents.iter().any(|(_, command)| command.program == "ollama"));
    let software = if by_ollama { Software::Ollama } else { signature.software };
    let mut settings = Vec::new();
    for row in SETTINGS.iter().filter(|row| row.software.contains(&signature.software)) {
        let here = command.as_ref().and_then(|c| c.value(row.flags, row.bare));
        let here = here.map(|(flag, value)| (value, Origin::Argument(flag)));
        let there = || {
            let same = |c: &Command<'_>| find_command(c).map(|s| s.0.software) == Some(software);
            let mut parent = parents.iter().filter(|(_, command)| same(command));
            parent.find_map(|(_, c)| c.value(row.flags, row.bare))
        };
        let found = here
            .or_else(|| variable(process, row.variables))
            .or_else(|| there().map(|(flag, value)| (value, Origin::ParentArgument(flag))))
            .or_else(|| parents.iter().find_map(|(p, _)| variable(p, row.variables)));
        if let Some((value, origin)) = found {
            settings.push(Found { setting: row.setting, value: kept(&value), origin });
        }
    }
    if !settings.iter().any(|f| f.setting == Setting::Model) {
        let positional = model_word(software, command.as_ref(), &parents);
        settings.extend(positional.or_else(|| open_model(process)));
    }
    Recognition::Known(Workload { software, seen, settings })
}

fn seen_text(origin: &Origin) -> &str {
    match origin {
        Origin::Argument(text)
        | Origin::ParentArgument(text)
        | Origin::Environment(text)
        | Origin::Name(text)
        | Origin::OpenFile(text) => text,
        Origin::Allocator => "",
    }
}

/// Whether two samples of a process are the same in all that recognition looks at.
pub(super) fn same_grounds(a: &ProcSample, b: &ProcSample) -> bool {
    let read = |process: &ProcSample| {
        process.allocator.as_ref().is_some_and(|allocator| allocator.value().is_some())
    };
    a.comm == b.comm
        && a.cmdline == b.cmdline
        && a.environment == b.environment
        && a.model_files == b.model_files
        && read(a) == read(b)
}

fn kept(text: &str) -> String {
    text.chars().take(KEPT).collect()
}

/// The first signature that matches: by name, by arguments, then by weaker signs.
fn find(
    process: &ProcSample,
    command: Option<&Command<'_>>,
) -> Option<(&'static Signature, Origin)> {
    let by_name = SIGNATURES.iter().find_map(|s| {
        let renamed = s.names.iter().any(|name| process.comm.starts_with(name));
        renamed.then(|| (s, Origin::Name(kept(&process.comm))))
    });
    by_name
        .or_else(|| command.and_then(find_command))
        .or_else(|| by_files(process))
        .or_else(|| command.filter(|c| c.is_python()).and_then(|_| by_signs(process)))
}

fn find_command(command: &Command<'_>) -> Option<(&'static Signature, Origin)> {
    SIGNATURES.iter().find_map(|s| {
        let word = command.matches(s)?;
        Some((s, Origin::Argument(kept(word))))
    })
}

fn by_files(process: &ProcSample) -> Option<(&'static Signature, Origin)> {
    SIGNATURES.iter().find_map(|s| {
        let mut files = process.model_files.iter();
        let file = files.find(|file| s.folders.iter().any(|part| file.contains(part)))?;
        Some((s, Origin::OpenFile(kept(file))))
    })
}

/// Environment and allocator: enough for a Python program whose arguments say nothing.
fn by_signs(process: &ProcSample) -> Option<(&'static Signature, Origin)> {
    let variables = environment(process);
    let by_variable = SIGNATURES.iter().find_map(|s| {
        let found = variables.iter().find(|v| s.variables.iter().any(|p| v.name.starts_with(p)))?;
        Some((s, Origin::Environment(found.name.clone())))
    });
    let torch = || SIGNATURES.iter().find(|s| s.software == Software::Torch);
    let allocator =
        || process.allocator.as_ref()?.value().and(torch()).map(|s| (s, Origin::Allocator));
    let weights = || {
        let ends = [".safetensors", ".pt", ".pth", ".bin"];
        let mut files = process.model_files.iter();
        let file = files.find(|f| ends.iter().any(|end| f.ends_with(end)))?;
        torch().map(|s| (s, Origin::OpenFile(kept(file))))
    };
    by_variable.or_else(allocator).or_else(weights)
}

fn environment(process: &ProcSample) -> &[crate::sample::EnvVar] {
    process.environment.as_ref().and_then(Reading::value).map_or(&[], Vec::as_slice)
}

fn variable(process: &ProcSample, names: &[&str]) -> Option<(String, Origin)> {
    let found = environment(process).iter().find(|v| names.contains(&v.name.as_str()))?;
    Some((found.value.clone(), Origin::Environment(found.name.clone())))
}

/// `vllm serve MODEL` and its like name the model without a flag.
fn model_word(
    software: Software,
    command: Option<&Command<'_>>,
    parents: &[(&ProcSample, Command<'_>)],
) -> Option<Found> {
    let word = |c: &Command<'_>| {
        let signature = find_command(c).map(|s| s.0).filter(|s| s.software == software)?;
        c.word_after(signature.model_after)
    };
    let found =
        |value: String, origin| Found { setting: Setting::Model, value: kept(&value), origin };
    let own = command.and_then(word);
    let own = own.map(|(at, value)| found(value, Origin::Argument(at)));
    own.or_else(|| {
        let mut of_parents = parents.iter().filter_map(|(_, c)| word(c));
        of_parents.next().map(|(at, value)| found(value, Origin::ParentArgument(at)))
    })
}

fn open_model(process: &ProcSample) -> Option<Found> {
    let file = process.model_files.first()?;
    let origin = Origin::OpenFile(kept(file));
    Some(Found { setting: Setting::Model, value: kept(file), origin })
}
