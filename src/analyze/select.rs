//! A view of some GPUs only.

use super::View;
use crate::ids::{GpuIndex, GpuUuid, Pid};

/// Keeps the GPUs that a list names, by index or by the beginning of a UUID, and their holders. An
/// empty list keeps all.
pub fn keep(view: &mut View, wanted: &[String]) {
    if wanted.is_empty() {
        return;
    }
    view.gpus.retain(|gpu| {
        let parent = gpu.sample.mig.as_ref().map(|mig| &mig.parent);
        names(wanted, gpu.sample.index, &gpu.sample.uuid, parent)
    });
    let gpus = &view.gpus;
    view.holders.retain(|holder| gpus.iter().any(|gpu| gpu.sample.uuid == holder.gpu));
}

/// Who holds what on GPUs that a list does not name: pid and number of the GPU. To be asked before
/// [`keep`].
pub fn elsewhere(view: &View, wanted: &[String]) -> Vec<(Pid, GpuIndex)> {
    let out = |gpu: &GpuUuid| {
        let found = view.gpus.iter().find(|one| one.sample.uuid == *gpu);
        found.is_some_and(|gpu| {
            let parent = gpu.sample.mig.as_ref().map(|mig| &mig.parent);
            !names(wanted, gpu.sample.index, &gpu.sample.uuid, parent)
        })
    };
    let others = view.holders.iter().filter(|holder| out(&holder.gpu));
    others.map(|holder| (holder.pid, holder.index)).collect()
}

/// What to say where a list names a GPU that is not there: `there is no GPU 9; there are 0 and 1`.
/// `None` where all of them are there, and where that cannot be told: no GPU was told of yet, or one
/// whose UUID nobody knows may be meant. One that is lost or sleeps is there. To be asked before
/// [`keep`].
pub fn nowhere(view: &View, wanted: &[String]) -> Option<String> {
    let gpus = || view.gpus.iter().map(|gpu| &gpu.sample);
    let is_index = |name: &str| name.len() < 3 && name.parse::<u32>().is_ok();
    let nameless = gpus().any(|gpu| gpu.uuid.is_unknown());
    let is_there = |name: &String| {
        let name = std::slice::from_ref(name);
        gpus().any(|gpu| names(name, gpu.index, &gpu.uuid, gpu.mig.as_ref().map(|mig| &mig.parent)))
    };
    let missing = wanted.iter().filter(|name| !is_there(name));
    let missing: Vec<&str> =
        missing.map(String::as_str).filter(|name| is_index(name) || !nameless).collect();
    if missing.is_empty() || view.gpus.is_empty() {
        return None;
    }
    let mut numbers: Vec<u32> = gpus().map(|gpu| gpu.index.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let there = match numbers.as_slice() {
        [one] => format!("there is only GPU {one}"),
        many => format!("there are {}", list(many)),
    };
    let what = if missing.len() == 1 { "is no GPU" } else { "are no GPUs" };
    let how = if missing.iter().all(|name| name.parse::<u32>().is_ok()) {
        ""
    } else {
        "; a GPU is named by its number, or by how its UUID begins"
    };
    Some(format!("there {what} {}; {there}{how}", list(&missing)))
}

/// `0`, `0 and 1`, `0, 1 and 2`.
pub fn list(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Whether a list names a GPU; an empty one names all. An instance of MIG is named with its GPU.
pub fn names(wanted: &[String], index: GpuIndex, uuid: &GpuUuid, parent: Option<&GpuUuid>) -> bool {
    wanted.is_empty()
        || wanted.iter().any(|name| {
            name.parse::<u32>().is_ok_and(|number| number == index.0)
                || is_start(name, &uuid.0)
                || parent.is_some_and(|uuid| is_start(name, &uuid.0))
        })
}

/// A number of up to two digits is an index and never the beginning of a UUID.
fn is_start(name: &str, uuid: &str) -> bool {
    let bare = uuid.split_once('-').map_or(uuid, |(_, rest)| rest);
    name.len() > 2 && (uuid.starts_with(name) || bare.starts_with(name))
}
