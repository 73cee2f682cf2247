//! Signatures of software and names of settings, as tables.

use serde::Serialize;

/// Software that is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Software {
    /// llama.cpp's server and tools, koboldcpp.
    LlamaCpp,
    /// Ollama's runner.
    Ollama,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// Hugging Face's text-generation-inference.
    Tgi,
    /// ExLlama, TabbyAPI.
    Exllama,
    /// TensorRT-LLM, Triton.
    TensorRtLlm,
    /// ComfyUI.
    ComfyUi,
    /// stable-diffusion-webui and its forks.
    A1111,
    /// A script of diffusers.
    Diffusers,
    /// whisper.cpp.
    WhisperCpp,
    /// A notebook's kernel or server.
    Jupyter,
    /// A script of transformers.
    Transformers,
    /// JAX.
    Jax,
    /// TensorFlow.
    TensorFlow,
    /// Another program of PyTorch.
    Torch,
}

impl Software {
    /// Its name as people write it.
    pub fn name(self) -> &'static str {
        SIGNATURES.iter().find(|s| s.software == self).map_or("", |s| s.title)
    }
}

/// By what software is known. The first row that matches wins.
pub(super) struct Signature {
    pub software: Software,
    pub title: &'static str,
    /// Beginnings of the kernel's short name, of processes that rename themselves.
    pub names: &'static [&'static str],
    /// Names of programs, of scripts without `.py` too.
    pub programs: &'static [&'static str],
    /// First words, one of which must follow the program; empty for any.
    pub first: &'static [&'static str],
    /// Python modules.
    pub modules: &'static [&'static str],
    /// Names of scripts that only count together with a part of their path, or a flag.
    pub scripts: &'static [&'static str],
    /// Parts of such paths, in small letters.
    pub paths: &'static [&'static str],
    /// Flags that nobody else has.
    pub telling: &'static [&'static str],
    /// Parts of paths of model files.
    pub folders: &'static [&'static str],
    /// Beginnings of names of environment variables.
    pub variables: &'static [&'static str],
    /// Words after which the model is named.
    pub model_after: &'static [&'static str],
}

const NONE: Signature = Signature {
    software: Software::Torch,
    title: "PyTorch",
    names: &[],
    programs: &[],
    first: &[],
    modules: &[],
    scripts: &[],
    paths: &[],
    telling: &[],
    folders: &[],
    variables: &[],
    model_after: &[],
};

