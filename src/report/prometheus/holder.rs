//! Holders: the largest by name, the rest together.

use std::cmp::Reverse;

use super::gpu::{holders, labels};
use super::write::{Labels, Writer, short, with};
use super::{Exposition, Kind, Row, in_unit};
use crate::analyze::{Fragmentation, Holder};
use crate::fields::{FieldId, Unit, cell, class_key, number};
use crate::sample::{AllocatorDevice, Reading};
use crate::units::Bytes;

/// The pid of all holders that have no series of their own.
const REST: &str = "rest";

/// What of holders is no field.
pub(super) const ROWS: &[Row] = &[
    (
        "vramlens_holder",
        Kind::Info,
        "",
        "Who a holder is: its user, what manages it, and its class.",
        info,
    ),
    (
        "vramlens_holders_without_series",
        Kind::Gauge,
        "",
        "Holders of a GPU that are summed under the pid rest.",
        |of, out| {
            each_gpu(of, |_, rest, labels| out.sample(labels, rest.len() as f64));
        },
    ),
    (
        "vramlens_holder_allocator_reserved_bytes",
        Kind::Gauge,
        "bytes",
        "Taken from the driver by its allocator.",
        |of, out| allocator(of, out, |device| Some(device.reserved.0)),
    ),
    (
        "vramlens_holder_allocator_allocated_bytes",
        Kind::Gauge,
        "bytes",
        "In living tensors of its allocator.",
        |of, out| allocator(of, out, |device| Some(device.allocated.0)),
    ),
    (
        "vramlens_holder_allocator_out_of_memory",
        Kind::Counter,
        "",
        "Errors for want of memory that its allocator has thrown.",
        |of, out| allocator(of, out, |device| device.ooms.get()),
    ),
    (
        "vramlens_holder_allocator_retries",
        Kind::Counter,
        "",
        "Times that its allocator emptied the cache and tried again.",
        |of, out| allocator(of, out, |device| device.retries.get()),
    ),
    (
        "vramlens_holder_cached_bytes",
        Kind::Gauge,
        "bytes",
        "Kept by its allocator and not used.",
        |of, out| cache(of, out, |cache| Some(cache.cached)),
    ),
    (
        "vramlens_holder_fragmented_bytes",
        Kind::Gauge,
        "bytes",
        "Of that, in pieces too small for the next request.",
        |of, out| cache(of, out, |cache| cache.fragmented),
    ),
    (
        "vramlens_holder_largest_request_bytes",
        Kind::Gauge,
        "bytes",
        "The largest request that its allocator could serve from its cache.",
        |of, out| cache(of, out, |cache| cache.largest_request),
    ),
];

/// Holders with series of their own, and the rest; the largest come first.
fn split<'a>(of: &Exposition<'a>, all: impl Iterator<Item = &'a Holder>) -> [Vec<&'a Holder>; 2] {
    let mut named: Vec<_> = all.collect();
    named.sort_by_key(|holder| (Reverse(holder.bytes.get()), holder.pid));
    let rest = named.split_off(named.len().min(of.most_holders));
    [named, rest]
}

fn each_gpu<'a>(of: &Exposition<'a>, mut write: impl FnMut(&[&'a Holder], &[&'a Holder], &Labels)) {
    if of.is_current() {
        for gpu in &of.view.gpus {
            let [named, rest] = split(of, holders(of, gpu));
            write(&named, &rest, &labels(&gpu.sample));
        }
    }
}

fn each(of: &Exposition<'_>, mut write: impl FnMut(&Holder, &Labels)) {
    each_gpu(of, |named, _, labels| {
        for holder in named {
            let comm = holder.process.as_ref().map_or("", |process| process.comm.as_str());
            write(holder, &with(labels, &[("pid", &holder.pid.to_string()), ("comm", comm)]));
        }
    });
}

/// The samples of a field. Only memory is summed for the rest: the other figures are no sums, or
/// are of the process and not of its part on this GPU.
pub(super) fn field(of: &Exposition<'_>, id: FieldId, out: &mut Writer) {
    each(of, |holder, labels| {
        if let Some(value) = number(id, holder) {
            let unit = id.field().unit;
            let value = if unit == Unit::Percent { short(value as f32) } else { value };
            out.sample(labels, in_unit(value, unit));
        }
    });
    if id == FieldId::Vram {
        each_gpu(of, |_, rest, labels| {
            let mut known = rest.iter().filter_map(|holder| holder.bytes.get()).peekable();
            if known.peek().is_some() {
                out.bytes(&with(labels, &[("pid", REST), ("comm", "")]), known.sum());
            }
        });
    }
}

fn info(of: &Exposition<'_>, out: &mut Writer) {
    each(of, |holder, labels| {
        let class = class_key(holder.verdict.class);
        let text = |id| Some(cell(id, holder)).filter(|text| text != "-").unwrap_or_default();
        let zombie = if holder.verdict.zombie { "true" } else { "false" };
        let more = [
            ("user", &*text(FieldId::User)),
            ("unit", &*text(FieldId::Unit)),
            ("kind", &*holder.kinds.letters()),
            ("class", class),
            ("zombie", zombie),
        ];
        out.sample(&with(labels, &more), 1.0);
    });
}

fn allocator(of: &Exposition<'_>, out: &mut Writer, pick: fn(&AllocatorDevice) -> Option<u64>) {
    each(of, |holder, labels| {
        if let Some(Reading::Value(sample)) = &holder.allocator {
            let all: Option<Vec<u64>> = sample.devices.iter().map(pick).collect();
            if let Some(all) = all.filter(|all| !all.is_empty()) {
                out.sample(labels, all.iter().sum::<u64>() as f64);
            }
        }
    });
}

struct Cache {
    cached: Bytes,
    fragmented: Option<Bytes>,
    largest_request: Option<Bytes>,
}

fn cache(of: &Exposition<'_>, out: &mut Writer, pick: fn(&Cache) -> Option<Bytes>) {
    each(of, |holder, labels| {
        let cache = match holder.fragmentation {
            Fragmentation::None => return,
            Fragmentation::CachedOnly { cached } => {
                Cache { cached, fragmented: None, largest_request: None }
            }
            Fragmentation::Blocks { cached, fragmented, largest_request, .. } => Cache {
                cached,
                fragmented: Some(fragmented),
                largest_request: Some(largest_request),
            },
        };
        if let Some(bytes) = pick(&cache) {
            out.bytes(labels, bytes);
        }
    });
}
