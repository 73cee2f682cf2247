//! Views made by hand.

use std::sync::Arc;

use vramlens::analyze::*;
use vramlens::ids::{GpuIndex, GpuUuid, Pid, ProcId};
use vramlens::rules::{Finding, Fix, Provenance, Saving, Severity};
use vramlens::sample::*;
use vramlens::units::*;

use crate::ticks::{gpu_tick, proc_tick, process, stamp};

fn gib(n: f64) -> Bytes {
    Bytes((n * f64::from(1 << 30)) as u64)
}

fn verdict(class: Class, zombie: bool) -> Verdict {
    let gone = Evidence {
        key: "launcher_gone",
        weight: Weight::For,
        text: "its launcher 39980 is gone".to_owned(),
    };
    let evidence = if zombie { vec![gone] } else { Vec::new() };
    Verdict { class, zombie, since_ms: None, evidence, manager: None }
}

pub fn holder(gpu: &GpuSample, pid: u32, bytes: Reading<Bytes>, arguments: &[&str]) -> Holder {
    let mut process = process(1001, arguments);
    process.id = ProcId { pid: Pid(pid), start_ticks: u64::from(pid) };
    Holder {
        gpu: gpu.uuid.clone(),
        index: gpu.index,
        pid: Pid(pid),
        id: Some(process.id),
        kinds: ProcKinds { compute: true, ..ProcKinds::default() },
        listed: true,
        bytes,
        peak: bytes,
        growth: Growth::Steady,
        sm: Reading::Value(Percent(92.3)),
        process: Some(process.into()),
        age_ms: Reading::Value(3 * 3_600_000),
        verdict: verdict(Class::Active, false),
        survivors: Vec::new(),
        allocator: None,
        fragmentation: Fragmentation::None,
        workload: None,
        server: None,
    }
}

/// A slice of a GPU, with one holder.
pub fn mig() -> View {
    let mut view = busy();
    let parent = view.gpus[0].sample.uuid.clone();
    let sample = &mut view.gpus[0].sample;
    sample.uuid = GpuUuid::new("MIG-11111111-2222-3333-4444-555555555555");
    sample.name = Reading::Value("NVIDIA H200 MIG 1g.18gb".to_owned());
    sample.mig = Some(MigInfo {
        parent,
        gpu_instance: Reading::Value(7),
        compute_instance: Reading::Value(0),
    });
    sample.utilization = Reading::Absent(Why::NotSupported);
    let uuid = sample.uuid.clone();
    view.holders.truncate(1);
    view.holders[0].gpu = uuid;
    view
}

fn allocator() -> AllocatorSample {
    let absent = Reading::Absent(Why::UnknownLayout);
    AllocatorSample {
        at: stamp(9_000),
        basis: AllocatorBasis::Statistics,
        backend: AllocatorBackend::Native,
        devices: vec![AllocatorDevice {
            ordinal: vramlens::ids::CudaOrdinal(0),
            allocated: gib(64.2),
            reserved: gib(86.1),
            active: absent,
            inactive_split: absent,
            requested: absent,
            retries: Reading::Value(2),
            ooms: Reading::Value(0),
            segments: Reading::Value(812),
            free: Reading::Absent(Why::UnknownLayout),
            private_pools: absent,
            expandable_segments: Reading::Value(false),
            peak_allocated: absent,
            peak_reserved: absent,
            gpu: None,
        }],
    }
}

fn ledger() -> Ledger {
    let reserved = Bytes(644_939_776);
    let total = gib(139.8);
    let (processes, unaccounted) = (gib(86.1) + gib(22.1), gib(3.7));
    let used = processes + unaccounted;
    Ledger {
        total,
        used,
        processes,
        survivors: Bytes::ZERO,
        unaccounted,
        reserved,
        reserved_known: true,
        unified: false,
        host: Bytes::ZERO,
        free: total - used - reserved,
        shared: Bytes::ZERO,
        cached: Reading::Value(gib(21.9)),
        processes_without_bytes: 0,
    }
}

/// A training run, a leftover, and memory that nobody is listed for.
pub fn busy() -> View {
    let (Tick::Gpus(gpus), Tick::Procs(procs)) =
        (gpu_tick(0, gib(111.9).0), proc_tick(0, Vec::new()))
    else {
        unreachable!()
    };
    let sample = gpus.gpus[0].clone();
    let mut train = holder(&sample, 41_233, Reading::Value(gib(86.1)), &["python", "train.py"]);
    train.allocator = Some(Reading::Value(allocator()));
    train.fragmentation = Fragmentation::CachedOnly { cached: gib(21.9) };
    train.growth = Growth::Trend {
        per_minute: BytesPerMinute(1.2e9),
        error: BytesPerMinute(1e8),
        full_in_ms: Some([1_200_000, 1_380_000, 1_600_000]),
    };
    let mut left = holder(&sample, 40_011, Reading::Value(gib(22.1)), &["VLLM::EngineCore"]);
    Arc::make_mut(left.process.as_mut().unwrap()).user = Reading::Value("bo".to_owned());
    left.age_ms = Reading::Value(2 * 86_400_000);
    left.verdict = verdict(Class::Orphan, true);
    left.sm = Reading::Value(Percent(0.0));
    let gpu = GpuView {
        sample,
        ledger: Reading::Value(ledger()),
        freshness: Freshness::Live,
        growth: Growth::Steady,
        allocated_growth: Growth::NotYet,
        counts: Counts { holders: 2, zombies: 1, zombie_bytes: gib(22.1) },
        unaccounted_causes: vec![Cause {
            key: "managed_memory",
            pids: vec![Pid(41_233)],
            text: "managed memory of 41233".to_owned(),
        }],
        xids: xid::Xids::unwatched(),
    };
    View {
        device_users: Vec::new(),
        relatives: Vec::new(),
        at: stamp(10_000),
        driver: Some(gpus.driver),
        host: Some(procs.host),
        gpus: vec![gpu],
        holders: vec![left, train],
        scan: Some(procs.scan),
        gpus_age_ms: Some(120),
        procs_age_ms: None,
        freshness: Freshness::Live,
        dropped_ticks: 0,
        driver_cost: Some(DriverCost { took_ms: 3, calls: 21 }),
        models: std::collections::BTreeMap::new(),
    }
}

