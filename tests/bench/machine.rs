//! A machine that is made up: so many GPUs and processes, a second of it after another.

use std::sync::Arc;

use vramlens::analyze::Moment;
use vramlens::history::History;
use vramlens::ids::{GpuIndex, GpuUuid, Pid, ProcId, Stamp};
use vramlens::sample::{
    DriverInfo, Earlier, EnvVar, GpuProc, GpuSample, GpuTick, HostFacts, Memory, MemoryApi,
    Nonsense, NvidiaFds, ProcKinds, ProcSample, ProcState, ProcTick, Reading, ScanReport, Signals,
    Throttle, Tick, UnreadLists, Utilization, Why, XidReport,
};
use vramlens::units::{Bytes, Celsius, Milliwatts, Percent};

/// GPUs and processes of the three sizes.
pub const SIZES: [&str; 3] = ["1x3", "8x64", "16x400"];
/// Seconds of the past that a benchmark's history holds.
const PAST: u64 = 120;
const START_MS: u64 = 90_000_000;

/// The machine.
pub struct Machine {
    gpus: u32,
    processes: u32,
}

impl Machine {
    /// Of a size such as `8x64`.
    pub fn of(size: &str) -> Self {
        let (gpus, processes) = size.split_once('x').unwrap();
        Self { gpus: gpus.parse().unwrap(), processes: processes.parse().unwrap() }
    }

    /// What the driver and the kernel say in a second.
    pub fn ticks(&self, second: u64) -> [Tick; 2] {
        [Tick::Gpus(self.gpu_tick(second)), Tick::Procs(self.proc_tick(second))]
    }

    /// Two minutes of it.
    pub fn history(&self) -> History {
        let mut history = History::new();
        for second in 0..PAST {
            self.ticks(second).iter().for_each(|tick| history.push(tick));
        }
        history
    }

    fn gpu_tick(&self, second: u64) -> GpuTick {
        GpuTick {
            seq: second,
            at: stamp(second),
            took_ms: 4,
            driver_calls: self.gpus * 8,
            driver: DriverInfo {
                version: Reading::Value("580.159.04".to_owned()),
                cuda: Reading::Value("13.0".to_owned()),
                nvml: Reading::Value("13.580.159.04".to_owned()),
            },
            gpus: (0..self.gpus).map(|gpu| self.gpu(gpu, second)).collect(),
            nonsense: Nonsense::default(),
            xid: XidReport::default(),
        }
    }

    fn gpu(&self, index: u32, second: u64) -> GpuSample {
        let rows: Vec<GpuProc> = (0..self.processes)
            .filter(|n| n % self.gpus == index)
            .map(|n| row(n, second))
            .collect();
        let used: Bytes = rows.iter().filter_map(|row| row.used.get()).sum();
        let (total, reserved) = (Bytes::gib(140), Bytes::mib(615));
        let memory = Memory {
            total,
            used,
            reserved: Reading::Value(reserved),
            free: total - used - reserved,
            api: MemoryApi::V2,
        };
        let sm = (40 + second % 50) as f32;
        GpuSample {
            uuid: GpuUuid::new(&format!("GPU-5a8f0000-0000-0000-0000-{index:012}")),
            index: GpuIndex(index),
            mig: None,
            name: Reading::Value("NVIDIA H200".to_owned()),
            minor: Reading::Value(index),
            pci_bus_id: Reading::Value(format!("00000000:{index:02X}:00.0")),
            memory: Reading::Value(memory),
            utilization: Reading::Value(Utilization { sm: Percent(sm), memory: Percent(20.0) }),
            temperature: Reading::Value(Celsius(31)),
            power: Reading::Value(Milliwatts(76_000 + second * 100)),
            power_limit: Reading::Value(Milliwatts(700_000)),
            sm_clock: Reading::Absent(Why::NotAsked),
            memory_clock: Reading::Absent(Why::NotAsked),
            throttle: Reading::Value(Throttle(0)),
            performance_state: Reading::Absent(Why::NotAsked),
            pcie: Reading::Absent(Why::NotAsked),
            fan: Reading::Absent(Why::NotSupported),
            mig_enabled: Reading::Value(false),
            persistence: Reading::Value(true),
            processes: Reading::Value(rows),
            unread_lists: UnreadLists::default(),
            process_utilization: Reading::Value(()),
            earlier: Earlier::default(),
        }
    }

