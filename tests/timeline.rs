//! Markers on the line of time: each kind at its exact moment, from ticks alone.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use verdict_support::*;
use vramlens::analyze::timeline::{Marker, MarkerKind, Timeline};
use vramlens::history::History;
use vramlens::ids::{CudaOrdinal, GpuIndex, Pid, ProcId};
use vramlens::sample::{
    AllocatorBackend, AllocatorBasis, AllocatorDevice, AllocatorSample, Gap, GapCause, GpuSample,
    KillMark, KillMarked, ProcSample, Reading, Tick, Why, XidEvent,
};
use vramlens::units::Bytes;

#[derive(Default)]
struct Session {
    history: History,
    line: Timeline,
}

impl Session {
    fn push(&mut self, tick: &Tick) {
        self.history.push(tick);
        self.line.follow(&self.history);
    }

    fn gpu(&mut self, second: u64, rows: &[(u32, u64)]) {
        let rows = rows.iter().map(|(pid, bytes)| row(*pid, *bytes)).collect();
        self.push(&gpu_tick(T0 + second * 1_000, vec![with_rows(gpu(0), rows)]));
    }

    fn procs(&mut self, second: u64, procs: Vec<ProcSample>) {
        self.push(&proc_tick(T0 + second * 1_000 + 50, host(), procs));
    }

    fn all(&self) -> Vec<(MarkerKind, u64, String)> {
        let second = |mark: &Marker| (mark.at.boot_ms - T0) / 1_000;
        let markers = self.line.markers();
        markers.into_iter().map(|mark| (mark.kind, second(mark), mark.words(false))).collect()
    }
}

fn one(kind: MarkerKind, second: u64, words: &str) -> (MarkerKind, u64, String) {
    (kind, second, words.to_owned())
}

#[test]
fn a_fault_that_the_driver_reports_is_marked() {
    let mut session = Session::default();
    session.gpu(0, &[]);
    let mut tick = gpu_tick(T0 + 1_000, vec![gpu(0)]);
    let Tick::Gpus(gpus) = &mut tick else { unreachable!() };
    gpus.xid.events.push(XidEvent {
        at: gpus.at,
        gpu: gpus.gpus[0].uuid.clone(),
        code: 31,
        gpu_instance: None,
        compute_instance: None,
    });
    session.push(&tick);
    let words = session.all().pop().unwrap();
    assert_eq!((words.0, words.1), (MarkerKind::Xid, 1));
    assert!(words.2.starts_with("XID 31"), "{}", words.2);
}

#[test]
fn who_was_there_before_has_not_come_and_who_comes_and_goes_is_marked() {
    let mut session = Session::default();
    session.gpu(0, &[(10, 4 * GIB)]);
    session.gpu(1, &[(10, 4 * GIB), (11, GIB)]);
    let mut train = cuda(process(11, "python"), &[0]);
    train.cmdline = Reading::Value(["python", "/home/a/train.py"].map(String::from).to_vec());
    session.procs(1, vec![cuda(process(10, "server"), &[0]), train]);
    session.gpu(2, &[(10, 4 * GIB), (11, 9 * GIB)]);
    session.gpu(3, &[(10, 4 * GIB), (11, 8 * GIB)]);
    session.gpu(4, &[(11, 8 * GIB)]);
    session.gpu(5, &[]);
    assert_eq!(
        session.all(),
        [
            one(MarkerKind::Came, 1, "train.py 11 came, up to 9.0 GiB"),
            one(MarkerKind::Peak, 2, "peak of GPU 0: 13.0 GiB"),
            one(MarkerKind::Went, 4, "server 10 went, held 4.0 GiB"),
            one(MarkerKind::Went, 5, "train.py 11 went, held 8.0 GiB"),
        ]
    );
    let came = session.line.after(0, None)[0];
    assert_eq!(came.at, stamp(T0 + 1_000));
    assert_eq!(came.words(true), "train.py 11 came on GPU 0, up to 9.0 GiB");
}

#[test]
fn a_row_that_is_away_for_a_moment_has_not_gone() {
    let mut session = Session::default();
    session.gpu(0, &[(10, GIB)]);
    session.gpu(1, &[]);
    assert_eq!(session.all().last().unwrap().0, MarkerKind::Went);
    session.gpu(3, &[(10, GIB)]);
    session.gpu(4, &[(10, GIB)]);
    assert!(session.all().iter().all(|mark| mark.0 == MarkerKind::Peak), "{:?}", session.all());
}

