//! The line to type for each fix and program, with what it costs. The first row that fits counts.

/// A row: fix, program (`*` for any), what must hold, line, cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub fix: u8,
    pub software: &'static str,
    pub when: When,
    /// `{name}` is filled in where the figure is known; a row with an unknown figure is passed over.
    pub line: &'static str,
    pub cost: &'static str,
}

/// What must hold for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing more.
    Always,
    /// It trains.
    Training,
    /// It failed in attention.
    Attention,
    /// It failed in the loss.
    Loss,
    /// It failed while it decoded pictures.
    Decode,
    /// It failed while it recorded CUDA graphs.
    Capture,
    /// It failed while the optimizer's state was made.
    Optimizer,
    /// Its cache is in pieces.
    Fragmented,
    /// It grows.
    Growing,
    /// Its own other ranks are on the same GPU.
    Siblings,
    /// It failed in a collective operation.
    Collective,
    /// A reserve of expandable segments is set.
    ReserveSet,
    /// The platform has no expandable segments.
    NoVirtualMemory,
    /// The process has too many mappings.
    MapsFull,
    /// Expandable segments are on.
    AlreadyExpandable,
    /// Flash attention is off.
    FlashOff,
    /// Its weights were loaded in 32 bits.
    Float32,
    /// Of a running process: its context is long.
    LongContext,
    /// Of a running process: its cache has 16 bits.
    WideCache,
    /// Of a running process: it keeps a cache for several at once.
    ManySlots,
    /// Of a running process: its weights have 16 bits or more.
    WideWeights,
    /// Of a running process: it has taken its share in advance.
    Preallocated,
    /// Of a running process: its cache could be given back.
    Releasable,
    /// Of a running process: its experts are on the GPU.
    Experts,
    /// Of a running process: layers are on the CPU, and there is room for them.
    Room,
    /// A desktop is on the GPU.
    Desktop,
    /// It runs in a slice of the GPU.
    Slice,
    /// It runs under a quota.
    Quota,
    /// Its allocator does not cache.
    NoCaching,
}

pub(super) const fn row(
    fix: u8,
    software: &'static str,
    when: When,
    line: &'static str,
    cost: &'static str,
) -> Row {
    Row { fix, software, when, line, cost }
}

const SLOWER: &str = "slower: those layers compute on the CPU and need host RAM";
const QUALITY: &str = "a little quality; speed is about the same";
const TIME: &str = "about a fifth to a third more time a step";
const STEPS: &str =
    "more steps for the same data; accumulate gradients to keep the effective batch";

