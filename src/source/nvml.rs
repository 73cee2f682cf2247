//! NVML.
