//! A recording without names: of every text that a line can hold it is decided what becomes of it.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "tests")]

#[path = "record/ticks.rs"]
mod ticks;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use ticks::{gpu_tick, header, proc_tick, process, stamp};
use vramlens::ids::{CudaOrdinal, GpuIndex, GpuUuid, Pid, ProcId};
use vramlens::record::{Form, Header, Reader, Redaction, Writer};
use vramlens::sample::*;
use vramlens::units::Bytes;

const MARK: &str = "SECRET7";
/// Forms in which a name may come.
const FORMS: [&str; 14] = [
    "SECRET7",
    "/home/SECRET7/SECRET7",
    "SECRET7.service",
    "user-SECRET7.slice",
    "user@SECRET7.service",
    "job_SECRET7",
    "SECRET7/model:8b-q4_K_M",
    "/SECRET7.Q8_0.gguf",
    "SECRET7.py",
    "ray::SECRET7",
    "GPU-SECRET7",
    "MIG-SECRET7",
    "GPU-unknown-SECRET7",
    "python SECRET7",
];
/// What is kept although it is text: it names no person, machine, place or work of theirs.
const KEPT: [&str; 11] = [
    // A product, a version, a place on the bus.
    "/gpus/driver/cuda",
    "/gpus/driver/nvml",
    "/gpus/driver/version",
    "/gpus/gpus/N/name",
    "/gpus/gpus/N/pci_bus_id",
    "/header/driver",
    // What a program calls itself.
    "/procs/procs/N/cmdline/0",
    "/procs/procs/N/comm",
    // A function of the kernel, a call of the driver.
    "/gap/cause/stall/call",
    "/procs/procs/N/wait_channel",
    // This program's own sentence.
    "/kill/what/outcome",
];
/// The same of the header: this program's name and version.
const TOOL: &str = "/header/tool";

fn var(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: value.to_owned() }
}

fn server() -> ServerSample {
    let model = ServedModel {
        name: "ana/model:8b-q4_K_M".to_owned(),
        size: Some(Bytes(7)),
        in_vram: Some(Bytes(6)),
        context_tokens: Some(4096),
        expires: Some("2030-01-01T10:00:00+01:00".to_owned()),
    };
    ServerSample {
        at: stamp(1),
        software: ServerSoftware::Ollama,
        port: 11_434,
        kv_used: None,
        kv_tokens: Some(9),
        running: None,
        waiting: None,
        slots: None,
        models: vec![model],
        devices: vec![ServedDevice {
            ordinal: CudaOrdinal(0),
            reserved: Bytes(2),
            cached: Bytes(1),
        }],
    }
}

/// A process of which everything is there.
fn full_process() -> ProcSample {
    let uuid = GpuUuid::new("GPU-11111111-2222-3333-4444-555555555555");
    let device = json!({
        "ordinal": 0, "allocated": 1, "reserved": 1, "active": 1, "inactive_split": 1,
        "requested": 1, "retries": 0, "ooms": 0, "segments": 1, "free": {"absent": "not_asked"},
        "private_pools": 0, "expandable_segments": true, "peak_allocated": 1, "peak_reserved": 1,
        "gpu": uuid,
    });
    let names = [
        "TORCHELASTIC_RUN_ID",
        "MASTER_PORT",
        "RANK",
        "CUDA_VISIBLE_DEVICES",
        "JPY_PARENT_PID",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TF_GPU_ALLOCATOR",
        "HOSTNAME",
        "MODEL_ID",
        "SLURM_JOB_ID",
        "RAY_JOB_ID",
        "OLLAMA_MODELS",
        "CUDA_MPS_PIPE_DIRECTORY",
    ];
    let allocator = AllocatorSample {
        at: stamp(1),
        basis: AllocatorBasis::Blocks,
        devices: vec![serde_json::from_value(device).unwrap()],
        backend: AllocatorBackend::Native,
    };
    ProcSample {
        container: Some(Container { runtime: "docker".to_owned(), id: Some("0a1b".to_owned()) }),
        slurm_job: Some("778".to_owned()),
        wait_channel: Some("futex_wait".to_owned()),
        environment: Some(Reading::Value(names.iter().map(|name| var(name, "1")).collect())),
        allocator: Some(Reading::Value(allocator)),
        server: Some(Reading::Value(server())),
        ..process(1001, &["/usr/bin/python", "/home/ana/train.py", "--name", "ana"])
    }
}

