//! Settings and where they stand, as a table.

use serde::Serialize;

use super::table::Software;

/// Settings that matter to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// File, folder or name of the model.
    Model,
    /// An encoder beside it.
    Encoder,
    /// Tokens.
    Context,
    /// Layers on the GPU.
    GpuLayers,
    /// Layers whose experts are on the CPU.
    CpuExperts,
    /// All experts on the CPU.
    AllExpertsOnCpu,
    /// Type of cached keys, or of the whole cache.
    CacheTypeK,
    /// Type of cached values.
    CacheTypeV,
    /// The cache is in host memory.
    CacheOnCpu,
    /// Window layers keep everything.
    FullWindow,
    /// Sequences at the same time.
    Parallel,
    /// Tokens, images or sequences a step.
    Batch,
    /// Tokens a micro-batch.
    MicroBatch,
    /// Flash attention.
    FlashAttention,
    /// Share of the GPU's memory that it takes.
    MemoryFraction,
    /// GPUs that a layer is split over.
    TensorParallel,
    /// Quantisation.
    Quantisation,
    /// Type of the weights.
    Dtype,
    /// Gradient checkpointing.
    Checkpointing,
    /// Steps that gradients are gathered over.
    Accumulation,
    /// What it does with little memory (`ComfyUI`, webui).
    VramMode,
    /// No CUDA graphs.
    Eager,
    /// Bytes kept free or moved to the host.
    Reserve,
}

impl Setting {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Encoder => "encoder",
            Self::Context => "context",
            Self::GpuLayers => "layers on the GPU",
            Self::CpuExperts => "layers with experts on the CPU",
            Self::AllExpertsOnCpu => "all experts on the CPU",
            Self::CacheTypeK => "cache type",
            Self::CacheTypeV => "cache type of values",
            Self::CacheOnCpu => "cache in host memory",
            Self::FullWindow => "windows keep everything",
            Self::Parallel => "sequences at once",
            Self::Batch => "batch",
            Self::MicroBatch => "micro-batch",
            Self::FlashAttention => "flash attention",
            Self::MemoryFraction => "share of memory",
            Self::TensorParallel => "tensor parallel",
            Self::Quantisation => "quantisation",
            Self::Dtype => "type of weights",
            Self::Checkpointing => "gradient checkpointing",
            Self::Accumulation => "gradient accumulation",
            Self::VramMode => "memory mode",
            Self::Eager => "no CUDA graphs",
            Self::Reserve => "kept free or on the host",
        }
    }
}

/// Where a setting stands.
pub(super) struct SettingRow {
    pub software: &'static [Software],
    pub setting: Setting,
    pub flags: &'static [&'static str],
    pub variables: &'static [&'static str],
    /// Whether the flag stands alone.
    pub bare: bool,
}

const fn row(
    software: &'static [Software],
    setting: Setting,
    flags: &'static [&'static str],
    variables: &'static [&'static str],
) -> SettingRow {
    SettingRow { software, setting, flags, variables, bare: false }
}

const fn bare(
    software: &'static [Software],
    setting: Setting,
    flags: &'static [&'static str],
    variables: &'static [&'static str],
) -> SettingRow {
    SettingRow { software, setting, flags, variables, bare: true }
}

const LLAMA: &[Software] = &[Software::LlamaCpp, Software::Ollama];
const VLLM: &[Software] = &[Software::Vllm];
const SGLANG: &[Software] = &[Software::Sglang];
const TGI: &[Software] = &[Software::Tgi];
const EXLLAMA: &[Software] = &[Software::Exllama];
const TRT: &[Software] = &[Software::TensorRtLlm];
const COMFY: &[Software] = &[Software::ComfyUi];
const WEBUI: &[Software] = &[Software::A1111];
const WHISPER: &[Software] = &[Software::WhisperCpp];
const SCRIPTS: &[Software] = &[Software::Transformers, Software::Torch, Software::Diffusers];
const JAX: &[Software] = &[Software::Jax];
const TF: &[Software] = &[Software::TensorFlow];

