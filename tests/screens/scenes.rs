//! The machines that the screens are drawn of.
#![allow(dead_code, reason = "each test file uses a part of it")]

use vramlens::analyze::*;
use vramlens::history::ChartPoint;
use vramlens::ids::*;
use vramlens::rules::*;
use vramlens::sample::*;
use vramlens::ui::kill::{Dialog, DialogRow, Phase};
use vramlens::ui::{Charts, NoGpu};
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
        process: Some(process),
        age_ms: Reading::Value(3 * 3_600_000),
        verdict: verdict(Class::Active),
        survivors: Vec::new(),
        allocator: None,
        fragmentation: Fragmentation::None,
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
        process_utilization: Reading::Value(()),
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
            cached: Bytes::ZERO,
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
        counts,
        unaccounted_causes: Vec::new(),
        sample,
    }
}

pub fn view(samples: Vec<GpuSample>, holders: Vec<Holder>) -> View {
    View {
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
        }),
        gpus: samples.into_iter().map(|sample| gpu_view(sample, &holders)).collect(),
        holders,
        scan: Some(ScanReport { processes: 400, unreadable: 12, scanned_boot_ms: None }),
        gpus_age_ms: Some(20),
        procs_age_ms: Some(300),
        freshness: Freshness::Live,
        dropped_ticks: 0,
        driver_cost: Some(DriverCost { took_ms: 4, calls: 17 }),
    }
}

fn trainer() -> Holder {
    let mut train = holder(0, 41233, "ana", &["python", "train.py"], 861);
    train.sm = Reading::Value(Percent(92.0));
    train.growth = Growth::Trend {
        per_minute: BytesPerMinute(1_288_490_188.0),
        error: BytesPerMinute(1e7),
        full_in_ms: None,
    };
    train.fragmentation = Fragmentation::Blocks {
        cached: g(219),
        reusable: g(4),
        fragmented: g(215),
        request: g(86),
        largest_request: g(4),
    };
    train.verdict.evidence = vec![
        evidence(Weight::Against, "used the multiprocessors within the last second (92 %)"),
        evidence(Weight::Against, "its terminal pts/3 is open"),
        evidence(Weight::Neutral, "no other process of its group"),
    ];
    train.allocator = Some(Reading::Value(allocator()));
    let process = train.process.as_mut().unwrap();
    process.environment = Some(Reading::Value(vec![
        EnvVar { name: "CUDA_VISIBLE_DEVICES".into(), value: "0".into() },
        EnvVar { name: "PYTORCH_CUDA_ALLOC_CONF".into(), value: "max_split_size_mb:512".into() },
    ]));
    process.model_files = vec!["/data/models/base-7b/model-00001-of-00003.safetensors".into()];
    train
}

fn allocator() -> AllocatorSample {
    let class = |from: Bytes, count, bytes| SizeClass { from, count, bytes };
    AllocatorSample {
        at: NOW,
        basis: AllocatorBasis::Blocks,
        backend: AllocatorBackend::Native,
        devices: vec![AllocatorDevice {
            ordinal: CudaOrdinal(0),
            allocated: g(637),
            reserved: g(856),
            active: Reading::Value(g(640)),
            inactive_split: Reading::Value(g(210)),
            requested: Reading::Value(g(630)),
            retries: Reading::Value(3),
            ooms: Reading::Value(0),
            segments: Reading::Value(812),
            free: Reading::Value(FreeBlocks {
                count: 1337,
                bytes: g(219),
                largest: Bytes::mib(410),
                largest_request: Bytes::mib(410),
                histogram: vec![
                    class(Bytes::kib(512), 801, Bytes::mib(420)),
                    class(Bytes::mib(2), 300, Bytes::mib(900)),
                    class(Bytes::mib(16), 150, Bytes::mib(3600)),
                    class(Bytes::mib(64), 60, Bytes::mib(7200)),
                    class(Bytes::mib(128), 20, Bytes::mib(5200)),
                    class(Bytes::mib(256), 6, Bytes::mib(5100)),
                ],
                sizes: Vec::new(),
                sizes_complete: false,
                private_bytes: None,
                releasable: None,
                read_at: None,
            }),
            private_pools: Reading::Value(Bytes::ZERO),
            expandable_segments: Reading::Value(false),
            peak_allocated: Reading::Value(g(790)),
            peak_reserved: Reading::Value(g(861)),
            gpu: None,
        }],
    }
}

pub fn zombie(gpu: u32, pid: u32, tenths: u64) -> Holder {
    let mut left = holder(gpu, pid, "bo", &["VLLM::EngineCore"], tenths);
    left.age_ms = Reading::Value(2 * 86_400_000);
    left.verdict = Verdict {
        class: Class::Orphan,
        zombie: true,
        since_ms: Some(2 * 86_400_000),
        evidence: vec![
            evidence(Weight::For, "its launcher 39980 is gone"),
            evidence(Weight::For, "no other process of its group lives"),
            evidence(Weight::For, "0 % of the multiprocessors in 600 samples"),
            evidence(Weight::Neutral, "it listens on no port"),
        ],
        manager: None,
    };
    left
}

