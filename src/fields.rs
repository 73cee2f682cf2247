//! One table of everything that is shown of a holder or a GPU: title, unit, help, JSON key, metric
//! name. Columns, sort keys, help, reports and metrics come from it.

mod cells;
mod classes;
mod own;

pub use cells::*;
pub use classes::*;
pub use own::{OWN, OwnCost, OwnField, own_line};

/// What a field is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A GPU or MIG instance.
    Gpu,
    /// One process on one GPU.
    Holder,
}

/// What a field is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Words or a number that names something.
    Text,
    /// Bytes.
    Bytes,
    /// Bytes a minute.
    BytesPerMinute,
    /// Bytes a second.
    BytesPerSecond,
    /// A share of a hundred.
    Percent,
    /// Milliseconds in JSON, an age on the screen.
    Milliseconds,
    /// Degrees Celsius.
    Celsius,
    /// Thousandths of a watt.
    Milliwatts,
    /// Millions of cycles a second.
    Megahertz,
}

impl Unit {
    /// As a metric's name ends, by the conventions of Prometheus; empty for none.
    pub const fn metric_suffix(self) -> &'static str {
        match self {
            Self::Text | Self::BytesPerMinute | Self::BytesPerSecond => "",
            Self::Bytes => "_bytes",
            Self::Percent => "_percent",
            Self::Milliseconds => "_seconds",
            Self::Celsius => "_celsius",
            Self::Milliwatts => "_watts",
            Self::Megahertz => "_hertz",
        }
    }
}

/// To which side a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The names of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table below says what each one is")]
pub enum FieldId {
    Gpu,
    Pid,
    User,
    State,
    Vram,
    Delta,
    Fragmentation,
    Sm,
    Age,
    Cpu,
    Rss,
    Peak,
    Unit,
    Command,
    Kind,
    Kv,
    GpuName,
    GpuTotal,
    GpuUsed,
    GpuReserved,
    GpuFree,
    GpuProcesses,
    GpuSurvivors,
    GpuUnaccounted,
    GpuUtilization,
    GpuMemoryUtilization,
    GpuTemperature,
    GpuPower,
    GpuPowerLimit,
    GpuSmClock,
    GpuMemoryClock,
    GpuPcieRx,
    GpuPcieTx,
    GpuFan,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in the program.
    pub id: FieldId,
    /// What it is about.
    pub scope: Scope,
    /// The head of its column.
    pub title: &'static str,
    /// Its name in settings, filters and `sort`.
    pub name: &'static str,
    /// Columns that it takes; 0 for what remains.
    pub width: u16,
    /// To which side it is set.
    pub align: Align,
    /// What it is counted in.
    pub unit: Unit,
    /// Its path in the JSON of its object.
    pub json: &'static str,
    /// Its metric without unit, where it is one.
    pub metric: Option<&'static str>,
    /// What it says, in one sentence.
    pub help: &'static str,
}

macro_rules! fields {
    ($($scope:ident $id:ident $title:literal $name:literal $width:literal $align:ident $unit:ident
       $json:literal $metric:expr, $help:literal;)*) => {
        /// Every field, in the order in which help lists them.
        pub const FIELDS: &[Field] = &[$(Field {
            id: FieldId::$id, scope: Scope::$scope, title: $title, name: $name, width: $width,
            align: Align::$align, unit: Unit::$unit, json: $json, metric: $metric, help: $help,
        },)*];
    };
}

