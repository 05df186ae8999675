//! Calls that tune or shrink the heap as a whole, or ask about it. Allocators without such functions leave these calls to
//! the C library, whose heap is then another one.

use crate::thread::{found, record_rare};
use core::ffi::c_int;
use core::mem::zeroed;
use heapmark_wire::capture::Event;

/// # Safety
/// As glibc defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallopt(parameter: c_int, value: c_int) -> c_int {
    record_rare(&Event::Mallopt { parameter, value });
    // SAFETY: as the program's call.
    found()
        .mallopt
        .map_or(0, |call| unsafe { call(parameter, value) })
}

/// # Safety
/// As glibc defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_trim(pad: usize) -> c_int {
    record_rare(&Event::Trim { pad: pad as u64 });
    // SAFETY: as the program's call.
    found().malloc_trim.map_or(0, |call| unsafe { call(pad) })
}

/// # Safety
/// As glibc defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallinfo() -> libc::mallinfo {
    record_rare(&Event::Info);
    // SAFETY: as the program's call; zeros are numbers.
    unsafe { found().mallinfo.map_or_else(|| zeroed(), |call| call()) }
}

/// # Safety
/// As glibc defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallinfo2() -> libc::mallinfo2 {
    record_rare(&Event::Info);
    // SAFETY: as the program's call; zeros are numbers.
    unsafe { found().mallinfo2.map_or_else(|| zeroed(), |call| call()) }
}
