//! Each call hangs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vramlens::analyze::View;
use vramlens::report::json::Snapshot;
use vramlens::rules;
use vramlens::runtime::options::blank;
use vramlens::sample::redact;
use vramlens::source::nvml::{NvmlOptions, NvmlSource};
use vramlens::source::{Progress, Source, Wants};
use vramlens::ui::{App, Context, draw_on};

use super::figures::{all, is_figure};
use super::session::{MACHINE, Session, fixed, rows, stamp};
use super::table;
use crate::fake::Fake;

/// Each call hangs, on a GPU and in general: the screen names it, and no figure is wrong.
#[test]
fn every_call_that_hangs_is_named() {
    let mut hung = 0;
    for call in table() {
        // The wrapper makes it within the opening, and that is named.
        if call == "nvmlSystemGetDriverVersion" {
            continue;
        }
        let fake = Fake::new(MACHINE);
        let mut session = Session::new(&fake);
        session.look();
        session.look();
        let truth = session.shown();
        let progress = Arc::new(Progress::default());
        let options =
            NvmlOptions { library: fake.library().into(), pid_max: 4_194_304, events: false };
        let mut source = NvmlSource::new(options, Arc::clone(&progress), fixed);
        fake.change(&format!("{MACHINE}[[stall]]\ncall = \"{call}\"\n"));
        let asked = std::thread::spawn(move || {
            let first = source.next(stamp(3), Wants::ALL);
            (first, source)
        });
        let end = Instant::now() + Duration::from_secs(20);
        let in_it = || progress.current().filter(|in_flight| in_flight.call == call);
        // It comes to the call, or ends without it.
        while in_it().is_none() && !asked.is_finished() {
            assert!(Instant::now() < end, "{call}: {:?}", progress.current());
            std::thread::yield_now();
        }
        if let Some(in_flight) = in_it().filter(|_| !asked.is_finished()) {
            hung += 1;
            let moment = vramlens::analyze::Moment {
                in_flight: Some((in_flight.call.to_owned(), in_flight.gpu, stamp(2).boot_ms)),
                ..blank(stamp(20), 1000)
            };
            let view = View::build(&session.history, &moment);
            let findings = rules::run(&view);
            let area = Rect::new(0, 0, 220, 60);
            let mut buffer = Buffer::empty(area);
            let context = Context { view: &view, history: &session.history, findings: &findings };
            draw_on(&mut buffer, area, &App::default(), context);
            let screen = rows(&buffer, area);
            assert!(screen.contains(&format!("stalled in {call}")), "{call}:\n{screen}");
            let json = serde_json::to_value(Snapshot::new(&view, redact)).unwrap();
            let known = all(&truth.json);
            for (place, value) in all(&json) {
                let figure = value.is_number() && is_figure(&place);
                assert!(!figure || known.get(&place) == Some(&value), "{call}: {place} {value}");
            }
        }
        fake.change(MACHINE);
        let (first, source) = asked.join().unwrap();
        assert!(first.is_ok(), "{call}: {first:?}");
        drop(source);
    }
    assert!(hung >= 25, "only {hung} calls were come to");
}
