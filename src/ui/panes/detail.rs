//! One process in words: who it is, what it is and why, what its allocator says.

use super::Scene;
use crate::analyze::{Fragmentation, GpuView, Holder, Weight};
use crate::fields::{self, FieldId, state_word};
use crate::ids::Stamp;
use crate::sample::{AllocatorBasis, AllocatorDevice, FreeBlocks, ProcSample, Reading, Why};
use crate::ui::doc::Doc;
use crate::ui::words::{clock, span, trend};
use crate::units::Bytes;

/// Everything about the selected process in a few lines: the right third of a wide screen.
pub fn summary(doc: &mut Doc, scene: &Scene<'_>, holder: &Holder) {
    identity(doc, holder);
    verdict(doc, holder);
    movement(doc, scene, holder);
    allocator(doc, scene, holder, true);
}

/// Memory of a GPU that is in no process's name: what is known of it, and what may have it.
pub fn unaccounted(doc: &mut Doc, gpu: &GpuView, bytes: Bytes) {
    let (theme, sign) = (doc.look().theme, doc.look().glyphs.unaccounted);
    let index = gpu.sample.index;
    let title = match gpu.sample.unlisted() {
        Some(_) => format!("{bytes} on GPU {index} used, and by whom is not told"),
        None => format!("{bytes} on GPU {index} unaccounted: used, and in no process's name"),
    };
    doc.line(&title, theme.strong);
    for cause in &gpu.unaccounted_causes {
        doc.bullet(sign, theme.unaccounted, &cause.text, theme.text);
    }
}

/// Who it is.
pub fn identity(doc: &mut Doc, holder: &Holder) {
    let theme = doc.look().theme;
    let pid = holder.pid.to_string();
    match holder.command() {
        command if command.is_empty() => {
            doc.bullet(&pid, theme.strong, fields::without_command(holder), theme.dim);
        }
        command => doc.bullet(&pid, theme.strong, &command, theme.text),
    }
    let user = fields::cell(FieldId::User, holder);
    let age = holder.age_ms.get().map_or_else(|| "unknown".to_owned(), span);
    doc.fact("user", &user);
    doc.fact("running", &age);
    let unit = fields::cell(FieldId::Unit, holder);
    if unit != "-" {
        doc.fact("belongs to", &unit);
    }
    let kind = holder.kinds.letters();
    let listed = if holder.listed { kind.as_str() } else { "not listed by the driver" };
    doc.fact("driver's list", listed);
}

/// A process that does nothing is read so often, in milliseconds.
const REST_MS: u64 = 4_000;
/// What a thread of its own reads at every look, and shows at the next, is no older than this, in
/// milliseconds, or has stood still.
const STANDS_MS: u64 = 8_000;

/// How old what is said of its state is: its rhythm, for as long as that holds, since a count of
/// seconds would be drawn anew each second.
pub fn age_of_facts(doc: &mut Doc, holder: &Holder, at: Stamp) {
    let Some(process) = &holder.process else { return };
    let of_look = || match process.at_work().why() {
        Some(why) => why.words(),
        None => "with this look".to_owned(),
    };
    let words = process.read_boot_ms.map_or_else(of_look, |read_ms| {
        let when = match at.boot_ms.saturating_sub(read_ms) {
            0..STANDS_MS => format!("every {}", span(REST_MS)),
            old => format!("{} ago", span(old)),
        };
        format!("{when}: it does nothing, and is left alone")
    });
    doc.fact("state read", &words);
}