#[test]
fn a_list_that_cannot_be_read_says_nothing_of_who_went() {
    let mut session = Session::default();
    session.gpu(0, &[(10, GIB)]);
    let mut blind = gpu(0);
    blind.processes = Reading::Absent(Why::TimedOut);
    session.push(&gpu_tick(T0 + 1_000, vec![blind]));
    session.gpu(2, &[(10, GIB)]);
    assert!(session.all().iter().all(|mark| mark.0 == MarkerKind::Peak), "{:?}", session.all());
}

#[test]
fn a_peak_is_marked_once_it_is_over_and_moves_with_a_higher_one() {
    let mut session = Session::default();
    for (second, gib) in [(0, 1), (1, 20), (2, 30), (3, 30)] {
        session.gpu(second, &[(10, gib * GIB)]);
    }
    assert!(session.all().is_empty(), "it may still rise");
    session.gpu(4, &[(10, 30 * GIB - (1 << 20))]);
    assert!(session.all().is_empty(), "a MiB is noise");
    session.gpu(5, &[(10, 20 * GIB)]);
    assert_eq!(session.all(), [one(MarkerKind::Peak, 2, "peak of GPU 0: 30.0 GiB")]);
    session.gpu(6, &[(10, 40 * GIB)]);
    assert!(session.all().is_empty());
    session.gpu(7, &[]);
    assert_eq!(session.all()[0], one(MarkerKind::Peak, 6, "peak of GPU 0: 40.0 GiB"));
}

#[test]
fn gaps_are_marked_where_they_begin_told_or_not() {
    let mut session = Session::default();
    session.gpu(0, &[(10, GIB)]);
    let stall = GapCause::Stall { call: "nvmlDeviceGetMemoryInfo".into(), gpu: Some(GpuIndex(1)) };
    let (from, to) = (stamp(T0), stamp(T0 + 12_000));
    session.push(&Tick::Gap(Gap { from, to, cause: stall }));
    session.gpu(12, &[(10, GIB)]);
    session.gpu(13, &[(10, GIB)]);
    session.gpu(613, &[(10, GIB), (12, GIB)]);
    session.gpu(614, &[(10, GIB), (12, GIB)]);
    assert_eq!(
        session.all(),
        [
            one(
                MarkerKind::Gap,
                0,
                "nothing is known for 12 s: nvmlDeviceGetMemoryInfo hung on GPU 1"
            ),
            one(MarkerKind::Gap, 13, "nothing is known for 10 min: nothing arrived"),
            one(MarkerKind::Came, 613, "pid 12 came, up to 1.0 GiB, while nothing was known"),
        ]
    );
    assert_eq!(session.line.after(T0, None)[0].until, Some(stamp(T0 + 613_000)));
}

fn with_ooms(mut process: ProcSample, ooms: u64) -> ProcSample {
    let absent = Why::NotAsked;
    let device = AllocatorDevice {
        ordinal: CudaOrdinal(0),
        allocated: Bytes::gib(5),
        reserved: Bytes::gib(7),
        active: Reading::Absent(absent),
        inactive_split: Reading::Absent(absent),
        requested: Reading::Absent(absent),
        retries: Reading::Value(0),
        ooms: Reading::Value(ooms),
        segments: Reading::Absent(absent),
        free: Reading::Absent(absent),
        private_pools: Reading::Absent(absent),
        expandable_segments: Reading::Absent(absent),
        peak_allocated: Reading::Absent(absent),
        peak_reserved: Reading::Absent(absent),
        gpu: None,
    };
    process.allocator = Some(Reading::Value(AllocatorSample {
        at: stamp(T0),
        devices: vec![device],
        basis: AllocatorBasis::Blocks,
        backend: AllocatorBackend::Native,
    }));
    process
}

#[test]
fn an_error_that_an_allocator_counts_is_marked_and_explains_who_went() {
    let mut session = Session::default();
    let train = || cuda(process(10, "train"), &[0]);
    session.gpu(0, &[(10, 7 * GIB)]);
    // What it counted before is not now.
    session.procs(0, vec![with_ooms(train(), 3)]);
    session.procs(1, vec![with_ooms(train(), 3)]);
    session.procs(2, vec![with_ooms(train(), 4)]);
    session.gpu(3, &[(10, 7 * GIB)]);
    session.procs(3, vec![with_ooms(train(), 6)]);
    session.gpu(4, &[]);
    let words = |n: usize| session.all()[n].clone();
    assert_eq!(words(0).0, MarkerKind::Peak);
    assert_eq!(
        words(1),
        one(MarkerKind::Oom, 2, "train 10 ran out of memory, its cache held 7.0 GiB")
    );
    assert_eq!(words(2).2, "train 10 ran out of memory, its cache held 7.0 GiB, 2 times");
    assert_eq!(words(3).2, "train 10 went, held 7.0 GiB, after an out-of-memory error");
    let oom = session.line.after(T0 + 1_000, None)[0];
    assert_eq!((oom.at, oom.index), (stamp(T0 + 2_050), Some(GpuIndex(0))));
    // Of one that began meanwhile every error is new.
    let mut late = with_ooms(process(30, "late"), 1);
    late.started_boot_ms = T0 + 5_000;
    session.procs(6, vec![late]);
    assert_eq!(session.all().last().unwrap().0, MarkerKind::Oom);
}