fields! {
    Holder Gpu "GPU" "gpu" 3 Right Text "gpu" None,
        "The driver's number of the GPU; of a MIG instance also the instance.";
    Holder Pid "PID" "pid" 7 Right Text "pid" None,
        "The process, as this machine numbers it.";
    Holder User "USER" "user" 8 Left Text "user" None,
        "Its real user.";
    Holder State "STATE" "state" 10 Left Text "verdict.class" None,
        "What it is: active, idle, zombie and so on; the verdict tab says why.";
    Holder Vram "VRAM" "vram" 6 Right Bytes "bytes" Some("vramlens_holder_memory"),
        "Device memory that it holds, as the driver counts it.";
    Holder Delta "Δ/min" "delta" 7 Right BytesPerMinute "growth_bytes_per_minute"
        Some("vramlens_holder_growth_bytes_per_minute"),
        "How its memory moves in a minute; empty until enough was seen.";
    Holder Fragmentation "FRAG" "frag" 4 Right Percent "fragmentation.percent"
        Some("vramlens_holder_fragmentation"),
        "Share of what its allocator keeps that is cached and in pieces too small for the next request.";
    Holder Sm "SM%" "sm" 4 Right Percent "sm_percent" Some("vramlens_holder_sm"),
        "Its share of the multiprocessors' time.";
    Holder Age "AGE" "age" 4 Right Milliseconds "age_ms" Some("vramlens_holder_age"),
        "How long it has been running.";
    Holder Cpu "CPU%" "cpu" 5 Right Percent "cpu_percent" Some("vramlens_holder_cpu"),
        "Its CPU use; several cores go above 100.";
    Holder Rss "RSS" "rss" 6 Right Bytes "rss_bytes" Some("vramlens_holder_resident"),
        "Host memory that it has resident.";
    Holder Peak "PEAK" "peak" 6 Right Bytes "peak_bytes" Some("vramlens_holder_peak"),
        "The most device memory that it was seen to hold.";
    Holder Unit "UNIT" "unit" 16 Left Text "unit" None,
        "The systemd unit, container or Slurm job that it belongs to.";
    Holder Command "COMMAND" "command" 0 Left Text "command" None,
        "Its command line.";
    Holder Kind "KIND" "kind" 5 Left Text "kind" None,
        "The driver's lists that name it: C compute, G graphics, M MPS.";
    Holder Kv "KV%" "kv" 4 Right Percent "server.kv_used_percent" Some("vramlens_holder_kv_used"),
        "Of an inference server: how much of its cache holds tokens, as it reports.";
    Gpu GpuName "NAME" "name" 0 Left Text "name" None,
        "The product.";
    Gpu GpuTotal "TOTAL" "total" 7 Right Bytes "memory.total_bytes" Some("vramlens_gpu_memory_total"),
        "All device memory.";
    Gpu GpuUsed "USED" "used" 7 Right Bytes "memory.used_bytes" Some("vramlens_gpu_memory_used"),
        "Held by processes or by nobody; without what the driver keeps where that is told apart.";
    Gpu GpuReserved "DRIVER" "reserved" 7 Right Bytes "memory.reserved_bytes"
        Some("vramlens_gpu_memory_reserved"),
        "Kept by driver and firmware.";
    Gpu GpuFree "FREE" "free" 7 Right Bytes "memory.free_bytes" Some("vramlens_gpu_memory_free"),
        "Not held.";
    Gpu GpuProcesses "PROCS" "processes" 7 Right Bytes "ledger.processes_bytes"
        Some("vramlens_gpu_memory_processes"),
        "Held by living processes that the driver lists.";
    Gpu GpuSurvivors "GHOSTS" "survivors" 7 Right Bytes "ledger.survivors_bytes"
        Some("vramlens_gpu_memory_survivors"),
        "Listed under dead pids, kept by processes that inherited the device.";
    Gpu GpuUnaccounted "UNACCT" "unaccounted" 7 Right Bytes "ledger.unaccounted_bytes"
        Some("vramlens_gpu_memory_unaccounted"),
        "Used, and in no process's name.";
    Gpu GpuUtilization "UTIL" "util" 5 Right Percent "utilization.sm_percent"
        Some("vramlens_gpu_utilization"),
        "Share of time in which a kernel ran. Not how well it used the chip.";
    Gpu GpuMemoryUtilization "MEM%" "memutil" 5 Right Percent "utilization.memory_percent"
        Some("vramlens_gpu_memory_utilization"),
        "Share of time in which device memory was read or written. Not how full it is.";
    Gpu GpuTemperature "TEMP" "temperature" 5 Right Celsius "temperature_celsius"
        Some("vramlens_gpu_temperature"),
        "Of the chip.";
    Gpu GpuPower "POWER" "power" 8 Right Milliwatts "power_milliwatts" Some("vramlens_gpu_power"),
        "Drawn now.";
    Gpu GpuPowerLimit "LIMIT" "limit" 8 Right Milliwatts "power_limit_milliwatts"
        Some("vramlens_gpu_power_limit"),
        "The power limit in force.";
    Gpu GpuSmClock "SM" "smclock" 8 Right Megahertz "sm_clock_megahertz"
        Some("vramlens_gpu_sm_clock"),
        "Clock of the multiprocessors.";
    Gpu GpuMemoryClock "MEM" "memclock" 8 Right Megahertz "memory_clock_megahertz"
        Some("vramlens_gpu_memory_clock"),
        "Clock of the memory.";
    Gpu GpuPcieRx "RX" "rx" 9 Right BytesPerSecond "pcie.rx_bytes_per_second"
        Some("vramlens_gpu_pcie_receive_bytes_per_second"),
        "Traffic on the bus to the GPU.";
    Gpu GpuPcieTx "TX" "tx" 9 Right BytesPerSecond "pcie.tx_bytes_per_second"
        Some("vramlens_gpu_pcie_transmit_bytes_per_second"),
        "Traffic on the bus from the GPU.";
    Gpu GpuFan "FAN" "fan" 5 Right Percent "fan_percent" Some("vramlens_gpu_fan"),
        "Of the fan's range.";
}

impl FieldId {
    /// Its row of the table.
    pub fn field(self) -> &'static Field {
        // Every id stands in the table: a test sees to it.
        let at_its_place = FIELDS.get(self as usize).filter(|field| field.id == self);
        let found = at_its_place.or_else(|| FIELDS.iter().find(|field| field.id == self));
        found.unwrap_or(&FIELDS[0])
    }

    /// The field of a holder with this name, as settings and filters write it.
    pub fn by_name(name: &str) -> Option<Self> {
        FIELDS
            .iter()
            .find(|field| field.scope == Scope::Holder && field.name.eq_ignore_ascii_case(name))
            .map(|field| field.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_once_in_the_table() {
        for (n, field) in FIELDS.iter().enumerate() {
            assert_eq!(field.id as usize, n, "{} is out of order", field.name);
            assert_eq!(field.id.field().name, field.name);
            assert!(field.help.ends_with('.'), "{}", field.name);
            assert_eq!(FIELDS.iter().filter(|other| other.name == field.name).count(), 1);
        }
        assert_eq!(FieldId::by_name("VRAM"), Some(FieldId::Vram));
        assert_eq!(FieldId::by_name("total"), None);
    }
}