/// What it is, with the evidence.
pub fn verdict(doc: &mut Doc, holder: &Holder) {
    let look = *doc.look();
    let theme = look.theme;
    let verdict = &holder.verdict;
    let mut words = state_word(verdict).to_owned();
    if verdict.zombie && verdict.class != crate::analyze::Class::Ghost {
        words = format!("{words}, {}", fields::class_word(verdict.class));
    }
    if let Some(ms) = verdict.since_ms {
        words = format!("{words} since {}", span(ms));
    }
    doc.head_with("VERDICT", &words, theme.verdict(verdict));
    let groups = [
        (Weight::For, "+", theme.bad),
        (Weight::Against, "-", theme.good),
        (Weight::Neutral, look.glyphs.bullet, theme.dim),
    ];
    for (weight, bullet, style) in groups {
        for evidence in verdict.evidence.iter().filter(|evidence| evidence.weight == weight) {
            doc.bullet(bullet, style, &evidence.text, theme.text);
        }
    }
    if !holder.survivors.is_empty() {
        let pids: Vec<String> = holder.survivors.iter().map(|id| id.pid.to_string()).collect();
        doc.fact("kept by", &pids.join(", "));
    }
    if let Some(manager) = &verdict.manager {
        doc.fact("managed by", &format!("{} {}", manager.kind, manager.name));
        doc.bullet(look.glyphs.prompt, theme.dim, &manager.command, theme.strong);
    }
}

/// The key to the evidence's signs.
pub fn legend(doc: &mut Doc) {
    let dim = doc.look().theme.dim;
    doc.space();
    let bullet = doc.look().glyphs.bullet;
    let text = format!("+ speaks for a leftover   - somebody wants it   {bullet} only informs");
    doc.line(&text, dim);
}

/// What its allocator says; `brief` without the histogram's rare classes.
pub fn allocator(doc: &mut Doc, scene: &Scene<'_>, holder: &Holder, brief: bool) {
    let theme = doc.look().theme;
    let sample = match &holder.allocator {
        None => {
            doc.head_with("ALLOCATOR", "none was found in it", theme.dim);
            return;
        }
        Some(Reading::Absent(why)) => {
            doc.head_with("ALLOCATOR", &format!("cannot be told: {}", why.words()), theme.dim);
            if *why == Why::NoPermission {
                doc.line("`vramlens doctor` says what would let it be read", theme.dim);
            }
            return;
        }
        Some(Reading::Value(sample)) => sample,
    };
    let basis = match sample.basis {
        AllocatorBasis::Blocks => "read from its memory, block by block",
        AllocatorBasis::Statistics => "read from its memory, totals only",
        AllocatorBasis::Message => "from an error message",
        AllocatorBasis::Reported => "reported by the server",
    };
    let words = format!("{basis}{}", as_of(scene, sample.at, STANDS_MS));
    doc.head_with("ALLOCATOR", &words, theme.dim);
    for device in &sample.devices {
        if sample.devices.len() > 1 {
            doc.fact("CUDA device", &device.ordinal.0.to_string());
        }
        gauge(doc, holder, device);
        if let Reading::Value(free) = &device.free {
            histogram(doc, scene, free, if brief { 8 } else { 24 });
        }
        if !brief {
            counters(doc, device);
        }
    }
}

/// `, as of 04:12:07`, of what was read longer ago than that: the moment stands still, where an age
/// would count.
pub fn as_of(scene: &Scene<'_>, read: Stamp, usual_ms: u64) -> String {
    if scene.context.view.at.since(read) <= usual_ms {
        return String::new();
    }
    format!(", as of {}", clock(read, scene.app.settings.utc_offset_s, false))
}

