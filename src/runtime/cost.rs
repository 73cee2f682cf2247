//! What this program costs, as the kernel counts it: one place for the screen and the metrics.

use std::time::Duration;

use crate::analyze::View;
use crate::fields::OwnCost;
use crate::runtime::clock;
use crate::sample::{Reading, Why};
use crate::units::Bytes;

/// Figures of a rate come from at least this long, in milliseconds.
const SHORTEST_MS: u64 = 1_000;

/// Processor time of all threads since the start, in seconds; with that of the process that asks
/// the driver, where there is one.
pub fn cpu_seconds(apart: Option<u32>) -> Reading<f64> {
    let spent = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let own = spent
        .map(|time| Duration::from(time).as_secs_f64())
        .map_err(|errno| Why::Failed(errno as i32));
    // Without the other's share the sum would be another figure.
    let other = apart.map_or(Some(0.0), cpu_seconds_of).ok_or(Why::Gone);
    Reading::from(own.and_then(|own| other.map(|other| own + other)))
}

/// Host memory that is resident, in bytes; likewise.
pub fn resident_bytes(apart: Option<u32>) -> Reading<u64> {
    let own = pages("/proc/self/statm").and_then(|own| {
        let other = apart.map_or(Some(0), |pid| pages(&format!("/proc/{pid}/statm")));
        other.map(|other| own + other)
    });
    own.map_or(Reading::Absent(Why::Nonsense), |pages| {
        Reading::Value(pages * rustix::param::page_size() as u64)
    })
}

/// The second number of `statm`, which is the kernel's own count: it waits for nothing.
fn pages(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.split(' ').nth(1)?.parse().ok()
}

/// The 14th and 15th field of `stat`, behind the name, which may hold anything.
fn cpu_seconds_of(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Bytes handed to the terminal.
    pub written_bytes: u64,
    /// Looks at the driver.
    pub looks: u64,
    /// The process that asks the driver.
    pub apart: Option<u32>,
}

/// Makes rates of counts.
#[derive(Debug, Default)]
pub struct Meter {
    before: Option<(u64, Reading<f64>, Counts)>,
    cost: Option<OwnCost>,
}

impl Meter {
    /// The cost now. Called at every frame while it is shown; a rate is of a second at least.
    pub fn read(&mut self, view: &View, now: Counts) -> OwnCost {
        let at_ms = clock::now().boot_ms;
        let due = |before: &(u64, Reading<f64>, Counts)| at_ms >= before.0 + SHORTEST_MS;
        if let (Some(cost), Some(before)) = (&mut self.cost, &self.before)
            && !due(before)
        {
            (cost.driver_ms, cost.driver_calls) = driver(view);
            cost.lost_looks = view.dropped_ticks;
            return cost.clone();
        }
        let cpu = cpu_seconds(now.apart);
        let (driver_ms, driver_calls) = driver(view);
        let mut cost = OwnCost {
            cpu_percent: Reading::Absent(Why::NotYet),
            cpu_ms_per_look: Reading::Absent(Why::NotYet),
            resident: resident_bytes(now.apart).map(Bytes),
            driver_ms,
            driver_calls,
            terminal_bytes_per_second: Reading::Absent(Why::NotYet),
            lost_looks: view.dropped_ticks,
        };
        if let Some((then_ms, then_cpu, then)) = self.before.filter(|b| b.2.apart == now.apart) {
            let seconds = (at_ms - then_ms) as f64 / 1000.0;
            let spent = cpu.and_then(|cpu| then_cpu.map(|then| (cpu - then).max(0.0)));
            cost.cpu_percent = spent.map(|spent| spent / seconds * 100.0);
            let looks = now.looks.saturating_sub(then.looks);
            if looks > 0 {
                cost.cpu_ms_per_look = spent.map(|spent| spent * 1000.0 / looks as f64);
            }
            let written = now.written_bytes.saturating_sub(then.written_bytes);
            cost.terminal_bytes_per_second = Reading::Value(written as f64 / seconds);
        }
        self.before = Some((at_ms, cpu, now));
        self.cost = Some(cost.clone());
        cost
    }
}

fn driver(view: &View) -> (Reading<u32>, Reading<u32>) {
    match view.driver_cost {
        Some(cost) => (Reading::Value(cost.took_ms), Reading::Value(cost.calls)),
        None => (Reading::Absent(Why::NotYet), Reading::Absent(Why::NotYet)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cost_can_be_read() {
        assert!(cpu_seconds(None).get().is_some_and(|seconds| seconds > 0.0));
        assert!(resident_bytes(None).get().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn that_of_another_process_is_added() {
        let alone = resident_bytes(None).get().unwrap();
        // Twice itself, nearly: the heap moves meanwhile.
        let both = resident_bytes(Some(std::process::id())).get().unwrap();
        assert!(both > alone + alone / 2, "{alone} {both}");
        assert!(cpu_seconds_of(std::process::id()).is_some());
        // Of one that is gone no sum is told.
        assert_eq!(cpu_seconds(Some(u32::MAX)), Reading::Absent(Why::Gone));
        assert_eq!(resident_bytes(Some(u32::MAX)).get(), None);
    }
}
