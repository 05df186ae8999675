//! The functions whose calls are timed.

/// The functions, in the order of the enumeration. C++ operators are counted with the C functions
/// that they correspond to.
pub const FUNCTIONS: [&str; 5] = ["malloc", "free", "calloc", "realloc", "posix_memalign"];

/// A function whose calls are timed.
#[derive(Clone, Copy)]
pub enum Function {
    Malloc,
    Free,
    Calloc,
    Realloc,
    PosixMemalign,
}
