//! Earlier moments: one moment gives one screen, however it was come to, and what was judged then is
//! what is shown of it.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use verdict_support::*;
use vramlens::analyze::timeline::Timeline;
use vramlens::analyze::{Class, Holder, View};
use vramlens::history::History;
use vramlens::ids::Pid;
use vramlens::record::{Form, Header, Reader, Recording, Redaction, Writer};
use vramlens::rules;
use vramlens::runtime::conclude::Conclusions;
use vramlens::runtime::live::DEMO;
use vramlens::runtime::replaying::{Past, Replaying};
use vramlens::runtime::rewind::Rewind;
use vramlens::sample::{GpuProc, ProcSample, Reading, Tick, Why};
use vramlens::ui::rows::RowKey;
use vramlens::ui::theme::Look;
use vramlens::ui::time::Play;
use vramlens::ui::{App, Context, Position, Settings, draw_on};
use vramlens::units::{Bytes, Percent};

/// A recording of all that it holds.
struct Tape {
    ticks: Vec<Tick>,
    line: Timeline,
    rewind: Rewind,
}

impl Tape {
    fn new(bytes: &'static [u8]) -> Self {
        let ticks: Vec<Tick> = Reader::new(bytes).unwrap().map(Result::unwrap).collect();
        let (mut history, mut line) = (History::new(), Timeline::new());
        for tick in &ticks {
            history.push(tick);
            line.follow(&history);
        }
        let rewind = Rewind::new(Recording::built_in(bytes).unwrap());
        Self { ticks, line, rewind }
    }

    /// Moments of looks at the GPUs.
    fn moments(&self) -> Vec<u64> {
        let gpus = self.ticks.iter().filter(|tick| matches!(tick, Tick::Gpus(_)));
        gpus.map(|tick| tick.at().boot_ms).collect()
    }

    fn played(&self, at_ms: u64) -> History {
        let mut history = History::new();
        for tick in self.ticks.iter().take_while(|tick| tick.at().boot_ms <= at_ms) {
            history.push(tick);
        }
        history
    }

    /// The frame without the marks of the position: the first line and the last two.
    fn frame(&self, history: &History, at_ms: u64, position: Position, size: (u16, u16)) -> String {
        let settings = Settings { look: Look::new(false, false), ..Settings::default() };
        let mut app = App::new(settings);
        (app.play, app.position) = (Some(Play::at_speed(1.0)), position);
        app.recording = Some("story".to_owned());
        app.stacked = at_ms.is_multiple_of(2);
        let mut moment = moment(at_ms);
        moment.now.wall_ms = history.latest().unwrap().wall_ms;
        moment.replay = true;
        let view = View::build(history, &moment);
        let findings = rules::run_for(&view, None);
        let rest = Replaying::default();
        let past = Past::new(history, &self.line, &rest);
        let context = Context { view: &view, history: &past, findings: &findings };
        let area = Rect::new(0, 0, size.0, size.1);
        let mut buffer = Buffer::empty(area);
        draw_on(&mut buffer, area, &app, context);
        let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
        (1..size.1 - 2).map(line).collect()
    }

    /// That moments give the same, gone to in this order, as they do when they are played.
    fn same_at(&mut self, order: &[u64]) -> Result<(), TestCaseError> {
        for at_ms in order {
            let again = self.rewind.to(*at_ms).unwrap();
            let played = self.played(*at_ms);
            for size in [(80, 24), (160, 50)] {
                let then = self.frame(&again, *at_ms, Position::At(*at_ms), size);
                prop_assert_eq!(then, self.frame(&played, *at_ms, Position::Live, size));
            }
        }
        Ok(())
    }
}

/// Four minutes: a run that dies in the second one and leaves two survivors, another that grows,
/// uses the GPU on and off, and goes.
fn story(seed: u64) -> &'static [u8] {
    let header = Header::new(stamp(T0), 1_000);
    let redaction = Redaction::secrets(vramlens::sample::redact);
    let mut writer = Writer::new(Vec::new(), Form::Frames, header, redaction).unwrap();
    for second in 0..240 {
        for tick in looks(second, seed) {
            writer.push(&tick).unwrap();
        }
    }
    writer.finish().unwrap().leak()
}

