//! Programs that ran out of host memory, in their own words.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "host.numpy",
        "python",
        Host,
        Unknown,
        ["for an array with shape"],
        "Unable to allocate <hostreq:size> for an array with shape",
        "NumPy could not get host memory"
    ),
    row!(
        "host.numpy_error",
        "python",
        Host,
        Unknown,
        ["ArrayMemoryError"],
        "ArrayMemoryError: Unable to allocate <hostreq:size>",
        "NumPy could not get host memory"
    ),
    row!(
        "host.memory_error",
        "python",
        Host,
        Unknown,
        ["MemoryError"],
        "MemoryError",
        "Python could not get host memory"
    ),
    row!(
        "host.bad_alloc",
        "c++",
        Host,
        Unknown,
        ["std::bad_alloc"],
        "std::bad_alloc",
        "a C++ program could not get host memory"
    ),
    row!(
        "host.errno_12",
        "python",
        Host,
        Unknown,
        ["Cannot allocate memory"],
        "Cannot allocate memory",
        "the kernel gave no host memory"
    ),
    row!(
        "host.paging_file",
        "windows",
        Host,
        Unknown,
        ["paging file is too small", "WinError 1455", "os error 1455"],
        "paging file is too small",
        "the Windows paging file is too small for what was reserved"
    ),
    row!(
        "host.winerror",
        "windows",
        Host,
        Unknown,
        ["WinError 1455"],
        "[WinError 1455]",
        "the Windows paging file is too small for what was reserved"
    ),
    row!(
        "host.oserror",
        "windows",
        Host,
        Unknown,
        ["os error 1455"],
        "os error 1455",
        "the Windows paging file is too small for what was reserved"
    ),
    row!(
        "host.pinned",
        "any",
        Host,
        Unknown,
        ["cudaHostAlloc", "cudaMallocHost"],
        "cudaHostAlloc … out of memory",
        "pinned host memory was not given"
    ),
    row!(
        "host.memlock",
        "any",
        Host,
        Unknown,
        ["RLIMIT_MEMLOCK", "max locked memory"],
        "RLIMIT_MEMLOCK",
        "the limit of locked host memory was reached"
    ),
    row!(
        "host.vulkan",
        "any",
        Host,
        Unknown,
        ["VK_ERROR_OUT_OF_HOST_MEMORY"],
        "VK_ERROR_OUT_OF_HOST_MEMORY",
        "Vulkan could not get host memory"
    ),
    row!(
        "host.hashcat",
        "hashcat",
        Host,
        Unknown,
        ["Not enough free host memory"],
        "Not enough free host memory",
        "Hashcat could not get host memory"
    ),
    row!(
        "host.rmm",
        "rapids-rmm",
        Host,
        Unknown,
        ["of memory: std::bad_alloc"],
        "of memory: std::bad_alloc",
        "RMM could not get host memory"
    ),
    row!(
        "host.node",
        "node",
        Host,
        Unknown,
        ["JavaScript heap out of memory"],
        "JavaScript heap out of memory",
        "the heap of a JavaScript program is full"
    ),
    row!(
        "host.java",
        "java",
        Host,
        Unknown,
        ["java.lang.OutOfMemoryError"],
        "java.lang.OutOfMemoryError",
        "the heap of a Java program is full"
    ),
    row!(
        "host.java_heap",
        "java",
        Host,
        Unknown,
        ["Java heap space"],
        "OutOfMemoryError: Java heap space",
        "the heap of a Java program is full"
    ),
    row!(
        "host.go",
        "go",
        Host,
        Unknown,
        ["runtime: out of memory"],
        "fatal error: runtime: out of memory",
        "a Go program could not get host memory"
    ),
    row!(
        "host.r",
        "r",
        Host,
        Unknown,
        ["cannot allocate vector of size"],
        "cannot allocate vector of size <hostreq:size>",
        "R could not get host memory"
    ),
    row!(
        "host.php",
        "php",
        Host,
        Unknown,
        ["Allowed memory size of"],
        "Allowed memory size of <hostlimit:int> bytes exhausted",
        "PHP reached its own limit"
    ),
    row!(
        "host.malloc",
        "c++",
        Host,
        Unknown,
        ["malloc failed"],
        "Out of memory, malloc failed",
        "a program could not get host memory"
    ),
    row!(
        "host.rust",
        "rust",
        Host,
        Unknown,
        ["memory allocation of"],
        "memory allocation of <hostreq:int> bytes failed",
        "a Rust program could not get host memory"
    ),
    row!(
        "host.mmap",
        "none",
        Host,
        Unknown,
        ["mmap failed"],
        "mmap failed: Cannot allocate memory",
        "the kernel gave no host memory"
    ),
    row!(
        "host.docker",
        "docker",
        Host,
        Unknown,
        ["OOMKilled"],
        "\"OOMKilled\": true",
        "the container exceeded its limit of host memory"
    ),
    row!(
        "host.systemd",
        "systemd",
        Host,
        Unknown,
        ["result 'oom-kill'"],
        "Failed with result 'oom-kill'",
        "the kernel ended a unit for host memory"
    ),
];
