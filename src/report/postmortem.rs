//! What `run` says when a command has ended: three lines, or, after an out-of-memory error, what
//! happened, who held what in the minutes before, and what to do.

use std::collections::BTreeMap;

use crate::analyze::{Growth, Holder, View};
use crate::history::{ChartPoint, History, HolderTrack};
use crate::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use crate::report::clean::{clean_for, fit, width, wrap};
use crate::report::ledger::{self, line};
use crate::report::{Style, json, triage};
use crate::rules::{Finding, Fit};
use crate::sample::{AllocatorDevice, AllocatorSample, Reading};
use crate::units::{Bytes, age};

/// What a command held at the most, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peak {
    /// In all.
    pub bytes: Bytes,
    /// By GPU.
    pub gpus: BTreeMap<GpuIndex, Bytes>,
    /// In how many processes.
    pub processes: usize,
}

/// The highest figures of one process's allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocatorPeak {
    /// Peak of what lived in tensors, over its devices.
    pub allocated: Bytes,
    /// Peak of what was taken from the driver.
    pub reserved: Bytes,
    /// Its last figures.
    pub last: AllocatorSample,
}

/// What was found out about a command that has ended.
pub struct Facts<'a> {
    /// The machine when the command last held memory.
    pub view: Option<&'a View>,
    /// What was before.
    pub history: &'a History,
    /// The GPU that it is about.
    pub gpu: Option<&'a GpuUuid>,
    /// The command's processes.
    pub members: &'a [Pid],
    /// The most that it held.
    pub peak: Option<&'a Peak>,
    /// Its allocators.
    pub allocators: &'a BTreeMap<ProcId, AllocatorPeak>,
}

/// What is known of an end by lack of memory.
pub struct Death<'a> {
    /// How it ended, in words: `exit code 1`.
    pub end: String,
    /// How long it ran, in milliseconds.
    pub ran_ms: u64,
    /// Whose memory ran out.
    pub whose: Whose,
    /// What its message means, as [`crate::oom::report`] writes it; or why it is thought that
    /// memory was short.
    pub message: &'a str,
    /// What should be known about the machine.
    pub findings: &'a [Finding],
    /// Whether the request that failed would have been had after that.
    pub fit: Option<&'a Fit>,
}

/// Whose memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// A GPU's.
    Gpu,
    /// The host's.
    Host,
    /// A GPU's, most likely.
    Perhaps,
}

/// How far the chart goes back.
const BACK_MS: u64 = 300_000;
/// Holders that have a line of their own.
const ROWS: usize = 8;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The three lines of a command that ended in another way.
pub fn summary(facts: &Facts<'_>, style: &Style) -> String {
    let mut out = String::new();
    let Some(peak) = facts.peak else {
        line(&mut out, "vramlens: no GPU memory of the command was seen", style);
        return out;
    };
    let total = |index: GpuIndex| {
        let gpus = facts.view.map_or(&[][..], |view| &view.gpus);
        let gpu = gpus.iter().find(|gpu| gpu.sample.index == index && gpu.sample.mig.is_none());
        gpu.and_then(|gpu| gpu.ledger.get()).map(|ledger| ledger.total)
    };
    let of =
        |index: GpuIndex| total(index).map_or_else(String::new, |total| format!(" of {total}"));
    let places: Vec<String> = match peak.gpus.len() {
        1 => peak.gpus.keys().map(|index| format!("{} on GPU {index}", of(*index))).collect(),
        _ => vec![format!(
            " ({})",
            peak.gpus
                .iter()
                .map(|(index, bytes)| format!("GPU {index}: {bytes}"))
                .collect::<Vec<_>>()
                .join(", ")
        )],
    };
    let processes = match peak.processes {
        0 | 1 => String::new(),
        n => format!(", {n} processes"),
    };
    let place = places.concat();
    line(&mut out, &format!("vramlens: peak VRAM       {}{place}{processes}", peak.bytes), style);
    line(&mut out, &format!("vramlens: peak allocator  {}", allocators(facts)), style);
    line(&mut out, &format!("vramlens: growth          {}", growth(facts)), style);
    out
}

fn allocators(facts: &Facts<'_>) -> String {
    let all = facts.allocators;
    if all.is_empty() {
        return "none was read".to_owned();
    }
    let allocated: Bytes = all.values().map(|peak| peak.allocated).sum();
    let reserved: Bytes = all.values().map(|peak| peak.reserved).sum();
    let whom = match all.len() {
        1 => String::new(),
        n => format!(" ({n} processes together, each at its own peak)"),
    };
    format!("{allocated} allocated, {reserved} reserved{whom}")
}

