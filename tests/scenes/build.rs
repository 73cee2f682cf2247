//! What scenes are built of.

use vramlens::analyze::xid::Xids;
use vramlens::analyze::*;
use vramlens::history::{BusyPoint, ChartPoint};
use vramlens::ids::*;
use vramlens::sample::*;
use vramlens::ui::Charts;
use vramlens::units::*;

pub const NOW: Stamp = Stamp { boot_ms: 400_000_000, wall_ms: 1_796_012_327_000 };

/// Tenths of GiB.
pub fn g(tenths: u64) -> Bytes {
    Bytes(tenths * Bytes::gib(1).0 / 10)
}

/// A past that is made up: memory climbs to the present figure, with a step and a gap.
pub struct Past {
    pub now: Bytes,
    pub solid: Option<Bytes>,
    pub oldest_ms: u64,
}

impl Past {
    pub fn rising_to(tenths: u64) -> Self {
        Self { now: g(tenths), solid: None, oldest_ms: NOW.boot_ms - 900_000 }
    }

    fn points(&self, columns: usize, share: f64) -> Vec<Option<ChartPoint>> {
        let point = |n: usize| {
            let x = n as f64 / columns.max(1) as f64;
            let height = if x < 0.3 { 0.35 } else { 0.55 + 0.45 * x };
            let used = Bytes((self.now.0 as f64 * height * share) as u64);
            let allocated = self.solid.map(|solid| {
                Bytes((used.0 as f64 * solid.0 as f64 / self.now.0.max(1) as f64) as u64)
            });
            let gap = (0.62..0.66).contains(&x);
            (!gap).then_some(ChartPoint { used, allocated })
        };
        (0..columns).map(point).collect()
    }
}

impl Charts for Past {
    fn latest(&self) -> Option<Stamp> {
        Some(NOW)
    }

    fn oldest(&self) -> Option<Stamp> {
        Some(Stamp { boot_ms: self.oldest_ms, wall_ms: NOW.wall_ms - 900_000 })
    }

    fn gpu(&self, _: &GpuUuid, _: (u64, u64), columns: usize) -> Vec<Option<ChartPoint>> {
        self.points(columns, 1.0)
    }

    fn holder(&self, _: (&GpuUuid, Pid), _: (u64, u64), columns: usize) -> Vec<Option<ChartPoint>> {
        self.points(columns, 0.75)
    }

    fn busy(&self, _: &GpuUuid, _: (u64, u64), columns: usize) -> Option<Vec<BusyPoint>> {
        let known = |n: usize| u8::try_from(40 + n * 60 / columns.max(1)).ok();
        let point = |n: usize| match (n * 10) / columns.max(1) {
            0 => BusyPoint::default(),
            6 => BusyPoint { sm: Some(0), memory: Some(0) },
            _ => BusyPoint { sm: known(n), memory: known(n).map(|share| share / 3) },
        };
        Some((0..columns).map(point).collect())
    }
}

pub fn uuid(index: u32) -> GpuUuid {
    GpuUuid::new(&format!("GPU-{index:08}"))
}

pub fn process(pid: u32, user: &str, arguments: &[&str]) -> ProcSample {
    ProcSample {
        id: ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 },
        comm: arguments.first().map_or("", |a| a.rsplit('/').next().unwrap()).to_owned(),
        cmdline: Reading::Value(arguments.iter().map(|&a| a.to_owned()).collect()),
        uid: Reading::Value(1000),
        user: Reading::Value(user.to_owned()),
        state: ProcState::Running,
        parent: Pid(1),
        group: Pid(pid),
        session: Pid(pid),
        tty: 0,
        flags: 0,
        threads: 42,
        threads_in_d: 0,
        threads_unread: None,
        read_boot_ms: None,
        cpu_ticks: 1000,
        cpu: Reading::Value(Percent(101.2)),
        rss: Reading::Value(g(85)),
        started_boot_ms: NOW.boot_ms - 3 * 3_600_000,
        cgroup: Reading::Value("/user.slice".into()),
        unit: Some("session-4.scope".into()),
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: Vec::new(),
        tracer: Pid(0),
        signals: None,
        devices: Reading::Absent(Why::NotAsked),
        wait_channel: None,
        written: Some(Bytes::gib(12)),
        listens: Vec::new(),
        stdio_deleted: false,
        environment: None,
        model_files: Vec::new(),
        allocator: None,
        server: None,
    }
}

pub fn verdict(class: Class) -> Verdict {
    Verdict { class, zombie: false, since_ms: None, evidence: Vec::new(), manager: None }
}

pub fn evidence(weight: Weight, text: &str) -> Evidence {
    Evidence { key: "test", weight, text: text.to_owned() }
}

