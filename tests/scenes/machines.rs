//! Machines.

use std::sync::Arc;

use vramlens::analyze::*;
use vramlens::ids::*;
use vramlens::sample::*;
use vramlens::units::*;

use super::build::*;

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
    let process = Arc::make_mut(train.process.as_mut().unwrap());
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
            Arc::make_mut(one.process.as_mut().unwrap()).parent = Pid(19_000 + kind as u32);
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

/// Memory that is shared with the host, of which the kernel tells.
pub fn shared() -> View {
    let mut view = unified();
    let entry = |bytes: Reading<Bytes>| Entry {
        bytes,
        of_dead: false,
        cached: Reading::Absent(Why::NotAsked),
    };
    let entries = [entry(Reading::Value(g(142))), entry(Reading::Absent(Why::NotSupported))];
    let memory = HostMemory { total: g(1217), available: g(654) };
    view.gpus[0].ledger = Reading::Value(Ledger::unified(&memory, &entries));
    view.host.as_mut().unwrap().memory = Some(memory);
    view
}

/// One GPU sleeps, one is let sleep, one works.
pub fn resting() -> View {
    let mut samples: Vec<_> =
        (0..3).map(|n| gpu_sample(n, "NVIDIA RTX 4070 Laptop", 80, 20, 1)).collect();
    for (sample, why) in samples.iter_mut().zip([Why::Asleep, Why::LetSleep]) {
        sample.memory = Reading::Absent(why);
        sample.utilization = Reading::Absent(why);
        sample.temperature = Reading::Absent(why);
        sample.power = Reading::Absent(why);
        sample.power_limit = Reading::Absent(why);
        sample.throttle = Reading::Absent(why);
        sample.processes = Reading::Absent(why);
    }
    let mut view = view(samples, vec![holder(2, 7001, "ana", &["python", "generate.py"], 20)]);
    for gpu in &mut view.gpus[..2] {
        gpu.growth = Growth::NotYet;
    }
    view
}

/// Windows' driver below: it lists nobody.
pub fn windows() -> View {
    let mut sample = gpu_sample(0, "NVIDIA GeForce RTX 4090", 240, 91, 0);
    sample.processes = Reading::Absent(Why::NotSupported);
    let mut view = view(vec![sample], Vec::new());
    view.host.as_mut().unwrap().wsl = true;
    view.gpus[0].unaccounted_causes = vec![Cause {
        key: "windows",
        pids: Vec::new(),
        text: "used by Windows and others: cannot be told apart".to_owned(),
    }];
    view
}

/// Nothing yet.
pub fn nothing() -> View {
    View {
        device_users: Vec::new(),
        relatives: Vec::new(),
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
        models: std::collections::BTreeMap::new(),
    }
}
