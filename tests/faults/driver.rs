//! Every call of the stand-in driver, with every error code, a stall, and in pairs: through the real
//! source, the history, the view and the rules to the screen, the report and the JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;
use vramlens::analyze::View;
use vramlens::history::History;
use vramlens::ids::Stamp;
use vramlens::report::json::Snapshot;
use vramlens::report::{Style, text, triage};
use vramlens::rules;
use vramlens::runtime::options::{absent_below, blank};
use vramlens::sample::{ProcTick, Tick, redact};
use vramlens::source::nvml::{NvmlOptions, NvmlSource};
use vramlens::source::{Progress, Source, SourceError, Wants};
use vramlens::ui::{App, Context, draw_on};

use crate::fake::Fake;
use crate::procs::{Process, Tree};

/// Two unlike GPUs, so that a figure of one cannot pass for the other's.
const MACHINE: &str = "
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

fn stamp(n: u64) -> Stamp {
    let boot_ms = START_MS + n * 1000;
    Stamp { boot_ms, wall_ms: 1_700_000_000_000 + boot_ms }
}

fn fixed() -> Stamp {
    stamp(0)
}

/// The names of all functions of the stand-in, from its source: a new one is walked too.
fn table() -> Vec<String> {
    let sources = [
        include_str!("../fake_nvml/exports.rs"),
        include_str!("../fake_nvml/lists.rs"),
        include_str!("../fake_nvml/events.rs"),
    ];
    let mut names = BTreeSet::new();
    for source in sources {
        for rest in source.split("nvml").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                names.insert(format!("nvml{name}"));
            }
        }
    }
    assert!(names.len() >= 45, "the table was not found: {names:?}");
    names.into_iter().collect()
}

/// Every code of the library (`nvmlReturn_t`) but success, one that it does not know yet, and
/// `NVML_ERROR_UNKNOWN`.
fn codes() -> impl Iterator<Item = u32> {
    (1..=31).chain([999])
}

/// What a session has come to, in every form that a person or a program reads.
struct Shown {
    screen: String,
    triage: String,
    frame: String,
    json: Value,
}

struct Session {
    source: NvmlSource,
    history: History,
    ticks: u64,
    error: Option<SourceError>,
}

impl Session {
    fn new(fake: &Fake) -> Self {
        let options =
            NvmlOptions { library: fake.library().into(), pid_max: 4_194_304, events: false };
        let source = NvmlSource::new(options, Arc::new(Progress::default()), fixed);
        Self { source, history: History::new(), ticks: 0, error: None }
    }

    /// One look, a second after the one before.
    fn look(&mut self) {
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

    fn shown(&self) -> Shown {
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
            json: serde_json::to_value(Snapshot::new(&view, redact)).unwrap(),
        }
    }
}

fn rows(buffer: &Buffer, area: Rect) -> String {
    let mut text = String::new();
    for y in 0..area.height {
        for x in 0..area.width {
            text.push_str(buffer[(x, y)].symbol());
        }
        text.push('\n');
    }
    text
}

/// Each figure and text of a JSON by its place; members of lists by who they are.
fn leaves(value: &Value, place: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                leaves(value, &format!("{place}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (n, value) in list.iter().enumerate() {
                let key = ["gpu", "index", "pid"].map(|key| &value[key]);
                let name = key.iter().filter(|key| !key.is_null());
                let name: Vec<_> = name.map(ToString::to_string).collect();
                let name = if name.is_empty() { n.to_string() } else { name.join("-") };
                leaves(value, &format!("{place}/{name}"), found);
            }
        }
        other => drop(found.insert(place.to_owned(), other.clone())),
    }
}

/// What differs from one look to another by itself, counts what is there, or says how a figure came
/// about: no figure of the machine.
fn is_figure(place: &str) -> bool {
    let own = [
        "/at",
        "/at_ms",
        "/freshness/",
        "age_ms",
        "driver_cost",
        "/counts/",
        "/memory/api",
        "/evidence/",
    ];
    let own = own.iter().chain(&["stalled_ms", "/scan/", "/growth/", "since_ms", "_causes/"]);
    let mut own = own.chain(&["processes_without_bytes", "/call", "dropped", "nonsense", "/xid"]);
    !own.any(|part| place.contains(part))
}

fn all(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    leaves(value, "", &mut found);
    found
}

