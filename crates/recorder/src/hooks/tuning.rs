//! Calls that tune or shrink the heap as a whole, or ask about it. Allocators without such functions leave these calls to
//! the C library, whose heap is then another one.

use crate::thread::{found, record_rare};
use core::ffi::c_int;
use core::mem::zeroed;
use heapmark_wire::capture::Event;

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallopt(parameter: c_int, value: c_int) -> c_int {
    record_rare(&Event::Mallopt { parameter, value });
    // SAFETY: valid if the program's own call is.
    found()
        .mallopt
        .map_or(0, |call| unsafe { call(parameter, value) })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_trim(pad: usize) -> c_int {
    record_rare(&Event::Trim { pad: pad as u64 });
    // SAFETY: valid if the program's own call is.
    found().malloc_trim.map_or(0, |call| unsafe { call(pad) })
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallinfo() -> libc::mallinfo {
    record_rare(&Event::Info);
    // SAFETY: valid if the program's own call is; zeros are valid numbers.
    unsafe { found().mallinfo.map_or_else(|| zeroed(), |call| call()) }
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallinfo2() -> libc::mallinfo2 {
    record_rare(&Event::Info);
    // SAFETY: valid if the program's own call is; zeros are valid numbers.
    unsafe { found().mallinfo2.map_or_else(|| zeroed(), |call| call()) }
}
