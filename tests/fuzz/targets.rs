//! What is read from outside, one function for each form of it. Each takes any bytes at all and
//! must neither panic nor hang, and what it gives for a screen must be fit for one. Driven by
//! `cargo fuzz` and, over stored inputs and changed ones, by `tests/fuzz_corpus.rs`.
#![allow(dead_code, reason = "each fuzz program uses one of them")]

use std::io::{Cursor, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::watch;
use vramlens::allocator::maps::Maps;
use vramlens::allocator::servers::{self, AskLimits};
use vramlens::analyze::View;
use vramlens::cli::args::Common;
use vramlens::cli::config::resolve;
use vramlens::history::History;
use vramlens::ids::{Pid, Stamp};
use vramlens::model::gguf::Gguf;
use vramlens::model::{quantisation, safetensors, shape_of_config, shape_of_gguf};
use vramlens::record::{Reader, Stream};
use vramlens::report::{Style, json::Snapshot, triage};
use vramlens::runtime::options::blank;
use vramlens::runtime::serve::{Counters, Page, http};
use vramlens::sample::{ServerSoftware, Tick, redact};
use vramlens::ui::{App, Context, draw_on};
use vramlens::{oom, rules};

#[path = "../support/procs.rs"]
mod procs;

/// A target and what it is called.
pub type Target = (&'static str, fn(&[u8]));

/// All of them; a file in `fuzz_targets` for each.
pub const TARGETS: [Target; 15] = [
    ("oom_text", oom_text),
    ("gguf", gguf),
    ("safetensors", safetensors),
    ("model_config", model_config),
    ("configuration", configuration),
    ("theme", theme),
    ("recording", recording),
    ("remote_stream", remote_stream),
    ("proc_files", proc_files),
    ("maps", maps),
    ("http_request", http_request),
    ("server_answers", server_answers),
    ("command_line", command_line),
    ("moment", moment),
    ("filter", filter),
];

/// Nothing in it moves a cursor or turns the order of what is read.
fn harmless(text: &str) {
    let bad = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
    };
    assert!(!text.chars().any(bad), "{text:?}");
}

/// An error message, or a log.
pub fn oom_text(data: &[u8]) {
    let explanation = oom::explain(data);
    harmless(&oom::report(&explanation));
    let _ = serde_json::to_string(&explanation);
}

/// The header of a model file.
pub fn gguf(data: &[u8]) {
    if let Ok(gguf) = Gguf::read(Cursor::new(data)) {
        let _ = shape_of_gguf(&gguf);
    }
}

/// The header of another.
pub fn safetensors(data: &[u8]) {
    let _ = safetensors::read(Cursor::new(data));
}

/// `config.json` of a model.
pub fn model_config(data: &[u8]) {
    if let Ok(value) = serde_json::from_slice(data) {
        let _ = (shape_of_config(&value), quantisation(&value));
    }
}

/// The configuration.
pub fn configuration(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, data).expect("a file");
    let common = Common { config: Some(path), ..Common::default() };
    if let Err(error) = resolve(&common, |_| None) {
        harmless(&error.to_string().replace('\t', " "));
    }
}

/// A theme.
pub fn theme(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Err(error) = vramlens::ui::theme::parse("t.toml", text)
    {
        harmless(&error.to_string());
    }
}

/// What a recording or a far end says, up to the screen.
fn shown(ticks: impl Iterator<Item = Tick>) {
    let mut history = History::new();
    for tick in ticks.take(200) {
        history.push(&tick);
    }
    let Some(latest) = history.latest() else { return };
    let view = View::build(&history, &blank(latest, 1000));
    let findings = rules::run(&view);
    let area = Rect::new(0, 0, 120, 40);
    let mut buffer = Buffer::empty(area);
    let context = Context { view: &view, history: &history, findings: &findings };
    draw_on(&mut buffer, area, &App::default(), context);
    for cell in buffer.content() {
        harmless(cell.symbol());
    }
    harmless(&triage::text(&view, &findings, &Style::new(redact)));
    let _ = serde_json::to_string(&Snapshot::new(&view, redact));
}

/// A recording.
pub fn recording(data: &[u8]) {
    if let Ok(reader) = Reader::new(data) {
        shown(reader.take(400).filter_map(Result::ok));
    }
}

/// What another machine sends.
pub fn remote_stream(data: &[u8]) {
    let arrivals = Stream::new(data).take(400);
    shown(arrivals.filter_map(|arrival| match arrival {
        Ok(vramlens::record::Arrival::Tick(tick)) => Some(*tick),
        _ => None,
    }));
}

