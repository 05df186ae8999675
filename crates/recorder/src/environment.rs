//! The variables with which heapmark tells the recorder what to do.

use core::ffi::CStr;

/// The value of a variable; empty without it.
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

/// A number of decimal digits.
pub fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
