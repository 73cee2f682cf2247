//! A true message of an H200 (torch 2.11), as `vramlens run` met it.

use vramlens::oom::{self, Diagnosis};

const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 \
has a total capacity of 139.80 GiB of which 3.29 GiB is free. Including non-PyTorch memory, this \
process has 136.51 GiB memory in use. Of the allocated memory 136.00 GiB is allocated by PyTorch, and \
0 bytes is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try \
setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation \
for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html)\n";

const GIB: u64 = 1 << 30;

/// What `n` hundredths of a GiB are, rounded as a reader of the message has to.
fn hundredths(n: u64) -> u64 {
    (n as f64 / 100.0 * GIB as f64).round() as u64
}

#[test]
fn every_figure_of_the_message_is_read() {
    let answer = oom::explain(MESSAGE.as_bytes());
    assert!(answer.is_gpu_oom);
    assert_eq!(answer.software, "pytorch");
    assert_eq!(answer.requested_bytes, Some(4 * GIB));
    assert_eq!(answer.total_bytes, Some(hundredths(13_980)));
    assert_eq!(answer.free_bytes, Some(hundredths(329)));
    assert_eq!(answer.this_process_bytes, Some(hundredths(13_651)));
    assert_eq!(answer.allocated_bytes, Some(136 * GIB));
    assert_eq!(answer.reserved_unallocated_bytes, Some(0));
    assert_eq!(answer.diagnosis, Diagnosis::BatchOrActivationTooBig);
    let advised: Vec<_> = answer.advice.iter().map(|advice| advice.fix).collect();
    assert!(!advised.contains(&6), "nothing is cached: {advised:?}");
}
