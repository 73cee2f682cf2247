//! What is asked after memory and processes: how busy, how hot, how fast.

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::error::NvmlError;

use super::fault::Fault;
use super::pace::{Kept, Pace, Turn};
use super::raw::Library;
use super::subject::{Driver, Listed, Settings, Subject};
use crate::sample::{
    Earlier, GpuProc, GpuSample, Memory, Pcie, Reading, Throttle, Utilization, Why,
};
use crate::source::Wants;
use crate::units::{BytesPerSecond, Celsius, Megahertz, Milliwatts, Percent};

/// Asks the rest and puts the sample together.
pub(super) fn complete(
    subject: &mut Subject,
    driver: Driver<'_>,
    (wants, pace): (Wants, Pace),
    memory: Reading<Memory>,
    (mut processes, unread_lists): Listed,
) -> GpuSample {
    let mut earlier = Earlier { lists_boot_ms: subject.lists_earlier(pace), ..Earlier::default() };
    let sensors = if subject.mig.is_some() {
        Sensors::absent(Why::NotSupported)
    } else {
        Sensors::read(subject, driver, (wants, pace), &mut earlier)
    };
    let process_utilization = process_utilization(subject, driver, wants, &mut processes);
    let lost = subject.is_lost().then_some(Why::GpuLost);
    let settings = lost.map_or(subject.settings, Settings::absent);
    earlier.settings_boot_ms = subject.settings_earlier(pace);
    GpuSample {
        uuid: subject.facts.uuid.clone(),
        index: subject.index,
        mig: subject.mig.clone(),
        name: subject.facts.name.clone(),
        minor: subject.facts.minor,
        pci_bus_id: subject.facts.pci_bus_id.clone(),
        memory,
        utilization: sensors.utilization,
        temperature: sensors.temperature,
        power: sensors.power,
        power_limit: settings.power_limit,
        sm_clock: sensors.sm_clock,
        memory_clock: sensors.memory_clock,
        throttle: sensors.throttle,
        performance_state: sensors.performance_state,
        pcie: sensors.pcie,
        fan: sensors.fan,
        mig_enabled: settings.mig_enabled,
        persistence: settings.persistence,
        processes,
        unread_lists,
        process_utilization,
        earlier,
    }
}

/// Reads what an administrator sets.
pub(super) fn settings(subject: &mut Subject, driver: Driver<'_>) {
    subject.settings = Settings {
        power_limit: subject
            .read(driver, ("nvmlDeviceGetEnforcedPowerLimit", 0), |gpu| gpu.enforced_power_limit())
            .map(|limit| Milliwatts(u64::from(limit))),
        mig_enabled: subject
            .read(driver, ("nvmlDeviceGetMigMode", 0), |gpu| gpu.mig_mode())
            .map(|mode| mode.current != 0),
        persistence: subject
            .read(driver, ("nvmlDeviceGetPersistenceMode", 0), |gpu| gpu.is_in_persistent_mode()),
    };
}

fn process_utilization(
    subject: &mut Subject,
    driver: Driver<'_>,
    wants: Wants,
    processes: &mut Reading<Vec<GpuProc>>,
) -> Reading<()> {
    let Reading::Value(processes) = processes else {
        return Reading::Absent(if subject.is_lost() { Why::GpuLost } else { Why::NotAsked });
    };
    if subject.mig.is_some() {
        for process in processes {
            process.sm = Reading::Absent(Why::NotSupported);
        }
        return Reading::Absent(Why::NotSupported);
    }
    // The samples of nobody are not worth 2 ms.
    if !wants.process_utilization || processes.is_empty() {
        return Reading::Absent(Why::NotAsked);
    }
    subject.sample_processes(driver, processes)
}

struct Sensors {
    utilization: Reading<Utilization>,
    temperature: Reading<Celsius>,
    power: Reading<Milliwatts>,
    throttle: Reading<Throttle>,
    sm_clock: Reading<Megahertz>,
    memory_clock: Reading<Megahertz>,
    performance_state: Reading<u32>,
    fan: Reading<Percent>,
    pcie: Reading<Pcie>,
}

impl Sensors {
    const fn absent(why: Why) -> Self {
        Self {
            utilization: Reading::Absent(why),
            temperature: Reading::Absent(why),
            power: Reading::Absent(why),
            throttle: Reading::Absent(why),
            sm_clock: Reading::Absent(why),
            memory_clock: Reading::Absent(why),
            performance_state: Reading::Absent(why),
            fan: Reading::Absent(why),
            pcie: Reading::Absent(why),
        }
    }

    fn read(
        subject: &mut Subject,
        driver: Driver<'_>,
        (wants, pace): (Wants, Pace),
        earlier: &mut Earlier,
    ) -> Self {
        let mut sensors = Self::absent(Why::NotAsked);
        sensors.utilization = utilization(subject, driver);
        sensors.temperature = subject
            .read(driver, ("nvmlDeviceGetTemperature", 0), |gpu| {
                gpu.temperature(TemperatureSensor::Gpu)
            })
            .map(|degrees| Celsius(degrees.cast_signed()));
        sensors.power = subject
            .read(driver, ("nvmlDeviceGetPowerUsage", 0), |gpu| gpu.power_usage())
            .map(|drawn| Milliwatts(u64::from(drawn)));
        // It is a word on every screen, and costs a microsecond or two.
        sensors.throttle = throttle(subject, driver);
        if wants.details {
            sensors.sm_clock = clock(subject, driver, Clock::SM);
        }
        sensors.in_turns(subject, driver, (wants, pace), earlier);
        if subject.is_lost() && !earlier.is_none() {
            // Nothing old is shown of it: once more without, which asks nothing.
            subject.in_turns = InTurns::default();
            sensors.in_turns(subject, driver, (wants, pace), earlier);
        }
        sensors
    }

