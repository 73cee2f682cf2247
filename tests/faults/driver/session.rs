//! A machine over the stand-in driver, and what a session with it has come to.

use std::sync::{Arc, LazyLock};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::ids::Stamp;
use vramlens::report::json::Snapshot;
use vramlens::report::{Style, text, triage};
use vramlens::rules;
use vramlens::runtime::options::blank;
use vramlens::sample::{ProcTick, Tick, redact};
use vramlens::source::nvml::{NvmlOptions, NvmlSource};
use vramlens::source::{Progress, Source, SourceError, Wants};
use vramlens::ui::{App, Context, draw_on};

use crate::fake::Fake;
use crate::procs::{Process, Tree};

/// Two unlike GPUs, so that a figure of one cannot pass for the other's.
pub(super) const MACHINE: &str = "
[[gpu]]
total = 150323855360
unaccounted = 3221225472
utilization = [37, 12]
temperature = 54
power_mw = 311000
fan = 41
pcie = [1200, 3400]
process = [
  { pid = 9001, bytes = 21474836480, sm = 35 },
  { pid = 9003, bytes = 524288000, kinds = \"G\" },
  { pid = 9004, bytes = 734003200, kinds = \"M\" },
]
[[gpu]]
total = 85899345920
utilization = [88, 61]
temperature = 47
power_mw = 222000
process = [{ pid = 9002, bytes = 7516192768, sm = 77 }]
";

const START_MS: u64 = 5_000_000;

pub(super) fn stamp(n: u64) -> Stamp {
    let boot_ms = START_MS + n * 1000;
    Stamp { boot_ms, wall_ms: 1_700_000_000_000 + boot_ms }
}

pub(super) fn fixed() -> Stamp {
    stamp(0)
}

/// What a session has come to, in every form that a person or a program reads.
pub(super) struct Shown {
    pub(super) screen: String,
    pub(super) triage: String,
    pub(super) frame: String,
    pub(super) json: Value,
}

pub(super) struct Session {
    source: NvmlSource,
    pub(super) history: History,
    pub(super) ticks: u64,
    pub(super) error: Option<SourceError>,
}

impl Session {
    pub(super) fn new(fake: &Fake) -> Self {
        Self::over(fake, false, fixed)
    }

    /// With a watch for events, by a clock that says when the watch was last heard of.
    pub(super) fn watching(fake: &Fake, clock: fn() -> Stamp) -> Self {
        Self::over(fake, true, clock)
    }

    fn over(fake: &Fake, events: bool, clock: fn() -> Stamp) -> Self {
        let options = NvmlOptions { library: fake.library().into(), pid_max: 4_194_304, events };
        let source = NvmlSource::new(options, Arc::new(Progress::default()), clock);
        Self { source, history: History::new(), ticks: 0, error: None }
    }

    /// One look, a second after the one before.
    pub(super) fn look(&mut self) {
        self.ticks += 1;
        let now = stamp(self.ticks);
        match self.source.next(now, Wants::ALL) {
            Ok(Some(tick)) => {
                self.error = None;
                self.history.push(&tick);
            }
            Ok(None) => panic!("a driver has no end"),
            Err(error) => self.error = Some(error),
        }
        self.history.push(&Tick::Procs(ProcTick { at: now, ..PROCESSES.clone() }));
    }

    pub(super) fn json(&self) -> Value {
        let view = View::build(&self.history, &blank(stamp(self.ticks), 1000));
        serde_json::to_value(Snapshot::new(&view, redact)).unwrap()
    }

    pub(super) fn shown(&self) -> Shown {
        let moment = blank(stamp(self.ticks), 1000);
        let view = View::build(&self.history, &moment);
        let findings = rules::run(&view);
        let area = Rect::new(0, 0, 220, 60);
        let mut buffer = Buffer::empty(area);
        let context = Context { view: &view, history: &self.history, findings: &findings };
        draw_on(&mut buffer, area, &App::default(), context);
        let style = Style { width: 200, ..Style::new(redact) };
        Shown {
            screen: rows(&buffer, area),
            triage: triage::text(&view, &findings, &style),
            frame: text::frame(&view, &style),
            json: self.json(),
        }
    }
}

pub(super) fn rows(buffer: &Buffer, area: Rect) -> String {
    let mut text = String::new();
    for y in 0..area.height {
        for x in 0..area.width {
            text.push_str(buffer[(x, y)].symbol());
        }
        text.push('\n');
    }
    text
}

/// What the kernel says of the processes, whatever the driver does.
static PROCESSES: LazyLock<ProcTick> = LazyLock::new(|| {
    let tree = Tree::new();
    for (pid, comm) in [(9001, "trainer"), (9002, "server"), (9003, "window"), (9004, "mps")] {
        let process = Process::cuda(pid, comm);
        tree.put(&process.with(|process| {
            let gpu = process.files.iter_mut().find(|file| *file == "dev/nvidia0");
            if let Some(gpu) = gpu.filter(|_| pid == 9002) {
                "dev/nvidia1".clone_into(gpu);
            }
        }));
    }
    tree.look(&[9001, 9002, 9003, 9004])
});
