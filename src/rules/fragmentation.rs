//! Fix 6: memory that an allocator caches and cannot use.

use super::common::{
    Answer, WORTH, about, already, device, environment, fix, not_told, saving, settings, severity,
    short,
};
use super::per_holder::PerHolder;
use super::{Finding, Provenance, Severity};
use crate::analyze::{Fragmentation, GpuView, Holder, View};
use crate::oom::When;
use crate::sample::{AllocatorDevice, Reading};
use crate::units::Bytes;

const KEY: (&str, u8) = ("fragmentation", 6);

/// The rule.
pub static RULE: PerHolder = PerHolder { key: KEY.0, number: KEY.1, ask: one };

/// The cache of one process, by what can be done with it.
struct Cache {
    cached: Bytes,
    /// In blocks too small for the request that was asked about.
    fragmented: Bytes,
    /// In whole segments: `empty_cache()` gives them back. Unknown with expandable segments.
    releasable: Option<Bytes>,
    /// In pools of CUDA graphs: of no use to anything else, and not to be had.
    private: Bytes,
    largest: Bytes,
}

fn one(view: &View, holder: &Holder, gpu: &GpuView) -> Answer {
    let wsl = view.host.as_ref().is_some_and(|host| host.wsl);
    let device = match device(holder, gpu) {
        Ok(device) => device,
        Err(answer) => return answer,
    };
    let least = WORTH.max(Bytes(device.reserved.0 / 10));
    if device.reserved - device.allocated < least {
        return Answer::Clear;
    }
    let cached = device.reserved - device.allocated;
    let unknown =
        |what: &str| Answer::CannotTell(format!("{} caches {cached}; {what}", holder.pid));
    let (Fragmentation::Blocks { fragmented, largest_request, .. }, Reading::Value(blocks)) =
        (&holder.fragmentation, &device.free)
    else {
        return unknown("how it is cut is not known");
    };
    let (fragmented, largest) = (*fragmented, *largest_request);
    let releasable = blocks.releasable.map(|bytes| bytes.min(cached));
    let Some(private) = blocks.private_bytes.or((fragmented < least).then_some(Bytes::ZERO)) else {
        return unknown("how much of it is in pools of CUDA graphs is not known");
    };
    let cache = Cache { cached, fragmented, releasable, private, largest };
    let in_pieces = cache.fragmented - cache.private >= least;
    if in_pieces {
        return Answer::Hit(finding(holder, gpu, device, &cache, true, wsl));
    }
    // Only the cache's size is in question now, and whether somebody needs it.
    match (short(gpu), releasable) {
        (Some(false), _) => Answer::Clear,
        (_, Some(bytes)) if bytes < WORTH => Answer::Clear,
        (None, _) => not_told(gpu),
        (Some(true), None) => unknown("how much of it can be given back is not known"),
        (Some(true), Some(_)) => Answer::Hit(finding(holder, gpu, device, &cache, false, wsl)),
    }
}

fn finding(
    holder: &Holder,
    gpu: &GpuView,
    device: &AllocatorDevice,
    cache: &Cache,
    in_pieces: bool,
    wsl: bool,
) -> Finding {
    let retries = device.retries.get().unwrap_or(0);
    let pressed = retries > 0 || device.ooms.get().is_some_and(|n| n > 0);
    let grave = if in_pieces && pressed { Severity::Warning } else { severity(gpu) };
    let headline = if in_pieces {
        format!("{} caches {}, largest free block {}", holder.pid, cache.cached, cache.largest)
    } else {
        let bytes = cache.releasable.unwrap_or(cache.cached);
        format!("{} only caches {bytes} while the GPU is full", holder.pid)
    };
    let mut found = about(holder, KEY, grave, headline);
    found.evidence.push(format!("{} reserved, {} allocated", device.reserved, device.allocated));
    if in_pieces {
        let pieces = format!("{} of the cache are in blocks that are too small", cache.fragmented);
        found.evidence.push(pieces);
    }
    if retries > 0 {
        found.evidence.push(format!("the cache was emptied {retries} times to find room"));
    }
    // What is set and does not do what it is meant to.
    for set in settings(holder).iter().filter(|set| set.name.starts_with("PYTORCH_")) {
        let key = set.key.as_ref().map_or_else(String::new, |key| format!(" {key}"));
        let problem = set.problem.as_ref().map(|why| format!("{}{key}: {why}", set.name));
        found.evidence.extend(problem);
    }
    if in_pieces {
        unite(&mut found, holder, device, cache, wsl);
    }
    if let Some(exact) = cache.releasable.filter(|bytes| *bytes >= Bytes::mib(256)) {
        let saves = saving(holder, [exact.0; 3], Provenance::Read);
        let title = (KEY.1, "give the cache back");
        found.fixes.extend(fix(holder, title, &[When::Releasable], saves, &|_| None));
    }
    found
}

/// How the pieces become one, and what that gives back.
fn unite(found: &mut Finding, holder: &Holder, device: &AllocatorDevice, cache: &Cache, wsl: bool) {
    let on = device.expandable_segments.get() == Some(true)
        || already(holder, KEY.1, "expandable_segments");
    let told = device.expandable_segments.value().is_some() || environment(holder).is_some();
    if on {
        found.evidence.push("expandable segments are on already".to_owned());
    } else if !told {
        let text = "whether expandable segments are on already is not known";
        found.evidence.push(text.to_owned());
    }
    let more = cache.cached - cache.private;
    // Of what cannot be told nothing is sure to come back.
    let least = cache.releasable.unwrap_or(Bytes::ZERO);
    let bytes = (cache.fragmented - cache.private).max(least);
    let saves = saving(holder, [least.0, bytes.0, more.0], Provenance::Read).filter(|_| told);
    found.fixes.extend(if on || wsl {
        // Living blocks pin the holes, or the platform has no such segments: only like sizes help.
        let when = if on { When::AlreadyExpandable } else { When::FragmentedNoVirtualMemory };
        // Large enough for most tensors, small enough to keep large blocks whole.
        let value = |name: &str| (name == "split").then(|| "256".to_owned());
        fix(holder, (KEY.1, "make the sizes alike"), &[when], None, &value)
    } else {
        fix(holder, (KEY.1, "let segments grow"), &[When::Fragmented], saves, &|_| None)
    });
}
