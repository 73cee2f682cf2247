//! The ledger adds up, whatever the driver says.
mod verdict_support;

use proptest::prelude::*;
use verdict_support::*;
use vramlens::analyze::{Entry, Freshness, Ledger, View};
use vramlens::history::History;
use vramlens::sample::{
    GpuSample, HostFacts, HostMemory, Memory, MemoryApi, MigInfo, Reading, Why,
};
use vramlens::units::Bytes;

fn adds_up(ledger: &Ledger) -> bool {
    let sum = |parts: &[Bytes]| parts.iter().map(|b| u128::from(b.0)).sum::<u128>();
    sum(&[ledger.total, ledger.shared])
        == sum(&[
            ledger.processes,
            ledger.survivors,
            ledger.unaccounted,
            ledger.host,
            ledger.reserved,
            ledger.free,
        ])
        && ledger.cached.value().is_none_or(|cached| *cached <= ledger.processes)
}

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), 0..200 * GIB, any::<u64>()]
}

fn any_memory() -> impl Strategy<Value = Memory> {
    let reserved = prop::option::of(any_bytes());
    (any_bytes(), any_bytes(), reserved, any_bytes(), any::<bool>()).prop_map(
        |(total, used, reserved, free, old)| Memory {
            total: Bytes(total),
            used: Bytes(used),
            reserved: reserved.map(Bytes).ok_or(Why::OldDriver).into(),
            free: Bytes(free),
            api: if old { MemoryApi::V1 } else { MemoryApi::V2 },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_ledger_adds_up_for_any_input(
        memory in any_memory(),
        rows in prop::collection::vec((1..40_u32, prop::option::of(any_bytes())), 0..12),
        alive in prop::collection::vec(1..40_u32, 0..20),
        ask in 0..30_u64,
    ) {
        let mut sample = gpu(0);
        sample.memory = Reading::Value(memory);
        let mut listed: Vec<_> = rows
            .iter()
            .map(|(pid, bytes)| {
                let mut row = row(*pid, 0);
                row.used = bytes.map(Bytes).ok_or(Why::NotSupported).into();
                row
            })
            .collect();
        listed.dedup_by_key(|row| row.pid);
        sample.processes = Reading::Value(listed);
        let procs: Vec<_> = alive.iter().map(|pid| cuda(process(*pid, "python"), &[0])).collect();
        let (history, view) = watched(4, &[sample], &host(), &procs);
        let ledger = view.gpus[0].ledger.get().unwrap();
        prop_assert!(adds_up(&ledger), "{ledger:?}");
        prop_assert_eq!(ledger.reserved_known, memory.api == MemoryApi::V2
            && memory.reserved.value().is_some());
        let mut past = moment(T0 + 4_200);
        past.at_boot_ms = Some(T0 + ask * 200);
        for gpu in View::build(&history, &past).gpus {
            let ledger = gpu.ledger.get().unwrap();
            prop_assert!(adds_up(&ledger), "{ledger:?}");
        }
    }
}

#[test]
fn each_part_is_where_it_belongs() {
    let mut sample = with_rows(gpu(0), vec![row(10, 5 * GIB), row(11, 2 * GIB)]);
    sample.memory = Reading::Value(memory(80 * GIB, 10 * GIB, GIB));
    let (_, view) = watched(3, &[sample], &host(), &[cuda(process(10, "python"), &[0])]);
    let ledger = view.gpus[0].ledger.get().unwrap();
    assert_eq!(ledger.processes, Bytes::gib(5));
    assert_eq!(ledger.survivors, Bytes::gib(2), "listed under a dead pid");
    assert_eq!(ledger.unaccounted, Bytes::gib(3));
    assert_eq!(ledger.reserved, Bytes::gib(1));
    assert_eq!(ledger.free, Bytes::gib(69));
    assert_eq!(ledger.shared, Bytes::ZERO);
}

#[test]
fn memory_listed_twice_is_shared_not_hidden() {
    let mut sample = with_rows(gpu(0), vec![row(10, 5 * GIB), row(11, 5 * GIB)]);
    sample.memory = Reading::Value(memory(80 * GIB, 6 * GIB, GIB));
    let procs = [cuda(process(10, "python"), &[0]), cuda(process(11, "python"), &[0])];
    let (_, view) = watched(3, &[sample], &host(), &procs);
    let ledger = view.gpus[0].ledger.get().unwrap();
    assert_eq!((ledger.shared, ledger.unaccounted), (Bytes::gib(4), Bytes::ZERO));
}

#[test]
fn the_old_call_cannot_tell_reserved_memory_apart() {
    let mut sample = gpu(0);
    sample.memory = Reading::Value(Memory {
        reserved: Reading::Absent(Why::OldDriver),
        api: MemoryApi::V1,
        ..memory(80 * GIB, GIB / 2, 0)
    });
    let (_, view) = watched(1, &[sample], &host(), &[]);
    let ledger = view.gpus[0].ledger.get().unwrap();
    assert!(!ledger.reserved_known);
    assert_eq!((ledger.reserved, ledger.unaccounted), (Bytes::ZERO, Bytes(GIB / 2)));
    assert!(view.gpus[0].unaccounted_causes.is_empty(), "within what a driver reserves");
}

#[test]
fn no_figure_is_made_up_for_unified_or_lost_memory() {
    let mut unified = gpu(0);
    unified.memory = Reading::Absent(Why::NotSupported);
    let mut lost = gpu(1);
    lost.memory = Reading::Absent(Why::GpuLost);
    let (_, view) = watched(1, &[unified, lost, gpu(2)], &host(), &[]);
    assert_eq!(view.gpus[0].ledger, Reading::Absent(Why::NotSupported));
    assert_eq!(view.gpus[1].ledger, Reading::Absent(Why::GpuLost));
    assert_eq!(view.gpus[1].freshness, Freshness::Lost);
    assert_eq!(view.gpus[2].freshness, Freshness::Live);
}

#[test]
fn memory_that_is_shared_with_the_host_is_that_of_the_machine() {
    let mut sample = gpu(0);
    sample.memory = Reading::Absent(Why::NotSupported);
    let mut silent = row(9002, 0);
    silent.used = Reading::Absent(Why::NotSupported);
    sample.processes = Reading::Value(vec![row(9001, 20 * GIB), silent]);
    let mut here = host();
    let (total, available) = (Bytes(119 * GIB), Bytes(60 * GIB));
    here.memory = Some(HostMemory { total, available });
    let view = watched(1, &[sample.clone()], &here, &[]).1;
    let ledger = view.gpus[0].ledger.get().unwrap();
    assert!(ledger.unified && adds_up(&ledger), "{ledger:?}");
    let held = ledger.processes + ledger.survivors;
    assert_eq!((ledger.total, held, ledger.free), (total, Bytes(20 * GIB), available));
    assert_eq!((ledger.host, ledger.unaccounted), (Bytes(39 * GIB), Bytes::ZERO));
    assert_eq!(ledger.processes_without_bytes, 1);
    assert!(view.gpus[0].unaccounted_causes.is_empty());

    // The kernel's and the driver's figures are not of the same moment.
    here.memory = Some(HostMemory { total, available: Bytes(110 * GIB) });
    let ledger = watched(1, &[sample.clone()], &here, &[]).1.gpus[0].ledger.get().unwrap();
    assert!(adds_up(&ledger), "{ledger:?}");
    assert_eq!((ledger.host, ledger.shared), (Bytes::ZERO, Bytes(11 * GIB)));

    // Without the kernel's figures, without a list, in slices, or over Windows there is none.
    let none = |change: &dyn Fn(&mut GpuSample, &mut HostFacts)| {
        let (mut sample, mut here) = (sample.clone(), here.clone());
        change(&mut sample, &mut here);
        assert!(watched(1, &[sample], &here, &[]).1.gpus[0].ledger.value().is_none());
    };
    none(&|_, here| here.memory = None);
    none(&|_, here| here.wsl = true);
    none(&|sample, _| sample.processes = Reading::Absent(Why::NotSupported));
    none(&|sample, _| sample.mig_enabled = Reading::Value(true));
    none(&|sample, _| sample.memory = Reading::Absent(Why::Asleep));
}

#[test]
fn over_windows_nothing_is_pretended() {
    let mut sample = gpu(0);
    sample.processes = Reading::Absent(Why::NotSupported);
    sample.memory = Reading::Value(Memory {
        total: Bytes(24 * GIB),
        used: Bytes(9 * GIB),
        reserved: Reading::Value(Bytes(GIB)),
        free: Bytes(14 * GIB),
        api: MemoryApi::V2,
    });
    let mut here = host();
    here.wsl = true;
    let (_, view) = watched(5, &[sample], &here, &[]);
    let gpu = &view.gpus[0];
    assert_eq!(gpu.ledger.get().unwrap().unaccounted, Bytes(9 * GIB));
    assert_eq!(gpu.unaccounted_causes[0].key, "windows");
    assert_eq!((view.holders.len(), gpu.counts.zombies), (0, 0));
}

proptest! {
    #[test]
    fn shared_memory_adds_up_for_any_input(
        total in any_bytes(),
        available in any_bytes(),
        rows in prop::collection::vec((any::<bool>(), prop::option::of(any_bytes())), 0..12),
    ) {
        let entries: Vec<_> = rows
            .iter()
            .map(|(of_dead, bytes)| Entry {
                bytes: bytes.map(Bytes).ok_or(Why::NotSupported).into(),
                of_dead: *of_dead,
                cached: Reading::Value(Bytes::ZERO),
            })
            .collect();
        let memory = HostMemory { total: Bytes(total), available: Bytes(available) };
        let ledger = Ledger::unified(&memory, &entries);
        prop_assert!(adds_up(&ledger), "{:?}", ledger);
        prop_assert_eq!(ledger.unaccounted, Bytes::ZERO);
    }
}

#[test]
fn managed_memory_is_named_as_the_cause() {
    let mut sample = with_rows(gpu(0), vec![row(10, 520 << 20)]);
    sample.memory = Reading::Value(memory(80 * GIB, 3_600 << 20, GIB));
    let (_, view) = watched(3, &[sample], &host(), &[cuda(process(10, "python"), &[0])]);
    let causes = &view.gpus[0].unaccounted_causes;
    assert_eq!(causes[0].key, "managed_memory");
    assert_eq!(causes[0].text, "managed memory of 10 (python)");
    assert_eq!(causes.last().unwrap().key, "driver");
}

#[test]
fn an_empty_history_and_a_stalled_one_say_so() {
    assert_eq!(View::build(&History::new(), &moment(T0)).freshness, Freshness::Starting);
    let (history, _) = watched(3, &[gpu(0)], &host(), &[]);
    let mut later = moment(T0 + 15_000);
    later.in_flight = Some(("nvmlDeviceGetMemoryInfo".to_owned(), None, T0 + 3_500));
    let view = View::build(&history, &later);
    assert_eq!(
        view.freshness,
        Freshness::Stalled {
            call: Some("nvmlDeviceGetMemoryInfo".to_owned()),
            gpu: None,
            for_ms: 11_500
        }
    );
    assert_eq!(view.gpus[0].freshness, view.freshness);
    assert_eq!(view.gpus_age_ms, Some(12_000));
}

#[test]
fn a_mig_instance_has_the_rows_and_its_gpu_has_the_sum() {
    let listed = vec![row(10, 5 * GIB)];
    let mut whole = with_rows(gpu(0), listed.clone());
    whole.mig_enabled = Reading::Value(true);
    let mut instance = with_rows(gpu(7), listed);
    instance.mig = Some(MigInfo {
        parent: uuid(0),
        gpu_instance: Reading::Value(1),
        compute_instance: Reading::Value(0),
    });
    let mut silent = whole.clone();
    silent.processes = Reading::Absent(Why::NoPermission);
    for parent in [whole, silent] {
        let procs = [cuda(process(10, "python"), &[0])];
        let (history, view) = watched(3, &[parent, instance.clone()], &host(), &procs);
        assert_eq!(view.holders.len(), 1, "shown once");
        assert_eq!(view.holders[0].gpu, uuid(7));
        for gpu in &view.gpus {
            assert_eq!(gpu.ledger.get().unwrap().processes, Bytes::gib(5));
        }
        let mut past = moment(T0 + 3_200);
        past.at_boot_ms = Some(T0 + 1_000);
        let past = View::build(&history, &past);
        assert_eq!(past.holders.len(), 1);
        for gpu in &past.gpus {
            assert_eq!(gpu.ledger.get().unwrap().processes, Bytes::gib(5));
        }
    }
}

#[test]
fn a_list_that_failed_is_no_finding_where_nothing_is_missing() {
    use vramlens::analyze::Cause;
    let (_, mut view) = watched(1, &[gpu(0)], &host(), &[]);
    let text = "graphics or MPS processes: their list could not be read".to_owned();
    view.gpus[0].unaccounted_causes = vec![Cause { key: "list_incomplete", pids: vec![], text }];
    let found = vramlens::rules::run_for(&view, None);
    assert!(found.iter().all(|one| !one.headline.contains("their list")), "{found:?}");
}

#[test]
fn without_a_list_nobody_is_blamed_and_no_share_is_told() {
    use vramlens::analyze::Class;
    use vramlens::report::json::Snapshot;
    let mut sample = gpu(0);
    sample.memory = Reading::Value(memory(80 * GIB, 23 * GIB, GIB));
    sample.processes = Reading::Absent(Why::NoPermission);
    let (_, view) =
        watched(3, &[sample.clone(), gpu(1)], &host(), &[cuda(process(10, "python"), &[0])]);
    let causes: Vec<_> = view.gpus[0].unaccounted_causes.iter().map(|one| one.key).collect();
    assert_eq!(causes, ["list_unreadable"]);
    assert_ne!(view.holders[0].verdict.class, Class::Hidden, "whether it is listed is not known");
    let json = serde_json::to_value(Snapshot::new(&view, vramlens::sample::redact)).unwrap();
    let ledger = &json["gpus"][0]["ledger"];
    let untold = ["processes_bytes", "survivors_bytes", "unaccounted_bytes", "shared_bytes"];
    for share in untold.into_iter().chain(["processes_without_bytes"]) {
        assert_eq!(ledger[share]["absent"], "no_permission", "{share}");
    }
    assert_eq!(ledger["used_bytes"], 23 * GIB);
    let findings = vramlens::rules::run(&view);
    let headlines: Vec<_> = findings.iter().map(|one| &one.headline).collect();
    assert!(headlines.iter().any(|one| one.contains("by whom is not known")), "{headlines:?}");
    // Read, it is told apart again.
    sample.processes = Reading::Value(vec![row(10, 22 * GIB)]);
    let (_, view) = watched(3, &[sample], &host(), &[cuda(process(10, "python"), &[0])]);
    let json = serde_json::to_value(Snapshot::new(&view, vramlens::sample::redact)).unwrap();
    assert_eq!(json["gpus"][0]["ledger"]["processes_bytes"], 22 * GIB);
}
