//! What this program itself costs: one table, from which the last line of the screen and the
//! metrics' names come.

use crate::sample::Reading;
use crate::units::Bytes;

/// What it costs, measured over the last second or more.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCost {
    /// Share of one processor, of all its threads and of the process that asks the driver.
    pub cpu_percent: Reading<f64>,
    /// Processor time of one look at the driver and all that follows from it, in milliseconds.
    pub cpu_ms_per_look: Reading<f64>,
    /// Host memory that is resident.
    pub resident: Reading<Bytes>,
    /// Time in the driver for the newest look, in milliseconds.
    pub driver_ms: Reading<u32>,
    /// Driver calls of the newest look.
    pub driver_calls: Reading<u32>,
    /// Written to the terminal, in bytes a second.
    pub terminal_bytes_per_second: Reading<f64>,
    /// Looks that were lost on the way, since the start.
    pub lost_looks: u64,
}

/// One row of the table.
pub struct OwnField {
    /// What it is called on the screen.
    pub title: &'static str,
    /// The metric of the same thing, by its whole name.
    pub metric: Option<&'static str>,
    /// The figure with its unit; `-` for none.
    pub show: fn(&OwnCost) -> String,
}

/// All of them, the most telling first.
pub const OWN: [OwnField; 6] = [
    OwnField { title: "CPU", metric: Some("vramlens_cpu_seconds"), show: cpu },
    OwnField {
        title: "memory",
        metric: Some("vramlens_resident_bytes"),
        show: |cost| or_dash(cost.resident, Bytes::short),
    },
    OwnField {
        title: "driver",
        metric: Some("vramlens_driver_look_seconds"),
        show: |cost| or_dash(cost.driver_ms, |ms| format!("{ms} ms")),
    },
    OwnField {
        title: "calls",
        metric: Some("vramlens_driver_look_calls"),
        show: |cost| or_dash(cost.driver_calls, |calls| calls.to_string()),
    },
    OwnField {
        title: "tty",
        metric: None,
        show: |cost| {
            or_dash(cost.terminal_bytes_per_second, |rate| format!("{}/s", short_bytes(rate)))
        },
    },
    OwnField {
        title: "lost",
        metric: Some("vramlens_dropped_looks"),
        show: |cost| cost.lost_looks.to_string(),
    },
];

/// `CPU 0.8% 8 ms  memory 14M  driver 4 ms  calls 17  tty 1.2K/s  lost 0`.
pub fn own_line(cost: &OwnCost) -> String {
    let parts: Vec<String> =
        OWN.iter().map(|field| format!("{} {}", field.title, (field.show)(cost))).collect();
    parts.join("  ")
}

fn cpu(cost: &OwnCost) -> String {
    let share = or_dash(cost.cpu_percent, |share| format!("{share:.1}%"));
    match cost.cpu_ms_per_look {
        Reading::Value(ms) => format!("{share} {ms:.1} ms"),
        Reading::Absent(_) => share,
    }
}

fn or_dash<T: Copy>(reading: Reading<T>, show: impl FnOnce(T) -> String) -> String {
    reading.get().map_or_else(|| "-".to_owned(), show)
}

fn short_bytes(bytes: f64) -> String {
    match bytes {
        0.0..1024.0 => format!("{bytes:.0}B"),
        _ if bytes < 1024.0 * 1024.0 => format!("{:.1}K", bytes / 1024.0),
        _ => format!("{:.1}M", bytes / (1024.0 * 1024.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Why;

    #[test]
    fn what_is_not_known_yet_is_no_number() {
        let mut cost = OwnCost {
            cpu_percent: Reading::Value(0.84),
            cpu_ms_per_look: Reading::Value(8.44),
            resident: Reading::Value(Bytes::mib(14)),
            driver_ms: Reading::Value(4),
            driver_calls: Reading::Value(17),
            terminal_bytes_per_second: Reading::Value(1234.0),
            lost_looks: 0,
        };
        let line = "CPU 0.8% 8.4 ms  memory 14M  driver 4 ms  calls 17  tty 1.2K/s  lost 0";
        assert_eq!(own_line(&cost), line);
        cost.cpu_percent = Reading::Absent(Why::NotYet);
        cost.cpu_ms_per_look = Reading::Absent(Why::NotYet);
        cost.terminal_bytes_per_second = Reading::Absent(Why::NotYet);
        let line = "CPU -  memory 14M  driver 4 ms  calls 17  tty -  lost 0";
        assert_eq!(own_line(&cost), line);
    }
}
