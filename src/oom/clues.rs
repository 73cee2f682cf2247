//! Words that say where a program was, what it is, what is set and how it went on.

use super::lines::Line;

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Mark {
    ExpandableOn,
    NoCaching,
    AsyncBackend,
    CheckpointingOn,
    FlashAttentionOff,
    FourBit,
    Float32,
    GpuLayersForced,
    Wsl,
    Jetson,
    Windows,
    Mig,
    Rocm,
    Training,
    Notebook,
    Multirank,
    RisingLengths,
    Success,
    Retrying,
    Speech,
    Comfy,
    Webui,
    Diffusers,
    Vllm,
    Sglang,
    Tgi,
    DeepSpeed,
    Ollama,
    Ffmpeg,
    Torch,
    Whisper,
    Kobold,
    LlamaCpp,
    LmStudio,
    Jax,
    TensorFlow,
    Onnx,
    CpuProvider,
    CudaProvider,
    ExLlama,
    XlaFraction,
    Slurm,
    Kubernetes,
    TorchRun,
    MapsFull,
    SystemdUnit,
    Adam8,
    Lora,
    Datacentre,
    PoolAllocator,
    HfTrainer,
    HfModel,
    Vgpu,
}

impl Mark {
    /// Whether the first pass looks for it. What stands on every line of a training log is only
    /// read where lines are kept anyway.
    pub(super) const fn is_looked_for(self) -> bool {
        !matches!(
            self,
            Self::Training
                | Self::RisingLengths
                | Self::Torch
                | Self::Speech
                | Self::HfModel
                | Self::Lora
        )
    }
}

/// A word, and what it says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clue {
    /// In lower case; the case of the text does not matter.
    pub needle: &'static str,
    pub mark: Mark,
}

const fn clue(needle: &'static str, mark: Mark) -> Clue {
    Clue { needle, mark }
}

/// Units of memory: lines with figures tell growth.
pub(super) const UNITS: &[&str] = &[
    "GiB",
    "MiB",
    "_mib=",
    "_gb=",
    "memory_allocated",
    "memory.used",
    "Killed",
    "mem=",
    "not enough memory",
    "insufficient memory",
    "video memory",
    "device memory",
];

