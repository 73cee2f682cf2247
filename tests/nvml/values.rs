//! What is read, and what it costs.

use vramlens::ids::{GpuIndex, Pid};
use vramlens::sample::{GpuTick, MemoryApi, Nonsense, Pcie, Reading, Throttle, Utilization, Why};
use vramlens::source::Wants;
use vramlens::units::{Bytes, BytesPerSecond, Celsius, Megahertz, Milliwatts, Percent};

use crate::{ONE, Rig, memory, processes, rows, value};

#[test]
fn every_field_has_its_value() {
    let mut rig = Rig::new(ONE);
    let tick = rig.next(Wants::ALL).unwrap();
    assert_eq!(tick.driver.version, Reading::Value("580.159.04".to_owned()));
    assert_eq!(tick.driver.cuda, Reading::Value("13.0".to_owned()));
    assert_eq!(tick.driver.nvml, Reading::Value("13.580.159.04".to_owned()));
    let gpu = &tick.gpus[0];
    assert_eq!(gpu.uuid.0.as_ref(), "GPU-00000000-0000-0000-0000-000000000000");
    assert_eq!((gpu.index, gpu.minor), (GpuIndex(0), Reading::Value(0)));
    assert_eq!(gpu.name, Reading::Value("NVIDIA H200".to_owned()));
    assert_eq!(gpu.pci_bus_id, Reading::Value("00000000:1B:00.0".to_owned()));
    let memory = memory(gpu);
    assert_eq!((memory.total, memory.api), (Bytes::gib(140), MemoryApi::V2));
    assert_eq!(memory.used, Bytes(92_449_751_040 + 23_729_274_880));
    assert_eq!(memory.reserved, Reading::Value(Bytes(644_939_776)));
    assert_eq!(memory.used + Bytes(644_939_776) + memory.free, memory.total);
    let shares = Utilization { sm: Percent(96.0), memory: Percent(51.0) };
    assert_eq!(gpu.utilization, Reading::Value(shares));
    assert_eq!(gpu.temperature, Reading::Value(Celsius(54)));
    assert_eq!(gpu.power, Reading::Value(Milliwatts(612_000)));
    assert_eq!(gpu.power_limit, Reading::Value(Milliwatts(700_000)));
    assert_eq!(gpu.sm_clock, Reading::Value(Megahertz(1980)));
    assert_eq!(gpu.memory_clock, Reading::Value(Megahertz(3201)));
    assert_eq!(gpu.throttle, Reading::Value(Throttle(0)));
    assert_eq!(gpu.performance_state, Reading::Value(0));
    let pcie = Pcie { rx: BytesPerSecond(1200 << 10), tx: BytesPerSecond(800 << 10) };
    assert_eq!(gpu.pcie, Reading::Value(pcie));
    assert_eq!(gpu.fan, Reading::Absent(Why::NotSupported));
    assert_eq!(gpu.mig_enabled, Reading::Value(false));
    assert_eq!(gpu.persistence, Reading::Value(true));
    assert_eq!(gpu.process_utilization, Reading::Value(()));
    assert_eq!(processes(gpu)[1].sm, Reading::Value(Percent(92.0)), "the highest sample");
    assert_eq!(processes(gpu)[0].sm, Reading::Value(Percent(0.0)), "no sample is idle");
    assert_eq!(tick.nonsense, Nonsense::default());
    assert_eq!(rig.progress.current(), None);
}

#[test]
fn slow_questions_are_asked_only_for_somebody() {
    let mut rig = Rig::new(&format!("count_calls = true\n{ONE}"));
    let tick = rig.next(Wants::default()).unwrap();
    let not_asked = Reading::<()>::Absent(Why::NotAsked);
    assert_eq!(tick.gpus[0].pcie, Reading::Absent(Why::NotAsked));
    assert_eq!(tick.gpus[0].process_utilization, not_asked);
    assert_eq!(tick.gpus[0].sm_clock, Reading::Absent(Why::NotAsked));
    assert_eq!(processes(&tick.gpus[0])[0].sm, Reading::Absent(Why::NotAsked));
    assert_eq!(rig.fake.calls("nvmlDeviceGetPcieThroughput"), 0);
    assert_eq!(rig.fake.calls("nvmlDeviceGetProcessUtilization"), 0);
    rig.next(Wants::ALL).unwrap();
    assert_eq!(rig.fake.calls("nvmlDeviceGetPcieThroughput"), 2);
}

