//! One frame as plain text: `--once`, and what is printed where there is no terminal.

use jiff::Timestamp;

use crate::analyze::{Class, Fragmentation, Freshness, Growth, Holder, View};
use crate::fields::{not_looked_at, state_word};
use crate::report::clean::clean_for;
use crate::report::ledger::{self, line};
use crate::report::table::{self, Column};
use crate::report::{Style, json, opened};
use crate::sample::{GpuSample, Reading, Seldom};
use crate::units::{Bytes, BytesPerMinute, age};

/// One frame: the first line, a block for each GPU, the table of holders.
pub fn frame(view: &View, style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, view, style, true);
    for gpu in &view.gpus {
        out.push('\n');
        ledger::block(&mut out, view, gpu, style);
        let look_ms = view.at.boot_ms.saturating_sub(view.gpus_age_ms.unwrap_or(0));
        let state = state_of(&gpu.sample, look_ms, style.ascii);
        line(&mut out, &format!("  {state}"), style);
    }
    if !view.device_users.is_empty() {
        out.push_str("\nHOLDERS\n");
        opened::write(&mut out, view, style);
    }
    if !view.holders.is_empty() {
        out.push('\n');
        table::write(&mut out, &WIDE, &wide_rows(view, style), style);
    }
    out
}

/// Host, moment, driver, number of GPUs; and on a line of its own how current it is, unless live.
pub(super) fn head(out: &mut String, view: &View, style: &Style, with_cuda: bool) {
    line(out, &first_line(view, style, with_cuda), style);
    if let Some(text) = freshness(&view.freshness, style.ascii) {
        line(out, &text, style);
    }
}

fn first_line(view: &View, style: &Style, with_cuda: bool) -> String {
    let mut parts = Vec::new();
    let host = view.host.as_ref().and_then(|host| host.hostname.value());
    parts.push(host.map_or_else(|| "unknown host".to_owned(), |name| clean_for(name, style.ascii)));
    parts.push(moment(view, style));
    let driver = view.driver.as_ref();
    let version = driver.and_then(|driver| driver.version.value());
    let version = version.map(|version| clean_for(version, style.ascii));
    parts
        .push(version.map_or_else(|| "driver unknown".to_owned(), |text| format!("driver {text}")));
    if with_cuda && let Some(cuda) = driver.and_then(|driver| driver.cuda.value()) {
        parts.push(format!("CUDA {}", clean_for(cuda, style.ascii)));
    }
    let gpus = view.gpus.iter().filter(|gpu| gpu.sample.mig.is_none()).count();
    parts.push(match gpus {
        // Before its first answer nobody knows.
        0 if view.driver.is_none() => "GPUs unknown".to_owned(),
        1 => "1 GPU".to_owned(),
        n => format!("{n} GPUs"),
    });
    parts.join(if style.ascii { " - " } else { " · " })
}

fn moment(view: &View, style: &Style) -> String {
    let ms = i64::try_from(view.at.wall_ms).ok();
    match ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(time) => time
            .to_zoned_datetime(style.time_zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        None => "unknown time".to_owned(),
    }
}

fn freshness(freshness: &Freshness, ascii: bool) -> Option<String> {
    match freshness {
        Freshness::Live => None,
        Freshness::Replay => Some("a moment of a recording".to_owned()),
        Freshness::Past => Some("a moment in the past".to_owned()),
        Freshness::Lost => Some("the GPU is lost".to_owned()),
        Freshness::Starting => Some("the driver has not answered yet".to_owned()),
        Freshness::Stalled { call, gpu, for_ms } => {
            let call = call.as_deref().map(|call| clean_for(call, ascii));
            let call = call.map_or_else(String::new, |call| format!(" in {call}"));
            let gpu = gpu.map_or_else(String::new, |gpu| format!(" on GPU {gpu}"));
            Some(format!("the driver is stalled{call}{gpu} for {}", age(*for_ms)))
        }
    }
}

/// A limit that was read longer before the look than this is said to be old, in milliseconds.
const OLD_LIMIT_MS: u64 = 2 * Seldom::Settings.rhythm_ms();

/// `util 96%  54 °C  612/700 W`; what cannot be read is left out.
fn state_of(gpu: &GpuSample, look_ms: u64, ascii: bool) -> String {
    let mut parts = Vec::new();
    if let Some(both) = gpu.utilization.get() {
        parts.push(format!("util {:.0}%", both.sm.0));
    }
    if let Some(celsius) = gpu.temperature.get() {
        parts.push(format!("{} {}C", celsius.0, if ascii { "" } else { "°" }));
    }
    let watts = |milli: u64| (milli + 500) / 1000;
    match (gpu.power.get(), gpu.power_limit.get()) {
        (Some(now), Some(limit)) => {
            let before_ms = gpu.read_before_ms(Seldom::Settings, look_ms);
            let old = before_ms.filter(|ms| *ms >= OLD_LIMIT_MS);
            let old = old.map_or_else(String::new, |ms| format!(" (limit {} old)", age(ms)));
            parts.push(format!("{}/{} W{old}", watts(now.0), watts(limit.0)));
        }
        (Some(now), None) => parts.push(format!("{} W", watts(now.0))),
        (None, _) => {}
    }
    if let Some(clock) = gpu.sm_clock.get() {
        parts.push(format!("{} MHz", clock.0));
    }
    parts.join("  ")
}