/// Files below `/proc/PID`: the first byte says which, the rest is what it holds.
pub fn proc_files(data: &[u8]) {
    const FILES: [&str; 9] =
        ["stat", "status", "cmdline", "environ", "cgroup", "io", "maps", "wchan", "task/4000/stat"];
    static TREE: LazyLock<Mutex<procs::Tree>> = LazyLock::new(|| Mutex::new(procs::Tree::new()));
    let Some((which, rest)) = data.split_first() else { return };
    let tree = TREE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    tree.put(&procs::Process::cuda(4000, "trainer"));
    tree.write(&format!("proc/4000/{}", FILES[usize::from(*which) % FILES.len()]), rest);
    let tick = tree.look(&[4000]);
    shown(std::iter::once(Tick::Procs(tick)));
}

/// The memory map of a process.
pub fn maps(data: &[u8]) {
    let _ = Maps::parse(data).is_writable(0x7f00_0000_0000);
}

/// A server that answers with any bytes.
pub fn http_request(data: &[u8]) {
    static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
        let (pages, receiver) = watch::channel(Page::empty());
        // It stays open as long as the program.
        std::mem::forget(pages);
        let counters = Arc::new(Counters::default());
        let site = http::Site { pages: receiver, token: Some("t0ken".into()), counters };
        let listener = http::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))]).expect("a port");
        http::spawn(listener, site).expect("a server")
    });
    let ask = |request: &[u8], ends: bool| {
        let mut stream = TcpStream::connect(*SERVER).expect("a connection");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let _ = stream.write_all(request);
        // Who has no more to say has no more to hear: the half of a head is at its end.
        if ends {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let answer = ask(data, true);
    let allowed = answer.is_empty() || answer.starts_with(b"HTTP/1.");
    assert!(allowed, "{}", String::from_utf8_lossy(&answer));
    let well = ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", false);
    assert!(well.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&well));
}

const SOFTWARE: [ServerSoftware; 5] = [
    ServerSoftware::Vllm,
    ServerSoftware::Sglang,
    ServerSoftware::LlamaCpp,
    ServerSoftware::Ollama,
    ServerSoftware::ComfyUi,
];

/// What an inference server answers on its own interface: any bytes.
pub fn server_answers(data: &[u8]) {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static ANSWER: LazyLock<(u16, Arc<Mutex<Vec<u8>>>)> = LazyLock::new(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let answer = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&answer);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                ASKED.fetch_add(1, Ordering::Relaxed);
                let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                let _ = stream.read(&mut [0; 2048]);
                let body = shared.lock().map(|answer| answer.clone()).unwrap_or_default();
                let _ = stream.write_all(&body);
            }
        });
        (port, answer)
    });
    let Some((which, rest)) = data.split_first() else { return };
    let (port, answer) = &*ANSWER;
    // Every other time the head is right and only the body is any.
    let head = if which & 0x80 == 0 { "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" } else { "" };
    if let Ok(mut answer) = answer.lock() {
        *answer = [head.as_bytes(), rest].concat();
    }
    let software = SOFTWARE[usize::from(which & 0x7f) % SOFTWARE.len()];
    let now = Stamp { boot_ms: 1, wall_ms: 1 };
    let before = ASKED.load(Ordering::Relaxed);
    // A machine that has other things to do changes nothing.
    let limits = AskLimits { time: Duration::from_secs(20), ..AskLimits::default() };
    let _ = servers::ask(software, Pid(std::process::id()), &[*port], now, &limits);
    assert!(ASKED.load(Ordering::Relaxed) > before, "nobody was asked");
}

/// Arguments of a process, one a line.
pub fn command_line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let arguments: Vec<String> = text.split('\0').map(ToOwned::to_owned).collect();
    assert_eq!(redact(&arguments).len(), arguments.len());
}

/// A time that somebody types.
pub fn moment(data: &[u8]) {
    use vramlens::analyze::moment::{Span, parse};
    let at = |boot_ms| Stamp { boot_ms, wall_ms: 1_700_000_000_000 + boot_ms };
    let span = Span {
        from: at(1000),
        to: at(90_000_000),
        back_from: at(90_000_000),
        on_from: at(5000),
        utc_offset_s: 3600,
    };
    if let Ok(boot_ms) = parse(&String::from_utf8_lossy(data), &span) {
        assert!((1000..=90_000_000).contains(&boot_ms));
    }
}

/// A filter that somebody types.
pub fn filter(data: &[u8]) {
    let _ = vramlens::ui::filter::Filter::parse(&String::from_utf8_lossy(data));
}