#[test]
fn lists_are_merged_and_nonsense_is_counted() {
    let mut rig = Rig::new(
        r#"
        [[gpu]]
        process = [
            { pid = 10, bytes = 104857600, kinds = "CM" },
            { pid = 10, bytes = 209715200, kinds = "G" },
            { pid = 11, bytes = -1 },
            { pid = 0, bytes = 1 },
            { pid = 4194305, bytes = 1 },
            { pid = 12, bytes = 999999999999999 },
        ]
        [[gpu]]
        raw_memory = { total = 100, reserved = 10, free = 10, used = 10 }
        [[gpu]]
        raw_memory = { total = -1, reserved = -1, free = -1, used = -1 }
        "#,
    );
    let tick = rig.tick();
    let found = processes(&tick.gpus[0]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].used, Reading::Value(Bytes::mib(200)));
    assert_eq!(found[0].kinds.letters(), "C+G+M");
    assert_eq!((found[1].pid, found[1].used), (Pid(11), Reading::Absent(Why::NotSupported)));
    for gpu in &tick.gpus[1..] {
        assert_eq!(gpu.memory, Reading::Absent(Why::Nonsense));
    }
    // Each of the two GPUs gave two answers that were not believed.
    assert_eq!(
        tick.nonsense,
        Nonsense { bad_pids: 2, bad_bytes: 1, bad_memory: 4, failed_lists: 0 }
    );
}

#[test]
fn samples_are_asked_for_from_the_last_stamp_on() {
    let gpu = |stamp| {
        format!("[[gpu]]\nprocess = [{{ pid = 5, bytes = 1, sm = [20, 60, 30], stamp = {stamp} }}]")
    };
    let mut rig = Rig::new(&gpu(1000));
    let share = |tick: &GpuTick| value(&processes(&tick.gpus[0])[0].sm).0;
    assert!((share(&rig.tick()) - 60.0).abs() < 0.01);
    let idle = rig.tick();
    assert!(share(&idle) < 0.01, "old samples do not count again");
    assert_eq!(idle.gpus[0].process_utilization, Reading::Value(()));
    assert!((share(&rig.change(&gpu(2000))) - 60.0).abs() < 0.01);
    // Too soon for the driver to have a new sample: the process is not idle for that.
    rig.now_ms -= 800;
    assert!((share(&rig.tick()) - 60.0).abs() < 0.01);
    assert!(share(&rig.tick()) < 0.01);
}

#[test]
fn mig_instances_stand_behind_their_gpu() {
    let mut rig = Rig::new(include_str!("../scenarios/mig.toml"));
    let tick = rig.tick();
    let order: Vec<_> = tick.gpus.iter().map(|gpu| (gpu.index.0, gpu.mig.is_some())).collect();
    assert_eq!(order, [(0, false), (0, true), (0, true), (1, false)]);
    let (gpu, instance) = (&tick.gpus[0], &tick.gpus[2]);
    assert_eq!(gpu.mig_enabled, Reading::Value(true));
    assert_eq!(rows(gpu), [(7001, 10240, "C".to_owned()), (7002, 5120, "C".to_owned())]);
    assert_eq!(processes(gpu)[1].gpu_instance, Some(5));
    let mig = instance.mig.as_ref().unwrap();
    assert_eq!((&mig.parent, mig.gpu_instance), (&gpu.uuid, Reading::Value(5)));
    assert_eq!(mig.compute_instance, Reading::Value(0));
    assert_eq!(instance.uuid.0.as_ref(), "MIG-aaaaaaaa-0000-0000-0000-000000000002");
    assert_eq!(memory(instance).total, Bytes::gib(20));
    assert_eq!(memory(instance).used, Bytes::gib(5));
    assert_eq!(rows(instance), [(7002, 5120, "C".to_owned())]);
    assert_eq!(instance.utilization, Reading::Absent(Why::NotSupported));
    assert_eq!(instance.process_utilization, Reading::Absent(Why::NotSupported));
    assert_eq!(processes(instance)[0].sm, Reading::Absent(Why::NotSupported));
    assert_eq!(value(&processes(&tick.gpus[3])[0].sm), Percent(12.0));
    // An instance that is destroyed is gone after a while, the GPU is not.
    rig.fake.change("[[gpu]]\nmig = true\n[[gpu]]");
    let last = (0..12).map(|_| rig.tick()).last().unwrap();
    assert_eq!(last.gpus.len(), 2);
}

#[test]
fn a_parent_without_permission_keeps_its_instances() {
    let error = "[[error]]\ncall = \"nvmlDeviceGetComputeRunningProcesses_v3\"\ngpu = 0\ncode = 4";
    let mut rig = Rig::new(&format!("{}\n{error}", include_str!("../scenarios/mig.toml")));
    let tick = rig.tick();
    assert_eq!(tick.gpus[0].processes, Reading::Absent(Why::NoPermission));
    assert_eq!(rows(&tick.gpus[3]), [(7003, 1024, "C".to_owned())]);
}
