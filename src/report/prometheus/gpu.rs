//! GPUs: the fields of the table, and what is there beyond them.

use super::write::{Labels, Writer, short, with};
use super::{Exposition, Kind, Row, in_unit};
use crate::analyze::{Fragmentation, Freshness, GpuView, Growth, Holder, Ledger};
use crate::fields::{self, CLASSES, FieldId, gpu_label, slope};
use crate::sample::{AllocatorDevice, GpuSample, Memory, Reading, Seldom, Why};
use crate::units::Bytes;

/// What of GPUs is no field.
pub(super) const ROWS: &[Row] = &[
    ("vramlens_gpu", Kind::Info, "", "What a GPU is.", info),
    ("vramlens_gpu_up", Kind::Gauge, "", "1 while a GPU answers, 0 while it is lost.", up),
    (
        "vramlens_gpu_asleep",
        Kind::Gauge,
        "",
        "1 while a GPU sleeps, or is let sleep, and so is not asked.",
        |of, out| {
            each(of, |gpu, labels| {
                let why = gpu.sample.memory.why();
                let rests = matches!(why, Some(Why::Asleep | Why::LetSleep));
                out.sample(labels, if rests { 1.0 } else { 0.0 });
            });
        },
    ),
    (
        "vramlens_gpu_unified_memory_bytes",
        Kind::Gauge,
        "bytes",
        "Memory that a GPU shares with the host, by who has it: gpu, host or available.",
        unified,
    ),
    (
        "vramlens_gpu_memory_cached_bytes",
        Kind::Gauge,
        "bytes",
        "Cached by allocators and not used, as far as those could be read.",
        cached,
    ),
    (
        "vramlens_gpu_memory_shared_bytes",
        Kind::Gauge,
        "bytes",
        "Listed more than once, since processes share it.",
        |of, out| listed(of, out, |ledger| ledger.shared),
    ),
    (
        "vramlens_gpu_holders",
        Kind::Gauge,
        "",
        "Processes that hold memory or have the device open, by class.",
        classes,
    ),
    (
        "vramlens_gpu_zombies",
        Kind::Gauge,
        "",
        "Holders that nobody wants, by the evidence.",
        |of, out| told(of, |gpu, labels| out.sample(labels, f64::from(gpu.counts.zombies))),
    ),
    (
        "vramlens_gpu_zombie_memory_bytes",
        Kind::Gauge,
        "bytes",
        "What ending the zombies would free, as the driver lists it.",
        |of, out| told(of, |gpu, labels| out.bytes(labels, gpu.counts.zombie_bytes)),
    ),
    (
        "vramlens_gpu_growth_bytes_per_minute",
        Kind::Gauge,
        "",
        "How used memory moves in a minute.",
        growth,
    ),
    (
        "vramlens_gpu_full_in_seconds",
        Kind::Gauge,
        "seconds",
        "When the GPU is full at the present slope: earliest, likely and latest.",
        full_in,
    ),
    (
        "vramlens_gpu_allocator_reserved_bytes",
        Kind::Gauge,
        "bytes",
        "Taken from the driver by the allocators that could be read.",
        |of, out| allocators(of, out, |device| device.reserved),
    ),
    (
        "vramlens_gpu_allocator_allocated_bytes",
        Kind::Gauge,
        "bytes",
        "In living tensors of the allocators that could be read.",
        |of, out| allocators(of, out, |device| device.allocated),
    ),
    (
        "vramlens_gpu_fragmented_bytes",
        Kind::Gauge,
        "bytes",
        "Cached in pieces too small for the next request, in allocators whose blocks could be read.",
        |of, out| blocks(of, out, |_, fragmented| fragmented),
    ),
    (
        "vramlens_gpu_reusable_bytes",
        Kind::Gauge,
        "bytes",
        "Cached in pieces large enough for the next request, likewise.",
        |of, out| blocks(of, out, |reusable, _| reusable),
    ),
    (
        "vramlens_gpu_throttle_reasons",
        Kind::Gauge,
        "",
        "The driver's bits of why clocks are held down.",
        |of, out| {
            each(of, |gpu, labels| {
                out.reading(labels, gpu.sample.throttle.map(|bits| bits.0 as f64));
            });
        },
    ),
    (
        "vramlens_gpu_age_seconds",
        Kind::Gauge,
        "seconds",
        "Age of what is not read at every look: memory clock and fan (details), traffic (pcie), that \
         lists of graphics and MPS processes are empty (lists), power limit and modes (settings).",
        ages,
    ),
    (
        "vramlens_gpu_xid_watched",
        Kind::Gauge,
        "",
        "1 where the faults that the driver reports are watched.",
        |of, out| {
            each(of, |gpu, labels| out.reading(labels, gpu.xids.watched.map(|()| 1.0)));
        },
    ),
    (
        "vramlens_gpu_xid_errors",
        Kind::Counter,
        "",
        "Faults that the driver reported since the start, by NVIDIA's number.",
        xids,
    ),
];

