//! What an inference server says of itself on its own interface.

use serde::{Deserialize, Serialize};

use crate::ids::{CudaOrdinal, Stamp};
use crate::units::{Bytes, Percent};

/// The answer of one server at one moment: *reported*, not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerSample {
    /// When it was asked.
    pub at: Stamp,
    /// What it is.
    pub software: ServerSoftware,
    /// Where it was asked, on loopback.
    pub port: u16,
    /// How much of its KV cache holds tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_used: Option<Percent>,
    /// Tokens that its KV cache has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_tokens: Option<u64>,
    /// Requests that are being worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
    /// Requests that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Requests that it takes at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
    /// Models in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ServedModel>,
    /// Its allocator's totals by device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<ServedDevice>,
}

/// Software whose interface is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerSoftware {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// `ComfyUI`.
    ComfyUi,
}

impl ServerSoftware {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::LlamaCpp => "llama.cpp",
            Self::Ollama => "Ollama",
            Self::ComfyUi => "ComfyUI",
        }
    }
}

/// A model that a server keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedModel {
    /// Its name. Hostile text, bounded when read.
    pub name: String,
    /// Its memory, wherever it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Of that, on GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_vram: Option<Bytes>,
    /// Its context, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// When it leaves memory, as the server writes it. Hostile text, bounded when read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// Totals of a server's PyTorch allocator on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDevice {
    /// As the process numbers it.
    pub ordinal: CudaOrdinal,
    /// Taken from the driver.
    pub reserved: Bytes,
    /// Of that, not in use.
    pub cached: Bytes,
}
