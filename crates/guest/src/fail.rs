//! How a guest gives up: one line in the report, a known exit code, at once and from any thread.

use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use heapmark_wire::{EXIT_FAILED, Page};

static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);

/// Names the page that failures are written to.
pub fn report_to(page: &'static Page) {
    PAGE.store(ptr::from_ref(page).cast_mut(), Ordering::Release);
}

/// Writes `fail=KIND WHAT` and ends the process. Kinds are outcome words: `oom`, `wrong-result`, `unsupported`, `error`.
#[cold]
pub fn give_up(kind: &str, what: fmt::Arguments<'_>) -> ! {
    if FAILED.swap(true, Ordering::AcqRel) {
        // Another thread is on its way out with its own reason; the first one counts.
        loop {
            // SAFETY: waits to be ended.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: either null or the page of this process, which is never unmapped.
    if let Some(page) = unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        // A report that is full says at least by its exit code that this failed.
        let _ = page.say(format_args!("fail={kind} {what}"));
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(EXIT_FAILED) }
}

/// The allocator returned NULL where the workload needs memory.
#[cold]
pub fn null(call: &str, bytes: usize) -> ! {
    give_up("oom", format_args!("{call} returned NULL for {bytes} bytes"))
}

/// Says how a guest is called; it is heapmark's own program, so this is for the curious.
pub fn usage() -> c_int {
    const TEXT: &[u8] =
        b"heapmark-guest PAGE, heapmark-guest launch ...: parts of heapmark; see `heapmark run --help`\n";
    // SAFETY: writes a static text to stderr.
    unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    2
}