/// The scene of the sketch: one GPU, a trainer, a leftover, something unaccounted.
pub fn one_gpu() -> View {
    let holders = vec![trainer(), zombie(0, 40011, 221)];
    let mut view = view(vec![gpu_sample(0, "NVIDIA H200", 1398, 1119, 6)], holders);
    view.gpus[0].growth = Growth::Trend {
        per_minute: BytesPerMinute(1_288_490_188.0),
        error: BytesPerMinute(1e7),
        full_in_ms: Some([19 * 60_000, 23 * 60_000, 31 * 60_000]),
    };
    view.gpus[0].unaccounted_causes = vec![Cause {
        key: "managed_memory",
        pids: vec![Pid(41233)],
        text: "likely managed memory of 41233".into(),
    }];
    view
}

pub fn findings() -> Vec<Finding> {
    let saving = |tenths, low, high, provenance| {
        Some(Saving { bytes: g(tenths), low: g(low), high: g(high), provenance })
    };
    let fix = |title: &str, line: Option<&str>, saves, cost: &str| Fix {
        title: title.to_owned(),
        saves,
        line: line.map(ToOwned::to_owned),
        cost: cost.to_owned(),
        ends: Vec::new(),
    };
    let finding = |rule, fix_number, severity, pid, headline: &str, fixes| Finding {
        rule,
        fix_number,
        severity,
        gpu: Some(GpuIndex(0)),
        pid: Some(Pid(pid)),
        headline: headline.to_owned(),
        evidence: vec!["read from the allocator of the process".into()],
        fixes,
    };
    vec![
        finding(
            "leftovers",
            3,
            Severity::Warning,
            40011,
            "1 zombie holds 22.1 GiB: its server is gone since 2d",
            vec![fix(
                "end it",
                Some("sudo vramlens kill 40011"),
                saving(221, 221, 221, Provenance::Measured),
                "nothing: nobody waits for it",
            )],
        ),
        finding(
            "fragmentation",
            6,
            Severity::Warning,
            41233,
            "21.9 GiB cached, largest free block 0.4 GiB",
            vec![fix(
                "use expandable segments",
                Some("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
                saving(210, 210, 210, Provenance::Read),
                "a restart",
            )],
        ),
        finding(
            "checkpointing",
            7,
            Severity::Notice,
            41233,
            "training, activations about 31 GiB",
            vec![fix(
                "recompute activations in the backward pass",
                None,
                saving(200, 150, 230, Provenance::Estimated),
                "about a third more time a step",
            )],
        ),
    ]
}

/// Eight GPUs, as many processes on each.
pub fn many(gpus: u32, each: u32) -> View {
    let users = ["ana", "bo", "chen", "dmitri"];
    let programs: [&[&str]; 4] = [
        &["python", "train.py", "--fsdp"],
        &["/opt/server/bin/llama-server", "-m", "model.gguf"],
        &["python3", "-m", "sglang.launch_server"],
        &["VLLM::Worker_TP0"],
    ];
    let (mut samples, mut holders) = (Vec::new(), Vec::new());
    for gpu in 0..gpus {
        let (mut used, total) = (20_u64, 1398_u64);
        for n in 0..each {
            let kind = ((gpu + n) % 4) as usize;
            let tenths = (u64::from(gpu * 37 + n * 91) % 380 + 20) * 3 / u64::from(each.max(3));
            used += tenths;
            let pid = 20_000 + gpu * 100 + n;
            let mut one = holder(gpu, pid, users[kind], programs[kind], tenths);
            one.sm = Reading::Value(Percent((n * 13 % 97) as f32));
            one.verdict.class = [Class::Active, Class::Idle, Class::IdleServer][kind % 3];
            one.process.as_mut().unwrap().parent = Pid(19_000 + kind as u32);
            holders.push(if kind == 3 && gpu % 3 == 0 { zombie(gpu, pid, tenths) } else { one });
        }
        samples.push(gpu_sample(gpu, "NVIDIA H200", total, used.min(total - 6), 6));
    }
    view(samples, holders)
}

/// A GPU in slices.
pub fn mig() -> View {
    let mut parent = gpu_sample(0, "NVIDIA A100-SXM4-80GB", 800, 300, 6);
    parent.mig_enabled = Reading::Value(true);
    parent.utilization = Reading::Absent(Why::NotSupported);
    let slice = |instance: u32, total, used| {
        let mut slice = gpu_sample(0, "NVIDIA A100 MIG 3g.40gb", total, used, 1);
        slice.uuid = GpuUuid::new(&format!("MIG-{instance}"));
        slice.mig = Some(MigInfo {
            parent: uuid(0),
            gpu_instance: Reading::Value(instance),
            compute_instance: Reading::Value(0),
        });
        slice.utilization = Reading::Absent(Why::NotSupported);
        slice.power = Reading::Absent(Why::NotSupported);
        slice.power_limit = Reading::Absent(Why::NotSupported);
        slice
    };
    let mut first = holder(0, 5101, "ana", &["python", "finetune.py"], 182);
    first.gpu = GpuUuid::new("MIG-1");
    first.sm = Reading::Absent(Why::NotSupported);
    let mut second = holder(0, 5202, "bo", &["jupyter-kernel"], 91);
    second.gpu = GpuUuid::new("MIG-2");
    second.sm = Reading::Absent(Why::NotSupported);
    second.verdict = verdict(Class::Unknown);
    view(vec![parent, slice(1, 396, 190), slice(2, 396, 98)], vec![first, second])
}

/// The driver hangs.
pub fn stalled() -> View {
    let mut view = one_gpu();
    let stall = Freshness::Stalled {
        call: Some("nvmlDeviceGetMemoryInfo_v2".into()),
        gpu: Some(GpuIndex(0)),
        for_ms: 12_000,
    };
    view.freshness = stall.clone();
    view.gpus[0].freshness = stall;
    view.gpus_age_ms = Some(12_000);
    view
}

/// One of two GPUs is gone.
pub fn lost() -> View {
    let mut view = view(
        vec![gpu_sample(0, "NVIDIA H200", 1398, 1119, 6), gpu_sample(1, "NVIDIA H200", 1398, 0, 6)],
        vec![trainer(), zombie(0, 40011, 221)],
    );
    let gone = &mut view.gpus[1];
    gone.freshness = Freshness::Lost;
    gone.ledger = Reading::Absent(Why::GpuLost);
    gone.sample.utilization = Reading::Absent(Why::GpuLost);
    gone.growth = Growth::NotYet;
    view
}

/// Memory that is shared with the host.
pub fn unified() -> View {
    let mut sample = gpu_sample(0, "NVIDIA GB10", 1200, 0, 0);
    sample.memory = Reading::Absent(Why::NotSupported);
    sample.power_limit = Reading::Absent(Why::NotSupported);
    sample.throttle = Reading::Absent(Why::NotSupported);
    let mut silent = holder(0, 7002, "ana", &["ollama", "runner"], 0);
    silent.bytes = Reading::Absent(Why::NotSupported);
    silent.peak = Reading::Absent(Why::NotSupported);
    let talker = holder(0, 7001, "ana", &["python", "generate.py"], 142);
    let mut view = view(vec![sample], vec![talker, silent]);
    view.gpus[0].ledger = Reading::Absent(Why::NotSupported);
    view.gpus[0].growth = Growth::NotYet;
    view
}

/// Nothing yet.
pub fn nothing() -> View {
    View {
        at: NOW,
        driver: None,
        host: None,
        gpus: Vec::new(),
        holders: Vec::new(),
        scan: None,
        gpus_age_ms: None,
        procs_age_ms: None,
        freshness: Freshness::Starting,
        dropped_ticks: 0,
        driver_cost: None,
    }
}

pub fn target(pid: u32) -> KillTarget {
    KillTarget {
        id: ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 },
        uid: Reading::Value(1001),
        comm: "VLLM".into(),
        must_hold_device: true,
    }
}