const WIDE: [Column; 10] = [
    Column::right("GPU", 3, 6),
    Column::right("PID", 7, 10),
    Column::left("USER", 4, 10),
    Column::left("STATE", 6, 10),
    Column::right("VRAM", 5, 6),
    Column::right("CHANGE", 6, 9),
    Column::right("CACHED", 6, 6),
    Column::right("SM", 3, 4),
    Column::right("AGE", 3, 4),
    Column::left("COMMAND", 7, usize::MAX),
];

/// Rows of the wide table, and for each GPU one of what nobody holds.
fn wide_rows(view: &View, style: &Style) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = in_order(view)
        .into_iter()
        .map(|holder| {
            let [gpu, pid, user, state, vram, age, command] = cells(view, holder, style);
            let change = change(&holder.growth);
            let sm = holder.sm.get().map_or_else(|| "-".to_owned(), |sm| format!("{:.0}%", sm.0));
            vec![gpu, pid, user, state, vram, change, cached(holder), sm, age, command]
        })
        .collect();
    for gpu in &view.gpus {
        let unaccounted = gpu.ledger.get().map_or(Bytes::ZERO, |ledger| ledger.unaccounted);
        if unaccounted > Bytes::ZERO {
            let number = ledger::gpu_number(gpu);
            let state = if gpu.sample.unlisted().is_some() { "not told" } else { "unacct" };
            let cells = [&number, "-", "-", state, &unaccounted.short(), "-", "-", "-", "-"];
            let mut row: Vec<String> = cells.iter().map(|&cell| cell.to_owned()).collect();
            row.push(match gpu.sample.unlisted() {
                Some(why) => format!("(no list: {})", why.words()),
                None => "(no process listed)".to_owned(),
            });
            rows.push(row);
        }
    }
    rows
}

/// Holders by GPU, the largest first; those whose bytes nobody tells last.
pub(super) fn in_order(view: &View) -> Vec<&Holder> {
    let place = |holder: &Holder| view.gpus.iter().position(|gpu| gpu.sample.uuid == holder.gpu);
    let mut holders: Vec<&Holder> = view.holders.iter().collect();
    holders.sort_by_key(|holder| {
        let bytes = holder.bytes.get();
        (place(holder), holder.index, std::cmp::Reverse(bytes), holder.pid)
    });
    holders
}

/// GPU, PID, user, state, bytes, age, command: what every table of holders has.
pub(super) fn cells(view: &View, holder: &Holder, style: &Style) -> [String; 7] {
    let gpu = view.gpus.iter().find(|gpu| gpu.sample.uuid == holder.gpu);
    let process = holder.process.as_ref();
    let user = process.map(|process| match (&process.user, process.uid) {
        (Reading::Value(name), _) => clean_for(name, style.ascii),
        (Reading::Absent(_), Reading::Value(uid)) => uid.to_string(),
        (Reading::Absent(_), Reading::Absent(_)) => "?".to_owned(),
    });
    let bytes = match (holder.bytes, holder.verdict.class) {
        (Reading::Value(bytes), _) => bytes.short(),
        // Counted in the dead one's row.
        (Reading::Absent(_), Class::Survivor) => "-".to_owned(),
        (Reading::Absent(_), _) => "?".to_owned(),
    };
    [
        gpu.map_or_else(|| holder.index.to_string(), ledger::gpu_number),
        holder.pid.to_string(),
        user.unwrap_or_else(|| "?".to_owned()),
        state_word(&holder.verdict).to_owned(),
        bytes,
        holder.age_ms.get().map_or_else(|| "-".to_owned(), age),
        command(holder, style),
    ]
}

/// What the command column says of a holder.
pub(super) fn command(holder: &Holder, style: &Style) -> String {
    let Some(process) = &holder.process else {
        let kept: Vec<String> = holder.survivors.iter().map(|id| id.pid.to_string()).collect();
        return match holder.verdict.class {
            Class::Ghost if !kept.is_empty() => format!("(dead, kept by {})", kept.join(", ")),
            Class::Ghost => "(dead)".to_owned(),
            Class::OtherUser => "(of another user)".to_owned(),
            _ if not_looked_at(holder) => "(not looked at yet)".to_owned(),
            Class::OtherNamespace => "(in another PID namespace)".to_owned(),
            _ => "(not to be seen)".to_owned(),
        };
    };
    clean_for(&json::command(process, style.redact), style.ascii)
}

fn change(growth: &Growth) -> String {
    match *growth {
        Growth::NotYet => "-".to_owned(),
        Growth::Steady => "0".to_owned(),
        Growth::Changing { per_minute } | Growth::Trend { per_minute, .. } => signed(per_minute),
    }
}

fn signed(slope: BytesPerMinute) -> String {
    if !slope.0.is_finite() {
        return "?".to_owned();
    }
    let sign = if slope.0 < 0.0 { "-" } else { "+" };
    format!("{sign}{}/m", Bytes(slope.0.abs() as u64).short())
}

fn cached(holder: &Holder) -> String {
    match holder.fragmentation {
        Fragmentation::None => "-".to_owned(),
        Fragmentation::CachedOnly { cached } | Fragmentation::Blocks { cached, .. } => {
            cached.short()
        }
    }
}
