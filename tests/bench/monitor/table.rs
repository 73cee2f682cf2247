//! The figures side by side.

use super::measure::Costs;

/// A row: its title, its figure of a monitor, and the word for none.
type Row = (&'static str, fn(&Costs) -> Option<f64>, &'static str);

const MIB: f64 = 1024.0;
const NOT_COUNTED: &str = "not counted";
const NOT_SEEN: &str = "not seen";
const NOT_READ: &str = "not read";

const ROWS: [Row; 17] = [
    ("CPU, ms a refresh", |c| Some(c.cpu_ms), NOT_COUNTED),
    ("system calls a refresh", |c| c.system_calls, NOT_COUNTED),
    ("driver calls a refresh", |c| Some(c.driver_calls), NOT_COUNTED),
    ("allocations a refresh", |c| c.allocations.map(|each| each[0]), NOT_COUNTED),
    ("  of KiB", |c| c.allocations.map(|each| each[1] / 1024.0), NOT_COUNTED),
    ("  MiB not freed", |c| Some(c.live_bytes? as f64 / MIB / 1024.0), NOT_COUNTED),
    ("terminal, bytes a second", |c| Some(c.bytes), NOT_COUNTED),
    ("a GPU shows after, ms", |c| c.first_ms[0], NOT_SEEN),
    ("and a process, ms", |c| c.first_ms[1], NOT_SEEN),
    ("key to screen, median ms", |c| part(&c.keys_ms, 0.5), NOT_SEEN),
    ("key to screen, p99 ms", |c| part(&c.keys_ms, 0.99), NOT_SEEN),
    ("resident, MiB", |c| mib(c, 0), NOT_READ),
    ("  highest", |c| mib(c, 1), NOT_READ),
    ("  private", |c| mib(c, 2), NOT_READ),
    ("  of files", |c| mib(c, 3), NOT_READ),
    ("  its own share (Pss)", |c| mib(c, 4), NOT_READ),
    ("threads", |c| Some(c.threads.len() as f64), NOT_READ),
];

fn mib(costs: &Costs, which: usize) -> Option<f64> {
    costs.memory_kib[which].map(|kib| kib as f64 / MIB)
}

fn part(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}

/// A column a monitor, and the ratio of the first one to each other.
pub fn render(monitors: &[(String, Costs)]) -> String {
    let mut text = format!("{:<26}", "");
    for (n, (name, _)) in monitors.iter().enumerate() {
        text += &format!("{name:>12}");
        text += if n > 0 { "    ratio" } else { "" };
    }
    text.push('\n');
    for (title, figure, none) in ROWS {
        text += &format!("{title:<26}");
        let own = monitors.first().and_then(|(_, costs)| figure(costs));
        for (n, (_, costs)) in monitors.iter().enumerate() {
            let value = figure(costs);
            text += &value.map_or_else(|| format!("{none:>12}"), |v| format!("{v:>12.2}"));
            let ratio = own.zip(value).filter(|(_, theirs)| *theirs > 0.0);
            if n > 0 {
                let ratio = ratio.map(|(own, theirs)| format!("{:>9.2}", own / theirs));
                text += &ratio.unwrap_or_else(|| format!("{:>9}", "-"));
            }
        }
        text.push('\n');
    }
    for (name, costs) in monitors {
        let busy = costs.threads.iter().filter(|thread| thread.1 >= 0.001);
        let each: Vec<String> = busy.map(|(name, ms)| format!("{name} {ms:.3}")).collect();
        text += &format!("{name}, ms a thread: {}\n", each.join(", "));
        if let Some(why) = &costs.not_counted {
            text += &format!("{name}, allocations: not counted: {why}\n");
        }
    }
    text
}