/// Every setting by software: flags as of 2026 and their elder names, and variables.
#[rustfmt::skip]
pub(super) const SETTINGS: [SettingRow; 73] = [
    row(LLAMA, Setting::Model, &["-m", "--model", "-hf", "--hf-repo", "-hfr"], &["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"]),
    row(LLAMA, Setting::Encoder, &["--mmproj", "-mm"], &["LLAMA_ARG_MMPROJ"]),
    row(LLAMA, Setting::Context, &["-c", "--ctx-size", "--contextsize", "--n_ctx", "--kv-size"], &["LLAMA_ARG_CTX_SIZE", "OLLAMA_CONTEXT_LENGTH"]),
    row(LLAMA, Setting::GpuLayers, &["-ngl", "--gpu-layers", "--n-gpu-layers", "--gpulayers"], &["LLAMA_ARG_N_GPU_LAYERS"]),
    row(LLAMA, Setting::CpuExperts, &["-ncmoe", "--n-cpu-moe", "--moecpu"], &["LLAMA_ARG_N_CPU_MOE"]),
    bare(LLAMA, Setting::AllExpertsOnCpu, &["-cmoe", "--cpu-moe"], &["LLAMA_ARG_CPU_MOE"]),
    row(LLAMA, Setting::CacheTypeK, &["-ctk", "--cache-type-k", "--kv-cache-type", "--quantkv"], &["LLAMA_ARG_CACHE_TYPE_K", "OLLAMA_KV_CACHE_TYPE"]),
    row(LLAMA, Setting::CacheTypeV, &["-ctv", "--cache-type-v"], &["LLAMA_ARG_CACHE_TYPE_V"]),
    bare(LLAMA, Setting::CacheOnCpu, &["-nkvo", "--no-kv-offload"], &["LLAMA_ARG_NO_KV_OFFLOAD"]),
    bare(LLAMA, Setting::FullWindow, &["--swa-full"], &["LLAMA_ARG_SWA_FULL"]),
    row(LLAMA, Setting::Parallel, &["-np", "--parallel"], &["LLAMA_ARG_N_PARALLEL", "OLLAMA_NUM_PARALLEL"]),
    row(LLAMA, Setting::Batch, &["-b", "--batch-size", "--blasbatchsize"], &["LLAMA_ARG_BATCH"]),
    row(LLAMA, Setting::MicroBatch, &["-ub", "--ubatch-size"], &["LLAMA_ARG_UBATCH"]),
    bare(LLAMA, Setting::FlashAttention, &["-fa", "--flash-attn", "--flashattention"], &["LLAMA_ARG_FLASH_ATTN", "OLLAMA_FLASH_ATTENTION"]),
    row(LLAMA, Setting::Reserve, &["-fitt", "--fit-target"], &["LLAMA_ARG_FIT_TARGET", "OLLAMA_GPU_OVERHEAD"]),

    row(VLLM, Setting::Model, &["--model"], &[]),
    row(VLLM, Setting::Context, &["--max-model-len"], &[]),
    row(VLLM, Setting::CacheTypeK, &["--kv-cache-dtype"], &[]),
    row(VLLM, Setting::Parallel, &["--max-num-seqs"], &[]),
    row(VLLM, Setting::Batch, &["--max-num-batched-tokens"], &[]),
    row(VLLM, Setting::MemoryFraction, &["--gpu-memory-utilization"], &[]),
    row(VLLM, Setting::TensorParallel, &["--tensor-parallel-size", "-tp"], &[]),
    row(VLLM, Setting::Quantisation, &["--quantization", "-q"], &[]),
    row(VLLM, Setting::Dtype, &["--dtype"], &[]),
    bare(VLLM, Setting::Eager, &["--enforce-eager"], &[]),
    row(VLLM, Setting::Reserve, &["--cpu-offload-gb", "--swap-space"], &[]),

    row(SGLANG, Setting::Model, &["--model-path", "--model"], &[]),
    row(SGLANG, Setting::Context, &["--context-length"], &[]),
    row(SGLANG, Setting::CacheTypeK, &["--kv-cache-dtype"], &[]),
    row(SGLANG, Setting::Parallel, &["--max-running-requests"], &[]),
    row(SGLANG, Setting::Batch, &["--chunked-prefill-size", "--max-prefill-tokens"], &[]),
    row(SGLANG, Setting::MemoryFraction, &["--mem-fraction-static"], &[]),
    row(SGLANG, Setting::TensorParallel, &["--tp", "--tp-size", "--tensor-parallel-size"], &[]),
    row(SGLANG, Setting::Quantisation, &["--quantization"], &[]),
    bare(SGLANG, Setting::Eager, &["--disable-cuda-graph"], &[]),

    row(TGI, Setting::Model, &["--model-id"], &["MODEL_ID"]),
    row(TGI, Setting::Context, &["--max-total-tokens"], &["MAX_TOTAL_TOKENS"]),
    row(TGI, Setting::CacheTypeK, &["--kv-cache-dtype"], &["KV_CACHE_DTYPE"]),
    row(TGI, Setting::Parallel, &["--max-concurrent-requests", "--max-batch-size"], &["MAX_BATCH_SIZE"]),
    row(TGI, Setting::Batch, &["--max-batch-prefill-tokens"], &["MAX_BATCH_PREFILL_TOKENS"]),
    row(TGI, Setting::MemoryFraction, &["--cuda-memory-fraction"], &["CUDA_MEMORY_FRACTION"]),
    row(TGI, Setting::TensorParallel, &["--num-shard"], &["NUM_SHARD"]),
    row(TGI, Setting::Quantisation, &["--quantize"], &["QUANTIZE"]),
    row(TGI, Setting::Dtype, &["--dtype"], &["DTYPE"]),

    row(EXLLAMA, Setting::Model, &["-m", "--model_dir", "--model-dir", "--model-name"], &[]),
    row(EXLLAMA, Setting::Context, &["-l", "--length", "--max-seq-len", "-cs", "--cache-size"], &[]),
    row(EXLLAMA, Setting::CacheTypeK, &["--cache-mode", "-cq", "--cache-quant"], &[]),
    row(EXLLAMA, Setting::GpuLayers, &["-gs", "--gpu-split"], &[]),

    row(TRT, Setting::Model, &["--model", "--model_path", "--engine_dir", "--model-repository"], &[]),
    row(TRT, Setting::Context, &["--max_seq_len"], &[]),
    row(TRT, Setting::Parallel, &["--max_batch_size"], &[]),
    row(TRT, Setting::Batch, &["--max_num_tokens"], &[]),
    row(TRT, Setting::MemoryFraction, &["--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction"], &[]),
    row(TRT, Setting::TensorParallel, &["--tp_size"], &[]),

    bare(COMFY, Setting::VramMode, &["--gpu-only", "--highvram", "--normalvram", "--lowvram", "--novram", "--cpu"], &[]),
    row(COMFY, Setting::Reserve, &["--reserve-vram", "--vram-headroom"], &[]),
    row(WEBUI, Setting::Model, &["--ckpt"], &[]),
    bare(WEBUI, Setting::VramMode, &["--medvram", "--medvram-sdxl", "--lowvram"], &["COMMANDLINE_ARGS"]),
    bare(WEBUI, Setting::FlashAttention, &["--xformers", "--opt-sdp-attention"], &[]),

    row(WHISPER, Setting::Model, &["-m", "--model"], &[]),
    row(WHISPER, Setting::Batch, &["-bs", "--beam-size"], &[]),

    row(SCRIPTS, Setting::Model, &["--model_name_or_path", "--pretrained_model_name_or_path", "--base_model", "--model_id", "--model", "--model_path"], &[]),
    row(SCRIPTS, Setting::Context, &["--max_seq_length", "--max_seq_len", "--max_length", "--block_size", "--seq_len", "--cutoff_len", "--resolution"], &[]),
    row(SCRIPTS, Setting::Batch, &["--per_device_train_batch_size", "--train_batch_size", "--batch_size", "--bs", "--micro_batch_size"], &[]),
    row(SCRIPTS, Setting::Accumulation, &["--gradient_accumulation_steps"], &[]),
    bare(SCRIPTS, Setting::Checkpointing, &["--gradient_checkpointing"], &[]),
    row(SCRIPTS, Setting::Dtype, &["--mixed_precision", "--dtype", "--torch_dtype"], &["ACCELERATE_MIXED_PRECISION"]),
    bare(SCRIPTS, Setting::Quantisation, &["--load_in_4bit", "--load_in_8bit", "--use_8bit_adam"], &[]),
    row(SCRIPTS, Setting::TensorParallel, &["--nproc_per_node", "--num_processes", "--num_gpus"], &["WORLD_SIZE"]),

    row(JAX, Setting::MemoryFraction, &[], &["XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"]),
    row(JAX, Setting::Reserve, &[], &["XLA_PYTHON_CLIENT_PREALLOCATE"]),
    row(TF, Setting::MemoryFraction, &["--per_process_gpu_memory_fraction"], &[]),
    row(TF, Setting::Reserve, &[], &["TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"]),
];