/// Every clue.
pub(super) static TABLE: &[Clue] = &[
    clue("expandable_segments:true", Mark::ExpandableOn),
    clue("pytorch_no_cuda_memory_caching=1", Mark::NoCaching),
    clue("backend:cudamallocasync", Mark::AsyncBackend),
    clue("using async allocator", Mark::AsyncBackend),
    clue("incompatible with gradient checkpointing", Mark::CheckpointingOn),
    clue("gradient_checkpointing: true", Mark::CheckpointingOn),
    clue("gradient_checkpointing=true", Mark::CheckpointingOn),
    clue("--gradient_checkpointing", Mark::CheckpointingOn),
    clue("gradient_checkpointing_enable", Mark::CheckpointingOn),
    clue("torch/utils/checkpoint.py", Mark::CheckpointingOn),
    clue("flash_attn    = 0", Mark::FlashAttentionOff),
    clue("flash_attn = 0", Mark::FlashAttentionOff),
    clue("flash_attn    = disabled", Mark::FlashAttentionOff),
    clue("load_in_4bit", Mark::FourBit),
    clue("bnb_4bit", Mark::FourBit),
    clue("quantizer_bnb_4bit", Mark::FourBit),
    clue("-awq", Mark::FourBit),
    clue("-gptq", Mark::FourBit),
    clue("nvfp4", Mark::FourBit),
    clue("q4_k", Mark::FourBit),
    clue("q4_0", Mark::FourBit),
    clue("iq4_xs", Mark::FourBit),
    clue("dtype=torch.float32", Mark::Float32),
    clue("n_gpu_layers already set by user", Mark::GpuLayersForced),
    clue("microsoft-standard", Mark::Wsl),
    clue("wsl2", Mark::Wsl),
    clue("/mnt/c/", Mark::Wsl),
    clue("jetpack", Mark::Jetson),
    clue(" tegra", Mark::Jetson),
    clue("jetson", Mark::Jetson),
    clue(" orin", Mark::Jetson),
    clue("c:\\", Mark::Windows),
    clue("d:\\", Mark::Windows),
    clue("mig-", Mark::Mig),
    clue(" mig ", Mark::Mig),
    clue("+rocm", Mark::Rocm),
    clue("train", Mark::Training),
    clue("loss", Mark::Training),
    clue("epoch", Mark::Training),
    clue("backward(", Mark::Training),
    clue("optimizer.step", Mark::Training),
    clue("optimizer_step", Mark::Training),
    clue("ipython-input", Mark::Notebook),
    clue("cell in[", Mark::Notebook),
    clue("ipykernel", Mark::Notebook),
    clue("local_rank", Mark::Multirank),
    clue("[rank", Mark::Multirank),
    clue("seqlen", Mark::RisingLengths),
    clue("len=", Mark::RisingLengths),
    clue("exit code 0", Mark::Success),
    clue("model saved", Mark::Success),
    clue("saved to", Mark::Success),
    clue("saved model", Mark::Success),
    clue("&&&& passed", Mark::Success),
    clue("server is listening", Mark::Success),
    clue("training completed", Mark::Success),
    clue("training complete", Mark::Success),
    clue("training finished", Mark::Success),
    clue("finished successfully", Mark::Success),
    clue("completed successfully", Mark::Success),
    clue("application startup complete", Mark::Success),
    clue("engine built and saved", Mark::Success),
    clue("checkpoint saved", Mark::Success),
    clue("all done", Mark::Success),
    clue("run finished", Mark::Success),
    clue("caught", Mark::Retrying),
    clue("retrying", Mark::Retrying),
    clue("trying again", Mark::Retrying),
    clue("falling back", Mark::Retrying),
    clue("fallback", Mark::Retrying),
    clue("reducing batch", Mark::Retrying),
    clue("reduced batch", Mark::Retrying),
    clue("decreasing batch", Mark::Retrying),
    clue("halving", Mark::Retrying),
    clue("lowering batch", Mark::Retrying),
    clue("executable batch size", Mark::Retrying),
    clue("auto_find_batch_size", Mark::Retrying),
    clue("sample:", Mark::Speech),
    clue("prompt:", Mark::Speech),
    clue("completion:", Mark::Speech),
    clue("generated:", Mark::Speech),
    clue("generation:", Mark::Speech),
    clue("output:", Mark::Speech),
    clue("answer:", Mark::Speech),
    clue("response:", Mark::Speech),
    clue("assistant:", Mark::Speech),
    clue("user:", Mark::Speech),
    clue("\"role\"", Mark::Speech),
    clue("\"content\"", Mark::Speech),
    clue("to fix", Mark::Speech),
    clue("how do i", Mark::Speech),
    clue("got prompt", Mark::Comfy),
    clue("exception during processing", Mark::Comfy),
    clue("comfyui", Mark::Comfy),
    clue("unloading all loaded models", Mark::Comfy),
    clue("webui.py", Mark::Webui),
    clue("stable-diffusion-webui", Mark::Webui),
    clue("modules/processing.py", Mark::Webui),
    clue("gb, sys: ", Mark::Webui),
    clue("diffusers/", Mark::Diffusers),
    clue("diffusers\\", Mark::Diffusers),
    clue("loading pipeline components", Mark::Diffusers),
    clue("vae.decode(z, return_dict=false)", Mark::Diffusers),
    clue("return_dict=false)[0]", Mark::Diffusers),
    clue("(enginecore", Mark::Vllm),
    clue("(vllmworker", Mark::Vllm),
    clue("vllm/", Mark::Vllm),
    clue("vllm api server", Mark::Vllm),
    clue("sglang/", Mark::Sglang),
    clue("text_generation", Mark::Tgi),
    clue("deepspeed", Mark::DeepSpeed),
    clue("ollama", Mark::Ollama),
    clue("llama runner process", Mark::Ollama),
    clue("llama-server process", Mark::Ollama),
    clue("ffmpeg", Mark::Ffmpeg),
    clue("avhwdevicecontext", Mark::Ffmpeg),
    clue("hwcontext", Mark::Ffmpeg),
    clue("torch", Mark::Torch),
    clue("whisper_", Mark::Whisper),
    clue("koboldcpp", Mark::Kobold),
    clue("llama_model_load", Mark::LlamaCpp),
    clue("lm studio", Mark::LmStudio),
    clue("lms load", Mark::LmStudio),
    clue("jax.errors", Mark::Jax),
    clue("jaxlib", Mark::Jax),
    clue("tensorflow", Mark::TensorFlow),
    clue("onnxruntime", Mark::Onnx),
    clue("cpuexecutionprovider", Mark::CpuProvider),
    clue("cudaexecutionprovider", Mark::CudaProvider),
    clue("cuda ep", Mark::CudaProvider),
    clue("exllama", Mark::ExLlama),
    clue("client_mem_fraction=", Mark::XlaFraction),
    clue("slurmstepd", Mark::Slurm),
    clue("kubectl", Mark::Kubernetes),
    clue("torch/distributed/elastic", Mark::TorchRun),
    clue("torch.distributed.elastic", Mark::TorchRun),
    clue("torchrun", Mark::TorchRun),
    clue("maps in use", Mark::MapsFull),
    clue("max_map_count", Mark::MapsFull),
    clue("systemd[1]", Mark::SystemdUnit),
    clue("adamw_8bit", Mark::Adam8),
    clue("adam8bit", Mark::Adam8),
    clue(" lora", Mark::Lora),
    clue("_lora", Mark::Lora),
    clue("lora_", Mark::Lora),
    clue("-lora", Mark::Lora),
    clue("lora-", Mark::Lora),
    clue("qlora", Mark::Lora),
    clue("/peft/", Mark::Lora),
    clue("h100", Mark::Datacentre),
    clue("a100", Mark::Datacentre),
    clue("h200", Mark::Datacentre),
    clue("b200", Mark::Datacentre),
    clue("rmm pool", Mark::PoolAllocator),
    clue("/transformers/trainer.py", Mark::HfTrainer),
    clue("\\transformers\\trainer.py", Mark::HfTrainer),
    clue("per_device_train_batch_size", Mark::HfTrainer),
    clue("instantaneous batch size per device", Mark::HfTrainer),
    clue("/transformers/", Mark::HfModel),
    clue("\\transformers\\", Mark::HfModel),
    clue("from_pretrained", Mark::HfModel),
    clue("hami-core", Mark::Vgpu),
    clue("nvidia.com/gpumem", Mark::Vgpu),
];

/// A clue in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    pub mark: Mark,
    pub line: usize,
}

/// Every clue of the lines, in their order. The advice that PyTorch prints with its own message is
/// no setting.
pub(super) fn find(lines: &[Line]) -> Vec<Sign> {
    let mut signs = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let lower = line.full.to_ascii_lowercase();
        for clue in TABLE {
            if let Some(at) = memchr::memmem::find(lower.as_bytes(), clue.needle.as_bytes()) {
                if clue.mark == Mark::ExpandableOn && is_advice(lines, number, &lower, at) {
                    continue;
                }
                signs.push(Sign { mark: clue.mark, line: number });
            }
        }
    }
    signs
}

/// Whether the setting at `at` stands in the advice to try it.
fn is_advice(lines: &[Line], number: usize, lower: &str, at: usize) -> bool {
    let before = lower.get(..at).unwrap_or_default();
    let after = lower.get(at..).unwrap_or_default();
    let line_before = number.checked_sub(1).and_then(|n| lines.get(n));
    let wrapped = before.len() < 60
        && line_before.is_some_and(|line| line.full.to_ascii_lowercase().contains("try"));
    before.contains("try setting")
        || after.contains("to avoid fragmentation")
        || (wrapped && !before.trim_start().starts_with("export"))
}
