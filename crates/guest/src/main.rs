//! The measured process: a thin wrapper of the guest library. `no_main`, so that the runtime of the
//! standard library allocates nothing under the measured allocator.

#![no_main]

use std::ffi::{c_char, c_int};

/// Runs the guest library; called by the C runtime.
///
/// # Safety
/// The C runtime passes valid arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: passed on unchanged.
    unsafe { heapmark_guest::main(argc, argv) }
}

/// Runs as the process ends, before the destructors of its libraries.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    heapmark_guest::before_destructors();
}
