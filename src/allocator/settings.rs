//! The settings of memory allocators in a process's environment: what is set, whether the program
//! understands it, and whether it already does what a fix would advise. Pure.

mod torch;

use serde::Serialize;

use crate::sample::EnvVar;

/// A variable, or one key of it, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The variable's name.
    pub name: &'static str,
    /// The key inside its value, where it has keys. Hostile text where it is not a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it is set to. Hostile text.
    pub value: String,
    /// Why the program does not take it as it is meant; `None` where it does. May quote hostile
    /// text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it does.
    pub effect: String,
    /// The number of the fix (1 to 9) that it already carries out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_does: Option<u8>,
}

/// A judgement on a value.
struct Judged {
    problem: Option<String>,
    effect: String,
    already_does: Option<u8>,
}

fn does(effect: &str) -> Judged {
    Judged { problem: None, effect: effect.to_owned(), already_does: None }
}

impl Judged {
    const fn fix(mut self, number: u8) -> Self {
        self.already_does = Some(number);
        self
    }

    fn but(mut self, problem: &str) -> Self {
        self.problem = Some(problem.to_owned());
        self
    }
}

/// One variable of the table.
struct Row {
    name: &'static str,
    judge: fn(&str) -> Judged,
}

const fn row(name: &'static str, judge: fn(&str) -> Judged) -> Row {
    Row { name, judge }
}

/// Variables whose value has keys, in the order in which PyTorch prefers them for its own.
const TORCH: [&str; 2] = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

const TABLE: [Row; 20] = [
    row("PYTORCH_NO_CUDA_MEMORY_CACHING", no_caching),
    row("XLA_PYTHON_CLIENT_PREALLOCATE", xla_preallocate),
    row("XLA_CLIENT_MEM_FRACTION", xla_fraction),
    row("XLA_PYTHON_CLIENT_MEM_FRACTION", xla_fraction),
    row("XLA_PYTHON_CLIENT_ALLOCATOR", xla_allocator),
    row("TF_FORCE_GPU_ALLOW_GROWTH", tf_growth),
    row("TF_GPU_ALLOCATOR", tf_allocator),
    row("CUDA_VISIBLE_DEVICES", visible_devices),
    row("CUDA_DEVICE_ORDER", device_order),
    row("OLLAMA_CONTEXT_LENGTH", ollama_context),
    row("OLLAMA_KV_CACHE_TYPE", ollama_cache_type),
    row("OLLAMA_FLASH_ATTENTION", |value| go_bool(value, "flash attention", None)),
    row("OLLAMA_NUM_PARALLEL", ollama_parallel),
    row("OLLAMA_MAX_LOADED_MODELS", ollama_models),
    row("OLLAMA_KEEP_ALIVE", ollama_keep_alive),
    row("OLLAMA_GPU_OVERHEAD", ollama_overhead),
    row("OLLAMA_SCHED_SPREAD", |value| go_bool(value, "one model over all GPUs", None)),
    row("GGML_CUDA_ENABLE_UNIFIED_MEMORY", |_any| {
        does("weights and cache may lie in host memory: no out-of-memory error, much slower").fix(5)
    }),
    row("GGML_CUDA_NO_PINNED", |_any| does("host buffers are not pinned: slower copies")),
    row("GGML_CUDA_DISABLE_GRAPHS", |_any| does("no CUDA graphs: a little less memory, slower")),
];

/// The names of all variables that the audit knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    TORCH.into_iter().chain(TABLE.iter().map(|row| row.name))
}

