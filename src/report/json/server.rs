//! The part about inference servers.

use serde::Serialize;

use crate::report::clean::clean;
use crate::report::json::percent;
use crate::sample::{Reading, ServedModel, ServerSample, ServerSoftware, Why};

/// What an inference server says of itself: *reported*, not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerJson {
    /// `vllm`, `sglang`, `llama_cpp`, `ollama`, `comfy_ui`: what answered.
    pub software: Reading<ServerSoftware>,
    /// Where it was asked, on loopback.
    pub port: Reading<u16>,
    /// How much of its KV cache holds tokens.
    pub kv_used_percent: Reading<f64>,
    /// Tokens that its KV cache has room for.
    pub kv_tokens: Reading<u64>,
    /// Requests that are being worked on.
    pub running: Reading<u64>,
    /// Requests that wait.
    pub waiting: Reading<u64>,
    /// Requests that it takes at the same time.
    pub slots: Reading<u64>,
    /// Models in memory.
    pub models: Vec<ServedModelJson>,
}

/// A model that a server keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServedModelJson {
    /// Its name.
    pub name: String,
    /// Its memory, wherever it lies.
    pub size_bytes: Reading<u64>,
    /// Of that, on GPUs.
    pub in_vram_bytes: Reading<u64>,
    /// Its context, in tokens.
    pub context_tokens: Reading<u64>,
}

/// What a server does not tell.
fn told<T>(value: Option<T>) -> Reading<T> {
    value.ok_or(Why::NotSupported).into()
}

pub(super) fn server(said: &Reading<ServerSample>) -> ServerJson {
    let said = said.as_ref();
    let of = |pick: fn(&ServerSample) -> Option<u64>| said.and_then(|said| told(pick(said)));
    ServerJson {
        software: said.map(|said| said.software),
        port: said.map(|said| said.port),
        kv_used_percent: percent(said.and_then(|said| told(said.kv_used))),
        kv_tokens: of(|said| said.kv_tokens),
        running: of(|said| said.running),
        waiting: of(|said| said.waiting),
        slots: of(|said| said.slots),
        models: said
            .value()
            .map(|said| said.models.iter().map(model).collect())
            .unwrap_or_default(),
    }
}

fn model(model: &ServedModel) -> ServedModelJson {
    ServedModelJson {
        name: clean(&model.name),
        size_bytes: told(model.size.map(|bytes| bytes.0)),
        in_vram_bytes: told(model.in_vram.map(|bytes| bytes.0)),
        context_tokens: told(model.context_tokens),
    }
}
