//! Small builders of ticks, shared by the tests of history, ledger, verdicts and kill plans.
#![allow(dead_code)]

use std::sync::Arc;

use vramlens::analyze::{Moment, View};
use vramlens::history::History;
use vramlens::ids::{GpuIndex, GpuUuid, Pid, ProcId, Stamp};
use vramlens::sample::{
    Container, DriverInfo, Earlier, EnvVar, GpuProc, GpuSample, GpuTick, HostFacts, Memory,
    MemoryApi, Nonsense, NvidiaFds, ProcKinds, ProcSample, ProcState, ProcTick, Reading,
    ScanReport, Signals, Tick, UnreadLists, Utilization, Why,
};
use vramlens::units::{Bytes, Percent};

/// The tests begin an hour after boot.
pub const T0: u64 = 3_600_000;
pub const GIB: u64 = 1 << 30;

pub fn stamp(boot_ms: u64) -> Stamp {
    Stamp { boot_ms, wall_ms: 1_700_000_000_000 + boot_ms }
}

pub fn uuid(n: u32) -> GpuUuid {
    GpuUuid::new(&format!("GPU-{n:08x}-0000-0000-0000-000000000000"))
}

pub fn memory(total: u64, used: u64, reserved: u64) -> Memory {
    Memory {
        total: Bytes(total),
        used: Bytes(used),
        reserved: Reading::Value(Bytes(reserved)),
        free: Bytes(total.saturating_sub(used).saturating_sub(reserved)),
        api: MemoryApi::V2,
    }
}

/// An 80 GiB GPU without processes.
pub fn gpu(n: u32) -> GpuSample {
    let absent = Why::NotAsked;
    GpuSample {
        uuid: uuid(n),
        index: GpuIndex(n),
        mig: None,
        name: Reading::Value("NVIDIA H200".to_owned()),
        minor: Reading::Value(n),
        pci_bus_id: Reading::Absent(absent),
        memory: Reading::Value(memory(80 * GIB, 0, GIB)),
        utilization: Reading::Value(Utilization { sm: Percent(0.0), memory: Percent(0.0) }),
        temperature: Reading::Absent(absent),
        power: Reading::Absent(absent),
        power_limit: Reading::Absent(absent),
        sm_clock: Reading::Absent(absent),
        memory_clock: Reading::Absent(absent),
        throttle: Reading::Absent(absent),
        performance_state: Reading::Absent(absent),
        pcie: Reading::Absent(absent),
        fan: Reading::Absent(absent),
        mig_enabled: Reading::Value(false),
        persistence: Reading::Absent(absent),
        processes: Reading::Value(Vec::new()),
        unread_lists: UnreadLists::default(),
        process_utilization: Reading::Value(()),
        earlier: Earlier::default(),
    }
}

pub fn row(pid: u32, bytes: u64) -> GpuProc {
    GpuProc {
        pid: Pid(pid),
        used: Reading::Value(Bytes(bytes)),
        kinds: ProcKinds { compute: true, ..ProcKinds::default() },
        sm: Reading::Value(Percent(0.0)),
        gpu_instance: None,
        compute_instance: None,
    }
}

pub fn busy(mut row: GpuProc) -> GpuProc {
    row.sm = Reading::Value(Percent(90.0));
    row
}

/// The GPU with these rows, and as much used as they hold.
pub fn with_rows(mut gpu: GpuSample, rows: Vec<GpuProc>) -> GpuSample {
    let used = rows.iter().filter_map(|row| row.used.get()).sum::<Bytes>();
    if let Reading::Value(memory) = &mut gpu.memory {
        memory.used = memory.used.max(used);
        memory.free = memory.total - memory.used - memory.reserved.get().unwrap_or_default();
    }
    gpu.processes = Reading::Value(rows);
    gpu
}

pub fn gpu_tick(at: u64, gpus: Vec<GpuSample>) -> Tick {
    Tick::Gpus(GpuTick {
        seq: at / 1_000,
        at: stamp(at),
        took_ms: 1,
        driver_calls: 8,
        driver: DriverInfo {
            version: Reading::Value("580.159.04".to_owned()),
            cuda: Reading::Value("13.0".to_owned()),
            nvml: Reading::Absent(Why::NotAsked),
        },
        gpus,
        xid: vramlens::sample::XidReport::default(),
        nonsense: Nonsense::default(),
    })
}