    fn proc_tick(&self, second: u64) -> ProcTick {
        let relatives = [blank(1, "systemd", &["/sbin/init"]), blank(50, "bash", &["-bash"])];
        let mut procs: Vec<_> = relatives.into_iter().collect();
        procs.extend((0..self.processes).map(|n| process(n, second)));
        ProcTick {
            at: stamp(second),
            took_ms: 2,
            procs: procs.into_iter().map(Arc::new).collect(),
            scan: ScanReport { processes: 900, unreadable: 0, scanned_boot_ms: Some(START_MS) },
            host: HostFacts {
                hostname: Reading::Value("gpubox".to_owned()),
                host_pid_namespace: Reading::Value(true),
                container: None,
                euid: 0,
                hidepid: Reading::Value(false),
                ptrace_scope: Reading::Value(1),
                wsl: false,
                memory: None,
            },
        }
    }
}

/// The moment after a second.
pub fn moment(second: u64) -> Moment {
    Moment {
        now: stamp(second),
        at_boot_ms: None,
        replay: false,
        interval_ms: 1000,
        in_flight: None,
        dropped_ticks: 0,
        idle_after_ms: 300_000,
        request: None,
    }
}

/// The newest second of [`Machine::history`].
pub const NOW: u64 = PAST - 1;

fn stamp(second: u64) -> Stamp {
    Stamp { boot_ms: START_MS + second * 1_000, wall_ms: 1_796_012_327_000 + second * 1_000 }
}

/// One process in eight allocates and frees; one in three computes.
fn row(n: u32, second: u64) -> GpuProc {
    let moves = if n.is_multiple_of(8) { (second + u64::from(n)) % 7 } else { 0 };
    let sm = if n.is_multiple_of(3) { (n * 7 % 100) as f32 } else { 0.0 };
    GpuProc {
        pid: Pid(1_000 + n),
        used: Reading::Value(Bytes::mib(900 + u64::from(n) + moves * 64)),
        kinds: ProcKinds { compute: true, ..ProcKinds::default() },
        sm: Reading::Value(Percent(sm)),
        gpu_instance: None,
        compute_instance: None,
    }
}

/// One in four is at work on the CPU too.
fn process(n: u32, second: u64) -> ProcSample {
    let lines: [&[&str]; 4] = [
        &["python3", "train.py", "--per_device_train_batch_size", "8", "--learning_rate", "2e-5"],
        &["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/llama-3-8b"],
        &["/usr/bin/llama-server", "-m", "/models/mistral-7b.Q4_K_M.gguf", "-c", "32768"],
        &["python3", "-m", "ipykernel_launcher", "-f", "/run/user/1000/jupyter/kernel-1.json"],
    ];
    let mut process = blank(1_000 + n, "python3", lines[n as usize % lines.len()]);
    process.parent = Pid(50);
    if n.is_multiple_of(4) {
        process.cpu_ticks = 90_000 + second * 97;
        process.cpu = Reading::Value(Percent(97.0 + (second % 3) as f32));
    }
    process
}

fn blank(pid: u32, comm: &str, arguments: &[&str]) -> ProcSample {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let environment =
        vec![EnvVar { name: "CUDA_VISIBLE_DEVICES".to_owned(), value: "0".to_owned() }];
    ProcSample {
        id: ProcId { pid: Pid(pid), start_ticks: 8_000_000 + u64::from(pid) },
        comm: comm.to_owned(),
        cmdline: Reading::Value(owned(arguments)),
        uid: Reading::Value(1000),
        user: Reading::Value("ana".to_owned()),
        state: ProcState::Sleeping,
        parent: Pid(1),
        group: Pid(pid),
        session: Pid(50),
        tty: 34_816,
        flags: 0x40_0000,
        threads: 42,
        threads_in_d: 0,
        threads_unread: None,
        read_boot_ms: None,
        cpu_ticks: 90_000,
        cpu: Reading::Value(Percent(0.0)),
        rss: Reading::Value(Bytes::mib(3_400)),
        started_boot_ms: 80_000_000 + u64::from(pid) * 10,
        cgroup: Reading::Value("/user.slice/user-1000.slice/session-4.scope".to_owned()),
        unit: Some("session-4.scope".to_owned()),
        container: None,
        slurm_job: None,
        frozen: false,
        namespace_pids: vec![Pid(pid)],
        tracer: Pid(0),
        signals: Some(Signals { pending: 0, ignored: 0x1001, caught: 0x4002 }),
        devices: Reading::Value(NvidiaFds {
            control: true,
            uvm: pid >= 1_000,
            minors: vec![0],
            drm: false,
            count: if pid >= 1_000 { 60 } else { 0 },
            via_thread: false,
        }),
        wait_channel: None,
        written: Some(Bytes::mib(12)),
        listens: Vec::new(),
        stdio_deleted: false,
        environment: Some(Reading::Value(environment)),
        model_files: Vec::new(),
        allocator: None,
        server: None,
    }
}
