//! The end of the process.

use crate::chunk_space::seal;
use crate::layout::WIPED;
use crate::local::{Errno, local};
use crate::{large, metadata};
use core::ffi::{c_int, c_void};
use core::ptr;

unsafe extern "C" {
    // As glibc declares it: the function, its argument, and its library.
    fn __cxa_atexit(
        call: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        library: *mut c_void,
    ) -> c_int;
}

/// Registers the end of the process to run after the destructors of other libraries. These
/// destructors together are one of the functions that `exit` calls; a function that is registered
/// during that call is called after it.
pub fn end_process_last() {
    // SAFETY: the function stays loaded: no library is named, so none can be unloaded.
    if unsafe { __cxa_atexit(end_process, ptr::null_mut(), ptr::null_mut()) } != 0 {
        end_process(ptr::null_mut());
    }
}

/// Handles a regular end of the process: writes what is known now, and seals the chunks that are
/// not in use.
extern "C" fn end_process(_: *mut c_void) {
    let _errno = Errno::keep();
    let process = &WIPED.process;
    if !process.is_on() {
        return;
    }
    large::tell_of_all(&WIPED.large);
    process.tell(|text, room| metadata::at_end(text, room, WIPED.states.inner()));
    process.stop("exit");
    // SAFETY: the variable belongs to the calling thread.
    unsafe {
        let state = (*local()).state;
        if !state.is_null() {
            seal(state);
        }
    }
    WIPED.states.seal_idle();
    process.tell(|text, _| {
        WIPED
            .states
            .events()
            .for_each(|(stream, events)| metadata::events(text, stream, events))
    });
}