/// Judges the variables that are known, in the order of the table. A value in the environment of
/// a living process is the one it started with; the program may have changed it since.
pub fn audit(environment: &[EnvVar]) -> Vec<Setting> {
    let value = |name: &str| {
        environment.iter().find(|variable| variable.name == name).map(|row| row.value.as_str())
    };
    let mut settings = Vec::new();
    for name in TORCH {
        settings.extend(value(name).into_iter().flat_map(|value| torch::settings(name, value)));
    }
    for row in settings.iter_mut().filter(|row| row.name == TORCH[1]) {
        row.effect.push_str("; torch before 2.9 ignores this name");
    }
    if let [Some(old), Some(new)] = TORCH.map(value)
        && old != new
    {
        let problem = "both variables are set and differ: general keys follow the shorter name, \
                       those of CUDA the longer one; set one only";
        for row in &mut settings {
            row.problem.get_or_insert_with(|| problem.to_owned());
        }
    }
    for row in &TABLE {
        if let Some(value) = value(row.name) {
            let Judged { problem, effect, already_does } = (row.judge)(value);
            let (name, value) = (row.name, value.to_owned());
            settings.push(Setting { name, key: None, value, problem, effect, already_does });
        }
    }
    between(&mut settings);
    settings
}

/// What one variable means for another.
fn between(settings: &mut [Setting]) {
    let has = |name: &str, settings: &[Setting]| settings.iter().any(|row| row.name == name);
    if has("XLA_CLIENT_MEM_FRACTION", settings) {
        complain(
            settings,
            "XLA_PYTHON_CLIENT_MEM_FRACTION",
            "the program stops: the new name is set too",
        );
    }
    let flash = settings.iter().find(|row| row.name == "OLLAMA_FLASH_ATTENTION");
    if flash
        .is_some_and(|row| ["0", "f", "F", "false", "FALSE", "False"].contains(&row.value.as_str()))
    {
        complain(settings, "OLLAMA_KV_CACHE_TYPE", "without flash attention it has no effect");
    }
}

/// Adds a problem; the setting then carries out nothing.
fn complain(settings: &mut [Setting], name: &str, problem: &str) {
    for row in settings.iter_mut().filter(|row| row.name == name && row.value != "f16") {
        row.problem.get_or_insert_with(|| problem.to_owned());
        row.already_does = None;
    }
}

fn no_caching(_any: &str) -> Judged {
    // The name alone counts: the program asks whether it is set.
    does(
        "no caching at all, also with the value 0: every tensor goes to the driver, slow, and \
          without statistics. For diagnosis only",
    )
}

fn xla_preallocate(value: &str) -> Judged {
    let on =
        does("takes a fixed part of the GPU's memory at the start (75 % by default), used or not");
    match value {
        "false" | "False" | "0" => does("takes memory as it is needed").fix(3),
        "" | "true" | "True" | "1" => on,
        _ => on.but("is read as true: write false to turn it off"),
    }
}

fn xla_fraction(value: &str) -> Judged {
    match value.parse::<f64>() {
        Ok(part) if part > 0.0 && part <= 1.0 => {
            let effect = format!("takes {:.0} % of the GPU's memory at the start", part * 100.0);
            // Less than the default leaves something to others.
            if part < 0.75 { does(&effect).fix(3) } else { does(&effect) }
        }
        Ok(part) if part > 1.0 => does("more than the GPU has: works with unified memory only"),
        _ => does("how much of the GPU's memory is taken at the start")
            .but("is not a part such as .50"),
    }
}

fn xla_allocator(value: &str) -> Judged {
    match value.to_ascii_lowercase().as_str() {
        "platform" => does("each array goes to the driver and back: exact, slow").fix(3),
        "cuda_async" => does("the driver's pool: it gives memory back when others need it").fix(6),
        "default" | "bfc" => does("the framework's own pool, which gives nothing back"),
        _ => does("which allocator is used").but("is none of default, bfc, cuda_async, platform"),
    }
}

fn tf_growth(value: &str) -> Judged {
    match value {
        "true" => does("takes memory as it is needed, gives none back").fix(3),
        "false" => does("takes nearly all of the GPU's memory at the start"),
        _ => does("whether memory is taken as it is needed").but(
            "only true and false are understood, in small letters; the program's own choice holds",
        ),
    }
}

fn tf_allocator(value: &str) -> Judged {
    match value {
        "cuda_malloc_async" => does("the driver's pool: less fragmentation").fix(6),
        "cuda_malloc" => does("each tensor goes to the driver and back"),
        _ => does("which allocator is used").but("is neither cuda_malloc_async nor cuda_malloc"),
    }
}