/// Of the largest of its holders.
fn growth(facts: &Facts<'_>) -> String {
    let own = |holder: &&Holder| facts.members.contains(&holder.pid);
    let holders = facts.view.map_or(&[][..], |view| &view.holders).iter().filter(own);
    let Some(largest) = holders.max_by_key(|holder| holder.bytes.get()) else {
        return "unknown".to_owned();
    };
    let size = |slope: f64| {
        let sign = if slope < 0.0 { '-' } else { '+' };
        format!("{sign}{}", Bytes(slope.abs() as u64))
    };
    match largest.growth {
        Growth::NotYet => "too short a run to tell".to_owned(),
        Growth::Steady => "none".to_owned(),
        Growth::Changing { per_minute: slope } => {
            format!("{} in the last minute, not steadily", size(slope.0))
        }
        Growth::Trend { per_minute: slope, .. } => {
            format!("{} a minute, steadily, up to the end", size(slope.0))
        }
    }
}

/// The report of an end by lack of memory.
pub fn text(death: &Death<'_>, facts: &Facts<'_>, style: &Style) -> String {
    let mut out = String::new();
    let dash = if style.ascii { "-" } else { "─" };
    let rest = dash.repeat(style.width.saturating_sub(12));
    line(&mut out, &format!("{} vramlens {rest}", dash.repeat(2)), style);
    let gpu = facts
        .view
        .zip(facts.gpu)
        .and_then(|(view, uuid)| view.gpus.iter().find(|gpu| gpu.sample.uuid == *uuid));
    let place = gpu.map_or_else(String::new, |gpu| format!(" on {}", ledger::gpu_name(gpu)));
    let what = match death.whose {
        Whose::Gpu => format!("Out of memory{place}"),
        Whose::Perhaps => format!("Perhaps out of memory{place}"),
        Whose::Host => "Out of memory on the host, not on a GPU".to_owned(),
    };
    let (end, after) = (clean_for(&death.end, style.ascii), age(death.ran_ms));
    line(&mut out, &format!("{what}: the command ended with {end} after {after}."), style);
    out.push('\n');
    for text in death.message.lines() {
        line(&mut out, &clean_for(text, style.ascii), style);
    }
    if let Some((view, gpu)) = facts.view.zip(gpu) {
        out.push_str("\nBEFORE THE END\n");
        ledger::block(&mut out, view, gpu, style);
        out.push('\n');
        chart(&mut out, facts, view, &gpu.sample.uuid, style);
    } else if facts.history.latest().is_some() {
        out.push_str("\nNo GPU memory of the command was seen before its end.\n");
    }
    for (id, peak) in facts.allocators {
        allocator(&mut out, *id, peak, style);
    }
    let index = gpu.map(|gpu| gpu.sample.index);
    let about = |finding: &&Finding| {
        finding.gpu.is_none_or(|gpu| Some(gpu) == index)
            || finding.pid.is_some_and(|pid| facts.members.contains(&pid))
    };
    let findings: Vec<&Finding> = death.findings.iter().filter(about).collect();
    if !findings.is_empty() {
        out.push_str("\nWHAT TO DO\n");
        for (at, finding) in findings.into_iter().enumerate() {
            triage::write_finding(&mut out, at + 1, finding, style);
        }
    }
    if let Some(fit) = death.fit {
        out.push_str("\nWOULD THE REQUEST HAVE BEEN HAD?\n");
        for text in fit.text().lines() {
            line(&mut out, &clean_for(text, style.ascii), style);
        }
    }
    out
}

fn paragraph(out: &mut String, text: &str, style: &Style) {
    for text in wrap(&clean_for(text, style.ascii), style.width.saturating_sub(2)) {
        line(out, &format!("  {text}"), style);
    }
}

/// A line of the chart.
struct Row {
    name: String,
    points: Vec<Option<ChartPoint>>,
    last: Option<Bytes>,
    peak: Option<Bytes>,
}

