//! Earlier moments of a session: what is found at one is told of it alone, and the present goes on
//! behind it.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod verdict_support;

use verdict_support::*;
use vramlens::analyze::{Class, Freshness};
use vramlens::ids::Stamp;
use vramlens::rules::Wanted;
use vramlens::runtime::clock;
use vramlens::runtime::live::{From, Live};
use vramlens::runtime::options::Options;
use vramlens::sample::Tick;
use vramlens::ui::theme::Look;
use vramlens::ui::{App, Position, Settings};
use vramlens::units::Bytes;

fn app() -> App {
    App::new(Settings { look: Look::new(false, false), ..Settings::default() })
}

/// A session whose driver never answers: its ticks are those of the test.
fn session() -> Live {
    let library = "/nonexistent/libnvidia-ml.so.1".to_owned();
    let options = Options { interval_ms: 1_000, library, ..Options::default() };
    Live::open(app(), options, From::Driver).unwrap()
}

/// One of the last seconds.
fn at(tick: Tick, at: Stamp) -> Tick {
    match tick {
        Tick::Gpus(tick) => Tick::Gpus(vramlens::sample::GpuTick { at, ..tick }),
        Tick::Procs(tick) => Tick::Procs(vramlens::sample::ProcTick { at, ..tick }),
        other => other,
    }
}

/// What is concluded and shown.
fn concluded(live: &mut Live, position: Position) -> (Vec<String>, Option<Bytes>, usize) {
    live.app.position = position;
    live.age();
    live.rebuild();
    let findings = live.findings.iter().map(|found| found.headline.clone()).collect();
    (findings, live.app.fit.as_ref().map(|fit| fit.free), live.view.holders.len())
}

#[test]
fn findings_and_the_fit_are_those_of_the_moment_that_is_shown() {
    let mut live = session();
    live.app.wanted_size = Some(Wanted::anywhere(Bytes::gib(100)));
    let now = clock::now();
    let of = |back_ms: u64| Stamp {
        boot_ms: now.boot_ms.saturating_sub(back_ms),
        wall_ms: now.wall_ms - back_ms,
    };
    for second in (0..12).rev() {
        // One runs until six seconds ago; then another is there, and is dead.
        let (rows, procs) = match second {
            6.. => (vec![row(10, GIB)], vec![init(), cuda(process(10, "python"), &[0])]),
            _ => (vec![row(20, 90 * GIB)], vec![init()]),
        };
        live.push(at(gpu_tick(T0, vec![with_rows(gpu(0), rows)]), of(second * 1_000)));
        live.push(at(proc_tick(T0, host(), procs), of(second * 1_000)));
        concluded(&mut live, Position::Live);
    }
    let present = concluded(&mut live, Position::Live);
    let left = Position::At(live.view.at.boot_ms);
    let held = concluded(&mut live, left);
    assert_eq!(held, present);
    let before = Position::At(of(9_000).boot_ms);
    let then = concluded(&mut live, before);
    assert!(then.0 != held.0 && then.1 != held.1, "{then:?} is not {held:?}");
    for _ in 0..2 {
        assert_eq!(concluded(&mut live, left), held);
        assert_eq!(concluded(&mut live, before), then);
    }
    // What is wanted by now is what is asked of the moment that is held.
    concluded(&mut live, left);
    live.app.wanted_size = None;
    assert_eq!(concluded(&mut live, left).1, None);
    live.app.wanted_size = Some(Wanted::anywhere(Bytes::gib(100)));
    assert_eq!(concluded(&mut live, left), held);
}

#[test]
fn while_an_earlier_moment_is_shown_the_present_is_judged() {
    let mut live = session();
    let push = |live: &mut Live, procs: &[_]| {
        let now = clock::now();
        live.push(at(gpu_tick(T0, vec![with_rows(gpu(0), vec![row(10, GIB)])]), now));
        live.push(at(proc_tick(T0, host(), procs.to_vec()), now));
        live.rebuild();
        live.unseen(true)
    };
    let alive = [init(), cuda(process(10, "python"), &[0])];
    assert_eq!(push(&mut live, &alive).map(|_| ()), None, "what is shown is the present");
    let left = Position::At(live.view.at.boot_ms);
    concluded(&mut live, left);
    let shown = live.view.holders.len();
    push(&mut live, &[init()]);
    push(&mut live, &[init()]);
    let view = push(&mut live, &[init()]).unwrap();
    assert_eq!(view.freshness, Freshness::Live);
    let class = view.holders[0].verdict.class;
    assert!(matches!(class, Class::Exiting | Class::Ghost), "{class:?}");
    assert_eq!((live.view.freshness.clone(), live.view.holders.len()), (Freshness::Past, shown));
    assert_eq!(live.unseen(false), None, "nobody wants it");
}