fn visible_devices(value: &str) -> Judged {
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    let valid = |entry: &&str| {
        entry.parse::<u32>().is_ok() || entry.starts_with("GPU-") || entry.starts_with("MIG-")
    };
    if value.trim().is_empty() || entries.first().is_some_and(|&first| first == "-1") {
        return does("hides every GPU");
    }
    let mut sorted = entries.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let effect = does("the program sees these GPUs only, in this order");
    if sorted.len() < entries.len() {
        return effect.but("names a GPU twice: the program sees none");
    }
    match entries.iter().position(|entry| !valid(entry)) {
        None => effect,
        Some(0) => effect.but("its first entry is no GPU: the program sees none"),
        Some(_) => effect.but("ends at the first entry that is no GPU: the rest is not seen"),
    }
}

fn device_order(value: &str) -> Judged {
    match value {
        "PCI_BUS_ID" => does("numbers the GPUs as nvidia-smi does"),
        "FASTEST_FIRST" => does("numbers the GPUs by speed, not as nvidia-smi does"),
        _ => does("how the GPUs are numbered").but("is neither PCI_BUS_ID nor FASTEST_FIRST"),
    }
}

const NOT_A_NUMBER: &str = "is not a whole number: the default is used";

fn ollama_context(value: &str) -> Judged {
    let effect = does("context of models that name none, in tokens; memory grows with it");
    match value.parse::<u64>() {
        Ok(1..=4096) => effect.fix(1),
        Ok(_) => effect,
        Err(_) => effect.but(NOT_A_NUMBER),
    }
}

fn ollama_cache_type(value: &str) -> Judged {
    match value {
        "q8_0" => does("KV cache in 8 bits: 47 % smaller; needs flash attention").fix(1),
        "q4_0" => does("KV cache in 4 bits: 72 % smaller; needs flash attention").fix(1),
        "f16" | "" => does("KV cache in 16 bits"),
        _ => does("precision of the KV cache").but("is none of f16, q8_0, q4_0: f16 is used"),
    }
}

/// As Go reads a truth value; the server takes what it cannot read as true.
fn go_bool(value: &str, what: &str, fix: Option<u8>) -> Judged {
    let on = Judged { already_does: fix, ..does(&format!("{what}: on")) };
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => on,
        "0" | "f" | "F" | "false" | "FALSE" | "False" => does(&format!("{what}: off")),
        "" => does(&format!("{what}: left to the server")),
        _ => on.but("is neither true nor false: read as true"),
    }
}

fn ollama_parallel(value: &str) -> Judged {
    let effect = does("requests at the same time; the KV cache is multiplied by it");
    match value.parse::<u64>() {
        Ok(1) => effect.fix(1),
        Ok(_) => effect,
        Err(_) => effect.but(NOT_A_NUMBER),
    }
}

fn ollama_models(value: &str) -> Judged {
    let effect = does("models in memory at the same time (by default three for each GPU)");
    match value.parse::<u64>() {
        Ok(1) => effect.fix(3),
        Ok(_) => effect,
        Err(_) => effect.but(NOT_A_NUMBER),
    }
}

fn ollama_keep_alive(value: &str) -> Judged {
    let number = value.parse::<i64>().ok();
    let is_duration = value.ends_with(['s', 'm', 'h'])
        && value.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match (number, value.starts_with('-')) {
        (Some(0), _) => does("a model leaves memory after each answer").fix(3),
        (Some(_), true) => does("models stay in memory for ever"),
        (None, true) if is_duration => does("models stay in memory for ever"),
        (Some(_), false) => does("seconds that an unused model stays in memory"),
        (None, false) if is_duration => does("how long an unused model stays in memory"),
        _ => does("how long an unused model stays in memory")
            .but("is neither seconds nor a time such as 5m: the default of 5 minutes is used"),
    }
}

fn ollama_overhead(value: &str) -> Judged {
    let effect =
        does("bytes of each GPU that are left free; more of them means fewer layers on it");
    if value.parse::<u64>().is_ok() { effect } else { effect.but(NOT_A_NUMBER) }
}

#[cfg(test)]
mod tests;
