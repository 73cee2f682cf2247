//! cuBLAS, cuDNN, cuSOLVER, cuSPARSE, cuFFT and NCCL: they allocate outside the framework's pool, and
//! say so in their own words.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "cublas.alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUBLAS_STATUS_ALLOC_FAILED"],
        "CUBLAS_STATUS_ALLOC_FAILED",
        "cuBLAS found no room for its handle or workspace, which lie outside PyTorch's pool"
    ),
    row!(
        "cublas.not_initialized",
        "pytorch",
        Driver,
        Handle,
        ["CUBLAS_STATUS_NOT_INITIALIZED"],
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "cuBLAS could not make its handle, nearly always because the device is full"
    ),
    row!(
        "cudnn.alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUDNN_STATUS_ALLOC_FAILED"],
        "CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN found no room for its workspace, which lies outside PyTorch's pool"
    ),
    row!(
        "cudnn.device_alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"],
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cuDNN found no room for its workspace, which lies outside PyTorch's pool"
    ),
    row!(
        "cudnn.host_alloc",
        "pytorch",
        Host,
        Unknown,
        ["CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"],
        "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "cuDNN could not get host memory"
    ),
    row!(
        "cudnn.not_initialized",
        "pytorch",
        Driver,
        Handle,
        ["CUDNN_STATUS_NOT_INITIALIZED"],
        "CUDNN_STATUS_NOT_INITIALIZED",
        "cuDNN could not make its handle: the device is full, or the library does not match"
    ),
    row!(
        "cusolver.alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUSOLVER_STATUS_ALLOC_FAILED"],
        "CUSOLVER_STATUS_ALLOC_FAILED",
        "cuSOLVER found no room for its workspace"
    ),
    row!(
        "cusparse.alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"],
        "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
        "cuSPARSE found no room for its buffers"
    ),
    row!(
        "cufft.alloc",
        "pytorch",
        Driver,
        Handle,
        ["CUFFT_ALLOC_FAILED"],
        "CUFFT_ALLOC_FAILED",
        "cuFFT found no room for its work area"
    ),
    row!(
        "nccl.cuda_failure",
        "nccl",
        Driver,
        Collective,
        ["Cuda failure"],
        "Cuda failure ⟦2⟧'out of memory'",
        "NCCL found no room for its own buffers, which lie outside the framework's pool"
    ),
    row!(
        "nccl.size",
        "nccl",
        Gpu,
        Collective,
        ["Failed to CUDA"],
        "Failed to CUDA ⟦malloc⟧⟦calloc⟧⟦async⟧ <req:int> bytes",
        "NCCL found no room for its own buffers, which lie outside the framework's pool"
    ),
    row!(
        "nccl.host_size",
        "nccl",
        Host,
        Collective,
        ["Failed to CUDA host alloc"],
        "Failed to CUDA host alloc <hostreq:int> bytes",
        "NCCL could not get pinned host memory"
    ),
    row!(
        "nccl.shm",
        "nccl",
        Host,
        Unknown,
        ["/dev/shm/nccl-"],
        "failed to extend /dev/shm/nccl-",
        "the shared memory of the host or the container is full"
    ),
    row!(
        "nccl.shm_segment",
        "nccl",
        Host,
        Unknown,
        ["Error while creating shared memory segment"],
        "Error while creating shared memory segment",
        "the shared memory of the host or the container is full"
    ),
    row!(
        "nccl.nvls",
        "nccl",
        Other,
        Unknown,
        ["NVLink SHARP (NVLS) Multicast memory"],
        "Failed to bind NVLink SHARP (NVLS) Multicast memory",
        "NVLink multicast is not configured on this machine; NCCL_NVLS_ENABLE=0 goes without it"
    ),
];
