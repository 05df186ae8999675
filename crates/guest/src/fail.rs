//! How a guest reports a failure: one line in the report, a known exit code, at once and from any
//! thread.

use crate::api::{self, Api};
use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use heapmark_wire::{EXIT_FAILED, Page};

static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);

/// Sets the page that failures are written to.
pub fn report_to(page: &'static Page) {
    PAGE.store(ptr::from_ref(page).cast_mut(), Ordering::Release);
}

/// Writes `fail=KIND WHAT` and ends the process. Kinds are outcome words: `oom`, `wrong-result`,
/// `unsupported`, `absent`, `error`; or `no-thread`, for which memory or the allowed number of
/// threads has run out.
#[cold]
pub fn give_up(kind: &str, what: fmt::Arguments<'_>) -> ! {
    if FAILED.swap(true, Ordering::AcqRel) {
        // Another thread is ending the process with its own reason; the first one counts.
        loop {
            // SAFETY: waits to be ended.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: either null or the page of this process, which is never unmapped.
    if let Some(page) = unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        // If the report is full, at least the exit code shows the failure.
        let _ = page.say(format_args!("fail={kind} {what}"));
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(EXIT_FAILED) }
}

/// The allocator returned NULL and the workload needs the memory.
#[cold]
pub fn null(call: &str, bytes: usize) -> ! {
    give_up(
        "oom",
        format_args!("{call} returned NULL for {bytes} bytes"),
    )
}

/// posix_memalign returned no block. If malloc has as much memory, the alignment was refused.
#[cold]
pub fn no_aligned(
    api: &Api,
    alignment: usize,
    size: usize,
    error: c_int,
    place: fmt::Arguments<'_>,
) -> ! {
    let why = match error {
        0 => "returned 0 and no block",
        libc::EINVAL => "returned EINVAL",
        libc::ENOMEM => "returned ENOMEM",
        _ => "failed",
    };
    // SAFETY: an ordinary call.
    if unsafe { (api.malloc)(size + alignment) }.is_null() {
        give_up(
            "oom",
            format_args!("posix_memalign({alignment}, {size}) {why}{place}"),
        );
    }
    let more = size + alignment;
    give_up(
        "wrong-result",
        format_args!(
            "posix_memalign({alignment}, {size}) {why}, though malloc({more}) has memory{place}"
        ),
    )
}

/// A block does not have the alignment that every block must have.
#[cold]
pub fn misaligned(call: fmt::Arguments<'_>, block: usize, alignment: usize) -> ! {
    let is_of_dlmalloc = || api::beside_free(c"independent_comalloc").is_some();
    let hint = if block.is_multiple_of(8) && is_of_dlmalloc() {
        "; built for 8? it is a descendant of dlmalloc, and takes -DMALLOC_ALIGNMENT=16"
    } else {
        ""
    };
    give_up(
        "wrong-result",
        format_args!("{call} returned {block:#x}, which is not aligned to {alignment} bytes{hint}"),
    )
}

/// The page cannot be mapped, although its descriptor existed when the process began.
pub fn no_page() -> c_int {
    const TEXT: &[u8] =
        b"heapmark-guest: its page is gone: a preloaded library closes descriptors that are not its own as it is loaded\n";
    // SAFETY: writes a static text to stderr.
    unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    2
}

/// Prints the usage. Normally only heapmark starts this program.
pub fn usage() -> c_int {
    const TEXT: &[u8] =
        b"heapmark-guest PAGE, heapmark-guest launch ...: parts of heapmark; see `heapmark run --help`\n";
    // SAFETY: writes a static text to stderr.
    unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    2
}
