//! TensorFlow: the BFC allocator's lines and the operations' errors.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "tf.not_a_failure",
        "tensorflow",
        Recovered,
        Unknown,
        ["The caller indicates that this is not a failure", "with freed_by_count"],
        "Allocator (GPU_ … ran out of memory trying to allocate … The caller indicates that this is not \
         a failure",
        "TensorFlow tried a larger workspace, did not get it, and went on with a smaller one"
    ),
    row!(
        "tf.bfc_device",
        "tensorflow",
        Gpu,
        Unknown,
        ["ran out of memory trying to allocate", "requested by op", "bfc_allocator"],
        "Allocator (GPU_<dev:int>_bfc) ran out of memory trying to allocate <req:size>⟦(rounded to <req:int>)⟧\
         ⟦requested by op⟧",
        "TensorFlow's pool has no block of that size"
    ),
    row!(
        "tf.bfc",
        "tensorflow",
        Gpu,
        Unknown,
        ["ran out of memory trying to allocate", "requested by op", "bfc_allocator"],
        "ran out of memory trying to allocate <req:size>⟦(rounded to <req:int>)⟧⟦requested by op⟧",
        "TensorFlow's pool has no block of that size"
    ),
    row!(
        "tf.stats",
        "tensorflow",
        Detail,
        Unknown,
        ["MaxInUse:", "Limit: "],
        "Limit: <total:int> InUse: <alloc:int> MaxInUse:",
        "the allocator's statistics: the limit is the pool's, not the device's"
    ),
    row!(
        "tf.shape",
        "tensorflow",
        Gpu,
        Unknown,
        ["OOM when allocating", "by allocator GPU"],
        "OOM when allocating ⟦temporary⟧⟦tensor with shape⟧⟦tensor of shape⟧",
        "an operation's result did not fit into TensorFlow's pool"
    ),
    row!(
        "tf.device",
        "tensorflow",
        Gpu,
        Startup,
        ["failed to allocate ", "from device: CUDA_ERROR_OUT_OF_MEMORY"],
        "failed to allocate <req:size> (<req:int> bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
        "TensorFlow could not take its pool: somebody else holds the device"
    ),
    row!(
        "tf.cublas",
        "tensorflow",
        Bare,
        Handle,
        ["failed to create cublas handle"],
        "failed to create cublas handle",
        "cuBLAS could not make its handle, nearly always because the device is full"
    ),
    row!(
        "tf.cudnn",
        "tensorflow",
        Bare,
        Handle,
        ["Could not create cudnn handle"],
        "Could not create cudnn handle",
        "cuDNN could not make its handle: the device is full, or the library does not match"
    ),
    row!(
        "tf.exhausted",
        "tensorflow",
        Bare,
        Unknown,
        ["ResourceExhaustedError"],
        "ResourceExhaustedError:",
        "TensorFlow ran out of a resource"
    ),
];
