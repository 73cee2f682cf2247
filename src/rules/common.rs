//! What all rules need: who is worth advice, how tight a GPU is, how findings are put together.

use super::{Finding, Fix, Outcome, Provenance, Saving, Severity};
use crate::allocator::settings::{Setting as Judged, audit};
use crate::analyze::workload::{Setting, Software, Workload};
use crate::analyze::{Class, GpuView, Growth, Holder, View};
use crate::model::ModelFacts;
use crate::model::savings::Freed;
use crate::oom::{When, line_for, of_transformers};
use crate::sample::{AllocatorBackend, AllocatorDevice, EnvVar, Reading};
use crate::units::Bytes;

/// Gains of less are not worth a line.
pub(super) const WORTH: Bytes = Bytes::mib(512);
/// A GPU that is full that soon is short already, in milliseconds.
const SOON_MS: u64 = 10 * 60_000;

/// What a rule says of one holder.
pub(super) enum Answer {
    Clear,
    Hit(Finding),
    NotYet(String),
    CannotTell(String),
}

/// Of whom nothing can be said: whoever is on a GPU of which the driver does not tell a list, and
/// listed processes that cannot be looked at.
pub(super) fn unasked(view: &View) -> impl Iterator<Item = Answer> + '_ {
    let lists = view.gpus.iter().filter_map(|gpu| {
        let label = gpu.sample.label();
        if let Some(why) = gpu.sample.unlisted() {
            return Some(Answer::CannotTell(format!("who is on GPU {label}: {}", why.words())));
        }
        let (who, why) = gpu.sample.unread_lists.missing()?;
        Some(Answer::CannotTell(format!("which {who} are on GPU {label}: {why}")))
    });
    let rows = view.holders.iter().filter(|holder| holder.listed && holder.id.is_none());
    let rows = rows.filter_map(|Holder { pid, verdict, .. }| match verdict.class {
        Class::Unknown => Some(Answer::NotYet(format!("{pid} has not been looked at yet"))),
        Class::OtherNamespace | Class::OtherUser => {
            Some(Answer::CannotTell(format!("{pid} cannot be looked at from here")))
        }
        _ => None,
    });
    lists.chain(rows)
}

/// Why nothing can be said of any process.
pub(super) fn unseen(view: &View) -> Option<Outcome> {
    if view.gpus.is_empty() {
        return Some(Outcome::NotYet("the driver has not answered yet".to_owned()));
    }
    if view.procs_age_ms.is_none() {
        return Some(Outcome::NotYet("the processes have not been looked at yet".to_owned()));
    }
    let blind = view.gpus.iter().all(|gpu| gpu.sample.processes.value().is_none());
    let text = || Outcome::CannotTell("the driver lists no processes here".to_owned());
    (blind && view.holders.is_empty()).then(text)
}

/// Hits, else the first that waits for more, else the first doubt.
pub(super) fn gathered(answers: impl Iterator<Item = Answer>) -> Outcome {
    let (mut hits, mut not_yet, mut doubt) = (Vec::new(), None, None);
    for answer in answers {
        match answer {
            Answer::Clear => {}
            Answer::Hit(finding) => hits.push(finding),
            Answer::NotYet(why) => not_yet = not_yet.or(Some(why)),
            Answer::CannotTell(why) => doubt = doubt.or(Some(why)),
        }
    }
    if !hits.is_empty() {
        return Outcome::Hit(hits);
    }
    let waits = not_yet.map(Outcome::NotYet);
    waits.or(doubt.map(Outcome::CannotTell)).unwrap_or(Outcome::Clear)
}

/// Holders that live and are somebody's work: those that rule 3 would not end, and that nobody
/// protects.
pub(super) fn living(view: &View) -> impl Iterator<Item = (&Holder, &GpuView)> {
    let alive = |holder: &&Holder| {
        let works = matches!(
            holder.verdict.class,
            Class::Active
                | Class::Idle
                | Class::Unknown
                | Class::Suspended
                | Class::Debugged
                | Class::Frozen
                | Class::Orphan
                | Class::IdleServer
                | Class::BusyCpu
        );
        works && holder.listed && holder.id.is_some() && !holder.verdict.zombie
    };
    let holders = view.holders.iter().filter(alive);
    holders.filter_map(|holder| Some((holder, gpu_of(view, holder)?)))
}