/// The numbers in a text: words with a digit, without their unit and what stands about them.
fn figures(text: &str) -> BTreeSet<&str> {
    let ends = |c: char| c.is_whitespace() || "│┃▏▕/".contains(c);
    let words = text.split(ends).map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()));
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether a text gives a reason.
fn has_reason(text: &str) -> bool {
    let reasons = [
        "not supported here",
        "no permission",
        "too old",
        "is lost",
        "lost",
        "no answer",
        "not asked",
        "not yet",
        "made no sense",
        "failed with",
        "unknown layout",
        "stalled",
        "not loaded",
        "misses a library",
        "another version",
        "different versions",
        "no GPU",
        "error",
        "cannot be loaded",
    ];
    reasons.iter().any(|reason| text.contains(reason))
}

/// What is wrong with what is shown, measured against the truth.
fn wrongs(shown: &Shown, ticks: u64, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let said = shown.json.to_string();
    // Codes 3 (not supported) and 26 (deprecated): a card that has no such list, or one that could not be read, which is said. Without the
    // memory's figures nothing can be missing from them.
    let none = ["Graphics", "MPSCompute"].iter().any(|list| case.contains(list));
    let no_memory = shown.json["gpus"]
        .as_array()
        .is_some_and(|gpus| gpus.iter().any(|gpu| gpu["memory"]["used_bytes"].is_object()));
    let partial = said.contains("list_incomplete")
        || none && (case.contains(" 3") || case.contains(" 26") || no_memory);
    let truths = TRUTH.after(ticks, partial);
    let known: Vec<_> = truths.iter().map(|truth| all(&truth.json)).collect();
    let nowhere = said.contains("GPU-unknown");
    for (place, value) in all(&shown.json) {
        if !value.is_number() || !is_figure(&place) {
            continue;
        }
        // Where no GPU's device file is known, it is not told whose an open one is.
        if nowhere && place.starts_with("/holders/") {
            continue;
        }
        if !known.iter().any(|known| known.get(&place) == Some(&value)) {
            wrong.push(format!(
                "{case}: JSON {place} is {value}, in truth {:?}",
                known[0].get(&place)
            ));
        }
    }
    let texts = truths.iter().flat_map(|truth| [&truth.screen, &truth.triage, &truth.frame]);
    let true_figures: BTreeSet<&str> = texts.flat_map(|text| figures(text)).collect();
    for (name, text) in
        [("screen", &shown.screen), ("triage", &shown.triage), ("frame", &shown.frame)]
    {
        for figure in figures(text) {
            // The number of the error, and counts.
            let small = figure.parse::<u32>().is_ok_and(|n| n <= 31 || n == 999);
            // When a GPU was lost.
            let time = figure.matches(':').count() == 2;
            if !true_figures.contains(figure) && !small && !time {
                wrong.push(format!("{case}: the {name} shows {figure}"));
            }
        }
    }
    wrong
}

