//! Ticks to record.

use std::sync::Arc;

use vramlens::ids::{GpuIndex, GpuUuid, Pid, ProcId, Stamp};
use vramlens::record::Header;
use vramlens::sample::*;
use vramlens::units::*;

pub fn stamp(boot_ms: u64) -> Stamp {
    Stamp { boot_ms, wall_ms: 1_900_000_000_000 + boot_ms }
}

pub fn header() -> Header {
    Header { hostname: Reading::Value("gpubox".to_owned()), ..Header::new(stamp(5_000), 1000) }
}

pub fn gpu_tick(n: u64, used: u64) -> Tick {
    let gpu = GpuSample {
        uuid: GpuUuid::new("GPU-11111111-2222-3333-4444-555555555555"),
        index: GpuIndex(0),
        mig: None,
        name: Reading::Value("NVIDIA H200".to_owned()),
        minor: Reading::Value(0),
        pci_bus_id: Reading::Absent(Why::NotSupported),
        memory: Reading::Value(Memory {
            total: Bytes::gib(140),
            used: Bytes(used),
            reserved: Reading::Value(Bytes::mib(615)),
            free: Bytes::gib(140).saturating_sub(Bytes(used)),
            api: MemoryApi::V2,
        }),
        utilization: Reading::Value(Utilization { sm: Percent(97.5), memory: Percent(40.0) }),
        temperature: Reading::Value(Celsius(54)),
        power: Reading::Value(Milliwatts(612_345)),
        power_limit: Reading::Absent(Why::NotAsked),
        sm_clock: Reading::Value(Megahertz(1980)),
        memory_clock: Reading::Absent(Why::Failed(17)),
        throttle: Reading::Value(Throttle(4)),
        performance_state: Reading::Value(0),
        pcie: Reading::Absent(Why::NotAsked),
        fan: Reading::Absent(Why::NotSupported),
        mig_enabled: Reading::Value(false),
        persistence: Reading::Value(true),
        processes: Reading::Value(vec![GpuProc {
            pid: Pid(41_233),
            used: Reading::Value(Bytes(used)),
            kinds: ProcKinds { compute: true, ..ProcKinds::default() },
            sm: Reading::Value(Percent(92.0)),
            gpu_instance: None,
            compute_instance: None,
        }]),
        unread_lists: UnreadLists::default(),
        process_utilization: Reading::Value(()),
        earlier: Earlier::default(),
    };
    Tick::Gpus(GpuTick {
        seq: n,
        at: stamp(5_000 + n * 1000),
        took_ms: 3,
        driver_calls: 21,
        driver: DriverInfo {
            version: Reading::Value("580.159.04".to_owned()),
            cuda: Reading::Value("13.0".to_owned()),
            nvml: Reading::Absent(Why::OldDriver),
        },
        gpus: vec![gpu],
        xid: XidReport::default(),
        nonsense: Nonsense::default(),
    })
}

pub fn process(uid: u32, arguments: &[&str]) -> ProcSample {
    ProcSample {
        id: ProcId { pid: Pid(41_233), start_ticks: 77 },
        comm: "python".to_owned(),
        cmdline: Reading::Value(arguments.iter().map(|&a| a.to_owned()).collect()),
        uid: Reading::Value(uid),
        user: Reading::Value("ana".to_owned()),
        state: ProcState::Sleeping,
        parent: Pid(1),
        group: Pid(41_233),
        session: Pid(41_233),
        tty: 0,
        flags: 0,
        threads: 12,
        threads_in_d: 0,
        threads_unread: None,
        read_boot_ms: None,
        cpu_ticks: 900,
        cpu: Reading::Absent(Why::NotYet),
        rss: Reading::Value(Bytes::gib(3)),
        started_boot_ms: 770,
        cgroup: Reading::Value("/user.slice/user-1001.slice/session-2.scope".to_owned()),
        unit: Some("ana-training.service".to_owned()),
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: Vec::new(),
        tracer: Pid(0),
        signals: None,
        devices: Reading::Absent(Why::NoPermission),
        wait_channel: None,
        written: None,
        listens: vec![8000],
        stdio_deleted: false,
        environment: Some(Reading::Value(vec![EnvVar {
            name: "JPY_PARENT_PID".to_owned(),
            value: "12".to_owned(),
        }])),
        model_files: vec!["/home/ana/model.gguf".to_owned()],
        allocator: None,
        server: None,
    }
}

pub fn proc_tick(n: u64, processes: Vec<ProcSample>) -> Tick {
    Tick::Procs(ProcTick {
        at: stamp(5_500 + n * 1000),
        took_ms: 8,
        procs: processes.into_iter().map(Arc::new).collect(),
        scan: ScanReport { processes: 210, unreadable: 12, scanned_boot_ms: Some(5_000) },
        host: HostFacts {
            hostname: Reading::Value("gpubox".to_owned()),
            host_pid_namespace: Reading::Value(true),
            container: None,
            euid: 1001,
            hidepid: Reading::Value(false),
            ptrace_scope: Reading::Value(1),
            wsl: false,
            memory: None,
        },
    })
}

pub fn series(count: u64) -> Vec<Tick> {
    let both = |n| {
        [gpu_tick(n, n * 1_048_576), proc_tick(n, vec![process(1001, &["python", "train.py"])])]
    };
    (0..count).flat_map(both).collect()
}
