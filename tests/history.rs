//! History in bounded memory, and views of earlier moments.
mod verdict_support;

use verdict_support::*;
use vramlens::analyze::{Freshness, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::sample::{
    Gap, GapCause, GpuSample, ProcKinds, Reading, Tick, UnreadLists, Utilization, Why,
};
use vramlens::units::{Bytes, Percent};

fn at(history: &History, now: u64, at_ms: u64) -> View {
    let mut moment = moment(now);
    moment.at_boot_ms = Some(at_ms);
    View::build(history, &moment)
}

/// Process 10 grows by a GiB each 100 s, and ends after an hour.
fn two_hours() -> (History, u64) {
    let mut history = History::new();
    let procs = vec![cuda(process(10, "python"), &[0])];
    for second in 0..7_200_u64 {
        let now = T0 + second * 1_000;
        let rows = if second < 3_600 { vec![row(10, (1 + second / 100) * GIB)] } else { vec![] };
        history.push(&gpu_tick(now, vec![with_rows(gpu(0), rows)]));
        if second % 2 == 0 {
            history.push(&proc_tick(
                now + 50,
                host(),
                if second < 3_600 { procs.clone() } else { vec![] },
            ));
        }
    }
    (history, T0 + 7_199_000)
}

#[test]
fn an_earlier_moment_is_shown_as_it_was() {
    let (history, now) = two_hours();
    let then = T0 + 1_805_000;
    let view = at(&history, now, then);
    assert_eq!(view.freshness, Freshness::Past);
    assert_eq!(view.at, stamp(then));
    assert_eq!(view.gpus.len(), 1);
    let ledger = view.gpus[0].ledger.get().unwrap();
    assert_eq!(ledger.used, Bytes::gib(19));
    assert_eq!(ledger.free, Bytes::gib(60));
    let holder = &view.holders[0];
    assert_eq!((holder.pid, holder.bytes), (Pid(10), Reading::Value(Bytes::gib(19))));
    assert_eq!(holder.process.as_ref().unwrap().comm, "python", "last known facts");
    assert_eq!(holder.peak, Reading::Value(Bytes::gib(19)), "the most so far, not what came later");
    assert!(!holder.verdict.zombie, "nothing can be ended in the past");
    let after = at(&history, now, now - 10_000);
    assert!(after.holders.is_empty());
    assert_eq!(after.gpus[0].ledger.get().unwrap().used, Bytes::ZERO);
    assert!(at(&history, now, T0 - 3_600_000).gpus.is_empty(), "before the beginning");
}

#[test]
fn the_oldest_moment_is_the_first_that_was_seen() {
    let (history, _) = two_hours();
    let oldest = history.oldest().unwrap();
    assert_eq!(oldest, stamp(T0));
}

#[test]
fn the_oldest_moment_can_be_shown_whenever_the_first_look_came() {
    for start in [T0 + 1, T0 + 59_999, T0 + 7_777] {
        let mut history = History::new();
        for second in 0..40 {
            let now = start + second * 1_000;
            history.push(&gpu_tick(now, vec![with_rows(gpu(0), vec![row(10, GIB)])]));
        }
        let oldest = history.oldest().unwrap();
        assert_eq!(oldest, stamp(start));
        let view = at(&history, start + 40_000, oldest.boot_ms);
        assert_eq!((view.gpus.len(), view.holders.len()), (1, 1));
    }
}

#[test]
fn charts_show_the_highest_figure_and_holes() {
    let (mut history, now) = two_hours();
    let chart = history.gpu_chart(&uuid(0), T0, T0 + 3_600_000, 36);
    let used: Vec<_> = chart.iter().map(|point| point.unwrap().used.0 / GIB).collect();
    assert_eq!(used, (1..=36).collect::<Vec<_>>());
    let holder = history.holder_chart(&uuid(0), Pid(10), T0, T0 + 7_200_000, 72);
    assert_eq!(holder[10].unwrap().used, Bytes::gib(11));
    assert!(holder[40..].iter().all(Option::is_none), "it had ended");
    history.push(&Tick::Gap(Gap {
        from: stamp(now),
        to: stamp(now + 60_000),
        cause: GapCause::Suspended,
    }));
    history.push(&gpu_tick(now + 60_000, vec![gpu(0)]));
    let chart = history.gpu_chart(&uuid(0), now - 9_000, now + 61_000, 7);
    let known: Vec<_> = chart.iter().map(Option::is_some).collect();
    assert_eq!(known, [true, false, false, false, false, false, true]);
    assert_eq!(history.gpu_chart(&uuid(9), T0, now, 3), vec![None; 3], "an unknown GPU");
    assert_eq!(history.gpu_chart(&uuid(0), T0, now, 0), vec![]);
}

#[test]
fn a_slow_interval_leaves_no_holes() {
    let mut history = History::new();
    for n in 0..60_u64 {
        history.push(&gpu_tick(T0 + n * 5_000, vec![with_rows(gpu(0), vec![row(10, GIB)])]));
    }
    let chart = history.gpu_chart(&uuid(0), T0, T0 + 295_000, 295);
    assert!(chart.iter().all(Option::is_some));
}

#[test]
fn a_hundred_thousand_processes_leave_bounded_memory() {
    let mut history = History::new();
    for n in 0..1_000_u64 {
        let rows = (0..100).map(|k| row(10 + n as u32 * 100 + k, GIB)).collect();
        let now = T0 + n * 1_000;
        history.push(&gpu_tick(now, vec![with_rows(gpu(0), rows)]));
        let procs =
            (0..100).map(|k| cuda(process(10 + n as u32 * 100 + k, "python"), &[0])).collect();
        history.push(&proc_tick(now + 100, host(), procs));
    }
    let (runs, rows) = history.weight();
    assert!(rows <= 1_200, "{rows} rows");
    assert!(runs <= 10_000, "{runs} runs");
}

#[test]
fn sixteen_gpus_of_four_hundred_processes_leave_bounded_memory() {
    let mut history = History::new();
    let rows = |gpu: u64, n: u64| {
        let bytes = |k: u64| (1 + (n * 7 + k) % 90) << 20;
        (0..400).map(|k| row((1_000 + gpu * 400 + k) as u32, bytes(k))).collect()
    };
    for n in 0..240_u64 {
        let gpus = (0..16).map(|g| with_rows(gpu(g as u32), rows(g, n))).collect();
        history.push(&gpu_tick(T0 + n * 1_000, gpus));
    }
    let (runs, rows) = history.weight();
    assert_eq!(rows, 6_400);
    assert!(runs <= 1_600_000, "{runs} runs");
    let view = View::build(&history, &moment(T0 + 300_000));
    assert_eq!(view.holders.len(), 6_400);
}

#[test]
fn endless_gpus_are_bounded() {
    let mut history = History::new();
    for n in 0..2_000_u64 {
        history.push(&gpu_tick(T0 + n * 1_000, vec![gpu(n as u32)]));
    }
    assert!(history.gpus().count() <= 160);
    assert!(history.gpu(&uuid(1_999)).is_some(), "the newest is known");
}

#[test]
fn a_peak_and_a_past_belong_to_one_process_not_to_its_pid() {
    let mut history = History::new();
    let mut second = cuda(process(10, "python"), &[0]);
    for n in 0..40_u64 {
        let now = T0 + n * 1_000;
        let rows = match n {
            0..10 => vec![row(10, 9 * GIB)],
            25.. => vec![row(10, GIB)],
            _ => vec![],
        };
        if n == 25 {
            second.id.start_ticks += 1;
        }
        let procs = if rows.is_empty() { vec![] } else { vec![second.clone()] };
        history.push(&gpu_tick(now, vec![with_rows(gpu(0), rows)]));
        history.push(&proc_tick(now + 100, host(), procs));
    }
    let view = View::build(&history, &moment(T0 + 40_000));
    assert_eq!(view.holders[0].peak, Reading::Value(Bytes::gib(1)));
    let gone: Vec<_> = history.gone().map(|track| track.peak).collect();
    assert_eq!(gone, [Some(Bytes::gib(9))]);
}

#[test]
fn how_busy_it_was_is_a_mean_and_only_the_newest_stretch_moves() {
    let mut history = History::new();
    let busy = |sm: f32| {
        let mut sample = gpu(0);
        let memory = Percent(sm / 2.0);
        sample.utilization = Reading::Value(Utilization { sm: Percent(sm), memory });
        sample
    };
    let uuid = gpu(0).uuid;
    // The machine has run for 100 s: 60 s of which nothing is known, 20 s at 80 %, then 20 % and 40 %
    // by turns.
    for second in 60..80_u64 {
        history.push(&gpu_tick(second * 1_000, vec![busy(80.0)]));
    }
    for second in 80..100_u64 {
        let sm = if second % 2 == 0 { 20.0 } else { 40.0 };
        history.push(&gpu_tick(second * 1_000, vec![busy(sm)]));
    }
    // Thirty stretches of 20 s, the newest of which ends at 100 s.
    let points = history.busy_chart(&uuid, 99_000, 600_000, 30).unwrap();
    assert_eq!(points.len(), 30);
    let told: Vec<_> = points.iter().map(|point| (point.sm, point.memory)).collect();
    assert!(told[..28].iter().all(|point| *point == (None, None)), "{told:?}");
    assert_eq!(told[28..], [(Some(80), Some(40)), (Some(30), Some(15))]);
    // A second later a stretch has begun; those before it are the same.
    history.push(&gpu_tick(100_000, vec![busy(100.0)]));
    let later = history.busy_chart(&uuid, 100_000, 600_000, 30).unwrap();
    assert_eq!(later[27..29], points[28..30]);
    assert_eq!(later[29].sm, Some(100));
    assert_eq!(history.busy_chart(&uuid, 100_000, 600_000, 0), None);
    // Where the finest figures do not reach back to the first stretch there are no means.
    history.push(&gpu_tick(2_000_000, vec![busy(100.0)]));
    assert!(history.busy_chart(&uuid, 2_000_000, 600_000, 30).is_some());
    assert_eq!(history.busy_chart(&uuid, 2_000_000, 3_600_000, 30), None);
}

/// One row of graphics beside one of compute for five seconds; then `away` for a minute.
fn with_a_hole(away: impl Fn() -> GpuSample, back: Option<&GpuSample>) -> History {
    let there = || {
        let mut drawn = row(11, 2 * GIB);
        drawn.kinds = ProcKinds { graphics: true, ..ProcKinds::default() };
        with_rows(gpu(0), vec![row(10, GIB), drawn])
    };
    let mut history = History::new();
    for second in 0..80_u64 {
        let sample = match second {
            0..5 => there(),
            5..65 => away(),
            _ => back.cloned().unwrap_or_else(there),
        };
        history.push(&gpu_tick(T0 + second * 1_000, vec![sample]));
    }
    history
}

#[test]
fn of_whom_a_list_that_was_not_read_may_name_nothing_is_known() {
    let failed = Some(Why::NoPermission);
    let unread = || GpuSample {
        unread_lists: UnreadLists { graphics: failed, mps: None },
        ..with_rows(gpu(0), vec![row(10, GIB)])
    };
    let none = || GpuSample { processes: Reading::Absent(Why::NoPermission), ..gpu(0) };
    let now = T0 + 79_000;
    let pids = |history: &History, second: u64| {
        let view = at(history, now, T0 + second * 1_000);
        let mut pids: Vec<_> = view.holders.iter().map(|holder| holder.pid.0).collect();
        pids.sort_unstable();
        pids
    };
    for gone in [false, true] {
        let (after, back) =
            if gone { (vec![], Some(with_rows(gpu(0), vec![]))) } else { (vec![10, 11], None) };
        for (history, in_hole) in [
            (with_a_hole(unread, back.as_ref()), vec![10]),
            (with_a_hole(none, back.as_ref()), vec![]),
        ] {
            assert_eq!(pids(&history, 3), [10, 11]);
            for second in [6, 30, 63] {
                assert_eq!(pids(&history, second), in_hole, "second {second}");
            }
            assert_eq!(pids(&history, 70), after);
            let chart = history.holder_chart(&uuid(0), Pid(11), T0, T0 + 80_000, 16);
            let known: Vec<_> = chart.iter().map(Option::is_some).collect();
            let wanted: Vec<_> = (0..16).map(|n| n == 0 || (!gone && n >= 13)).collect();
            assert_eq!(known, wanted);
        }
    }
}

#[test]
fn a_gpu_that_was_not_told_of_has_a_hole() {
    let mut history = History::new();
    for second in 0..30_u64 {
        let there = !(5..20).contains(&second);
        let gpus = if there { vec![gpu(0), gpu(1)] } else { vec![gpu(0)] };
        history.push(&gpu_tick(T0 + second * 1_000, gpus));
    }
    let chart = history.gpu_chart(&uuid(1), T0, T0 + 30_000, 6);
    let known: Vec<_> = chart.iter().map(Option::is_some).collect();
    assert_eq!(known, [true, false, false, false, true, true]);
}
