//! Messages that come alone.

use super::{RAM, file, line, said, told, useless};

#[test]
fn a_share_turns_the_way_that_helps() {
    // The trial run wants more beside the cache, the cache wants more of the device.
    let warm = said(
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization`",
    );
    assert_eq!(line(&warm, 1), Some("--gpu-memory-utilization 0.85"));
    let blocks = said("ValueError: No available memory for the cache blocks.");
    assert!(line(&blocks, 1).unwrap().starts_with("--gpu-memory-utilization 0.95"));
    assert!(!useless(&blocks, "A smaller batch"), "{:?}", blocks.will_not_help);
    let given =
        said("gpu_memory_utilization=0.96\nValueError: No available memory for the cache blocks.");
    assert_eq!(line(&given, 1), Some("--enforce-eager"));
    let set = said(
        "I0709 XLA_PYTHON_CLIENT_MEM_FRACTION=0.75\nE0709 nccl_communicator.cc:412] NCCL operation ncclGroupEnd() failed: unhandled cuda error. Last NCCL warning(error) log entry (may be unrelated) 'Cuda failure 'out of memory''.\njax.errors.JaxRuntimeError: INTERNAL: NCCL",
    );
    assert_eq!(line(&set, 3), Some("XLA_CLIENT_MEM_FRACTION=0.65"), "{:?}", set.advice);
    assert_eq!(line(file("042"), 3), Some("XLA_CLIENT_MEM_FRACTION=0.80"));
}

#[test]
fn a_quota_beside_a_message_without_figures_is_the_cause() {
    let pod = said(
        "[HAMI-core ERROR (pid:9 thread=1 allocator.c:54)]: Device 0 OOM 2059619328 / 1294967296\nRuntimeError: CUDA error: out of memory",
    );
    assert_eq!(pod.fixes, [6, 4]);
    let text = told(&pod);
    assert!(text.starts_with("GPU memory was refused: PyTorch"), "{text}");
    assert!(text.contains("quota of 1.21 GiB") && !text.contains("does not tell"), "{text}");
    let cupy = said(
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 32,000,000,000 bytes (allocated so far: 8,000,000,512 bytes, limit set to: 24,000,000,000 bytes).",
    );
    assert_eq!(line(&cupy, 6), Some("CUPY_GPU_MEMORY_LIMIT=90%"));
    let pool = file("061");
    assert!(line(pool, 6).unwrap().contains("maximum_pool_size"), "{:?}", pool.advice);
    assert!(!useless(pool, RAM), "{:?}", pool.will_not_help);
}

#[test]
fn a_guess_before_loading_is_told_from_a_buffer_that_did_not_fit() {
    assert!(told(file("102")).starts_with("The model was refused before loading"));
    let loading = said(
        "LM Studio 0.3\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 18508.35 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n",
    );
    assert_eq!(loading.software, "lm-studio");
    assert!(told(&loading).starts_with("GPU memory ran out: LM Studio"));
    assert_eq!(loading.fixes, [5, 2]);
    assert!(useless(&loading, RAM));
}

#[test]
fn a_share_is_the_cause_also_where_the_device_had_hardly_more() {
    let step = said(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 8.00 GiB already allocated; 2.20 GiB free; 9.00 GiB allowed; 8.50 GiB reserved in total by PyTorch)",
    );
    let text = told(&step);
    assert!(text.contains("short by at least 1.50 GiB of what it may take"), "{text}");
    assert!(text.contains("WHY: this process's share of the device is used up"), "{text}");
    assert!(line(&step, 6).is_some_and(|line| line.contains("memory_fraction")), "{text}");
}

#[test]
fn segments_are_turned_off_only_where_they_are_on() {
    let message = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already allocated; 6.00 GiB free; 1.10 GiB reserved in total by PyTorch)";
    let wsl = said(&format!("Linux 6.6.87.2-microsoft-standard-WSL2\n{message}"));
    assert!(wsl.refused_with_room && wsl.fixes == [6], "{:?}", wsl.advice);
    assert_eq!(wsl.advice[0].title, "Lift the other limit");
    assert!(!line(&wsl, 6).unwrap().contains("unset"), "{:?}", wsl.advice);
    assert_eq!(file("021").advice[0].title, "Turn expandable segments off");
}

#[test]
fn what_a_program_does_not_have_is_not_advised() {
    let split = said("RuntimeError: Insufficient VRAM in split for model and cache (exllamav2)");
    assert_eq!(split.fixes, [2, 1], "it keeps no layers on the CPU");
    let metal = said(
        "ggml_metal_buffer_init: error: failed to allocate buffer, size = 8192.00 MiB\nllama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
    );
    assert!(!useless(&metal, RAM), "{:?}", metal.will_not_help);
    let whisper = said(
        "whisper_init_state: failed to init conv allocator\nerror: failed to initialize whisper context",
    );
    assert_eq!(whisper.fixes, [4]);
    let heap = said("Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space");
    assert!(heap.advice.iter().all(|advice| !advice.line.contains("low_cpu_mem")));
}

#[test]
fn figures_that_make_no_sense_break_nothing() {
    let zero = said(
        "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA X) - 17000 MiB free\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 0.00 MiB on device 0: cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of size 0\n",
    );
    assert_eq!((zero.requested_bytes, zero.short_bytes), (Some(0), None));
    assert!(told(&zero).contains("leave -ngl out"), "{:?}", zero.advice);
    let most = "17179869183.00 GiB";
    let huge = said(&format!(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {most}. GPU 0 has a total capacity of {most} of which {most} is free. {most} allowed; Of the allocated memory {most} is allocated by PyTorch, and {most} is reserved by PyTorch but unallocated."
    ));
    assert!(huge.is_gpu_oom && told(&huge).contains("FIXES"));
}
