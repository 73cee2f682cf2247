//! The facts of a GPU in words of fixed width.

use ratatui::style::Style;

use super::theme::{Glyphs, Theme};
use crate::analyze::xid::{Blame, XidSeen};
use crate::analyze::{Freshness, GpuView, Ledger, View};
use crate::sample::{GpuSample, Reading, Seldom, Throttle, Why};
use crate::units::{Bytes, BytesPerSecond, age};

/// `util  96%`.
pub fn utilization(sample: &GpuSample) -> String {
    format!("util {}", utilization_short(sample))
}

/// ` 96%`.
pub fn utilization_short(sample: &GpuSample) -> String {
    match sample.utilization.value() {
        Some(share) => format!("{:>3.0}%", share.sm.0),
        None => "  - ".to_owned(),
    }
}

/// ` 54°C`.
pub fn temperature(sample: &GpuSample, glyphs: &Glyphs) -> String {
    let unit = if glyphs.ascii { " C" } else { "°C" };
    match sample.temperature.get() {
        Some(degrees) => format!("{:>3}{unit}", degrees.0),
        None => format!("  -{unit}"),
    }
}

/// How long before the look something was read that has an age of its own: `<4s` where it is read in
/// turns, for as long as it is no older than its turn, else its age; nothing where all is read at each
/// look. It is the same at every look, so that what does not change is not drawn again.
pub fn own_age(view: &View, sample: &GpuSample, what: Seldom, interval_ms: u64) -> Option<String> {
    let look_ms = view.at.boot_ms.saturating_sub(view.gpus_age_ms.unwrap_or(0));
    let before_ms = sample.read_before_ms(what, look_ms)?;
    let rhythm_ms = what.rhythm_ms();
    // Settings are read after a look, and show at the next.
    let late_ms = if what == Seldom::Settings { 2 * interval_ms } else { 0 };
    if before_ms >= rhythm_ms + late_ms {
        return Some(age(before_ms));
    }
    (what != Seldom::Settings && interval_ms < rhythm_ms).then(|| format!("<{}", age(rhythm_ms)))
}

/// ` 612/700 W`, and the age of the limit.
pub fn power(sample: &GpuSample, limit_age: Option<&str>) -> String {
    let watts = |reading: Reading<crate::units::Milliwatts>| {
        reading.get().map_or_else(|| "-".to_owned(), |power| (power.0 / 1000).to_string())
    };
    let old = limit_age.filter(|_| sample.power_limit.value().is_some());
    let old = old.map_or_else(String::new, |age| format!(" (limit {age} old)"));
    format!("{:>4}/{:<3} W{old}", watts(sample.power), watts(sample.power_limit))
}

/// `SM 1980 MHz  memory 3201 MHz  P0  <4s`: the age of memory clock and performance state.
pub fn clocks(sample: &GpuSample, age: Option<&str>) -> String {
    let mhz = |reading: Reading<crate::units::Megahertz>| {
        reading.get().map_or_else(|| "   -".to_owned(), |clock| format!("{:>4}", clock.0))
    };
    let state = sample.performance_state.get();
    let known = state.is_some() || sample.memory_clock.value().is_some();
    let state = state.map_or_else(String::new, |state| format!("  P{state}"));
    let clocks = [mhz(sample.sm_clock), mhz(sample.memory_clock)];
    let age = aged(age.filter(|_| known));
    format!("SM {} MHz  memory {} MHz{state}{age}", clocks[0], clocks[1])
}

/// `  <4s`.
fn aged(age: Option<&str>) -> String {
    age.map_or_else(String::new, |age| format!("  {age}"))
}

/// `PCIe in 1.2 GiB/s  out 310 MiB/s  <4s`.
pub fn bus(sample: &GpuSample, age: Option<&str>) -> String {
    match sample.pcie {
        Reading::Value(pcie) => {
            let rate = |BytesPerSecond(n)| format!("{}/s", Bytes(n));
            format!("PCIe in {:>10}  out {:>10}{}", rate(pcie.rx), rate(pcie.tx), aged(age))
        }
        // A recording was made without it; live it is asked for as soon as there is room for it.
        Reading::Absent(Why::NotAsked) => String::new(),
        Reading::Absent(why) => format!("PCIe {}", why.words()),
    }
}

