//! What looking costs. Prints figures and asserts none: run it by hand, alone, on a quiet machine:
//! `cargo test --release --test host_cost -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "it prints figures")]

#[path = "support/real.rs"]
mod real;

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use real::{Device, Holder};
use vramlens::host::Probe;
use vramlens::ids::{Pid, Stamp};

/// User and system time of the process so far.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap()
    };
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

const LOOKS: u32 = 120;

struct Cost {
    cpu: Duration,
    wall: Duration,
}

fn measure(act: impl FnOnce()) -> Cost {
    let (cpu_before, began) = (cpu(), Instant::now());
    act();
    Cost { cpu: cpu().saturating_sub(cpu_before), wall: began.elapsed() }
}

fn run(processes: &str, holders: usize) {
    let device = Device::new();
    let words = ["open", "/dev/null"].repeat(7);
    let words = [words.as_slice(), &["setsid", "crowd", processes]].concat();
    let crowd = Holder::start(&words, 1);
    let open = ["open", device.path()].repeat(4);
    let started: Vec<Holder> = (0..holders).map(|_| Holder::start(&open, 1)).collect();
    let listed: Vec<Pid> = started.iter().map(|holder| Pid(holder.pid())).collect();
    let mut probe = Probe::new("/", device.options());
    // One look a second, on a clock that does not wait.
    let mut boot_ms = real::now().boot_ms + 120_000;
    let mut look = |probe: &mut Probe| {
        boot_ms += 1000;
        probe.look(Stamp { boot_ms, wall_ms: 0 }, &listed)
    };
    let mut tick = None;
    let first = measure(|| tick = Some(look(&mut probe)));
    let tick = tick.unwrap();
    eprintln!(
        "{} processes, {} in the answer: first look {:.1} ms CPU, {:.1} ms, complete: {}",
        tick.scan.processes,
        tick.procs.len(),
        first.cpu.as_secs_f64() * 1e3,
        first.wall.as_secs_f64() * 1e3,
        tick.scan.scanned_boot_ms.is_some(),
    );
    let steady = measure(|| (0..LOOKS).for_each(|_| drop(look(&mut probe))));
    eprintln!(
        "    then {:.2} ms CPU a look, {:.2} ms",
        steady.cpu.as_secs_f64() * 1e3 / f64::from(LOOKS),
        steady.wall.as_secs_f64() * 1e3 / f64::from(LOOKS),
    );
    let group = nix::unistd::Pid::from_raw(i32::try_from(crowd.pid()).unwrap());
    drop(crowd);
    // The next run must not see the rest of this one.
    real::until("the crowd has ended", || nix::sys::signal::killpg(group, None).is_err());
}

#[test]
#[ignore = "figures, not a test"]
fn what_a_look_costs() {
    for (processes, holders) in [("0", 0), ("5000", 0), ("0", 64), ("5000", 64)] {
        run(processes, holders);
    }
}