fn full_ticks() -> Vec<Tick> {
    let Tick::Gpus(mut gpus) = gpu_tick(0, 7) else { panic!() };
    let gpu = gpus.gpus[0].uuid.clone();
    gpus.driver.nvml = Reading::Value("13.580".to_owned());
    gpus.gpus[0].pci_bus_id = Reading::Value("00000000:1B:00.0".to_owned());
    gpus.gpus[0].mig = Some(MigInfo {
        parent: gpu.clone(),
        gpu_instance: Reading::Value(1),
        compute_instance: Reading::Value(0),
    });
    let state = Reading::Value(());
    gpus.xid.watched = vec![WatchedGpu { gpu: gpu.clone(), state }];
    let (gpu_instance, compute_instance) = (None, None);
    gpus.xid.events =
        vec![XidEvent { at: stamp(1), gpu, code: 79, gpu_instance, compute_instance }];
    let Tick::Procs(mut procs) = proc_tick(0, vec![full_process()]) else { panic!() };
    procs.host.container =
        Some(Container { runtime: "docker".to_owned(), id: Some("a".to_owned()) });
    let call = "nvmlDeviceGetName".to_owned();
    let cause = GapCause::Stall { call, gpu: Some(GpuIndex(0)) };
    let id = ProcId { pid: Pid(7), start_ticks: 9 };
    let signal = KillMarked::Signal { id, name: "train.py".to_owned(), signal: 15 };
    let outcome = KillMarked::Outcome("freed 1.0 of 1.0 GiB on GPU 0".to_owned());
    let mark = |what| Tick::Kill(KillMark { at: stamp(2), what });
    let gap = Tick::Gap(Gap { from: stamp(1), to: stamp(2), cause });
    vec![Tick::Gpus(gpus), Tick::Procs(procs), gap, mark(signal), mark(outcome)]
}

fn texts(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path.to_owned()),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, one)| texts(one, &format!("{path}/{n}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(key, one)| texts(one, &format!("{path}/{key}"), found));
        }
        _ => {}
    }
}

fn redacted(header: Header, ticks: &[Tick]) -> String {
    let redaction = Redaction::identities(redact);
    let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
    for tick in ticks {
        writer.push(tick).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

/// Each text of the line with the mark in its place, as far as that can be read; and where it is
/// still there in what `write` makes of it.
fn left(line: &Value, write: impl Fn(Value) -> Option<String>) -> (usize, BTreeSet<String>) {
    let (mut paths, mut read, mut left) = (Vec::new(), 0, BTreeSet::new());
    texts(line, "", &mut paths);
    for path in paths {
        let mut free = false;
        for form in FORMS {
            let mut marked = line.clone();
            *marked.pointer_mut(&path).unwrap() = json!(form);
            let Some(text) = write(marked) else { continue };
            free = true;
            if text.contains(MARK) {
                let in_list = path.replace("/gpus/0", "/gpus/N").replace("/procs/0", "/procs/N");
                left.insert(in_list);
            }
        }
        read += usize::from(free);
    }
    (read, left)
}

#[test]
fn no_text_is_left_that_is_not_on_the_list() {
    let (mut read, mut found) = (0, BTreeSet::new());
    for tick in full_ticks() {
        let (count, kept) = left(&serde_json::to_value(&tick).unwrap(), |marked| {
            let tick: Tick = serde_json::from_value(marked).ok()?;
            Some(redacted(header(), &[tick]))
        });
        read += count;
        found.extend(kept);
    }
    let mut first = header();
    first.boot_id = Reading::Value("b".to_owned());
    first.driver = Reading::Value("580".to_owned());
    let line = json!({ "header": first });
    let (count, kept) = left(&line, |mut marked| {
        let header: Header = serde_json::from_value(marked["header"].take()).ok()?;
        Some(redacted(header, &[]))
    });
    found.extend(kept);
    assert!(read + count >= 60, "{read} and {count}");
    let expected: BTreeSet<String> = KEPT.iter().chain([&TOOL]).map(|&path| path.into()).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_a_server_has_in_memory_is_kept_without_its_name() {
    let text = redacted(header(), &full_ticks());
    let ticks: Vec<Tick> = Reader::new(text.as_bytes()).unwrap().map(Result::unwrap).collect();
    let Tick::Procs(tick) = &ticks[1] else { panic!("{ticks:?}") };
    let Some(Reading::Value(server)) = &tick.procs[0].server else { panic!("{tick:?}") };
    let expected = ServedModel {
        name: "model1-Q4_K_M".to_owned(),
        size: Some(Bytes(7)),
        in_vram: Some(Bytes(6)),
        context_tokens: Some(4096),
        expires: None,
    };
    assert_eq!(server.models, [expected]);
    assert_eq!((server.kv_tokens, server.devices.len()), (Some(9), 1));
    // A GPU is the same one in every line.
    let Tick::Gpus(gpus) = &ticks[0] else { panic!("{ticks:?}") };
    let uuid = &gpus.gpus[0].uuid;
    assert_eq!(&*uuid.0, "GPU-00000001-0000-0000-0000-000000000001");
    let Some(Reading::Value(allocator)) = &tick.procs[0].allocator else { panic!("{tick:?}") };
    assert_eq!(allocator.devices[0].gpu.as_ref(), Some(uuid));
    assert_eq!([&gpus.xid.events[0].gpu, &gpus.xid.watched[0].gpu], [uuid, uuid]);
}
