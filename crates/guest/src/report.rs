//! What a guest reports: lines in the shared page. A failure is one such line together with a known exit code, and ends
//! the process at once, from any thread.

use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Acquire, Release},
};
use heapmark_wire::{EXIT_FAILED, Page};

/// Ends the process with a kind and a formatted message, as [`give_up`] does.
macro_rules! fail {
    ($kind:expr, $($what:tt)+) => {
        $crate::report::give_up($kind, format_args!($($what)+))
    };
}

static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);

/// Sets the page that the whole report is written to.
pub fn to(page: &'static Page) {
    PAGE.store(ptr::from_ref(page).cast_mut(), Release);
}

/// Writes a line of the report; returns whether there was room. Without a page it writes nothing.
pub fn write(line: fmt::Arguments<'_>) -> bool {
    // SAFETY: either null or the page of this process, which is never unmapped.
    let page = unsafe { PAGE.load(Acquire).as_ref() };
    page.is_none_or(|page| page.say(line).is_ok())
}

/// Writes a line that must not be missing from the report.
pub fn say(key: &str, value: impl fmt::Display) {
    if !write(format_args!("{key}={value}")) {
        fail!("error", "the report is full");
    }
}

/// Writes `fail=KIND WHAT` and ends the process. Kinds are outcome words: `oom`, `wrong-result`, `unsupported`,
/// `absent`, `error`; or `no-thread` if memory or the allowed number of threads has run out.
#[cold]
pub fn give_up(kind: &str, what: fmt::Arguments<'_>) -> ! {
    if FAILED.swap(true, AcqRel) {
        // Another thread is ending the process with its own reason; the first reason counts.
        loop {
            // SAFETY: waits to be ended.
            unsafe { libc::pause() };
        }
    }
    // If the report is full, at least the exit code shows the failure.
    _ = write(format_args!("fail={kind} {what}"));
    // SAFETY: ends the process.
    unsafe { libc::_exit(EXIT_FAILED) }
}

/// Ends the process because the allocator returned NULL and the workload needs the memory.
#[cold]
pub fn no_block(call: &str, bytes: usize) -> ! {
    fail!("oom", "{call} returned NULL for {bytes} bytes")
}

/// Prints that the page cannot be mapped, although its descriptor existed when the process began. Returns the exit
/// code.
pub fn no_page() -> c_int {
    const TEXT: &[u8] =
        b"heapmark-guest: its page is gone: a preloaded library closes descriptors that are not its own as it is loaded\n";
    // SAFETY: writes a static text to stderr.
    unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    2
}

/// Prints the usage; returns the exit code. Normally only heapmark starts this program.
pub fn usage() -> c_int {
    const TEXT: &[u8] =
        b"heapmark-guest PAGE, heapmark-guest launch ...: parts of heapmark; see `heapmark run --help`\n";
    // SAFETY: writes a static text to stderr.
    unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    2
}
