//! What the servers answer. Each function adds what it understands and says whether it did.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::ids::CudaOrdinal;
use crate::sample::{ServedDevice, ServedModel, ServerSample};
use crate::units::{Bytes, Percent};

/// Of a list that a server sends.
const MOST_ENTRIES: usize = 256;
/// Of a name that a server sends, in characters.
const MOST_CHARACTERS: usize = 256;

/// One line of a metrics page: `name{labels} value`.
struct Metric<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

impl Metric<'_> {
    /// The value of a label, if it is a number.
    fn label(&self, name: &str) -> Option<u64> {
        let after = self.labels.split_once(&format!("{name}=\""))?.1;
        after.split_once('"')?.0.parse().ok()
    }
}

/// The lines of a page that can be read, without comments.
fn metrics(page: &[u8]) -> Vec<Metric<'_>> {
    page.split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let line = std::str::from_utf8(line).ok()?.trim();
            // A label may hold spaces and brackets: the value stands behind the last bracket.
            let (head, value) = match line.rsplit_once('}') {
                Some((head, value)) => (head, value),
                None => line.split_once(' ')?,
            };
            let (name, labels) = head.split_once('{').unwrap_or((head, ""));
            let value = value.split_whitespace().next()?.parse::<f64>().ok()?;
            (!name.starts_with('#') && value.is_finite() && value >= 0.0).then_some(Metric {
                name,
                labels,
                value,
            })
        })
        .collect()
}

/// Of several engines or ranks the fullest one: the first that has no room decides.
fn fullest(metrics: &[Metric<'_>], names: &[&str]) -> Option<Percent> {
    let parts = metrics.iter().filter(|m| names.contains(&m.name) && m.value <= 1.0);
    parts.map(|m| m.value).reduce(f64::max).map(|part| Percent((part * 100.0) as f32))
}

/// All engines together.
fn sum(metrics: &[Metric<'_>], name: &str) -> Option<u64> {
    let values = metrics.iter().filter(|m| m.name == name).map(|m| m.value);
    values.reduce(|a, b| a + b).filter(|sum| *sum < 1e15).map(|sum| sum as u64)
}

/// vLLM's `/metrics`.
pub fn vllm(page: &[u8], sample: &mut ServerSample) -> bool {
    let metrics = metrics(page);
    // The second name is that of versions before the new engine.
    sample.kv_used = fullest(&metrics, &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"]);
    sample.running = sum(&metrics, "vllm:num_requests_running");
    sample.waiting = sum(&metrics, "vllm:num_requests_waiting");
    let room = metrics
        .iter()
        .filter(|m| m.name == "vllm:cache_config_info")
        .filter_map(|m| m.label("num_gpu_blocks")?.checked_mul(m.label("block_size")?));
    sample.kv_tokens = room.reduce(u64::saturating_add);
    sample.kv_used.is_some() || sample.running.is_some()
}

/// SGLang's `/metrics` (with `--enable-metrics`).
pub fn sglang(page: &[u8], sample: &mut ServerSample) -> bool {
    let metrics = metrics(page);
    sample.kv_used = fullest(&metrics, &["sglang:token_usage"]);
    sample.kv_tokens = sum(&metrics, "sglang:max_total_num_tokens");
    sample.running = sum(&metrics, "sglang:num_running_reqs");
    sample.waiting = sum(&metrics, "sglang:num_queue_reqs");
    sample.kv_used.is_some() || sample.running.is_some()
}

/// llama.cpp's `/metrics` (with `--metrics`). Newer versions leave out the use of the KV cache.
pub fn llama_metrics(page: &[u8], sample: &mut ServerSample) -> bool {
    let metrics = metrics(page);
    sample.kv_used = fullest(&metrics, &["llamacpp:kv_cache_usage_ratio"]);
    sample.waiting = sum(&metrics, "llamacpp:requests_deferred");
    let running = sum(&metrics, "llamacpp:requests_processing");
    sample.running = sample.running.or(running);
    sample.kv_used.is_some() || running.is_some()
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

fn short(text: &str) -> String {
    text.chars().take(MOST_CHARACTERS).collect()
}

#[derive(Deserialize)]
struct Props {
    total_slots: Option<u64>,
    default_generation_settings: Option<Generation>,
    model_path: Option<String>,
}

#[derive(Deserialize)]
struct Generation {
    n_ctx: Option<u64>,
}

/// llama.cpp's `/props`.
pub fn llama_props(body: &[u8], sample: &mut ServerSample) -> bool {
    let Some(props) = json::<Props>(body).filter(|props| props.total_slots.is_some()) else {
        return false;
    };
    sample.slots = props.total_slots;
    let context_tokens = props.default_generation_settings.and_then(|settings| settings.n_ctx);
    if let Some(path) = props.model_path {
        let name = short(path.rsplit('/').next().unwrap_or(&path));
        let (size, in_vram, expires) = (None, None, None);
        sample.models = vec![ServedModel { name, size, in_vram, context_tokens, expires }];
    }
    true
}

/// The prompts that a slot may show are not read.
#[derive(Deserialize)]
struct Slot {
    n_ctx: Option<u64>,
    is_processing: Option<bool>,
}

/// llama.cpp's `/slots`.
pub fn llama_slots(body: &[u8], sample: &mut ServerSample) -> bool {
    let Some(slots) = json::<Vec<Slot>>(body).filter(|slots| !slots.is_empty()) else {
        return false;
    };
    sample.slots = Some(slots.len() as u64);
    sample.kv_tokens = slots.iter().map(|slot| slot.n_ctx).sum();
    let busy = slots.iter().map(|slot| slot.is_processing.map(u64::from)).sum::<Option<u64>>();
    sample.running = busy;
    true
}

#[derive(Deserialize)]
struct Running {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    name: String,
    size: Option<u64>,
    size_vram: Option<u64>,
    context_length: Option<u64>,
    expires_at: Option<String>,
}

/// Ollama's `/api/ps`.
pub fn ollama(body: &[u8], sample: &mut ServerSample) -> bool {
    let Some(running) = json::<Running>(body) else { return false };
    sample.models = running
        .models
        .into_iter()
        .take(MOST_ENTRIES)
        .map(|model| ServedModel {
            name: short(&model.name),
            size: model.size.map(Bytes),
            in_vram: model.size_vram.map(Bytes),
            context_tokens: model.context_length,
            expires: model.expires_at.as_deref().map(short),
        })
        .collect();
    true
}

#[derive(Deserialize)]
struct SystemStats {
    devices: Vec<ComfyDevice>,
}

#[derive(Deserialize)]
struct ComfyDevice {
    r#type: Option<String>,
    index: Option<u32>,
    torch_vram_total: Option<u64>,
    torch_vram_free: Option<u64>,
}

/// `ComfyUI`'s `/system_stats`.
pub fn comfyui(body: &[u8], sample: &mut ServerSample) -> bool {
    let Some(stats) = json::<SystemStats>(body) else { return false };
    sample.devices = stats
        .devices
        .into_iter()
        .take(MOST_ENTRIES)
        .filter(|device| device.r#type.as_deref() == Some("cuda"))
        .filter_map(|device| {
            let (reserved, cached) = (device.torch_vram_total?, device.torch_vram_free?);
            (cached <= reserved).then_some(ServedDevice {
                ordinal: CudaOrdinal(device.index?),
                reserved: Bytes(reserved),
                cached: Bytes(cached),
            })
        })
        .collect();
    true
}
