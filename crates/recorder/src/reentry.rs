//! Calls that cannot simply be noted in their thread's own stream: it has none yet or any more, is in the middle of another call, or
//! was, when something jumped out of that.

use crate::chunk_space::put;
use crate::clock;
use crate::local::{Errno, local, state};
use crate::process::WIPED;
use crate::state::State;
use crate::thread::begin_thread_of_caller;
use crate::witness::stands;
use core::sync::atomic::Ordering;
use heapmark_wire::capture::{Event, Writer};

/// No allocator calls itself so often in one call. What seems to has jumped out of that call, and nothing has come where its frame was.
const MOST_INNER: u32 = 1000;

/// The thread's state, if it gets one now, or if the call that is said to be under way is not. Null if the next library has called itself.
#[cold]
#[inline(never)]
pub fn enter_slowly(state: *mut State, depth: usize) -> *mut State {
    if state.is_null() {
        return begin_thread_of_caller(0);
    }
    // SAFETY: the state is this thread's.
    unsafe {
        let then = (*state).calling;
        if depth < then && stands(then, depth) && may_be_inner(&mut *state) {
            return core::ptr::null_mut();
        }
        (*state).calling = 0;
    }
    state
}

/// Counts what the next library calls of itself.
fn may_be_inner(state: &mut State) -> bool {
    // SAFETY: the state's own.
    let events = unsafe { Writer::events(&raw const state.writer) };
    if state.inner_since.1 != events {
        state.inner_since = (0, events);
    }
    state.inner_since.0 += 1;
    state.inner += 1;
    if state.inner_since.0 <= MOST_INNER.into() {
        return true;
    }
    // All of them were the program's; this one will be noted.
    state.inner -= state.inner_since.0;
    WIPED.process.drop_events(MOST_INNER);
    false
}

/// Whether the writer is ours after all: the event that was being written is one that something has jumped away from. Otherwise a handler
/// has interrupted its writing.
#[cold]
#[inline(never)]
pub unsafe fn take_over(state: *mut State, witness: usize) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let then = (&raw const (*state).writing).read_volatile();
        if then != 0 && stands(then, witness) || State::claim(state, then, witness) != then {
            return false;
        }
        if then != 0 {
            recover(state);
        }
    }
    true
}

/// What was being written may be torn. Where the stream stands is what a reader would find.
///
/// # Safety
/// The state is the caller's, and nothing else writes to it.
pub unsafe fn recover(state: *mut State) {
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

/// Notes a call for which [`enter_slowly`] had no state: what the C library of a thread still frees after its destructors. What the next
/// library calls of itself is not noted.
#[cold]
#[inline(never)]
pub fn note_streamless(event: &Event<'_>) {
    // SAFETY: the thread's own.
    let local = unsafe { &*local() };
    if state().is_null() && local.ended {
        note_elsewhere(local.thread_and_one.saturating_sub(1), event);
    }
}

/// Notes an event in a stream that is nobody's, and leaves it.
#[cold]
#[inline(never)]
pub fn note_elsewhere(thread: u32, event: &Event<'_>) {
    let _errno = Errno::keep();
    if !WIPED.process.is_on() {
        return;
    }
    if let Some(state) = WIPED.states.take(thread) {
        // SAFETY: the state is ours until it is given back.
        unsafe {
            put(state, event);
            WIPED.states.give(state);
        }
    }
}
