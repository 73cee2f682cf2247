//! Whether the rules would find the same again.

use std::hash::{Hash, Hasher};

use crate::analyze::{Fragmentation, GpuView, Growth, Holder, Ledger, View};
use crate::ids::quick::Quick;
use crate::sample::{Reading, ServerSample};
use crate::units::Bytes;

/// A number that changes with what the rules look at: who holds how much, what each is and runs,
/// what its allocator says. The time that passes is not in it, nor are facts that stay as long as a
/// process does.
pub fn grounds(view: &View) -> u64 {
    let mut hash = Quick::default();
    view.procs_age_ms.is_some().hash(&mut hash);
    view.gpus.iter().for_each(|gpu| of_gpu(gpu, &mut hash));
    view.holders.iter().for_each(|holder| of_holder(holder, &mut hash));
    for (path, facts) in &view.models {
        (path, facts.value().is_some()).hash(&mut hash);
    }
    hash.finish()
}

fn of_gpu(gpu: &GpuView, hash: &mut Quick) {
    let memory = gpu.sample.memory.value();
    memory.map(|memory| (memory.total, memory.used, memory.free)).hash(hash);
    of_growth(&gpu.growth, hash);
    std::mem::discriminant(&gpu.freshness).hash(hash);
    (gpu.sample.processes.why(), gpu.sample.unread_lists, gpu.unaccounted_causes.len()).hash(hash);
    gpu.ledger.value().filter(|ledger| ledger.unified).map(coarse).hash(hash);
    (gpu.xids.watched, gpu.xids.recent.len()).hash(hash);
    // No two faults of one number come in the same millisecond.
    gpu.xids.recent.first().map(|seen| (seen.at.boot_ms, seen.xid.code)).hash(hash);
}

/// Total and free in steps of half a per cent: the machine's memory moves all the time, and the rules
/// ask only whether a twentieth of it is left.
fn coarse(ledger: &Ledger) -> (Bytes, u64) {
    (ledger.total, ledger.free.0 / (ledger.total.0 / 200).max(1))
}

fn of_holder(holder: &Holder, hash: &mut Quick) {
    (holder.index, holder.pid, holder.id, holder.listed, holder.bytes).hash(hash);
    (holder.verdict.class, holder.verdict.zombie, holder.survivors.len()).hash(hash);
    of_growth(&holder.growth, hash);
    // It is shared by all views for as long as it stays the same.
    holder.workload.as_ref().map(std::sync::Arc::as_ptr).hash(hash);
    if let Fragmentation::Blocks { cached, reusable, largest_request, .. } = holder.fragmentation {
        (cached, reusable, largest_request).hash(hash);
    }
    holder.server.as_ref().map(|said| said.as_ref().map(answer)).hash(hash);
    let Some(Reading::Value(allocator)) = &holder.allocator else { return };
    for device in &allocator.devices {
        let figures: [Bytes; 2] = [device.allocated, device.reserved];
        figures.hash(hash);
    }
}

/// What the rules make of a server's answer; a later answer that says the same changes nothing.
fn answer(said: &ServerSample) -> impl Hash + use<> {
    let used = said.kv_used.map(|share| share.0.to_bits());
    let devices = said.devices.iter().map(|device| (device.reserved.0, device.cached.0));
    let devices = devices
        .fold((0_u64, 0_u64), |sum, one| (sum.0.wrapping_add(one.0), sum.1.wrapping_add(one.1)));
    (said.software, used, said.kv_tokens, said.running, said.waiting, said.slots, devices)
}

fn of_growth(growth: &Growth, hash: &mut Quick) {
    std::mem::discriminant(growth).hash(hash);
    if let Growth::Changing { per_minute } | Growth::Trend { per_minute, .. } = growth {
        per_minute.0.to_bits().hash(hash);
    }
}