/// The last minutes of every holder of a GPU, one line each, all to the same scale.
fn chart(out: &mut String, facts: &Facts<'_>, view: &View, gpu: &GpuUuid, style: &Style) {
    let history = facts.history;
    let to_ms = view.at.boot_ms;
    let tracks: Vec<&HolderTrack> = history
        .holders()
        .filter(|track| track.gpu == *gpu && track.last_ms + BACK_MS >= to_ms)
        .collect();
    let oldest = history.oldest().map_or(0, |stamp| stamp.boot_ms);
    let from_ms = to_ms.saturating_sub(BACK_MS).max(oldest).min(to_ms.saturating_sub(1_000));
    let columns = style.width.saturating_sub(48).clamp(12, 80);
    let mut pids: Vec<Pid> = tracks.iter().map(|track| track.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut rows: Vec<Row> = pids
        .iter()
        .map(|pid| row(facts, &tracks, *pid, (from_ms, to_ms, columns), style))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.last, row.peak)));
    let scale = rows.iter().filter_map(|row| row.peak).max().unwrap_or(Bytes::ZERO);
    let span = age(to_ms.saturating_sub(from_ms));
    let head = format!("HOLDERS, THE LAST {span}");
    line(out, &format!("{head:<28} {:<columns$} {:>8} {:>8}", "", "AT LAST", "PEAK"), style);
    let more = rows.len().saturating_sub(ROWS);
    for row in rows.iter().take(ROWS) {
        let name = fit(&row.name, 28, style.ascii);
        let pad = " ".repeat(28_usize.saturating_sub(width(&name)));
        let bars = spark(&row.points, scale, style.ascii);
        let short = |bytes: Option<Bytes>| bytes.map_or_else(|| "gone".to_owned(), Bytes::short);
        let last = short(row.last);
        line(out, &format!("{name}{pad} {bars} {last:>8} {:>8}", short(row.peak)), style);
    }
    if more > 0 {
        line(out, &format!("and {more} more"), style);
    }
}

fn row(
    facts: &Facts<'_>,
    tracks: &[&HolderTrack],
    pid: Pid,
    (from_ms, to_ms, columns): (u64, u64, usize),
    style: &Style,
) -> Row {
    let own: Vec<_> = tracks.iter().filter(|track| track.pid == pid).collect();
    let mark = match (facts.members.contains(&pid), style.ascii) {
        (false, _) => " ",
        (true, true) => ">",
        (true, false) => "▸",
    };
    let process = own.iter().rev().find_map(|track| track.facts.as_deref());
    let command = process.map_or_else(String::new, |process| json::command(process, style.redact));
    let name = clean_for(&format!("{mark} {pid} {command}"), style.ascii);
    let points = own.last().map_or_else(Vec::new, |track| {
        facts.history.holder_chart(&track.gpu, pid, from_ms, to_ms, columns)
    });
    let held = facts.view.and_then(|view| {
        let here = |holder: &&Holder| own.iter().any(|track| track.gpu == holder.gpu);
        view.holders.iter().filter(here).find(|holder| holder.pid == pid)?.bytes.get()
    });
    Row { name, points, last: held, peak: own.iter().filter_map(|track| track.peak).max() }
}

/// One character a column; a blank where nothing is known.
fn spark(points: &[Option<ChartPoint>], scale: Bytes, ascii: bool) -> String {
    let levels = if ascii { ASCII_LEVELS } else { LEVELS };
    let level = |point: &ChartPoint| {
        let share = point.used.percent_of(scale).map_or(0.0, |percent| percent.0 / 100.0);
        let at = (share * (levels.len() - 1) as f32).round() as usize;
        levels.get(at).or(levels.last()).copied().unwrap_or(' ')
    };
    points.iter().map(|point| point.as_ref().map_or(' ', level)).collect()
}

fn allocator(out: &mut String, id: ProcId, peak: &AllocatorPeak, style: &Style) {
    line(out, "", style);
    line(out, &format!("ALLOCATOR OF {}, LAST READ BEFORE THE END", id.pid), style);
    for device in &peak.last.devices {
        let cached = device.reserved.saturating_sub(device.allocated);
        let text = format!(
            "device {}: {} reserved = {} allocated + {cached} cached",
            device.ordinal.0, device.reserved, device.allocated
        );
        paragraph(out, &text, style);
        for detail in details(device) {
            paragraph(out, &detail, style);
        }
    }
    paragraph(
        out,
        &format!("at its peak {} allocated, {} reserved", peak.allocated, peak.reserved),
        style,
    );
}

fn details(device: &AllocatorDevice) -> Vec<String> {
    let mut parts = Vec::new();
    if let Reading::Value(free) = &device.free {
        let blocks = if free.count == 1 { "block" } else { "blocks" };
        parts.push(format!(
            "{} free {blocks}, the largest request that fits in one: {}",
            free.count, free.largest_request
        ));
    }
    if let Some(releasable) = device.free.value().and_then(|free| free.releasable) {
        parts.push(format!("empty_cache() would have given back {releasable}"));
    }
    if let Some(n @ 1..) = device.retries.get() {
        parts.push(format!("the cache was emptied to retry, {n} times"));
    }
    match device.ooms.get() {
        None | Some(0) => {}
        Some(1) => parts.push("1 out-of-memory error".to_owned()),
        Some(n) => parts.push(format!("{n} out-of-memory errors")),
    }
    if device.expandable_segments.get() == Some(true) {
        parts.push("expandable segments".to_owned());
    }
    parts
}