/// Labels that name a GPU.
pub(super) fn labels(gpu: &GpuSample) -> Labels {
    vec![("gpu", gpu_label(gpu)), ("uuid", gpu.uuid.0.to_string())]
}

fn each(of: &Exposition<'_>, mut write: impl FnMut(&GpuView, &Labels)) {
    if of.is_current() {
        for gpu in &of.view.gpus {
            write(gpu, &labels(&gpu.sample));
        }
    }
}

/// Each whose list of holders the driver told: of any other nothing can be counted.
fn told(of: &Exposition<'_>, mut write: impl FnMut(&GpuView, &Labels)) {
    each(of, |gpu, labels| {
        if gpu.sample.unlisted().is_none() {
            write(gpu, labels);
        }
    });
}

/// The samples of a field.
pub(super) fn field(of: &Exposition<'_>, id: FieldId, out: &mut Writer) {
    each(of, |gpu, labels| {
        if let Some(value) = number(id, gpu) {
            out.sample(labels, in_unit(value, id.field().unit));
        }
    });
}

/// The field as a number, in the unit of the table; `None` where it is absent or words.
fn number(id: FieldId, gpu: &GpuView) -> Option<f64> {
    let sample = &gpu.sample;
    let memory = |pick: fn(&Memory) -> Bytes| sample.memory.value().map(|m| pick(m).0 as f64);
    let ledger = |pick: fn(&Ledger) -> Bytes| gpu.ledger.value().map(|l| pick(l).0 as f64);
    let owned = |pick: fn(&Ledger) -> Bytes| match sample.unlisted() {
        Some(_) => None,
        None => ledger(pick),
    };
    match id {
        FieldId::GpuTotal => memory(|memory| memory.total),
        FieldId::GpuUsed => memory(|memory| memory.used),
        FieldId::GpuReserved => Some(sample.memory.value()?.reserved.get()?.0 as f64),
        FieldId::GpuFree => memory(|memory| memory.free),
        FieldId::GpuProcesses => owned(|ledger| ledger.processes),
        FieldId::GpuSurvivors => owned(|ledger| ledger.survivors),
        FieldId::GpuUnaccounted => owned(|ledger| ledger.unaccounted),
        FieldId::GpuUtilization => sample.utilization.get().map(|use_| short(use_.sm.0)),
        FieldId::GpuMemoryUtilization => sample.utilization.get().map(|use_| short(use_.memory.0)),
        FieldId::GpuTemperature => sample.temperature.get().map(|t| f64::from(t.0)),
        FieldId::GpuPower => sample.power.get().map(|power| power.0 as f64),
        FieldId::GpuPowerLimit => sample.power_limit.get().map(|power| power.0 as f64),
        FieldId::GpuSmClock => sample.sm_clock.get().map(|clock| f64::from(clock.0)),
        FieldId::GpuMemoryClock => sample.memory_clock.get().map(|clock| f64::from(clock.0)),
        FieldId::GpuPcieRx => sample.pcie.get().map(|pcie| pcie.rx.0 as f64),
        FieldId::GpuPcieTx => sample.pcie.get().map(|pcie| pcie.tx.0 as f64),
        FieldId::GpuFan => sample.fan.get().map(|fan| short(fan.0)),
        _ => None,
    }
}