/// Whether what is absent is said to be.
fn unsaid(shown: &Shown, error: Option<&SourceError>, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let gpus = shown.json["gpus"].as_array().unwrap();
    let missing = |gpu: &Value| {
        gpu["memory"]["used_bytes"].is_object() || gpu["listed_processes"].is_object()
    };
    if gpus.iter().any(missing) {
        for (name, text) in [("screen", &shown.screen), ("triage", &shown.triage)] {
            if !has_reason(text) {
                wrong.push(format!("{case}: the {name} gives no reason:\n{text}"));
            }
        }
    }
    if gpus.is_empty() {
        // The view's page of a machine without a driver is made of this.
        let tree = tempfile::tempdir().unwrap();
        let said = error.map(|error| absent_below(tree.path(), error, "libnvidia-ml.so.1").text());
        if !said.as_deref().is_some_and(has_reason) {
            wrong.push(format!("{case}: no GPU and no reason: {said:?}"));
        }
    }
    wrong
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

/// What is right to show after so many looks.
struct Truth {
    /// With all that the driver can say, and with its old call for memory, whose `used` counts what
    /// it reserves.
    whole: [Vec<Shown>; 2],
    /// Without the list of graphics processes, of MPS clients, of both: right where that is said.
    partial: [Vec<Shown>; 3],
}

static TRUTH: LazyLock<Truth> = LazyLock::new(|| {
    let session = |fault: &str| {
        let fake = Fake::new(&format!("{MACHINE}{fault}"));
        let mut session = Session::new(&fake);
        let look = |_| {
            session.look();
            session.shown()
        };
        (0..80).map(look).collect::<Vec<_>>()
    };
    let (graphics, mps) = ("nvmlDeviceGetGraphicsRunning*", "nvmlDeviceGetMPSComputeRunning*");
    let both = error(graphics, None, 4) + &error(mps, None, 4);
    Truth {
        whole: [session(""), session(&error("nvmlDeviceGetMemoryInfo_v2", None, 3))],
        partial: [
            session(&error(graphics, None, 4)),
            session(&error(mps, None, 4)),
            session(&both),
        ],
    }
});

impl Truth {
    fn after(&self, ticks: u64, partial: bool) -> Vec<&Shown> {
        let n = ticks as usize - 1;
        let partial = self.partial.iter().filter(|_| partial);
        self.whole.iter().chain(partial).map(|all| &all[n]).collect()
    }
}

/// Walks cases: the fault from the start, the cure, and the fault in the middle.
fn walk(cases: impl Iterator<Item = (String, String)>) -> usize {
    let fake = Fake::new(MACHINE);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (case, fault) in cases {
        // Not found: no sample since the last look, because every process was idle.
        if case.starts_with("nvmlDeviceGetProcessUtilization 6") {
            continue;
        }
        count += 1;
        fake.change(&format!("{MACHINE}{fault}"));
        let mut session = Session::new(&fake);
        for _ in 0..2 {
            session.look();
        }
        let shown = session.shown();
        wrong.extend(wrongs(&shown, session.ticks, &format!("{case} at the start")));
        wrong.extend(unsaid(&shown, session.error.as_ref(), &format!("{case} at the start")));
        // Where it is away the library is left alone for ever longer.
        fake.change(MACHINE);
        let healed = (0..64).any(|_| {
            session.look();
            let gpus = session.history.gpu_tick().map_or(&[][..], |tick| &tick.gpus);
            session.error.is_none()
                && gpus.len() == 2
                && gpus.iter().all(|gpu| gpu.memory.value().is_some() && gpu.unlisted().is_none())
        });
        if !healed {
            wrong.push(format!("{case}: it does not recover: {:?}", session.error));
            continue;
        }
        fake.change(&format!("{MACHINE}{fault}"));
        session.look();
        let shown = session.shown();
        wrong.extend(wrongs(&shown, session.ticks, &format!("{case} in the middle")));
        wrong.extend(unsaid(&shown, session.error.as_ref(), &format!("{case} in the middle")));
        assert_eq!(fake.complaint(), None);
    }
    let some: Vec<_> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} wrongs, among them\n{}", wrong.len(), some.join("\n"));
    count
}

fn error(call: &str, gpu: Option<u32>, code: u32) -> String {
    let gpu = gpu.map_or_else(String::new, |gpu| format!("gpu = {gpu}\n"));
    format!("[[error]]\ncall = \"{call}\"\n{gpu}code = {code}\n")
}

#[test]
fn every_call_with_every_code() {
    let calls = table();
    let cases = calls.iter().flat_map(|call| {
        codes().map(move |code| (format!("{call} {code}"), error(call, None, code)))
    });
    assert!(walk(cases) >= 45 * 32 - 1);
}

#[test]
fn one_gpu_with_the_codes_that_mean_most() {
    let calls = table();
    // Uninitialised, not supported, no permission, too small, no driver, timeout, lost, unknown.
    let codes = [1, 3, 4, 7, 9, 10, 15, 999];
    let cases = calls.iter().flat_map(|call| {
        codes.map(|code| (format!("{call} {code} on GPU 1"), error(call, Some(1), code)))
    });
    assert!(walk(cases) >= 45 * 8);
}

#[test]
fn pairs_of_calls() {
    const PAIRS: [&str; 9] = [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetCount_v2",
    ];
    let mut cases = Vec::new();
    for (n, first) in PAIRS.iter().enumerate() {
        for second in &PAIRS[n + 1..] {
            for (one, other) in [(4, 999), (15, 3), (999, 15), (2, 1)] {
                let fault = error(first, None, one) + &error(second, Some(0), other);
                cases.push((format!("{first} {one} and {second} {other}"), fault));
            }
        }
    }
    assert_eq!(walk(cases.into_iter()), 144);
}

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