/// Allocated, reusable and fragmented as a bar with its figures.
fn gauge(doc: &mut Doc, holder: &Holder, device: &AllocatorDevice) {
    let look = *doc.look();
    let (theme, glyphs) = (look.theme, look.glyphs);
    let cached = device.reserved.saturating_sub(device.allocated);
    let (reusable, fragmented) = match holder.fragmentation {
        Fragmentation::Blocks { reusable, fragmented, .. } => (reusable, fragmented),
        _ => (cached, Bytes::ZERO),
    };
    let parts = [
        (device.allocated, glyphs.holders[0], theme.good),
        (reusable, glyphs.cached, theme.text),
        (fragmented, glyphs.holders[2], theme.warn),
    ];
    let sizes: Vec<(u64, bool)> = parts.iter().map(|part| (part.0.0, false)).collect();
    let cells = crate::ui::ledger::distribute(&sizes, doc.columns().clamp(8, 60) - 1);
    let bar = parts.iter().zip(cells).map(|(part, n)| (part.1.repeat(n), part.2)).collect();
    doc.pieces(bar);
    let known = matches!(holder.fragmentation, Fragmentation::Blocks { .. });
    let line = |doc: &mut Doc, glyph: &str, style, name: &str, bytes: Bytes| {
        let text = format!(" {name:<12}{:>10}", bytes.to_string());
        doc.pieces(vec![(glyph.to_owned(), style), (text, theme.text)]);
    };
    line(doc, parts[0].1, parts[0].2, "allocated", device.allocated);
    if known {
        line(doc, parts[1].1, parts[1].2, "reusable", reusable);
        line(doc, parts[2].1, parts[2].2, "fragmented", fragmented);
    } else {
        line(doc, parts[1].1, parts[1].2, "cached", cached);
        doc.line("how the cache is cut is not known: no fragmentation is shown", theme.dim);
    }
    if let Fragmentation::Blocks { request, largest_request, .. } = holder.fragmentation {
        let text = format!(
            "judged by a request of {request}; the cache can serve {largest_request} at the most"
        );
        doc.line(&text, theme.dim);
    }
}

/// Free blocks by size, as bars of bytes.
fn histogram(doc: &mut Doc, scene: &Scene<'_>, free: &FreeBlocks, most: usize) {
    let look = *doc.look();
    let theme = look.theme;
    let classes: Vec<_> = free.histogram.iter().filter(|class| class.count > 0).collect();
    let Some(largest) = classes.iter().map(|class| class.bytes).max() else { return };
    doc.space();
    // They can be older than the counters above: those that move too fast are not walked again.
    let stood = free.read_at.map_or_else(String::new, |at| as_of(scene, at, 0));
    let blocks = count_of(free.count, "free block");
    let title = format!("{blocks}, the largest {}{stood}", free.largest);
    doc.line(&title, theme.dim);
    let room = doc.columns().saturating_sub(26).clamp(4, 40);
    // Where not all classes fit, those with the most bytes stay.
    let mut by_bytes = classes.clone();
    by_bytes.sort_by_key(|class| std::cmp::Reverse(class.bytes));
    let least = by_bytes.get(most.saturating_sub(1)).map_or(Bytes::ZERO, |class| class.bytes);
    for class in classes.into_iter().filter(|class| class.bytes >= least).take(most) {
        let share = class.bytes.0 as f64 / largest.0.max(1) as f64;
        let cells = ((share * room as f64).round() as usize).clamp(1, room);
        let bar = look.glyphs.holders[3].repeat(cells) + &" ".repeat(room - cells);
        doc.pieces(vec![
            (format!("{:>6} ", class.from.short()), theme.dim),
            (bar, theme.chart),
            (format!(" {:>7} in {}", class.bytes.short(), class.count), theme.text),
        ]);
    }
}

fn count_of(n: u64, what: &str) -> String {
    crate::ui::ledger::count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

/// What it counted so far, and how it is set.
fn counters(doc: &mut Doc, device: &AllocatorDevice) {
    let number = |reading: &Reading<u64>| known(reading, u64::to_string);
    let size = |reading: &Reading<Bytes>| known(reading, Bytes::to_string);
    let yes = |reading: &Reading<bool>| known(reading, |on| if *on { "on" } else { "off" }.into());
    doc.space();
    doc.fact("out of memory", &known(&device.ooms, |n| count_of(*n, "time")));
    let retries = |n: &u64| match n {
        0 => "0".to_owned(),
        n => format!("{n}, each after emptying the cache"),
    };
    doc.fact("retries", &known(&device.retries, retries));
    doc.fact("segments", &number(&device.segments));
    doc.fact("expandable", &yes(&device.expandable_segments));
    doc.fact("CUDA graphs", &size(&device.private_pools));
    doc.fact(
        "peak",
        &format!(
            "{} allocated, {} reserved",
            size(&device.peak_allocated),
            size(&device.peak_reserved)
        ),
    );
}

fn known<T>(reading: &Reading<T>, words: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Value(value) => words(value),
        Reading::Absent(why) => why.words(),
    }
}

