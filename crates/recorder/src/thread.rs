//! Starts and ends of threads, and the end of the process.

use crate::chunk_space::seal;
use crate::local::{Errno, local};
use crate::process::WIPED;
use crate::record::record_rare;
use crate::signals::Quiet;
use crate::state::State;
use crate::{large, metadata, next};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use heapmark_wire::capture::Event;

/// How many rounds of a thread's destructors POSIX guarantees.
const ROUNDS: u8 = 4;

/// Gives the calling thread a state in which this witness is writing. Null if nothing is recorded,
/// if the thread has ended, or while the process is still being set up.
pub fn begin_thread_of_caller(witness: usize) -> *mut State {
    let _errno = Errno::keep();
    // SAFETY: the calling thread's own variable.
    let local = unsafe { &mut *local() };
    let process = &WIPED.process;
    if !next::find() || local.ended || !process.start() {
        return ptr::null_mut();
    }
    if local.thread_and_one == 0 {
        local.thread_and_one = process.threads.fetch_add(1, Ordering::Relaxed) + 1;
    }
    let _quiet = Quiet::begin();
    match WIPED.states.take(local.thread_and_one - 1) {
        Some(state) => {
            // SAFETY: the state is ours.
            unsafe { (*state).writing = witness };
            own(state)
        }
        None => ptr::null_mut(),
    }
}

/// As [`begin_thread_of_caller`], if the thread's state is wiped: this is a child, and its only
/// thread. It forgets which thread of its parent it was.
pub fn begin_child(witness: usize) -> *mut State {
    // SAFETY: the calling thread's own variable.
    unsafe { ((*local()).state, (*local()).thread_and_one) = (ptr::null_mut(), 0) };
    begin_thread_of_caller(witness)
}

/// Makes the state the calling thread's until it ends.
pub fn own(state: *mut State) -> *mut State {
    // SAFETY: both are the thread's own.
    unsafe {
        (*local()).state = state;
        (*state).rounds = 0;
        (*state).task.store(libc::syscall(libc::SYS_gettid) as u32, Ordering::Release);
        if let Some(key) = key() {
            libc::pthread_setspecific(key, state.cast());
        }
    }
    state
}

/// The key whose destructor is called when a thread ends.
fn key() -> Option<libc::pthread_key_t> {
    static KEY_AND_ONE: AtomicU32 = AtomicU32::new(0);
    if KEY_AND_ONE.load(Ordering::Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: the first thread comes here before there is a second.
        if unsafe { libc::pthread_key_create(&mut key, Some(end_thread)) } == 0 {
            KEY_AND_ONE.store(key + 1, Ordering::Relaxed);
        }
    }
    KEY_AND_ONE.load(Ordering::Relaxed).checked_sub(1)
}

/// The destructors of a thread run in rounds, as long as there is something to destroy. Others may
/// still allocate and free, so this one runs last.
extern "C" fn end_thread(state: *mut c_void) {
    let state = state.cast::<State>();
    // SAFETY: the key's value is the thread's state, unless a fork has wiped it.
    unsafe {
        let local = local();
        if (*local).state != state {
            return;
        }
        (*state).rounds += 1;
        if (*state).rounds < ROUNDS {
            own_again(state);
            return;
        }
        record_rare(&Event::ThreadExit);
        // After a fork, noting changes the state.
        let state = core::mem::replace(&mut (*local).state, ptr::null_mut());
        (*local).ended = true;
        if !state.is_null() && (*state).number_and_one != 0 {
            WIPED.states.give(state);
        }
    }
}

fn own_again(state: *mut State) {
    if let Some(key) = key() {
        // SAFETY: a key of ours.
        unsafe { libc::pthread_setspecific(key, state.cast()) };
    }
}

unsafe extern "C" {
    // As glibc declares it: the function, its argument, and its library.
    fn __cxa_atexit(call: extern "C" fn(*mut c_void), argument: *mut c_void, library: *mut c_void) -> c_int;
}

/// Runs after the destructors of other libraries. Together they are one of the functions that
/// `exit` calls; a function registered during it is called after it.
pub fn end_process_last() {
    // SAFETY: the function stays loaded: no library is named, so none can be unloaded.
    if unsafe { __cxa_atexit(end_process, ptr::null_mut(), ptr::null_mut()) } != 0 {
        end_process(ptr::null_mut());
    }
}

/// A regular end of the process: writes down what is known now, and seals the chunks that are not
/// in use.
extern "C" fn end_process(_: *mut c_void) {
    let _errno = Errno::keep();
    let process = &WIPED.process;
    if !process.is_on() {
        return;
    }
    large::tell_of_all(&WIPED.large);
    process.tell(|text, room| metadata::at_end(text, room, WIPED.states.inner()));
    process.stop("exit");
    // SAFETY: the calling thread's own variable.
    unsafe {
        let state = (*local()).state;
        if !state.is_null() {
            seal(state);
        }
    }
    WIPED.states.seal_idle();
    process.tell(|text, _| WIPED.states.events().for_each(|(stream, events)| metadata::events(text, stream, events)));
}
