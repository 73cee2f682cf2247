//! Signatures of software, as a table.

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
    /// `ExLlama`, `TabbyAPI`.
    Exllama,
    /// TensorRT-LLM, Triton.
    TensorRtLlm,
    /// `ComfyUI`.
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