/// The signatures, the more certain first.
pub(super) const SIGNATURES: [Signature; 16] = [
    Signature {
        software: Software::LlamaCpp,
        title: "llama.cpp",
        programs: &[
            "llama-server",
            "llama-cli",
            "llama-bench",
            "llama-perplexity",
            "llama-completion",
            "llama-run",
            "llama-embedding",
            "llama-imatrix",
            "llama-batched-bench",
            "llama-mtmd-cli",
            "koboldcpp",
            "llamafile",
            "rpc-server",
        ],
        modules: &["llama_cpp.server", "llama_cpp"],
        ..NONE
    },
    Signature {
        software: Software::Ollama,
        title: "Ollama",
        names: &["ollama_llama_se"],
        programs: &["ollama"],
        first: &["runner", "serve"],
        folders: &["/.ollama/models/blobs/", "/ollama/models/blobs/", "/ollama/.ollama/models/"],
        ..NONE
    },
    Signature {
        software: Software::Vllm,
        title: "vLLM",
        names: &["VLLM::", "VLLM:"],
        programs: &["vllm"],
        modules: &["vllm"],
        model_after: &["serve"],
        ..NONE
    },
    Signature {
        software: Software::Sglang,
        title: "SGLang",
        names: &["sglang::", "sglang:"],
        programs: &["sglang"],
        modules: &["sglang"],
        telling: &["--mem-fraction-static"],
        ..NONE
    },
    Signature {
        software: Software::Tgi,
        title: "text-generation-inference",
        names: &["text-generation"],
        programs: &["text-generation-launcher", "text-generation-server", "text-generation-router"],
        modules: &["text_generation_server"],
        model_after: &["serve"],
        ..NONE
    },
    Signature {
        software: Software::TensorRtLlm,
        title: "TensorRT-LLM",
        names: &["trtllm-", "tritonserver"],
        programs: &["trtllm-serve", "trtllm-bench", "trtllm-build", "trtllm-eval", "tritonserver"],
        modules: &["tensorrt_llm"],
        model_after: &["trtllm-serve", "serve"],
        ..NONE
    },
    Signature {
        software: Software::Exllama,
        title: "ExLlama",
        modules: &["exllamav2", "exllamav3", "tabbyapi"],
        scripts: &["main.py", "start.py", "chat.py", "test_inference.py", "model_diff.py"],
        paths: &["exllama", "tabbyapi"],
        ..NONE
    },
    Signature {
        software: Software::ComfyUi,
        title: "ComfyUI",
        programs: &["comfy", "comfyui"],
        scripts: &["main.py"],
        paths: &["comfyui", "comfy/"],
        telling: &[
            "--normalvram",
            "--highvram",
            "--novram",
            "--reserve-vram",
            "--preview-method",
            "--disable-smart-memory",
            "--extra-model-paths-config",
            "--disable-dynamic-vram",
            "--cpu-vae",
        ],
        folders: &["/ComfyUI/models/", "/comfyui/models/"],
        ..NONE
    },
    Signature {
        software: Software::A1111,
        title: "stable-diffusion-webui",
        scripts: &["launch.py", "webui.py"],
        paths: &["stable-diffusion-webui", "sd-webui", "forge", "automatic"],
        telling: &[
            "--medvram",
            "--medvram-sdxl",
            "--xformers",
            "--opt-sdp-attention",
            "--no-half-vae",
        ],
        folders: &["/stable-diffusion-webui/models/"],
        ..NONE
    },
    Signature {
        software: Software::WhisperCpp,
        title: "whisper.cpp",
        programs: &["whisper-server", "whisper-cli", "whisper-stream", "whisper-bench"],
        folders: &["/ggml-large-v", "/ggml-medium", "/ggml-small", "/ggml-base"],
        ..NONE
    },
    Signature {
        software: Software::Jupyter,
        title: "Jupyter",
        programs: &["jupyter", "jupyter-lab", "jupyter-notebook", "jupyterhub-singleuser"],
        modules: &["ipykernel_launcher", "ipykernel", "jupyterlab", "notebook", "jupyter"],
        ..NONE
    },
    Signature {
        software: Software::Diffusers,
        title: "diffusers",
        modules: &["diffusers"],
        telling: &[
            "--pretrained_model_name_or_path",
            "--instance_data_dir",
            "--train_text_encoder",
            "--vae_name_or_path",
            "--pretrained_vae_model_name_or_path",
        ],
        ..NONE
    },
    Signature {
        software: Software::Transformers,
        title: "transformers",
        programs: &["transformers", "llamafactory-cli", "axolotl", "trl"],
        modules: &["transformers", "axolotl", "llamafactory", "trl", "unsloth"],
        telling: &[
            "--model_name_or_path",
            "--per_device_train_batch_size",
            "--per_device_eval_batch_size",
            "--gradient_accumulation_steps",
            "--base_model",
            "--model_id",
        ],
        ..NONE
    },
    Signature {
        software: Software::Jax,
        title: "JAX",
        modules: &["jax", "flax", "maxtext", "MaxText"],
        variables: &["XLA_PYTHON_CLIENT_", "XLA_CLIENT_MEM_", "JAX_"],
        ..NONE
    },
    Signature {
        software: Software::TensorFlow,
        title: "TensorFlow",
        programs: &["tensorflow_model_server", "saved_model_cli"],
        modules: &["tensorflow", "tensorboard", "keras"],
        variables: &["TF_FORCE_GPU_", "TF_GPU_", "TF_CUDNN_", "TF_XLA_"],
        ..NONE
    },
    Signature {
        programs: &["torchrun", "accelerate", "deepspeed"],
        modules: &["torch", "accelerate", "deepspeed", "lightning", "fairseq"],
        variables: &["PYTORCH_", "TORCH_", "LOCAL_RANK"],
        ..NONE
    },
];

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
    /// What it does with little memory (ComfyUI, webui).
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
