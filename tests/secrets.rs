//! Secrets in a command line, on every way out of the program; and names and arguments that are
//! hostile or very long, up to the screen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/fake.rs"]
mod fake;
mod verdict_support;

use std::process::{Child, Command, Stdio};

use fake::Fake;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use verdict_support::{
    GIB, T0, cuda, gpu, gpu_tick, host, moment, proc_tick, process, row, with_rows,
};
use vramlens::analyze::View;
use vramlens::analyze::alerts::{AlertRules, Alerts};
use vramlens::history::History;
use vramlens::record::{Form, Header, Redaction, Writer};
use vramlens::report::json::Snapshot;
use vramlens::report::prometheus::{Exposition, Format, Own, render};
use vramlens::report::{Style, text, triage};
use vramlens::rules;
use vramlens::sample::{ProcSample, Reading, Why, redact};
use vramlens::ui::{App, Context, draw_on};

/// Arguments, and the part of them that nobody else may see.
const SECRETS: [(&[&str], &str); 28] = [
    (&["--token", "s3cretA1"], "s3cretA1"),
    (&["--token=s3cretA2"], "s3cretA2"),
    (&["--api-key", "s3cretA3"], "s3cretA3"),
    (&["--openai_api_key=s3cretA4"], "s3cretA4"),
    (&["--db.password", "s3cretA5"], "s3cretA5"),
    (&["--client-secret=s3cretA6"], "s3cretA6"),
    (&["HF_TOKEN=s3cretB1"], "s3cretB1"),
    (&["AWS_SECRET_ACCESS_KEY=s3cretB2"], "s3cretB2"),
    (&["PGPASSWORD=s3cretB3"], "s3cretB3"),
    (&["+trainer.wandb.api_key=s3cretB4"], "s3cretB4"),
    (&["https://ana:s3cretC1@host/path"], "s3cretC1"),
    (&["https://host/p?x=1&access_token=s3cretC2"], "s3cretC2"),
    (&["https://host/p?X-Amz-Signature=s3cretC3"], "s3cretC3"),
    (&["git+https://s3cretC4@github.com/a/b"], "s3cretC4"),
    (&["https://hooks.slack.com/services/T0/B0/s3cretC5"], "s3cretC5"),
    (&["redis://:s3cretC6@cache:6379/0"], "s3cretC6"),
    (&["Authorization: Bearer s3cretD1"], "s3cretD1"),
    (&["Authorization: Basic s3cretD2"], "s3cretD2"),
    (&["X-Api-Key: s3cretD3"], "s3cretD3"),
    (&["Bearer", "s3cretD4"], "s3cretD4"),
    (&[r#"{"password":"s3cretD5"}"#], "s3cretD5"),
    (&[r#"{"password":"a, b,s3cretD6"}"#], "s3cretD6"),
    (&["hf_aBcDeFgHiJkLmNoPqRsT1234"], "aBcDeFgHiJkLmNoPqRsT1234"),
    (&["sk-proj-aBcDeFgHiJkLmNoPqRsT5678"], "aBcDeFgHiJkLmNoPqRsT5678"),
    (&["ghp_aBcDeFgHiJkLmNoPqRsT9012"], "aBcDeFgHiJkLmNoPqRsT9012"),
    (&["AKIAABCDEFGHIJKLMNOP"], "ABCDEFGHIJKLMNOP"),
    (&["--x=nvapi-aBcDeFgHiJkLmNoPqRsT3456"], "aBcDeFgHiJkLmNoPqRsT3456"),
    (&["run --key s3cretE1 && curl -H 'api-key: s3cretE2'"], "s3cretE"),
];

fn arguments() -> Vec<String> {
    let all = SECRETS.iter().flat_map(|row| row.0.iter());
    all.map(|argument| (*argument).to_owned()).collect()
}

fn keeps_them(way: &str, said: &str) {
    for (arguments, secret) in SECRETS {
        assert!(!said.contains(secret), "{way} shows the secret of {arguments:?}");
    }
}

/// A session in which a process holds memory under these arguments and this name.
fn session(name: &str, arguments: Vec<String>) -> (History, View) {
    let mut holder: ProcSample = cuda(process(4711, name), &[0]);
    holder.cmdline = Reading::Value(arguments);
    let gpus = vec![with_rows(gpu(0), vec![row(4711, 9 * GIB)])];
    let mut history = History::new();
    for second in 0..4 {
        let at = T0 + second * 1_000;
        history.push(&gpu_tick(at, gpus.clone()));
        history.push(&proc_tick(at + 100, host(), vec![holder.clone()]));
    }
    let view = View::build(&history, &moment(T0 + 3_200));
    (history, view)
}

/// Everything that leaves the program as text.
fn ways(view: &View) -> Vec<(&'static str, String)> {
    let findings = rules::run(view);
    let style = Style { width: 4_000, ..Style::new(redact) };
    let own = Own {
        cpu_seconds: Reading::Absent(Why::NotAsked),
        resident_bytes: Reading::Absent(Why::NotAsked),
        ticks: 1,
        failures: 0,
        requests: 0,
        refused: 0,
        cut_connections: 0,
    };
    let of = Exposition { view, findings: &findings, own: &own, most_holders: 100 };
    vec![
        ("a frame", text::frame(view, &style)),
        ("the report", triage::text(view, &findings, &style)),
        ("JSON", serde_json::to_string(&Snapshot::new(view, redact)).unwrap()),
        ("the report as JSON", {
            serde_json::to_string(&triage::Triage::new(view, &findings, redact)).unwrap()
        }),
        ("metrics", render(&of, Format::Prometheus)),
        ("open metrics", render(&of, Format::OpenMetrics)),
    ]
}

#[test]
fn no_report_shows_a_secret() {
    let (_, view) = session("python", [vec!["python".to_owned()], arguments()].concat());
    for (way, said) in ways(&view) {
        keeps_them(way, &said);
    }
    // Each way does show the process.
    assert!(ways(&view)[0].1.contains("--token"));
}

#[test]
fn no_recording_holds_a_secret() {
    let mut holder = cuda(process(4711, "python"), &[0]);
    holder.cmdline = Reading::Value(arguments());
    let tick = proc_tick(T0, host(), vec![holder]);
    for form in [Form::Plain, Form::Frames] {
        let header = Header::new(verdict_support::stamp(T0), 1000);
        let mut writer = Writer::new(Vec::new(), form, header, Redaction::secrets(redact)).unwrap();
        writer.push(&tick).unwrap();
        let bytes = writer.finish().unwrap();
        let reader = vramlens::record::Reader::new(&bytes[..]).unwrap();
        let said: String =
            reader.map(|tick| serde_json::to_string(&tick.unwrap()).unwrap()).collect();
        assert!(said.contains("--token"));
        keeps_them("a recording", &said);
    }
}

#[test]
fn no_alert_tells_a_secret() {
    for (arguments, secret) in SECRETS {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (_, mut view) = session("python", arguments);
        view.holders[0].verdict.zombie = true;
        let rules = AlertRules { zombie: true, ..AlertRules::default() };
        let told = Alerts::new(rules).look(&view);
        assert_eq!(told.len(), 1);
        assert!(!told[0].text.contains(secret), "{}", told[0].text);
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_command_prints_a_secret_of_a_real_process() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "read line", "job"]).args(arguments()).stdin(Stdio::piped());
    let holder = Running(shell.spawn().unwrap());
    let pid = holder.0.id().to_string();
    let machine = format!("[[gpu]]\nprocess = [{{ pid = {pid}, bytes = 9663676416 }}]\n");
    let fake = Fake::new(&machine);
    let log = fake.dir().join("log");
    let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has \
                 a total capacity of 140.00 GiB of which 1.00 GiB is free.\n";
    std::fs::write(&log, error).unwrap();
    let mut seen = 0;
    for args in [
        &["--once"][..],
        &["--json"],
        &["triage"],
        &["triage", "--json"],
        &["record", "-", "--for", "2s"],
        &["kill", "--dry-run", &pid],
        &["kill", "--dry-run", "--json", &pid],
        &["explain", log.to_str().unwrap()],
        &["explain", "--json", log.to_str().unwrap()],
        &["doctor"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_vramlens"))
            .args(args)
            .env("VRAMLENS_NVML_LIB", fake.library())
            .env("COLUMNS", "400")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        keeps_them(&args.join(" "), &said);
        seen += usize::from(said.contains(&pid));
    }
    assert!(seen >= 6, "the process was seen in {seen} answers only");
}

/// Sequences, directions, and marks without an end.
const HOSTILE: [&str; 6] = [
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "a\u{202e}gpj.exe\u{2066}b\u{2069}",
    "\u{9b}31mx\u{85}y\r\nGPU 9  NVIDIA",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{200b}\u{feff}",
    "\"} 1\nvramlens_gpu_memory_used{gpu=\"9\"} 7",
    "\\\" \\n \t | `$(reboot)` ' ; & < >",
];

fn harmless(way: &str, said: &str, lines: bool) {
    let bad = |c: char| {
        (c.is_control() && !(lines && c == '\n'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{feff}')
    };
    if let Some(at) = said.find(bad) {
        let part: String = said.get(at..).unwrap_or_default().chars().take(20).collect();
        panic!("{way}: {part:?}");
    }
}

fn drawn(history: &History, view: &View) -> Buffer {
    let findings = rules::run(view);
    let area = Rect::new(0, 0, 160, 50);
    let mut buffer = Buffer::empty(area);
    let context = Context { view, history, findings: &findings };
    draw_on(&mut buffer, area, &App::default(), context);
    buffer
}

#[test]
fn hostile_names_and_arguments_reach_nothing_that_obeys_them() {
    for hostile in HOSTILE {
        let arguments = vec!["python".to_owned(), hostile.to_owned(), hostile.repeat(40)];
        let (history, view) = session(hostile, arguments);
        for (way, said) in ways(&view) {
            // A line of metrics is ended by the writer alone.
            harmless(way, &said, true);
            if way.contains("metrics") {
                let made_up =
                    said.lines().any(|line| line.contains("{gpu=\"9\"}") && line.ends_with(" 7"));
                assert!(!made_up || line_is_label(&said), "{way}: a line of the process's own");
            }
        }
        for cell in drawn(&history, &view).content() {
            harmless("the screen", cell.symbol(), false);
        }
    }
}

/// A recording as text may be looked at on a terminal, and says the same all the same.
#[test]
fn hostile_names_in_a_recording_are_escaped_and_read_back_as_they_were() {
    for hostile in HOSTILE {
        let mut holder = cuda(process(4711, hostile), &[0]);
        holder.cmdline = Reading::Value(vec!["python".to_owned(), hostile.to_owned()]);
        let tick = proc_tick(T0, host(), vec![holder]);
        let header = Header::new(verdict_support::stamp(T0), 1000);
        let redaction = Redaction::secrets(redact);
        let mut writer = Writer::new(Vec::new(), Form::Plain, header, redaction).unwrap();
        writer.push(&tick).unwrap();
        let bytes = writer.finish().unwrap();
        harmless("a recording", std::str::from_utf8(&bytes).unwrap(), true);
        let mut reader = vramlens::record::Reader::new(&bytes[..]).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), tick, "{hostile:?}");
    }
}

/// The text stands escaped within the label of a line that begins as all do.
fn line_is_label(said: &str) -> bool {
    said.lines()
        .all(|line| line.is_empty() || line.starts_with('#') || line.starts_with("vramlens_"))
        && !said.lines().any(|line| line.starts_with("vramlens_gpu_memory_used{gpu=\"9\"}"))
}

#[test]
fn an_argument_of_a_megabyte_is_carried_and_cut() {
    let long = "x\u{1b}y".repeat(350_000);
    let token = format!("--token={long}");
    let (history, view) = session("python", vec!["python".to_owned(), long.clone(), token]);
    for (way, said) in ways(&view) {
        harmless(way, &said, true);
        assert!(!said.contains("--token=x"), "{way}");
        if way.contains("metrics") {
            assert!(said.len() < 200_000, "{way}: {} bytes", said.len());
        }
    }
    for cell in drawn(&history, &view).content() {
        harmless("the screen", cell.symbol(), false);
    }
}
