//! The ledger bar and the line beneath it: where every byte of a GPU is. The cells always sum to
//! the bar's width and the figures to the total.

use ratatui::style::Style;

use super::app::App;
use super::paint::Canvas;
use super::theme::Look;
use crate::analyze::{GpuView, Holder, Ledger, View};
use crate::fields::cached;
use crate::ids::{GpuIndex, Pid};
use crate::sample::text;
use crate::units::Bytes;

/// A stretch of the bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// What it stands for.
    pub bytes: Bytes,
    /// What it is drawn with.
    pub glyph: &'static str,
    /// And how.
    pub style: Style,
    /// What it is called. Hostile text.
    pub name: String,
    /// Whose it is, where it is one process's.
    pub holder: Option<(Pid, GpuIndex)>,
}

/// Parts of a whole in cells that sum to `cells`: the largest remainders win. A part of at least a
/// tenth of a cell that is not minor keeps one.
pub fn distribute(parts: &[(u64, bool)], cells: usize) -> Vec<usize> {
    let whole: u128 = parts.iter().map(|part| u128::from(part.0)).sum();
    if whole == 0 || cells == 0 {
        let mut none = vec![0; parts.len()];
        if let Some(last) = none.last_mut() {
            *last = cells;
        }
        return none;
    }
    let scaled = |part: u64| u128::from(part) * cells as u128;
    let mut shares: Vec<usize> =
        parts.iter().map(|part| (scaled(part.0) / whole) as usize).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(scaled(parts[n].0) % whole));
    let left = cells.saturating_sub(shares.iter().sum());
    for &n in order.iter().take(left) {
        shares[n] += 1;
    }
    for n in 0..parts.len() {
        if shares[n] == 0 && !parts[n].1 && scaled(parts[n].0) * 10 >= whole {
            let richest = (0..parts.len()).max_by_key(|&n| shares[n]);
            if let Some(richest) = richest.filter(|&n| shares[n] > 2) {
                shares[richest] -= 1;
                shares[n] = 1;
            }
        }
    }
    shares
}

/// A part of a GPU's memory that is no single holder's.
fn plain(bytes: Bytes, glyph: &'static str, style: Style, name: &str) -> Segment {
    Segment { bytes, glyph, style, name: name.to_owned(), holder: None }
}

/// The segments of a GPU, `named` of its holders by name.
pub fn segments(
    app: &App,
    gpu: &GpuView,
    ledger: &Ledger,
    holders: &[&Holder],
    named: usize,
) -> Vec<Segment> {
    let (theme, glyphs) = (&app.settings.look.theme, &app.settings.look.glyphs);
    let mut all = held(app, ledger, holders, named);
    if is_split(gpu) {
        all.push(plain(ledger.unaccounted, glyphs.others, theme.text, "MIG instances"));
    } else {
        let style = theme.unaccounted;
        all.push(plain(ledger.unaccounted, glyphs.unaccounted, style, nobodys(gpu)));
    }
    if ledger.unified {
        all.push(plain(ledger.host, glyphs.host, theme.text, "host"));
    }
    let free = if ledger.unified { "available" } else { "free" };
    all.push(plain(ledger.free, glyphs.free, theme.free, free));
    if ledger.reserved_known {
        all.push(plain(ledger.reserved, glyphs.reserved, theme.reserved, "driver"));
    }
    if is_old(gpu) {
        for segment in &mut all {
            segment.style = theme.dim;
        }
    }
    all.retain(|segment| segment.bytes > Bytes::ZERO);
    all
}

/// What processes hold: the first ones by name, and the rest together.
fn held(app: &App, ledger: &Ledger, holders: &[&Holder], named: usize) -> Vec<Segment> {
    let (theme, glyphs) = (&app.settings.look.theme, &app.settings.look.glyphs);
    let mut all = Vec::with_capacity(holders.len() + 6);
    let mut held = ledger.processes + ledger.survivors;
    let (mut rest, mut rest_zombies) = ((Bytes::ZERO, 0_usize), (Bytes::ZERO, 0_usize));
    for (n, holder) in holders.iter().enumerate() {
        // More than the ledger has cannot be drawn: the lists can exceed it for a moment.
        let bytes = holder.bytes.get().unwrap_or_default().min(held);
        held = held.saturating_sub(bytes);
        if n >= named {
            let sum = if holder.verdict.zombie { &mut rest_zombies } else { &mut rest };
            *sum = (sum.0 + bytes, sum.1 + 1);
            continue;
        }
        let style = theme.verdict(&holder.verdict);
        let glyph = glyphs.holders[n.min(glyphs.holders.len() - 1)];
        // What would be told as nothing is not told apart.
        let loose = cached(holder).filter(|loose| tells(*loose, ledger.total));
        let loose = loose.unwrap_or_default().min(bytes);
        all.push(Segment {
            holder: Some((holder.pid, holder.index)),
            ..plain(bytes.saturating_sub(loose), glyph, style, &short_name(holder))
        });
        if loose > Bytes::ZERO {
            all.push(plain(loose, glyphs.cached, style, "cached"));
        }
    }
    if rest_zombies.1 > 0 {
        let name = count(rest_zombies.1, "zombie");
        all.push(plain(rest_zombies.0, glyphs.others, theme.bad, &name));
    }
    rest.0 += held;
    if rest.0 > Bytes::ZERO {
        let name = match rest.1 {
            0 => "others".to_owned(),
            n if named == 0 && rest_zombies.1 == 0 => count(n, "holder"),
            n => format!("{n} more"),
        };
        all.push(plain(rest.0, glyphs.others, theme.text, &name));
    }
    all
}