/// The GPU that a holder is on.
pub(super) fn gpu_of<'a>(view: &'a View, holder: &Holder) -> Option<&'a GpuView> {
    view.gpus.iter().find(|gpu| gpu.sample.uuid == holder.gpu)
}

/// How the GPU of a holder is called.
pub(super) fn label_of(view: &View, holder: &Holder) -> String {
    gpu_of(view, holder).map_or_else(|| holder.index.to_string(), |gpu| gpu.sample.label())
}

/// What must stay free for the next request to succeed.
pub(super) fn margin(total: Bytes) -> Bytes {
    Bytes(total.0 / 50).max(Bytes::mib(256))
}

/// Total and free of a GPU; of one without memory of its own, the machine's. `None` where it is not
/// told.
pub(super) fn room(gpu: &GpuView) -> Option<(Bytes, Bytes)> {
    let own = gpu.sample.memory.get().map(|memory| (memory.total, memory.free));
    let shared = || gpu.ledger.get().filter(|l| l.unified).map(|l| (l.total, l.free));
    own.or_else(shared)
}

/// Whether a GPU is nearly full, or soon will be; `None` where its memory is not told.
pub(super) fn short(gpu: &GpuView) -> Option<bool> {
    let soon = match gpu.growth {
        Growth::Trend { full_in_ms: Some([_, likely, _]), .. } => likely < SOON_MS,
        _ => false,
    };
    let full = |(total, free): (Bytes, Bytes)| free < Bytes(total.0 / 20);
    if soon { Some(true) } else { room(gpu).map(full) }
}

/// What a rule says where `short` cannot be told.
pub(super) fn not_told(gpu: &GpuView) -> Answer {
    Answer::CannotTell(format!("the memory of GPU {} is not known", gpu.sample.label()))
}

/// A warning where memory is short, else a notice.
pub(super) fn severity(gpu: &GpuView) -> Severity {
    if short(gpu) == Some(true) { Severity::Warning } else { Severity::Notice }
}

/// `41233 train.py (PyTorch) on GPU 0`: the first line of evidence of what is said of a holder.
pub(super) fn subject(holder: &Holder, gpu: &GpuView) -> String {
    let software = holder.workload.as_ref().map(|w| w.software.name());
    let name = holder.process.as_ref().map_or_else(String::new, |process| process.short_name());
    let what = match software {
        Some(software) if !software.eq_ignore_ascii_case(&name) => format!(" ({software})"),
        _ => String::new(),
    };
    format!("{} {name}{what} on GPU {}", holder.pid, gpu.sample.label())
}

