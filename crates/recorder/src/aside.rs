//! Calls that cannot simply be noted in their thread's own stream: it has none yet or any more, is in the middle of another call, or
//! was, when something jumped out of that.

use crate::clock;
use crate::local::{Errno, depth, local, state};
use crate::process::WIPED;
use crate::room::put;
use crate::signals::has_interrupted;
use crate::state::{CALLING, State};
use crate::thread::begin_thread_of_caller;
use core::sync::atomic::Ordering;
use heapmark_wire::capture::Event;

/// The thread's state, where nothing is under way in it after all. Otherwise null: the call is an [`Aside`].
#[cold]
#[inline(never)]
pub fn enter_slowly(state: *mut State, now: usize) -> *mut State {
    if state.is_null() {
        return begin_thread_of_caller();
    }
    // SAFETY: the state is this thread's.
    unsafe {
        let then = (*state).busy & !CALLING;
        if (*state).busy & CALLING != 0 {
            // Deeper than the call that is under way: the next library has called itself.
            if now < then {
                return core::ptr::null_mut();
            }
        } else {
            if has_interrupted(now, then) {
                return core::ptr::null_mut();
            }
            recover(state);
        }
        // A jump has left behind what was under way.
        (*state).busy = 0;
    }
    state
}

/// What was being written may be torn. Where the stream stands is what a reader would find.
unsafe fn recover(state: *mut State) {
    // SAFETY: the caller's.
    unsafe {
        if !(*state).writer.at().is_null() {
            let clocked = (*state).writer.recover();
            let process_clocked = WIPED.process.clocked.load(Ordering::SeqCst);
            let kind = if clocked {
                clock::kind()
            } else if process_clocked {
                clock::WANTED
            } else {
                clock::OFF
            };
            (*state).clocked.store(kind, Ordering::Relaxed);
        }
        (*state).limit = core::ptr::null_mut();
    }
}

/// A call that the thread's own stream does not note.
pub enum Aside {
    /// The thread has no stream. After its destructors, its C library may still free something.
    Streamless,
    /// The next library's own.
    Inner,
    /// A signal's handler has interrupted the writing of an event: its own goes into another stream.
    Interrupting(*mut State),
}

impl Aside {
    #[cold]
    #[inline(never)]
    pub fn of_caller() -> Aside {
        let state = state();
        // SAFETY: the state is this thread's.
        match unsafe { state.as_ref() } {
            None => Aside::Streamless,
            Some(own) if own.is_writing() => Aside::Interrupting(state),
            Some(_) => Aside::Inner,
        }
    }

    /// What the next library calls meanwhile is its own affair here, too.
    #[inline(always)]
    pub fn run<R>(&self, call: impl FnOnce() -> R) -> R {
        match *self {
            Aside::Streamless | Aside::Inner => call(),
            // SAFETY: the state is this thread's.
            Aside::Interrupting(state) => unsafe {
                let was = core::mem::replace(&mut (*state).busy, depth() | CALLING);
                let result = call();
                (*state).busy = was;
                result
            },
        }
    }

    #[cold]
    #[inline(never)]
    pub fn note<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        match *self {
            Aside::Inner => {}
            // SAFETY: the state is this thread's.
            Aside::Interrupting(state) => note_elsewhere(unsafe { (*state).thread }, &event()),
            Aside::Streamless => {
                // SAFETY: the thread's own.
                let local = unsafe { &*local() };
                if local.ended && WIPED.process.is_on() {
                    note_elsewhere(local.thread_and_one.saturating_sub(1), &event());
                }
            }
        }
    }
}

/// Notes an event in a stream that is nobody's, and leaves it.
fn note_elsewhere(thread: u32, event: &Event<'_>) {
    let errno = Errno::keep();
    if !WIPED.process.is_on() {
        return;
    }
    if let Some(state) = WIPED.states.take(thread) {
        // SAFETY: the state is ours until it is given back.
        unsafe {
            (*state).busy = depth();
            put(state, event);
            (*state).busy = 0;
            WIPED.states.give(state);
        }
    }
    drop(errno);
}