/// A dead pid in the list, and who keeps its memory.
pub fn ghost() -> View {
    let mut view = busy();
    let sample = view.gpus[0].sample.clone();
    let mut ghost = holder(&sample, 604, Reading::Value(gib(1.5)), &[]);
    (ghost.id, ghost.process, ghost.age_ms) = (None, None, Reading::Absent(Why::Gone));
    ghost.verdict = verdict(Class::Ghost, false);
    ghost.survivors = vec![ProcId { pid: Pid(610), start_ticks: 610 }];
    let mut survivor =
        holder(&sample, 610, Reading::Absent(Why::NotSupported), &["python", "loader.py"]);
    (survivor.listed, survivor.kinds) = (false, ProcKinds::default());
    survivor.verdict = verdict(Class::Survivor, true);
    survivor.verdict.manager = Some(Manager {
        kind: "slurm",
        name: "job 77".to_owned(),
        command: "scancel 77".to_owned(),
    });
    view.holders = vec![survivor, ghost];
    let part = Bytes::mib(3);
    if let Reading::Value(ledger) = &mut view.gpus[0].ledger {
        let free = ledger.total - gib(1.5) - part;
        let (processes, reserved) = (Bytes::ZERO, Bytes::ZERO);
        let used = gib(1.5) + part;
        *ledger = Ledger {
            processes,
            survivors: gib(1.5),
            unaccounted: part,
            reserved,
            used,
            free,
            reserved_known: false,
            cached: Reading::Value(Bytes::ZERO),
            processes_without_bytes: 1,
            ..*ledger
        };
    }
    view.gpus[0].unaccounted_causes.clear();
    view.freshness = Freshness::Stalled {
        call: Some("nvmlDeviceGetMemoryInfo_v2".to_owned()),
        gpu: Some(GpuIndex(0)),
        for_ms: 12_000,
    };
    view
}

/// Before anything has answered.
pub fn empty() -> View {
    View {
        device_users: Vec::new(),
        relatives: Vec::new(),
        at: stamp(0),
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
        models: std::collections::BTreeMap::new(),
    }
}

/// A card that nobody can read, and the text of an attacker.
pub fn hostile() -> View {
    let mut view = busy();
    let gpu = &mut view.gpus[0];
    gpu.ledger = Reading::Absent(Why::GpuLost);
    gpu.sample.processes = Reading::Absent(Why::NoPermission);
    gpu.sample.name = Reading::Value("NVIDIA\u{1b}]0;owned\u{7}".to_owned());
    gpu.sample.memory = Reading::Absent(Why::GpuLost);
    let process = Arc::make_mut(view.holders[0].process.as_mut().unwrap());
    process.user = Reading::Value("\u{202e}toor".to_owned());
    process.cmdline = Reading::Value(
        ["sh", "-c", "\u{1b}[2J\nFINDINGS\n  none", "--token=hunter2", &"x".repeat(500)]
            .map(str::to_owned)
            .to_vec(),
    );
    view
}

pub fn findings() -> Vec<Finding> {
    let fix = |title: &str, line: Option<&str>, saves| Fix {
        title: title.to_owned(),
        saves,
        line: line.map(str::to_owned),
        cost: "its state is lost".to_owned(),
        ends: vec![ProcId { pid: Pid(40_011), start_ticks: 40_011 }],
    };
    let about = |bytes| {
        Some(Saving { bytes, low: Bytes::ZERO, high: bytes, provenance: Provenance::Measured })
    };
    let found = |rule, severity, headline: &str, evidence: &[&str], fixes| Finding {
        rule,
        fix_number: 3,
        severity,
        gpu: Some(GpuIndex(0)),
        pid: Some(Pid(40_011)),
        headline: headline.to_owned(),
        evidence: evidence.iter().map(|&text| text.to_owned()).collect(),
        fixes,
    };
    vec![
        found(
            "fragmentation",
            Severity::Notice,
            "21.9 GiB of 41233 is cached and unusable (largest free block 0.4 GiB)",
            &[],
            vec![
                fix(
                    "expandable segments",
                    Some("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
                    about(gib(21.0)),
                ),
                fix("restart it", None, about(gib(21.0))),
            ],
        ),
        found(
            "leftovers",
            Severity::Warning,
            "zombie holds 22.1 GiB on GPU 0: VLLM::EngineCore, pid 40011, user bo",
            &[
                "its launcher 39980 is gone",
                "no other process of the group lives",
                "0 % SM in 600 samples",
            ],
            vec![fix("end it", Some("sudo vramlens kill 40011"), about(gib(22.1)))],
        ),
    ]
}
