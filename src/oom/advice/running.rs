//! The lines for processes that run: rows of the same shape, and a look into both tables.

use super::fill::filled_with;
use super::lines::{Row, When, row, rows};
use super::present;

/// What turns the caching allocator on again.
pub(super) const CACHE_AGAIN: &str =
    "unset PYTORCH_NO_CUDA_MEMORY_CACHING   (it is for diagnosis only)";

const SHORTER: &str = "longer inputs are refused or forgotten";
const QUALITY: &str = "a little quality; speed is about the same";
const FEWER: &str = "fewer requests at once";

/// The rows; those for messages follow.
static RUNNING: &[Row] = &[
    row(1, "llama.cpp", When::LongContext, "-c {half}", SHORTER),
    row(1, "ollama", When::LongContext, "OLLAMA_CONTEXT_LENGTH={half} ollama serve", SHORTER),
    row(1, "llama.cpp", When::WideCache, "-fa on -ctk q8_0 -ctv q8_0", QUALITY),
    row(
        1,
        "ollama",
        When::WideCache,
        "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve",
        QUALITY,
    ),
    row(1, "llama.cpp", When::ManySlots, "-np 1 -c {one_slot}", "one request at a time"),
    row(
        1,
        "ollama",
        When::ManySlots,
        "OLLAMA_NUM_PARALLEL=1 ollama serve",
        "one request at a time",
    ),
    row(1, "llama.cpp", When::Unused, "-c {wanted}", SHORTER),
    row(
        1,
        "vllm",
        When::Unused,
        "--max-model-len {wanted} --gpu-memory-utilization {share}",
        SHORTER,
    ),
    row(
        1,
        "sglang",
        When::Unused,
        "--context-length {wanted} --mem-fraction-static {share}",
        SHORTER,
    ),
    row(1, "vllm", When::WideCache, "--kv-cache-dtype fp8", QUALITY),
    row(1, "sglang", When::WideCache, "--kv-cache-dtype fp8_e5m2", QUALITY),
    row(
        2,
        "llama.cpp",
        When::WideWeights,
        "-m MODEL-Q4_K_M.gguf   (another file of the model)",
        QUALITY,
    ),
    row(
        3,
        "jax",
        When::Preallocated,
        "XLA_PYTHON_CLIENT_PREALLOCATE=false   (or XLA_CLIENT_MEM_FRACTION=.50)",
        "slower allocation, some fragmentation",
    ),
    row(
        3,
        "tensorflow",
        When::Preallocated,
        "TF_FORCE_GPU_ALLOW_GROWTH=true",
        "some fragmentation",
    ),
    row(3, "vllm", When::Preallocated, "--gpu-memory-utilization {share}", FEWER),
    row(
        3,
        "vllm",
        When::Preallocated,
        "--gpu-memory-utilization 0.50   (a share of the card; the weights must fit in it)",
        FEWER,
    ),
    row(3, "sglang", When::Preallocated, "--mem-fraction-static {share}", FEWER),
    row(
        3,
        "sglang",
        When::Preallocated,
        "--mem-fraction-static 0.50   (a share of the card; the weights must fit in it)",
        FEWER,
    ),
    row(
        3,
        "tensorrt-llm",
        When::Preallocated,
        "kv_cache_free_gpu_mem_fraction: 0.5   (KvCacheConfig.free_gpu_memory_fraction)",
        FEWER,
    ),
    row(
        5,
        "llama.cpp",
        When::Experts,
        "-ncmoe {experts}",
        "slower: those experts compute on the CPU and need host RAM",
    ),
    row(5, "llama.cpp", When::Room, "-ngl {layers}", "the memory that is free now"),
    row(5, "ollama", When::Room, "PARAMETER num_gpu {layers}", "the memory that is free now"),
    row(
        6,
        "*",
        When::Releasable,
        "gc.collect(); torch.cuda.empty_cache()   (in that process; del what is done first)",
        "a moment",
    ),
    row(
        8,
        "*",
        When::Desktop,
        "sudo systemctl isolate multi-user.target   (a text console)",
        "every window closes: save first",
    ),
    row(
        0,
        "*",
        When::Slice,
        "nvidia-smi mig -lgip   (profiles of this card; a larger one has more memory)",
        "whatever runs in the slice has to end first",
    ),
    row(
        0,
        "*",
        When::Quota,
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0={quota}   (before it starts)",
        "less for the other clients",
    ),
    row(0, "*", When::NoCaching, CACHE_AGAIN, "none"),
];

/// The line for a fix of a running process: the first row of this software, or of any, whose
/// condition is among `holds` and whose `{name}`s are all known to `value`. With it, what it costs.
/// Software is named as in explanations: `llama.cpp`, `vllm`, `pytorch`.
pub fn line_for(
    fix: u8,
    software: &str,
    holds: &[When],
    value: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, &'static str)> {
    let fits = |row: &&Row| {
        row.fix == fix
            && (row.software == "*" || row.software == software)
            && holds.contains(&of_running(row.when))
    };
    let value = |name: &str| value(name).or_else(|| present::usual(name));
    let mut rows = RUNNING.iter().chain(rows()).filter(fits);
    rows.find_map(|row| Some((filled_with(row.line, &value)?, row.cost)))
}

/// What must hold of a running process for a row: what is read here runs on CUDA.
const fn of_running(when: When) -> When {
    match when {
        When::OnCuda => When::Always,
        other => other,
    }
}

/// The condition of the row of transformers that takes the place of a general one.
pub const fn of_transformers(when: When) -> When {
    match when {
        When::Always => When::Hf,
        When::Training => When::HfTraining,
        When::Loss => When::HfLoss,
        When::Attention => When::HfAttention,
        When::Optimizer => When::HfOptimizer,
        When::Float32 => When::HfFloat32,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_transformers_are_for_what_runs_it() {
        let line = |fix, when: &[When]| line_for(fix, "pytorch", when, &|_| None).map(|l| l.0);
        let own = [When::Always, of_transformers(When::Always)];
        for (fix, plain, transformers) in [
            (7, "torch.utils.checkpoint.", "model.gradient_checkpointing_enable()"),
            (2, "torchao.", "quantization_config=BitsAndBytesConfig("),
            (5, "accelerate.cpu_offload(", "from_pretrained(..., device_map="),
        ] {
            assert!(line(fix, &[When::Always]).is_some_and(|l| l.starts_with(plain)), "{fix}");
            assert!(line(fix, &own).is_some_and(|l| l.starts_with(transformers)), "{fix}");
        }
    }

    #[test]
    fn the_software_s_own_row_comes_first_and_unknown_figures_pass_it_over() {
        let known = |name: &str| (name == "share").then(|| "0.60".to_owned());
        let line = |value: &dyn Fn(&str) -> Option<String>| {
            line_for(3, "vllm", &[When::Preallocated], value).map(|found| found.0)
        };
        assert_eq!(line(&known).as_deref(), Some("--gpu-memory-utilization 0.60"));
        assert!(line(&|_| None).is_some_and(|line| line.contains("0.50")));
        assert_eq!(line_for(1, "tensorflow", &[When::LongContext], &|_| None), None);
        let plain = line_for(4, "vllm", &[When::Always], &|_| None);
        assert!(plain.is_some_and(|(line, _)| line.starts_with("--max-num-seqs 64")));
        let any = line_for(6, "pytorch", &[When::Fragmented], &|_| None);
        assert!(any.is_some_and(|(line, _)| line.starts_with("PYTORCH_CUDA_ALLOC_CONF=")));
    }
}