pub fn host() -> HostFacts {
    HostFacts {
        hostname: Reading::Value("gpubox".to_owned()),
        host_pid_namespace: Reading::Value(true),
        container: None,
        euid: 1000,
        hidepid: Reading::Value(false),
        ptrace_scope: Reading::Value(1),
        wsl: false,
        memory: None,
    }
}

pub fn proc_tick(at: u64, host: HostFacts, procs: Vec<ProcSample>) -> Tick {
    Tick::Procs(ProcTick {
        at: stamp(at),
        took_ms: 2,
        scan: ScanReport { processes: 200, unreadable: 0, scanned_boot_ms: Some(at) },
        procs: procs.into_iter().map(Arc::new).collect(),
        host,
    })
}

/// A process of user 1000: its own group and session leader, no terminal, an hour old, with no
/// device open.
pub fn process(pid: u32, comm: &str) -> ProcSample {
    ProcSample {
        id: ProcId { pid: Pid(pid), start_ticks: u64::from(pid) * 10 },
        comm: comm.to_owned(),
        cmdline: Reading::Value(vec![comm.to_owned()]),
        uid: Reading::Value(1000),
        user: Reading::Value("ana".to_owned()),
        state: ProcState::Sleeping,
        parent: Pid(1),
        group: Pid(pid),
        session: Pid(pid),
        tty: 0,
        flags: 0,
        threads: 4,
        threads_in_d: 0,
        threads_unread: None,
        read_boot_ms: None,
        cpu_ticks: 1_000,
        cpu: Reading::Value(Percent(0.0)),
        rss: Reading::Value(Bytes::mib(300)),
        started_boot_ms: 1_000,
        cgroup: Reading::Value("/user.slice/user-1000.slice/session-3.scope".to_owned()),
        unit: None,
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: vec![Pid(pid)],
        tracer: Pid(0),
        signals: Some(Signals::default()),
        devices: Reading::Value(NvidiaFds::default()),
        wait_channel: None,
        written: None,
        listens: Vec::new(),
        stdio_deleted: false,
        environment: None,
        model_files: Vec::new(),
        allocator: None,
        server: None,
    }
}

/// PID 1.
pub fn init() -> ProcSample {
    let mut init = process(1, "systemd");
    init.parent = Pid(0);
    init.uid = Reading::Value(0);
    init
}

/// The process with a CUDA context on the given GPUs.
pub fn cuda(mut process: ProcSample, minors: &[u32]) -> ProcSample {
    process.devices = Reading::Value(NvidiaFds {
        control: true,
        uvm: true,
        minors: minors.to_vec(),
        drm: false,
        count: 2 + minors.len() as u32,
        via_thread: false,
    });
    process
}

pub fn args(mut process: ProcSample, arguments: &[&str]) -> ProcSample {
    process.cmdline = Reading::Value(arguments.iter().map(|a| (*a).to_owned()).collect());
    process
}

pub fn env(mut process: ProcSample, variables: &[(&str, &str)]) -> ProcSample {
    let var = |(name, value): &(&str, &str)| EnvVar {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    process.environment = Some(Reading::Value(variables.iter().map(var).collect()));
    process
}

pub fn docker(mut process: ProcSample) -> ProcSample {
    process.container =
        Some(Container { runtime: "docker".to_owned(), id: Some("4f5e6d7c8b9a0011".to_owned()) });
    process
}

pub fn moment(now: u64) -> Moment {
    Moment {
        now: stamp(now),
        at_boot_ms: None,
        replay: false,
        interval_ms: 1_000,
        in_flight: None,
        dropped_ticks: 0,
        idle_after_ms: 600_000,
        request: None,
    }
}

/// A history in which the same looks came every second for `seconds`, and the view at its end.
pub fn watched(
    seconds: u64,
    gpus: &[GpuSample],
    host: &HostFacts,
    procs: &[ProcSample],
) -> (History, View) {
    let mut history = History::new();
    for second in 0..=seconds {
        let at = T0 + second * 1_000;
        history.push(&gpu_tick(at, gpus.to_vec()));
        history.push(&proc_tick(at + 100, host.clone(), procs.to_vec()));
    }
    let view = View::build(&history, &moment(T0 + seconds * 1_000 + 200));
    (history, view)
}

pub mod classes;
pub mod table;
pub mod traps;
