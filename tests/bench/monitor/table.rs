//! The figures side by side.

use super::measure::Costs;

/// A row: its title, and its figure of a monitor.
type Row = (&'static str, fn(&Costs) -> Option<f64>);

const MIB: f64 = 1024.0;

const ROWS: [Row; 14] = [
    ("CPU, ms a refresh", |c| Some(c.cpu_ms)),
    ("system calls a refresh", |c| c.system_calls),
    ("driver calls a refresh", |c| Some(c.driver_calls)),
    ("terminal, bytes a second", |c| Some(c.bytes)),
    ("a GPU shows after, ms", |c| Some(c.first_ms[0])),
    ("and a process, ms", |c| Some(c.first_ms[1])),
    ("key to screen, median ms", |c| part(&c.keys_ms, 0.5)),
    ("key to screen, p99 ms", |c| part(&c.keys_ms, 0.99)),
    ("resident, MiB", |c| Some(c.memory_kib[0] as f64 / MIB)),
    ("  highest", |c| Some(c.memory_kib[1] as f64 / MIB)),
    ("  private", |c| Some(c.memory_kib[2] as f64 / MIB)),
    ("  of files", |c| Some(c.memory_kib[3] as f64 / MIB)),
    ("  its own share (Pss)", |c| Some(c.memory_kib[4] as f64 / MIB)),
    ("threads", |c| Some(c.threads.len() as f64)),
];

fn part(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}

/// A column a monitor, and the first one's ratio to each other.
pub fn render(monitors: &[(String, Costs)]) -> String {
    let mut text = format!("{:<26}", "");
    for (n, (name, _)) in monitors.iter().enumerate() {
        text += &format!("{name:>12}");
        text += if n > 0 { "    ratio" } else { "" };
    }
    text.push('\n');
    for (title, figure) in ROWS {
        text += &format!("{title:<26}");
        let own = monitors.first().and_then(|(_, costs)| figure(costs));
        for (n, (_, costs)) in monitors.iter().enumerate() {
            let value = figure(costs);
            text += &value.map_or_else(|| format!("{:>12}", "-"), |v| format!("{v:>12.2}"));
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
    }
    text
}