/// How full: the share, and `82% of 139.8G`. What the driver keeps counts as held, since nobody
/// can have it.
pub fn fullness(ledger: &Ledger) -> (f64, String) {
    let held = ledger.total.saturating_sub(ledger.free);
    let percent = held.percent_of(ledger.total).map_or(0.0, |percent| f64::from(percent.0));
    // 99.6 is not full.
    let shown = if percent < 100.0 { percent.min(99.0) } else { percent };
    (percent, format!("{shown:>3.0}% of {}", ledger.total.short()))
}

/// A fault of the GPU stands there for so long, in milliseconds; one of a program is soon history.
const FAULT_MS: [u64; 2] = [3_600_000, 60_000];

/// The newest fault, while it is to be told of.
pub fn fault(gpu: &GpuView) -> Option<&XidSeen> {
    let newest = gpu.xids.newest(FAULT_MS[0])?;
    let lasts = FAULT_MS[usize::from(newest.xid.blame != Blame::Gpu)];
    (newest.xid.blame != Blame::Nobody && newest.age_ms <= lasts).then_some(newest)
}

/// Why a GPU is not asked, where that is for the sake of its sleep.
pub fn at_rest(gpu: &GpuView) -> Option<Why> {
    gpu.sample.memory.why().filter(|why| matches!(why, Why::Asleep | Why::LetSleep | Why::Spared))
}

/// The state of a GPU in a word.
pub fn health(gpu: &GpuView, theme: &Theme) -> (String, Style) {
    match at_rest(gpu) {
        Some(Why::Asleep) => return ("asleep".to_owned(), theme.dim),
        Some(Why::Spared) => return ("not read".to_owned(), theme.dim),
        Some(_) => return ("let sleep".to_owned(), theme.dim),
        None => {}
    }
    match &gpu.freshness {
        Freshness::Lost => return ("lost".to_owned(), theme.bad),
        Freshness::Stalled { for_ms, .. } => {
            return (format!("no answer for {}", super::words::span(*for_ms)), theme.bad);
        }
        Freshness::Starting => return ("starting".to_owned(), theme.dim),
        _ => {}
    }
    if let Some(seen) = fault(gpu) {
        let ago = super::words::span(seen.age_ms);
        return (format!("XID {} {ago} ago", seen.xid.code), theme.bad);
    }
    match gpu.sample.throttle.get().map(throttled) {
        Some(Some(word)) => (word.to_owned(), theme.warn),
        Some(None) => ("ok".to_owned(), theme.good),
        None => (String::new(), theme.dim),
    }
}

/// Why the clocks are held down, in a word, where that is not by choice
/// (`nvmlClocksEventReasons`).
const fn throttled(Throttle(bits): Throttle) -> Option<&'static str> {
    const NAMED: [(u64, &str); 4] =
        [(0x60, "too hot"), (0x80, "power brake"), (0x08, "slowed down"), (0x04, "power cap")];
    let mut n = 0;
    while n < NAMED.len() {
        if bits & NAMED[n].0 != 0 {
            return Some(NAMED[n].1);
        }
        n += 1;
    }
    None
}

/// What processes hold of a GPU without a total.
pub fn held_by_processes(view: &View, gpu: &GpuView) -> String {
    let on_it = view.holders.iter().filter(|holder| holder.gpu == gpu.sample.uuid);
    let (mut count, mut bytes, mut silent) = (0, Bytes::ZERO, 0);
    for holder in on_it {
        count += 1;
        match holder.bytes.get() {
            Some(held) => bytes += held,
            None => silent += 1,
        }
    }
    let of = super::ledger::count(count, "process").replace("processs", "processes");
    match silent {
        0 => format!("{of} hold {bytes}"),
        _ if silent == count => format!("{of} hold an amount that the driver does not tell"),
        _ => format!("{of} hold {bytes}, {silent} of them an amount that is not told"),
    }
}