/// How its memory moves, and the most it held.
pub fn movement(doc: &mut Doc, scene: &Scene<'_>, holder: &Holder) {
    let theme = doc.look().theme;
    let (words, full) = trend(holder.growth);
    let words = if words.is_empty() { "too few samples for a trend".to_owned() } else { words };
    doc.head_with("MEMORY", &words, theme.text);
    if let Some(full) = full {
        doc.line(&full, theme.warn);
    }
    doc.fact("holds", &holds(scene, holder));
    if holder.listed {
        doc.fact("at most", &known(&holder.peak, Bytes::to_string));
    }
    if let Some(process) = &holder.process {
        doc.fact("host memory", &known(&process.rss, Bytes::to_string));
        doc.fact("CPU", &known(&process.cpu, |cpu| format!("{:.0} %", cpu.0)));
        if process.read_boot_ms.is_some() {
            age_of_facts(doc, holder, scene.context.view.at);
        }
    }
    let others: Vec<String> = scene
        .context
        .view
        .holders
        .iter()
        .filter(|other| other.id.is_some() && other.id == holder.id && other.gpu != holder.gpu)
        .map(|other| format!("GPU {}: {}", other.index, known(&other.bytes, Bytes::to_string)))
        .collect();
    if !others.is_empty() {
        doc.fact("elsewhere", &others.join(", "));
    }
}

/// What it holds. Of one that is in no list nobody tells its own share: of a survivor it is known
/// whose memory it keeps, and with whom.
fn holds(scene: &Scene<'_>, holder: &Holder) -> String {
    if holder.listed || holder.bytes.value().is_some() {
        return known(&holder.bytes, Bytes::to_string);
    }
    let kept: Vec<String> = kept_by(&scene.context.view.holders, holder)
        .map(|ghost| {
            let others = ghost.survivors.iter().filter(|id| Some(**id) != holder.id);
            let others: Vec<String> = others.map(|id| id.pid.to_string()).collect();
            let bytes = known(&ghost.bytes, Bytes::to_string);
            let of = format!("{bytes} of {}", ghost.pid);
            if others.is_empty() { of } else { format!("{of}, shared with {}", others.join(", ")) }
        })
        .collect();
    if kept.is_empty() { "not told for this one".to_owned() } else { kept.join("; ") }
}

/// The dead whose memory a survivor keeps.
fn kept_by<'a>(all: &'a [Holder], holder: &Holder) -> impl Iterator<Item = &'a Holder> {
    let (id, gpu) = (holder.id, holder.gpu.clone());
    all.iter()
        .filter(move |ghost| ghost.gpu == gpu && id.is_some_and(|id| ghost.survivors.contains(&id)))
}

/// The variables that matter to GPU memory; never others.
pub fn environment(doc: &mut Doc, process: Option<&ProcSample>) {
    let theme = doc.look().theme;
    let variables = process.and_then(|process| process.environment.as_ref());
    match variables {
        None => doc.head_with("ENVIRONMENT", "not looked at", theme.dim),
        Some(Reading::Absent(why)) => {
            doc.head_with("ENVIRONMENT", &format!("not known: {}", why.words()), theme.dim);
        }
        Some(Reading::Value(variables)) => {
            let title = "only variables that matter to GPU memory are ever read";
            doc.head_with("ENVIRONMENT", title, theme.dim);
            if variables.is_empty() {
                doc.line("none of them is set", theme.text);
            }
            for variable in variables {
                doc.bullet(
                    &format!("{} =", variable.name),
                    theme.strong,
                    &variable.value,
                    theme.text,
                );
            }
        }
    }
}