/// What memory is called that is in nobody's name.
fn nobodys(gpu: &GpuView) -> &'static str {
    if gpu.sample.unlisted().is_some() { "not told" } else { "unaccounted" }
}

/// Whether a GPU's figures are old: the driver does not answer, or it is gone.
pub const fn is_old(gpu: &GpuView) -> bool {
    use crate::analyze::Freshness::{Lost, Stalled};
    matches!(gpu.freshness, Stalled { .. } | Lost)
}

/// Whether a GPU's memory is split among MIG instances, which have ledgers of their own.
pub fn is_split(gpu: &GpuView) -> bool {
    gpu.sample.mig.is_none() && gpu.sample.mig_enabled.get() == Some(true)
}

/// The holders of a GPU, the largest first.
pub fn holders_of<'v>(view: &'v View, gpu: &GpuView) -> Vec<&'v Holder> {
    let mut holders: Vec<&Holder> = view
        .holders
        .iter()
        .filter(|holder| holder.is_on(&gpu.sample) && holder.bytes.get().is_some())
        .collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes.get()), holder.pid));
    holders
}

/// Draws the bar from column `from` to `to`.
pub fn bar(canvas: &mut Canvas<'_>, row: u16, (from, to): (u16, u16), segments: &[Segment]) {
    let parts: Vec<(u64, bool)> = segments.iter().map(|segment| (segment.bytes.0, false)).collect();
    let cells = usize::from(to.saturating_sub(from));
    let mut x = from;
    for (segment, cells) in segments.iter().zip(distribute(&parts, cells)) {
        let end = x + cells as u16;
        x = canvas.fill(x, end, row, segment.glyph, segment.style);
    }
}

/// The figures of the segments, in a unit that suits the whole; they sum to the whole's figure.
pub fn figures(segments: &[Segment]) -> Vec<String> {
    let whole: Bytes = segments.iter().map(|segment| segment.bytes).sum();
    let parts: Vec<(u64, bool)> = segments.iter().map(|segment| (segment.bytes.0, true)).collect();
    if whole < SMALL {
        let mib = (whole.0 as f64 / Bytes::mib(1).0 as f64).round() as usize;
        return equal(&parts, mib).into_iter().map(|n| format!("{n}M")).collect();
    }
    let tenths = (whole.as_gib() * 10.0).round() as usize;
    let shares = equal(&parts, tenths);
    shares.into_iter().map(|n| format!("{}.{}", n / 10, n % 10)).collect()
}

/// Below this figures are in MiB, else in tenths of a GiB.
const SMALL: Bytes = Bytes::gib(4);

/// Whether so much of a whole has a figure other than 0.
fn tells(bytes: Bytes, whole: Bytes) -> bool {
    if whole < SMALL { bytes >= Bytes::mib(1) } else { bytes.0 >= Bytes::gib(1).0 / 20 }
}

/// As [`distribute`], but equal parts have equal figures: the largest one takes the difference.
fn equal(parts: &[(u64, bool)], whole: usize) -> Vec<usize> {
    let mut shares = distribute(parts, whole);
    let Some(largest) = (0..parts.len()).max_by_key(|&n| parts[n].0) else { return shares };
    for n in 0..parts.len() {
        let same = (0..parts.len()).filter(|&m| parts[m].0 == parts[n].0);
        let least = same.map(|m| shares[m]).min().unwrap_or(0);
        if parts[n].0 != parts[largest].0 {
            shares[largest] += shares[n] - least;
            shares[n] = least;
        }
    }
    shares
}

/// How tightly the legend is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tightness {
    /// Columns between two segments.
    gap: u16,
    /// Columns of a name at the most.
    name: u16,
}