fn info(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        let text = |reading: &Reading<String>| reading.value().cloned().unwrap_or_default();
        let (name, bus) = (text(&gpu.sample.name), text(&gpu.sample.pci_bus_id));
        let parent = gpu.sample.mig.as_ref().map(|mig| mig.parent.0.to_string());
        let mut all = with(labels, &[("name", &name), ("pci_bus_id", &bus)]);
        // An instance of a GPU is not to be counted as one more GPU.
        all.push(("parent", parent.unwrap_or_default()));
        out.sample(&all, 1.0);
    });
}

fn up(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        let lost = gpu.freshness == Freshness::Lost;
        out.sample(labels, if lost { 0.0 } else { 1.0 });
    });
}

/// A part that only lists of processes tell.
fn listed(of: &Exposition<'_>, out: &mut Writer, pick: fn(&Ledger) -> Bytes) {
    told(of, |gpu, labels| {
        if let Reading::Value(ledger) = &gpu.ledger {
            out.bytes(labels, pick(ledger));
        }
    });
}

fn unified(of: &Exposition<'_>, out: &mut Writer) {
    told(of, |gpu, labels| {
        if let Reading::Value(ledger) = &gpu.ledger
            && ledger.unified
        {
            let held = ledger.processes + ledger.survivors;
            for (part, bytes) in [("gpu", held), ("host", ledger.host), ("available", ledger.free)]
            {
                out.bytes(&with(labels, &[("part", part)]), bytes);
            }
        }
    });
}

/// Holders of a GPU.
pub(super) fn holders<'a>(of: &Exposition<'a>, gpu: &GpuView) -> impl Iterator<Item = &'a Holder> {
    let uuid = gpu.sample.uuid.clone();
    of.view.holders.iter().filter(move |holder| holder.gpu == uuid)
}

fn classes(of: &Exposition<'_>, out: &mut Writer) {
    told(of, |gpu, labels| {
        for (class, key, _) in CLASSES {
            let count = holders(of, gpu).filter(|holder| holder.verdict.class == class).count();
            out.sample(&with(labels, &[("class", key)]), count as f64);
        }
    });
}

fn growth(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        if let Some(slope) = slope(gpu.growth) {
            out.sample(labels, slope);
        }
    });
}

fn ages(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        for (what, word) in Seldom::ALL {
            let Reading::Value(read_ms) = gpu.sample.read_earlier(what) else { continue };
            let earlier = read_ms.map(|read_ms| of.view.at.boot_ms.saturating_sub(read_ms));
            if let Some(ms) = earlier.or(of.view.gpus_age_ms) {
                out.sample(&with(labels, &[("of", word)]), ms as f64 / 1000.0);
            }
        }
    });
}

fn xids(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        for (code, count) in &gpu.xids.counts {
            out.sample(&with(labels, &[("xid", &code.to_string())]), *count as f64);
        }
    });
}

fn full_in(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        if let Growth::Trend { full_in_ms: Some(times), .. } = gpu.growth {
            for (bound, ms) in ["earliest", "likely", "latest"].into_iter().zip(times) {
                out.sample(&with(labels, &[("bound", bound)]), ms as f64 / 1000.0);
            }
        }
    });
}

fn cached(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |gpu, labels| {
        let mut known = holders(of, gpu).filter_map(fields::cached).peekable();
        if known.peek().is_some() {
            out.bytes(labels, known.sum());
        }
    });
}

/// A sum over the allocators that could be read; nothing where none could.
fn allocators(of: &Exposition<'_>, out: &mut Writer, pick: fn(&AllocatorDevice) -> Bytes) {
    each(of, |gpu, labels| {
        let read = holders(of, gpu).filter_map(|holder| holder.allocator.as_ref()?.value());
        let mut devices = read.flat_map(|sample| &sample.devices).map(pick).peekable();
        if devices.peek().is_some() {
            out.bytes(labels, devices.sum());
        }
    });
}

fn blocks(of: &Exposition<'_>, out: &mut Writer, pick: fn(Bytes, Bytes) -> Bytes) {
    each(of, |gpu, labels| {
        let known = holders(of, gpu).filter_map(|holder| match holder.fragmentation {
            Fragmentation::Blocks { reusable, fragmented, .. } => Some(pick(reusable, fragmented)),
            Fragmentation::None | Fragmentation::CachedOnly { .. } => None,
        });
        let mut known = known.peekable();
        if known.peek().is_some() {
            out.bytes(labels, known.sum());
        }
    });
}
