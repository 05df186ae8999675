//! The environment variables with which heapmark configures the recorder.

use core::ffi::CStr;

/// Returns the value of a variable; empty if the variable is not set.
pub fn variable(name: &CStr) -> &'static [u8] {
    // SAFETY: `getenv` returns a C string, and it is called before there are other threads.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() {
            &[]
        } else {
            CStr::from_ptr(value).to_bytes()
        }
    }
}

/// Parses a number of decimal digits.
pub fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
