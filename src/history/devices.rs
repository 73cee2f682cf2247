//! Which GPU a process means by "device 1": what `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`
//! make of the driver's order.

use crate::ids::{CudaOrdinal, GpuUuid};
use crate::sample::{AllocatorDevice, EnvVar, GpuSample, ProcSample};

/// The GPU of one of an allocator's devices: the process's own word where it says so, else what
/// its device number means.
pub fn gpu_of_device(
    device: &AllocatorDevice,
    process: &ProcSample,
    gpus: &[GpuSample],
    listed: &[&GpuUuid],
    devices: usize,
) -> Option<GpuUuid> {
    let known = |uuid: &&GpuUuid| {
        gpus.iter().any(|gpu| gpu.uuid == **uuid) && (listed.is_empty() || listed.contains(uuid))
    };
    match device.gpu.as_ref().filter(known) {
        Some(uuid) => Some(uuid.clone()),
        None => gpu_of(device.ordinal, process, gpus, listed, devices),
    }
}

/// The GPU of a CUDA process's device number, where that can be known. `listed` are the GPUs on
/// which the driver lists the process: an answer outside of them is no answer. `devices` is how
/// many devices the process's allocator names.
pub fn gpu_of(
    ordinal: CudaOrdinal,
    process: &ProcSample,
    gpus: &[GpuSample],
    listed: &[&GpuUuid],
    devices: usize,
) -> Option<GpuUuid> {
    let mapped = from_environment(ordinal, process, gpus)
        .filter(|uuid| listed.is_empty() || listed.contains(&uuid));
    mapped.or_else(|| match (listed, devices) {
        ([only], 1) => Some((*only).clone()),
        _ => None,
    })
}

fn from_environment(
    ordinal: CudaOrdinal,
    process: &ProcSample,
    gpus: &[GpuSample],
) -> Option<GpuUuid> {
    let environment = process.environment.as_ref()?.value()?;
    let ordinal = usize::try_from(ordinal.0).ok()?;
    let Some(visible) = find(environment, "CUDA_VISIBLE_DEVICES") else {
        return by_number(ordinal, environment, gpus);
    };
    let token = visible.split(',').nth(ordinal)?.trim();
    if let Ok(number) = token.parse::<usize>() {
        return by_number(number, environment, gpus);
    }
    if token.len() < 5 || !(token.starts_with("GPU-") || token.starts_with("MIG-")) {
        return None;
    }
    let mut fitting = gpus.iter().filter(|gpu| gpu.uuid.0.starts_with(token));
    let gpu = fitting.next()?;
    fitting.next().is_none().then(|| gpu.uuid.clone())
}

/// CUDA's own order is "fastest first"; among equal GPUs that is the order of the bus, which is
/// the driver's. With MIG, CUDA sees one instance only and counts in another way.
fn by_number(number: usize, environment: &[EnvVar], gpus: &[GpuSample]) -> Option<GpuUuid> {
    let whole = |gpu: &&GpuSample| gpu.mig.is_none();
    if gpus.iter().any(|gpu| gpu.mig.is_some() || gpu.mig_enabled.get() == Some(true)) {
        return None;
    }
    let by_bus = find(environment, "CUDA_DEVICE_ORDER") == Some("PCI_BUS_ID");
    let alike = gpus.windows(2).all(|pair| pair[0].name == pair[1].name);
    let mut order: Vec<_> = gpus.iter().filter(whole).collect();
    order.sort_by_key(|gpu| gpu.index);
    (by_bus || alike).then(|| order.get(number).map(|gpu| gpu.uuid.clone()))?
}

fn find<'a>(environment: &'a [EnvVar], name: &str) -> Option<&'a str> {
    environment.iter().find(|var| var.name == name).map(|var| var.value.as_str())
}
