//! What is taken from a process's environment: names on a fixed list, nothing else.

use crate::host::root::lossy;
use crate::sample::EnvVar;

/// The longest value that is kept.
const VALUE_LIMIT: usize = 512;
const MOST: usize = 64;

/// How a name on the list matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// This name.
    Exact(&'static str),
    /// Every name that begins so, unless it looks like a secret.
    Prefix(&'static str),
}

/// The names that matter to GPU memory or to whose job a process is. No other name's value is kept,
/// shown or recorded.
pub const ALLOWED: &[Match] = &[
    // How PyTorch's caching allocator works; the newer names first.
    Match::Exact("PYTORCH_ALLOC_CONF"),
    Match::Exact("PYTORCH_CUDA_ALLOC_CONF"),
    Match::Exact("PYTORCH_HIP_ALLOC_CONF"),
    Match::Exact("PYTORCH_NO_CUDA_MEMORY_CACHING"),
    // JAX and TensorFlow take most of a GPU at the start unless told otherwise.
    Match::Exact("XLA_PYTHON_CLIENT_PREALLOCATE"),
    Match::Exact("XLA_PYTHON_CLIENT_MEM_FRACTION"),
    Match::Exact("XLA_PYTHON_CLIENT_ALLOCATOR"),
    Match::Exact("XLA_CLIENT_MEM_FRACTION"),
    Match::Exact("TF_FORCE_GPU_ALLOW_GROWTH"),
    Match::Exact("TF_GPU_ALLOCATOR"),
    // Which GPU is device 0.
    Match::Exact("CUDA_VISIBLE_DEVICES"),
    Match::Exact("CUDA_DEVICE_ORDER"),
    Match::Exact("CUDA_MPS_PIPE_DIRECTORY"),
    Match::Exact("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"),
    Match::Exact("CUDA_MODULE_LOADING"),
    Match::Exact("NVIDIA_VISIBLE_DEVICES"),
    // Servers.
    Match::Prefix("OLLAMA_"),
    Match::Prefix("GGML_"),
    Match::Prefix("LLAMA_ARG_"),
    Match::Prefix("VLLM_"),
    Match::Prefix("SGLANG_"),
    // Text Generation Inference names its settings without a prefix.
    Match::Exact("MODEL_ID"),
    Match::Exact("DTYPE"),
    Match::Exact("QUANTIZE"),
    Match::Exact("KV_CACHE_DTYPE"),
    Match::Exact("NUM_SHARD"),
    Match::Exact("MAX_TOTAL_TOKENS"),
    Match::Exact("MAX_BATCH_SIZE"),
    Match::Exact("MAX_BATCH_PREFILL_TOKENS"),
    Match::Exact("CUDA_MEMORY_FRACTION"),
    Match::Exact("ACCELERATE_MIXED_PRECISION"),
    // In a pod its name; elsewhere it is left out.
    Match::Exact(POD_NAME),
    // Whose job it is.
    Match::Exact("LOCAL_RANK"),
    Match::Exact("RANK"),
    Match::Exact("WORLD_SIZE"),
    Match::Exact("LOCAL_WORLD_SIZE"),
    Match::Exact("MASTER_PORT"),
    Match::Exact("TORCHELASTIC_RUN_ID"),
    Match::Exact("JPY_PARENT_PID"),
    Match::Exact("SLURM_JOB_ID"),
    Match::Exact("SLURM_STEP_ID"),
    Match::Exact("RAY_JOB_ID"),
];

/// Holds the name of the pod where Kubernetes has made the environment.
const POD_NAME: &str = "HOSTNAME";
/// Kubernetes gives it to every container.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

/// Parts of names whose value is never kept, whatever the list says.
const SECRET: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "URL"];

/// Whether the value of this variable may be kept.
pub(super) fn allowed(name: &str) -> bool {
    ALLOWED.iter().any(|rule| match rule {
        Match::Exact(exact) => name == *exact,
        Match::Prefix(prefix) => {
            name.starts_with(prefix) && !SECRET.iter().any(|part| name.contains(part))
        }
    })
}

/// The allowed ones of `NAME=value` records that end in a zero byte. A program that renames itself
/// writes over this memory, so anything may be in it.
pub(super) fn parse(bytes: &[u8]) -> Vec<EnvVar> {
    let mut found = Vec::new();
    let mut in_pod = false;
    for record in bytes.split(|byte| *byte == 0) {
        let Some(equals) = memchr::memchr(b'=', record) else { continue };
        let (name, value) = record.split_at(equals);
        let Ok(name) = std::str::from_utf8(name) else { continue };
        in_pod |= name == IN_POD;
        if !allowed(name) || found.len() >= MOST {
            continue;
        }
        let value = value.get(1..).unwrap_or_default();
        let value = lossy(value.get(..VALUE_LIMIT).unwrap_or(value));
        found.push(EnvVar { name: name.to_owned(), value });
    }
    found.retain(|variable| in_pod || variable.name != POD_NAME);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_on_the_list_are_kept() {
        let found = parse(
            b"HOME=/root\0PYTORCH_CUDA_ALLOC_CONF=a:b=c\0HF_TOKEN=hf_x\0VLLM_API_KEY=s\0\
              VLLM_PORT=1\0OLLAMA_KEEP_ALIVE=5m\0=x\0broken\0RANK=\0\xff\xfe=1\0XRANK=2",
        );
        let pairs: Vec<_> =
            found.iter().map(|var| (var.name.as_str(), var.value.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("PYTORCH_CUDA_ALLOC_CONF", "a:b=c"),
                ("VLLM_PORT", "1"),
                ("OLLAMA_KEEP_ALIVE", "5m"),
                ("RANK", ""),
            ]
        );
    }

    #[test]
    fn the_host_name_is_kept_only_where_it_names_a_pod() {
        let names = |bytes: &[u8]| -> Vec<String> {
            parse(bytes).into_iter().map(|variable| variable.name).collect()
        };
        assert_eq!(names(b"HOSTNAME=gpubox\0RANK=0\0"), ["RANK"]);
        let pod = names(b"HOSTNAME=trainer-7\0KUBERNETES_SERVICE_HOST=10.0.0.1\0");
        assert_eq!(pod, ["HOSTNAME"]);
    }

    #[test]
    fn a_secret_is_never_kept() {
        for name in [
            "VLLM_API_KEY",
            "OLLAMA_AUTH",
            "VLLM_S3_SECRET",
            "HF_TOKEN",
            "WANDB_API_KEY",
            "OLLAMA_PASSWORD",
            "PATH",
            "AWS_SECRET_ACCESS_KEY",
            "SGLANG_TOKEN",
            "VLLM_DB_URL",
        ] {
            assert!(!allowed(name), "{name}");
        }
    }

    #[test]
    fn long_values_and_many_variables_are_cut() {
        let long = [b"RANK=".as_slice(), &[b'x'; 10_000]].concat();
        assert_eq!(parse(&long)[0].value.len(), VALUE_LIMIT);
        let many = b"GGML_A=1\0".repeat(10_000);
        assert_eq!(parse(&many).len(), MOST);
    }
}