/// A finding about one holder, without evidence and fixes.
pub(super) fn about(
    holder: &Holder,
    (rule, fix_number): (&'static str, u8),
    severity: Severity,
    headline: String,
) -> Finding {
    Finding {
        rule,
        fix_number,
        severity,
        gpu: Some(holder.index),
        pid: Some(holder.pid),
        headline,
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

/// A fix with the table's line for this software; `None` where the table has none.
pub(super) fn fix(
    holder: &Holder,
    (number, title): (u8, &str),
    holds: &[When],
    saves: Option<Saving>,
    value: &dyn Fn(&str) -> Option<String>,
) -> Option<Fix> {
    // Methods of transformers are for what is seen to run it.
    let transformers =
        holder.workload.as_ref().is_some_and(|w| w.software == Software::Transformers);
    let own = holds.iter().copied().map(of_transformers).filter(|_| transformers);
    let holds: Vec<When> = holds.iter().copied().chain(own).collect();
    let (line, cost) = line_for(number, software_key(holder), &holds, value)?;
    Some(Fix {
        title: title.to_owned(),
        saves,
        line: Some(line),
        cost: cost.to_owned(),
        ends: Vec::new(),
    })
}

/// A saving of at most what the holder has; `None` where it is nothing.
pub(super) fn saving(
    holder: &Holder,
    [low, bytes, high]: [u64; 3],
    provenance: Provenance,
) -> Option<Saving> {
    let most = holder.bytes.get().unwrap_or(Bytes(u64::MAX));
    let cap = |n: u64| Bytes(n).min(most);
    (bytes > 0 && most > Bytes::ZERO).then(|| Saving {
        bytes: cap(bytes),
        low: cap(low.min(bytes)),
        high: cap(high.max(bytes)),
        provenance,
    })
}

/// The part of a model's saving that falls on this holder's GPU.
pub(super) fn shared(view: &View, holder: &Holder, freed: Freed) -> Option<Saving> {
    let (mine, all) = (holder.bytes.get()?, whole(view, holder)?);
    let part = |n: u64| {
        let part = u128::from(n) * u128::from(mine.0) / u128::from(all.0.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    let parts = [part(freed.low), part(freed.bytes), part(freed.high)];
    saving(holder, parts, Provenance::Estimated)
}

/// What the same process holds on all GPUs; `None` where one of them does not tell.
pub(super) fn whole(view: &View, holder: &Holder) -> Option<Bytes> {
    let same = view.holders.iter().filter(|other| other.id.is_some() && other.id == holder.id);
    same.map(|other| other.bytes.get()).sum()
}

/// What a holder runs. Nothing that is known is clear only where its command line was read.
pub(super) fn workload(holder: &Holder) -> Result<&Workload, Answer> {
    if let Some(workload) = &holder.workload {
        return Ok(workload);
    }
    let pid = holder.pid;
    let why = holder.process.as_ref().and_then(|process| process.cmdline.why());
    Err(why.map_or(Answer::Clear, |why| {
        Answer::CannotTell(format!("the command line of {pid}: {}", why.words()))
    }))
}

/// The header of the model that a holder runs.
pub(super) fn facts<'a>(view: &'a View, holder: &Holder) -> Result<&'a ModelFacts, Answer> {
    let pid = holder.pid;
    let Some(path) = holder.model_path() else {
        return Err(Answer::CannotTell(format!("which model {pid} runs is not known")));
    };
    match view.models.get(path) {
        None => Err(Answer::NotYet(format!("the model of {pid} has not been read yet"))),
        Some(Reading::Absent(why)) => {
            Err(Answer::CannotTell(format!("the model of {pid}: {}", why.words())))
        }
        Some(Reading::Value(facts)) => Ok(facts),
    }
}

/// The allocator's figures for this GPU, of the native allocator only.
pub(super) fn device<'a>(holder: &'a Holder, gpu: &GpuView) -> Result<&'a AllocatorDevice, Answer> {
    let pid = holder.pid;
    let sample = match &holder.allocator {
        Some(Reading::Value(sample)) => sample,
        Some(Reading::Absent(why)) => {
            return Err(Answer::CannotTell(format!("the allocator of {pid}: {}", why.words())));
        }
        None if holder.process.as_ref().is_some_and(|p| p.allocator.is_some()) => {
            let label = gpu.sample.label();
            return Err(Answer::CannotTell(format!(
                "no device of {pid}'s allocator is known to be GPU {label}"
            )));
        }
        None if uses_torch(holder) => {
            return Err(Answer::NotYet(format!("the allocator of {pid} has not been read yet")));
        }
        None => return Err(workload(holder).err().unwrap_or(Answer::Clear)),
    };
    match sample.devices.as_slice() {
        // Another allocator has no such figures, and none of these faults.
        _ if sample.backend != AllocatorBackend::Native => Err(Answer::Clear),
        [device] => Ok(device),
        [] => Err(Answer::NotYet(format!("the allocator of {pid} has no device yet"))),
        _ => Err(Answer::CannotTell(format!(
            "which device of {pid}'s allocator GPU {} is cannot be told",
            gpu.sample.label()
        ))),
    }
}

/// Whether a holder is a PyTorch program by what was recognised.
pub(super) fn uses_torch(holder: &Holder) -> bool {
    let torch = |workload: &Workload| {
        matches!(
            workload.software,
            Software::Torch
                | Software::Transformers
                | Software::Diffusers
                | Software::ComfyUi
                | Software::A1111
                | Software::Exllama
        )
    };
    holder.workload.as_deref().is_some_and(torch)
}

/// The name of the software in the table of lines.
pub(super) fn software_key(holder: &Holder) -> &'static str {
    match holder.workload.as_ref().map(|workload| workload.software) {
        Some(Software::LlamaCpp) => "llama.cpp",
        Some(Software::Ollama) => "ollama",
        Some(Software::Vllm) => "vllm",
        Some(Software::Sglang) => "sglang",
        Some(Software::Tgi) => "tgi",
        Some(Software::Exllama) => "exllama",
        Some(Software::TensorRtLlm) => "tensorrt-llm",
        Some(Software::ComfyUi) => "comfyui",
        Some(Software::A1111) => "stable-diffusion-webui",
        Some(Software::Diffusers) => "diffusers",
        Some(Software::WhisperCpp) => "whisper.cpp",
        Some(Software::Jax) => "jax",
        Some(Software::TensorFlow) => "tensorflow",
        Some(Software::Jupyter | Software::Transformers | Software::Torch) | None => "pytorch",
    }
}

