//! Reading a PyTorch process's caching allocator from outside.
