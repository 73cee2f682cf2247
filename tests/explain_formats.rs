//! One message of every kind that is known, as short as it comes, with what must be read from it.

use std::fmt::Write as _;

use vramlens::oom::{self, Diagnosis as D};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

struct Case {
    text: &'static str,
    software: &'static str,
    gpu: bool,
    diagnosis: Option<D>,
    requested: Option<u64>,
}

const fn case(
    text: &'static str,
    software: &'static str,
    gpu: bool,
    diagnosis: Option<D>,
    requested: Option<u64>,
) -> Case {
    Case { text, software, gpu, diagnosis, requested }
}

const BATCH: Option<D> = Some(D::BatchOrActivationTooBig);
const KV: Option<D> = Some(D::KvCacheTooBig);
const MODEL: Option<D> = Some(D::ModelTooBig);
const HOST: Option<D> = Some(D::HostRamNotVram);
const NOT: Option<D> = Some(D::NotOom);
const OTHER: Option<D> = Some(D::OtherProcessHoldsMemory);

static CASES: &[Case] = &[
    // PyTorch
    case(
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.60 GiB already allocated; 7.56 MiB free; 31.30 MiB cached)",
        "pytorch",
        true,
        None,
        Some(20 * MIB),
    ),
    case(
        "  File \"a.py\", line 1, in forward\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.76 GiB total capacity; 9.60 GiB already allocated; 7.56 MiB free; 9.70 GiB reserved in total by PyTorch)",
        "pytorch",
        true,
        BATCH,
        Some(2 * GIB),
    ),
    case(
        "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 512.00 MiB",
        "pytorch",
        true,
        None,
        Some(512 * MIB),
    ),
    case(
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 11.33 GiB. Of the allocated memory 9.00 GiB is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.",
        "pytorch-xpu",
        true,
        None,
        Some(GIB),
    ),
    case(
        "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.",
        "pytorch",
        false,
        NOT,
        None,
    ),
    case(
        "    torch._C._cuda_init()\nRuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "pytorch",
        true,
        OTHER,
        None,
    ),
    case(
        "torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com",
        "pytorch",
        true,
        None,
        None,
    ),
    case(
        "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
        "pytorch",
        true,
        None,
        None,
    ),
    case("RuntimeError: HIP error: out of memory", "pytorch-rocm", true, None, None),
    case(
        "RuntimeError: Expected nvmlInit: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at \"/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp\":1154, please report a bug to PyTorch.",
        "pytorch",
        true,
        None,
        None,
    ),
    case(
        "!!! Exception during processing !!! Allocation on device \nTraceback (most recent call last):\n  File \"/c/nodes.py\", line 1, in decode\n    images = vae.decode(samples[\"samples\"])\ntorch.OutOfMemoryError: Allocation on device \nGot an OOM, unloading all loaded models.",
        "comfyui",
        true,
        BATCH,
        None,
    ),
    case(
        "    loss.backward()\nRuntimeError: MPS backend out of memory (MPS allocated: 8.51 GiB, other allocations: 1.20 GiB, max allowed: 9.07 GiB). Tried to allocate 256.00 MiB on private pool.",
        "pytorch-mps",
        true,
        BATCH,
        Some(256 * MIB),
    ),
    case(
        "RuntimeError: Could not allocate tensor with 471859200 bytes. There is not enough GPU video memory available!",
        "pytorch-directml",
        true,
        None,
        Some(471_859_200),
    ),
    // libraries
    case(
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "pytorch",
        true,
        Some(D::UnknownGpuOom),
        None,
    ),
    case(
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "pytorch",
        true,
        None,
        None,
    ),
    case(
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "pytorch",
        false,
        HOST,
        None,
    ),
    case(
        "n1:40:40 [3] include/shm.h:1 NCCL WARN Error: failed to extend /dev/shm/nccl-Xy to 33030532 bytes, error: No space left on device (28)",
        "nccl",
        false,
        HOST,
        None,
    ),
    case(
        "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1",
        "nccl",
        false,
        NOT,
        None,
    ),
    case(
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 32,000,000,000 bytes (allocated so far: 8,000,000,512 bytes, limit set to: 24,000,000,000 bytes).",
        "cupy",
        true,
        BATCH,
        Some(32_000_000_000),
    ),
    case(
        "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "numba",
        true,
        None,
        None,
    ),
    case(
        "numba.cuda.cudadrv.driver.CudaAPIError: [<CUresult.CUDA_ERROR_OUT_OF_MEMORY: 2>] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "numba",
        true,
        None,
        None,
    ),
    case(
        "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/mr/device/cuda_memory_resource.hpp:60: cudaErrorMemoryAllocation out of memory",
        "rapids-rmm",
        true,
        None,
        None,
    ),
    case(
        "MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/rmm/pool.hpp:9: Maximum pool size exceeded (failed to allocate 2.000000 GiB): no room",
        "rapids-rmm",
        true,
        BATCH,
        Some(2 * GIB),
    ),
    case(
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
        "triton",
        false,
        NOT,
        None,
    ),
    case("RuntimeError: Triton Error [CUDA]: out of memory", "triton", true, None, None),
    case("RuntimeError: CUDA failed with error out of memory", "ctranslate2", true, None, None),
    case(
        "Warp CUDA error 2: out of memory (in function wp_alloc_device_async, warp.cu:660)",
        "warp",
        true,
        None,
        None,
    ),
    case(
        "[HAMI-core ERROR (pid:9 thread=1 allocator.c:54)]: Device 0 OOM 2059619328 / 1294967296\nRuntimeError: CUDA error: out of memory",
        "pytorch",
        true,
        None,
        None,
    ),
    // TensorFlow, JAX
    case(
        "2020-05-01 10:00:00.1: W tensorflow/core/common_runtime/bfc_allocator.cc:419] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB (rounded to 2415919104).  Current allocation summary follows.",
        "tensorflow",
        true,
        BATCH,
        Some(2_415_919_104),
    ),
    case(
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[32,128,128,512] and type half on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc [Op:Conv2D]",
        "tensorflow",
        true,
        BATCH,
        Some(536_870_912),
    ),
    case(
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 70.00GiB with allocator GPU_0_bfc on device 0.",
        "jax",
        true,
        BATCH,
        Some(70 * GIB),
    ),
    case(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 18.24GiB (19585050880B) on device ordinal 0",
        "jax",
        true,
        BATCH,
        Some(19_585_050_880),
    ),
    case(
        "RuntimeError: Resource exhausted: Out of memory while trying to allocate 4294967296 bytes.",
        "jax",
        true,
        BATCH,
        Some(4 * GIB),
    ),
    case(
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 80000000000 bytes.",
        "jax",
        false,
        HOST,
        None,
    ),
    // runtimes
    case(
        "onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. Name:'c' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 3221225472",
        "onnxruntime",
        true,
        BATCH,
        Some(3 * GIB),
    ),
    case(
        "RuntimeError: CUDA failure 2: out of memory ; GPU=0 ; hostname=h ; file=/x/cuda_allocator.cc ; line=40 ; expr=cudaMalloc((void**)&p, size);",
        "onnxruntime",
        true,
        None,
        None,
    ),
    case(
        "[TRT] [E] 2: [executionContext.cpp::ExecutionContext::436] Error Code 2: OutOfMemory (no further information)",
        "tensorrt",
        true,
        BATCH,
        None,
    ),
    case(
        "ResourceExhaustedError: \n\nOut of memory error on GPU 1. Cannot allocate 1.250000GB memory on GPU 1, 10.000000GB memory has been allocated(actual using allocated memory 8.500000GB) and available memory is only 900.000000MB.",
        "paddle",
        true,
        BATCH,
        Some(GIB + 256 * MIB),
    ),
    case(
        "[10:00:01] src/storage/./pooled_storage_manager.h:157: cudaMalloc failed: out of memory",
        "mxnet",
        true,
        None,
        None,
    ),
    case(
        "cv2.error: OpenCV(4.8.0) /x/gpu_mat.cu:121: error: (-217:Gpu API call) out of memory in function 'allocate'",
        "opencv",
        true,
        None,
        None,
    ),
    // llama.cpp and around it
    case(
        "CUDA error 2 at ggml-cuda.cu:7233: out of memory\ncurrent device: 0",
        "llama.cpp",
        true,
        None,
        None,
    ),
    case(
        "CUDA error: out of memory\n  current device: 0, in function alloc at /l/ggml-cuda.cu:503\n  cuMemCreate(&handle, reserve_size, &prop, 0)\n/l/ggml-cuda.cu:101: CUDA error",
        "llama.cpp",
        true,
        BATCH,
        None,
    ),
    case(
        "ggml_vulkan: Device memory allocation of size 2952790016 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\nllama_model_load: error loading model: unable to allocate Vulkan0 buffer",
        "llama.cpp",
        true,
        MODEL,
        Some(2_952_790_016),
    ),
    case(
        "ggml_metal_buffer_init: error: failed to allocate buffer, size = 8192.00 MiB\nllama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
        "llama.cpp",
        true,
        KV,
        Some(8 * GIB),
    ),
    case(
        "srv update_slots: failed to find a memory slot for batch of size 512",
        "llama.cpp",
        false,
        NOT,
        None,
    ),
    case(
        "request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "llama.cpp",
        false,
        NOT,
        None,
    ),
    case(
        "ggml_new_object: not enough space in the context's memory pool (needed 1, available 0)",
        "llama.cpp",
        false,
        NOT,
        None,
    ),
    case(
        "alloc_tensor_range: failed to allocate CPU buffer of size 42949672960\nllama_model_load: error loading model: unable to allocate CPU buffer",
        "llama.cpp",
        false,
        HOST,
        None,
    ),
    case(
        "Error: llama runner process has terminated: cudaMalloc failed: out of memory\nllama_kv_cache_init: failed to allocate buffer for kv cache (ollama)",
        "ollama",
        true,
        KV,
        None,
    ),
    case(
        "{\"error\":\"model requires more system memory (9.3 GiB) than is available (5.1 GiB)\"}",
        "ollama",
        false,
        HOST,
        None,
    ),
    // servers
    case(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "vllm",
        true,
        MODEL,
        None,
    ),
    case(
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (11216). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "vllm",
        true,
        KV,
        None,
    ),
    case(
        "ValueError: Free memory on device cuda:1 (10.5/79.19 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB).",
        "vllm",
        true,
        OTHER,
        Some(78_222_091_878),
    ),
    case(
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        "vllm",
        true,
        BATCH,
        None,
    ),
    case(
        "AssertionError: Error in memory profiling. Initial free memory 14395310080, current free memory 15395310080. This happens when the GPU memory was not properly cleaned up",
        "vllm",
        false,
        NOT,
        None,
    ),
    case(
        "WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
        "vllm",
        false,
        NOT,
        None,
    ),
    case(
        "RuntimeError: Decode out of memory. Try to lower your batch size.\nTry to allocate 32 tokens.\nAvailable tokens: 7",
        "sglang",
        true,
        KV,
        None,
    ),
    case(
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process has 23.00 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\nPossible solutions:",
        "sglang",
        true,
        KV,
        Some(GIB),
    ),
    // applications
    case(
        "RuntimeError: Insufficient VRAM in split for model and cache (exllamav2)",
        "exllama",
        true,
        MODEL,
        None,
    ),
    case(
        "whisper_init_state: failed to init conv allocator\nerror: failed to initialize whisper context",
        "whisper.cpp",
        true,
        BATCH,
        None,
    ),
    case(
        "Fra:1 Mem:1.0M | Scene | System is out of GPU memory\nError: System is out of GPU memory",
        "blender",
        true,
        BATCH,
        None,
    ),
    case(
        "* Device #2: Not enough allocatable device memory for this hashlist/ruleset.",
        "hashcat",
        true,
        BATCH,
        None,
    ),
    case(
        "[h264 @ 0x1] cuvidCreateDecoder(&ctx->cudecoder, &params) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "ffmpeg",
        true,
        None,
        None,
    ),
    case(
        "[h264_nvenc @ 0x1] OpenEncodeSessionEx failed: out of memory (10): (no details)",
        "ffmpeg",
        false,
        NOT,
        None,
    ),
    // host
    case(
        "[1.0] python invoked oom-killer: gfp_mask=0x0\n[1.1] Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB",
        "linux",
        false,
        HOST,
        None,
    ),
    case(
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 59.6 GiB for an array with shape (8000000000,) and data type float64",
        "python",
        false,
        HOST,
        None,
    ),
    case(
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        "c++",
        false,
        HOST,
        None,
    ),
    case(
        "OSError: [WinError 1455] The paging file is too small for this operation to complete",
        "windows",
        false,
        HOST,
        None,
    ),
    case(
        "safetensors_rust.SafetensorError: The paging file is too small for this operation to complete. (os error 1455)",
        "windows",
        false,
        HOST,
        None,
    ),
    case("OSError: [Errno 12] Cannot allocate memory", "python", false, HOST, None),
    case(
        "[enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not enough memory: you tried to allocate 1073741824 bytes.",
        "pytorch",
        false,
        HOST,
        None,
    ),
    case("trainer exited with code 137", "none", false, HOST, None),
    case("bash: line 1: 4242 Killed                  python train.py", "none", false, HOST, None),
    case("Traceback (most recent call last):\nMemoryError", "python", false, HOST, None),
    // other faults
    case(
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "pytorch",
        false,
        NOT,
        None,
    ),
    case(
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "none",
        false,
        NOT,
        None,
    ),
    case(
        "ImportError: /lib/libgomp.so.1: cannot allocate memory in static TLS block",
        "none",
        false,
        NOT,
        None,
    ),
    case(
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "pytorch",
        false,
        NOT,
        None,
    ),
    case(
        "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.\nPrompt executed in 9.1 seconds",
        "comfyui",
        false,
        NOT,
        None,
    ),
    case(
        " -- autosplit: layer 9 does not fit on cuda:0: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23",
        "exllama",
        false,
        NOT,
        None,
    ),
    case(
        "ERROR: Out of GPU memory trying to allocate 1.000 GiB\nEffective GPU memory usage: 99.90% (7.785 GiB/7.793 GiB)",
        "cuda.jl",
        true,
        None,
        Some(GIB),
    ),
    case(
        "Error using gpuArray\nOut of memory on device. To view more detail about available memory on the GPU, use 'gpuDevice()'.",
        "matlab",
        true,
        None,
        None,
    ),
    case(
        "Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")",
        "candle",
        true,
        None,
        None,
    ),
    case(
        "renderer: fatal: insufficient memory on the GPU for the scene",
        "cuda",
        true,
        Some(D::UnknownGpuOom),
        None,
    ),
    case(
        "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
        "java",
        false,
        HOST,
        None,
    ),
    case(
        "Nov 01 10:00:00 box systemd-oomd[700]: Killed /user.slice/app-python.scope due to memory pressure for /user.slice being 80% > 50%",
        "linux",
        false,
        HOST,
        None,
    ),
    case(
        "earlyoom[9]: sending SIGTERM to process 77 uid 1000 \"python3\": badness 870, VmRSS 30000 MiB",
        "linux",
        false,
        HOST,
        None,
    ),
    case(
        "providers=['CPUExecutionProvider']\n[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 3221225472",
        "onnxruntime",
        false,
        HOST,
        None,
    ),
    case("fatal error: runtime: out of memory", "go", false, HOST, None),
    case("memory allocation of 8589934592 bytes failed", "rust", false, HOST, None),
];

#[test]
fn every_kind_of_message_is_recognised() {
    let mut wrong = String::new();
    for case in CASES {
        let got = oom::explain(case.text.as_bytes());
        let alike = got.software == case.software
            && got.is_gpu_oom == case.gpu
            && case.diagnosis.is_none_or(|diagnosis| diagnosis == got.diagnosis)
            && got.requested_bytes == case.requested
            && got.recognised;
        if !alike {
            let head: String = case.text.chars().take(110).collect();
            writeln!(
                wrong,
                "{head}\n   got {} gpu={} {:?} {:?} by {:?}, want {} gpu={} {:?} {:?}",
                got.software,
                got.is_gpu_oom,
                got.diagnosis,
                got.requested_bytes,
                got.decisive.map(|quote| quote.signature),
                case.software,
                case.gpu,
                case.diagnosis,
                case.requested
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