/// From comfortable to tight.
const TIGHTNESS: [Tightness; 4] = [
    Tightness { gap: 2, name: NAME_COLUMNS as u16 },
    Tightness { gap: 2, name: 11 },
    Tightness { gap: 1, name: 11 },
    Tightness { gap: 1, name: 8 },
];

/// The segments with as many names as the legend has room for in `columns`. All of them stay in
/// the bar.
pub fn fitted(
    app: &App,
    gpu: &GpuView,
    ledger: &Ledger,
    holders: &[&Holder],
    columns: u16,
) -> (Vec<Segment>, Tightness) {
    for named in (0..=4).rev() {
        let segments = segments(app, gpu, ledger, holders, named);
        let figures = figures(&segments);
        for tight in TIGHTNESS {
            let each = segments.iter().zip(&figures);
            let needed: usize = each
                .filter(|(_, figure)| !says_nothing(figure))
                .map(|(segment, figure)| {
                    let name = text::width(&shown_name(segment, tight, &app.settings.look));
                    name + figure.len() + 2 + usize::from(tight.gap)
                })
                .sum();
            if needed <= usize::from(columns + tight.gap) || (named == 0 && tight.name == 8) {
                return (segments, tight);
            }
        }
    }
    (segments(app, gpu, ledger, holders, 0), TIGHTNESS[3])
}

fn shown_name(segment: &Segment, tight: Tightness, look: &Look) -> String {
    if segment.name == "unaccounted" && tight.name < 11 {
        return "unacct".to_owned();
    }
    let (dots, ascii) = (look.glyphs.ellipsis, look.glyphs.ascii);
    text::fit(&segment.name, usize::from(tight.name), dots, ascii).into_owned()
}

/// Draws the line beneath: what each pattern is, and how much.
pub fn legend(
    canvas: &mut Canvas<'_>,
    row: u16,
    (segments, tight): (&[Segment], Tightness),
    selected: Option<(Pid, GpuIndex)>,
    shared: Bytes,
) {
    let (dim, accent) = (canvas.look.theme.dim, canvas.look.theme.accent);
    let mut x = 1;
    for (segment, figure) in segments.iter().zip(figures(segments)) {
        if says_nothing(&figure) {
            continue;
        }
        let chosen = segment.holder.is_some() && segment.holder == selected;
        let style = if chosen { accent } else { dim };
        x = canvas.put(x, row, segment.glyph, segment.style);
        x = canvas.put(x, row, &shown_name(segment, tight, canvas.look), style);
        x = canvas.put(x + 1, row, &figure, canvas.look.theme.text) + tight.gap;
    }
    if shared > Bytes::ZERO {
        // Listed twice: without it the line would exceed the total and not say why.
        canvas.put(x, row, &format!("shared -{}", shared.short()), dim);
    }
}

/// A part whose figure is 0 is in the bar only.
fn says_nothing(figure: &str) -> bool {
    matches!(figure, "0.0" | "0M")
}

const NAME_COLUMNS: usize = 16;

/// `3 zombies`.
pub fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// What a process is called in a few columns: the script rather than its interpreter.
pub fn short_name(holder: &Holder) -> String {
    let Some(process) = &holder.process else { return format!("pid {}", holder.pid) };
    process.short_name()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_always_sum_to_the_width(
            parts in prop::collection::vec((any::<u64>(), any::<bool>()), 1..40),
            cells in 0_usize..300,
        ) {
            prop_assert_eq!(distribute(&parts, cells).iter().sum::<usize>(), cells);
        }
    }

    proptest! {
        #[test]
        fn equal_parts_have_equal_figures_and_all_sum_to_the_whole(
            parts in prop::collection::vec(0_u64..20, 1..12),
            whole in 0_usize..300,
        ) {
            let parts: Vec<(u64, bool)> = parts.into_iter().map(|part| (part, true)).collect();
            let shares = equal(&parts, whole);
            prop_assert_eq!(shares.iter().sum::<usize>(), whole);
            let most = parts.iter().map(|part| part.0).max().unwrap();
            for (a, b) in (0..parts.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                if parts[a].0 == parts[b].0 && parts[a].0 < most {
                    prop_assert_eq!(shares[a], shares[b]);
                }
            }
        }
    }

    #[test]
    fn a_small_segment_can_still_be_seen() {
        assert_eq!(distribute(&[(900, false), (90, false), (2, false)], 64), [57, 6, 1]);
        assert_eq!(distribute(&[(900, false), (90, false), (2, true)], 64), [58, 6, 0]);
        assert_eq!(distribute(&[(0, false), (0, false)], 7), [0, 7]);
    }
}
