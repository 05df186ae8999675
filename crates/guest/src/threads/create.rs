//! The creation of threads.

use crate::stack::Stack;
use core::ffi::c_void;

/// The function that a thread runs.
pub type ThreadEntry = extern "C" fn(*mut c_void) -> *mut c_void;

/// Creates a detached thread, such as one of larson's incarnations.
///
/// # Safety
/// `argument` must be of the kind that `entry` expects and live until the thread has ended.
pub unsafe fn detach(entry: ThreadEntry, argument: *mut c_void) {
    // SAFETY: the caller guarantees the argument; the C library provides the stack.
    unsafe { create(entry, argument, &Stack::none(), true, 0) };
}

/// Creates a thread; `index` names it in the error message.
///
/// # Safety
/// `argument` must be of the kind that `entry` expects. The argument and the stack must live until
/// the thread has ended.
pub unsafe fn create(
    entry: ThreadEntry,
    argument: *mut c_void,
    stack: &Stack,
    detached: bool,
    index: usize,
) -> libc::pthread_t {
    // SAFETY: attributes are initialised before their use; the caller guarantees the rest.
    let (thread, error) = unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        let mut thread: libc::pthread_t = 0;
        libc::pthread_attr_init(&mut attributes);
        if detached {
            libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        }
        stack.give(&mut attributes);
        let error = libc::pthread_create(&mut thread, &attributes, entry, argument);
        libc::pthread_attr_destroy(&mut attributes);
        (thread, error)
    };
    if error != 0 {
        let kind = if error == libc::EAGAIN {
            "no-thread"
        } else {
            "error"
        };
        fail!(
            kind,
            "pthread_create for thread {index} failed with errno {error}"
        );
    }
    thread
}