pub(super) static ROWS: &[Row] = &[
    // 1: context and cache
    row(
        1,
        "vllm",
        When::Capture,
        "--gpu-memory-utilization 0.85   (or --max-num-seqs 64, or --enforce-eager)",
        "a smaller cache: fewer requests at once",
    ),
    row(
        1,
        "vllm",
        When::Always,
        "--max-model-len {fits}   (or --kv-cache-dtype fp8: half the bytes a token)",
        "no request longer than that",
    ),
    row(
        1,
        "vllm",
        When::Always,
        "--gpu-memory-utilization 0.95 --max-model-len auto",
        "no request longer than what fits",
    ),
    row(
        1,
        "sglang",
        When::Capture,
        "--mem-fraction-static {lower}   (or --cuda-graph-max-bs 32)",
        "a smaller pool: fewer requests at once",
    ),
    row(
        1,
        "sglang",
        When::Always,
        "--max-running-requests 16 --chunked-prefill-size 2048   (or raise --mem-fraction-static)",
        "fewer requests at once",
    ),
    row(
        1,
        "tensorrt-llm",
        When::Always,
        "kv_cache_free_gpu_mem_fraction: 0.6   (KvCacheConfig.free_gpu_memory_fraction)",
        "a smaller cache: fewer requests at once",
    ),
    row(
        1,
        "tgi",
        When::Always,
        "--max-total-tokens 4096 --kv-cache-dtype fp8_e5m2",
        "shorter conversations",
    ),
    row(
        1,
        "ollama",
        When::Always,
        "OLLAMA_CONTEXT_LENGTH={half} OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve",
        "shorter context; a little quality",
    ),
    row(
        1,
        "ollama",
        When::Always,
        "OLLAMA_CONTEXT_LENGTH=4096 OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve",
        "shorter context; a little quality",
    ),
    row(1, "lm-studio", When::Always, "lms load MODEL --context-length 8192", "shorter context"),
    row(
        1,
        "llama.cpp",
        When::FlashOff,
        "-fa on -c {half} -ctk q8_0 -ctv q8_0",
        "shorter context; a little quality",
    ),
    row(
        1,
        "llama.cpp",
        When::Always,
        "-c {half} -fa on -ctk q8_0 -ctv q8_0",
        "shorter context; a little quality",
    ),
    row(
        1,
        "llama.cpp",
        When::Always,
        "-c 8192 -fa on -ctk q8_0 -ctv q8_0",
        "shorter context; a little quality",
    ),
    row(
        1,
        "*",
        When::Always,
        "model.generate(..., cache_implementation=\"quantized\")   (or \"offloaded\": same text, slower)",
        "a little quality, or speed",
    ),
    // 2: four bits
    row(
        2,
        "vllm",
        When::Always,
        "vllm serve MODEL-AWQ   (a 4-bit repository), or --quantization fp8",
        QUALITY,
    ),
    row(
        2,
        "sglang",
        When::Always,
        "--mem-fraction-static {higher}, or --quantization fp8 / a 4-bit repository",
        "a larger share leaves less for activations",
    ),
    row(2, "ollama", When::Always, "ollama pull MODEL:TAG-q4_K_M", QUALITY),
    row(
        2,
        "llama.cpp",
        When::Always,
        "-m MODEL-IQ4_XS.gguf   (or a smaller Q3_K_M, or a smaller model)",
        QUALITY,
    ),
    row(2, "lm-studio", When::Always, "take a Q4_K_M or smaller file of the model", QUALITY),
    row(2, "tgi", When::Always, "--quantize bitsandbytes-nf4", QUALITY),
    row(
        2,
        "diffusers",
        When::Always,
        "PipelineQuantizationConfig(quant_backend=\"bitsandbytes_4bit\", quant_kwargs={\"load_in_4bit\": True}, components_to_quantize=[\"transformer\", \"text_encoder_2\"])",
        QUALITY,
    ),
    row(
        2,
        "comfyui",
        When::Always,
        "load an fp8 or GGUF checkpoint; --fp8_e4m3fn-text-enc",
        QUALITY,
    ),
    row(
        2,
        "*",
        When::Optimizer,
        "optim=\"paged_adamw_8bit\"   (6 bytes less a parameter), or LoRA on a 4-bit base",
        "LoRA trains fewer parameters",
    ),
    row(
        2,
        "*",
        When::Float32,
        "from_pretrained(..., dtype=\"auto\")   (half of float32), then 4 bits",
        "none for the first half",
    ),
    row(
        2,
        "*",
        When::Always,
        "quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)",
        QUALITY,
    ),
    // 3: who holds it
    row(
        3,
        "*",
        When::Siblings,
        "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))",
        "none: every rank then uses its own device",
    ),
    row(
        3,
        "jax",
        When::Collective,
        "XLA_CLIENT_MEM_FRACTION=0.80   (older: XLA_PYTHON_CLIENT_MEM_FRACTION)",
        "a smaller pool for XLA",
    ),
    row(
        3,
        "vllm",
        When::Always,
        "--gpu-memory-utilization {share}   (what is free now), or free the device",
        "a smaller cache",
    ),
    row(3, "ollama", When::Always, "ollama ps; ollama stop MODEL", "that model has to load again"),
    row(
        3,
        "*",
        When::Always,
        "vramlens   (live: who holds it, which are leftovers; then vramlens kill --dry-run PID)",
        "the processes that end",
    ),
    // 4: one step
    row(
        4,
        "vllm",
        When::Capture,
        "--max-num-seqs 64 --cudagraph-capture-sizes 1 2 4 8   (or --enforce-eager)",
        "fewer requests at once; eager is slower",
    ),
    row(
        4,
        "vllm",
        When::Always,
        "--max-num-seqs 64 --max-num-batched-tokens 2048",
        "fewer requests at once",
    ),
    row(
        4,
        "sglang",
        When::Always,
        "--max-running-requests 16 --chunked-prefill-size 2048",
        "fewer requests at once",
    ),
    row(
        4,
        "tgi",
        When::Always,
        "--max-batch-prefill-tokens {half_tokens}",
        "shorter prefills at once",
    ),
    row(4, "tgi", When::Always, "--max-batch-prefill-tokens 4096", "shorter prefills at once"),
    row(
        4,
        "tensorrt-llm",
        When::Always,
        "build with smaller --max_num_tokens and --max_batch_size",
        "fewer requests at once",
    ),
    row(
        4,
        "tensorrt",
        When::Always,
        "build with smaller maximum shapes in the optimisation profile",
        "no larger input",
    ),
    row(4, "llama.cpp", When::FlashOff, "-fa on -ub 512", "slower prompts"),
    row(4, "llama.cpp", When::Always, "-ub 256 -b 512", "slower prompts"),
    row(
        4,
        "whisper.cpp",
        When::Always,
        "a smaller or quantised model: ggml-large-v3-turbo-q5_0.bin",
        QUALITY,
    ),
    row(4, "comfyui", When::Always, "VAE Decode (Tiled), or --cpu-vae; batch 1", "slower decoding"),
    row(
        4,
        "stable-diffusion-webui",
        When::Always,
        "--medvram   (SDXL: --medvram-sdxl); a smaller picture; Tiled VAE",
        "slower",
    ),
    row(
        4,
        "diffusers",
        When::Always,
        "pipe.vae.enable_tiling()   (and fewer frames or pixels at once)",
        "slower decoding",
    ),
    row(
        4,
        "*",
        When::Decode,
        "vae.enable_tiling()   (or decode fewer frames at once)",
        "slower decoding",
    ),
    row(4, "tensorflow", When::Always, "model.fit(..., batch_size={batch_new})", STEPS),
    row(4, "tensorflow", When::Always, "model.fit(..., batch_size=HALF)", STEPS),
    row(
        4,
        "jax",
        When::Always,
        "a smaller batch or sequence; jax.checkpoint around blocks; XLA_CLIENT_MEM_FRACTION=.95 on an idle card",
        "more steps, or recomputing",
    ),
    row(
        4,
        "onnxruntime",
        When::Always,
        "{\"arena_extend_strategy\": \"kSameAsRequested\", \"cudnn_conv_use_max_workspace\": \"0\"}; a smaller batch",
        "slower",
    ),
    row(
        4,
        "rapids-rmm",
        When::Always,
        "read in chunks, or rmm.reinitialize(managed_memory=True)",
        "slower: pages move between RAM and VRAM",
    ),
    row(
        4,
        "cupy",
        When::Always,
        "work on slices; cupy.get_default_memory_pool().free_all_blocks() between them",
        "more steps",
    ),
    row(
        4,
        "numba",
        When::Always,
        "work on slices; delete device arrays that are done",
        "more steps",
    ),
    row(
        4,
        "blender",
        When::Always,
        "Render > Simplify: texture limit 2048, fewer subdivisions; smaller tiles",
        "detail",
    ),
    row(
        4,
        "hashcat",
        When::Always,
        "split the hash list (split -l 5000000 hashes.txt), or -w 1",
        "several runs",
    ),
    row(
        4,
        "unreal-engine",
        When::Always,
        "r.Streaming.PoolSize 3000 in the console; lower the resolution",
        "sharpness of textures",
    ),
    row(
        4,
        "*",
        When::Loss,
        "use_liger_kernel=True   (or another fused cross-entropy); then a smaller batch",
        "none, where the kernel supports the model",
    ),
    row(
        4,
        "*",
        When::Attention,
        "attn_implementation=\"sdpa\"   (or flash_attention_2), then a smaller batch",
        "none",
    ),
    row(
        4,
        "*",
        When::Training,
        "per_device_train_batch_size={batch_new}, gradient_accumulation_steps={accumulation}",
        STEPS,
    ),
    row(
        4,
        "*",
        When::Training,
        "per_device_train_batch_size=HALF, gradient_accumulation_steps=DOUBLE",
        STEPS,
    ),
    row(
        4,
        "*",
        When::Always,
        "halve the batch, the picture's area or the sequence of one step",
        "more steps",
    ),
    // 5: layers to the CPU
    row(
        5,
        "ollama",
        When::Always,
        "PARAMETER num_gpu {layers}   (or remove num_gpu: Ollama then chooses)",
        SLOWER,
    ),
    row(5, "ollama", When::Always, "remove num_gpu, or OLLAMA_GPU_OVERHEAD=1073741824", SLOWER),
    row(
        5,
        "llama.cpp",
        When::Always,
        "-ngl {layers}   (experts first: -ncmoe N; or leave -ngl out, --fit chooses)",
        SLOWER,
    ),
    row(
        5,
        "llama.cpp",
        When::Always,
        "leave -ngl out: --fit chooses   (experts first: -ncmoe N)",
        SLOWER,
    ),
    row(5, "lm-studio", When::Always, "lms load MODEL --gpu 0.5", SLOWER),
    row(
        5,
        "diffusers",
        When::Always,
        "pipe.enable_model_cpu_offload()   instead of pipe.to(\"cuda\")",
        "slower: components move over PCIe",
    ),
    row(5, "comfyui", When::Always, "--reserve-vram 1   (or --novram)", "slower"),
    row(
        5,
        "bitsandbytes",
        When::Always,
        "device_map=\"auto\", llm_int8_enable_fp32_cpu_offload=True   (8-bit only; the CPU part is float32)",
        SLOWER,
    ),
    row(5, "vllm", When::Always, "--cpu-offload-gb 8", "slower: weights cross PCIe every step"),
    row(
        5,
        "*",
        When::Always,
        "from_pretrained(..., device_map=\"auto\", max_memory={0: \"{fit_gib}GiB\", \"cpu\": \"60GiB\"})",
        SLOWER,
    ),
    row(5, "*", When::Always, "from_pretrained(..., device_map=\"auto\")", SLOWER),
    // 6: fragmentation and references
    row(
        6,
        "*",
        When::ReserveSet,
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True   (without expandable_segments_reserve)",
        "none",
    ),
    row(
        6,
        "*",
        When::NoVirtualMemory,
        "unset PYTORCH_CUDA_ALLOC_CONF   (expandable segments do not work on this platform)",
        "none",
    ),
    row(6, "*", When::MapsFull, "sudo sysctl vm.max_map_count=1048576", "none"),
    row(
        6,
        "onnxruntime",
        When::Always,
        "a new session now and then, or run option memory.enable_memory_arena_shrinkage=gpu:0; or a larger gpu_mem_limit",
        "a moment for the new session",
    ),
    row(
        6,
        "*",
        When::Collective,
        "torch.cuda.empty_cache()   before the collective; or torch.cuda.set_per_process_memory_fraction(0.9)",
        "a moment",
    ),
    row(
        6,
        "*",
        When::Growing,
        "keep numbers, not tensors: history.append(loss.item()); del x; gc.collect(); torch.cuda.empty_cache()",
        "none",
    ),
    row(
        6,
        "*",
        When::AlreadyExpandable,
        "sort or bucket the samples by length, or run the largest shape first",
        "order of the data",
    ),
    row(
        6,
        "pytorch-rocm",
        When::Fragmented,
        "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True",
        "none",
    ),
    row(
        6,
        "*",
        When::Fragmented,
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python ...",
        "none; set it before CUDA starts",
    ),
    row(
        6,
        "*",
        When::Always,
        "look for the other limit: container quota, vm.max_map_count, ulimit -v, free RAM",
        "none",
    ),
    // 7: checkpointing
    row(
        7,
        "*",
        When::Always,
        "gradient_checkpointing=True   (model.gradient_checkpointing_enable())",
        TIME,
    ),
    // 8: desktop
    row(
        8,
        "unreal-engine",
        When::Always,
        "close browsers and launchers, or lower their GPU use",
        "the programs that close",
    ),
    row(
        8,
        "*",
        When::Always,
        "close browsers and chat programs, or turn their hardware acceleration off",
        "the programs that close",
    ),
    // 9: it does not fit
    row(
        9,
        "*",
        When::Always,
        "vramlens fit MODEL   (what fits here, and the largest sibling that does)",
        "another model or another card",
    ),
];
