//! Asking an inference server about its memory on its own interface, on loopback.
//!
//! Only software that is known is asked, only with `GET`, only on a port that the very process
//! listens on, and only in this network namespace: in another one the same port can be another
//! program's. Nothing else is sent: no cookie, no key, no body. No answer is trusted in length or
//! content.

mod answers;
mod http;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::ids::{Pid, Stamp};
use crate::sample::{Reading, ServerSample, ServerSoftware, Why};

/// What asking one server may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskLimits {
    /// All requests together.
    pub time: Duration,
    /// Bytes of one answer; metrics of a large server have some 200 KB.
    pub bytes: usize,
}

impl Default for AskLimits {
    fn default() -> Self {
        Self { time: Duration::from_millis(300), bytes: 2 << 20 }
    }
}

/// A path and what its answer adds to the sample; whether it did.
type Question = (&'static str, fn(&[u8], &mut ServerSample) -> bool);

struct Row {
    software: ServerSoftware,
    /// Whether a process with these arguments is it.
    is: fn(&Arguments<'_>) -> bool,
    questions: &'static [Question],
}

const TABLE: [Row; 5] = [
    Row {
        software: ServerSoftware::Vllm,
        is: |a| a.program("vllm") || a.module("vllm.entrypoints"),
        questions: &[("/metrics", answers::vllm)],
    },
    Row {
        software: ServerSoftware::Sglang,
        is: |a| a.module("sglang.launch_server") || a.program("sglang"),
        questions: &[("/metrics", answers::sglang)],
    },
    Row {
        software: ServerSoftware::LlamaCpp,
        is: |a| a.program("llama-server"),
        questions: &[
            ("/props", answers::llama_props),
            ("/slots", answers::llama_slots),
            ("/metrics", answers::llama_metrics),
        ],
    },
    Row {
        software: ServerSoftware::Ollama,
        is: |a| a.program("ollama") && a.has("serve"),
        questions: &[("/api/ps", answers::ollama)],
    },
    Row {
        software: ServerSoftware::ComfyUi,
        is: |a| a.in_folder("comfyui", "main.py"),
        questions: &[("/system_stats", answers::comfyui)],
    },
];

/// A command line; hostile text.
struct Arguments<'a>(&'a [String]);

impl Arguments<'_> {
    /// The first arguments only: the rest may hold anything, a prompt too.
    fn first(&self) -> impl Iterator<Item = &str> {
        self.0.iter().take(6).map(String::as_str)
    }

    fn program(&self, name: &str) -> bool {
        self.first().take(2).any(|text| text.rsplit('/').next() == Some(name))
    }

    fn module(&self, name: &str) -> bool {
        let mut before = "";
        self.first()
            .any(|text| std::mem::replace(&mut before, text) == "-m" && text.starts_with(name))
    }

    fn has(&self, word: &str) -> bool {
        self.first().any(|text| text == word)
    }

    fn in_folder(&self, folder: &str, file: &str) -> bool {
        self.first().any(|text| {
            let mut parts = text.rsplit('/');
            parts.next() == Some(file)
                && parts.any(|part| part.to_ascii_lowercase().starts_with(folder))
        })
    }
}

/// Which software a process is, by its arguments; `None` for one that is not asked. The process
/// that listens is not always the one that holds the memory: a server's workers are its children.
pub fn software(arguments: &[String]) -> Option<ServerSoftware> {
    let arguments = Arguments(arguments);
    TABLE.iter().find(|row| (row.is)(&arguments)).map(|row| row.software)
}

/// Asks a process that listens on these ports; the first port with an answer counts. It blocks for
/// the time of the limits: it belongs on a thread of its own.
///
/// Absent: `NotSupported`, no port answered as this software does, or another network namespace;
/// `NoPermission`, a key is asked for, or the namespace cannot be read; `TimedOut`.
pub fn ask(
    software: ServerSoftware,
    pid: Pid,
    ports: &[u16],
    now: Stamp,
    limits: &AskLimits,
) -> Reading<ServerSample> {
    match same_network(Path::new("/proc"), pid) {
        Ok(true) => ask_here(software, ports, now, limits),
        Ok(false) => Reading::Absent(Why::NotSupported),
        Err(why) => Reading::Absent(why),
    }
}

fn same_network(proc: &Path, pid: Pid) -> Result<bool, Why> {
    let namespace = |of: &str| {
        std::fs::read_link(proc.join(of).join("ns/net"))
            .map_err(|error| crate::allocator::maps::fault(&error).why())
    };
    Ok(namespace(&pid.to_string())? == namespace("self")?)
}

/// Asks on loopback, whoever listens there.
fn ask_here(
    software: ServerSoftware,
    ports: &[u16],
    now: Stamp,
    limits: &AskLimits,
) -> Reading<ServerSample> {
    let until = Instant::now() + limits.time;
    let questions =
        TABLE.iter().find(|row| row.software == software).map_or(&[][..], |r| r.questions);
    let mut why = Why::NotSupported;
    // A server listens on one port or a few; a browser's debugger on none that is known.
    for &port in ports.iter().take(8) {
        let mut sample = empty(software, port, now);
        let mut answered = false;
        for (path, read) in questions {
            match http::get(port, path, until, limits.bytes) {
                Ok(body) => answered |= read(&body, &mut sample),
                Err(Why::NotSupported) => {}
                Err(other) => why = other,
            }
        }
        if answered {
            return Reading::Value(sample);
        }
    }
    Reading::Absent(why)
}

const fn empty(software: ServerSoftware, port: u16, at: Stamp) -> ServerSample {
    ServerSample {
        at,
        software,
        port,
        kv_used: None,
        kv_tokens: None,
        running: None,
        waiting: None,
        slots: None,
        models: Vec::new(),
        devices: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
