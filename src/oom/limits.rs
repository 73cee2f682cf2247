//! The rungs of the ladder where the device had room, or no device would have: something else than
//! its capacity refused.

use super::clues::Mark;
use super::diagnose::{Confidence, Diagnosis, Finding, show};
use super::engines;
use super::figures::Slot;
use super::judge::Case;
use super::numbers::Numbers;
use super::signatures::{Class, Stage};
use super::tables;

/// What the cause is called where a process may take only a share.
pub(super) const SHARE: &str = "this process's share of the device is used up";

/// The request alone exceeds the device, or the share of it that this process may take.
pub(super) fn larger_than_device(case: &Case, n: &Numbers) -> Option<Finding> {
    let (requested, limit) = (n.requested?, n.allowed.or(n.total)?);
    if requested <= limit || case.stage == Stage::Weights {
        return None;
    }
    let find = |fixes: &[u8], why: String| {
        Finding::new(Diagnosis::BatchOrActivationTooBig, Confidence::Certain, fixes, why)
    };
    let sizes = (show(requested), show(limit));
    Some(match n.allowed {
        None => find(
            &[4],
            format!(
                "one allocation of {} is larger than the device of {}: only {} helps",
                sizes.0,
                sizes.1,
                // Managed memory may be larger than the device.
                if case.software == "rapids-rmm" {
                    "a smaller piece, or memory that spills into RAM,"
                } else {
                    "a smaller tensor"
                }
            ),
        ),
        Some(_) => Finding {
            refused: has_room(n),
            ..find(
                &[4, 6],
                format!(
                    "one allocation of {} is larger than this process's share of {}: only a smaller \
                     tensor or a larger share helps",
                    sizes.0, sizes.1
                ),
            )
            .because(SHARE)
        },
    })
}

/// What was asked for was free on the device, with the margin.
fn has_room(n: &Numbers) -> bool {
    n.requested
        .zip(n.free)
        .is_some_and(|(requested, free)| requested.saturating_add(n.margin()) <= free)
}

/// There was room: something else than the device's capacity refused.
pub(super) fn another_limit(case: &Case, n: &Numbers) -> Option<Finding> {
    let event = case.event()?;
    if event.signature.class == Class::Driver {
        return quota(case, n).or_else(|| driver_limit(case));
    }
    if event.signature.id == "torch.fraction" {
        let found = Finding::new(
            Diagnosis::UnknownGpuOom,
            Confidence::Certain,
            &[6, 4],
            event.signature.meaning,
        );
        return Some(Finding { refused: true, ..found.because(SHARE) });
    }
    // What Apple's limit is a part of is the system's memory: that is no share of a device.
    if let (Some(limit), None) = (n.allowed, n.free)
        && case.software != "pytorch-mps"
    {
        let requested = n.requested?;
        let full = n.room().is_some_and(|room| room < requested);
        let asked = format!("{} was asked for", show(requested));
        return full.then(|| share_limit(case, n, limit, asked));
    }
    let (requested, free) = (n.requested?, n.free?);
    // What was free on the device was more than what was left of the share.
    let share = requested <= free && n.room().is_some_and(|room| room < requested);
    if !has_room(n) && !share {
        return None;
    }
    let fits =
        format!("{} was asked for and {} was free on the device", show(requested), show(free));
    if let Some(limit) = n.allowed {
        return Some(share_limit(case, n, limit, fits));
    }
    let (cause, why) = match case.figures.get(Slot::Reserve) {
        Some(reserve) => (
            "the reserve of a segment is too small",
            format!(
                "the request exceeds the reserve of {} that expandable_segments_reserve sets for a segment",
                show(reserve)
            ),
        ),
        None if case.has(Mark::MapsFull) => (
            "the host's limit of memory maps",
            "the log shows the host's limit of memory maps (vm.max_map_count) reached".to_owned(),
        ),
        None => (
            "another limit than the device's capacity",
            "so another limit refused: a quota of the container, memory maps or RAM of the host, \
             address space, or expandable segments on a platform without them"
                .to_owned(),
        ),
    };
    let mut finding =
        Finding::new(Diagnosis::UnknownGpuOom, Confidence::Certain, &[6], fits).because(cause);
    finding.why.push(why);
    finding.refused = true;
    Some(finding)
}

/// The share of this process is used up.
fn share_limit(case: &Case, n: &Numbers, limit: u64, fits: String) -> Finding {
    let used = n.reserved.or(n.allocated).unwrap_or_default();
    let fixes: &[u8] = if engines::is_training(case) { &[4, 6, 7] } else { &[4, 6] };
    let finding =
        Finding::new(Diagnosis::BatchOrActivationTooBig, Confidence::Certain, fixes, fits);
    let mut finding = finding.because(SHARE);
    finding.why.push(format!(
        "this process may take {} and has {} {}: {} is left of its share",
        show(limit),
        if n.reserved.is_some() { "reserved" } else { "allocated" },
        show(used),
        show(limit.saturating_sub(used))
    ));
    finding.refused = true;
    finding
}

/// A container's quota stands beside a message without figures.
fn quota(case: &Case, n: &Numbers) -> Option<Finding> {
    let limit = n.allowed.filter(|_| case.has(Mark::Vgpu))?;
    let why =
        format!("the container's quota of {} refused it, as its own message says", show(limit));
    let found = Finding::new(Diagnosis::UnknownGpuOom, Confidence::Certain, &[6, 4], why);
    Some(Finding { refused: true, ..found.because(SHARE) })
}

/// Virtual-memory calls fail on some platforms however much is free.
fn driver_limit(case: &Case) -> Option<Finding> {
    let platform = if case.has(Mark::Wsl) {
        "WSL2"
    } else if case.has(Mark::Jetson) {
        "Jetson"
    } else {
        return None;
    };
    if !expandable(case) {
        return None;
    }
    let mut finding = Finding::new(
        Diagnosis::UnknownGpuOom,
        Confidence::Likely,
        &[6],
        format!(
            "expandable segments use virtual-memory calls that fail on {platform} with memory free: \
             here they are the cause, not the cure"
        ),
    )
    .because("expandable segments, which this platform does not have");
    finding.refused = true;
    // What stands before the message was another moment, and shows that the device is not full.
    let before = tables::read(&case.digest.lines, 0);
    if let (Some(total), Some(free)) = (before.total, before.free) {
        finding.why.push(format!(
            "the log shows {} of {} in use",
            show(total.saturating_sub(free)),
            show(total)
        ));
    }
    Some(finding)
}

/// Expandable segments are on, as far as the log shows.
pub(super) fn expandable(case: &Case) -> bool {
    case.has(Mark::ExpandableOn)
        || case.event().is_some_and(|event| event.signature.id == "driver.cuda_driver")
}
