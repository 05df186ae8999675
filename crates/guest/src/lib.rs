//! What runs *under* an allocator: kernels and the little they need. libc only.
