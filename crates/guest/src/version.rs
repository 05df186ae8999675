//! Asks the preloaded library for its version, so that users need not type it.

use crate::api;
use crate::job::Job;
use crate::objects::Objects;
use crate::report;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// Writes `version=…` if the library has the function that the job names and the function returns a version.
pub fn report(job: &Job<'_>) {
    let mut name = [0u8; 128];
    let Some(symbol) = job.c_str("version.symbol", &mut name) else {
        return;
    };
    let address = Objects::loaded().find(symbol);
    if address.is_null() {
        return;
    }
    let version = match job.word("version.returns") {
        // SAFETY: the catalogue declares this as `int f(void)`.
        "decimal" => return decimal(unsafe { api::call(address, &[0; 6]) } as u32),
        "mallctl" => mallctl(address),
        // SAFETY: the catalogue declares this as a function that returns a string and tolerates
        // null arguments.
        _ => (unsafe { api::call(address, &[0; 6]) }) as *const c_char,
    };
    if !version.is_null() {
        // SAFETY: a C string of the library.
        let text = unsafe { CStr::from_ptr(version) };
        report::write(format_args!("version={}", text.to_str().unwrap_or("?")));
    }
}

/// Calls `mallctl("version", &text, &len, NULL, 0)`; returns NULL if that fails.
fn mallctl(address: *mut c_void) -> *const c_char {
    let mut text: *const c_char = ptr::null();
    let mut len = size_of::<*const c_char>();
    let args = [
        c"version".as_ptr() as usize,
        &raw mut text as usize,
        &raw mut len as usize,
        0,
        0,
        0,
    ];
    // SAFETY: jemalloc's documented signature.
    if unsafe { api::call(address, &args) as i32 } == 0 {
        text
    } else {
        ptr::null()
    }
}

/// Writes a version from one of mimalloc's numbers: `225` is 2.2.5; `3208`, as in a few releases, is 3.2.8; `20502` and
/// `30600` have two digits for minor and patch.
fn decimal(number: u32) {
    let (major, minor, patch) = match number {
        0..1000 => (number / 100, number / 10 % 10, number % 10),
        1000..10_000 => (number / 1000, number / 100 % 10, number % 100),
        _ => (number / 10_000, number / 100 % 100, number % 100),
    };
    report::write(format_args!("version={major}.{minor}.{patch}"));
}