fn survivor(pid: u32) -> ProcSample {
    let mut process = cuda(process(pid, "python"), &[0]);
    (process.group, process.session, process.parent) = (Pid(10), Pid(10), Pid(1));
    process.cpu = Reading::Value(Percent(pid as f32));
    process
}

fn looks(second: u64, seed: u64) -> [Tick; 2] {
    let now = T0 + second * 1_000;
    let mut rows: Vec<GpuProc> = vec![row(10, 18 * GIB)];
    let mut procs = vec![init(), survivor(11), survivor(12)];
    if second < 90 {
        procs.push(cuda(process(10, "python"), &[0]));
    }
    if second < 200 {
        let grown = row(20, (1 + second * (1 + seed % 7) / 40) * GIB);
        rows.push(if second % 50 < 20 { busy(grown) } else { grown });
        procs.push(cuda(process(20, "train"), &[0]));
    }
    [gpu_tick(now, vec![with_rows(gpu(0), rows)]), proc_tick(now + 20 + seed % 900, host(), procs)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_moment_of_the_demo_is_one_screen_however_it_is_come_to(
        picks in prop::collection::vec(0.0..1.0_f64, 4),
    ) {
        let mut tape = Tape::new(DEMO);
        let moments = tape.moments();
        let mut order = Vec::new();
        for part in picks {
            // A jump, three steps back from there, one forward.
            let n = ((moments.len() - 4) as f64 * part) as usize + 3;
            order.extend([n, n - 1, n - 2, n - 3, n - 2].map(|n| moments[n]));
        }
        tape.same_at(&order)?;
    }

    #[test]
    fn a_moment_of_a_made_up_session_is_one_screen_however_it_is_come_to(
        seed in any::<u64>(),
        picks in prop::collection::vec(0_u64..240_000, 8),
    ) {
        let mut tape = Tape::new(story(seed));
        let order: Vec<u64> = picks.iter().map(|ms| T0 + ms).collect();
        tape.same_at(&order)?;
    }
}

#[test]
fn a_moment_of_the_demo_has_its_verdicts_and_nothing_of_its_future() {
    let mut tape = Tape::new(DEMO);
    tape.rewind.to(u64::MAX).unwrap();
    // 07:44:29.
    let at_ms = 178_886;
    let history = tape.rewind.to(at_ms).unwrap();
    let view = View::build(&history, &moment(at_ms));
    let of = |pid| view.holders.iter().find(|holder| holder.pid == Pid(pid)).unwrap();
    assert_eq!(of(603).verdict.class, Class::Ghost);
    assert_eq!(of(603).age_ms, Reading::Absent(Why::Gone));
    let dead = of(603).process.as_ref().unwrap();
    assert_eq!((dead.cpu, dead.rss), (Reading::Absent(Why::Gone), Reading::Absent(Why::Gone)));
    assert_eq!(view.zombies().0, 2);
    let most = of(644).peak.get().unwrap();
    let chart = history.holder_chart(&of(644).gpu, Pid(644), 0, at_ms + 1, 200);
    assert_eq!(Some(most), chart.iter().flatten().map(|point| point.used).max());
}

#[test]
fn checkpoints_are_bounded_and_steps_read_few_ticks() {
    let long: Vec<Tick> = (0..8_000).map(|n| gpu_tick(T0 + n * 1_000, vec![gpu(0)])).collect();
    let header = Header::new(stamp(T0), 1_000);
    let redaction = Redaction::secrets(vramlens::sample::redact);
    let mut writer = Writer::new(Vec::new(), Form::Frames, header, redaction).unwrap();
    for tick in &long {
        writer.push(tick).unwrap();
    }
    let bytes: &'static [u8] = writer.finish().unwrap().leak();
    let recording = Recording::built_in(bytes).unwrap();
    for passed in [0, 1, 63, 64, 65, 127, 6_400, 7_999, 8_000] {
        let rest: Vec<Tick> = recording.ticks_after(passed).unwrap().collect();
        assert_eq!(rest.len() as u64, 8_000 - passed);
        assert_eq!(rest.first(), long.get(passed as usize));
    }
    let mut rewind = Rewind::new(recording);
    for n in [7_999, 7_500, 100, 4_000, 7_499] {
        let history = rewind.to(T0 + n * 1_000).unwrap();
        assert_eq!(history.latest(), Some(stamp(T0 + n * 1_000)));
        let (kept, runs) = rewind.weight();
        assert!(kept <= 56 && runs <= 6_000_000, "{kept} checkpoints of {runs} runs");
    }
}

#[test]
fn a_way_that_is_left_is_not_read_again() {
    let ticks: Vec<Tick> = (0..4_000).map(|n| gpu_tick(T0 + n * 1_000, vec![gpu(0)])).collect();
    let header = Header::new(stamp(T0), 1_000);
    let redaction = Redaction::secrets(vramlens::sample::redact);
    let mut writer = Writer::new(Vec::new(), Form::Frames, header, redaction).unwrap();
    for tick in &ticks {
        writer.push(tick).unwrap();
    }
    let bytes: &'static [u8] = writer.finish().unwrap().leak();
    let mut rewind = Rewind::new(Recording::built_in(bytes).unwrap());
    let asked = std::cell::RefCell::new(Vec::new());
    let mut go = |until: u64| {
        asked.borrow_mut().clear();
        let found = rewind.to_unless(T0 + 3_999_000, |ticks| {
            asked.borrow_mut().push(ticks);
            ticks >= until
        });
        (found.is_break(), asked.borrow().first().copied(), asked.borrow().last().copied())
    };
    assert_eq!(go(1_000), (true, Some(64), Some(1_024)));
    assert_eq!(go(2_000), (true, Some(1_088), Some(2_048)));
    assert_eq!(go(u64::MAX), (false, Some(2_112), Some(3_968)));
    assert_eq!(rewind.to(T0 + 3_999_000).unwrap().latest(), Some(stamp(T0 + 3_999_000)));
}

/// What a screen shows of a verdict.
fn shown(holder: &Holder) -> (u32, Class, bool, Option<u32>, usize, Reading<Bytes>) {
    let verdict = &holder.verdict;
    let id = holder.id.map(|id| id.pid.0);
    (holder.pid.0, verdict.class, verdict.zombie, id, holder.survivors.len(), holder.bytes)
}

#[test]
fn a_session_keeps_what_was_judged() {
    let (mut history, mut conclusions) = (History::new(), Conclusions::default());
    let mut then = Vec::new();
    for second in 0..240 {
        for tick in looks(second, 3) {
            history.push(&tick);
        }
        let at = T0 + second * 1_000 + 100;
        then.push(conclusions.view(&history, &moment(at)));
    }
    let now = T0 + 240_000;
    for view in &then {
        let mut earlier = moment(now);
        earlier.at_boot_ms = Some(view.at.boot_ms);
        let again = conclusions.view(&history, &earlier);
        let sorted = |view: &View| {
            let mut all: Vec<_> = view.holders.iter().map(shown).collect();
            all.sort_by_key(|row| row.0);
            all
        };
        assert_eq!(sorted(&again), sorted(view), "{}", view.at.boot_ms);
        assert_eq!(again.zombies(), view.zombies());
        for holder in &again.holders {
            let was = view.holders.iter().find(|one| one.pid == holder.pid).unwrap();
            assert_eq!(holder.age_ms, was.age_ms);
            assert_eq!(holder.peak, was.peak, "{}", holder.pid);
            let dead = was.id.is_none();
            let why = Some(if dead { Why::Gone } else { Why::NotKept });
            assert_eq!(holder.process.as_ref().unwrap().cpu.why(), why);
        }
        let of = |view: &View| {
            let findings = rules::run_for(view, None);
            findings
                .into_iter()
                .filter(|found| found.rule == "leftovers")
                .map(|found| found.headline)
                .filter(|headline| headline.contains("zombie"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&again), of(view));
    }
    assert!(conclusions.weight().0 < 60, "{:?}", conclusions.weight());
}

#[test]
fn of_what_nobody_judged_it_is_said_that_it_is_not_kept() {
    let mut history = History::new();
    for second in 0..240 {
        for tick in looks(second, 3) {
            history.push(&tick);
        }
    }
    let mut earlier = moment(T0 + 240_000);
    earlier.at_boot_ms = Some(T0 + 150_000);
    let view = Conclusions::default().view(&history, &earlier);
    let dead = view.holders.iter().find(|holder| holder.pid == Pid(10)).unwrap();
    assert_eq!(dead.verdict.class, Class::Unknown);
    assert!(dead.verdict.evidence[0].text.contains("not kept"), "{:?}", dead.verdict);
    assert_eq!(dead.age_ms, Reading::Absent(Why::NotKept), "it was found dead later");
    assert_eq!(dead.sm, Reading::Absent(Why::NotKept));
    assert_eq!(view.procs_age_ms, None);
}

#[test]
fn verdicts_of_a_session_of_days_are_bounded() {
    let (mut history, mut conclusions) = (History::new(), Conclusions::default());
    for n in 0..15_000_u64 {
        let at = T0 + n * 1_000;
        // One comes and goes each second.
        let pid = 1_000 + (n % 30_000) as u32;
        history.push(&gpu_tick(at, vec![with_rows(gpu(0), vec![row(pid, GIB)])]));
        if n.is_multiple_of(2) {
            conclusions.view(&history, &moment(at + 10));
        }
        let (runs, rows) = conclusions.weight();
        assert!(runs <= 8_192 && rows <= 2_048, "{runs} of {rows}");
    }
    let mut earlier = moment(T0 + 15_000_000);
    earlier.at_boot_ms = Some(T0 + 14_990_000);
    let recent = conclusions.view(&history, &earlier);
    assert!(recent.procs_age_ms.is_some(), "the newest are kept");
}

#[test]
fn a_survivor_holds_what_it_shares_and_a_ghost_uses_nothing() {
    let mut tape = Tape::new(story(0));
    let at_ms = T0 + 150_000;
    let history = tape.rewind.to(at_ms).unwrap();
    let view = View::build(&history, &moment(at_ms));
    let screen = |pid: u32, view: &View| {
        let mut app = App::new(Settings { look: Look::new(false, false), ..Settings::default() });
        let holder = view.holders.iter().find(|holder| holder.pid == Pid(pid)).unwrap();
        app.selected = Some(RowKey::of(holder));
        let rest = Replaying::default();
        let past = Past::new(&history, &tape.line, &rest);
        let context = Context { view, history: &past, findings: &[] };
        let area = Rect::new(0, 0, 160, 50);
        let mut buffer = Buffer::empty(area);
        draw_on(&mut buffer, area, &app, context);
        let line = |y| (0..160).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n";
        (0..50).map(line).collect::<String>()
    };
    let shown = screen(12, &view);
    assert!(shown.contains("holds          18.0 GiB of 10, shared with 11"), "{shown}");
    let shown = screen(10, &view);
    assert!(shown.contains("CPU            the process has ended"), "{shown}");
    assert!(shown.contains("host memory    the process has ended"), "{shown}");
    let mut alone = view.clone();
    alone.holders.retain(|holder| holder.pid != Pid(10));
    let shown = screen(12, &alone);
    assert!(shown.contains("holds          not told for this one"), "{shown}");
}

#[test]
fn a_chart_is_called_as_long_as_its_axis() {
    // Three minutes after boot a chart of ten minutes has three.
    let tape = Tape::new(DEMO);
    let at_ms = 179_886;
    let frame = |size| tape.frame(&tape.played(at_ms), at_ms, Position::Live, size);
    assert!(frame((160, 50)).contains("last 3 min"), "{}", frame((160, 50)));
    assert!(frame((80, 24)).contains("  3 min "), "{}", frame((80, 24)));
    assert!(frame((80, 24)).contains("changing, -1.4 GiB in a minute"), "{}", frame((80, 24)));
}