/// A recording in which somebody was ended says so, to whoever plays it.
#[test]
fn signals_of_a_recording_are_markers_too() {
    let mut session = Session::default();
    session.gpu(0, &[(10, GIB)]);
    let zombie = cuda(process(10, "zombie"), &[0]);
    let id = zombie.id;
    session.procs(0, vec![zombie]);
    let mark = |at, what| Tick::Kill(KillMark { at: stamp(T0 + at), what });
    let what = |signal| KillMarked::Signal { id, name: "zombie".to_owned(), signal };
    // Two before anybody looks at the history again: none is passed over.
    session.history.push(&mark(1_200, what(15)));
    session.history.push(&mark(1_250, what(9)));
    session.gpu(2, &[]);
    let outcome = "freed 1.0 of 1.0 GiB on GPU 0".to_owned();
    session.push(&mark(2_100, KillMarked::Outcome(outcome)));
    session.gpu(3, &[]);
    let words: Vec<String> = session.all().into_iter().map(|mark| mark.2).collect();
    assert_eq!(
        words,
        [
            "zombie 10 was signalled by vramlens: TERM",
            "zombie 10 was signalled by vramlens: KILL",
            "zombie 10 went, held 1.0 GiB, ended by vramlens",
            "vramlens freed 1.0 of 1.0 GiB on GPU 0",
        ]
    );
}

#[test]
fn our_own_signals_and_errors_of_the_driver_can_be_added() {
    let mut session = Session::default();
    session.gpu(0, &[(10, GIB)]);
    let zombie = cuda(process(10, "zombie"), &[0]);
    let id = zombie.id;
    session.procs(0, vec![zombie]);
    let signal = |at, id, name: &str, signal| {
        let what = KillMarked::Signal { id, name: name.to_owned(), signal };
        KillMark { at: stamp(T0 + at), what }
    };
    session.line.killed(&signal(1_200, id, "zombie", 15));
    let stranger = ProcId { pid: Pid(99), start_ticks: 1 };
    session.line.killed(&signal(1_300, stranger, "", 9));
    session.line.add(Marker::xid(stamp(T0 + 1_500), uuid(0), GpuIndex(0), 79, "off the bus"));
    session.gpu(2, &[]);
    let words: Vec<String> = session.all().into_iter().map(|mark| mark.2).collect();
    assert_eq!(
        words,
        [
            "zombie 10 was signalled by vramlens: TERM",
            "pid 99 was signalled by vramlens: KILL",
            "XID 79: off the bus",
            "zombie 10 went, held 1.0 GiB, ended by vramlens",
        ]
    );
}

#[test]
fn a_slice_of_a_gpu_is_marked_once() {
    let mut session = Session::default();
    let mig = |rows: &[u32]| -> Vec<GpuSample> {
        let mut whole = with_rows(gpu(0), rows.iter().map(|pid| row(*pid, GIB)).collect());
        whole.mig_enabled = Reading::Value(true);
        let mut slice = with_rows(gpu(7), rows.iter().map(|pid| row(*pid, GIB)).collect());
        slice.mig = Some(vramlens::sample::MigInfo {
            parent: uuid(0),
            gpu_instance: Reading::Value(1),
            compute_instance: Reading::Value(0),
        });
        vec![whole, slice]
    };
    session.push(&gpu_tick(T0, mig(&[])));
    session.push(&gpu_tick(T0 + 1_000, mig(&[5])));
    let came = session.line.after(T0, None);
    assert_eq!((came.len(), came[0].gpu.as_ref()), (1, Some(&uuid(7))));
}

#[test]
fn ten_thousand_processes_that_come_and_go_stay_bounded() {
    let mut session = Session::default();
    session.gpu(0, &[]);
    for second in 1..10_000_u32 {
        session.gpu(u64::from(second), &[(second, GIB)]);
    }
    assert!(session.line.markers().len() <= 4_097);
    assert!(session.line.dropped() > 10_000);
}