    /// What is not read at every look.
    fn in_turns(
        &mut self,
        subject: &mut Subject,
        driver: Driver<'_>,
        (wants, pace): (Wants, Pace),
        earlier: &mut Earlier,
    ) {
        let mut kept = subject.in_turns;
        let mut oldest = None;
        if wants.details {
            let memory_clock = || clock(subject, driver, Clock::Memory);
            self.memory_clock = kept.memory_clock.read(pace, Turn::Clocks, memory_clock);
            let state = || performance_state(subject, driver);
            self.performance_state = kept.performance_state.read(pace, Turn::State, state);
            self.fan = kept.fan.read(pace, Turn::State, || fan(subject, driver));
            let stamps = [
                kept.memory_clock.earlier(pace),
                kept.performance_state.earlier(pace),
                kept.fan.earlier(pace),
            ];
            oldest = stamps.into_iter().flatten().min();
        } else {
            kept = InTurns { pcie: kept.pcie, ..InTurns::default() };
        }
        if wants.pcie {
            self.pcie = kept.pcie.read(pace, Turn::Bus, || pcie(subject, driver));
        } else {
            kept.pcie = Kept::default();
        }
        earlier.details_boot_ms = oldest;
        earlier.pcie_boot_ms = kept.pcie.earlier(pace);
        subject.in_turns = kept;
    }
}

/// The figures that are read in turns. One that nobody wants is not kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InTurns {
    memory_clock: Kept<Megahertz>,
    performance_state: Kept<u32>,
    fan: Kept<Percent>,
    pcie: Kept<Pcie>,
}

fn clock(subject: &mut Subject, driver: Driver<'_>, which: Clock) -> Reading<Megahertz> {
    subject
        .read(driver, ("nvmlDeviceGetClockInfo", which.as_c()), |gpu| gpu.clock_info(which))
        .map(Megahertz)
}

fn performance_state(subject: &mut Subject, driver: Driver<'_>) -> Reading<u32> {
    let state =
        subject.read(driver, ("nvmlDeviceGetPerformanceState", 0), |gpu| gpu.performance_state());
    // 32 is the driver's "unknown".
    match state.map(|state| state.as_c()) {
        Reading::Value(32..) => Reading::Absent(Why::NotSupported),
        known => known,
    }
}

fn fan(subject: &mut Subject, driver: Driver<'_>) -> Reading<Percent> {
    subject
        .read(driver, ("nvmlDeviceGetFanSpeed_v2", 0), |gpu| match gpu.fan_speed(0) {
            // A card without fans says that there is no such fan.
            Err(NvmlError::InvalidArg) => Err(NvmlError::NotSupported),
            other => other,
        })
        .map(|share| Percent(share as f32))
}

fn utilization(subject: &mut Subject, driver: Driver<'_>) -> Reading<Utilization> {
    let rates =
        subject.read(driver, ("nvmlDeviceGetUtilizationRates", 0), |gpu| gpu.utilization_rates());
    match rates {
        Reading::Value(rates) if rates.gpu > 100 || rates.memory > 100 => {
            Reading::Absent(Why::Nonsense)
        }
        rates => rates.map(|rates| Utilization {
            sm: Percent(rates.gpu as f32),
            memory: Percent(rates.memory as f32),
        }),
    }
}

fn throttle(subject: &mut Subject, driver: Driver<'_>) -> Reading<Throttle> {
    const NEWER: &str = "nvmlDeviceGetCurrentClocksEventReasons";
    const OLDER: &str = "nvmlDeviceGetCurrentClocksThrottleReasons";
    let bits = match subject.ask(driver, (NEWER, 0), Library::clocks_event_reasons) {
        Err(fault) if fault.wants_older() => {
            subject.ask(driver, (OLDER, 0), Library::clocks_throttle_reasons)
        }
        answer => answer,
    };
    bits.map(Throttle).map_err(Fault::why).into()
}

/// 20 ms for each direction, which the driver spends counting. It counts in KiB a second. Its counters
/// of bytes (field ids 197 and 198) would cost 0.3 ms, but have 32 bits: at 9 GB/s they are full after
/// half a second, and nobody can tell how often.
fn pcie(subject: &mut Subject, driver: Driver<'_>) -> Reading<Pcie> {
    const CALL: &str = "nvmlDeviceGetPcieThroughput";
    let mut count = |counter, selector| {
        let way = subject.read(driver, (CALL, selector), |gpu| gpu.pcie_throughput(counter));
        way.map(|kib| BytesPerSecond(u64::from(kib) * 1024))
    };
    // The driver speaks for the GPU: what it sends is what the host receives.
    match (count(PcieUtilCounter::Receive, 1), count(PcieUtilCounter::Send, 0)) {
        (Reading::Value(rx), Reading::Value(tx)) => Reading::Value(Pcie { rx, tx }),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
    }
}
