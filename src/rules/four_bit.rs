//! Fix 2: weights that take 16 or 32 bits.

use super::Finding;
use super::common::{
    Answer, WORTH, about, device, facts, fix, severity, shared, training, whole, workload,
};
use super::per_holder::PerHolder;
use crate::analyze::workload::{Setting, Software, Workload};
use crate::analyze::{GpuView, Holder, View};
use crate::model::ModelFacts;
use crate::model::plan::Settings;
use crate::model::quant::named;
use crate::model::savings::{four_bit_on_load, half_of_float32};
use crate::oom::When;
use crate::units::Bytes;

const KEY: (&str, u8) = ("four_bit", 2);
/// Parts of names of models that are quantised already.
const QUANTISED: [&str; 14] = [
    "awq", "gptq", "bnb", "4bit", "4-bit", "int4", "int8", "fp8", "nvfp4", "mxfp4", "exl2", "exl3",
    "-q4", "-q8",
];

/// The rule.
pub static RULE: PerHolder = PerHolder { key: KEY.0, number: KEY.1, ask: one };

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let workload = match workload(holder) {
        Ok(workload) => workload,
        Err(answer) => return answer,
    };
    let llama = matches!(workload.software, Software::LlamaCpp | Software::Ollama);
    // The pool of a server takes what smaller weights leave: nothing comes back on the card.
    let torch = matches!(workload.software, Software::Transformers | Software::Torch);
    if !(llama || torch) || quantised(workload) {
        return Answer::Clear;
    }
    let facts = match facts(view, holder) {
        Ok(facts) => facts,
        // A script without a model that is known may have none at all.
        Err(_) if holder.model_path().is_none() && workload.model().is_none() => {
            return Answer::Clear;
        }
        Err(answer) => return answer,
    };
    let (half, full) = facts.wide_bytes();
    let all = Bytes(facts.weight_bytes());
    let on_cpu = workload.number(Setting::GpuLayers) == Some(0);
    // Norms stay 32-bit in every file: only the bulk counts.
    let wide = half.saturating_add(full) > all.0 / 2;
    if !wide || all < WORTH || on_cpu {
        return Answer::Clear;
    }
    if torch && let Some(answer) = loaded_smaller(view, holder, all) {
        return answer;
    }
    let bits = if full > half { 32 } else { 16 };
    let headline = format!("{} holds {all} of weights in {bits} bits", holder.pid);
    let mut found = about(holder, KEY, severity(gpu), headline);
    let parameters = facts.parameters() as f64 / 1e9;
    found.evidence.push(format!("{}: {parameters:.1} G parameters", facts.name));
    if llama {
        let settings = workload.llama_settings().unwrap_or_else(|| Settings::new(4096));
        another_file(&mut found, view, holder, facts, &settings);
    } else {
        on_load(&mut found, view, (holder, gpu), facts, all);
    }
    Answer::Hit(found)
}

/// What a file in fewer bits saves.
fn another_file(
    found: &mut Finding,
    view: &View,
    holder: &Holder,
    facts: &ModelFacts,
    settings: &Settings,
) {
    let run = facts.running(settings);
    if let Some(quant) = named("Q8_0") {
        let bytes = Bytes(quant.weights(&facts.weights).file_bytes());
        found.evidence.push(format!("in 8 bits {bytes}"));
    }
    let when = [When::WideWeights, When::Always];
    let saves = shared(view, holder, run.four_bit());
    found.fixes.extend(fix(holder, (KEY.1, "a 4-bit file"), &when, saves, &|_| None));
}

/// What other types save when the same file is loaded.
fn on_load(
    found: &mut Finding,
    view: &View,
    (holder, gpu): (&Holder, &GpuView),
    facts: &ModelFacts,
    all: Bytes,
) {
    if loaded_wide(holder, gpu, facts) {
        let allocated = "it allocates 4 bytes a parameter: the weights were loaded in float32";
        found.evidence.push(allocated.to_owned());
        let saves = shared(view, holder, half_of_float32(&facts.weights));
        let title = (KEY.1, "load them in 16 bits");
        found.fixes.extend(fix(holder, title, &[When::Float32], saves, &|_| None));
    }
    let freed = four_bit_on_load(&facts.weights);
    let title = if training(holder).is_some() { "LoRA on a 4-bit base" } else { "4 bits on load" };
    let saves = shared(view, holder, freed);
    found.evidence.push(format!("in 4 bits {}", all - Bytes(freed.bytes)));
    found.fixes.extend(fix(holder, (KEY.1, title), &[When::Always], saves, &|_| None));
}

/// One that holds less than its file has loaded it smaller.
fn loaded_smaller(view: &View, holder: &Holder, file: Bytes) -> Option<Answer> {
    let Some(held) = whole(view, holder) else {
        let pid = holder.pid;
        return Some(Answer::CannotTell(format!("the driver does not tell what {pid} holds")));
    };
    (held.0 < file.0 / 10 * 7).then_some(Answer::Clear)
}

fn quantised(workload: &Workload) -> bool {
    let named = workload.model().map(str::to_ascii_lowercase).unwrap_or_default();
    workload.get(Setting::Quantisation).is_some()
        || QUANTISED.iter().any(|part| named.contains(part))
}

/// Whether the process allocates as much as 32-bit weights take, of a file that is smaller.
fn loaded_wide(holder: &Holder, gpu: &GpuView, facts: &ModelFacts) -> bool {
    let Ok(device) = device(holder, gpu) else { return false };
    let wide = facts.parameters().saturating_mul(4);
    let trains = training(holder).is_some();
    let share = device.allocated.0 as f64 / wide.max(1) as f64;
    let stored = facts.weight_bytes() as f64 / wide.max(1) as f64;
    (0.95..1.5).contains(&share) && !trains && stored < 0.6
}