/// What makes a process a training run, in words; `None` where nothing does.
pub(super) fn training(holder: &Holder) -> Option<String> {
    let workload = holder.workload.as_ref()?;
    if !matches!(workload.software, Software::Torch | Software::Transformers | Software::Diffusers)
    {
        return None;
    }
    let setting = [Setting::Accumulation, Setting::Checkpointing];
    let by_setting =
        setting.iter().find_map(|s| workload.get(*s)).map(|found| found.origin.words());
    by_setting.or_else(|| {
        let words = holder.process.as_ref()?.cmdline.value()?;
        let found = words.iter().map(String::as_str).find(|word| trains(word))?;
        let name = found.rsplit('/').next().unwrap_or(found);
        Some(format!("argument {}", name.chars().take(48).collect::<String>()))
    })
}

fn trains(word: &str) -> bool {
    const FLAGS: [&str; 8] = [
        "--learning_rate",
        "--learning-rate",
        "--lr",
        "--num_train_epochs",
        "--epochs",
        "--max_train_steps",
        "--per_device_train_batch_size",
        "--train_batch_size",
    ];
    const PARTS: [&str; 4] = ["train", "finetun", "fine_tun", "sft"];
    let flag = word.split('=').next().unwrap_or(word);
    let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
    let script =
        name.strip_suffix(".py").is_some() || matches!(name.as_str(), "train" | "finetune" | "sft");
    FLAGS.contains(&flag) || (script && PARTS.iter().any(|part| name.contains(part)))
}

/// The value of a variable of the holder's environment; `None` where it is not set, or not read.
pub(super) fn variable<'a>(holder: &'a Holder, name: &str) -> Option<&'a str> {
    environment(holder)?.iter().find(|var| var.name == name).map(|var| var.value.as_str())
}

/// The holder's environment; `None` where it was not read.
pub(super) fn environment(holder: &Holder) -> Option<&[EnvVar]> {
    let process = holder.process.as_ref()?;
    process.environment.as_ref()?.value().map(Vec::as_slice)
}

/// The allocator settings of its environment, judged; none where it was not read.
pub(super) fn settings(holder: &Holder) -> Vec<Judged> {
    environment(holder).map_or_else(Vec::new, audit)
}

/// Whether its environment carries out this fix already, by this variable or key.
pub(super) fn already(holder: &Holder, fix: u8, name: &str) -> bool {
    let same = |set: &Judged| set.name == name || set.key.as_deref() == Some(name);
    settings(holder).iter().any(|set| set.already_does == Some(fix) && same(set))
}
