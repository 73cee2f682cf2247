//! Fix 5: layers, experts or encoders on the CPU; and the way back, where there is room.

use super::common::{
    Answer, WORTH, about, facts, fix, margin, not_told, room, severity, shared, short, whole,
    workload,
};
use super::per_holder::PerHolder;
use super::{Fix, Severity};
use crate::analyze::workload::{Setting, Software, Workload};
use crate::analyze::{GpuView, Holder, View};
use crate::model::ModelFacts;
use crate::model::plan::Settings;
use crate::oom::When;
use crate::units::Bytes;

const KEY: (&str, u8) = ("offload", 5);

/// The rule.
pub static RULE: PerHolder = PerHolder { key: KEY.0, number: KEY.1, ask: one };

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let workload = match workload(holder) {
        Ok(workload) => workload,
        Err(answer) => return answer,
    };
    match workload.software {
        Software::LlamaCpp | Software::Ollama => llama(view, holder, gpu, workload),
        Software::Diffusers | Software::Transformers => on_load(holder, gpu),
        Software::ComfyUi if workload.get(Setting::VramMode).is_none() => on_load(holder, gpu),
        _ => Answer::Clear,
    }
}

/// What moves to the host when it is loaded, by nobody's arithmetic.
fn on_load(holder: &Holder, gpu: &GpuView) -> Answer {
    if super::common::training(holder).is_some() || shares_the_host(gpu) {
        return Answer::Clear;
    }
    match (short(gpu), holder.bytes.get()) {
        (Some(false), _) => return Answer::Clear,
        (_, Some(bytes)) if bytes < WORTH => return Answer::Clear,
        (None, _) => return not_told(gpu),
        (_, None) => {
            let pid = holder.pid;
            return Answer::CannotTell(format!("the driver does not tell what {pid} holds"));
        }
        _ => {}
    }
    let headline = format!("{} keeps all of its parts on the GPU", holder.pid);
    let mut found = about(holder, KEY, severity(gpu), headline);
    found.evidence.push("how much would move depends on its parts".to_owned());
    found.fixes.extend(fix(holder, (KEY.1, "parts to the CPU"), &[When::Always], None, &|_| None));
    if found.fixes.is_empty() { Answer::Clear } else { Answer::Hit(found) }
}

/// A GPU without memory of its own: what moves to the host stays in the same memory.
fn shares_the_host(gpu: &GpuView) -> bool {
    gpu.ledger.get().is_some_and(|ledger| ledger.unified)
}

fn llama(view: &View, holder: &Holder, gpu: &GpuView, workload: &Workload) -> Answer {
    let Some(settings) = workload.llama_settings() else {
        let pid = holder.pid;
        return Answer::CannotTell(format!("{pid} was started without a context: it chose one"));
    };
    let Some((total, free)) = room(gpu) else { return not_told(gpu) };
    let facts = match facts(view, holder) {
        Ok(facts) => facts,
        Err(answer) => return answer,
    };
    let all = facts.shape.layers.len() as u64 + 1;
    let now = settings.gpu_layers.min(all);
    let keep = margin(total);
    if short(gpu) == Some(true) && now > 0 {
        if shares_the_host(gpu) {
            return Answer::Clear;
        }
        return fewer(view, holder, gpu, facts, &settings, keep - free);
    }
    // More layers: what is free is for the taking on this GPU alone.
    let room = free.checked_sub(Bytes(keep.0.saturating_mul(2)));
    let Some(room) = room.filter(|_| now < all) else { return Answer::Clear };
    match (holder.bytes.get(), whole(view, holder)) {
        (Some(here), Some(all)) if here == all => more(holder, facts, &settings, room),
        (Some(_), Some(_)) => Answer::Clear,
        _ => {
            let pid = holder.pid;
            Answer::CannotTell(format!("the driver does not tell what {pid} holds"))
        }
    }
}

/// As many layers less as bring the margin back; experts before layers.
fn fewer(
    view: &View,
    holder: &Holder,
    gpu: &GpuView,
    facts: &ModelFacts,
    settings: &Settings,
    lacks: Bytes,
) -> Answer {
    let lacks = lacks.max(WORTH).0;
    let run = facts.running(settings);
    let layers = facts.shape.layers.len() as u64;
    let now = settings.gpu_layers.min(layers + 1);
    let headline = format!("{} has {now} of {} layers on the GPU", holder.pid, layers + 1);
    let mut found = about(holder, KEY, severity(gpu), headline);
    found.evidence.push(format!("{}: {}", facts.name, Bytes(facts.weight_bytes())));
    found.evidence.push("what moves needs as much host RAM".to_owned());
    if facts.weights.has_experts() {
        let used = settings.cpu_experts.min(layers);
        let enough = |n: &u64| run.experts_to_cpu(*n).bytes >= lacks;
        if let Some(n) = (1..=layers.saturating_sub(used)).find(enough) {
            let value = |name: &str| (name == "experts").then(|| (used + n).to_string());
            let saves = shared(view, holder, run.experts_to_cpu(n));
            let title = (KEY.1, "experts to the CPU");
            found.fixes.extend(fix(holder, title, &[When::Experts], saves, &value));
        }
    }
    let enough = |n: &u64| run.fewer_layers(*n).bytes >= lacks;
    if let Some(n) = (1..now).find(enough) {
        let value = |name: &str| (name == "layers").then(|| (now - n).to_string());
        let saves = shared(view, holder, run.fewer_layers(n));
        let title = (KEY.1, "layers to the CPU");
        found.fixes.extend(fix(holder, title, &[When::Always], saves, &value));
    }
    if found.fixes.is_empty() { Answer::Clear } else { Answer::Hit(found) }
}

/// Layers are on the CPU although there is room for them.
fn more(holder: &Holder, facts: &ModelFacts, settings: &Settings, room: Bytes) -> Answer {
    let all = facts.shape.layers.len() as u64 + 1;
    let now = settings.gpu_layers.min(all);
    let size = |n: u64| {
        let with = Settings { gpu_layers: n, ..settings.clone() };
        crate::model::plan::place(&facts.shape, &facts.weights, &with).on_gpus()
    };
    let before = size(now);
    let fits = |n: &u64| size(*n).saturating_sub(before) <= room.0;
    let Some(best) = (now + 1..=all).rev().find(fits) else { return Answer::Clear };
    let headline = format!("{} has room for {} layers more", holder.pid, best - now);
    let mut found = about(holder, KEY, Severity::Notice, headline);
    let takes = Bytes(size(best).saturating_sub(before));
    found.evidence.push(format!("{now} of {all} layers are on the GPU"));
    found.evidence.push(format!("{best} would take {takes} more; it would be faster"));
    let value = |name: &str| (name == "layers").then(|| best.to_string());
    let made: Option<Fix> =
        fix(holder, (KEY.1, "more layers on the GPU"), &[When::Room], None, &value);
    found.fixes.extend(made);
    Answer::Hit(found)
}
