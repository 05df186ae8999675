//! Threads come and go, and with the last of them the process.

use crate::local::{Errno, local};
use crate::note::only;
use crate::process::WIPED;
use crate::room::seal;
use crate::signals::Quiet;
use crate::state::State;
use crate::{about, large, next};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use heapmark_wire::capture::Event;

/// How often POSIX promises to run the destructors of a thread.
const ROUNDS: u8 = 4;

/// Gives the calling thread a state. Null where nothing is recorded, where it has ended, or while the process is still being set up.
pub fn begin_thread_of_caller() -> *mut State {
    let _errno = Errno::keep();
    // SAFETY: the thread's own.
    let local = unsafe { &mut *local() };
    let process = &WIPED.process;
    if !next::find() || local.ended || !process.start() {
        return core::ptr::null_mut();
    }
    if local.thread_and_one == 0 {
        local.thread_and_one = process.threads.fetch_add(1, Ordering::Relaxed) + 1;
    }
    let _quiet = Quiet::begin();
    match WIPED.states.take(local.thread_and_one - 1) {
        Some(state) => own(state),
        None => core::ptr::null_mut(),
    }
}

/// The state is the calling thread's until it ends.
pub fn own(state: *mut State) -> *mut State {
    // SAFETY: both are the thread's own.
    unsafe {
        (*local()).state = state;
        (*state).rounds = 0;
        if let Some(key) = key() {
            libc::pthread_setspecific(key, state.cast());
        }
    }
    state
}

/// The key whose destructor tells us that a thread ends.
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

/// The destructors of a thread run in rounds, as long as there is something to destroy. Others may still allocate and free: we
/// go last.
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
        only(Event::ThreadExit);
        // After a fork noting moves it.
        let state = core::mem::replace(&mut (*local).state, core::ptr::null_mut());
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

/// The process ends as it should: what is known now is written down, and the chunks that nobody writes to are sealed.
pub fn end_process() {
    let _errno = Errno::keep();
    let process = &WIPED.process;
    if !process.is_on() {
        return;
    }
    large::tell_of_all(&WIPED.large);
    process.tell(about::peak);
    process.stop("exit");
    // SAFETY: the thread's own.
    unsafe {
        let state = (*local()).state;
        if !state.is_null() {
            seal(state);
        }
    }
    WIPED.states.seal_idle();
    process.tell(|text| WIPED.states.events().for_each(|(stream, events)| about::events(text, stream, events)));
}