/// A process that computes.
pub fn holder(gpu: u32, pid: u32, user: &str, arguments: &[&str], tenths: u64) -> Holder {
    let process = process(pid, user, arguments);
    Holder {
        gpu: uuid(gpu),
        index: GpuIndex(gpu),
        pid: Pid(pid),
        id: Some(process.id),
        kinds: ProcKinds { compute: true, ..ProcKinds::default() },
        listed: true,
        bytes: Reading::Value(g(tenths)),
        peak: Reading::Value(g(tenths + 30)),
        growth: Growth::Steady,
        sm: Reading::Value(Percent(0.0)),
        process: Some(process.into()),
        age_ms: Reading::Value(3 * 3_600_000),
        verdict: verdict(Class::Active),
        survivors: Vec::new(),
        allocator: None,
        fragmentation: Fragmentation::None,
        workload: None,
        server: None,
    }
}

pub fn gpu_sample(index: u32, name: &str, total: u64, used: u64, reserved: u64) -> GpuSample {
    let memory = Memory {
        total: g(total),
        used: g(used),
        reserved: Reading::Value(g(reserved)),
        free: g(total - used - reserved),
        api: MemoryApi::V2,
    };
    GpuSample {
        uuid: uuid(index),
        index: GpuIndex(index),
        mig: None,
        name: Reading::Value(name.to_owned()),
        minor: Reading::Value(index),
        pci_bus_id: Reading::Value(format!("00000000:{index:02X}:00.0")),
        memory: Reading::Value(memory),
        utilization: Reading::Value(Utilization { sm: Percent(96.0), memory: Percent(40.0) }),
        temperature: Reading::Value(Celsius(54)),
        power: Reading::Value(Milliwatts(612_300)),
        power_limit: Reading::Value(Milliwatts(700_000)),
        sm_clock: Reading::Value(Megahertz(1980)),
        memory_clock: Reading::Value(Megahertz(3201)),
        throttle: Reading::Value(Throttle(0)),
        performance_state: Reading::Value(0),
        pcie: Reading::Value(Pcie {
            rx: BytesPerSecond(1_288_490_188),
            tx: BytesPerSecond(325_058_560),
        }),
        fan: Reading::Absent(Why::NotSupported),
        mig_enabled: Reading::Value(false),
        persistence: Reading::Value(true),
        processes: Reading::Value(Vec::new()),
        unread_lists: UnreadLists::default(),
        process_utilization: Reading::Value(()),
        earlier: Earlier::default(),
    }
}

/// The ledger follows from the sample and what the holders have.
pub fn gpu_view(sample: GpuSample, holders: &[Holder]) -> GpuView {
    let on_it = || holders.iter().filter(|holder| holder.gpu == sample.uuid);
    let sum = |ghosts: bool| -> Bytes {
        on_it()
            .filter(|holder| (holder.verdict.class == Class::Ghost) == ghosts)
            .filter_map(|holder| holder.bytes.get())
            .sum()
    };
    let ledger = sample.memory.map(|memory| {
        let (processes, survivors) = (sum(false), sum(true));
        Ledger {
            total: memory.total,
            used: memory.used,
            processes,
            survivors,
            unaccounted: memory.used.saturating_sub(processes + survivors),
            reserved: memory.reserved.get().unwrap_or_default(),
            reserved_known: true,
            free: memory.free,
            shared: Bytes::ZERO,
            unified: false,
            host: Bytes::ZERO,
            cached: Reading::Absent(Why::NotAsked),
            processes_without_bytes: 0,
        }
    });
    let zombies = || on_it().filter(|holder| holder.verdict.zombie);
    let counts = Counts {
        holders: on_it().count() as u32,
        zombies: zombies().count() as u32,
        zombie_bytes: zombies().filter_map(|holder| holder.bytes.get()).sum(),
    };
    GpuView {
        ledger,
        freshness: Freshness::Live,
        growth: Growth::Steady,
        allocated_growth: Growth::NotYet,
        counts,
        unaccounted_causes: Vec::new(),
        xids: Xids::unwatched(),
        sample,
    }
}

pub fn view(samples: Vec<GpuSample>, holders: Vec<Holder>) -> View {
    View {
        device_users: Vec::new(),
        relatives: Vec::new(),
        at: NOW,
        driver: Some(DriverInfo {
            version: Reading::Value("580.159.04".into()),
            cuda: Reading::Value("13.0".into()),
            nvml: Reading::Value("13.580".into()),
        }),
        host: Some(HostFacts {
            hostname: Reading::Value("gpubox".into()),
            host_pid_namespace: Reading::Value(true),
            container: None,
            euid: 1000,
            hidepid: Reading::Value(false),
            ptrace_scope: Reading::Value(1),
            wsl: false,
            memory: None,
        }),
        gpus: samples.into_iter().map(|sample| gpu_view(sample, &holders)).collect(),
        holders,
        scan: Some(ScanReport { processes: 400, unreadable: 12, scanned_boot_ms: None }),
        gpus_age_ms: Some(20),
        procs_age_ms: Some(300),
        freshness: Freshness::Live,
        dropped_ticks: 0,
        driver_cost: Some(DriverCost { took_ms: 4, calls: 17 }),
        models: std::collections::BTreeMap::new(),
    }
}
