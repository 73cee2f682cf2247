//! Rows of earlier moments: what is shown of them is of that moment, or is said not to be kept.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use verdict_support::*;
use vramlens::analyze::timeline::Timeline;
use vramlens::analyze::{Freshness, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::report::json::Snapshot;
use vramlens::runtime::conclude::Conclusions;
use vramlens::runtime::replaying::{Past, Replaying};
use vramlens::sample::{GpuSample, Reading, Why, redact};
use vramlens::ui::rows::RowKey;
use vramlens::ui::theme::Look;
use vramlens::ui::{App, Context, Page, Settings, Tab, draw_on};
use vramlens::units::Bytes;

/// The GPU with so much more in use.
fn used(mut gpu: GpuSample, gib: u64) -> GpuSample {
    gpu.memory = Reading::Value(memory(80 * GIB, gib * GIB, GIB));
    gpu
}

fn look_back(history: &History, conclusions: &mut Conclusions, now: u64, at_ms: u64) -> View {
    let mut earlier = moment(now);
    earlier.at_boot_ms = Some(at_ms);
    conclusions.view(history, &earlier)
}

#[test]
fn who_left_a_list_within_a_wide_cell_is_there_once() {
    let (mut history, mut conclusions) = (History::new(), Conclusions::default());
    let process = cuda(process(10, "python"), &[0]);
    let mut left = None;
    // In whole minutes, so that the list is left in the middle of a cell of ten seconds.
    let begin = T0;
    for second in (0..100_u64).chain((100..1_400).step_by(5)) {
        let now = begin + second * 1_000;
        let rows = if second < 65 { vec![row(10, 5 * GIB)] } else { vec![] };
        history.push(&gpu_tick(now, vec![used(with_rows(gpu(0), rows), 5)]));
        history.push(&proc_tick(now + 20, host(), vec![init(), process.clone()]));
        let view = conclusions.view(&history, &moment(now + 100));
        if second == 67 {
            left = Some(view);
        }
    }
    let left = left.unwrap();
    assert_eq!(left.holders.iter().map(|one| one.listed).collect::<Vec<_>>(), [false]);
    let again = look_back(&history, &mut conclusions, begin + 1_400_000, left.at.boot_ms);
    let rows: Vec<_> = again.holders.iter().map(|one| (one.pid, one.listed)).collect();
    assert_eq!(rows, [(Pid(10), true)]);
    let later = look_back(&history, &mut conclusions, begin + 1_400_000, begin + 75_000);
    let rows: Vec<_> = later.holders.iter().map(|one| (one.pid, one.listed)).collect();
    assert_eq!(rows, [(Pid(10), false)]);
}

#[test]
fn what_a_process_did_at_an_earlier_moment_is_said_not_to_be_kept() {
    let (mut history, mut conclusions) = (History::new(), Conclusions::default());
    let mut process = cuda(process(10, "python"), &[0]);
    process.model_files = vec!["/m/model.safetensors".to_owned()];
    (process.written, process.listens) = (Some(Bytes::gib(3)), vec![8_000]);
    for second in 0..20_u64 {
        let now = T0 + second * 1_000;
        process.threads = 7 + second as u32;
        history.push(&gpu_tick(now, vec![with_rows(gpu(0), vec![row(10, GIB)])]));
        history.push(&proc_tick(now + 20, host(), vec![init(), process.clone()]));
        conclusions.view(&history, &moment(now + 100));
    }
    let now = T0 + 19_200;
    let words = |view: &View| {
        let mut app = App::new(Settings { look: Look::new(false, false), ..Settings::default() });
        app.selected = Some(RowKey::of(&view.holders[0]));
        app.page = Page::Detail(Tab::Workload);
        let (line, rest) = (Timeline::new(), Replaying::default());
        let past = Past::new(&history, &line, &rest);
        let area = Rect::new(0, 0, 160, 50);
        let mut buffer = Buffer::empty(area);
        draw_on(&mut buffer, area, &app, Context { view, history: &past, findings: &[] });
        let line = |y| (0..160).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
        (0..50).map(line).collect::<String>()
    };
    let json = |view: &View| {
        let json = serde_json::to_value(Snapshot::new(view, redact)).unwrap();
        let holder = json["holders"][0].clone();
        ["state", "parent_pid", "facts_age_ms"].map(|key| holder[key].clone())
    };
    let present = conclusions.view(&history, &moment(now));
    let shown = words(&present);
    assert!(shown.contains("/m/model.safetensors") && shown.contains("26"), "{shown}");
    assert!(json(&present).iter().all(|value| value.get("absent").is_none()), "{present:?}");

    let then = look_back(&history, &mut conclusions, now, T0 + 5_100);
    assert_eq!(then.holders[0].process.as_ref().unwrap().at_work().why(), Some(Why::NotKept));
    for value in json(&then) {
        assert_eq!(value["absent"], "not_kept");
    }
    let shown = words(&then);
    assert!(!shown.contains("none open or mapped"), "{shown}");
    for name in ["model file", "threads", "has written", "listens on"] {
        let line = shown.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains(&Why::NotKept.words()), "{line}");
    }
}

#[test]
fn while_no_answer_comes_the_last_one_keeps_its_verdict() {
    let (mut history, mut conclusions) = (History::new(), Conclusions::default());
    let of = |now| {
        let mut moment = moment(now);
        moment.idle_after_ms = 15_000;
        moment
    };
    let procs = vec![init(), cuda(process(10, "python"), &[0])];
    let mut last = None;
    for second in 0..20_u64 {
        let now = T0 + second * 1_000;
        let row = if second < 10 { busy(row(10, GIB)) } else { row(10, GIB) };
        history.push(&gpu_tick(now, vec![with_rows(gpu(0), vec![row])]));
        history.push(&proc_tick(now, host(), procs.clone()));
        last = Some(conclusions.view(&history, &of(now)));
    }
    let last = last.unwrap();
    for second in 23..100 {
        let hangs = conclusions.view(&history, &of(T0 + second * 1_000));
        assert!(matches!(hangs.freshness, Freshness::Stalled { .. }));
    }
    let hangs = conclusions.view(&history, &of(T0 + 100_000));
    assert_ne!(hangs.holders[0].verdict.class, last.holders[0].verdict.class);
    let again = look_back(&history, &mut conclusions, T0 + 101_000, T0 + 19_000);
    assert_eq!(again.holders[0].verdict.class, last.holders[0].verdict.class);
}