/// Two leftovers of one job are to be ended.
pub fn dialog() -> Dialog {
    let row = |pid: u32, command: &str, note: &str| DialogRow {
        id: Some(target(pid).id),
        pid,
        user: "bo".into(),
        command: command.into(),
        bytes: "22.1 GiB".into(),
        note: note.into(),
    };
    Dialog {
        title: "End 2 processes, 44.2 GiB on GPU 0,1".into(),
        rows: vec![
            row(40011, "VLLM::EngineCore", "zombie: launcher 39980 gone"),
            row(40012, "VLLM::Worker_TP1", "same process group"),
        ],
        refused: vec!["40099 nvidia-persistenced: never ended".into()],
        note: "TERM, then KILL after 5 s.".into(),
        order: KillOrder {
            targets: vec![target(40011), target(40012)],
            preset: KillPreset::Zombie,
        },
        typed: None,
        phase: Phase::Asking,
    }
}

pub fn no_gpu() -> NoGpu {
    let fact = |what: &str, found: &str| (what.to_owned(), found.to_owned());
    NoGpu {
        facts: vec![
            fact("driver library", "libnvidia-ml.so.1 not found"),
            fact("device files", "/dev/nvidiactl missing"),
            fact("kernel module", "nvidia not loaded (nouveau is: blacklist it, then reboot)"),
        ],
        advice: "install the driver package of your distribution, then reboot.".into(),
    }
}
