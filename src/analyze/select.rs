//! A view of some GPUs only.

use super::View;
use crate::ids::{GpuIndex, GpuUuid};

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
